/* kernels/contrib/op_attention.c: attention as com.microsoft spells it, by the standard's Attention.
 *
 * B batch, S new tokens, L keys that come with them, P past keys, T = P + L all keys, N heads (G of keys,
 * where they are shared), H elements of a head. What masks is added to the scores: mask_filter_value, -10000
 * where nothing is said, so that a row of nothing but masked keys follows its scores. / */
#include "kernels/contrib/contrib.h"

#define LL(x) ((long long)(x))

/* " scale=.." or nothing */
static const char *scale_text(ortc_lift *l, char buffer[40])
{
    const float scale = ortc_node_float(ortc_lift_node(l), "scale", 0);
    buffer[0] = 0;
    if (scale != 0) snprintf(buffer, 40, " scale=%.9g", (double)scale);
    return buffer;
}

static ortc_status refuse(ortc_lift *l, const char *const *names, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ortc_given(l, names[i]))
            return ortc_lift_fail(l, ORTC_UNSUPPORTED, "input '%s' is not supported", names[i]);
    return ORTC_OK;
}

/* ---- Masks --------------------------------------------------------------------------------------------- */

/* `mask`, or nothing, from what masks keys (lengths, flags of keys, of pairs) and what is added. `total` is
 * a vector of one element, T. *out: the name to read. */
static ortc_status write_mask(ortc_lift *l, const char *keys, const char *added, const char *query,
                              const char **out)
{
    const ortc_port m = ortc_lift_look(l, keys), x = ortc_lift_look(l, query);
    const double filter = (double)ortc_node_float(ortc_lift_node(l), "mask_filter_value", -10000);
    *out = ortc_given(l, added) ? added : "_"; /* "_" is nothing */
    if (!m.type) return ORTC_OK;
    if (m.rank == 1) { /* ends [B], or ends and begins [2 B] */
        const bool begins = m.dims[0] != x.dims[0] && m.dims[0] >= 0 && x.dims[0] >= 0;
        if (begins && m.dims[0] != 2 * x.dims[0])
            return ortc_lift_fail(l, ORTC_UNSUPPORTED, "'%s' has %lld elements for a batch of %lld", keys,
                                  LL(m.dims[0]), LL(x.dims[0]));
        ORTC_TRY(ortc_lift_write(l,
                                 "last = Reshape(total, [])\n"
                                 "places = Range(0, last, 1)\n"
                                 "whole = Cast(%s) to=7\n",
                                 keys));
        if (begins)
            ORTC_TRY(ortc_lift_write(l, "ends_row, begins_row = Split(whole) axis=0 num_outputs=2\n"
                                        "ends = Unsqueeze(ends_row, [1])\n"
                                        "begins = Unsqueeze(begins_row, [1])\n"
                                        "before = Less(places, ends)\n"
                                        "behind = GreaterOrEqual(places, begins)\n"
                                        "kept = And(before, behind)"));
        else
            ORTC_TRY(ortc_lift_write(l, "ends = Unsqueeze(whole, [1])\n"
                                        "kept = Less(places, ends)"));
        ORTC_TRY(ortc_lift_write(l, "open = Unsqueeze(kept, [1,2])"));
    } else if (m.rank == 2 || m.rank == 3) {
        ORTC_TRY(ortc_lift_write(l,
                                 "kept = Greater(%s, 0:%s)\n"
                                 "open = Unsqueeze(kept, %s)",
                                 keys, keys, m.rank == 2 ? "[1,2]" : "[1]"));
    } else if (m.rank == 4) { /* [B, 1, M, M], of which this run's rows and columns count */
        ORTC_TRY(ortc_lift_write(l,
                                 "new = Shape(%s) start=1 end=2\n"
                                 "first = Sub(total, new)\n"
                                 "rows = Slice(%s, first, total, [2])\n"
                                 "part = Slice(rows, [0], total, [3])\n"
                                 "open = Greater(part, 0:%s)",
                                 query, keys, keys));
    } else {
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the rank of '%s' must be known", keys);
    }
    /* a causal row's own mask is the lowest number there is, below what is added here */
    ORTC_TRY(ortc_lift_write(l, "closed = Where(open, 0:%s, %.9g:%s)", query, filter, query));
    *out = "closed";
    if (!ortc_given(l, added)) return ORTC_OK;
    *out = "mask";
    return ortc_lift_write(l, "mask = Add(closed, %s)", added);
}

