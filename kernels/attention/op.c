/* kernels/attention/op.c: what transformers are made of: schemas, and the shapes of Attention and
 * RotaryEmbedding.
 *
 *   Attention            softmax(q k' scale + mask) v, with heads, a cache of keys and values, causal and
 *                        window masks
 *   RotaryEmbedding      pairs of a head's elements are turned by an angle that grows with the position
 *   TensorScatter        an update written into a cache at an index of each sample
 *   LinearAttention      the recurrent relative of Attention, whose state does not grow
 *   CausalConvWithState  a depthwise convolution that looks back only, and keeps what it will look back at
 *
 * Queries, keys and values are [B, heads, length, D] or, with the attributes q_num_heads and kv_num_heads,
 * [B, length, heads * D]. Versions 23 and 24 of Attention lack inputs and attributes of 25, and mean the same
 * where they have them.
 */
#include "kernels/attention/attention.h"

extern const ortc_kernel_table ortc_kernels_ref_attention, ortc_kernels_cpu_attention;

typedef struct heads {
    ortc_dim batch, heads, length, size;
} heads;

/* What the dims of q, k or v mean; n_heads is the attribute, for 3D. */
static ortc_status read_heads(ortc_infer *c, uint32_t port, const char *name, int64_t n_heads, heads *out)
{
    const ortc_port p = ortc_infer_in(c, port);
    if (p.rank == 4) {
        *out = (heads){p.dims[0], p.dims[1], p.dims[2], p.dims[3]};
        return ORTC_OK;
    }
    if (n_heads < 1)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL,
                               "%s has 3 dims: the attributes q_num_heads and kv_num_heads must say how "
                               "many heads the last one holds",
                               name);
    if (p.dims[2] >= 0 && p.dims[2] % n_heads != 0)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "%s has %lld elements in its last dim, which are not %lld equal heads", name,
                               (long long)p.dims[2], (long long)n_heads);
    *out = (heads){p.dims[0], n_heads, p.dims[1], ortc_dim_div(c, p.dims[2], n_heads)};
    return ORTC_OK;
}

/* The cache before this run: past [B, Hk, P, size]; *length gets P, 0 without one. */
static ortc_status read_past(ortc_infer *c, uint32_t port, const char *name, const heads *now,
                             ortc_dim *length)
{
    const ortc_port p = ortc_infer_in(c, port);
    ortc_dim same;
    *length = 0;
    if (!p.type) return ORTC_OK;
    *length = ORTC_DIM_UNKNOWN;
    if (p.rank < 0) return ORTC_OK;
    if (p.rank != 4)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "%s has rank %d, expected [batch, heads, length, size]", name, p.rank);
    ORTC_TRY(ortc_infer_same(c, "batch of the past and of this run", p.dims[0], now->batch, &same));
    ORTC_TRY(ortc_infer_same(c, "heads of the past and of this run", p.dims[1], now->heads, &same));
    ORTC_TRY(
        ortc_infer_same(c, "elements of a head in the past and in this run", p.dims[3], now->size, &same));
    *length = p.dims[2];
    return ORTC_OK;
}

/* The mask is stretched to [B, Hq, L, T]; its last dim may be shorter, the rest is masked. */
static ortc_status check_mask(ortc_infer *c, const ortc_dim *full)
{
    const ortc_port m = ortc_infer_in(c, ORTC_ATTN_MASK);
    if (m.rank > 4 || m.rank == 0)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "attn_mask has rank %d, expected 1 to 4", m.rank);
    for (int32_t d = 0; d < m.rank; d++) {
        const ortc_dim have = m.dims[d], want = full[4 - m.rank + d];
        if (have < 0 || want < 0 || have == want || (d == m.rank - 1 ? have < want : have == 1)) continue;
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "attn_mask has %lld elements in dim %d, the scores have %lld", (long long)have,
                               d, (long long)want);
    }
    return ORTC_OK;
}

static ortc_status check_attributes(ortc_infer *c, const ortc_node *n)
{
    const int64_t mode = ortc_node_int(n, "qk_matmul_output_mode", 0),
                  precision = ortc_node_int(n, "softmax_precision", ORTC_F32);
    if (mode < 0 || mode > 3)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "qk_matmul_output_mode is %lld, expected 0 to 3",
                               (long long)mode);
    if (precision != ORTC_F32 && precision != ORTC_F16 && precision != ORTC_F64 && precision != ORTC_BF16)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "softmax_precision is %lld, expected 1, 10, 11 or 16",
                               (long long)precision);
    if (ortc_node_int(n, "left_window_size", -1) < -1 || ortc_node_int(n, "right_window_size", -1) < -1)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "a window's size is below -1");
    return ORTC_OK;
}

