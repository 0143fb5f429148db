/* kernels/contrib/op_norm.c: normalisations that first add what skipped the layers before. */
#include "kernels/contrib/contrib.h"

#define EPSILON ((double)ortc_node_float(ortc_lift_node(l), "epsilon", 1e-12F))

/* inv_std_var of RMSNormalization along the last dims from `axis` on. */
static ortc_status write_inverse(ortc_lift *l, const char *of, int64_t axis)
{
    const ortc_port p = ortc_lift_look(l, of);
    char axes[ORTC_RANK_LIMIT * 4] = "-1";
    size_t n = 0;
    int32_t first = 0;
    if (p.rank < 0 && axis != -1)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the rank of %s must be known", of);
    if (p.rank >= 0 && !ortc_axis_of(axis, p.rank, &first))
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "axis %lld is outside of rank %d", (long long)axis,
                              p.rank);
    for (int32_t d = first; d < p.rank; d++)
        n += (size_t)snprintf(axes + n, sizeof axes - n, n ? ",%d" : "%d", d);
    return ortc_lift_write(l,
                           "whole = Cast(%s) to=%d\n"
                           "squares = Mul(whole, whole)\n"
                           "power = ReduceMean(squares, [%s])\n"
                           "lifted = Add(power, %.9g:power)\n"
                           "deviation = Sqrt(lifted)\n"
                           "inv_std_var = Reciprocal(deviation)",
                           of, p.dtype == ORTC_F64 ? ORTC_F64 : ORTC_F32, axes, EPSILON);
}

ortc_status ortc_contrib_simplified_layer_norm(ortc_lift *l)
{
    ORTC_TRY(ortc_lift_write(l, "Y = RMSNormalization(X, scale) &axis &epsilon"));
    return ortc_wanted(l, 1) ? write_inverse(l, "X", ortc_lift_int(l, "axis", -1)) : ORTC_OK;
}

/* `sum`, and the output that is it, where it is wanted. */
static ortc_status write_sum(ortc_lift *l, const char *wanted)
{
    if (ortc_given(l, "bias"))
        ORTC_TRY(ortc_lift_write(l, "shifted = Add(input, bias)\n"
                                    "sum = Add(shifted, skip)"));
    else
        ORTC_TRY(ortc_lift_write(l, "sum = Add(input, skip)"));
    return wanted ? ortc_lift_write(l, "%s = Identity(sum)", wanted) : ORTC_OK;
}

ortc_status ortc_contrib_skip_layer_norm(ortc_lift *l)
{
    ORTC_TRY(write_sum(l, ortc_wanted(l, 3) ? "input_skip_bias_sum" : NULL));
    return ortc_lift_write(l, "output, %s, %s = LayerNormalization(sum, gamma, beta) axis=-1 &epsilon",
                           ortc_wanted(l, 1) ? "mean" : "_", ortc_wanted(l, 2) ? "inv_std_var" : "_");
}

ortc_status ortc_contrib_skip_simplified_layer_norm(ortc_lift *l)
{
    ORTC_TRY(write_sum(l, ortc_wanted(l, 3) ? "input_skip_bias_sum" : NULL));
    ORTC_TRY(ortc_lift_write(l, "output = RMSNormalization(sum, gamma) axis=-1 &epsilon"));
    if (ortc_wanted(l, 1))
        ORTC_TRY(ortc_lift_write(l, "sum32 = Cast(sum) to=1\n"
                                    "mean = ReduceMean(sum32, [-1])"));
    return ortc_wanted(l, 2) ? write_inverse(l, "sum", -1) : ORTC_OK;
}

/* How many words of each line count. */
static ortc_status count_words(ortc_lift *l, const char *to)
{
    if (ortc_given(l, "mask"))
        return ortc_lift_write(l,
                               "counts = Equal(mask, 1:mask)\n"
                               "ones = Cast(counts) to=6\n"
                               "%s = ReduceSum(ones, [1]) keepdims=0",
                               to);
    return ortc_lift_write(l,
                           "lines = Shape(input_ids) start=0 end=1\n"
                           "%s = Expand(0:i32, lines)",
                           to);
}

