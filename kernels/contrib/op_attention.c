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

/* ---- Buffers that past and present share --------------------------------------------------------------- */

/* `begun`, a vector of one element: how many keys of the buffer are the past. */
static ortc_status read_begun(ortc_lift *l)
{
    return ortc_lift_write(l, "begun_32 = Reshape(past_sequence_length, [-1])\n"
                              "begun = Cast(begun_32) to=7");
}

/* `to`, the buffer `room` with the keys `grown` in its first places. */
static ortc_status put_back(ortc_lift *l, const char *to, const char *room, const char *grown)
{
    return ortc_lift_write(l,
                           "%s_rest = Slice(%s, total, [9223372036854775807], [2])\n"
                           "%s = Concat(%s, %s_rest) axis=2",
                           to, room, to, grown, to);
}

/* ---- MultiHeadAttention -------------------------------------------------------------------------------- */

static ortc_status decode_one(ortc_lift *l, const char *keys, bool shares); /* the form for one new token */

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
        ORTC_TRY(read_begun(l));
        ORTC_TRY(ortc_lift_write(l, "total = Add(begun, fresh)\n"
                                    "past_k = Slice(past_key, [0], begun, [2])\n"
                                    "past_v = Slice(past_value, [0], begun, [2])"));
    } else if (past) {
        ORTC_TRY(ortc_lift_write(l, "old = Shape(past_key) start=2 end=3\n"
                                    "total = Add(old, fresh)"));
    }
    ORTC_TRY(write_mask(l, "key_padding_mask", "attention_bias", "query", &mask));
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
        LL(heads), scale_text(l, scale)));
    if (shared && k_out) ORTC_TRY(put_back(l, "present_key", "past_key", "grown_k"));
    if (shared && v_out) ORTC_TRY(put_back(l, "present_value", "past_value", "grown_v"));
    /* what comes later has the lowest number there is */
    return finite ? ortc_lift_write(l, "qk = Max(scores, -3.4028234663852886e38:query)") : ORTC_OK;
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
    const bool shared = past && ortc_given(l, "past_sequence_length");
    if (ortc_lift_int(l, "do_rotary", 0))
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "do_rotary is not supported");
    if (count == 3)
        ORTC_TRY(ortc_lift_write(l, "q, k, v = Split(qkv, [%lld,%lld,%lld]) axis=-1", LL(sizes[0]),
                                 LL(sizes[1]), LL(sizes[2])));
    else
        ORTC_TRY(ortc_lift_write(l, "q, k, v = Split(qkv) axis=-1 num_outputs=3"));
    ORTC_TRY(ortc_lift_write(l, "%s = Shape(input) start=1 end=2", past ? "fresh" : "total"));
    if (past)
        ORTC_TRY(ortc_lift_write(l, "past_k, past_v = Split(past) axis=0 num_outputs=2\n"
                                    "room_k = Squeeze(past_k, [0])\n"
                                    "room_v = Squeeze(past_v, [0])"));
    if (shared)
        ORTC_TRY(read_begun(l));
    else if (past)
        ORTC_TRY(ortc_lift_write(l, "begun = Shape(room_k) start=2 end=3"));
    if (past)
        ORTC_TRY(ortc_lift_write(l, "total = Add(begun, fresh)\n"
                                    "old_k = Slice(room_k, [0], begun, [2])\n"
                                    "old_v = Slice(room_v, [0], begun, [2])"));
    ORTC_TRY(write_mask(l, "mask_index", *ortc_node_op(n) == 'A' ? "attention_bias" : "_", "qkv", &mask));
    ORTC_TRY(ortc_lift_write(l,
                             "output, %s, %s = Attention(q, k, v, %s, %s, %s) is_causal=%d q_num_heads=%lld "
                             "kv_num_heads=%lld%s",
                             present ? "new_k" : "_", present ? "new_v" : "_", mask, past ? "old_k" : "_",
                             past ? "old_v" : "_", causal, LL(heads), LL(heads), scale_text(l, scale)));
    if (!present) return ORTC_OK;
    if (shared) {
        ORTC_TRY(put_back(l, "full_k", "room_k", "new_k"));
        ORTC_TRY(put_back(l, "full_v", "room_v", "new_v"));
    }
    return ortc_lift_write(l,
                           "all_k = Unsqueeze(%s, [0])\n"
                           "all_v = Unsqueeze(%s, [0])\n"
                           "present = Concat(all_k, all_v) axis=0",
                           shared ? "full_k" : "new_k", shared ? "full_v" : "new_v");
}

