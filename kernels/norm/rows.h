/* Normalisation of rows by their own statistics: the bodies' contract (rows_vec.c). y may be x. */
#ifndef ORTC_KERNELS_LAYERNORM_ROWS_H
#define ORTC_KERNELS_LAYERNORM_ROWS_H

#include "kernels/common/uk.h"

typedef struct ortc_layer_rows {
    /* By ORTC_FLOAT_*: of each row, which lie one behind the other, the mean, and the mean of squared
     * distances from it; not centred: 0, and the mean of squares. Rows do not wait for each other. */
    void (*measure[3])(size_t rows, size_t length, const void *x, int centred, double *mean,
                       double *variance);
    /* y = (x - mean) * factor * scale + bias, x and y being of one type; bias may be NULL. */
    void (*apply[3])(size_t length, const void *x, float mean, float factor, const float *scale,
                     const float *bias, void *y);
    /* The same of bf16 where there is AMX; NULL: there cannot be. */
    void (*apply_amx)(size_t length, const void *x, float mean, float factor, const float *scale,
                      const float *bias, void *y);
    /* Both at once, of rows of f32 of one scale and bias, the factor being 1 / sqrt(variance + epsilon): the
     * same bits. 0: not of rows of such a length. */
    int (*short_rows)(size_t rows, size_t length, const float *x, int centred, double epsilon,
                      const float *scale, const float *bias, float *y);
    /* Of f32: sums of distances from `mean`, and of their squares. */
    double (*distances)(size_t length, const void *x, float mean);
    double (*squares)(size_t length, const void *x, float mean);
    /* apply of f32 with one scale and one bias for all. */
    void (*apply_one)(size_t length, const float *x, float mean, float factor, float scale, float bias,
                      float *y);
    /* Of n positions of 16 channels: each channel's mean, and its sum of squared distances from that. */
    void (*measure_blocks)(size_t n, const float *x, float *mean, float *squares);
    /* y = (x - mean) * factor + bias, by channel. */
    void (*apply_blocks)(size_t n, const float *x, const float *mean, const float *factor, const float *bias,
                         float *y);
    /* y = (x - zero) * scale, of u8 or s8 */
    void (*dequantise)(size_t n, const void *x, int is_signed, int32_t zero, float scale, float *y);
} ortc_layer_rows;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_layer_rows)

#endif