/* The same of quantised tables: rows are read first, then become numbers. */
ortc_status ortc_contrib_qembed_layer_norm(ortc_lift *l)
{
    const bool segments = ortc_given(l, "segment_embedding") && ortc_given(l, "segment_ids");
    ORTC_TRY(ortc_lift_write(
        l, "word_rows = Gather(word_embedding_quant, input_ids)\n"
           "words = DequantizeLinear(word_rows, word_embedding_scale, word_embedding_zero_point)\n"
           "length = Shape(input_ids) start=1\n"
           "position_rows = Slice(position_embedding_quant, [0], length, [0])\n"
           "positions = DequantizeLinear(position_rows, position_embedding_scale, "
           "position_embedding_zero_point)\n"
           "gamma = DequantizeLinear(gamma_quant, gamma_scale, gamma_zero_point)\n"
           "beta = DequantizeLinear(beta_quant, beta_scale, beta_zero_point)"));
    ORTC_TRY(ortc_lift_write(l, "%s = Add(words, positions)", segments ? "placed" : "sum"));
    if (segments)
        ORTC_TRY(ortc_lift_write(l, "segment_rows = Gather(segment_embedding, segment_ids)\n"
                                    "segments = DequantizeLinear(segment_rows, segment_embedding_scale, "
                                    "segment_embedding_zero_point)\n"
                                    "sum = Add(placed, segments)"));
    ORTC_TRY(ortc_lift_write(l, "layernorm_out = LayerNormalization(sum, gamma, beta) axis=-1 &epsilon"));
    return ortc_wanted(l, 1) ? count_words(l, "mask_index_out") : ORTC_OK;
}

/* The sum of three embeddings, normalised. */
ortc_status ortc_contrib_embed_layer_norm(ortc_lift *l)
{
    ORTC_TRY(ortc_lift_write(l, "words = Gather(word_embedding, input_ids)"));
    if (ortc_given(l, "position_ids"))
        ORTC_TRY(ortc_lift_write(l, "positions = Gather(position_embedding, position_ids)"));
    else
        ORTC_TRY(ortc_lift_write(l, "length = Shape(input_ids) start=1\n"
                                    "positions = Slice(position_embedding, [0], length, [0])"));
    const bool segments = ortc_given(l, "segment_embedding") && ortc_given(l, "segment_ids");
    ORTC_TRY(ortc_lift_write(l, "%s = Add(words, positions)", segments ? "placed" : "sum"));
    if (segments)
        ORTC_TRY(ortc_lift_write(l, "segments = Gather(segment_embedding, segment_ids)\n"
                                    "sum = Add(placed, segments)"));
    ORTC_TRY(ortc_lift_write(l, "output = LayerNormalization(sum, gamma, beta) axis=-1 &epsilon"));
    if (ortc_wanted(l, 2)) ORTC_TRY(ortc_lift_write(l, "embedding_sum = Identity(sum)"));
    return ortc_wanted(l, 1) ? count_words(l, "mask_index") : ORTC_OK;
}

/* X [N, H, W, C], or channels first; of whatever came to stand in `name`. */
static ortc_status write_group_norm(ortc_lift *l, const char *name)
{
    const bool last = ortc_lift_int(l, "channels_last", 1) != 0,
               swish = ortc_lift_int(l, "activation", 0) != 0;
    const ortc_port x = ortc_lift_look(l, "X");
    if (last && x.rank != 4) return ortc_lift_fail(l, ORTC_UNSUPPORTED, "X must be known to have four dims");
    if (last) ORTC_TRY(ortc_lift_write(l, "planes = Transpose(%s) perm=[0,3,1,2]", name));
    ORTC_TRY(ortc_lift_write(l,
                             "weights = Cast(gamma) to=@X\n"
                             "shifts = Cast(beta) to=@X\n"
                             "normal = GroupNormalization(%s, weights, shifts) num_groups=%lld &epsilon",
                             last ? "planes" : name, (long long)ortc_lift_int(l, "groups", 0)));
    if (swish) ORTC_TRY(ortc_lift_write(l, "active = Swish(normal)"));
    return ortc_lift_write(l, last ? "Y = Transpose(%s) perm=[0,2,3,1]" : "Y = Identity(%s)",
                           swish ? "active" : "normal");
}

ortc_status ortc_contrib_group_norm(ortc_lift *l) { return write_group_norm(l, "X"); }

