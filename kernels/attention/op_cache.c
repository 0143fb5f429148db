/* kernels/attention/op_cache.c: shapes of what keeps something from one step to the next: TensorScatter,
 * LinearAttention, CausalConvWithState. */
#include "kernels/attention/attention.h"

ortc_status ortc_infer_tensor_scatter(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ortc_port cache = ortc_infer_in(c, 0), update = ortc_infer_in(c, 1), at = ortc_infer_in(c, 2);
    const char *mode = ortc_node_string(n, "mode", "linear");
    int32_t axis = 0;
    ortc_dim same;
    if (strcmp(mode, "linear") != 0 && strcmp(mode, "circular") != 0)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "attribute mode is '%s', expected linear or circular",
                               mode);
    if (cache.rank < 0) return ortc_infer_like(c, 0, 0);
    ORTC_TRY(ortc_infer_axis(c, ortc_node_int(n, "axis", -2), cache.rank, &axis));
    if (axis == 0) return ortc_infer_fail(c, ORTC_INVALID_MODEL, "axis 0 is the batch");
    if (update.rank >= 0 && update.rank != cache.rank)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "update has rank %d, the cache %d", update.rank,
                               cache.rank);
    for (int32_t d = 0; d < update.rank; d++) {
        const ortc_dim have = update.dims[d], room = cache.dims[d];
        if (have >= 0 && room >= 0 && (d == axis ? have > room : have != room))
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                                   "update has %lld elements in dim %d, the cache %lld", (long long)have, d,
                                   (long long)room);
    }
    if (at.rank >= 0 && at.rank != 1)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "write_indices has rank %d, expected one index per sample", at.rank);
    if (at.rank == 1)
        ORTC_TRY(
            ortc_infer_same(c, "batch of the cache and of write_indices", cache.dims[0], at.dims[0], &same));
    return ortc_infer_like(c, 0, 0);
}

/* [B, T, heads * size] */
static ortc_status read_packed(ortc_infer *c, uint32_t port, const char *name, int64_t heads, ortc_dim *batch,
                               ortc_dim *length, ortc_dim *size)
{
    const ortc_port p = ortc_infer_in(c, port);
    if (p.rank < 0) return ORTC_OK;
    if (p.rank != 3)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "%s has rank %d, expected [batch, length, heads * size]", name, p.rank);
    if (p.dims[2] >= 0 && p.dims[2] % heads != 0)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "%s has %lld elements in its last dim, which are not %lld equal heads", name,
                               (long long)p.dims[2], (long long)heads);
    ORTC_TRY(ortc_infer_same(c, "batch of the inputs", *batch, p.dims[0], batch));
    ORTC_TRY(ortc_infer_same(c, "length of the inputs", *length, p.dims[1], length));
    return ortc_infer_same(c, "elements of a head in query and key", *size, ortc_dim_div(c, p.dims[2], heads),
                           size);
}

/* decay and beta: wanted by the rule or not allowed; their last dim is one of two. */
static ortc_status check_gate(ortc_infer *c, uint32_t port, const char *name, const char *rule, bool wanted,
                              ortc_dim batch, ortc_dim length, ortc_dim one, ortc_dim other)
{
    const ortc_port p = ortc_infer_in(c, port);
    ortc_dim same;
    if (wanted != (p.type != NULL))
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "update_rule '%s' %s input %s", rule,
                               wanted ? "needs" : "has no", name);
    if (p.rank < 0) return ORTC_OK;
    if (p.rank != 3)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "%s has rank %d, expected 3", name, p.rank);
    ORTC_TRY(ortc_infer_same(c, "batch of the inputs", batch, p.dims[0], &same));
    ORTC_TRY(ortc_infer_same(c, "length of the inputs", length, p.dims[1], &same));
    if (p.dims[2] >= 0 && p.dims[2] != one && other >= 0 && p.dims[2] != other)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "%s has %lld elements in its last dim, expected %lld or %lld", name,
                               (long long)p.dims[2], (long long)one, (long long)other);
    return ORTC_OK;
}