ortc_status ortc_contrib_attention(ortc_lift *l)
{
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
    if ((x.rank != 3 && x.rank != 4) || ids.rank < 0) /* is_packed_batching only leaves a check out */
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

/* Three positions of each token, [3, B, S]: in time, height and width; each turns columns of its own, in
 * sections or, but for what is left over for time, in turn. */
ortc_status ortc_contrib_mrotary(ortc_lift *l)
{
    const ortc_port x = ortc_lift_look(l, "input"), cos = ortc_lift_look(l, "cos_cache");
    const int64_t heads = ortc_lift_int(l, "num_heads", 0),
                  turned = ortc_lift_int(l, "rotary_embedding_dim", 0);
    const bool mixed = ortc_lift_int(l, "mrope_layout", 0) != 0;
    size_t count;
    const int64_t *sections = ortc_node_ints(ortc_lift_node(l), "mrope_section", &count);
    if ((x.rank != 3 && x.rank != 4) || cos.rank != 2 || cos.dims[1] < 1 || cos.dims[1] > 65536)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED,
                              "the rank of input and the shape of cos_cache must be known");
    const int64_t half = cos.dims[1], dims[2] = {half, 3};
    if (x.rank == 3 && heads == 0 && (x.dims[2] < 0 || x.dims[2] % (2 * half)))
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "num_heads must be given, or the size of a head be known");
    if (count != 3 || sections[0] < 0 || sections[1] < 0 || sections[2] < 0 || sections[0] > half ||
        sections[1] > half || sections[2] > half || sections[0] + sections[1] + sections[2] != half)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL,
                              "attribute mrope_section is not three parts of %lld columns", LL(half));
    float *which = calloc((size_t)half * 3, sizeof *which); /* 1 where a column is a position's */
    if (!which) return ortc_lift_fail(l, ORTC_OUT_OF_MEMORY, "no memory for sections");
    for (int64_t i = 0; i < half; i++) {
        const int64_t third = i % 3, own = mixed ? (third && i < 3 * sections[third] ? third : 0)
                                                 : (i >= sections[0]) + (i >= sections[0] + sections[1]);
        which[3 * i + own] = 1;
    }
    const ortc_status status = ortc_lift_name(l, "which", ORTC_F32, 2, dims, which);
    free(which);
    ORTC_TRY(status);
    static const char *const names[] = {"cos", "sin"};
    for (int i = 0; i < 2; i++)
        ORTC_TRY(ortc_lift_write(l,
                                 "%s_all = Gather(%s_cache, position_ids) axis=0\n"
                                 "%s_last = Transpose(%s_all) perm=[1,2,3,0]\n"
                                 "%s_typed = Cast(which) to=@cos_cache\n"
                                 "%s_own = Mul(%s_last, %s_typed)\n"
                                 "%s = ReduceSum(%s_own, [3]) keepdims=0",
                                 names[i], names[i], names[i], names[i], names[i], names[i], names[i],
                                 names[i], names[i], names[i]));
    return ortc_lift_write(
        l, "output = RotaryEmbedding(input, cos, sin) &interleaved rotary_embedding_dim=%lld num_heads=%lld",
        LL(turned), LL(heads || x.rank == 4 ? heads : x.dims[2] / (2 * half)));
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

/* A cache of integers: how they are told from numbers. */
typedef struct cache {
    const char *scale; /* an input: one number, or one for each head's channel */
    char shape[40];    /* that it is brought to */
    int64_t bits;      /* 0: the cache is of numbers */
    ortc_dtype type;
} cache;

static ortc_status read_cache(ortc_lift *l, const char *past, const char *scale, const char *kind, cache *out)
{
    const char *how = ortc_node_string(ortc_lift_node(l), kind, "NONE");
    const ortc_dtype t = ortc_lift_look(l, past).dtype;
    *out = (cache){scale, "[1,1,1,1]", 0, t};
    if (!strcmp(how, "PER_CHANNEL"))
        snprintf(out->shape, sizeof out->shape, "[1,%lld,1,-1]", LL(ortc_lift_int(l, "kv_num_heads", 0)));
    if (!strcmp(how, "NONE")) return ORTC_OK;
    out->bits = ortc_lift_int(l, "kv_cache_bit_width", t == ORTC_U8 ? 4 : 8);
    if (!ortc_given(l, scale) || !t)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "a quantised cache needs '%s' and '%s'", past, scale);
    const bool known = out->bits == 8 ? t == ORTC_I8 || t == ORTC_F8E4M3FN : out->bits == 4 && t == ORTC_U8;
    return known ? ORTC_OK
                 : ortc_lift_fail(l, ORTC_UNSUPPORTED,
                                  "a cache of %lld bits in elements of %s is not supported", LL(out->bits),
                                  ortc_dtype_name(t));
}

/* `to` from `from` [B, heads, S, H]: as the cache keeps it. Two elements of 4 bits lie in a byte, the first
 * in its low half, and 8 stands for 0. */