/* skip [N, C] stands for [N, 1, 1, C]. */
ortc_status ortc_contrib_skip_group_norm(ortc_lift *l)
{
    const bool flat = ortc_lift_look(l, "skip").rank == 2;
    if (flat && ortc_lift_int(l, "channels_last", 1))
        ORTC_TRY(ortc_lift_write(l, "wide = Unsqueeze(skip, [1,2])"));
    else if (flat)
        ORTC_TRY(ortc_lift_write(l, "wide = Unsqueeze(skip, [2,3])"));
    ORTC_TRY(ortc_lift_write(l, "joined = Add(X, %s)", flat ? "wide" : "skip"));
    if (ortc_given(l, "bias"))
        ORTC_TRY(ortc_lift_write(l, ortc_lift_int(l, "channels_last", 1)
                                        ? "sum = Add(joined, bias)"
                                        : "tall = Unsqueeze(bias, [1,2])\nsum = Add(joined, tall)"));
    else
        ORTC_TRY(ortc_lift_write(l, "sum = Identity(joined)"));
    if (ortc_wanted(l, 1)) ORTC_TRY(ortc_lift_write(l, "S = Identity(sum)"));
    return write_group_norm(l, "sum");
}

/* ---- Groups of channels, each with a norm of its own
 * ----------------------------------------------------- */

/* Groups of as many channels as there are scales, times a gate's activation; in f32. */
ortc_status ortc_contrib_gated_rms_norm(ortc_lift *l)
{
    const char *name = ortc_node_string(ortc_lift_node(l), "activation", "silu");
    const bool sigmoid = !strcmp(name, "sigmoid");
    if (!sigmoid && strcmp(name, "silu") != 0 && strcmp(name, "swish") != 0)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL,
                              "attribute activation is '%s', expected silu, swish or sigmoid", name);
    return ortc_lift_write(l,
                           "shape = Shape(X)\n"
                           "lead = Shape(X) start=0 end=-1\n"
                           "width = Shape(scale)\n"
                           "groups = Concat(lead, [-1], width) axis=0\n"
                           "apart = Reshape(X, groups)\n"
                           "wide = Cast(apart) to=1\n"
                           "wide_scale = Cast(scale) to=1\n"
                           "normed = RMSNormalization(wide, wide_scale) axis=-1 &epsilon\n"
                           "flat = Reshape(normed, shape)\n"
                           "wide_gate = Cast(gate) to=1\n"
                           "open = %s(wide_gate)\n"
                           "product = Mul(flat, open)\n"
                           "Y = Cast(product) to=@X",
                           sigmoid ? "Sigmoid" : "Swish");
}

/* [.., branches, H], or [.., branches * H]; a scale [branches * H], [branches, H] or [H] */
ortc_status ortc_contrib_branchwise_rms_norm(ortc_lift *l)
{
    const int64_t branches = ortc_lift_int(l, "num_branches", 0);
    const bool scaled = ortc_given(l, "scale");
    const double epsilon = (double)ortc_node_float(ortc_lift_node(l), "epsilon", 1e-5F);
    if (branches < 0)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "num_branches is %lld", (long long)branches);
    if (branches)
        ORTC_TRY(ortc_lift_write(l,
                                 "lead = Shape(X) start=0 end=-1\n"
                                 "groups = Concat(lead, [%lld,-1]) axis=0\n"
                                 "apart = Reshape(X, groups)",
                                 (long long)branches));
    else
        ORTC_TRY(ortc_lift_write(l, "apart = Identity(X)"));
    ORTC_TRY(ortc_lift_write(l,
                             "wide = Cast(apart) to=1\n"
                             "square = Mul(wide, wide)\n"
                             "mean = ReduceMean(square, [-1])\n"
                             "more = Add(mean, %.9g:f32)\n"
                             "root = Sqrt(more)\n"
                             "normed = Div(wide, root)",
                             epsilon));
    if (scaled) /* rows of H: one, or one for each branch */
        ORTC_TRY(ortc_lift_write(l, "width = Shape(apart) start=-1\n"
                                    "rows = Concat([-1], width) axis=0\n"
                                    "wide_scale = Cast(scale) to=1\n"
                                    "factors = Reshape(wide_scale, rows)\n"
                                    "product = Mul(normed, factors)"));
    return ortc_lift_write(l,
                           "shape = Shape(X)\n"
                           "flat = Reshape(%s, shape)\n"
                           "Y = Cast(flat) to=@X",
                           scaled ? "product" : "normed");
}
