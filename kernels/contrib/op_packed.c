/* kernels/contrib/op_packed.c: attention over sequences whose padding was taken out, by the padded form,
 * and over keys in pages.
 *
 * T tokens that are there, of B sequences of at most S. token_offset [B, S] names the places of the T
 * tokens in [B * S] first, then those of the padding. Tokens go to their places, attend there, and come
 * back.
 */
#include "kernels/contrib/attention.h"

/* `at` [T, 1]: the places of the tokens; `grid` [B, S]; `cells`, B * S. `tokens` is a vector of one
 * element, T. */
static ortc_status write_places(ortc_lift *l)
{
    return ortc_lift_write(l, "flat = Reshape(token_offset, [-1])\n"
                              "grid = Shape(token_offset)\n"
                              "cells = Shape(flat)\n"
                              "real = Slice(flat, [0], tokens, [0])\n"
                              "places = Cast(real) to=7\n"
                              "at = Unsqueeze(places, [1])");
}

/* `to` [B, S, width] from `from` [T, width] */
static ortc_status spread(ortc_lift *l, const char *to, const char *from)
{
    return ortc_lift_write(l,
                           "%s_width = Shape(%s) start=1\n"
                           "%s_size = Concat(cells, %s_width) axis=0\n"
                           "%s_empty = Expand(0:%s, %s_size)\n"
                           "%s_rows = ScatterND(%s_empty, at, %s)\n"
                           "%s_shape = Concat(grid, %s_width) axis=0\n"
                           "%s = Reshape(%s_rows, %s_shape)",
                           to, from, to, to, to, from, to, to, to, from, to, to, to, to, to);
}

/* The tokens of `from` [B, S, width] */
static ortc_status gather(ortc_lift *l, const char *to, const char *from)
{
    return ortc_lift_write(l,
                           "back_width = Shape(%s) start=2\n"
                           "back_size = Concat(cells, back_width) axis=0\n"
                           "back_rows = Reshape(%s, back_size)\n"
                           "%s = Gather(back_rows, places) axis=0",
                           from, from, to);
}

/* output from `pq`, `pk` and `pv` [T, width] */
static ortc_status attend(ortc_lift *l, const char *query)
{
    const int64_t heads = ortc_lift_int(l, "num_heads", 0);
    const float factor = ortc_node_float(ortc_lift_node(l), "scale", 0);
    char scale[40] = "";
    if (factor != 0) snprintf(scale, sizeof scale, " scale=%.9g", (double)factor);
    ORTC_TRY(write_places(l));
    ORTC_TRY(spread(l, "q", "pq"));
    ORTC_TRY(spread(l, "k", "pk"));
    ORTC_TRY(spread(l, "v", "pv"));
    ORTC_TRY(ortc_lift_write(l, "sums = Cast(cumulative_sequence_length) to=7\n"
                                "starts = Slice(sums, [0], [-1], [0])\n"
                                "ends = Slice(sums, [1], [9223372036854775807], [0])\n"
                                "row = Sub(ends, starts)\n"
                                "lengths = Unsqueeze(row, [1,2,3])\n"
                                "longest = Slice(grid, [1], [2], [0])\n"
                                "last = Reshape(longest, [])\n"
                                "keys = Range(0, last, 1)\n"
                                "open = Less(keys, lengths)"));
    if (ortc_given(l, "attention_bias"))
        ORTC_TRY(ortc_lift_write(l, "mask = Where(open, attention_bias, -inf:%s)", query));
    ORTC_TRY(ortc_lift_write(l, "mixed = Attention(q, k, v, %s) q_num_heads=%lld kv_num_heads=%lld%s",
                             ortc_given(l, "attention_bias") ? "mask" : "open", LL(heads), LL(heads), scale));
    return gather(l, "output", "mixed");
}

ortc_status ortc_contrib_packed_attention(ortc_lift *l)
{
    size_t count;
    const int64_t *sizes = ortc_node_ints(ortc_lift_node(l), "qkv_hidden_sizes", &count);
    ORTC_TRY(ortc_lift_write(l, "product = MatMul(input, weights)\n"
                                "qkv = Add(product, bias)\n"
                                "tokens = Shape(input) start=0 end=1"));
    if (count == 3)
        ORTC_TRY(ortc_lift_write(l, "pq, pk, pv = Split(qkv, [%lld,%lld,%lld]) axis=1", LL(sizes[0]),
                                 LL(sizes[1]), LL(sizes[2])));
    else
        ORTC_TRY(ortc_lift_write(l, "pq, pk, pv = Split(qkv) axis=1 num_outputs=3"));
    return attend(l, "input");
}

