/* kernels/contrib/op_fused.c: operators that onnxruntime's optimiser makes of neighbours, and forms of the
 * standard's that came before it. */
#include <float.h>

#include "kernels/contrib/contrib.h"

/* ---- Products ------------------------------------------------------------------------------------------ */

/* `to` is A or B with its batch dims and its last two exchanged as asked: transBatch brings dim 0 behind the
 * batch dims, trans exchanges the last two. *out says which name to read. */
static ortc_status arrange(ortc_lift *l, const char *in, const char *to, bool turn, bool batch,
                           const char **out)
{
    const ortc_port p = ortc_lift_look(l, in);
    char perm[ORTC_RANK_LIMIT * 4] = "";
    int32_t order[ORTC_RANK_LIMIT];
    size_t n = 0;
    *out = in;
    if ((!turn && !batch) || (p.rank >= 0 && p.rank < 2)) return ORTC_OK;
    if (p.rank < 0) { /* matrices, at least */
        *out = to;
        return ortc_lift_write(l, "%s = Einsum(%s) equation='%s->...%s'", to, in, batch ? "i...j" : "...ij",
                               turn ? "ji" : "ij");
    }
    for (int32_t d = 0; d < p.rank; d++) order[d] = d;
    for (int32_t d = 0; batch && d < p.rank - 1; d++) order[d] = d < p.rank - 2 ? d + 1 : 0;
    if (turn) {
        const int32_t last = order[p.rank - 1];
        order[p.rank - 1] = order[p.rank - 2];
        order[p.rank - 2] = last;
    }
    for (int32_t d = 0; d < p.rank; d++)
        n += (size_t)snprintf(perm + n, sizeof perm - n, d ? ",%d" : "%d", order[d]);
    *out = to;
    return ortc_lift_write(l, "%s = Transpose(%s) perm=[%s]", to, in, perm);
}

/* The product, as `to`. */
static ortc_status product(ortc_lift *l, const char *to)
{
    const float alpha = ortc_node_float(ortc_lift_node(l), "alpha", 1);
    const char *a, *b;
    ORTC_TRY(arrange(l, "A", "a", ortc_lift_int(l, "transA", 0) != 0, ortc_lift_int(l, "transBatchA", 0) != 0,
                     &a));
    ORTC_TRY(arrange(l, "B", "b", ortc_lift_int(l, "transB", 0) != 0, ortc_lift_int(l, "transBatchB", 0) != 0,
                     &b));
    if (alpha == 1) return ortc_lift_write(l, "%s = MatMul(%s, %s)", to, a, b);
    return ortc_lift_write(l,
                           "product = MatMul(%s, %s)\n"
                           "%s = Mul(product, %.9g:A)",
                           a, b, to, (double)alpha);
}

ortc_status ortc_contrib_fused_matmul(ortc_lift *l) { return product(l, "Y"); }

/* ---- Activations --------------------------------------------------------------------------------------- */

ortc_status ortc_contrib_activate(ortc_lift *l, const char *name, const float *p, size_t n)
{
    const double a = n > 0 ? (double)p[0] : 0, b = n > 1 ? (double)p[1] : 0;
    if (!*name) return ortc_lift_write(l, "Y = Identity(sum)");
    if (!strcmp(name, "Clip"))
        return ortc_lift_write(l, "Y = Clip(sum, %.9g:sum, %.9g:sum)", n > 0 ? a : -(double)FLT_MAX,
                               n > 1 ? b : (double)FLT_MAX);
    if (!strcmp(name, "HardSigmoid"))
        return ortc_lift_write(l, "Y = HardSigmoid(sum) alpha=%.9g beta=%.9g", n > 0 ? a : 0.2,
                               n > 1 ? b : 0.5);
    if (!strcmp(name, "LeakyRelu") || !strcmp(name, "Elu") || !strcmp(name, "ThresholdedRelu"))
        return ortc_lift_write(l, "Y = %s(sum) alpha=%.9g", name, n > 0 ? a : *name == 'L' ? 0.01 : 1);
    if (!strcmp(name, "Relu") || !strcmp(name, "Tanh") || !strcmp(name, "Sigmoid") ||
        !strcmp(name, "Softplus") || !strcmp(name, "Softsign") || !strcmp(name, "HardSwish"))
        return ortc_lift_write(l, "Y = %s(sum)", name);
    return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the activation '%s' is not known", name);
}

