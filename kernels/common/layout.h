/* kernels/common/layout.h: values in other layouts as plain ones of the shape that memory has: the axes in
 * their order, blocks where the blocked axis stands, and what is in a block last (ortc/op.h). */
#ifndef ORTC_KERNELS_LAYOUT_H
#define ORTC_KERNELS_LAYOUT_H

#include <string.h>

#include "ortc/op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The extents in memory of a value of these dims; *rank_out of them, at most rank + 1. */
static inline void ortc_layout_dims(ortc_layout l, int32_t rank, const int64_t *dims, int32_t *rank_out,
                                    int64_t *out)
{
    const int64_t block = ortc_layout_block(l);
    for (int32_t i = 0; i < rank; i++) {
        const int32_t a = ortc_layout_axis_at(l, i);
        out[i] = block && a == ortc_layout_axis(l) ? (dims[a] + block - 1) / block : dims[a];
    }
    if (block) out[rank] = block;
    *rank_out = rank + (block != 0);
}

/* The same of a plain value that is broadcast against values in the layout, of as many dims: *out such that
 * its elements lie in memory as those dims say, row by row. 0: they do not, or a block would begin behind its
 * end. */
static inline int ortc_layout_broadcast(ortc_layout l, int32_t rank, const int64_t *dims, int64_t *out)
{
    const int64_t block = ortc_layout_block(l);
    const int32_t axis = block ? ortc_layout_axis(l) : -1;
    int32_t last = -1; /* the axis before it in memory, of those that have a length */
    int behind = 0;
    for (int32_t i = 0; i < rank; i++) {
        const int32_t a = ortc_layout_axis_at(l, i);
        const int64_t n = dims[a];
        out[i] = n;
        if (n == 1) continue;
        if (a < last || behind) return 0;
        last = a;
        if (a != axis) continue;
        if (n % block) return 0;
        out[i] = n / block;
        behind = 1; /* what is in a block comes next */
    }
    if (block) out[rank] = dims[axis] == 1 ? 1 : block;
    return 1;
}

/* Writes zeros where a last block goes beyond the end of its axis. */
static inline void ortc_layout_zero_rest(const ortc_view *v)
{
    const int64_t block = ortc_layout_block(v->layout);
    const int32_t axis = ortc_layout_axis(v->layout);
    const size_t bytes = ortc_dtype_bits(v->dtype) / 8;
    int64_t outer = 1, inner = 1;
    int behind = 0;
    if (!block || v->dims[axis] % block == 0 || !ortc_view_count(v)) return;
    const int64_t used = v->dims[axis] % block, blocks = v->dims[axis] / block + 1;
    for (int32_t i = 0; i < v->rank; i++) {
        const int32_t a = ortc_layout_axis_at(v->layout, i);
        if (a == axis)
            behind = 1;
        else if (behind)
            inner *= v->dims[a];
        else
            outer *= v->dims[a];
    }
    for (int64_t i = 0; i < outer; i++)
        for (int64_t k = 0; k < inner; k++)
            memset((char *)v->data + (size_t)((((i + 1) * blocks - 1) * inner + k) * block + used) * bytes, 0,
                   (size_t)(block - used) * bytes);
}

#ifdef __cplusplus
}
#endif
#endif