ortc_status ortc_contrib_packed_multi_head_attention(ortc_lift *l)
{
    const bool packed = !ortc_given(l, "key"), bias = ortc_given(l, "bias");
    const char *q = "query", *k = "key", *v = "value";
    ORTC_TRY(ortc_lift_write(l, "tokens = Shape(query) start=0 end=1"));
    if (packed) { /* [T, N, 3, H] */
        ORTC_TRY(ortc_lift_write(l, "q_part, k_part, v_part = Split(query) axis=2 num_outputs=3\n"
                                    "q_flat = Reshape(q_part, [0,-1])\n"
                                    "k_flat = Reshape(k_part, [0,-1])\n"
                                    "v_flat = Reshape(v_part, [0,-1])"));
        q = "q_flat", k = "k_flat", v = "v_flat";
    }
    if (bias)
        ORTC_TRY(ortc_lift_write(l,
                                 "width = Shape(%s) start=1\n"
                                 "double = Add(width, width)\n"
                                 "bias_q = Slice(bias, [0], width)\n"
                                 "bias_k = Slice(bias, width, double)\n"
                                 "bias_v = Slice(bias, double, [9223372036854775807])\n"
                                 "pq = Add(%s, bias_q)\n"
                                 "pk = Add(%s, bias_k)\n"
                                 "pv = Add(%s, bias_v)",
                                 q, q, k, v));
    else
        ORTC_TRY(ortc_lift_write(l,
                                 "pq = Identity(%s)\n"
                                 "pk = Identity(%s)\n"
                                 "pv = Identity(%s)",
                                 q, k, v));
    return attend(l, "query");
}

ortc_status ortc_contrib_spread(ortc_lift *l, const char *to, const char *from)
{
    ORTC_TRY(ortc_lift_write(l, "tokens = Shape(%s) start=0 end=1", from));
    ORTC_TRY(write_places(l));
    return spread(l, to, from);
}

ortc_status ortc_contrib_restore_padding(ortc_lift *l) { return ortc_contrib_spread(l, "output", "input"); }

/* How many tokens there are is known when it has run. */
ortc_status ortc_contrib_remove_padding(ortc_lift *l)
{
    const bool sums = ortc_wanted(l, 2), most = ortc_wanted(l, 3);
    ORTC_TRY(ortc_lift_write(l, "counts = Cast(sequence_token_count) to=7\n"
                                "tall = Unsqueeze(counts, [1])\n"
                                "longest = Shape(input) start=1 end=2\n"
                                "last = Reshape(longest, [])\n"
                                "columns = Range(0, last, 1)\n"
                                "there = Less(columns, tall)\n"
                                "missing = Not(there)\n"
                                "there_flat = Reshape(there, [-1])\n"
                                "missing_flat = Reshape(missing, [-1])\n"
                                "grid = Shape(there)\n"
                                "there_at = NonZero(there_flat)\n"
                                "missing_at = NonZero(missing_flat)\n"
                                "order = Concat(there_at, missing_at) axis=1\n"
                                "offsets = Reshape(order, grid)\n"
                                "token_offset = Cast(offsets) to=6\n"
                                "width = Shape(input) start=2\n"
                                "rows_shape = Concat([-1], width) axis=0\n"
                                "rows = Reshape(input, rows_shape)\n"
                                "row = Reshape(there_at, [-1])\n"
                                "output = Gather(rows, row) axis=0"));
    if (sums)
        ORTC_TRY(ortc_lift_write(l, "running = CumSum(sequence_token_count, 0)\n"
                                    "cumulated_seq_len = Concat([0]:i32, running) axis=0"));
    return most ? ortc_lift_write(l, "max_seq_len = ReduceMax(sequence_token_count, [0]) keepdims=1")
                : ORTC_OK;
}

/* ---- PagedAttention ------------------------------------------------------------------------------------ */

/* `seq` and `pos` [T]: the sequence of each token, and where it stands there, its past included. */
static ortc_status write_sequences(ortc_lift *l)
{
    return ortc_lift_write(l, "sums = Cast(cumulative_sequence_length) to=7\n"
                              "starts = Slice(sums, [0], [-1], [0])\n"
                              "ends = Slice(sums, [1], [9223372036854775807], [0])\n"
                              "lengths = Sub(ends, starts)\n"
                              "past = Cast(past_seqlens) to=7\n"
                              "tokens = Shape(query) start=0 end=1\n"
                              "count = Reshape(tokens, [])\n"
                              "token = Range(0, count, 1)\n"
                              "token_tall = Unsqueeze(token, [1])\n"
                              "behind = GreaterOrEqual(token_tall, ends)\n"
                              "behind_count = Cast(behind) to=7\n"
                              "seq = ReduceSum(behind_count, [1]) keepdims=0\n"
                              "start_of = Gather(starts, seq)\n"
                              "past_of = Gather(past, seq)\n"
                              "own = Sub(token, start_of)\n"
                              "pos = Add(own, past_of)\n"
                              "table = Cast(block_table) to=7\n"
                              "block_size = Shape(key_cache) start=1 end=2");
}