ortc_status ortc_contrib_fused_gemm(ortc_lift *l)
{
    const ortc_node *n = ortc_lift_node(l);
    const ortc_attr a = ortc_node_attr(n, "activation_alpha"), b = ortc_node_attr(n, "activation_beta");
    const float p[2] = {a.f, b.f};
    ORTC_TRY(ortc_lift_write(l, "sum = Gemm(A, B, C) &alpha &beta &transA &transB"));
    return ortc_contrib_activate(l, ortc_node_string(n, "activation", ""), p, a.kind ? b.kind ? 2 : 1 : 0);
}

ortc_status ortc_contrib_fused_matmul_activation(ortc_lift *l)
{
    const ortc_node *n = ortc_lift_node(l);
    const char *name = ortc_node_string(n, "activation", "");
    const ortc_attr a = ortc_node_attr(n, "activation_alpha"), b = ortc_node_attr(n, "activation_beta");
    const float p[2] = {a.f, b.f};
    ORTC_TRY(product(l, "sum"));
    if (!strcmp(name, "Softmax") || !strcmp(name, "LogSoftmax"))
        return ortc_lift_write(l, "Y = %s(sum) axis=%lld", name,
                               (long long)ortc_lift_int(l, "activation_axis", -1));
    return ortc_contrib_activate(l, name, p, a.kind ? b.kind ? 2 : 1 : 0);
}

ortc_status ortc_contrib_gemm_fast_gelu(ortc_lift *l)
{
    const bool bias = ortc_given(l, "bias");
    ORTC_TRY(ortc_lift_write(l, "product = MatMul(X, W)"));
    if (bias) ORTC_TRY(ortc_lift_write(l, "sum = Add(product, bias)"));
    return ortc_lift_write(l, "Y = Gelu(%s) approximate='tanh'", bias ? "sum" : "product");
}

#define WINDOW "&auto_pad &dilations &group &kernel_shape &pads &strides"

ortc_status ortc_contrib_fused_conv(ortc_lift *l)
{
    const ortc_node *n = ortc_lift_node(l);
    size_t count;
    const float *p = ortc_node_floats(n, "activation_params", &count);
    if (ortc_given(l, "Z"))
        ORTC_TRY(ortc_lift_write(l, "conv = Conv(X, W, B) " WINDOW "\nsum = Add(conv, Z)"));
    else
        ORTC_TRY(ortc_lift_write(l, "sum = Conv(X, W, B) " WINDOW));
    return ortc_contrib_activate(l, ortc_node_string(n, "activation", ""), p, count);
}

/* ---- Channels last ------------------------------------------------------------------------------------- */

/* `to` is `from` of `rank` dims with its channels brought to the front or to the end. */
static ortc_status move_channels(ortc_lift *l, const char *to, const char *from, int32_t rank, bool first)
{
    char perm[ORTC_RANK_LIMIT * 4] = "0";
    size_t n = 1;
    for (int32_t d = 1; d < rank; d++)
        n += (size_t)snprintf(perm + n, sizeof perm - n, ",%d",
                              first ? (d == 1 ? rank - 1 : d - 1) : (d == rank - 1 ? 1 : d + 1));
    return ortc_lift_write(l, "%s = Transpose(%s) perm=[%s]", to, from, perm);
}

static ortc_status spatial_rank(ortc_lift *l, const char *name, int32_t *out)
{
    *out = ortc_lift_look(l, name).rank;
    return *out >= 3 ? ORTC_OK
                     : ortc_lift_fail(l, *out < 0 ? ORTC_UNSUPPORTED : ORTC_SHAPE_MISMATCH,
                                      "%s must be known to have three dims at least", name);
}

ortc_status ortc_contrib_nhwc_max_pool(ortc_lift *l)
{
    int32_t rank;
    ORTC_TRY(spatial_rank(l, "x", &rank));
    ORTC_TRY(move_channels(l, "planes", "x", rank, true));
    ORTC_TRY(ortc_lift_write(l,
                             "pooled = MaxPool(planes) &auto_pad &ceil_mode &dilations &kernel_shape &pads "
                             "&strides"));
    return move_channels(l, "y", "pooled", rank, false);
}

