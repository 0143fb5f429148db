/* kernels/contrib/op.c: operators of com.microsoft that onnxruntime's optimiser, its quantiser and the GenAI
 * builder write: their schemas. Each is composed of the standard's operators, whose kernels it then has.
 *
 * SimplifiedLayerNormalization stands in the standard's domain in such files, which does not know it.
 */
#include "kernels/contrib/contrib.h"

#define MS(name, inputs, outputs, attributes, types, lift) \
    ORTC_COMPOSED("com.microsoft", name, 1, "", inputs, outputs, attributes, types, lift)
#define BLOCKED(name, inputs, attributes, lift) \
    ORTC_COMPOSED("com.microsoft.nchwc", name, 1, "", inputs, "Y:T", attributes, "T=f16,f32", lift)
#define F3 "f16,f32,bf16"
#define Q8 "T=i8,u8"
#define WINDOW "auto_pad:s=NOTSET dilations:is? group:i=1 kernel_shape:is? pads:is? strides:is?"
#define POOL "auto_pad:s=NOTSET ceil_mode:i=0 kernel_shape:is! pads:is? strides:is?"

#define EXPERTS \
    "activation_alpha:f=1 activation_beta:f=0 activation_type:s=relu k:i=1 normalize_routing_weights:i=0 " \
    "swiglu_fusion:i=0 " \
    "swiglu_limit:f? use_sparse_mixer:i=0"

extern const ortc_kernel_table ortc_kernels_cpu_nbits, ortc_kernels_cpu_experts;

