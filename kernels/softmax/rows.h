/* Softmax and LogSoftmax of f32 on vectors: the bodies' contract (rows_vec.c). */
#ifndef ORTC_KERNELS_SOFTMAX_ROWS_H
#define ORTC_KERNELS_SOFTMAX_ROWS_H

#include "kernels/common/uk.h"

typedef struct ortc_softmax_rows {
    /* rows dense rows of `length`; y may be x. */
    void (*rows)(size_t rows, size_t length, const float *x, float *y, int log);
    /* Along an axis that is not the last: of `lines` lines of `width` elements, `step` from line to line, the
     * largest of each column; of these taken off the exponentials (log: the differences) in y, which may be
     * x, and their sums; of the sums of some parts of a column, dense, what all its elements are multiplied
     * by (log: what is subtracted from them), which is done at last. */
    void (*tops)(size_t lines, size_t width, const float *x, size_t step, float *top);
    void (*powers)(size_t lines, size_t width, const float *x, size_t x_step, float *y, size_t y_step,
                   const float *top, float *sum, int log);
    void (*divisors)(size_t lines, size_t width, const float *sums, float *divisor, int log);
    void (*divide)(size_t lines, size_t width, float *y, size_t step, const float *divisor, int log);
} ortc_softmax_rows;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_softmax_rows)

#endif