/* X and W have their channels last. */
ortc_status ortc_contrib_nhwc_conv(ortc_lift *l)
{
    int32_t rank;
    ORTC_TRY(spatial_rank(l, "X", &rank));
    ORTC_TRY(move_channels(l, "planes", "X", rank, true));
    ORTC_TRY(move_channels(l, "weights", "W", rank, true));
    ORTC_TRY(ortc_lift_write(l, "conv = Conv(planes, weights, B) " WINDOW));
    return move_channels(l, "Y", "conv", rank, false);
}

/* X and Z have their channels last, W first; so has what is added. */
ortc_status ortc_contrib_nhwc_fused_conv(ortc_lift *l)
{
    const ortc_node *n = ortc_lift_node(l);
    const bool added = ortc_given(l, "Z");
    size_t count;
    const float *p = ortc_node_floats(n, "activation_params", &count);
    int32_t rank;
    ORTC_TRY(spatial_rank(l, "X", &rank));
    ORTC_TRY(move_channels(l, "planes", "X", rank, true));
    ORTC_TRY(ortc_lift_write(l, "conv = Conv(planes, W, B) " WINDOW));
    ORTC_TRY(move_channels(l, added ? "plain" : "sum", "conv", rank, false));
    if (added) ORTC_TRY(ortc_lift_write(l, "sum = Add(plain, Z)"));
    return ortc_contrib_activate(l, ortc_node_string(n, "activation", ""), p, count);
}

/* Pads are an input, begins before ends: what they cut off is cut off the whole result. */
ortc_status ortc_contrib_conv_transpose_pads(ortc_lift *l)
{
    int32_t rank;
    char axes[ORTC_RANK_LIMIT * 4] = "";
    size_t at = 0;
    const char *pad = ortc_node_string(ortc_lift_node(l), "auto_pad", "NOTSET");
    if (!ortc_given(l, "Pads"))
        return ortc_lift_write(
            l,
            "Y = ConvTranspose(X, W, B) &auto_pad &dilations &group &kernel_shape &output_padding &strides");
    if (*pad && strcmp(pad, "NOTSET") != 0)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "auto_pad is '%s', and there are Pads", pad);
    ORTC_TRY(spatial_rank(l, "X", &rank));
    for (int32_t d = 2; d < rank; d++)
        at += (size_t)snprintf(axes + at, sizeof axes - at, d == 2 ? "%d" : ",%d", d);
    return ortc_lift_write(
        l,
        "whole = ConvTranspose(X, W, B) &dilations &group &kernel_shape &output_padding &strides\n"
        "sizes = Shape(whole) start=2\n"
        "begins, cut = Split(Pads) axis=0 num_outputs=2\n"
        "ends = Sub(sizes, cut)\n"
        "Y = Slice(whole, begins, ends, [%s])",
        axes);
}

/* ---- Elementwise --------------------------------------------------------------------------------------- */

ortc_status ortc_contrib_gelu(ortc_lift *l) { return ortc_lift_write(l, "Y = Gelu(X)"); }

ortc_status ortc_contrib_bias_gelu(ortc_lift *l)
{
    return ortc_lift_write(l, "sum = Add(A, B)\n"
                              "C = Gelu(sum)");
}

ortc_status ortc_contrib_fast_gelu(ortc_lift *l)
{
    const bool bias = ortc_given(l, "bias");
    if (bias) ORTC_TRY(ortc_lift_write(l, "sum = Add(X, bias)"));
    return ortc_lift_write(l, "Y = Gelu(%s) approximate='tanh'", bias ? "sum" : "X");
}

ortc_status ortc_contrib_quick_gelu(ortc_lift *l) { return ortc_lift_write(l, "Y = Swish(X) &alpha"); }

/* Half of the channels times the Gelu of the others. */
ortc_status ortc_contrib_bias_split_gelu(ortc_lift *l)
{
    return ortc_lift_write(l, "sum = Add(X, bias)\n"
                              "half, gate = Split(sum) axis=-1 num_outputs=2\n"
                              "open = Gelu(gate)\n"
                              "Y = Mul(half, open)");
}

ortc_status ortc_contrib_bias_add(ortc_lift *l)
{
    return ortc_lift_write(l, "sum = Add(X, bias)\n"
                              "Y = Add(sum, skip)");
}

