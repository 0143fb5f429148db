/* Softmax and LogSoftmax of f32 on vectors: the bodies' contract (rows_vec.c). */
#ifndef ORTC_KERNELS_SOFTMAX_ROWS_H
#define ORTC_KERNELS_SOFTMAX_ROWS_H

#include "kernels/common/uk.h"

typedef struct ortc_softmax_rows {
    /* rows dense rows of `length`; y may be x. */
    void (*rows)(size_t rows, size_t length, const float *x, float *y, int log);
    /* Along `length` lines of `width` elements, in a tile of as many that lies dense. x and y lie x_step and
     * y_step elements from line to line; each may be the tile, with a step of width. */
    void (*columns)(size_t length, size_t width, const float *x, size_t x_step, float *tile, float *y,
                    size_t y_step, int log);
} ortc_softmax_rows;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_softmax_rows)

#endif