/* ---- MultiHeadAttention -------------------------------------------------------------------------------- */

/* `to` [B, L, N * H] from one of packed [B, L, N, parts, H] */
static ortc_status join_heads(ortc_lift *l, const char *to, const char *from)
{
    return ortc_lift_write(l,
                           "%s_heads = Squeeze(%s, [3])\n"
                           "%s = Reshape(%s_heads, [0,0,-1])",
                           to, from, to, to);
}

/* q, k, v [B, S or L, N * H] from whatever form they came in. */
static ortc_status unpack_heads(ortc_lift *l, bool *plain_keys)
{
    const ortc_port q = ortc_lift_look(l, "query"), k = ortc_lift_look(l, "key"),
                    v = ortc_lift_look(l, "value");
    *plain_keys = true;
    if (q.rank < 0 || (k.type && k.rank < 0) || (v.type && v.rank < 0))
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the ranks of query, key and value must be known");
    if (q.rank == 5 && !k.type) {
        ORTC_TRY(ortc_lift_write(l, "q5, k5, v5 = Split(query) axis=3 num_outputs=3"));
        ORTC_TRY(join_heads(l, "q", "q5"));
        ORTC_TRY(join_heads(l, "k", "k5"));
        return join_heads(l, "v", "v5");
    }
    ORTC_TRY(ortc_lift_write(l, "q = Identity(query)"));
    if (k.rank == 5 && !v.type) {
        ORTC_TRY(ortc_lift_write(l, "k5, v5 = Split(key) axis=3 num_outputs=2"));
        ORTC_TRY(join_heads(l, "k", "k5"));
        return join_heads(l, "v", "v5");
    }
    *plain_keys = k.rank == 3 && v.rank == 3;
    if (*plain_keys)
        return ortc_lift_write(l, "k = Identity(key)\n"
                                  "v = Identity(value)");
    if (k.rank != 4 || v.rank != 4)
        return ortc_lift_fail(l, ORTC_SHAPE_MISMATCH, "key and value have ranks %d and %d", k.rank, v.rank);
    return ortc_lift_write(l, "k4 = Transpose(key) perm=[0,2,1,3]\n"
                              "v4 = Transpose(value) perm=[0,2,1,3]\n"
                              "k = Reshape(k4, [0,0,-1])\n"
                              "v = Reshape(v4, [0,0,-1])");
}

ortc_status ortc_contrib_multi_head_attention(ortc_lift *l)
{
    static const char *const later[] = {"past_sequence_length", "cache_indirection"};
    const int64_t heads = ortc_lift_int(l, "num_heads", 0);
    const bool causal = ortc_lift_int(l, "unidirectional", 0) != 0, bias = ortc_given(l, "bias"),
               past = ortc_given(l, "past_key");
    const char *mask, *q = "q", *k = "k", *v = "v";
    char scale[40];
    bool plain;
    ORTC_TRY(refuse(l, later, 2));
    if (ortc_wanted(l, 3)) return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the output 'qk' is not supported");
    ORTC_TRY(unpack_heads(l, &plain));
    if (bias) {
        ORTC_TRY(ortc_lift_write(l, "width = Shape(q) start=2\n"
                                    "double = Add(width, width)\n"
                                    "bias_q = Slice(bias, [0], width)\n"
                                    "qb = Add(q, bias_q)"));
        q = "qb";
        if (plain) {
            ORTC_TRY(ortc_lift_write(l, "bias_k = Slice(bias, width, double)\n"
                                        "bias_v = Slice(bias, double, [9223372036854775807])\n"
                                        "kb = Add(k, bias_k)\n"
                                        "vb = Add(v, bias_v)"));
            k = "kb", v = "vb";
        }
    }
    ORTC_TRY(ortc_lift_write(l, "%s = Shape(k) start=1 end=2", past ? "fresh" : "total"));
    if (past)
        ORTC_TRY(ortc_lift_write(l, "old = Shape(past_key) start=2 end=3\n"
                                    "total = Add(old, fresh)"));
    ORTC_TRY(write_mask(l, "key_padding_mask", "attention_bias", "query", &mask));
    return ortc_lift_write(l,
                           "output, %s, %s = Attention(%s, %s, %s, %s, past_key, past_value) is_causal=%d "
                           "q_num_heads=%lld kv_num_heads=%lld%s",
                           ortc_wanted(l, 1) ? "present_key" : "_", ortc_wanted(l, 2) ? "present_value" : "_",
                           q, k, v, mask, causal, LL(heads), LL(heads), scale_text(l, scale));
}

