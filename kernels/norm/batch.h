/* BatchNormalization of f32 on vectors: the bodies' contract (batch_vec.c). y may be x. */
#ifndef ORTC_KERNELS_NORM_BATCH_H
#define ORTC_KERNELS_NORM_BATCH_H

#include "kernels/common/uk.h"

typedef struct ortc_batch {
    /* y = (x - mean) * factor + bias: of one channel, and with one of each per element. */
    void (*channel)(size_t n, const float *x, float mean, float factor, float bias, float *y);
    void (*line)(size_t n, const float *x, const float *mean, const float *factor, const float *bias,
                 float *y);
} ortc_batch;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_batch)

#endif