ortc_status ortc_infer_linear_attention(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ortc_port q = ortc_infer_in(c, 0), past = ortc_infer_in(c, 3);
    const int64_t q_heads = ortc_node_int(n, "q_num_heads", 0),
                  kv_heads = ortc_node_int(n, "kv_num_heads", 0);
    const char *rule = ortc_node_string(n, "update_rule", "gated_delta");
    const bool gated = !strncmp(rule, "gated", 5), delta = strstr(rule, "delta") != NULL;
    ortc_dim batch = ORTC_DIM_UNKNOWN, length = ORTC_DIM_UNKNOWN, size = ORTC_DIM_UNKNOWN,
             value_size = ORTC_DIM_UNKNOWN;
    if (strcmp(rule, "linear") != 0 && strcmp(rule, "gated") != 0 && strcmp(rule, "delta") != 0 &&
        strcmp(rule, "gated_delta") != 0)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL,
                               "update_rule is '%s', expected linear, gated, delta or gated_delta", rule);
    if (q_heads < 1 || kv_heads < 1 || q_heads % kv_heads != 0)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL,
                               "%lld heads of query are not a multiple of %lld heads of key",
                               (long long)q_heads, (long long)kv_heads);
    ORTC_TRY(read_packed(c, 0, "query", q_heads, &batch, &length, &size));
    ORTC_TRY(read_packed(c, 1, "key", kv_heads, &batch, &length, &size));
    ORTC_TRY(read_packed(c, 2, "value", kv_heads, &batch, &length, &value_size));
    ORTC_TRY(
        check_gate(c, 4, "decay", rule, gated, batch, length, kv_heads, ortc_dim_mul(c, kv_heads, size)));
    ORTC_TRY(check_gate(c, 5, "beta", rule, delta, batch, length, kv_heads, 1));
    const ortc_dim y[3] = {batch, length, ortc_dim_mul(c, q_heads, value_size)},
                   state[4] = {batch, kv_heads, size, value_size};
    if (past.rank >= 0 && past.rank != 4)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "past_state has rank %d, expected 4", past.rank);
    for (int32_t d = 0; d < past.rank; d++)
        if (past.dims[d] >= 0 && state[d] >= 0 && past.dims[d] != state[d])
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                                   "past_state has %lld elements in dim %d, expected %lld",
                                   (long long)past.dims[d], d, (long long)state[d]);
    ORTC_TRY(ortc_infer_out(c, 0, q.dtype, 3, y));
    return ortc_node_n_out(n) > 1 ? ortc_infer_out(c, 1, past.type ? past.dtype : q.dtype, 4, state)
                                  : ORTC_OK;
}

ortc_status ortc_infer_causal_conv(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ortc_port x = ortc_infer_in(c, 0), w = ortc_infer_in(c, 1), bias = ortc_infer_in(c, 2),
                    past = ortc_infer_in(c, 3);
    const char *activation = ortc_node_string(n, "activation", "none");
    if (strcmp(activation, "none") != 0 && strcmp(activation, "silu") != 0 &&
        strcmp(activation, "swish") != 0)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "activation is '%s', expected none, silu or swish",
                               activation);
    if ((x.rank >= 0 && x.rank != 3) || (w.rank >= 0 && w.rank != 3) || (bias.rank >= 0 && bias.rank != 1) ||
        (past.rank >= 0 && past.rank != 3))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "input, weight, bias and past_state have ranks %d, %d, %d and %d, "
                               "expected 3, 3, 1 and 3",
                               x.rank, w.rank, bias.rank, past.rank);
    ortc_dim batch = x.rank < 0 ? ORTC_DIM_UNKNOWN : x.dims[0],
             channels = x.rank < 0 ? ORTC_DIM_UNKNOWN : x.dims[1];
    ortc_dim before = ORTC_DIM_UNKNOWN;
    if (w.rank == 3) {
        ORTC_TRY(ortc_infer_same(c, "channels of input and weight", channels, w.dims[0], &channels));
        if (w.dims[1] >= 0 && w.dims[1] != 1)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "weight has %lld elements in dim 1, expected 1",
                                   (long long)w.dims[1]);
        if (w.dims[2] == 0) return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "weight has no elements in dim 2");
        before = ortc_dim_sub(c, w.dims[2], 1);
    }
    if (bias.rank == 1)
        ORTC_TRY(ortc_infer_same(c, "channels of input and bias", channels, bias.dims[0], &channels));
    if (past.rank == 3) {
        ORTC_TRY(ortc_infer_same(c, "batch of input and past_state", batch, past.dims[0], &batch));
        ORTC_TRY(ortc_infer_same(c, "channels of input and past_state", channels, past.dims[1], &channels));
        ORTC_TRY(ortc_infer_same(c, "length of past_state and weight - 1", before, past.dims[2], &before));
    }
    ORTC_TRY(ortc_infer_like(c, 0, 0));
    const ortc_dim state[3] = {batch, channels, before};
    return ortc_node_n_out(n) > 1 ? ortc_infer_out(c, 1, x.dtype, 3, state) : ORTC_OK;
}