/* ---- Attention and QAttention -------------------------------------------------------------------------- */

/* The rest of Attention, from `qkv` [B, S, 3 parts]. */
static ortc_status attend(ortc_lift *l)
{
    const ortc_node *n = ortc_lift_node(l);
    const int64_t heads = ortc_lift_int(l, "num_heads", 0);
    const bool causal = ortc_lift_int(l, "unidirectional", 0) != 0, past = ortc_given(l, "past"),
               present = ortc_wanted(l, 1);
    size_t count;
    const int64_t *sizes = ortc_node_ints(n, "qkv_hidden_sizes", &count);
    const char *mask;
    char scale[40];
    if (ortc_lift_int(l, "do_rotary", 0) || ortc_lift_int(l, "past_present_share_buffer", 0))
        return ortc_lift_fail(l, ORTC_UNSUPPORTED,
                              "do_rotary and past_present_share_buffer are not supported");
    if (count == 3)
        ORTC_TRY(ortc_lift_write(l, "q, k, v = Split(qkv, [%lld,%lld,%lld]) axis=-1", LL(sizes[0]),
                                 LL(sizes[1]), LL(sizes[2])));
    else
        ORTC_TRY(ortc_lift_write(l, "q, k, v = Split(qkv) axis=-1 num_outputs=3"));
    ORTC_TRY(ortc_lift_write(l, "%s = Shape(input) start=1 end=2", past ? "fresh" : "total"));
    if (past)
        ORTC_TRY(ortc_lift_write(l, "past_k, past_v = Split(past) axis=0 num_outputs=2\n"
                                    "old_k = Squeeze(past_k, [0])\n"
                                    "old_v = Squeeze(past_v, [0])\n"
                                    "old = Shape(old_k) start=2 end=3\n"
                                    "total = Add(old, fresh)"));
    ORTC_TRY(write_mask(l, "mask_index", *ortc_node_op(n) == 'A' ? "attention_bias" : "_", "qkv", &mask));
    ORTC_TRY(ortc_lift_write(l,
                             "output, %s, %s = Attention(q, k, v, %s, %s, %s) is_causal=%d q_num_heads=%lld "
                             "kv_num_heads=%lld%s",
                             present ? "new_k" : "_", present ? "new_v" : "_", mask, past ? "old_k" : "_",
                             past ? "old_v" : "_", causal, LL(heads), LL(heads), scale_text(l, scale)));
    return present ? ortc_lift_write(l, "all_k = Unsqueeze(new_k, [0])\n"
                                        "all_v = Unsqueeze(new_v, [0])\n"
                                        "present = Concat(all_k, all_v) axis=0")
                   : ORTC_OK;
}

ortc_status ortc_contrib_attention(ortc_lift *l)
{
    static const char *const later[] = {"past_sequence_length"};
    ORTC_TRY(refuse(l, later, 1));
    if (ortc_given(l, "bias"))
        ORTC_TRY(ortc_lift_write(l, "product = MatMul(input, weights)\n"
                                    "qkv = Add(product, bias)"));
    else
        ORTC_TRY(ortc_lift_write(l, "qkv = MatMul(input, weights)"));
    return attend(l);
}