static ortc_status into_cache(ortc_lift *l, const cache *c, const char *to, const char *from)
{
    if (!c->bits) return ortc_lift_write(l, "%s = Identity(%s)", to, from);
    ORTC_TRY(ortc_lift_write(l,
                             "%s_step = Reshape(%s, %s)\n"
                             "%s_wide = Cast(%s) to=1\n"
                             "%s_part = Div(%s_wide, %s_step)",
                             to, c->scale, c->shape, to, from, to, to, to));
    if (c->type == ORTC_F8E4M3FN) return ortc_lift_write(l, "%s = Cast(%s_part) to=%d", to, to, c->type);
    ORTC_TRY(ortc_lift_write(l,
                             "%s_round = Round(%s_part)\n"
                             "%s_clip = Clip(%s_round, %d:f32, %d:f32)",
                             to, to, to, to, c->bits == 8 ? -128 : -8, c->bits == 8 ? 127 : 7));
    if (c->bits == 8) return ortc_lift_write(l, "%s = Cast(%s_clip) to=%d", to, to, c->type);
    return ortc_lift_write(l,
                           "%s_moved = Add(%s_clip, 8:f32)\n"
                           "%s_codes = Cast(%s_moved) to=2\n"
                           "%s_low = Slice(%s_codes, [0], [9223372036854775807], [3], [2])\n"
                           "%s_high = Slice(%s_codes, [1], [9223372036854775807], [3], [2])\n"
                           "%s_up = BitShift(%s_high, 4:u8) direction='LEFT'\n"
                           "%s = BitwiseOr(%s_low, %s_up)",
                           to, to, to, to, to, to, to, to, to, to, to, to, to);
}

static ortc_status out_of_cache(ortc_lift *l, const cache *c, const char *to, const char *from)
{
    if (!c->bits) return ortc_lift_write(l, "%s = Identity(%s)", to, from);
    if (c->bits == 4)
        ORTC_TRY(ortc_lift_write(l,
                                 "%s_bytes = Unsqueeze(%s, [4])\n"
                                 "%s_shifted = BitShift(%s_bytes, [0,4]:u8) direction='RIGHT'\n"
                                 "%s_low = BitwiseAnd(%s_shifted, 15:u8)\n"
                                 "%s_codes = Reshape(%s_low, [0,0,0,-1])\n"
                                 "%s_real = Cast(%s_codes) to=1\n"
                                 "%s_whole = Sub(%s_real, 8:f32)",
                                 to, from, to, to, to, to, to, to, to, to, to, to));
    else
        ORTC_TRY(ortc_lift_write(l, "%s_whole = Cast(%s) to=1", to, from));
    return ortc_lift_write(l,
                           "%s_step = Reshape(%s, %s)\n"
                           "%s_scaled = Mul(%s_whole, %s_step)\n"
                           "%s = Cast(%s_scaled) to=@query",
                           to, c->scale, c->shape, to, to, to, to, to);
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

/* Query, keys and values of `heads` and `groups` heads as three, by the names that are read then. */
typedef struct trio {
    const char *q, *k, *v;
    int64_t heads, groups;
} trio;

static ortc_status take_apart(ortc_lift *l, trio *t)
{
    const ortc_port query = ortc_lift_look(l, "query"), cos = ortc_lift_look(l, "cos_cache");
    *t = (trio){"query", "key", "value", ortc_lift_int(l, "num_heads", 0),
                ortc_lift_int(l, "kv_num_heads", 0)};
    if (t->heads < 1 || t->groups < 1 || t->heads > INT32_MAX || t->groups > INT32_MAX ||
        (cos.rank == 2 && cos.dims[1] > INT32_MAX))
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "there are %lld heads, and %lld of keys", LL(t->heads),
                              LL(t->groups));
    if (query.rank != 3) return ortc_lift_fail(l, ORTC_UNSUPPORTED, "query must be known to have three dims");
    if (ortc_given(l, "key")) return ORTC_OK;
    if (query.dims[2] < 0 || query.dims[2] % (t->heads + 2 * t->groups))
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the size of a head must be known");
    const int64_t size = query.dims[2] / (t->heads + 2 * t->groups);
    t->q = "q", t->k = "k", t->v = "v";
    return ortc_lift_write(l, "q, k, v = Split(query, [%lld,%lld,%lld]) axis=2", LL(t->heads * size),
                           LL(t->groups * size), LL(t->groups * size));
}

/* Where each line's new tokens stand: behind its past, as `lengths` [B], past and new together, say. A
 * first prompt that is padded begins at 0. */
static ortc_status write_places(ortc_lift *l)
{
    return ortc_lift_write(l, "tokens = Shape(query) start=1 end=2\n"
                              "told = Cast(total_sequence_length) to=7\n"
                              "total = Reshape(told, [1])\n"
                              "before = Sub(lengths, tokens)\n"
                              "begun = Max(before, [0])\n"
                              "count = Reshape(tokens, [])\n"
                              "steps = Range(0, count, 1)\n"
                              "begins = Unsqueeze(begun, [1])\n"
                              "places = Add(begins, steps)");
}

