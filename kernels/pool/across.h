/* The last step of a pool on vectors: along a line that already holds the folded rows of the windows
 * (across_vec.c). */
#ifndef ORTC_KERNELS_POOL_ACROSS_H
#define ORTC_KERNELS_POOL_ACROSS_H

#include "kernels/common/uk.h"

/* y[i] = fold over k < taps of line[i * stride + k * dilation]: the largest, or where count is given the sum
 * divided by rows * count[i]. (lanes - 1) * stride fits 31 bits. */
typedef void ortc_pool_across_fn(size_t n, size_t taps, size_t dilation, size_t stride, const float *line,
                                 const float *count, float rows, float *y);
typedef struct ortc_pool_across {
    /* acc[i] = the largest, or the sum, of what `rows` rows have at i; one row at least. */
    void (*rows)(size_t n, size_t rows, const float *const *x, int max, float *acc);
    ortc_pool_across_fn *run;
} ortc_pool_across;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_pool_across)

#endif
