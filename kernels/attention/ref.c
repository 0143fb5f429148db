/* kernels/attention/ref.c: the table of the family's kernels on ref. */
#include "kernels/attention/attention.h"

#define THREE (ORTC_TYPE(ORTC_F16) | ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_BF16))
#define I64 ORTC_TYPE(ORTC_I64)

ORTC_KERNELS(ref, attention,
             ORTC_KERNEL("Attention", 23, ORTC_NEWEST,
                         (ORTC_TYPES_FLOAT, ORTC_TYPES_FLOAT, ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL), I64),
                         &ortc_ref_attention),
             ORTC_KERNEL("RotaryEmbedding", 23, ORTC_NEWEST, (THREE, I64), &ortc_ref_rotary),
             ORTC_KERNEL("TensorScatter", 24, ORTC_NEWEST, (ORTC_TYPES_CACHED | ORTC_TYPE(ORTC_STRING), I64),
                         &ortc_ref_tensor_scatter),
             ORTC_KERNEL("LinearAttention", 27, ORTC_NEWEST, (THREE, THREE), &ortc_ref_linear_attention),
             ORTC_KERNEL("CausalConvWithState", 27, ORTC_NEWEST, (THREE), &ortc_ref_causal_conv));
