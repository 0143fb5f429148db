/* kernels/contrib/op_group_query.c: GroupQueryAttention: heads that share keys, caches of integers, windows,
 * caches that slide, sinks. */
#include "kernels/contrib/attention.h"

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
                             "lines = Shape(query) start=0 end=1\n"
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

/* `added` from attention_bias, whose columns are places of the sequence, by the keys that are there. */
static ortc_status write_sliding_bias(ortc_lift *l, int64_t heads)
{
    ORTC_TRY(ortc_lift_write(l, "all_keys = Shape(cached_key) start=2 end=3"));
    if (!ortc_given(l, "attention_bias")) return ORTC_OK;
    return ortc_lift_write(l,
                           "bias_columns = Shape(attention_bias) start=3\n"
                           "bias_last = Sub(bias_columns, 1)\n"
                           "bias_at = Min(key_at, bias_last)\n"
                           "bias_at_wide = Unsqueeze(bias_at, [1,2])\n"
                           "bias_rows = Concat(lines, [%lld], tokens, [1]) axis=0\n"
                           "bias_shape = Concat(lines, [%lld], tokens, all_keys) axis=0\n"
                           "bias_all = Expand(attention_bias, bias_rows)\n"
                           "bias_from = Expand(bias_at_wide, bias_shape)\n"
                           "bias = GatherElements(bias_all, bias_from) axis=3\n"
                           "added = Where(open, bias, -inf:query)",
                           LL(heads), LL(heads));
}

/* output_qk by places of the sequence, as attention_bias has them; 0 where a token may not look. */
static ortc_status write_sliding_scores(ortc_lift *l, int64_t heads, int64_t window)
{
    return ortc_lift_write(l,
                           "place_count = Reshape(total, [])\n"
                           "place = Range(0, place_count, 1)\n"
                           "place_new = GreaterOrEqual(place, begins)\n"
                           "place_row = Sub(place, begins)\n"
                           "place_fresh = Add(place_row, capacity)\n"
                           "place_old = Sub(place, gone_before)\n"
                           "place_any = Where(place_new, place_fresh, place_old)\n"
                           "place_least = Max(place_any, 0)\n"
                           "place_from = Min(place_least, last_kept)\n"
                           "place_wide = Unsqueeze(place_from, [1,2])\n"
                           "place_shape = Concat(lines, [%lld], tokens, total) axis=0\n"
                           "place_all = Expand(place_wide, place_shape)\n"
                           "place_weights = GatherElements(all_weights, place_all) axis=3\n"
                           "place_seen = LessOrEqual(place, here)\n"
                           "place_near = Greater(place, edge)\n"
                           "place_open = And(place_seen, place_near)\n"
                           "place_heads = Unsqueeze(place_open, [1])\n"
                           "output_qk = Where(place_heads, place_weights, 0:query)",
                           LL(heads));
}

ortc_status ortc_contrib_group_query_attention(ortc_lift *l)
{
    const bool sink = ortc_given(l, "head_sink") || ortc_lift_int(l, "smooth_softmax", -1) == 1;
    const bool sliding = ortc_lift_int(l, "sliding_window_cache", 0) != 0;
    const int64_t window = ortc_lift_int(l, "local_window_size", -1);
    const float softcap = ortc_node_float(ortc_lift_node(l), "softcap", 0);
    char scale[40], channels[40];
    ortc_kv_cache keys, values;
    ortc_trio t;
    snprintf(channels, sizeof channels, "[1,%lld,1,-1]", LL(ortc_lift_int(l, "kv_num_heads", 0)));
    ORTC_TRY(ortc_contrib_read_cache(l, "past_key", "k_scale", "k_quant_type", "kv_cache_bit_width", channels,
                                     &keys));
    ORTC_TRY(ortc_contrib_read_cache(l, "past_value", "v_scale", "v_quant_type", "kv_cache_bit_width",
                                     channels, &values));
    if (sliding && (window < 1 || !ortc_given(l, "past_key")))
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "sliding_window_cache needs local_window_size and a past");
    ORTC_TRY(ortc_contrib_take_apart(l, &t));
    ORTC_TRY(ortc_lift_write(l, "last_ones = Cast(seqlens_k) to=7\n"
                                "last_row = Reshape(last_ones, [-1])\n"
                                "lengths = Add(last_row, 1)"));
    ORTC_TRY(ortc_contrib_places(l));
    if (ortc_given(l, "q_norm_weight"))
        ORTC_TRY(ortc_contrib_normalise(l, &t.q, "q_normed", "q_norm_weight", t.heads));
    if (ortc_given(l, "k_norm_weight"))
        ORTC_TRY(ortc_contrib_normalise(l, &t.k, "k_normed", "k_norm_weight", t.groups));
    if (ortc_lift_int(l, "do_rotary", 0))
        ORTC_TRY(ortc_contrib_turn(l, &t, ortc_given(l, "position_ids") ? "position_ids" : "places"));
    ORTC_TRY(ortc_contrib_split_all(l, &t));
    ORTC_TRY(ortc_contrib_into_cache(l, &keys, "k_kept", "k4"));
    ORTC_TRY(ortc_contrib_into_cache(l, &values, "v_kept", "v4"));
    if (sliding) {
        ORTC_TRY(write_sliding(l, window));
        ORTC_TRY(ortc_lift_write(l, "all_keys_kept = Concat(past_key, k_kept) axis=2\n"
                                    "all_values_kept = Concat(past_value, v_kept) axis=2"));
    } else {
        ORTC_TRY(ortc_contrib_append(l, "past_key", "k_kept", "all_keys_kept"));
        ORTC_TRY(ortc_contrib_append(l, "past_value", "v_kept", "all_values_kept"));
    }
    ORTC_TRY(ortc_contrib_out_of_cache(l, &keys, "cached_key", "all_keys_kept"));
    ORTC_TRY(ortc_contrib_out_of_cache(l, &values, "cached_value", "all_values_kept"));
    if (ortc_wanted(l, 1))
        ORTC_TRY(sliding ? slide(l, "present_key", "all_keys_kept")
                         : ortc_lift_write(l, "present_key = Identity(all_keys_kept)"));
    if (ortc_wanted(l, 2))
        ORTC_TRY(sliding ? slide(l, "present_value", "all_values_kept")
                         : ortc_lift_write(l, "present_value = Identity(all_values_kept)"));
    ORTC_TRY(sliding ? write_sliding_bias(l, t.heads) : write_window(l, window));
    if (sink)
        ORTC_TRY(
            ortc_contrib_sink(l, t.heads, ortc_given(l, "attention_bias"), "cached_key", "cached_value"));
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
                             ortc_contrib_scale(l, scale)));
    if (!ortc_wanted(l, 3)) return ORTC_OK; /* of the keys there are; 0 where a token may not look */
    if (sliding) return write_sliding_scores(l, t.heads, window);
    return ortc_lift_write(l, "some_weights = Slice(all_weights, [0], total, [3])\n"
                              "some_open = Slice(open, [0], total, [3])\n"
                              "output_qk = Where(some_open, some_weights, 0:query)");
}
