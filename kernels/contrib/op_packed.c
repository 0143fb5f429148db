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

/* `slot` [T, 1]: which row of the cache every token becomes. Where the node says so, -1 is none: the row
 * behind the last, which is taken off again. */
static ortc_status write_slots(ortc_lift *l)
{
    ORTC_TRY(ortc_lift_write(l, "table_safe = Max(table, 0)\n"
                                "table_lines = Shape(table) start=0 end=1"));
    if (ortc_given(l, "slot_mapping"))
        return ortc_lift_write(l, "blocks = Shape(key_cache) start=0 end=1\n"
                                  "slot_count = Mul(blocks, block_size)\n"
                                  "told_slot = Cast(slot_mapping) to=7\n"
                                  "no_slot = Less(told_slot, 0)\n"
                                  "slot_row = Where(no_slot, slot_count, told_slot)\n"
                                  "slot = Unsqueeze(slot_row, [1])");
    return ortc_lift_write(l, "block_at = Div(pos, block_size)\n"
                              "in_block = Mod(pos, block_size)\n"
                              "seq_tall = Unsqueeze(seq, [1])\n"
                              "block_tall = Unsqueeze(block_at, [1])\n"
                              "place = Concat(seq_tall, block_tall) axis=1\n"
                              "block = GatherND(table, place)\n"
                              "first_slot = Mul(block, block_size)\n"
                              "slot_row = Add(first_slot, in_block)\n"
                              "slot = Unsqueeze(slot_row, [1])");
}

/* `to`, the cache with the tokens `fresh` [1, T, G * H] at `slot`, and `pages` [B, L, G, H], what every
 * sequence has there. */
static ortc_status write_pages(ortc_lift *l, const ortc_kv_cache *c, const char *cache, const char *fresh,
                               const char *to, const char *pages, int64_t groups)
{
    const bool skips = ortc_given(l, "slot_mapping");
    const bool bytes = c->type == ORTC_F8E4M3FN;
    const char *const back = bytes ? "BitCast" : "Identity", *const type = bytes ? " to=17" : "";
    char kept[24], apart[24], raw[24];
    snprintf(kept, sizeof kept, "%s_kept", pages);
    snprintf(apart, sizeof apart, "%s_apart", pages);
    ORTC_TRY(ortc_lift_write(l, "%s = Reshape(%s, [0,0,%lld,-1])", apart, fresh, LL(groups)));
    ORTC_TRY(ortc_contrib_into_cache(l, c, kept, apart));
    if (bytes) { /* as bytes, which ScatterND takes */
        ORTC_TRY(ortc_lift_write(l,
                                 "%s_raw = BitCast(%s) to=2\n"
                                 "%s_bytes = BitCast(%s) to=2",
                                 pages, cache, pages, kept));
        snprintf(raw, sizeof raw, "%s_raw", pages);
        snprintf(kept, sizeof kept, "%s_bytes", pages);
        cache = raw;
    }
    ORTC_TRY(ortc_lift_write(l,
                             "%s_shape = Shape(%s)\n"
                             "%s_row = Shape(%s) start=2\n"
                             "%s_flat = Concat([-1], %s_row) axis=0\n"
                             "%s_rows = Reshape(%s, %s_flat)\n"
                             "%s_new = Reshape(%s, %s_flat)\n"
                             "%s_typed = Cast(%s_new) to=@%s",
                             to, cache, to, cache, to, to, to, cache, to, to, kept, to, to, to, cache));
    ORTC_TRY(skips ? ortc_lift_write(l,
                                     "%s_room = Pad(%s_rows, [0,1], _, [0])\n"
                                     "%s_all = ScatterND(%s_room, slot, %s_typed)\n"
                                     "%s_written = Slice(%s_all, [0], [-1], [0])",
                                     to, to, to, to, to, to, to)
                   : ortc_lift_write(l, "%s_written = ScatterND(%s_rows, slot, %s_typed)", to, to, to));
    ORTC_TRY(ortc_lift_write(l,
                             "%s_whole = Reshape(%s_written, %s_shape)\n"
                             "%s_blocks = Gather(%s_whole, table_safe) axis=0\n"
                             "%s_lines = Concat(table_lines, [-1], %s_row) axis=0\n"
                             "%s_read = Reshape(%s_blocks, %s_lines)\n"
                             "%s = %s(%s_whole)%s\n"
                             "%s_told = %s(%s_read)%s",
                             to, to, to, to, to, to, to, to, to, to, to, back, to, type, to, back, to, type));
    snprintf(kept, sizeof kept, "%s_told", to);
    return ortc_contrib_out_of_cache(l, c, pages, kept);
}

