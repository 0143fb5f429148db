/* kernels/quantize/quantize.h: what the family's files share: which scale belongs to an element, and
 * rounding. */
#ifndef ORTC_KERNELS_QUANTIZE_H
#define ORTC_KERNELS_QUANTIZE_H

#include <math.h>

#include "kernels/common/shape.h"

/* The element of a scale (and zero point) that belongs to an element of the tensor: one for all, one per
 * index along the axis, or one per block of indices. */
typedef struct ortc_granularity {
    int64_t inner, extent; /* elements behind the axis, and along it */
    /* 0: per axis; otherwise indices along the axis that share a scale, and how many such */
    int64_t block, blocks;
    bool whole; /* one for all */
} ortc_granularity;

static inline ortc_granularity ortc_granularity_of(const ortc_view *x, const ortc_view *scale, int64_t axis,
                                                   int64_t block)
{
    ortc_granularity g = {.inner = 1,
                          .extent = 1,
                          .block = block,
                          .whole = !block && ortc_view_count(scale) == 1};
    int32_t at;
    if (g.whole || !ortc_axis_of(axis, x->rank, &at)) return g;
    for (int32_t d = at + 1; d < x->rank; d++) g.inner *= x->dims[d];
    g.extent = x->dims[at];
    g.blocks = block ? scale->dims[at] : 0;
    return g;
}

static inline int64_t ortc_granularity_at(const ortc_granularity *g, int64_t i)
{
    if (g->whole) return 0;
    const int64_t along = i / g->inner % g->extent;
    if (!g->block) return along;
    return (i / g->inner / g->extent * g->blocks + along / g->block) * g->inner + i % g->inner;
}

/* x as a number of type t has it. */
static inline double ortc_rounded_to(ortc_dtype t, double x)
{
    if (t == ORTC_F32) return (float)x;
    const ortc_float_format *f = ortc_float_format_of(t);
    return f ? ortc_float_decode(f, ortc_float_encode(f, x, false)) : x;
}

/* The numbers of an integer type of at most 16 bits. */
static inline double ortc_lowest_of(ortc_dtype t)
{
    return ortc_class_of(t) == ORTC_CLASS_INT ? -(double)(1 << (ortc_dtype_bits(t) - 1)) : 0;
}
static inline double ortc_highest_of(ortc_dtype t)
{
    return (double)(1 << (ortc_dtype_bits(t) - (ortc_class_of(t) == ORTC_CLASS_INT))) - 1;
}

/* To the nearest, halves to even, and into the type; NaN becomes 0. */
static inline void ortc_store_saturated(void *y, ortc_dtype t, int64_t i, double v)
{
    const double low = ortc_lowest_of(t), high = ortc_highest_of(t);
    v = nearbyint(v);
    ortc_store_f64(y, t, i, v != v ? 0 : v >= low ? v <= high ? v : high : low);
}

ortc_status ortc_infer_matmul_integer(ortc_infer *); /* op_matmul.c */
ortc_status ortc_infer_gemm_integer(ortc_infer *);
ortc_status ortc_infer_qlinear_matmul(ortc_infer *);

extern const ortc_kernel ortc_ref_quantize, ortc_ref_dequantize; /* ref_linear.c */
extern const ortc_kernel ortc_ref_dynamic_quantize;              /* ref_dynamic.c */
extern const ortc_kernel ortc_ref_matmul_integer, ortc_ref_gemm_integer,
    ortc_ref_qlinear_matmul; /* ref_matmul.c */

#endif
