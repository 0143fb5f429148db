/* kernels/contrib/op_linear.c: LinearAttention and CausalConvWithState, which the standard has taken over,
 * with what it has not: states of the last tokens, dilation, channels last, several dims. */
#include "kernels/contrib/attention.h"

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

/* A depthwise convolution over what was kept and what is new, [B, C, .., L + S]: along the last of `ndim`
 * axes no token sees what comes later; along others it sees as much before as behind it, zeros at ends. */
static ortc_status causal_conv(ortc_lift *l, int64_t ndim, int64_t window, int64_t dilation, bool last)
{
    const ortc_port w = ortc_lift_look(l, "weight");
    const char *const activation = ortc_node_string(ortc_lift_node(l), "activation", "none"),
                      *past = window ? "past" : "past_state";
    const int axis = (int)ndim + 1;
    if (w.rank != axis + 1 || w.dims[0] < 1 || w.dims[axis] < 1 || w.dims[axis] > 65536 || dilation > 65536)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the shape of weight must be known, of %d dims", axis + 1);
    const int64_t channels = w.dims[0], length = (w.dims[axis] - 1) * dilation;
    char pads[96] = "", dilations[16] = "";
    for (int side = 0; side < 2; side++)
        for (int d = 2; d <= axis; d++) {
            if (d < axis && (w.dims[d] < 1 || w.dims[d] > 65536 || w.dims[d] % 2 == 0))
                return ortc_lift_fail(l, ORTC_UNSUPPORTED,
                                      "dim %d of weight must be known and odd: only the last axis is causal",
                                      d);
            if (!side && d < axis) strcat(dilations, "1,");
            snprintf(pads + strlen(pads), sizeof pads - strlen(pads), "%s%lld", *pads ? "," : "",
                     LL(d < axis ? w.dims[d] / 2 : 0));
        }
    ORTC_TRY(last ? ortc_lift_write(l,
                                    "rows = Reshape(input, [0,0,%lld])\n"
                                    "x = Transpose(rows) perm=[0,2,1]",
                                    LL(channels))
                  : ortc_lift_write(l, "x = Identity(input)"));
    if (!ortc_given(l, "past_state"))
        ORTC_TRY(ortc_lift_write(l, "all = Pad(x, [%lld,0], _, [%d])", LL(length), axis));
    else if (last)
        ORTC_TRY(ortc_lift_write(l,
                                 "past_rows = Reshape(%s, [0,0,%lld])\n"
                                 "past_turned = Transpose(past_rows) perm=[0,2,1]\n"
                                 "all = Concat(past_turned, x) axis=2",
                                 past, LL(channels)));
    else
        ORTC_TRY(ortc_lift_write(l, "all = Concat(%s, x) axis=%d", past, axis));
    ORTC_TRY(ortc_lift_write(l, "y = Conv(all, weight, bias) group=%lld dilations=[%s%lld] pads=[%s]",
                             LL(channels), dilations, LL(dilation), pads));
    ORTC_TRY(ortc_lift_write(l, strcmp(activation, "none") ? "z = Swish(y)" : "z = Identity(y)"));
    ORTC_TRY(last ? ortc_lift_write(l, "z_turned = Transpose(z) perm=[0,2,1]\n"
                                       "shape = Shape(input)\n"
                                       "output = Reshape(z_turned, shape)")
                  : ortc_lift_write(l, "output = Identity(z)"));
    if (!ortc_wanted(l, 1)) return ORTC_OK;
    ORTC_TRY(ortc_lift_write(l,
                             "tokens = Shape(x) start=%d\n"
                             "channel_axes = Shape(input) start=%d",
                             axis, last ? 2 : 1));
    for (int64_t j = 0; j < (window ? window : 1); j++) {
        char name[48] = "present_state", kept[32];
        if (window) snprintf(name, sizeof name, "slot_%lld", LL(j));
        snprintf(kept, sizeof kept, "part_%lld", LL(j));
        ORTC_TRY(ortc_lift_write(l,
                                 "at_%lld = Sub(tokens, %lld)\n"
                                 "after_%lld = Add(at_%lld, 1)\n"
                                 "begin_%lld = Max(after_%lld, [0])\n"
                                 "end_%lld = Add(begin_%lld, %lld)\n"
                                 "%s = Slice(all, begin_%lld, end_%lld, [%d])",
                                 LL(j), LL(window ? window - j : 1), LL(j), LL(j), LL(j), LL(j), LL(j), LL(j),
                                 LL(length), last ? kept : name, LL(j), LL(j), axis));
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
    const int64_t dilation = ortc_lift_int(l, "dilation", 1), ndim = ortc_lift_int(l, "ndim", 1);
    const bool last = ortc_lift_int(l, "channels_last", 0) != 0;
    int64_t window;
    if (ndim < 1 || ndim > 3 || (last && ndim > 1))
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "ndim is %lld, expected 1 to 3, or 1 with channels_last",
                              LL(ndim));
    if (dilation < 1) return ortc_lift_fail(l, ORTC_INVALID_MODEL, "dilation is %lld", LL(dilation));
    ORTC_TRY(read_window(l, &window));
    if (window || last || dilation > 1 || ndim > 1) return causal_conv(l, ndim, window, dilation, last);
    return ortc_lift_write(l, "output, %s = CausalConvWithState(input, weight, bias, past_state) &activation",
                           ortc_wanted(l, 1) ? "present_state" : "_");
}
