/* Rows of f32 for Einsum on vectors: the bodies' contract (lines_vec.c). */
#ifndef ORTC_KERNELS_EINSUM_LINES_H
#define ORTC_KERNELS_EINSUM_LINES_H

#include "kernels/common/uk.h"

typedef struct ortc_einsum_lines {
    /* y[i] = a[i] b[i]; of an operand with step 0 all elements are the first */
    void (*multiply)(size_t n, const float *a, int64_t a_step, const float *b, int64_t b_step, float *y);
    float (*dot)(size_t n, const float *a, const float *b);
    float (*sum)(size_t n, const float *x);
    /* sums[i] += x[i], and of more rows, `step` apart; room for a register behind sums. By type of x,
     * ORTC_FLOAT_* (kernels/common/vector/convert.h). */
    void (*add[3])(size_t n, size_t rows, int64_t step, const void *x, double *sums);
    void (*round)(size_t n, const double *sums, float *y);
} ortc_einsum_lines;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_einsum_lines)

#endif
