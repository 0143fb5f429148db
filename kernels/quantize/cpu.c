/* kernels/quantize/cpu.c: the family's table on the cpu provider; QuantizeLinear and DequantizeLinear are
 * pointwise programs (expand.h). */
#include "kernels/quantize/cpu.h"

#define BYTES (ORTC_TYPE(ORTC_I8) | ORTC_TYPE(ORTC_U8))
ORTC_KERNELS(cpu, quantize,
             ORTC_KERNEL("DynamicQuantizeLinear", 11, ORTC_NEWEST, (ORTC_TYPE(ORTC_F32), ORTC_TYPE(ORTC_U8)),
                         &ortc_cpu_dynamic_quantize),
             /* its result is of any type where an epilogue is behind it */
             ORTC_KERNEL("MatMulInteger", 10, ORTC_NEWEST, (BYTES, BYTES, ORTC_TYPES_ANY),
                         &ortc_cpu_matmul_integer),
             ORTC_KERNEL_IN("ortc", "GemmInteger", 1, 1, (BYTES, BYTES, ORTC_TYPES_ANY),
                            &ortc_cpu_matmul_integer));
