/* kernels/attention/ref.c: the table of the family's kernels on ref. */
#include "kernels/attention/attention.h"

#define THREE (ORTC_TYPE(ORTC_F16) | ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_BF16))
#define I64 ORTC_TYPE(ORTC_I64)
/* No strings: their tensors are blocks, which are not written into. */
#define CACHED \
    (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_C64) | ORTC_TYPE(ORTC_C128) | \
     ORTC_TYPE(ORTC_F8E4M3FN) | ORTC_TYPE(ORTC_F8E4M3FNUZ) | ORTC_TYPE(ORTC_F8E5M2) | \
     ORTC_TYPE(ORTC_F8E5M2FNUZ) | ORTC_TYPE(ORTC_U4) | ORTC_TYPE(ORTC_I4) | ORTC_TYPE(ORTC_F4E2M1) | \
     ORTC_TYPE(ORTC_F8E8M0))

ORTC_KERNELS(ref, attention,
             ORTC_KERNEL("Attention", 23, ORTC_NEWEST,
                         (ORTC_TYPES_FLOAT, ORTC_TYPES_FLOAT, ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL), I64),
                         &ortc_ref_attention),
             ORTC_KERNEL("RotaryEmbedding", 23, ORTC_NEWEST, (THREE, I64), &ortc_ref_rotary),
             ORTC_KERNEL("TensorScatter", 24, ORTC_NEWEST, (CACHED | ORTC_TYPE(ORTC_STRING), I64),
                         &ortc_ref_tensor_scatter),
             ORTC_KERNEL("LinearAttention", 27, ORTC_NEWEST, (THREE, THREE), &ortc_ref_linear_attention),
             ORTC_KERNEL("CausalConvWithState", 27, ORTC_NEWEST, (THREE), &ortc_ref_causal_conv));
