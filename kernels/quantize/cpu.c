/* kernels/quantize/cpu.c: the family's table on the cpu provider: QuantizeLinear and DequantizeLinear are
 * pointwise programs (expand.h). */
#include "kernels/quantize/cpu.h"

#include "kernels/elementwise/program.h"

#define FLOAT (ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_F16) | ORTC_TYPE(ORTC_BF16))
#define NARROW (ORTC_TYPE(ORTC_I8) | ORTC_TYPE(ORTC_U8) | ORTC_TYPE(ORTC_I16) | ORTC_TYPE(ORTC_U16))
#define BYTES (ORTC_TYPE(ORTC_I8) | ORTC_TYPE(ORTC_U8))
#define K(op, since, kernel, ...) ORTC_KERNEL(op, since, ORTC_NEWEST, (__VA_ARGS__), kernel)
ORTC_KERNELS(cpu, quantize, K("QuantizeLinear", 28, &ortc_cpu_program, FLOAT, FLOAT, NARROW),
             K("DequantizeLinear", 28, &ortc_cpu_program, NARROW, FLOAT, FLOAT),
             ORTC_KERNEL("DynamicQuantizeLinear", 11, ORTC_NEWEST, (ORTC_TYPE(ORTC_F32), ORTC_TYPE(ORTC_U8)),
                         &ortc_cpu_dynamic_quantize),
             /* its result is of any type where an epilogue is behind it */
             K("MatMulInteger", 10, &ortc_cpu_matmul_integer, BYTES, BYTES, ORTC_TYPES_ANY));
