/* kernels/attention/cpu.c: the table of the family's kernels on the cpu. */
#include "kernels/attention/attention.h"
#include "kernels/common/vector/convert.h"

#define I64 ORTC_TYPE(ORTC_I64)

ORTC_KERNELS(
    cpu, attention,
    ORTC_KERNEL("Attention", 23, ORTC_NEWEST,
                (ORTC_TYPES_BY_F32, ORTC_TYPES_BY_F32, ORTC_TYPES_BY_F32 | ORTC_TYPE(ORTC_BOOL), I64),
                &ortc_cpu_attention),
    ORTC_KERNEL("RotaryEmbedding", 23, ORTC_NEWEST, (ORTC_TYPES_BY_F32, I64), &ortc_cpu_rotary),
    ORTC_KERNEL("TensorScatter", 24, ORTC_NEWEST, (ORTC_TYPES_CACHED, I64), &ortc_cpu_tensor_scatter),
    ORTC_KERNEL("LinearAttention", 27, ORTC_NEWEST, (ORTC_TYPES_BY_F32, ORTC_TYPES_BY_F32),
                &ortc_cpu_linear_attention),
    ORTC_KERNEL("CausalConvWithState", 27, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &ortc_cpu_causal_conv));