/* Channels of every head from `offset` on, turned. */
static ortc_status turn_behind(ortc_lift *l, const char **name, const char *to, int64_t heads, int64_t offset)
{
    const ortc_port cos = ortc_lift_look(l, "cos_cache");
    char apart[24];
    snprintf(apart, sizeof apart, "%s_apart", to);
    ORTC_TRY(ortc_contrib_split_heads(l, apart, *name, heads));
    *name = to;
    return ortc_lift_write(l,
                           "%s_left = Slice(%s, [0], [%lld], [3])\n"
                           "%s_right = Slice(%s, [%lld], [9223372036854775807], [3])\n"
                           "%s_round = RotaryEmbedding(%s_right, cos_cache, sin_cache, pos_line) "
                           "rotary_embedding_dim=%lld interleaved=%d\n"
                           "%s_both = Concat(%s_left, %s_round) axis=3\n"
                           "%s_back = Transpose(%s_both) perm=[0,2,1,3]\n"
                           "%s = Reshape(%s_back, [0,0,-1])",
                           to, apart, LL(offset), to, apart, LL(offset), to, to,
                           cos.rank == 2 && cos.dims[1] > 0 && cos.dims[1] < INT32_MAX ? LL(2 * cos.dims[1])
                                                                                       : 0,
                           ortc_lift_int(l, "rotary_interleaved", 0) != 0, to, to, to, to, to, to, to);
}

/* Queries, keys and values [1, T, width] of the new tokens, normalised and turned. One cache (`latent`) has
 * keys, of which the values are a part. */
static ortc_status write_tokens(ortc_lift *l, ortc_trio *t, bool latent)
{
    const ortc_port query = ortc_lift_look(l, "query");
    const int64_t heads = t->heads, groups = t->groups, offset = ortc_lift_int(l, "rotary_offset", 0);
    t->q = "q", t->k = "k", t->v = "v";
    if (!ortc_given(l, "key")) {
        if (latent || query.rank != 2 || query.dims[1] < 0 || query.dims[1] % (heads + 2 * groups))
            return ortc_lift_fail(l, ORTC_UNSUPPORTED,
                                  "the size of a head must be known, keys of a latent cache given");
        const int64_t size = query.dims[1] / (heads + 2 * groups);
        ORTC_TRY(ortc_lift_write(l,
                                 "qkv = Unsqueeze(query, [0])\n"
                                 "q, k, v = Split(qkv, [%lld,%lld,%lld]) axis=2",
                                 LL(heads * size), LL(groups * size), LL(groups * size)));
    } else {
        ORTC_TRY(ortc_lift_write(l, "q = Unsqueeze(query, [0])\n"
                                    "k = Unsqueeze(key, [0])"));
        if (!latent) ORTC_TRY(ortc_lift_write(l, "v = Unsqueeze(value, [0])"));
    }
    if (ortc_given(l, "q_norm_weight"))
        ORTC_TRY(ortc_contrib_normalise(l, &t->q, "q_normed", "q_norm_weight", heads));
    if (ortc_given(l, "k_norm_weight"))
        ORTC_TRY(ortc_contrib_normalise(l, &t->k, "k_normed", "k_norm_weight", groups));
    if (!ortc_lift_int(l, "do_rotary", 0)) return ORTC_OK;
    ORTC_TRY(ortc_lift_write(l, "pos_line = Unsqueeze(pos, [0])"));
    if (!offset) return ortc_contrib_turn(l, t, "pos_line");
    ORTC_TRY(turn_behind(l, &t->q, "q_behind", heads, offset));
    return turn_behind(l, &t->k, "k_behind", groups, offset);
}

