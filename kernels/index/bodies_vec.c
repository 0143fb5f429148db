/* The bodies of bodies.h: plain loops, of which compilers make what the instruction set has. */
#include "kernels/index/bodies.h"

#include "kernels/common/vector/vec.h"

typedef struct wide {
    uint64_t part[2];
} wide;

#define WITHIN(itype) \
    static int within_##itype(size_t n, const void *indices, int64_t extent) \
    { \
        const itype *at = indices; \
        const uint64_t all = 2 * (uint64_t)extent; \
        uint64_t wrong = 0; \
        for (size_t k = 0; k < n; k++) wrong |= (uint64_t)at[k] + (uint64_t)extent >= all; \
        return !wrong; \
    }
#define PICK(itype, type) \
    static void row_##itype##_##type(size_t n, const void *indices, int64_t extent, const void *from, \
                                     void *to) \
    { \
        const itype *at = indices; \
        const type *x = from; \
        type *y = to; \
        for (size_t k = 0; k < n; k++) y[k] = x[at[k] + (at[k] < 0 ? extent : 0)]; \
    } \
    static void columns_##itype##_##type(size_t n, const void *indices, int64_t extent, int64_t stride, \
                                         const void *from, void *to) \
    { \
        const itype *at = indices; \
        const type *x = from; \
        type *y = to; \
        for (size_t k = 0; k < n; k++) y[k] = x[(int64_t)k + (at[k] + (at[k] < 0 ? extent : 0)) * stride]; \
    }
#define OF(itype) \
    WITHIN(itype) \
    PICK(itype, uint8_t) PICK(itype, uint16_t) PICK(itype, uint32_t) PICK(itype, uint64_t) PICK(itype, wide)
OF(int32_t)
OF(int64_t)

#define LIST(what, itype) \
    { \
        what##_##itype##_uint8_t, what##_##itype##_uint16_t, what##_##itype##_uint32_t, \
            what##_##itype##_uint64_t, what##_##itype##_wide \
    }
const ortc_index_bodies V_NAME(ortc_index_bodies) = {{within_int32_t, within_int64_t},
                                                     {LIST(row, int32_t), LIST(row, int64_t)},
                                                     {LIST(columns, int32_t), LIST(columns, int64_t)}};
