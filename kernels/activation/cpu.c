/* kernels/activation/cpu.c: the family's table on the cpu provider, where activations are pointwise
 * programs. */
#include "kernels/elementwise/program.h"

#define NUM \
    (ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_F16) | ORTC_TYPE(ORTC_BF16) | ORTC_TYPES_INT | \
     ORTC_TYPE(ORTC_U8) | ORTC_TYPE(ORTC_U16))
#define FLOAT (ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_F16) | ORTC_TYPE(ORTC_BF16))
#define K(op, since, ...) ORTC_KERNEL(op, since, ORTC_NEWEST, (__VA_ARGS__), &ortc_cpu_program)
/* clang-format off */
ORTC_KERNELS(cpu, activation,
             K("Relu", 14, FLOAT | ORTC_TYPES_INT), K("LeakyRelu", 16, FLOAT),
             K("PRelu", 16, FLOAT | ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64)), K("Clip", 13, NUM),
             K("Sigmoid", 13, FLOAT), K("Tanh", 13, FLOAT), K("Gelu", 20, FLOAT), K("Erf", 13, FLOAT),
             K("HardSwish", 22, FLOAT), K("HardSigmoid", 22, FLOAT), K("Elu", 22, FLOAT),
             K("Selu", 22, FLOAT),
             K("Celu", 28, FLOAT), K("Softplus", 22, FLOAT), K("Softsign", 22, FLOAT), K("Mish", 22, FLOAT),
             K("Swish", 24, FLOAT), K("SwiGLU", 28, FLOAT), K("ThresholdedRelu", 22, FLOAT),
             K("Shrink", 9, ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_F16)));
/* clang-format on */