ortc_status ortc_contrib_qattention(ortc_lift *l)
{
    ORTC_TRY(ortc_lift_write(l,
                             "step_in = Reshape(input_scale, [])\n"
                             "product = MatMulInteger(input, weight, input_zero_point, weight_zero_point)\n"
                             "real = Cast(product) to=@bias\n"
                             "step = Mul(step_in, weight_scale)\n"
                             "scaled = Mul(real, step)\n"
                             "qkv = Add(scaled, bias)"));
    return attend(l);
}

/* ---- RotaryEmbedding ----------------------------------------------------------------------------------- */

ortc_status ortc_contrib_rotary(ortc_lift *l)
{
    const ortc_port x = ortc_lift_look(l, "input"), ids = ortc_lift_look(l, "position_ids"),
                    cos = ortc_lift_look(l, "cos_cache");
    int64_t heads = ortc_lift_int(l, "num_heads", 0), turned = ortc_lift_int(l, "rotary_embedding_dim", 0);
    if (ortc_lift_int(l, "is_packed_batching", 0) || (x.rank != 3 && x.rank != 4) || ids.rank < 0)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the ranks of input and position_ids must be known");
    if (x.rank == 3 && heads == 0) {
        if (x.dims[2] < 0 || cos.rank != 2 || cos.dims[1] < 1 || cos.dims[1] > INT32_MAX)
            return ortc_lift_fail(l, ORTC_UNSUPPORTED,
                                  "num_heads must be given, or the size of a head be known");
        heads = x.dims[2] / (2 * cos.dims[1]);
    }
    if (ids.rank == 1) /* where the first token stands */
        ORTC_TRY(ortc_lift_write(l,
                                 "tokens = Shape(input) start=%d end=%d\n"
                                 "last = Reshape(tokens, [])\n"
                                 "steps = Range(0, last, 1)\n"
                                 "row = Add(steps, position_ids)\n"
                                 "lines = Shape(input) start=0 end=1\n"
                                 "shape = Concat(lines, tokens) axis=0\n"
                                 "places = Expand(row, shape)",
                                 x.rank - 2, x.rank - 1));
    return ortc_lift_write(l,
                           "output = RotaryEmbedding(input, cos_cache, sin_cache, %s) &interleaved "
                           "rotary_embedding_dim=%lld num_heads=%lld",
                           ids.rank == 1 ? "places" : "position_ids", LL(turned), LL(heads));
}

/* ---- GroupQueryAttention ------------------------------------------------------------------------------- */

/* `to` [B, heads, S, H] from `from` [B, S, heads * H] */
static ortc_status split_heads(ortc_lift *l, const char *to, const char *from, int64_t heads)
{
    return ortc_lift_write(l,
                           "%s_rows = Shape(%s) start=0 end=2\n"
                           "%s_shape = Concat(%s_rows, [%lld,-1]) axis=0\n"
                           "%s_apart = Reshape(%s, %s_shape)\n"
                           "%s = Transpose(%s_apart) perm=[0,2,1,3]",
                           to, from, to, to, LL(heads), to, from, to, to, to);
}

/* present_*: the past with what is new written behind each line's length, and room for all of it. */
static ortc_status append(ortc_lift *l, const char *past, const char *fresh, const char *present)
{
    if (!ortc_given(l, past)) return ortc_lift_write(l, "%s = Identity(%s)", present, fresh);
    return ortc_lift_write(l,
                           "%s_room = Shape(%s) start=2 end=3\n"
                           "%s_lack = Sub(total, %s_room)\n"
                           "%s_more = Max(%s_lack, [0])\n"
                           "%s_pads = Concat([0,0,0,0,0,0], %s_more, [0]) axis=0\n"
                           "%s_wide = Pad(%s, %s_pads)\n"
                           "%s = TensorScatter(%s_wide, %s, begun) axis=2",
                           past, past, past, past, past, past, past, past, past, past, past, present, past,
                           fresh);
}

