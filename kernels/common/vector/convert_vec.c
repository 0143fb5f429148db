/* The bodies of convert.h. */
#include "kernels/common/vector/convert.h"
#include "kernels/common/vector/vec.h"

#define BOTH_WAYS(T, type) \
    static void widen_##T(size_t count, const void *from, float *y) \
    { \
        const type *x = from; \
        V_FOR(i, n, count, v_store_f32(y + i, v_load_##T(x + i, n), n);); \
    } \
    static void narrow_##T(size_t count, const float *x, void *to) \
    { \
        type *y = to; \
        V_FOR(i, n, count, v_store_##T(y + i, v_load_f32(x + i, n), n);); \
    }
BOTH_WAYS(f32, float)
BOTH_WAYS(f16, uint16_t)
BOTH_WAYS(bf16, uint16_t)

const ortc_convert V_NAME(ortc_convert) = {{widen_f32, widen_f16, widen_bf16},
                                           {narrow_f32, narrow_f16, narrow_bf16}};
