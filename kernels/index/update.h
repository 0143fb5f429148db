/* kernels/index/update.h: what a scatter makes of an element and its update, where C has the type; the
 * same bits as ref's, which computes in double and in 64 bits. `update`: ORTC_UPDATE_* but SET.
 * ortc_updates_*: of n neighbours. */
#ifndef ORTC_KERNELS_INDEX_UPDATE_H
#define ORTC_KERNELS_INDEX_UPDATE_H

#include "kernels/index/index.h"

#define ORTC_UPDATE_OF(name, type, wrapping) \
    static inline type ortc_update_##name(int update, type a, type b) \
    { \
        switch (update) { \
        case ORTC_UPDATE_ADD: return (type)((wrapping)a + (wrapping)b); \
        case ORTC_UPDATE_MUL: return (type)((wrapping)a * (wrapping)b); \
        case ORTC_UPDATE_MIN: return a < b || a != a ? a : b; \
        default: return a > b || a != a ? a : b; \
        } \
    } \
    static inline void ortc_updates_##name(int update, int64_t n, type *restrict y, const type *restrict u) \
    { \
        switch (update) { \
        case ORTC_UPDATE_ADD: \
            for (int64_t k = 0; k < n; k++) y[k] = ortc_update_##name(ORTC_UPDATE_ADD, y[k], u[k]); \
            break; \
        case ORTC_UPDATE_MUL: \
            for (int64_t k = 0; k < n; k++) y[k] = ortc_update_##name(ORTC_UPDATE_MUL, y[k], u[k]); \
            break; \
        default: \
            for (int64_t k = 0; k < n; k++) y[k] = ortc_update_##name(update, y[k], u[k]); \
        } \
    }
ORTC_UPDATE_OF(f32, float, float)
ORTC_UPDATE_OF(f64, double, double)
ORTC_UPDATE_OF(i32, int32_t, uint32_t)
ORTC_UPDATE_OF(i64, int64_t, uint64_t)

#endif