/* `mask` [B, 1, S, T]: which keys a token may see, or, with what is added, by how much. */
static ortc_status write_window(ortc_lift *l, int64_t window)
{
    const bool causal = ortc_lift_int(l, "causal", 1) != 0;
    ORTC_TRY(ortc_lift_write(l, "all_keys = Shape(cached_key) start=2 end=3\n"
                                "last = Reshape(all_keys, [])\n"
                                "keys = Range(0, last, 1)\n"
                                "here = Unsqueeze(places, [2])"));
    if (causal)
        ORTC_TRY(ortc_lift_write(l, "seen = LessOrEqual(keys, here)"));
    else
        ORTC_TRY(ortc_lift_write(l, "valid = Unsqueeze(lengths, [1,2])\n"
                                    "seen_once = Less(keys, valid)\n"
                                    "seen_shape = Shape(seen_once)\n"
                                    "new_rows = Concat([1], tokens, [1]) axis=0\n"
                                    "seen = Expand(seen_once, new_rows)"));
    if (window > 0)
        ORTC_TRY(ortc_lift_write(l,
                                 "edge = Sub(here, %lld)\n"
                                 "near = Greater(keys, edge)\n"
                                 "visible = And(seen, near)\n"
                                 "open = Unsqueeze(visible, [1])",
                                 LL(window)));
    else
        ORTC_TRY(ortc_lift_write(l, "open = Unsqueeze(seen, [1])"));
    if (!ortc_given(l, "attention_bias")) return ORTC_OK;
    return ortc_lift_write(l, "biased = Shape(attention_bias) start=3\n"
                              "unbiased = Sub(all_keys, biased)\n"
                              "bias_pads = Concat([0,0,0,0,0,0,0], unbiased) axis=0\n"
                              "bias = Pad(attention_bias, bias_pads)\n"
                              "added = Where(open, bias, -inf:query)");
}

/* A key of zeros and a value of zeros behind the others, whose score is the head's sink (0 for the smooth
 * softmax): its weight is lost. */
static ortc_status write_sink(ortc_lift *l, int64_t heads)
{
    const bool sink = ortc_given(l, "head_sink");
    ORTC_TRY(ortc_lift_write(l, ortc_given(l, "attention_bias")
                                    ? "scores = Identity(added)"
                                    : "scores = Where(open, 0:query, -inf:query)"));
    if (sink)
        ORTC_TRY(ortc_lift_write(l, "sinks = Reshape(head_sink, [1,-1,1,1])"));
    else
        ORTC_TRY(ortc_lift_write(l, "sinks = Reshape(0:query, [1,1,1,1])"));
    return ortc_lift_write(l,
                           "lines = Shape(query) start=0 end=1\n"
                           "sink_shape = Concat(lines, [%lld], tokens, [1]) axis=0\n"
                           "sink_column = Expand(sinks, sink_shape)\n"
                           "score_shape = Concat(lines, [%lld], tokens, all_keys) axis=0\n"
                           "all_scores = Expand(scores, score_shape)\n"
                           "masked = Concat(all_scores, sink_column) axis=3\n"
                           "sunk_key = Pad(cached_key, [0,0,0,0,0,0,1,0])\n"
                           "sunk_value = Pad(cached_value, [0,0,0,0,0,0,1,0])",
                           LL(heads), LL(heads));
}

