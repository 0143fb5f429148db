/* Activations over f32 in L1, for tiles that a product has finished: a body for every instruction set
 * (activation_vec.c), within the bounds of kernels/common/vector/math.h. */
#ifndef ORTC_KERNELS_GEMM_ACTIVATION_H
#define ORTC_KERNELS_GEMM_ACTIVATION_H

#include "kernels/common/uk.h"

enum {
    ORTC_OVER_SIGMOID,
    ORTC_OVER_TANH,
    ORTC_OVER_GELU, /* by erf */
    ORTC_OVER_GELU_TANH,
    ORTC_OVER_SILU,
    ORTC_OVER_HARD_SWISH,
    ORTC_OVER_COUNT
};

typedef void ortc_activation(size_t n, float *x);
typedef struct ortc_activations {
    ortc_activation *over[ORTC_OVER_COUNT];
} ortc_activations;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_activations)

#endif
