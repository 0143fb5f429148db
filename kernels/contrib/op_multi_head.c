/* kernels/contrib/op_multi_head.c: MultiHeadAttention, and its form for one new token,
 * DecoderMaskedMultiHeadAttention. */
#include "kernels/contrib/attention.h"

/* ---- DecoderMaskedMultiHeadAttention ------------------------------------------------------------------- */

/* `to`, of all keys of a beam: those of the past from the beams of its line that cache_indirection
 * [B, M, room] names, what is new its own. `from` [B M, N, room, H] has it already. */
static ortc_status follow_beams(ortc_lift *l, const char *to, const char *from)
{
    return ortc_lift_write(l,
                           "%s_rows = Transpose(%s) perm=[0,2,1,3]\n"
                           "%s_picked = GatherND(%s_rows, origins)\n"
                           "%s = Transpose(%s_picked) perm=[0,2,1,3]",
                           to, from, to, to, to, to);
}

/* `origins` [B M, total, 2]: row and place that each key comes from. */
static ortc_status write_origins(ortc_lift *l)
{
    return ortc_lift_write(l, "told_beams = Cast(cache_indirection) to=7\n"
                              "seen_beams = Slice(told_beams, [0], total, [2])\n"
                              "width = Shape(cache_indirection) start=1 end=2\n"
                              "groups = Shape(cache_indirection) start=0 end=1\n"
                              "groups_one = Reshape(groups, [])\n"
                              "group = Range(0, groups_one, 1)\n"
                              "group_first = Mul(group, width)\n"
                              "group_shaped = Reshape(group_first, [-1,1,1])\n"
                              "named_3d = Add(seen_beams, group_shaped)\n"
                              "named_shape = Concat(lines, total) axis=0\n"
                              "named = Reshape(named_3d, named_shape)\n"
                              "line_count = Reshape(lines, [])\n"
                              "line = Range(0, line_count, 1)\n"
                              "own = Unsqueeze(line, [1])\n"
                              "last = Reshape(total, [])\n"
                              "place = Range(0, last, 1)\n"
                              "old = Less(place, begun_one)\n"
                              "row = Where(old, named, own)\n"
                              "row_3d = Unsqueeze(row, [2])\n"
                              "place_wide = Expand(place, named_shape)\n"
                              "place_3d = Unsqueeze(place_wide, [2])\n"
                              "origins = Concat(row_3d, place_3d) axis=2");
}

/* `to` [B, N, S, H] from `from` [B, S, N * H], behind what `past` has: either just before, or in a buffer
 * of its own length of which `past_sequence_length` elements count. */
static ortc_status extend(ortc_lift *l, const char *to, const char *past, const char *from, int64_t heads,
                          bool shared)
{
    char apart[24];
    snprintf(apart, sizeof apart, "%s_new", to);
    ORTC_TRY(ortc_contrib_split_heads(l, apart, from, heads));
    if (!ortc_given(l, past)) return ortc_lift_write(l, "%s = Identity(%s)", to, apart);
    if (!shared) return ortc_lift_write(l, "%s = Concat(%s, %s) axis=2", to, past, apart);
    return ortc_lift_write(l, "%s = TensorScatter(%s, %s, begun) axis=2", to, past, apart);
}

