/* kernels/contrib/op_attention_parts.c: what com.microsoft's attentions share: masks, buffers, heads, rotary
 * embedding, caches of integers, sinks. */
#include "kernels/contrib/attention.h"

const char *ortc_contrib_scale(ortc_lift *l, char buffer[40])
{
    const float scale = ortc_node_float(ortc_lift_node(l), "scale", 0);
    buffer[0] = 0;
    if (scale != 0) snprintf(buffer, 40, " scale=%.9g", (double)scale);
    return buffer;
}

/* ---- Masks --------------------------------------------------------------------------------------------- */

ortc_status ortc_contrib_mask(ortc_lift *l, const char *keys, const char *added, const char *query,
                              const char **out)
{
    const ortc_port m = ortc_lift_look(l, keys), x = ortc_lift_look(l, query);
    const double filter = (double)ortc_node_float(ortc_lift_node(l), "mask_filter_value", -10000);
    *out = ortc_given(l, added) ? added : "_"; /* "_" is nothing */
    if (!m.type) return ORTC_OK;
    if (m.rank == 1) { /* ends [B], ends and begins [2 B], or ends and sums of lengths [3 B + 2] */
        const bool known = m.dims[0] != x.dims[0] && m.dims[0] >= 0 && x.dims[0] >= 0,
                   sums = known && m.dims[0] == 3 * x.dims[0] + 2, begins = known && !sums;
        if (begins && m.dims[0] != 2 * x.dims[0])
            return ortc_lift_fail(l, ORTC_UNSUPPORTED, "'%s' has %lld elements for a batch of %lld", keys,
                                  LL(m.dims[0]), LL(x.dims[0]));
        ORTC_TRY(ortc_lift_write(l,
                                 "last = Reshape(total, [])\n"
                                 "places = Range(0, last, 1)\n"
                                 "whole = Cast(%s) to=7\n",
                                 keys));
        if (sums) ORTC_TRY(ortc_lift_write(l, "ends_row = Slice(whole, [0], [%lld], [0])", LL(x.dims[0])));
        if (begins)
            ORTC_TRY(ortc_lift_write(l, "ends_row, begins_row = Split(whole) axis=0 num_outputs=2\n"
                                        "ends = Unsqueeze(ends_row, [1])\n"
                                        "begins = Unsqueeze(begins_row, [1])\n"
                                        "before = Less(places, ends)\n"
                                        "behind = GreaterOrEqual(places, begins)\n"
                                        "kept = And(before, behind)"));
        else
            ORTC_TRY(ortc_lift_write(l,
                                     "ends = Unsqueeze(%s, [1])\n"
                                     "kept = Less(places, ends)",
                                     sums ? "ends_row" : "whole"));
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

ortc_status ortc_contrib_begun(ortc_lift *l)
{
    return ortc_lift_write(l, "begun_32 = Reshape(past_sequence_length, [-1])\n"
                              "begun = Cast(begun_32) to=7");
}

ortc_status ortc_contrib_put_back(ortc_lift *l, const char *to, const char *room, const char *grown)
{
    return ortc_lift_write(l,
                           "%s_rest = Slice(%s, total, [9223372036854775807], [2])\n"
                           "%s = Concat(%s, %s_rest) axis=2",
                           to, room, to, grown, to);
}

/* ---- Heads --------------------------------------------------------------------------------------------- */

ortc_status ortc_contrib_split_heads(ortc_lift *l, const char *to, const char *from, int64_t heads)
{
    return ortc_lift_write(l,
                           "%s_rows = Shape(%s) start=0 end=2\n"
                           "%s_shape = Concat(%s_rows, [%lld,-1]) axis=0\n"
                           "%s_apart = Reshape(%s, %s_shape)\n"
                           "%s = Transpose(%s_apart) perm=[0,2,1,3]",
                           to, from, to, to, LL(heads), to, from, to, to, to);
}

ortc_status ortc_contrib_append(ortc_lift *l, const char *past, const char *fresh, const char *present)
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

ortc_status ortc_contrib_take_apart(ortc_lift *l, ortc_trio *t)
{
    const ortc_port query = ortc_lift_look(l, "query"), cos = ortc_lift_look(l, "cos_cache");
    *t = (ortc_trio){"query", "key", "value", ortc_lift_int(l, "num_heads", 0),
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

ortc_status ortc_contrib_places(ortc_lift *l)
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

ortc_status ortc_contrib_turn(ortc_lift *l, ortc_trio *t, const char *where)
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

ortc_status ortc_contrib_split_all(ortc_lift *l, const ortc_trio *t)
{
    ORTC_TRY(ortc_contrib_split_heads(l, "q4", t->q, t->heads));
    ORTC_TRY(ortc_contrib_split_heads(l, "k4", t->k, t->groups));
    return ortc_contrib_split_heads(l, "v4", t->v, t->groups);
}

ortc_status ortc_contrib_normalise(ortc_lift *l, const char **name, const char *to, const char *weight,
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

/* ---- Caches -------------------------------------------------------------------------------------------- */

ortc_status ortc_contrib_read_cache(ortc_lift *l, const char *past, const char *scale, const char *kind,
                                    const char *width, const char *channels, ortc_kv_cache *out)
{
    const char *how = ortc_node_string(ortc_lift_node(l), kind, "NONE");
    const ortc_dtype t = ortc_lift_look(l, past).dtype;
    *out = (ortc_kv_cache){scale, strcmp(how, "PER_CHANNEL") ? "[1,1,1,1]" : channels, 0, t};
    if (!strcmp(how, "NONE")) return ORTC_OK;
    out->bits = t == ORTC_U8 ? 4 : 8;
    if (width) out->bits = ortc_lift_int(l, width, out->bits);
    if (!ortc_given(l, scale) || !t)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "a quantised cache needs '%s' and '%s'", past, scale);
    const bool known = out->bits == 8 ? t == ORTC_I8 || t == ORTC_F8E4M3FN : out->bits == 4 && t == ORTC_U8;
    return known ? ORTC_OK
                 : ortc_lift_fail(l, ORTC_UNSUPPORTED,
                                  "a cache of %lld bits in elements of %s is not supported", LL(out->bits),
                                  ortc_dtype_name(t));
}

ortc_status ortc_contrib_into_cache(ortc_lift *l, const ortc_kv_cache *c, const char *to, const char *from)
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

ortc_status ortc_contrib_out_of_cache(ortc_lift *l, const ortc_kv_cache *c, const char *to, const char *from)
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

/* ---- Sinks --------------------------------------------------------------------------------------------- */

ortc_status ortc_contrib_sink(ortc_lift *l, int64_t heads, bool added, const char *key, const char *value)
{
    const bool sink = ortc_given(l, "head_sink");
    ORTC_TRY(
        ortc_lift_write(l, added ? "scores = Identity(added)" : "scores = Where(open, 0:query, -inf:query)"));
    if (sink)
        ORTC_TRY(ortc_lift_write(l, "sinks = Reshape(head_sink, [1,-1,1,1])"));
    else
        ORTC_TRY(ortc_lift_write(l, "sinks = Reshape(0:query, [1,1,1,1])"));
    return ortc_lift_write(l,
                           "sink_lines = Shape(q4) start=0 end=1\n"
                           "sink_rows = Shape(q4) start=2 end=3\n"
                           "sink_keys = Shape(%s) start=2 end=3\n"
                           "sink_shape = Concat(sink_lines, [%lld], sink_rows, [1]) axis=0\n"
                           "sink_column = Expand(sinks, sink_shape)\n"
                           "score_shape = Concat(sink_lines, [%lld], sink_rows, sink_keys) axis=0\n"
                           "all_scores = Expand(scores, score_shape)\n"
                           "masked = Concat(all_scores, sink_column) axis=3\n"
                           "sunk_key = Pad(%s, [0,0,0,0,0,0,1,0])\n"
                           "sunk_value = Pad(%s, [0,0,0,0,0,0,1,0])",
                           key, LL(heads), LL(heads), key, value);
}