ortc_status ortc_contrib_group_query_attention(ortc_lift *l)
{
    static const char *const later[] = {"k_scale", "v_scale", "q_norm_weight", "k_norm_weight"};
    const ortc_node *n = ortc_lift_node(l);
    const ortc_port query = ortc_lift_look(l, "query"), cos = ortc_lift_look(l, "cos_cache");
    const int64_t heads = ortc_lift_int(l, "num_heads", 0), groups = ortc_lift_int(l, "kv_num_heads", 0);
    const bool packed = !ortc_given(l, "key"),
               sink = ortc_given(l, "head_sink") || ortc_lift_int(l, "smooth_softmax", -1) == 1;
    const float softcap = ortc_node_float(n, "softcap", 0);
    const char *q = "query", *k = "key";
    char scale[40];
    ORTC_TRY(refuse(l, later, 4));
    if (heads < 1 || groups < 1 || heads > INT32_MAX || groups > INT32_MAX ||
        (cos.rank == 2 && cos.dims[1] > INT32_MAX))
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "there are %lld heads, and %lld of keys", LL(heads),
                              LL(groups));
    if (ortc_wanted(l, 3) || query.rank != 3 || ortc_lift_int(l, "sliding_window_cache", 0))
        return ortc_lift_fail(
            l, ORTC_UNSUPPORTED,
            "query must be known to have three dims; output_qk and sliding_window_cache are not "
            "supported");
    if (packed) {
        if (query.dims[2] < 0 || query.dims[2] % (heads + 2 * groups))
            return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the size of a head must be known");
        const int64_t size = query.dims[2] / (heads + 2 * groups);
        ORTC_TRY(ortc_lift_write(l, "q, k, v = Split(query, [%lld,%lld,%lld]) axis=2", LL(heads * size),
                                 LL(groups * size), LL(groups * size)));
        q = "q", k = "k";
    }
    /* where each line's new tokens stand: behind its past; a first prompt that is padded begins at 0 */
    ORTC_TRY(ortc_lift_write(l, "tokens = Shape(query) start=1 end=2\n"
                                "told = Cast(total_sequence_length) to=7\n"
                                "total = Reshape(told, [1])\n"
                                "ends = Cast(seqlens_k) to=7\n"
                                "end_row = Reshape(ends, [-1])\n"
                                "lengths = Add(end_row, 1)\n"
                                "before = Sub(lengths, tokens)\n"
                                "begun = Max(before, [0])\n"
                                "count = Reshape(tokens, [])\n"
                                "steps = Range(0, count, 1)\n"
                                "begins = Unsqueeze(begun, [1])\n"
                                "places = Add(begins, steps)"));
    if (ortc_lift_int(l, "do_rotary", 0)) {
        const char *where = ortc_given(l, "position_ids") ? "position_ids" : "places";
        const long long turned = cos.rank == 2 && cos.dims[1] > 0 ? LL(2 * cos.dims[1]) : 0;
        const int interleaved = ortc_lift_int(l, "rotary_interleaved", 0) != 0;
        ORTC_TRY(ortc_lift_write(l,
                                 "q_turned = RotaryEmbedding(%s, cos_cache, sin_cache, %s) num_heads=%lld "
                                 "rotary_embedding_dim=%lld interleaved=%d\n"
                                 "k_turned = RotaryEmbedding(%s, cos_cache, sin_cache, %s) num_heads=%lld "
                                 "rotary_embedding_dim=%lld interleaved=%d",
                                 q, where, LL(heads), turned, interleaved, k, where, LL(groups), turned,
                                 interleaved));
        q = "q_turned", k = "k_turned";
    }
    ORTC_TRY(split_heads(l, "q4", q, heads));
    ORTC_TRY(split_heads(l, "k4", k, groups));
    ORTC_TRY(split_heads(l, "v4", packed ? "v" : "value", groups));
    ORTC_TRY(append(l, "past_key", "k4", "cached_key"));
    ORTC_TRY(append(l, "past_value", "v4", "cached_value"));
    if (ortc_wanted(l, 1)) ORTC_TRY(ortc_lift_write(l, "present_key = Identity(cached_key)"));
    if (ortc_wanted(l, 2)) ORTC_TRY(ortc_lift_write(l, "present_value = Identity(cached_value)"));
    ORTC_TRY(write_window(l, ortc_lift_int(l, "local_window_size", -1)));
    if (sink) ORTC_TRY(write_sink(l, heads));
    return ortc_lift_write(l,
                           "mixed = Attention(q4, %s, %s, %s) softcap=%.9g%s\n"
                           "turned_back = Transpose(mixed) perm=[0,2,1,3]\n"
                           "output = Reshape(turned_back, [0,0,-1])",
                           sink ? "sunk_key" : "cached_key", sink ? "sunk_value" : "cached_value",
                           sink                              ? "masked"
                           : ortc_given(l, "attention_bias") ? "added"
                                                             : "open",
                           (double)softcap, scale_text(l, scale));
}
