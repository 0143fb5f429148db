/* Resizing on vectors: the bodies' contract (lines_vec.c). A tap of weight 0 does not count, whatever it is
 * of. `index` and `weight` of a line are [taps][n]. */
#ifndef ORTC_KERNELS_RESIZE_LINES_H
#define ORTC_KERNELS_RESIZE_LINES_H

#include "kernels/common/uk.h"

/* What is summed up in double: types of which a sum in f32 would round otherwise. */
#define ORTC_RESIZE_WIDE(X) \
    X(I8, int8_t) \
    X(U8, uint8_t) X(I16, int16_t) X(U16, uint16_t) X(I32, int32_t) X(U32, uint32_t) X(F64, double)
#define ORTC_RESIZE_WIDE_NAME(t, type) ORTC_RESIZE_##t,
enum { ORTC_RESIZE_WIDE(ORTC_RESIZE_WIDE_NAME) ORTC_RESIZE_WIDES };

typedef struct ortc_resize_lines {
    /* y[i] (+)= sum over rows r of weight[r] * row[r][i]; `first`: y is what comes out, not what is added
     * to. Elements and sums are f32, or f64, of which every step is rounded, in the order of the rows. */
    void (*down)(size_t n, size_t rows, const void *const *row, const double *weight, int first, void *y);
    void (*down_wide)(size_t n, size_t rows, const void *const *row, const double *weight, int first,
                      void *y);
    /* y[i] = sum over taps k of weight[k * n + i] * line[index[k * n + i]]; indices are below `length`. */
    void (*across)(size_t n, size_t taps, const float *line, size_t length, const int32_t *index,
                   const float *weight, float *y);
    void (*across_wide)(size_t n, size_t taps, const double *line, const int32_t *index, const double *weight,
                        double *y);
    /* Elements to and from f64, rounded and saturated, by ORTC_RESIZE_*. */
    void (*widen[ORTC_RESIZE_WIDES])(size_t n, const void *x, double *y);
    void (*narrow[ORTC_RESIZE_WIDES])(size_t n, const double *x, void *y);
    /* y[i] = line[index[i]], elements of 1, 2 and 4 bytes. */
    void (*pick[3])(size_t n, const void *line, size_t length, const int32_t *index, void *y);
    /* y[i] = line[i / 2], likewise, 2 n of them. */
    void (*twice[3])(size_t n, const void *line, void *y);
    /* across and down of pixels that are blocks of 16 channels: y[i] = sum over r, k of row_weight[r] *
     * weight[k * n + i] * row[r][index[k * n + i]]. By type of x and y, ORTC_FLOAT_*
     * (kernels/common/vector/convert.h). */
    void (*blocks[3])(size_t n, size_t rows, const void *const *row, const float *row_weight, size_t taps,
                      const int32_t *index, const float *weight, void *y);
} ortc_resize_lines;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_resize_lines)

#endif