/* Heads of `*name` divided by the root of the mean of their squares, times a weight. */
static ortc_status normalise(ortc_lift *l, const char **name, const char *to, const char *weight,
                             int64_t heads)
{
    const char *from = *name;
    *name = to;
    return ortc_lift_write(l,
                           "%s_lead = Shape(%s) start=0 end=2\n"
                           "%s_split = Concat(%s_lead, [%lld,-1]) axis=0\n"
                           "%s_heads = Reshape(%s, %s_split)\n"
                           "%s_rows = RMSNormalization(%s_heads, %s) axis=-1 epsilon=%.9g\n"
                           "%s = Reshape(%s_rows, [0,0,-1])",
                           to, from, to, to, LL(heads), to, from, to, to, to, weight,
                           (double)ortc_node_float(ortc_lift_node(l), "qk_norm_epsilon", 1e-6F), to, to);
}

static ortc_status turn(ortc_lift *l, trio *t, const char *where)
{
    const ortc_port cos = ortc_lift_look(l, "cos_cache");
    const long long turned = cos.rank == 2 && cos.dims[1] > 0 ? LL(2 * cos.dims[1]) : 0;
    const int interleaved = ortc_lift_int(l, "rotary_interleaved", 0) != 0;
    ORTC_TRY(ortc_lift_write(l,
                             "q_turned = RotaryEmbedding(%s, cos_cache, sin_cache, %s) num_heads=%lld "
                             "rotary_embedding_dim=%lld interleaved=%d\n"
                             "k_turned = RotaryEmbedding(%s, cos_cache, sin_cache, %s) num_heads=%lld "
                             "rotary_embedding_dim=%lld interleaved=%d",
                             t->q, where, LL(t->heads), turned, interleaved, t->k, where, LL(t->groups),
                             turned, interleaved));
    t->q = "q_turned", t->k = "k_turned";
    return ORTC_OK;
}

/* q4 [B, N, S, H], k4 and v4 [B, G, S, H] */
static ortc_status split_all(ortc_lift *l, const trio *t)
{
    ORTC_TRY(split_heads(l, "q4", t->q, t->heads));
    ORTC_TRY(split_heads(l, "k4", t->k, t->groups));
    return split_heads(l, "v4", t->v, t->groups);
}

/* A cache of C rows that slides (sliding_window_cache): after T tokens it holds the last ones from `gone` on,
 * G = C - W + 1 of which leave at once: gone = G * ceil((T - C) / G), 0 at first. */
static ortc_status write_gone(ortc_lift *l, const char *to, const char *tokens)
{
    return ortc_lift_write(l,
                           "%s_over = Sub(%s, capacity)\n"
                           "%s_some = Max(%s_over, [0])\n"
                           "%s_more = Add(%s_some, slack)\n"
                           "%s_up = Sub(%s_more, 1)\n"
                           "%s_times = Div(%s_up, slack)\n"
                           "%s_row = Mul(%s_times, slack)\n"
                           "%s = Unsqueeze(%s_row, [1])",
                           to, tokens, to, to, to, to, to, to, to, to, to, to, to, to);
}

/* `to`, the cache as it will be, from `from` [B, G, C + S, H]: what it held, and all that is new behind. */
static ortc_status slide(ortc_lift *l, const char *to, const char *from)
{
    return ortc_lift_write(l,
                           "%s_rows = Transpose(%s) perm=[0,2,1,3]\n"
                           "%s_picked = GatherND(%s_rows, kept_rows) batch_dims=1\n"
                           "%s = Transpose(%s_picked) perm=[0,2,1,3]",
                           to, from, to, to, to, to);
}

/* `open` [B, 1, S, C + S], which of those a token may see, and `kept_rows` [B, C, 1]. */
static ortc_status write_sliding(ortc_lift *l, int64_t window)
{
    ORTC_TRY(ortc_lift_write(l,
                             "capacity = Shape(past_key) start=2 end=3\n"
                             "slack = Sub(capacity, %lld)\n"
                             "rows = Reshape(capacity, [])\n"
                             "row = Range(0, rows, 1)",
                             LL(window - 1)));
    ORTC_TRY(write_gone(l, "gone_before", "begun"));
    ORTC_TRY(write_gone(l, "gone", "lengths"));
    return ortc_lift_write(l,
                           "old_at = Add(row, gone_before)\n"
                           "old_here = Less(old_at, begins)\n"
                           "old_known = Where(old_here, old_at, 4611686018427387904)\n"
                           "key_at = Concat(old_known, places) axis=1\n"
                           "key_wide = Unsqueeze(key_at, [1])\n"
                           "here = Unsqueeze(places, [2])\n"
                           "seen = LessOrEqual(key_wide, here)\n"
                           "edge = Sub(here, %lld)\n"
                           "near = Greater(key_wide, edge)\n"
                           "visible = And(seen, near)\n"
                           "open = Unsqueeze(visible, [1])\n"
                           "kept_at = Add(row, gone)\n"
                           "fresh_at = Sub(kept_at, begins)\n"
                           "is_fresh = GreaterOrEqual(fresh_at, 0)\n"
                           "fresh_row = Add(fresh_at, capacity)\n"
                           "old_row = Sub(kept_at, gone_before)\n"
                           "from_row = Where(is_fresh, fresh_row, old_row)\n"
                           "all_rows = Add(capacity, tokens)\n"
                           "last_kept = Sub(all_rows, 1)\n"
                           "kept_row = Min(from_row, last_kept)\n"
                           "kept_rows = Unsqueeze(kept_row, [2])",
                           LL(window));
}