static ortc_status infer_attention(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ortc_port q = ortc_infer_in(c, ORTC_ATTN_Q), k = ortc_infer_in(c, ORTC_ATTN_K),
                    v = ortc_infer_in(c, ORTC_ATTN_V);
    const ortc_port past_k = ortc_infer_in(c, ORTC_ATTN_PAST_K), past_v = ortc_infer_in(c, ORTC_ATTN_PAST_V);
    const ortc_port nonpad = ortc_infer_in(c, ORTC_ATTN_NONPAD);
    const int64_t q_heads = ortc_node_int(n, "q_num_heads", 0),
                  kv_heads = ortc_node_int(n, "kv_num_heads", 0);
    heads hq, hk, hv;
    ortc_dim past, past_values, total, same;

    ORTC_TRY(check_attributes(c, n));
    if (!past_k.type != !past_v.type)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "past_key and past_value come together");
    if (past_k.type && nonpad.type)
        return ortc_infer_fail(
            c, ORTC_INVALID_MODEL,
            "nonpad_kv_seqlen is for a cache outside of the operator, past_key for one inside");
    if (q.rank < 0 || k.rank < 0 || v.rank < 0) {
        ORTC_TRY(ortc_infer_out(c, 0, q.dtype, -1, NULL));
        for (uint32_t i = 1; i < ortc_node_n_out(n); i++)
            ORTC_TRY(ortc_infer_out(c, i, i == 2 ? v.dtype : q.dtype, -1, NULL));
        return ORTC_OK;
    }
    if (q.rank != k.rank || q.rank != v.rank || q.rank < 3 || q.rank > 4)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "Q, K and V have ranks %d, %d and %d, expected 3 or 4 for all", q.rank, k.rank,
                               v.rank);
    ORTC_TRY(read_heads(c, ORTC_ATTN_Q, "Q", q_heads, &hq));
    ORTC_TRY(read_heads(c, ORTC_ATTN_K, "K", kv_heads, &hk));
    ORTC_TRY(read_heads(c, ORTC_ATTN_V, "V", kv_heads, &hv));
    ORTC_TRY(ortc_infer_same(c, "batch of Q and K", hq.batch, hk.batch, &hq.batch));
    ORTC_TRY(ortc_infer_same(c, "batch of Q and V", hq.batch, hv.batch, &hq.batch));
    ORTC_TRY(ortc_infer_same(c, "heads of K and V", hk.heads, hv.heads, &hk.heads));
    ORTC_TRY(ortc_infer_same(c, "length of K and V", hk.length, hv.length, &hk.length));
    ORTC_TRY(ortc_infer_same(c, "elements of a head in Q and K", hq.size, hk.size, &same));
    if (hq.heads >= 0 && hk.heads >= 0 && (hk.heads == 0 ? hq.heads != 0 : hq.heads % hk.heads != 0))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "%lld heads of Q are not a multiple of %lld heads of K", (long long)hq.heads,
                               (long long)hk.heads);
    ORTC_TRY(read_past(c, ORTC_ATTN_PAST_K, "past_key", &hk, &past));
    ORTC_TRY(read_past(c, ORTC_ATTN_PAST_V, "past_value", &hv, &past_values));
    ORTC_TRY(ortc_infer_same(c, "length of past_key and past_value", past, past_values, &past));
    total = ortc_dim_add(c, past, hk.length);
    if (nonpad.rank >= 0 && nonpad.rank != 1)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "nonpad_kv_seqlen has rank %d, expected one length per sample", nonpad.rank);
    if (nonpad.rank == 1)
        ORTC_TRY(ortc_infer_same(c, "batch of Q and nonpad_kv_seqlen", hq.batch, nonpad.dims[0], &same));

    const ortc_dim y4[4] = {hq.batch, hq.heads, hq.length, hv.size},
                   scores[4] = {hq.batch, hq.heads, hq.length, total};
    const ortc_dim y3[3] = {hq.batch, hq.length, ortc_dim_mul(c, hq.heads, hv.size)};
    const ortc_dim keys[4] = {hq.batch, hk.heads, total, hk.size},
                   values[4] = {hq.batch, hk.heads, total, hv.size};
    ORTC_TRY(check_mask(c, scores));
    ORTC_TRY(ortc_infer_out(c, 0, q.dtype, q.rank, q.rank == 4 ? y4 : y3));
    if (ortc_node_n_out(n) > 1) ORTC_TRY(ortc_infer_out(c, 1, q.dtype, 4, keys));
    if (ortc_node_n_out(n) > 2) ORTC_TRY(ortc_infer_out(c, 2, v.dtype, 4, values));
    return ortc_node_n_out(n) > 3 ? ortc_infer_out(c, 3, q.dtype, 4, scores) : ORTC_OK;
}

/* The caches hold the cosines and sines of half of the turned elements: per position, or per sample and
 * position. */
static ortc_status check_angles(ortc_infer *c, uint32_t port, const heads *x, bool by_position,
                                int64_t turned)
{
    const ortc_port p = ortc_infer_in(c, port);
    const char *name = port == 1 ? "cos_cache" : "sin_cache";
    ortc_dim same;
    if (p.rank < 0) return ORTC_OK;
    if (p.rank != (by_position ? 2 : 3))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "%s has rank %d, expected %s", name, p.rank,
                               by_position ? "[positions, elements / 2]"
                                           : "[batch, length, elements / 2] without position_ids");
    if (!by_position) {
        ORTC_TRY(ortc_infer_same(c, "batch of X and of the angles", x->batch, p.dims[0], &same));
        ORTC_TRY(ortc_infer_same(c, "length of X and of the angles", x->length, p.dims[1], &same));
    }
    const ortc_dim half = p.dims[p.rank - 1], all = turned > 0 ? turned : x->size;
    if (half >= 0 && all >= 0 && half != all / 2)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "%s has %lld angles, %lld elements need %lld", name,
                               (long long)half, (long long)all, (long long)(all / 2));
    return ORTC_OK;
}

