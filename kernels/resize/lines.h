/* Resizing on vectors: the bodies' contract (lines_vec.c). A tap of weight 0 does not count, whatever it is
 * of. */
#ifndef ORTC_KERNELS_RESIZE_LINES_H
#define ORTC_KERNELS_RESIZE_LINES_H

#include "kernels/common/uk.h"

typedef struct ortc_resize_lines {
    /* acc[i] (+)= weight * x[i], in f32; `first`: acc is what comes out, not what is added to. */
    void (*add)(size_t n, const float *x, float weight, int first, float *acc);
    /* y[i] = sum over taps k of weight[k * n + i] * line[index[k * n + i]] */
    void (*across)(size_t n, size_t taps, const float *line, const int32_t *index, const float *weight,
                   float *y);
    /* The same of pixels that are blocks of 16 channels, and of several rows with weights: y[i] = sum over r,
     * k of row_weight[r] * weight[k * n + i] * row[r][index[k * n + i]]. By type of x and y, ORTC_FLOAT_*
     * (kernels/common/vector/convert.h). */
    void (*blocks[3])(size_t n, size_t rows, const void *const *row, const float *row_weight, size_t taps,
                      const int32_t *index, const float *weight, void *y);
} ortc_resize_lines;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_resize_lines)

#endif
