/* kernels/attention/attention.h: the family's parts: shape functions for op.c, kernels for ref.c, and the
 * dims that both read.
 *
 * B batch, Hq and Hk heads of queries and of keys (Hq a multiple of Hk), L queries, S new keys, P past keys,
 * T = P + S all keys, D and Dv elements of a head in queries and keys, and in values.
 */
#ifndef ORTC_KERNELS_ATTENTION_H
#define ORTC_KERNELS_ATTENTION_H

#include "kernels/common/shape.h"

/* What a cache may hold. No strings: their tensors are blocks, which are not written into. */
#define ORTC_TYPES_CACHED \
    (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_C64) | ORTC_TYPE(ORTC_C128) | \
     ORTC_TYPE(ORTC_F8E4M3FN) | ORTC_TYPE(ORTC_F8E4M3FNUZ) | ORTC_TYPE(ORTC_F8E5M2) | \
     ORTC_TYPE(ORTC_F8E5M2FNUZ) | ORTC_TYPE(ORTC_U4) | ORTC_TYPE(ORTC_I4) | ORTC_TYPE(ORTC_F4E2M1) | \
     ORTC_TYPE(ORTC_F8E8M0))

enum {
    ORTC_ATTN_Q,
    ORTC_ATTN_K,
    ORTC_ATTN_V,
    ORTC_ATTN_MASK,
    ORTC_ATTN_PAST_K,
    ORTC_ATTN_PAST_V,
    ORTC_ATTN_NONPAD
};

ortc_status ortc_lift_flex_attention(ortc_lift *); /* op_flex.c */
/* op_cache.c */
ortc_status ortc_infer_tensor_scatter(ortc_infer *);
ortc_status ortc_infer_linear_attention(ortc_infer *);
ortc_status ortc_infer_causal_conv(ortc_infer *);

extern const ortc_kernel ortc_ref_attention;        /* ref_attention.c */
extern const ortc_kernel ortc_ref_rotary;           /* ref_rotary.c */
extern const ortc_kernel ortc_ref_tensor_scatter;   /* scatter.c */
extern const ortc_kernel ortc_cpu_tensor_scatter;   /* scatter.c */
extern const ortc_kernel ortc_ref_linear_attention; /* ref_linear.c */
extern const ortc_kernel ortc_ref_causal_conv;      /* ref_linear.c */
extern const ortc_kernel ortc_cpu_attention;        /* cpu_attention.c */
extern const ortc_kernel ortc_cpu_rotary;           /* cpu_rotary.c */
extern const ortc_kernel ortc_cpu_linear_attention; /* cpu_linear.c */
extern const ortc_kernel ortc_cpu_causal_conv;      /* cpu_linear.c */

#endif
