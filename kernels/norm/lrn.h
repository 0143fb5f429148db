/* LRN of f32 on vectors: the body's contract (lrn_vec.c). */
#ifndef ORTC_KERNELS_NORMALIZE_LRN_H
#define ORTC_KERNELS_NORMALIZE_LRN_H

#include "kernels/common/uk.h"

typedef struct ortc_lrn {
    /* y = x / (bias + scale * squares)^beta */
    void (*line)(size_t n, const float *x, const float *squares, float scale, float bias, float beta,
                 float *y);
} ortc_lrn;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_lrn)

#endif
