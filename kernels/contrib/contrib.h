/* kernels/contrib/contrib.h: the liftings of com.microsoft's operators, and what they share. */
#ifndef ORTC_KERNELS_CONTRIB_H
#define ORTC_KERNELS_CONTRIB_H

#include <stdio.h>
#include <stdlib.h>

#include "kernels/common/shape.h"

static inline bool ortc_given(ortc_lift *l, const char *name) { return ortc_lift_look(l, name).type != NULL; }
static inline bool ortc_wanted(ortc_lift *l, uint32_t out)
{
    return ortc_node_out(ortc_lift_node(l), out).type != NULL || ortc_node_out(ortc_lift_node(l), out).edge;
}
static inline int64_t ortc_lift_int(ortc_lift *l, const char *name, int64_t otherwise)
{
    return ortc_node_int(ortc_lift_node(l), name, otherwise);
}

/* op_fused.c */
ortc_status ortc_contrib_fused_matmul(ortc_lift *);
ortc_status ortc_contrib_fused_gemm(ortc_lift *);
ortc_status ortc_contrib_fused_conv(ortc_lift *);
ortc_status ortc_contrib_nhwc_conv(ortc_lift *);
ortc_status ortc_contrib_nhwc_max_pool(ortc_lift *);
ortc_status ortc_contrib_gelu(ortc_lift *);
ortc_status ortc_contrib_bias_gelu(ortc_lift *);
ortc_status ortc_contrib_fast_gelu(ortc_lift *);
ortc_status ortc_contrib_quick_gelu(ortc_lift *);
ortc_status ortc_contrib_bias_split_gelu(ortc_lift *);
ortc_status ortc_contrib_bias_add(ortc_lift *);
ortc_status ortc_contrib_cdist(ortc_lift *);
ortc_status ortc_contrib_expand_dims(ortc_lift *);
ortc_status ortc_contrib_range(ortc_lift *);
ortc_status ortc_contrib_trilu(ortc_lift *);
ortc_status ortc_contrib_pad(ortc_lift *);
ortc_status ortc_contrib_grid_sample(ortc_lift *);
ortc_status ortc_contrib_unique(ortc_lift *);
ortc_status ortc_contrib_gather_nd(ortc_lift *);
/* op_norm.c */
ortc_status ortc_contrib_simplified_layer_norm(ortc_lift *);
ortc_status ortc_contrib_skip_layer_norm(ortc_lift *);
ortc_status ortc_contrib_skip_simplified_layer_norm(ortc_lift *);
ortc_status ortc_contrib_embed_layer_norm(ortc_lift *);
ortc_status ortc_contrib_group_norm(ortc_lift *);
ortc_status ortc_contrib_skip_group_norm(ortc_lift *);
ortc_status ortc_contrib_qembed_layer_norm(ortc_lift *);
/* op_attention.c */
ortc_status ortc_contrib_rotary(ortc_lift *);
ortc_status ortc_contrib_attention(ortc_lift *);
ortc_status ortc_contrib_qattention(ortc_lift *);
ortc_status ortc_contrib_multi_head_attention(ortc_lift *);
ortc_status ortc_contrib_group_query_attention(ortc_lift *);
/* op_quantize.c */
ortc_status ortc_contrib_quantize(ortc_lift *);
ortc_status ortc_contrib_dequantize(ortc_lift *);
ortc_status ortc_contrib_qlinear_add(ortc_lift *);
ortc_status ortc_contrib_qlinear_mul(ortc_lift *);
ortc_status ortc_contrib_qlinear_concat(ortc_lift *);
ortc_status ortc_contrib_qlinear_where(ortc_lift *);
ortc_status ortc_contrib_qlinear_sigmoid(ortc_lift *);
ortc_status ortc_contrib_qlinear_leaky_relu(ortc_lift *);
ortc_status ortc_contrib_qlinear_softmax(ortc_lift *);
ortc_status ortc_contrib_qlinear_average_pool(ortc_lift *);
ortc_status ortc_contrib_qlinear_global_average_pool(ortc_lift *);
ortc_status ortc_contrib_dynamic_quantize_matmul(ortc_lift *);
ortc_status ortc_contrib_matmul_integer_to_float(ortc_lift *);
ortc_status ortc_contrib_qgemm(ortc_lift *);
ortc_status ortc_contrib_qlinear_conv(ortc_lift *);
ortc_status ortc_contrib_matmul_integer16(ortc_lift *);
/* op_weights.c */
ortc_status ortc_contrib_matmul_bnb4(ortc_lift *);
ortc_status ortc_contrib_infer_nbits(ortc_infer *);
ortc_status ortc_contrib_matmul_nbits(ortc_lift *);
ortc_status ortc_contrib_gather_block_quantized(ortc_lift *);

#endif