ortc_status ortc_contrib_group_query_attention(ortc_lift *l)
{
    const bool sink = ortc_given(l, "head_sink") || ortc_lift_int(l, "smooth_softmax", -1) == 1;
    const bool sliding = ortc_lift_int(l, "sliding_window_cache", 0) != 0;
    const int64_t window = ortc_lift_int(l, "local_window_size", -1);
    const float softcap = ortc_node_float(ortc_lift_node(l), "softcap", 0);
    char scale[40];
    cache keys, values;
    trio t;
    ORTC_TRY(read_cache(l, "past_key", "k_scale", "k_quant_type", &keys));
    ORTC_TRY(read_cache(l, "past_value", "v_scale", "v_quant_type", &values));
    if (sliding && ortc_wanted(l, 3))
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "output_qk with sliding_window_cache is not supported");
    if (sliding && (window < 1 || !ortc_given(l, "past_key") || ortc_given(l, "attention_bias")))
        return ortc_lift_fail(
            l, ORTC_UNSUPPORTED,
            "sliding_window_cache needs local_window_size and a past, and no attention_bias");
    ORTC_TRY(take_apart(l, &t));
    ORTC_TRY(ortc_lift_write(l, "last_ones = Cast(seqlens_k) to=7\n"
                                "last_row = Reshape(last_ones, [-1])\n"
                                "lengths = Add(last_row, 1)"));
    ORTC_TRY(write_places(l));
    if (ortc_given(l, "q_norm_weight")) ORTC_TRY(normalise(l, &t.q, "q_normed", "q_norm_weight", t.heads));
    if (ortc_given(l, "k_norm_weight")) ORTC_TRY(normalise(l, &t.k, "k_normed", "k_norm_weight", t.groups));
    if (ortc_lift_int(l, "do_rotary", 0))
        ORTC_TRY(turn(l, &t, ortc_given(l, "position_ids") ? "position_ids" : "places"));
    ORTC_TRY(split_all(l, &t));
    ORTC_TRY(into_cache(l, &keys, "k_kept", "k4"));
    ORTC_TRY(into_cache(l, &values, "v_kept", "v4"));
    if (sliding) {
        ORTC_TRY(write_sliding(l, window));
        ORTC_TRY(ortc_lift_write(l, "all_keys_kept = Concat(past_key, k_kept) axis=2\n"
                                    "all_values_kept = Concat(past_value, v_kept) axis=2"));
    } else {
        ORTC_TRY(append(l, "past_key", "k_kept", "all_keys_kept"));
        ORTC_TRY(append(l, "past_value", "v_kept", "all_values_kept"));
    }
    ORTC_TRY(out_of_cache(l, &keys, "cached_key", "all_keys_kept"));
    ORTC_TRY(out_of_cache(l, &values, "cached_value", "all_values_kept"));
    if (ortc_wanted(l, 1))
        ORTC_TRY(sliding ? slide(l, "present_key", "all_keys_kept")
                         : ortc_lift_write(l, "present_key = Identity(all_keys_kept)"));
    if (ortc_wanted(l, 2))
        ORTC_TRY(sliding ? slide(l, "present_value", "all_values_kept")
                         : ortc_lift_write(l, "present_value = Identity(all_values_kept)"));
    ORTC_TRY(sliding ? ortc_lift_write(l, "all_keys = Shape(cached_key) start=2 end=3")
                     : write_window(l, window));
    if (sink) ORTC_TRY(write_sink(l, t.heads));
    ORTC_TRY(ortc_lift_write(l,
                             "mixed, _, _, %s = Attention(q4, %s, %s, %s) softcap=%.9g "
                             "qk_matmul_output_mode=%d%s\n"
                             "turned_back = Transpose(mixed) perm=[0,2,1,3]\n"
                             "output = Reshape(turned_back, [0,0,-1])",
                             ortc_wanted(l, 3) ? "all_weights" : "_", sink ? "sunk_key" : "cached_key",
                             sink ? "sunk_value" : "cached_value",
                             sink                              ? "masked"
                             : ortc_given(l, "attention_bias") ? "added"
                                                               : "open",
                             (double)softcap, ortc_lift_int(l, "qk_output", 0) == 2 ? 3 : 2,
                             scale_text(l, scale)));
    if (!ortc_wanted(l, 3)) return ORTC_OK; /* of the keys there are; 0 where a token may not look */
    return ortc_lift_write(l, "some_weights = Slice(all_weights, [0], total, [3])\n"
                              "some_open = Slice(open, [0], total, [3])\n"
                              "output_qk = Where(some_open, some_weights, 0:query)");
}