/* `to`, the cache with the tokens `fresh` [T, G * H] at `slot` [T, 1], and `pages` [B, L, G, H], what
 * every sequence has there. */
static ortc_status write_pages(ortc_lift *l, const char *cache, const char *fresh, const char *to,
                               const char *pages)
{
    return ortc_lift_write(l,
                           "%s_shape = Shape(%s)\n"
                           "%s_row = Shape(%s) start=2\n"
                           "%s_flat = Concat([-1], %s_row) axis=0\n"
                           "%s_rows = Reshape(%s, %s_flat)\n"
                           "%s_new = Reshape(%s, %s_flat)\n"
                           "%s_typed = Cast(%s_new) to=@%s\n"
                           "%s_written = ScatterND(%s_rows, slot, %s_typed)\n"
                           "%s = Reshape(%s_written, %s_shape)\n"
                           "%s_blocks = Gather(%s, table_safe) axis=0\n"
                           "%s_lines = Concat(table_lines, [-1], %s_row) axis=0\n"
                           "%s = Reshape(%s_blocks, %s_lines)",
                           to, cache, to, cache, to, to, to, cache, to, to, fresh, to, to, to, cache, to, to,
                           to, to, to, to, to, to, to, to, pages, to, to);
}

ortc_status ortc_contrib_paged_attention(ortc_lift *l)
{
    static const char *const later[] = {"head_sink", "k_scale", "v_scale", "q_norm_weight", "k_norm_weight"};
    const int64_t heads = ortc_lift_int(l, "num_heads", 0), groups = ortc_lift_int(l, "kv_num_heads", 0),
                  window = ortc_lift_int(l, "local_window_size", -1);
    const ortc_port query = ortc_lift_look(l, "query"), cos = ortc_lift_look(l, "cos_cache");
    const float factor = ortc_node_float(ortc_lift_node(l), "scale", 0);
    const char *q = "query", *k = "key", *v = "value";
    char scale[40] = "";
    if (factor != 0) snprintf(scale, sizeof scale, " scale=%.9g", (double)factor);
    for (size_t i = 0; i < sizeof later / sizeof *later; i++)
        if (ortc_given(l, later[i]))
            return ortc_lift_fail(l, ORTC_UNSUPPORTED, "input '%s' is not supported", later[i]);
    if (!ortc_given(l, "value_cache") || ortc_lift_int(l, "rotary_offset", 0))
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "a latent cache and rotary_offset are not supported");
    if (heads < 1 || groups < 1 || heads > INT32_MAX || groups > INT32_MAX || heads % groups)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "there are %lld heads, and %lld of keys", LL(heads),
                              LL(groups));
    ORTC_TRY(write_sequences(l));
    if (!ortc_given(l, "key")) {
        if (query.rank != 2 || query.dims[1] < 0 || query.dims[1] % (heads + 2 * groups))
            return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the size of a head must be known");
        const int64_t size = query.dims[1] / (heads + 2 * groups);
        ORTC_TRY(ortc_lift_write(l, "q, k, v = Split(query, [%lld,%lld,%lld]) axis=1", LL(heads * size),
                                 LL(groups * size), LL(groups * size)));
        q = "q", k = "k", v = "v";
    }
    if (ortc_lift_int(l, "do_rotary", 0)) {
        const long long turned = cos.rank == 2 && cos.dims[1] > 0 && cos.dims[1] < INT32_MAX
                                     ? LL(2 * cos.dims[1])
                                     : 0;
        const int interleaved = ortc_lift_int(l, "rotary_interleaved", 0) != 0;
        ORTC_TRY(ortc_lift_write(
            l,
            "pos_line = Unsqueeze(pos, [0])\n"
            "q_line = Unsqueeze(%s, [0])\n"
            "q_round = RotaryEmbedding(q_line, cos_cache, sin_cache, pos_line) num_heads=%lld "
            "rotary_embedding_dim=%lld interleaved=%d\n"
            "q_turned = Squeeze(q_round, [0])\n"
            "k_line = Unsqueeze(%s, [0])\n"
            "k_round = RotaryEmbedding(k_line, cos_cache, sin_cache, pos_line) num_heads=%lld "
            "rotary_embedding_dim=%lld interleaved=%d\n"
            "k_turned = Squeeze(k_round, [0])",
            q, LL(heads), turned, interleaved, k, LL(groups), turned, interleaved));
        q = "q_turned", k = "k_turned";
    }
    if (ortc_given(l, "slot_mapping"))
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "input 'slot_mapping' is not supported");
    ORTC_TRY(ortc_lift_write(l, "block_at = Div(pos, block_size)\n"
                                "in_block = Mod(pos, block_size)\n"
                                "seq_tall = Unsqueeze(seq, [1])\n"
                                "block_tall = Unsqueeze(block_at, [1])\n"
                                "place = Concat(seq_tall, block_tall) axis=1\n"
                                "block = GatherND(table, place)\n"
                                "first_slot = Mul(block, block_size)\n"
                                "slot_row = Add(first_slot, in_block)\n"
                                "slot = Unsqueeze(slot_row, [1])\n"
                                "table_safe = Max(table, 0)\n"
                                "table_lines = Shape(table) start=0 end=1"));
    ORTC_TRY(write_pages(l, "key_cache", k, "keys_kept", "key_pages"));
    ORTC_TRY(write_pages(l, "value_cache", v, "values_kept", "value_pages"));
    if (ortc_wanted(l, 1)) ORTC_TRY(ortc_lift_write(l, "key_cache_out = Identity(keys_kept)"));
    if (ortc_wanted(l, 2)) ORTC_TRY(ortc_lift_write(l, "value_cache_out = Identity(values_kept)"));
    /* queries in a grid of sequences by the longest of them; what is too much is some other's query, and
     * dropped */
    ORTC_TRY(ortc_lift_write(l,
                             "longest = ReduceMax(lengths, [0]) keepdims=0\n"
                             "column = Range(0, longest, 1)\n"
                             "start_tall = Unsqueeze(starts, [1])\n"
                             "index = Add(start_tall, column)\n"
                             "most = Sub(count, 1)\n"
                             "index_safe = Min(index, most)\n"
                             "grid = Gather(%s, index_safe) axis=0\n"
                             "grid_split = Reshape(grid, [0,0,%lld,-1])\n"
                             "q4 = Transpose(grid_split) perm=[0,2,1,3]\n"
                             "k4 = Transpose(key_pages) perm=[0,2,1,3]\n"
                             "v4 = Transpose(value_pages) perm=[0,2,1,3]\n"
                             "pages = Shape(k4) start=2 end=3\n"
                             "last = Reshape(pages, [])\n"
                             "key_at = Range(0, last, 1)\n"
                             "past_tall = Unsqueeze(past, [1])\n"
                             "here_row = Add(past_tall, column)\n"
                             "here = Unsqueeze(here_row, [1,3])\n"
                             "all_of = Add(past, lengths)\n"
                             "valid = Unsqueeze(all_of, [1,2,3])",
                             q, LL(heads)));
    if (ortc_lift_int(l, "is_causal", 1))
        ORTC_TRY(ortc_lift_write(l, "seen = LessOrEqual(key_at, here)"));
    else
        ORTC_TRY(ortc_lift_write(l, "seen_once = Less(key_at, valid)\n"
                                    "everywhere = GreaterOrEqual(here, 0)\n"
                                    "seen = And(seen_once, everywhere)"));
    if (window > 0)
        ORTC_TRY(ortc_lift_write(l,
                                 "edge = Sub(here, %lld)\n"
                                 "near = Greater(key_at, edge)\n"
                                 "open = And(seen, near)",
                                 LL(window)));
    else
        ORTC_TRY(ortc_lift_write(l, "open = Identity(seen)"));
    return ortc_lift_write(l,
                           "mixed = Attention(q4, k4, v4, open) softcap=%.9g%s\n"
                           "turned_back = Transpose(mixed) perm=[0,2,1,3]\n"
                           "flat_out = Reshape(turned_back, [0,0,-1])\n"
                           "out_width = Shape(flat_out) start=2\n"
                           "out_shape = Concat([-1], out_width) axis=0\n"
                           "out_rows = Reshape(flat_out, out_shape)\n"
                           "line_start = Mul(seq, longest)\n"
                           "row_of = Add(line_start, own)\n"
                           "output = Gather(out_rows, row_of) axis=0",
                           (double)ortc_node_float(ortc_lift_node(l), "softcap", 0), scale);
}