static const ortc_op ops[] = {
    /* op_fused.c */
    MS("FusedMatMul", "A:T B:T", "Y:T", "alpha:f=1 transA:i=0 transB:i=0 transBatchA:i=0 transBatchB:i=0",
       "T=float", ortc_contrib_fused_matmul),
    MS("TransposeMatMul", "A:T B:T", "Y:T", "alpha:f=1 transA:i=0 transB:i=0", "T=float",
       ortc_contrib_fused_matmul),
    MS("FusedGemm", "A:T B:T C:T?", "Y:T",
       "activation:s? activation_alpha:f? activation_beta:f? activation_gamma:f? alpha:f=1 beta:f=1 "
       "transA:i=0 "
       "transB:i=0",
       "T=float,i32,i64,u32,u64", ortc_contrib_fused_gemm),
    MS("FusedConv", "X:T W:T B:T? Z:T?", "Y:T", "activation:s? activation_params:fs? " WINDOW,
       "T=f16,f32,f64", ortc_contrib_fused_conv),
    MS("NhwcConv", "X:T W:T B:T?", "Y:T", WINDOW, "T=f16,f32,f64", ortc_contrib_nhwc_conv),
    MS("NhwcMaxPool", "x:T", "y:T", POOL " dilations:is?", Q8, ortc_contrib_nhwc_max_pool),
    MS("Gelu", "X:T", "Y:T", "", "T=float", ortc_contrib_gelu),
    MS("BiasGelu", "A:T B:T", "C:T", "", "T=float", ortc_contrib_bias_gelu),
    MS("FastGelu", "X:T bias:T?", "Y:T", "", "T=float", ortc_contrib_fast_gelu),
    MS("QuickGelu", "X:T", "Y:T", "alpha:f=1.702", "T=float", ortc_contrib_quick_gelu),
    MS("BiasSplitGelu", "X:T bias:T", "Y:T", "", "T=f16,f32", ortc_contrib_bias_split_gelu),
    MS("BiasAdd", "X:T bias:T skip:T", "Y:T", "", "T=f16,f32", ortc_contrib_bias_add),
    MS("CDist", "A:T B:T", "C:T", "metric:s=sqeuclidean", "T=f32,f64", ortc_contrib_cdist),
    MS("ExpandDims", "X:T axis:i32", "Y:T", "", "T=num,string,bool,c64,c128", ortc_contrib_expand_dims),
    MS("Range", "start:T limit:T delta:T?", "Y:T", "", "T=f32,f64,i16,i32,i64", ortc_contrib_range),
    MS("Trilu", "X:T k:i64?", "Y:T", "upper:i=1", "T=num,bool", ortc_contrib_trilu),
    MS("Pad", "data:T pads:i64 value:T?", "output:T", "mode:s=constant", "T=f16,f32,f64", ortc_contrib_pad),
    MS("GridSample", "X:T Grid:T", "Y:T", "align_corners:i=0 mode:s=bilinear padding_mode:s=zeros",
       "T=f16,f32,f64", ortc_contrib_grid_sample),
    MS("Unique", "x:T", "y:T idx:i64 counts:i64", "", "T=num,string,bool", ortc_contrib_unique),
    MS("GatherND", "data:T indices:I", "output:T", "", "T=num,string,bool,c64,c128 I=i32,i64",
       ortc_contrib_gather_nd),
    MS("NhwcFusedConv", "X:T W:T B:T? Z:T?", "Y:T", "activation:s? activation_params:fs? " WINDOW,
       "T=f16,f32", ortc_contrib_nhwc_fused_conv),
    MS("FusedMatMulActivation", "A:T B:T", "Y:T",
       "activation:s! activation_alpha:f? activation_axis:i? activation_beta:f? activation_gamma:f? "
       "alpha:f=1 transA:i=0 "
       "transB:i=0 transBatchA:i=0 transBatchB:i=0",
       "T=float", ortc_contrib_fused_matmul_activation),
    MS("GemmFastGelu", "X:T W:T bias:T?", "Y:T", "", "T=" F3, ortc_contrib_gemm_fast_gelu),
    MS("BiasDropout", "data:T bias:T residual:T? ratio:T1? training_mode:T2?", "output:T mask:T2?", "seed:i?",
       "T=float T1=float T2=bool", ortc_contrib_bias_dropout),
    MS("BiasSoftmax", "data:T bias:T", "output:T", "axis:i=1 is_inner_broadcast:i!", "T=f16,f32,f64",
       ortc_contrib_bias_softmax),
    MS("ConvTransposeWithDynamicPads", "X:T W:T Pads:i64? B:T?", "Y:T",
       "auto_pad:s=NOTSET dilations:is? group:i=1 kernel_shape:is? output_padding:is? strides:is?",
       "T=f16,f32,f64", ortc_contrib_conv_transpose_pads),
    /* op_math.c */
    MS("ComplexMul", "A:T B:T", "C:T", "", "T=f16,f32,f64", ortc_contrib_complex_mul),
    MS("ComplexMulConj", "A:T B:T", "C:T", "", "T=f16,f32,f64", ortc_contrib_complex_mul),
    MS("Rfft", "X:T", "Y:T", "normalized:i=0 onesided:i=1 signal_ndim:i=1", "T=f16,f32,f64",
       ortc_contrib_rfft),
    MS("Irfft", "X:T", "Y:T", "normalized:i=0 onesided:i=1 signal_ndim:i!", "T=f16,f32,f64",
       ortc_contrib_irfft),
    MS("IsAllFinite", "input:V+", "output:T", "isinf_only:i=0 isnan_only:i=0", "V=float T=bool",
       ortc_contrib_is_all_finite),
    MS("NGramRepeatBlock", "input_ids:I scores:T", "scores_out:T", "ngram_size:i!", "I=i64 T=f32",
       ortc_contrib_ngram_repeat_block),
    MS("TorchEmbedding", "weight:T indices:i64 padding_idx:i64? scale_grad_by_freq:bool?", "Y:T", "", "T=num",
       ortc_contrib_torch_embedding),
    MS("ScaledSiLU", "X:T scale:M?", "Y:T", "alpha:f=1", "T=" F3 " M=" F3, ortc_contrib_scaled_silu),
    MS("GatedAdd", "X:T Y:T gate:T", "output:T", "", "T=" F3, ortc_contrib_gated_add),
    MS("LinearAttentionGate", "a:T dt_bias:F decay_scale:F b:T?", "decay:T beta:T?", "", "T=" F3 " F=f32",
       ortc_contrib_linear_attention_gate),
    MS("CropAndResize", "X:T1 rois:T1 batch_indices:T2 crop_size:T2!", "Y:T1",
       "extrapolation_value:f=0 mode:s=bilinear", "T1=f16,f32,f64 T2=i32", ortc_contrib_crop_and_resize),
    MS("WordConvEmbedding", "Sequence:T W:T1 B:T1 C:T1", "Y:T1",
       "char_embedding_size:i? conv_window_size:i? embedding_size:i?", "T=i32 T1=f32",
       ortc_contrib_word_conv_embedding),
    /* op_norm.c */
    MS("GatedRMSNorm", "X:T scale:T gate:T", "Y:T", "activation:s=silu epsilon:f=1e-5", "T=" F3,
       ortc_contrib_gated_rms_norm),
    MS("BranchwiseRMSNorm", "X:T scale:M?", "Y:T", "epsilon:f=1e-5 num_branches:i=0", "T=" F3 " M=" F3,
       ortc_contrib_branchwise_rms_norm),
    ORTC_COMPOSED("", "SimplifiedLayerNormalization", 1, "", "X:T scale:V", "Y:V inv_std_var:U?",
                  "axis:i=-1 epsilon:f=1e-5 stash_type:i=1", "T=float V=float U=f32,f64",
                  ortc_contrib_simplified_layer_norm),
    MS("SimplifiedLayerNormalization", "X:T scale:V", "Y:V inv_std_var:U?",
       "axis:i=-1 epsilon:f=1e-5 stash_type:i=1", "T=float V=float U=f32,f64",
       ortc_contrib_simplified_layer_norm),
    MS("SkipLayerNormalization", "input:T skip:T gamma:T beta:T? bias:T?",
       "output:T mean:U? inv_std_var:U? input_skip_bias_sum:T?", "epsilon:f=1e-12", "T=" F3 " U=f32",
       ortc_contrib_skip_layer_norm),
    MS("SkipSimplifiedLayerNormalization", "input:T skip:T gamma:T bias:T?",
       "output:T mean:U? inv_std_var:U? input_skip_bias_sum:T?", "epsilon:f=1e-12", "T=" F3 " U=f32",
       ortc_contrib_skip_simplified_layer_norm),
    MS("EmbedLayerNormalization",
       "input_ids:T1 segment_ids:T1? word_embedding:T position_embedding:T segment_embedding:T? gamma:T "
       "beta:T "
       "mask:T1? position_ids:T1?",
       "output:T mask_index:T1? embedding_sum:T?", "epsilon:f=1e-12 mask_index_type:i?", "T1=i32 T=f16,f32",
       ortc_contrib_embed_layer_norm),
    MS("QEmbedLayerNormalization",
       "input_ids:T1 segment_ids:T1? word_embedding_quant:T2 position_embedding_quant:T2 "
       "segment_embedding:T2? "
       "gamma_quant:T2 beta_quant:T2 mask:T1? word_embedding_scale:T position_embedding_scale:T "
       "segment_embedding_scale:T? gamma_scale:T beta_scale:T word_embedding_zero_point:T2 "
       "position_embedding_zero_point:T2 segment_embedding_zero_point:T2? gamma_zero_point:T2 "
       "beta_zero_point:T2",
       "layernorm_out:T mask_index_out:T1?", "epsilon:f=1e-12", "T1=i32 T2=i8,u8 T=f32",
       ortc_contrib_qembed_layer_norm),
    MS("GroupNorm", "X:T gamma:M beta:M", "Y:T", "activation:i! channels_last:i=1 epsilon:f=1e-5 groups:i!",
       "T=f16,f32 M=f16,f32", ortc_contrib_group_norm),
    MS("SkipGroupNorm", "X:T gamma:M beta:M skip:T bias:T?", "Y:T S:T?",
       "activation:i! channels_last:i=1 epsilon:f=1e-5 groups:i!", "T=f16,f32 M=f16,f32",
       ortc_contrib_skip_group_norm),
    MS("RotaryEmbedding", "input:T position_ids:M cos_cache:T sin_cache:T", "output:T",
       "interleaved:i=0 is_packed_batching:i=0 num_heads:i=0 rotary_embedding_dim:i=0 scale:f=1",
       "T=" F3 " M=i64", ortc_contrib_rotary),
    MS("MRotaryEmbedding", "input:T position_ids:M cos_cache:T sin_cache:T", "output:T",
       "interleaved:i=0 is_packed_batching:i=0 mrope_layout:i=0 mrope_section:is! num_heads:i=0 "
       "rotary_embedding_dim:i=0 scale:f=1",
       "T=" F3 " M=i64", ortc_contrib_mrotary),
    MS("Attention",
       "input:T weights:T bias:T? mask_index:M? past:T? attention_bias:T? past_sequence_length:M?",
       "output:T present:T?",
       "do_rotary:i=0 mask_filter_value:f=-10000 num_heads:i! past_present_share_buffer:i=0 "
       "qkv_hidden_sizes:is? "
       "rotary_embedding_dim:i=0 scale:f? unidirectional:i=0",
       "T=" F3 " M=i32", ortc_contrib_attention),
    MS("QAttention",
       "input:T1 weight:T2 bias:T3 input_scale:T3 weight_scale:T3 mask_index:T4? input_zero_point:T1? "
       "weight_zero_point:T2? past:T3?",
       "output:T3 present:T3?",
       "do_rotary:i=0 mask_filter_value:f=-10000 num_heads:i! past_present_share_buffer:i=0 scale:f? "
       "unidirectional:i=0",
       "T1=i8,u8 T2=i8,u8 T3=f32,f16 T4=i32", ortc_contrib_qattention),
    MS("MultiHeadAttention",
       "query:T key:T? value:T? bias:T? key_padding_mask:M? attention_bias:T? past_key:T? past_value:T? "
       "past_sequence_length:M? cache_indirection:M?",
       "output:T present_key:T? present_value:T? qk:T?",
       "mask_filter_value:f=-10000 num_heads:i! scale:f? unidirectional:i=0", "T=" F3 " M=i32",
       ortc_contrib_multi_head_attention),
    MS("GroupQueryAttention",
       "query:T key:T? value:T? past_key:C? past_value:C? seqlens_k:M total_sequence_length:M cos_cache:T? "
       "sin_cache:T? position_ids:i64? attention_bias:T? head_sink:T? k_scale:f32? v_scale:f32? "
       "q_norm_weight:T? "
       "k_norm_weight:T?",
       "output:T present_key:C? present_value:C? output_qk:T?",
       "causal:i=1 do_rotary:i=0 k_quant_type:s=NONE kv_cache_bit_width:i? kv_num_heads:i! "
       "local_window_size:i=-1 "
       "num_heads:i! qk_norm_epsilon:f=1e-6 qk_output:i=0 rotary_interleaved:i=0 scale:f? "
       "sliding_window_cache:i=0 "
       "smooth_softmax:i=-1 softcap:f=0 v_quant_type:s=NONE",
       "T=" F3 " C=" F3 ",i8,u8,f8e4m3fn M=i32", ortc_contrib_group_query_attention),
    MS("SparseAttention",
       "query:T key:T? value:T? past_key:T past_value:T block_row_indices:M block_col_indices:M "
       "total_sequence_length:M key_total_sequence_lengths:M cos_cache:T? sin_cache:T?",
       "output:T present_key:T present_value:T",
       "do_rotary:i=0 kv_num_heads:i! num_heads:i! rotary_interleaved:i=0 scale:f? sparse_block_size:i!",
       "T=" F3 " M=i32", ortc_contrib_sparse_attention),
    MS("DecoderMaskedMultiHeadAttention",
       "query:T key:T? value:T? mask_index:M? attention_bias:T? past_key:T? past_value:T? "
       "past_sequence_length:M? "
       "beam_width:M? cache_indirection:M? bias:T?",
       "output:T present_key:T? present_value:T? qk:Q?",
       "mask_filter_value:f=-10000 num_heads:i! output_qk:i=0 past_present_share_buffer:i=0 scale:f?",
       "T=f16,f32 Q=f16,f32 M=i32", ortc_contrib_decoder_masked_attention),
    MS("LinearAttention", "query:T key:T value:T past_state:S? decay:T? beta:T?", "output:T present_state:S?",
       "chunk_size:i=64 kv_num_heads:i! q_num_heads:i! scale:f=0 state_window:i=0 update_rule:s=gated_delta",
       "T=" F3 " S=" F3, ortc_contrib_linear_attention),
    MS("CausalConvWithState", "input:T weight:T bias:T? past_state:T?", "output:T present_state:T?",
       "activation:s=none channels_last:i=0 dilation:i=1 ndim:i=1 state_window:i=0", "T=" F3,
       ortc_contrib_causal_conv),
    /* op_packed.c */
    MS("PackedAttention",
       "input:T weights:T bias:T token_offset:M cumulative_sequence_length:M attention_bias:T?", "output:T",
       "num_heads:i! qkv_hidden_sizes:is? scale:f?", "T=f16,f32 M=i32", ortc_contrib_packed_attention),
    MS("PackedMultiHeadAttention",
       "query:T key:T? value:T? bias:T? token_offset:M cumulative_sequence_length:M attention_bias:T?",
       "output:T", "mask_filter_value:f=-10000 num_heads:i! scale:f?", "T=f16,f32 M=i32",
       ortc_contrib_packed_multi_head_attention),
    MS("PagedAttention",
       "query:T key:T? value:T? key_cache:C value_cache:C? cumulative_sequence_length:S past_seqlens:S "
       "block_table:S cos_cache:T? "
       "sin_cache:T? slot_mapping:S? head_sink:T? q_norm_weight:T? k_norm_weight:T? k_scale:f32? "
       "v_scale:f32? attention_metadata:S?",
       "output:T key_cache_out:C? value_cache_out:C?",
       "do_rotary:i=0 is_causal:i=1 k_cache_dtype:s? k_quant_type:s=NONE kv_cache_layout:s=SEPARATE "
       "kv_num_heads:i! "
       "local_window_size:i=-1 num_heads:i! qk_norm_epsilon:f=1e-6 rotary_interleaved:i=0 rotary_offset:i=0 "
       "scale:f? softcap:f=0 "
       "v_cache_dtype:s? v_head_size:i? v_quant_type:s=NONE",
       "T=" F3 " C=" F3 ",i8,u8,f8e4m3fn S=i32", ortc_contrib_paged_attention),
    MS("RemovePadding", "input:T sequence_token_count:M",
       "output:T token_offset:M cumulated_seq_len:M max_seq_len:M", "", "T=f16,f32 M=i32",
       ortc_contrib_remove_padding),
    MS("RestorePadding", "input:T token_offset:M", "output:T", "", "T=f16,f32 M=i32",
       ortc_contrib_restore_padding),
    /* op_bias.c */
    MS("RelativePositionBias", "bias_table:T query_length:U key_length:U", "output:T",
       "is_bidirectional:i=0 max_distance:i!", "T=f16,f32 U=i64", ortc_contrib_relative_position_bias),
    MS("GatedRelativePositionBias",
       "query_layer:T query_bias:T rel_pos:T weight:T bias:T eco_a:T token_offset:M?", "output:T",
       "num_heads:i!", "T=f16,f32 M=i32", ortc_contrib_gated_position_bias),
    MS("GemmaRotaryEmbedding", "emb:U q:T q_rot:T k:T k_rot:T", "output1:T output2:T", "", "T=f16 U=f32",
       ortc_contrib_gemma_rotary),
    /* op_moe.c */
    ORTC_OP("com.microsoft", "MoE", 1, 1, "",
            "input:T router_probs:T fc1_experts_weights:T fc1_experts_bias:T? fc2_experts_weights:T "
            "fc2_experts_bias:T? fc3_experts_weights:T? fc3_experts_bias:T?",
            "output:T", EXPERTS, "T=" F3, ortc_contrib_infer_moe, ortc_contrib_moe,
            ORTC_OP_COMPOSED | ORTC_OP_HEAVY),
    ORTC_OP(
        "com.microsoft", "QMoE", 1, 1, "",
        "input:T router_probs:T fc1_experts_weights:W fc1_scales:S? fc1_experts_bias:T? "
        "fc2_experts_weights:W "
        "fc2_scales:S? "
        "fc2_experts_bias:T? fc3_experts_weights:W? fc3_scales:S? fc3_experts_bias:T? fc1_zero_points:W? "
        "fc2_zero_points:W? "
        "fc3_zero_points:W? router_weights:T? fc1_global_scale:f32? fc2_global_scale:f32? fc1_act_scale:f32? "
        "fc2_act_scale:f32? "
        "fc1_act_block_scale:S? fc2_act_block_scale:S?",
        "output:T",
        EXPERTS " accuracy_level:i=0 block_size:i? expert_weight_bits:i=4 fc1_expert_weight_bits:i? "
                "fc2_expert_weight_bits:i? "
                "fc3_expert_weight_bits:i? quant_type:s=int weights_prepacked:i=-1",
        "T=" F3 " W=u8,f8e4m3fn S=" F3 ",f8e8m0,f8e4m3fn", ortc_contrib_infer_qmoe, ortc_contrib_qmoe,
        ORTC_OP_COMPOSED | ORTC_OP_HEAVY),
    /* op_quantize.c */
    MS("QuantizeLinear", "x:T1 y_scale:T1 y_zero_point:T2?", "y:T2", "axis:i?",
       "T1=f16,f32 T2=i8,u8,i16,u16,i4,u4", ortc_contrib_quantize),
    MS("DequantizeLinear", "x:T1 x_scale:T2 x_zero_point:T1?", "y:T2", "axis:i?",
       "T1=i8,u8,i16,u16,i32,i4,u4 T2=f16,f32", ortc_contrib_dequantize),
    MS("QLinearAdd",
       "A:T A_scale:f32 A_zero_point:T? B:T B_scale:f32 B_zero_point:T? C_scale:f32 C_zero_point:T?", "C:T",
       "", Q8, ortc_contrib_qlinear_add),
    MS("QLinearMul",
       "A:T A_scale:f32 A_zero_point:T? B:T B_scale:f32 B_zero_point:T? C_scale:f32 C_zero_point:T?", "C:T",
       "", Q8, ortc_contrib_qlinear_mul),
    MS("QLinearConcat", "Y_scale:f32 Y_zero_point:T inputs:V+~", "Y:T", "axis:i!", Q8 " V=i8,u8,f32",
       ortc_contrib_qlinear_concat),
    MS("QLinearWhere",
       "condition:bool X:T x_scale:f32 x_zero_point:T Y:T y_scale:f32 y_zero_point:T z_scale:f32 "
       "z_zero_point:T",
       "Z:T", "", Q8, ortc_contrib_qlinear_where),
    MS("QLinearSigmoid", "X:T X_scale:f32 X_zero_point:T? Y_scale:f32 Y_zero_point:T?", "Y:T", "", Q8,
       ortc_contrib_qlinear_sigmoid),
    MS("QLinearLeakyRelu", "X:T X_scale:f32 X_zero_point:T? Y_scale:f32 Y_zero_point:T?", "Y:T",
       "alpha:f=0.01", Q8, ortc_contrib_qlinear_leaky_relu),
    MS("QLinearSoftmax", "X:T X_scale:f32 x_zero_point:T? y_scale:f32 y_zero_point:T", "Y:T",
       "axis:i=-1 opset:i!", Q8, ortc_contrib_qlinear_softmax),
    MS("QLinearAveragePool", "X:T x_scale:f32 x_zero_point:T? y_scale:f32 y_zero_point:T?", "Y:T",
       POOL " channels_last:i=0 count_include_pad:i=0", Q8, ortc_contrib_qlinear_average_pool),
    MS("QLinearGlobalAveragePool", "X:T x_scale:f32 x_zero_point:T y_scale:f32 y_zero_point:T", "Y:T",
       "channels_last:i=0", Q8, ortc_contrib_qlinear_global_average_pool),
    MS("DynamicQuantizeMatMul", "A:T1 B:T2 b_scale:T1 b_zero_point:T2? bias:T1?", "Y:T1", "",
       "T1=f32 T2=i8,u8", ortc_contrib_dynamic_quantize_matmul),
    MS("MatMulIntegerToFloat", "A:T1 B:T2 a_scale:T3 b_scale:T3 a_zero_point:T1? b_zero_point:T2? bias:T3?",
       "Y:T3", "", "T1=i8,u8 T2=i8,u8 T3=f32,f16", ortc_contrib_matmul_integer_to_float),
    MS("QGemm",
       "A:TA a_scale:f32 a_zero_point:TA B:TB b_scale:f32 b_zero_point:TB C:i32? y_scale:f32? "
       "y_zero_point:TYZ?",
       "Y:TY", "alpha:f=1 transA:i=0 transB:i=0", "TA=i8,u8 TB=i8,u8 TYZ=i8,u8 TY=f32,i8,u8",
       ortc_contrib_qgemm),
    MS("QLinearConv",
       "x:T1 x_scale:f32 x_zero_point:T1 w:T2 w_scale:f32 w_zero_point:T2 y_scale:f32 y_zero_point:T3 B:i32?",
       "y:T3", WINDOW " channels_last:i=0", "T1=i8,u8 T2=i8,u8 T3=i8,u8", ortc_contrib_qlinear_conv),
    MS("MatMulInteger16", "A:T1 B:T2", "Y:i32", "", "T1=i16,u16 T2=i16,u16", ortc_contrib_matmul_integer16),
    MS("MulInteger", "A:T A_zero_point:T? B:T B_zero_point:T?", "C:i32", "", Q8, ortc_contrib_mul_integer),
    MS("QLinearReduceMean",
       "data:T data_scale:f32 data_zero_point:T? reduced_scale:f32 reduced_zero_point:T?", "reduced:T",
       "axes:is! keepdims:i!", Q8, ortc_contrib_qlinear_reduce_mean),
    MS("ReduceSumInteger", "data:T1", "reduced:T2", "axes:is! keepdims:i!", "T1=i8,u8 T2=i32,u32",
       ortc_contrib_reduce_sum_integer),
    MS("DynamicQuantizeLSTM",
       "X:T W:T2 R:T2 B:T? sequence_lens:T1? initial_h:T? initial_c:T? P:T? W_scale:T W_zero_point:T2 "
       "R_scale:T "
       "R_zero_point:T2",
       "Y:T? Y_h:T? Y_c:T?",
       "activation_alpha:fs? activation_beta:fs? activations:ss? clip:f? direction:s=forward hidden_size:i? "
       "input_forget:i=0",
       "T=f32 T1=i32 T2=i8,u8", ortc_contrib_dynamic_quantize_lstm),
    /* op_weights.c */
    MS("MatMulBnb4", "A:T B:u8 absmax:T", "Y:T",
       "K:i! N:i! block_size:i! quant_type:i! training_mode:i=0 transB:i=1", "T=" F3,
       ortc_contrib_matmul_bnb4),
    MS("MatMulFpQ4", "A:f32 B:u8 B_shape:i64", "Y:f32", "blk_quant_type:i=1", "", ortc_contrib_matmul_fpq4),
    ORTC_OP("com.microsoft", "MatMulNBits", 1, 1, "",
            "A:T1 B:u8 scales:T1 zero_points:T3? g_idx:i32? bias:T1?", "Y:T1",
            "K:i! N:i! accuracy_level:i=0 bits:i=4 block_size:i! weight_prepacked:i=0", "T1=" F3 " T3=u8," F3,
            ortc_contrib_infer_nbits, ortc_contrib_matmul_nbits, ORTC_OP_COMPOSED | ORTC_OP_HEAVY),
    MS("GatherBlockQuantized", "data:T1 indices:I scales:T2 zero_points:T1?", "output:T2",
       "bits:i=4 block_size:i=128 gather_axis:i=0 quantize_axis:i=1", "T1=i4,u4,u8 T2=" F3 " I=i32,i64",
       ortc_contrib_gather_block_quantized),
    /* op_blocked.c */
    BLOCKED("Conv", "X:T W:T B:T? Sum:T?", "activation:s? activation_params:fs? " WINDOW,
            ortc_contrib_blocked_conv),
    BLOCKED("MaxPool", "X:T", POOL " dilations:is? storage_order:i=0", ortc_contrib_blocked_pool),
    BLOCKED("AveragePool", "X:T", POOL " count_include_pad:i=0 dilations:is?", ortc_contrib_blocked_pool),
    BLOCKED("GlobalMaxPool", "X:T", "", ortc_contrib_blocked_pool),
    BLOCKED("GlobalAveragePool", "X:T", "", ortc_contrib_blocked_pool),
    BLOCKED("Upsample", "X:T", "coordinate_transformation_mode:s=half_pixel mode:s=nearest scales:is!",
            ortc_contrib_blocked_upsample),
    BLOCKED("ReorderInput", "X:T", "channels_last:i=0", ortc_contrib_reorder_input),
    BLOCKED("ReorderOutput", "X:T", "channels:i=0 channels_last:i=0", ortc_contrib_reorder_output),
};
ORTC_FAMILY(contrib, ops, &ortc_kernels_cpu_nbits, &ortc_kernels_cpu_experts); /* kernels/gemm */
