/* kernels/activation/cuda_activation.c: the activations on a GPU are programs of the family elementwise. */
#include "kernels/elementwise/cuda_maker.h"

#define K(op, since, types) ORTC_KERNEL(op, since, ORTC_NEWEST, (types), &ortc_cuda_elementwise)
#define FLOATS(op, since) K(op, since, ORTC_TYPES_FLOAT)
ORTC_KERNELS(cuda, activation, K("Relu", 14, ORTC_TYPES_FLOAT | ORTC_TYPES_INT), FLOATS("LeakyRelu", 16),
             FLOATS("Sigmoid", 13), FLOATS("Tanh", 13), FLOATS("Gelu", 20), FLOATS("Erf", 13),
             FLOATS("HardSwish", 22), FLOATS("HardSigmoid", 22), FLOATS("Elu", 22), FLOATS("Selu", 22),
             FLOATS("Celu", 28), FLOATS("Softplus", 22), FLOATS("Softsign", 22), FLOATS("Mish", 22),
             FLOATS("Swish", 24), FLOATS("ThresholdedRelu", 22), FLOATS("SwiGLU", 28),
             K("Clip", 13, ORTC_TYPES_NUM),
             K("PRelu", 16,
               ORTC_TYPES_FLOAT | ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64) | ORTC_TYPE(ORTC_U32) |
                   ORTC_TYPE(ORTC_U64)));