/* Inference, unless the model asks for training: then Dropout draws. */
ortc_status ortc_contrib_bias_dropout(ortc_lift *l)
{
    const bool residual = ortc_given(l, "residual");
    ORTC_TRY(ortc_lift_write(l,
                             "sum = Add(data, bias)\n"
                             "%s, %s = Dropout(sum, ratio, training_mode) &seed",
                             residual ? "kept" : "output", ortc_wanted(l, 1) ? "mask" : "_"));
    return residual ? ortc_lift_write(l, "output = Add(kept, residual)") : ORTC_OK;
}

/* All dims from `axis` on are one. */
ortc_status ortc_contrib_bias_softmax(ortc_lift *l)
{
    const ortc_port x = ortc_lift_look(l, "data");
    int32_t axis = 0;
    ORTC_TRY(ortc_lift_write(l, "sum = Add(data, bias)"));
    if (x.rank >= 0 && !ortc_axis_of(ortc_lift_int(l, "axis", 1), x.rank, &axis))
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "axis is outside of rank %d", x.rank);
    if (x.rank > 0 && axis == x.rank - 1) return ortc_lift_write(l, "output = Softmax(sum) axis=-1");
    return ortc_lift_write(l, "shape = Shape(sum)\n"
                              "flat = Flatten(sum) &axis\n"
                              "lines = Softmax(flat) axis=-1\n"
                              "output = Reshape(lines, shape)");
}

/* A [M, K], B [N, K]: distances of every row of A from every row of B. */
ortc_status ortc_contrib_cdist(ortc_lift *l)
{
    const char *metric = ortc_node_string(ortc_lift_node(l), "metric", "sqeuclidean");
    const bool root = !strcmp(metric, "euclidean");
    if (!root && strcmp(metric, "sqeuclidean") != 0)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "attribute metric is '%s'", metric);
    ORTC_TRY(ortc_lift_write(l,
                             "a = Unsqueeze(A, [1])\n"
                             "b = Unsqueeze(B, [0])\n"
                             "way = Sub(a, b)\n"
                             "%s = ReduceSumSquare(way, [2]) keepdims=0",
                             root ? "square" : "C"));
    return root ? ortc_lift_write(l, "C = Sqrt(square)") : ORTC_OK;
}

/* ---- Older names --------------------------------------------------------------------------------------- */

ortc_status ortc_contrib_expand_dims(ortc_lift *l)
{
    return ortc_lift_write(l, "whole = Cast(axis) to=7\n"
                              "axes = Reshape(whole, [1])\n"
                              "Y = Unsqueeze(X, axes)");
}

ortc_status ortc_contrib_range(ortc_lift *l)
{
    return ortc_given(l, "delta") ? ortc_lift_write(l, "Y = Range(start, limit, delta)")
                                  : ortc_lift_write(l, "one = Cast(1) to=@start\n"
                                                       "Y = Range(start, limit, one)");
}

ortc_status ortc_contrib_trilu(ortc_lift *l) { return ortc_lift_write(l, "Y = Trilu(X, k) &upper"); }

ortc_status ortc_contrib_pad(ortc_lift *l)
{
    return ortc_lift_write(l, "flat = Reshape(pads, [-1])\n"
                              "output = Pad(data, flat, value) &mode");
}

ortc_status ortc_contrib_grid_sample(ortc_lift *l)
{
    const char *mode = ortc_node_string(ortc_lift_node(l), "mode", "bilinear");
    return ortc_lift_write(l, "Y = GridSample(X, Grid) &align_corners &padding_mode mode='%s'",
                           !strcmp(mode, "bilinear")  ? "linear"
                           : !strcmp(mode, "bicubic") ? "cubic"
                                                      : "nearest");
}

ortc_status ortc_contrib_unique(ortc_lift *l)
{
    return ortc_lift_write(l, "y, _, %s, %s = Unique(x) sorted=0", ortc_wanted(l, 1) ? "idx" : "_",
                           ortc_wanted(l, 2) ? "counts" : "_");
}

ortc_status ortc_contrib_gather_nd(ortc_lift *l)
{
    return ortc_lift_write(l, "places = Cast(indices) to=7\n"
                              "output = GatherND(data, places)");
}