/* ---- SparseAttention ----------------------------------------------------------------------------------- */

/* `blocks` [layouts, blocks, blocks], by rows of queries and columns of keys: which see each other, from
 * rows and columns of compressed sparse rows; columns may be padded. Entry j of a layout belongs to the row
 * before as many rows end as end at j. */
static ortc_status write_blocks(ortc_lift *l, int64_t blocks)
{
    return ortc_lift_write(l,
                           "row_ends_32 = Slice(block_row_indices, [1], [9223372036854775807], [1])\n"
                           "row_ends = Cast(row_ends_32) to=7\n"
                           "columns = Cast(block_col_indices) to=7\n"
                           "entries = Shape(columns) start=1\n"
                           "entry_count = Reshape(entries, [])\n"
                           "entry = Range(0, entry_count, 1)\n"
                           "entry_tall = Unsqueeze(entry, [1])\n"
                           "ends_wide = Unsqueeze(row_ends, [1])\n"
                           "is_over = GreaterOrEqual(entry_tall, ends_wide)\n"
                           "over = Cast(is_over) to=7\n"
                           "row_of = ReduceSum(over, [2]) keepdims=0\n"
                           "row_flags = OneHot(row_of, %lld, [0,1]:f32) axis=1\n"
                           "is_padding = Less(columns, 0)\n"
                           "column_of = Where(is_padding, %lld, columns)\n"
                           "column_flags = OneHot(column_of, %lld, [0,1]:f32) axis=2\n"
                           "hits = MatMul(row_flags, column_flags)\n"
                           "blocks = Greater(hits, 0:f32)",
                           LL(blocks), LL(blocks), LL(blocks));
}

ortc_status ortc_contrib_sparse_attention(ortc_lift *l)
{
    const ortc_port rows = ortc_lift_look(l, "block_row_indices");
    const int64_t size = ortc_lift_int(l, "sparse_block_size", 0);
    char scale[40];
    trio t;
    if (rows.rank != 2 || rows.dims[0] < 1 || rows.dims[1] < 2 || rows.dims[1] > INT32_MAX)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the shape of block_row_indices must be known");
    ORTC_TRY(take_apart(l, &t));
    if (size < 1 || size > INT32_MAX || t.heads % rows.dims[0])
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "%lld layouts of blocks of %lld for %lld heads",
                              LL(rows.dims[0]), LL(size), LL(t.heads));
    ORTC_TRY(ortc_lift_write(l, "whole_lengths = Cast(key_total_sequence_lengths) to=7\n"
                                "lengths = Reshape(whole_lengths, [-1])"));
    ORTC_TRY(write_places(l));
    if (ortc_lift_int(l, "do_rotary", 0)) ORTC_TRY(turn(l, &t, "places"));
    ORTC_TRY(split_all(l, &t));
    ORTC_TRY(append(l, "past_key", "k4", "cached_key"));
    ORTC_TRY(append(l, "past_value", "v4", "cached_value"));
    ORTC_TRY(ortc_lift_write(l, "present_key = Identity(cached_key)\n"
                                "present_value = Identity(cached_value)"));
    ORTC_TRY(write_blocks(l, rows.dims[1] - 1));
    return ortc_lift_write(l,
                           "all_keys = Shape(cached_key) start=2 end=3\n"
                           "last = Reshape(all_keys, [])\n"
                           "key = Range(0, last, 1)\n"
                           "key_block_any = Div(key, %lld)\n"
                           "key_block = Min(key_block_any, %lld)\n"
                           "row_block_any = Div(places, %lld)\n"
                           "row_block = Min(row_block_any, %lld)\n"
                           "by_row = Gather(blocks, row_block) axis=1\n"
                           "by_key = Gather(by_row, key_block) axis=3\n"
                           "layouts = Transpose(by_key) perm=[1,0,2,3]\n"
                           "layouts_real = Cast(layouts) to=1\n"
                           "heads_real = Tile(layouts_real, [1,%lld,1,1])\n"
                           "in_layout = Cast(heads_real) to=9\n"
                           "here = Unsqueeze(places, [1,3])\n"
                           "seen = LessOrEqual(key, here)\n"
                           "open = And(in_layout, seen)\n"
                           "mixed = Attention(q4, cached_key, cached_value, open)%s\n"
                           "turned_back = Transpose(mixed) perm=[0,2,1,3]\n"
                           "output = Reshape(turned_back, [0,0,-1])",
                           LL(size), LL(rows.dims[1] - 2), LL(size), LL(rows.dims[1] - 2),
                           LL(t.heads / rows.dims[0]), scale_text(l, scale));
}

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
    ORTC_TRY(split_heads(l, apart, from, heads));
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
    ORTC_TRY(split_heads(l, "q4", q, heads));
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
    ORTC_TRY(write_mask(l, keys, "attention_bias", "query", &mask));
    return ortc_lift_write(l,
                           "mixed, _, _, %s = Attention(q4, %s, %s, %s) qk_matmul_output_mode=2%s\n"
                           "turned_back = Transpose(mixed) perm=[0,2,1,3]\n"
                           "output = Reshape(turned_back, [0,0,-1])",
                           ortc_wanted(l, 3) ? "qk" : "_", beams ? "k_mine" : "k_seen",
                           beams ? "v_mine" : "v_seen", mask, scale_text(l, scale));
}