static ortc_status decode_one(ortc_lift *l, const char *keys, bool shares)
{
    const int64_t heads = ortc_lift_int(l, "num_heads", 0);
    const ortc_port key = ortc_lift_look(l, "key");
    const bool packed = !key.type, cross = key.rank == 4, bias = ortc_given(l, "bias"),
               shared = !cross && shares, beams = shared && ortc_given(l, "cache_indirection");
    const char *q = "query", *k = "key", *v = "value", *mask;
    char scale[40];
    if (heads < 1 || heads > INT32_MAX)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "there are %lld heads", LL(heads));
    if (key.type && key.rank < 0) return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the rank of key must be known");
    if (packed) {
        ORTC_TRY(ortc_lift_write(l, "q, k, v = Split(query) axis=2 num_outputs=3"));
        q = "q", k = "k", v = "v";
    }
    if (bias) {
        ORTC_TRY(ortc_lift_write(l,
                                 "width = Shape(%s) start=2\n"
                                 "double = Add(width, width)\n"
                                 "bias_q = Slice(bias, [0], width)\n"
                                 "qb = Add(%s, bias_q)",
                                 q, q));
        q = "qb";
        if (!cross) {
            ORTC_TRY(ortc_lift_write(l,
                                     "bias_k = Slice(bias, width, double)\n"
                                     "bias_v = Slice(bias, double, [9223372036854775807])\n"
                                     "kb = Add(%s, bias_k)\n"
                                     "vb = Add(%s, bias_v)",
                                     k, v));
            k = "kb", v = "vb";
        }
    }
    ORTC_TRY(ortc_contrib_split_heads(l, "q4", q, heads));
    if (shared)
        ORTC_TRY(ortc_lift_write(l, "begun_32 = Reshape(past_sequence_length, [-1])\n"
                                    "begun_one = Cast(begun_32) to=7\n"
                                    "lines = Shape(query) start=0 end=1\n"
                                    "begun = Expand(begun_one, lines)\n"
                                    "total = Add(begun_one, [1])"));
    if (cross)
        ORTC_TRY(ortc_lift_write(l, "k4 = Identity(key)\n"
                                    "v4 = Identity(value)"));
    else {
        ORTC_TRY(extend(l, "k4", "past_key", k, heads, shared));
        ORTC_TRY(extend(l, "v4", "past_value", v, heads, shared));
    }
    if (ortc_wanted(l, 1)) ORTC_TRY(ortc_lift_write(l, "present_key = Identity(k4)"));
    if (ortc_wanted(l, 2)) ORTC_TRY(ortc_lift_write(l, "present_value = Identity(v4)"));
    if (shared) /* what counts of the buffers */
        ORTC_TRY(ortc_lift_write(l, "k_seen = Slice(k4, [0], total, [2])\n"
                                    "v_seen = Slice(v4, [0], total, [2])"));
    else
        ORTC_TRY(ortc_lift_write(l, "total = Shape(k4) start=2 end=3\n"
                                    "k_seen = Identity(k4)\n"
                                    "v_seen = Identity(v4)"));
    if (beams) {
        ORTC_TRY(write_origins(l));
        ORTC_TRY(follow_beams(l, "k_mine", "k_seen"));
        ORTC_TRY(follow_beams(l, "v_mine", "v_seen"));
    }
    ORTC_TRY(ortc_contrib_mask(l, keys, "attention_bias", "query", &mask));
    return ortc_lift_write(l,
                           "mixed, _, _, %s = Attention(q4, %s, %s, %s) qk_matmul_output_mode=2%s\n"
                           "turned_back = Transpose(mixed) perm=[0,2,1,3]\n"
                           "output = Reshape(turned_back, [0,0,-1])",
                           ortc_wanted(l, 3) ? "qk" : "_", beams ? "k_mine" : "k_seen",
                           beams ? "v_mine" : "v_seen", mask, ortc_contrib_scale(l, scale));
}

ortc_status ortc_contrib_decoder_masked_attention(ortc_lift *l)
{
    return decode_one(l, "mask_index", ortc_lift_int(l, "past_present_share_buffer", 0) != 0);
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
    const int64_t heads = ortc_lift_int(l, "num_heads", 0);
    const bool causal = ortc_lift_int(l, "unidirectional", 0) != 0, bias = ortc_given(l, "bias"),
               past = ortc_given(l, "past_key"), shared = past && ortc_given(l, "past_sequence_length");
    const char *mask, *q = "q", *k = "k", *v = "v";
    char scale[40];
    bool plain;
    if (shared && ortc_given(l, "cache_indirection")) return decode_one(l, "key_padding_mask", true);
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
    if (shared) {
        ORTC_TRY(ortc_contrib_begun(l));
        ORTC_TRY(ortc_lift_write(l, "total = Add(begun, fresh)\n"
                                    "past_k = Slice(past_key, [0], begun, [2])\n"
                                    "past_v = Slice(past_value, [0], begun, [2])"));
    } else if (past) {
        ORTC_TRY(ortc_lift_write(l, "old = Shape(past_key) start=2 end=3\n"
                                    "total = Add(old, fresh)"));
    }
    ORTC_TRY(ortc_contrib_mask(l, "key_padding_mask", "attention_bias", "query", &mask));
    const bool scores = ortc_wanted(l, 3), finite = scores && causal, k_out = ortc_wanted(l, 1),
               v_out = ortc_wanted(l, 2);
    ORTC_TRY(ortc_lift_write(
        l,
        "output, %s, %s, %s = Attention(%s, %s, %s, %s, %s, %s) is_causal=%d q_num_heads=%lld "
        "kv_num_heads=%lld qk_matmul_output_mode=2%s",
        !k_out   ? "_"
        : shared ? "grown_k"
                 : "present_key",
        !v_out   ? "_"
        : shared ? "grown_v"
                 : "present_value",
        finite   ? "scores"
        : scores ? "qk"
                 : "_",
        q, k, v, mask, shared ? "past_k" : "past_key", shared ? "past_v" : "past_value", causal, LL(heads),
        LL(heads), ortc_contrib_scale(l, scale)));
    if (shared && k_out) ORTC_TRY(ortc_contrib_put_back(l, "present_key", "past_key", "grown_k"));
    if (shared && v_out) ORTC_TRY(ortc_contrib_put_back(l, "present_value", "past_value", "grown_v"));
    /* what comes later has the lowest number there is */
    return finite ? ortc_lift_write(l, "qk = Max(scores, -3.4028234663852886e38:query)") : ORTC_OK;
}
