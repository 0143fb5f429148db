/* How sums of f32 end that are of one channel, and beside each other: of what is computed plane by plane. */
#ifndef ORTC_KERNELS_CONV_PLANE_END_H
#define ORTC_KERNELS_CONV_PLANE_END_H

#include "kernels/gemm/epilogue.h"

/* For a call; bias and residual: NULL where there is none. All of the type, f32 or of 16 bits. */
typedef struct ortc_plane_end {
    const ortc_tail_spec *tail;
    const ortc_view *in; /* the call's */
    ortc_dtype type;
    const void *bias, *residual;
    void *y;
} ortc_plane_end;

/* n elements from `at` on as f32: where they lie, or widened into `space`. */
const float *ortc_plane_floats(ortc_dtype type, const void *src, int64_t at, int64_t n, float *space);

/* Scale, bias, residual and activation. `space`: for n. */
void ortc_plane_tail(const ortc_plane_end *e, int64_t channel, int64_t element, int64_t n, float *sums,
                     float *space);
/* What is behind them; and the results, where they are not stored by that, at `element` of y. */
void ortc_plane_store(const ortc_plane_end *e, int64_t channel, int64_t element, int64_t n, float *sums);

#endif