ortc_status ortc_contrib_decoder_masked_attention(ortc_lift *l)
{
    return decode_one(l, "mask_index", ortc_lift_int(l, "past_present_share_buffer", 0) != 0);
}

/* ---- What the standard has taken over ------------------------------------------------------------------ */

/* How many states of the last tokens are kept, the newest last; 0: the newest alone, without an axis. */
static ortc_status read_window(ortc_lift *l, int64_t *out)
{
    *out = ortc_lift_int(l, "state_window", 0);
    if (*out < 0 || *out > 8)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "state_window is %lld, expected 0 to 8", LL(*out));
    if (*out && ortc_given(l, "past_state"))
        return ortc_lift_write(l, "past = Gather(past_state, %lld) axis=0", LL(*out - 1));
    return ORTC_OK;
}

/* state_<j>: `from`, or zeros where the window is longer than what is new, so that slot j has no token. */
static ortc_status write_slot(ortc_lift *l, int64_t j, const char *from)
{
    return ortc_lift_write(l,
                           "is_there_%lld = GreaterOrEqual(at_%lld, 0)\n"
                           "kept_%lld = Where(is_there_%lld, %s, 0:%s)\n"
                           "state_%lld = Unsqueeze(kept_%lld, [0])",
                           LL(j), LL(j), LL(j), LL(j), from, from, LL(j), LL(j));
}

static ortc_status join_slots(ortc_lift *l, int64_t window)
{
    char all[192] = "present_state = Concat(";
    for (int64_t j = 0; j < window; j++)
        snprintf(all + strlen(all), sizeof all - strlen(all), "%sstate_%lld", j ? ", " : "", LL(j));
    return ortc_lift_write(l, "%s) axis=0", all);
}

/* The tokens before the window at once, those in it one by one, each with its state. */
static ortc_status linear_attention_window(ortc_lift *l, int64_t window)
{
    static const char *const names[] = {"query", "key", "value", "decay", "beta"};
    char state[32], outputs[192] = "output = Concat(out_0";
    snprintf(state, sizeof state, ortc_given(l, "past_state") ? "past" : "_");
    ORTC_TRY(ortc_lift_write(l,
                             "tokens = Shape(query) start=1 end=2\n"
                             "first_any = Sub(tokens, %lld)\n"
                             "end_0 = Max(first_any, [0])",
                             LL(window)));
    for (int64_t j = 0; j <= window; j++) {
        if (j)
            ORTC_TRY(ortc_lift_write(l,
                                     "at_%lld = Add(first_any, %lld)\n"
                                     "next_%lld = Add(at_%lld, 1)\n"
                                     "end_%lld = Max(next_%lld, [0])",
                                     LL(j - 1), LL(j - 1), LL(j), LL(j - 1), LL(j), LL(j)));
        for (size_t i = 0; i < sizeof names / sizeof *names; i++)
            if (ortc_given(l, names[i])) {
                char begin[32] = "[0]";
                if (j) snprintf(begin, sizeof begin, "end_%lld", LL(j - 1));
                ORTC_TRY(ortc_lift_write(l, "%s_%lld = Slice(%s, %s, end_%lld, [1])", names[i], LL(j),
                                         names[i], begin, LL(j)));
            }
        char decay[32] = "_", beta[32] = "_";
        if (ortc_given(l, "decay")) snprintf(decay, sizeof decay, "decay_%lld", LL(j));
        if (ortc_given(l, "beta")) snprintf(beta, sizeof beta, "beta_%lld", LL(j));
        ORTC_TRY(
            ortc_lift_write(l,
                            "out_%lld, after_%lld = LinearAttention(query_%lld, key_%lld, value_%lld, %s, "
                            "%s, %s) &kv_num_heads &q_num_heads &scale &update_rule",
                            LL(j), LL(j), LL(j), LL(j), LL(j), state, decay, beta));
        snprintf(state, sizeof state, "after_%lld", LL(j));
        if (!j) continue;
        ORTC_TRY(write_slot(l, j - 1, state));
        snprintf(outputs + strlen(outputs), sizeof outputs - strlen(outputs), ", out_%lld", LL(j));
    }
    ORTC_TRY(ortc_lift_write(l, "%s) axis=1", outputs));
    return ortc_wanted(l, 1) ? join_slots(l, window) : ORTC_OK;
}

ortc_status ortc_contrib_linear_attention(ortc_lift *l)
{
    int64_t window;
    ORTC_TRY(read_window(l, &window));
    if (window) return linear_attention_window(l, window);
    return ortc_lift_write(
        l,
        "output, %s = LinearAttention(query, key, value, past_state, decay, beta) &kv_num_heads &q_num_heads "
        "&scale &update_rule",
        ortc_wanted(l, 1) ? "present_state" : "_");
}

