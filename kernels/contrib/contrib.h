/* kernels/contrib/contrib.h: the liftings of com.microsoft's operators, and what they share. */
#ifndef ORTC_KERNELS_CONTRIB_H
#define ORTC_KERNELS_CONTRIB_H

#include <stdio.h>
#include <stdlib.h>

#include "kernels/common/shape.h"

/* lift.c */
bool ortc_given(ortc_lift *, const char *name);
bool ortc_wanted(ortc_lift *, uint32_t out);
int64_t ortc_lift_int(ortc_lift *, const char *name, int64_t otherwise);
ortc_port ortc_contrib_look(ortc_lift *, const char *name);
ORTC_PRINTF(2, 3) ortc_status ortc_contrib_write(ortc_lift *, const char *fmt, ...);
ORTC_PRINTF(3, 4) ortc_status ortc_contrib_fail(ortc_lift *, ortc_status, const char *fmt, ...);
#define ortc_lift_look ortc_contrib_look
#define ortc_lift_write ortc_contrib_write
#define ortc_lift_fail ortc_contrib_fail

/* op_blocked.c */
ortc_status ortc_contrib_blocked_conv(ortc_lift *);
ortc_status ortc_contrib_blocked_pool(ortc_lift *);
ortc_status ortc_contrib_blocked_upsample(ortc_lift *);
ortc_status ortc_contrib_reorder_input(ortc_lift *);
ortc_status ortc_contrib_reorder_output(ortc_lift *);
/* op_fused.c */
/* Y from `sum`. p: alpha, beta: bounds of a Clip, slopes of the others; n: how many were given */
ortc_status ortc_contrib_activate(ortc_lift *, const char *name, const float *p, size_t n);
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
ortc_status ortc_contrib_nhwc_fused_conv(ortc_lift *);
ortc_status ortc_contrib_fused_matmul_activation(ortc_lift *);
ortc_status ortc_contrib_gemm_fast_gelu(ortc_lift *);
ortc_status ortc_contrib_bias_dropout(ortc_lift *);
ortc_status ortc_contrib_bias_softmax(ortc_lift *);
ortc_status ortc_contrib_conv_transpose_pads(ortc_lift *);
/* op_math.c */
ortc_status ortc_contrib_complex_mul(ortc_lift *);
ortc_status ortc_contrib_rfft(ortc_lift *);
ortc_status ortc_contrib_irfft(ortc_lift *);
ortc_status ortc_contrib_ngram_repeat_block(ortc_lift *);
ortc_status ortc_contrib_is_all_finite(ortc_lift *);
ortc_status ortc_contrib_torch_embedding(ortc_lift *);
ortc_status ortc_contrib_scaled_silu(ortc_lift *);
ortc_status ortc_contrib_gated_add(ortc_lift *);
ortc_status ortc_contrib_linear_attention_gate(ortc_lift *);
ortc_status ortc_contrib_crop_and_resize(ortc_lift *);
ortc_status ortc_contrib_word_conv_embedding(ortc_lift *);
/* op_norm.c */
ortc_status ortc_contrib_simplified_layer_norm(ortc_lift *);
ortc_status ortc_contrib_skip_layer_norm(ortc_lift *);
ortc_status ortc_contrib_skip_simplified_layer_norm(ortc_lift *);
ortc_status ortc_contrib_embed_layer_norm(ortc_lift *);
ortc_status ortc_contrib_group_norm(ortc_lift *);
ortc_status ortc_contrib_skip_group_norm(ortc_lift *);
ortc_status ortc_contrib_qembed_layer_norm(ortc_lift *);
ortc_status ortc_contrib_gated_rms_norm(ortc_lift *);
ortc_status ortc_contrib_branchwise_rms_norm(ortc_lift *);
/* op_rotary.c */
ortc_status ortc_contrib_rotary(ortc_lift *);
ortc_status ortc_contrib_mrotary(ortc_lift *);
/* op_attention.c */
ortc_status ortc_contrib_attention(ortc_lift *);
ortc_status ortc_contrib_qattention(ortc_lift *);
/* op_multi_head.c */
ortc_status ortc_contrib_multi_head_attention(ortc_lift *);
ortc_status ortc_contrib_decoder_masked_attention(ortc_lift *);
/* op_group_query.c */
ortc_status ortc_contrib_group_query_attention(ortc_lift *);
/* op_sparse.c */
ortc_status ortc_contrib_sparse_attention(ortc_lift *);
/* op_linear.c */
ortc_status ortc_contrib_linear_attention(ortc_lift *);
ortc_status ortc_contrib_causal_conv(ortc_lift *);
/* op_bias.c */
ortc_status ortc_contrib_relative_position_bias(ortc_lift *);
ortc_status ortc_contrib_gated_position_bias(ortc_lift *);
ortc_status ortc_contrib_gemma_rotary(ortc_lift *);
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
ortc_status ortc_contrib_mul_integer(ortc_lift *);
ortc_status ortc_contrib_qlinear_reduce_mean(ortc_lift *);
ortc_status ortc_contrib_reduce_sum_integer(ortc_lift *);
ortc_status ortc_contrib_dynamic_quantize_lstm(ortc_lift *);
/* op_moe.c */
ortc_status ortc_contrib_infer_moe(ortc_infer *);
ortc_status ortc_contrib_infer_qmoe(ortc_infer *);
ortc_status ortc_contrib_moe(ortc_lift *);
ortc_status ortc_contrib_qmoe(ortc_lift *);
/* op_packed.c */
ortc_status ortc_contrib_packed_attention(ortc_lift *);
ortc_status ortc_contrib_packed_multi_head_attention(ortc_lift *);
ortc_status ortc_contrib_paged_attention(ortc_lift *);
ortc_status ortc_contrib_remove_padding(ortc_lift *);
ortc_status ortc_contrib_restore_padding(ortc_lift *);
/* op_weights.c */
/* `to` [rows, columns] from bytes `name`, of which each row takes whole ones; as the type that `like` has,
 * where it is not NULL. */
ortc_status ortc_contrib_unpack(ortc_lift *, const char *to, const char *name, int64_t bits, int64_t rows,
                                int64_t columns, const char *like);
/* `to` [rows, columns] of the type of `like`: the middle of the range of `bits`. */
ortc_status ortc_contrib_middle(ortc_lift *, const char *to, const char *like, int64_t bits, int64_t rows,
                                int64_t columns);
ortc_status ortc_contrib_matmul_bnb4(ortc_lift *);
ortc_status ortc_contrib_matmul_fpq4(ortc_lift *);
ortc_status ortc_contrib_infer_nbits(ortc_infer *);
ortc_status ortc_contrib_matmul_nbits(ortc_lift *);
ortc_status ortc_contrib_gather_block_quantized(ortc_lift *);

#endif