static ortc_status infer_rotary(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ortc_port x = ortc_infer_in(c, 0), ids = ortc_infer_in(c, 3);
    const int64_t turned = ortc_node_int(n, "rotary_embedding_dim", 0);
    heads h;
    ortc_dim same;
    if (x.rank < 0) return ortc_infer_like(c, 0, 0);
    if (x.rank != 3 && x.rank != 4)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "X has rank %d, expected 3 or 4", x.rank);
    if (x.rank == 3 && ortc_node_int(n, "num_heads", 0) < 1)
        return ortc_infer_fail(
            c, ORTC_INVALID_MODEL,
            "X has 3 dims: the attribute num_heads must say how many heads the last one holds");
    ORTC_TRY(read_heads(c, 0, "X", ortc_node_int(n, "num_heads", 0), &h));
    if (turned < 0 || turned % 2 || (h.size >= 0 && (turned > h.size || (turned == 0 && h.size % 2))))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "%lld of a head's %lld elements cannot be turned in pairs",
                               (long long)(turned ? turned : h.size), (long long)h.size);
    ORTC_TRY(check_angles(c, 1, &h, ids.type != NULL, turned));
    ORTC_TRY(check_angles(c, 2, &h, ids.type != NULL, turned));
    if (ortc_infer_in(c, 1).rank == 2 && ortc_infer_in(c, 2).rank == 2)
        ORTC_TRY(ortc_infer_same(c, "positions of cos_cache and sin_cache", ortc_infer_in(c, 1).dims[0],
                                 ortc_infer_in(c, 2).dims[0], &same));
    if (ids.rank >= 0 && ids.rank != 2)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "position_ids has rank %d, expected [batch, length]",
                               ids.rank);
    if (ids.rank == 2) {
        ORTC_TRY(ortc_infer_same(c, "batch of X and position_ids", h.batch, ids.dims[0], &same));
        ORTC_TRY(ortc_infer_same(c, "length of X and position_ids", h.length, ids.dims[1], &same));
    }
    return ortc_infer_like(c, 0, 0);
}

static const ortc_op ops[] = {
    ORTC_OP("", "Attention", 25, 23, "24 23",
            "Q:T1 K:T1 V:T2 attn_mask:U? past_key:T1? past_value:T2? nonpad_kv_seqlen:I?",
            "Y:T1 present_key:T1? present_value:T2? qk_matmul_output:T1?",
            "is_causal:i=0 scale:f? softcap:f=0 q_num_heads:i? kv_num_heads:i? softmax_precision:i? "
            "qk_matmul_output_mode:i=0 "
            "left_window_size:i=-1 right_window_size:i=-1",
            "T1=float T2=float U=num,bool I=i64", infer_attention, NULL, 0),
    ORTC_OP("", "RotaryEmbedding", 23, 23, "", "X:T cos_cache:T sin_cache:T position_ids:M?", "Y:T",
            "interleaved:i=0 num_heads:i? rotary_embedding_dim:i=0", "T=f16,f32,bf16 M=i64", infer_rotary,
            NULL, 0),
    ORTC_OP("", "TensorScatter", 24, 24, "", "past_cache:T update:T write_indices:I?", "present_cache:T",
            "axis:i=-2 mode:s=linear", "T=num,bool,string,c64,c128,f8,u4,i4,f4e2m1,f8e8m0 I=i64",
            ortc_infer_tensor_scatter, NULL, 0),
    ORTC_OP("", "LinearAttention", 27, 27, "", "query:T key:T value:T past_state:S? decay:T? beta:T?",
            "output:T present_state:S",
            "q_num_heads:i! kv_num_heads:i! chunk_size:i=64 scale:f=0 update_rule:s=gated_delta",
            "T=f16,f32,bf16 S=f16,f32,bf16", ortc_infer_linear_attention, NULL, 0),
    ORTC_OP("", "CausalConvWithState", 27, 27, "", "input:T weight:T bias:T? past_state:T?",
            "output:T present_state:T", "activation:s=none", "T=f16,f32,bf16", ortc_infer_causal_conv, NULL,
            0),
    ORTC_COMPOSED("ai.onnx.preview", "FlexAttention", 1, "", "Q:T1 K:T1 V:T1", "Y:T1",
                  "prob_mod:g? scale:f? score_mod:g? softmax_precision:i?", "T1=float",
                  ortc_lift_flex_attention),
};
ORTC_FAMILY(attention, ops, &ortc_kernels_ref_attention, &ortc_kernels_cpu_attention);
