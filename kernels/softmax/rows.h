/* Softmax and LogSoftmax of f32 on vectors: the bodies' contract (rows_vec.c). */
#ifndef ORTC_KERNELS_SOFTMAX_ROWS_H
#define ORTC_KERNELS_SOFTMAX_ROWS_H

#include "kernels/common/uk.h"

typedef struct ortc_softmax_rows {
    /* rows dense rows of `length`; y may be x. */
    void (*rows)(size_t rows, size_t length, const float *x, float *y, int log);
    /* Along `length` lines of `width` elements, `step` elements apart; y may be x. top, sum: width elements
     * of scratch. */
    void (*columns)(size_t length, size_t width, size_t step, const float *x, float *y, float *top,
                    float *sum, int log);
} ortc_softmax_rows;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_softmax_rows)

#endif
