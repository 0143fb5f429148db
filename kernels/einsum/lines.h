/* Rows of f32 for Einsum on vectors: the bodies' contract (lines_vec.c). */
#ifndef ORTC_KERNELS_EINSUM_LINES_H
#define ORTC_KERNELS_EINSUM_LINES_H

#include "kernels/common/uk.h"

typedef struct ortc_einsum_lines {
    /* y[i] = a[i] b[i]; of an operand with step 0 all elements are the first */
    void (*multiply)(size_t n, const float *a, int64_t a_step, const float *b, int64_t b_step, float *y);
    float (*dot)(size_t n, const float *a, const float *b);
} ortc_einsum_lines;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_einsum_lines)

#endif