/* A depthwise convolution over what was kept and what is new, [B, C, L + S]. */
static ortc_status causal_conv(ortc_lift *l, int64_t window, int64_t dilation, bool last)
{
    const ortc_port w = ortc_lift_look(l, "weight");
    const char *const activation = ortc_node_string(ortc_lift_node(l), "activation", "none"),
                      *past = window ? "past" : "past_state";
    if (w.rank != 3 || w.dims[0] < 1 || w.dims[2] < 1 || w.dims[2] > 65536 || dilation > 65536)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the shape of weight must be known, and have three dims");
    const int64_t channels = w.dims[0], length = (w.dims[2] - 1) * dilation;
    ORTC_TRY(last ? ortc_lift_write(l,
                                    "rows = Reshape(input, [0,0,%lld])\n"
                                    "x = Transpose(rows) perm=[0,2,1]",
                                    LL(channels))
                  : ortc_lift_write(l, "x = Identity(input)"));
    if (!ortc_given(l, "past_state"))
        ORTC_TRY(ortc_lift_write(l, "all = Pad(x, [0,0,%lld,0,0,0])", LL(length)));
    else if (last)
        ORTC_TRY(ortc_lift_write(l,
                                 "past_rows = Reshape(%s, [0,0,%lld])\n"
                                 "past_turned = Transpose(past_rows) perm=[0,2,1]\n"
                                 "all = Concat(past_turned, x) axis=2",
                                 past, LL(channels)));
    else
        ORTC_TRY(ortc_lift_write(l, "all = Concat(%s, x) axis=2", past));
    ORTC_TRY(ortc_lift_write(l, "y = Conv(all, weight, bias) group=%lld dilations=[%lld]", LL(channels),
                             LL(dilation)));
    ORTC_TRY(ortc_lift_write(l, strcmp(activation, "none") ? "z = Swish(y)" : "z = Identity(y)"));
    ORTC_TRY(last ? ortc_lift_write(l, "z_turned = Transpose(z) perm=[0,2,1]\n"
                                       "shape = Shape(input)\n"
                                       "output = Reshape(z_turned, shape)")
                  : ortc_lift_write(l, "output = Identity(z)"));
    if (!ortc_wanted(l, 1)) return ORTC_OK;
    ORTC_TRY(ortc_lift_write(l,
                             "tokens = Shape(x) start=2 end=3\n"
                             "channel_axes = Shape(input) start=%d",
                             last ? 2 : 1));
    for (int64_t j = 0; j < (window ? window : 1); j++) {
        char name[48] = "present_state", kept[32];
        if (window) snprintf(name, sizeof name, "slot_%lld", LL(j));
        snprintf(kept, sizeof kept, "part_%lld", LL(j));
        ORTC_TRY(ortc_lift_write(l,
                                 "at_%lld = Sub(tokens, %lld)\n"
                                 "after_%lld = Add(at_%lld, 1)\n"
                                 "begin_%lld = Max(after_%lld, [0])\n"
                                 "end_%lld = Add(begin_%lld, %lld)\n"
                                 "%s = Slice(all, begin_%lld, end_%lld, [2])",
                                 LL(j), LL(window ? window - j : 1), LL(j), LL(j), LL(j), LL(j), LL(j), LL(j),
                                 LL(length), last ? kept : name, LL(j), LL(j)));
        if (last)
            ORTC_TRY(ortc_lift_write(l,
                                     "turned_%lld = Transpose(part_%lld) perm=[0,2,1]\n"
                                     "lead_%lld = Shape(turned_%lld) start=0 end=2\n"
                                     "dims_%lld = Concat(lead_%lld, channel_axes) axis=0\n"
                                     "%s = Reshape(turned_%lld, dims_%lld)",
                                     LL(j), LL(j), LL(j), LL(j), LL(j), LL(j), name, LL(j), LL(j)));
        if (window) ORTC_TRY(write_slot(l, j, name));
    }
    return window ? join_slots(l, window) : ORTC_OK;
}

ortc_status ortc_contrib_causal_conv(ortc_lift *l)
{
    const int64_t dilation = ortc_lift_int(l, "dilation", 1);
    const bool last = ortc_lift_int(l, "channels_last", 0) != 0;
    int64_t window;
    if (ortc_lift_int(l, "ndim", 1) != 1)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "only one spatial dim is supported");
    if (dilation < 1) return ortc_lift_fail(l, ORTC_INVALID_MODEL, "dilation is %lld", LL(dilation));
    ORTC_TRY(read_window(l, &window));
    if (window || last || dilation > 1) return causal_conv(l, window, dilation, last);
    return ortc_lift_write(l, "output, %s = CausalConvWithState(input, weight, bias, past_state) &activation",
                           ortc_wanted(l, 1) ? "present_state" : "_");
}