ortc_status ortc_contrib_paged_attention(ortc_lift *l)
{
    const bool latent = !strcmp(ortc_node_string(ortc_lift_node(l), "kv_cache_layout", "SEPARATE"), "LATENT"),
               sink = ortc_given(l, "head_sink");
    const int64_t heads = ortc_lift_int(l, "num_heads", 0), groups = ortc_lift_int(l, "kv_num_heads", 0),
                  window = ortc_lift_int(l, "local_window_size", -1),
                  size = ortc_lift_int(l, "v_head_size", 0);
    char scale[40], channels[40];
    ortc_trio t = {.heads = heads, .groups = groups};
    ortc_kv_cache keys, values;
    if (heads < 1 || groups < 1 || heads > INT32_MAX || groups > INT32_MAX || heads % groups)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "there are %lld heads, and %lld of keys", LL(heads),
                              LL(groups));
    if (latent == ortc_given(l, "value_cache") || (latent && (groups > 1 || ortc_given(l, "value"))))
        return ortc_lift_fail(l, ORTC_INVALID_MODEL,
                              "kv_cache_layout is %s, with %s value_cache and %lld heads of keys",
                              latent ? "LATENT" : "SEPARATE", latent ? "a value or" : "no", LL(groups));
    if (!strcmp(ortc_node_string(ortc_lift_node(l), "k_cache_dtype", ""), "float4e2m1") ||
        !strcmp(ortc_node_string(ortc_lift_node(l), "v_cache_dtype", ""), "float4e2m1"))
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "a cache of float4e2m1 is not supported");
    snprintf(channels, sizeof channels, "[1,1,%lld,-1]", LL(groups));
    ORTC_TRY(ortc_contrib_read_cache(l, "key_cache", "k_scale", "k_quant_type", NULL, channels, &keys));
    if (!latent)
        ORTC_TRY(
            ortc_contrib_read_cache(l, "value_cache", "v_scale", "v_quant_type", NULL, channels, &values));
    ORTC_TRY(write_sequences(l));
    ORTC_TRY(write_tokens(l, &t, latent));
    ORTC_TRY(write_slots(l));
    ORTC_TRY(write_pages(l, &keys, "key_cache", t.k, "keys_kept", "key_pages", groups));
    ORTC_TRY(latent ? ortc_lift_write(l, "value_pages = Slice(key_pages, [0], [%lld], [3])",
                                      size > 0 ? LL(size) : INT64_MAX)
                    : write_pages(l, &values, "value_cache", t.v, "values_kept", "value_pages", groups));
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
                             "token_rows = Squeeze(%s, [0])\n"
                             "grid = Gather(token_rows, index_safe) axis=0\n"
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
                             t.q, LL(heads)));
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
    if (sink) ORTC_TRY(ortc_contrib_sink(l, heads, false, "k4", "v4"));
    return ortc_lift_write(l,
                           "mixed = Attention(q4, %s, %s, %s) softcap=%.9g%s\n"
                           "turned_back = Transpose(mixed) perm=[0,2,1,3]\n"
                           "flat_out = Reshape(turned_back, [0,0,-1])\n"
                           "out_width = Shape(flat_out) start=2\n"
                           "out_shape = Concat([-1], out_width) axis=0\n"
                           "out_rows = Reshape(flat_out, out_shape)\n"
                           "line_start = Mul(seq, longest)\n"
                           "row_of = Add(line_start, own)\n"
                           "output = Gather(out_rows, row_of) axis=0",
                           sink ? "sunk_key" : "k4", sink ? "sunk_value" : "v4", sink ? "masked" : "open",
                           (double)ortc_node_float(ortc_lift_node(l), "softcap", 0),
                           ortc_contrib_scale(l, scale));
}
