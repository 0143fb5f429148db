/* Normalisation of f32 rows by their own statistics: the bodies' contract (rows_vec.c). y may be x. */
#ifndef ORTC_KERNELS_LAYERNORM_ROWS_H
#define ORTC_KERNELS_LAYERNORM_ROWS_H

#include "kernels/common/uk.h"

typedef struct ortc_layer_rows {
    /* Sums of distances from `mean`, and of their squares. */
    double (*distances)(size_t length, const float *x, float mean);
    double (*squares)(size_t length, const float *x, float mean);
    /* The mean, and the mean of squared distances from it; not centred: 0, and the mean of squares. */
    void (*measure)(size_t length, const float *x, int centred, double *mean, double *variance);
    /* y = (x - mean) * factor * scale + bias; bias may be NULL. */
    void (*apply)(size_t length, const float *x, float mean, float factor, const float *scale,
                  const float *bias, float *y);
    /* The same with one scale and one bias for all. */
    void (*apply_one)(size_t length, const float *x, float mean, float factor, float scale, float bias,
                      float *y);
} ortc_layer_rows;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_layer_rows)

#endif
