/* kernels/contrib/op_math.c: small arithmetic that exporters and onnxruntime's fusions name: complex
 * numbers as pairs, Fourier transforms of real signals, gates. */
#include "kernels/contrib/contrib.h"

/* The last dim is a real and an imaginary part. ComplexMulConj takes B's conjugate. */
ortc_status ortc_contrib_complex_mul(ortc_lift *l)
{
    const bool conjugate = !strcmp(ortc_node_op(ortc_lift_node(l)), "ComplexMulConj");
    return ortc_lift_write(l,
                           "a, b = Split(A) axis=-1 num_outputs=2\n"
                           "c, d = Split(B) axis=-1 num_outputs=2\n"
                           "ac = Mul(a, c)\n"
                           "bd = Mul(b, d)\n"
                           "ad = Mul(a, d)\n"
                           "bc = Mul(b, c)\n"
                           "re = %s(ac, bd)\n"
                           "im = %s(%s, %s)\n"
                           "C = Concat(re, im) axis=-1",
                           conjugate ? "Add" : "Sub", conjugate ? "Sub" : "Add", conjugate ? "bc" : "ad",
                           conjugate ? "ad" : "bc");
}

static ortc_status one_dim(ortc_lift *l)
{
    const bool plain = ortc_lift_int(l, "signal_ndim", 1) == 1 && ortc_lift_int(l, "normalized", 0) == 0 &&
                       ortc_lift_int(l, "onesided", 1) == 1;
    return plain ? ORTC_OK
                 : ortc_lift_fail(l, ORTC_UNSUPPORTED,
                                  "only one dim, one side and no normalisation are supported");
}

/* [.., n] to [.., n / 2 + 1, 2] */
ortc_status ortc_contrib_rfft(ortc_lift *l)
{
    ORTC_TRY(one_dim(l));
    return ortc_lift_write(l, "real = Unsqueeze(X, [-1])\n"
                              "Y = DFT(real, _, -2) onesided=1");
}

/* And back, by the half that is there; unlike the standard's it does not divide by n. */
ortc_status ortc_contrib_irfft(ortc_lift *l)
{
    ORTC_TRY(one_dim(l));
    return ortc_lift_write(l, "pairs = DFT(X, _, -2) onesided=1 inverse=1\n"
                              "mean = Squeeze(pairs, [-1])\n"
                              "count = Shape(mean) start=-1\n"
                              "n = Cast(count) to=@X\n"
                              "Y = Mul(mean, n)");
}

ortc_status ortc_contrib_is_all_finite(ortc_lift *l)
{
    const bool inf = ortc_lift_int(l, "isnan_only", 0) == 0, nan = ortc_lift_int(l, "isinf_only", 0) == 0;
    const uint32_t n = ortc_node_n_in(ortc_lift_node(l));
    if (!inf && !nan)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "isinf_only and isnan_only exclude each other");
    for (uint32_t i = 0; i < n; i++) {
        if (inf && nan)
            ORTC_TRY(ortc_lift_write(l,
                                     "inf%u = IsInf(input[%u])\n"
                                     "nan%u = IsNaN(input[%u])\n"
                                     "bad%u = Or(inf%u, nan%u)",
                                     i, i, i, i, i, i, i));
        else
            ORTC_TRY(ortc_lift_write(l, "bad%u = %s(input[%u])", i, inf ? "IsInf" : "IsNaN", i));
        ORTC_TRY(ortc_lift_write(l,
                                 "count%u = Cast(bad%u) to=6\n"
                                 "any%u = ReduceMax(count%u) keepdims=0",
                                 i, i, i, i));
        if (i) ORTC_TRY(ortc_lift_write(l, "all%u = Max(%s%u, any%u)", i, i == 1 ? "any" : "all", i - 1, i));
    }
    return ortc_lift_write(l, "output = Equal(%s%u, 0:i32)", n == 1 ? "any" : "all", n - 1);
}

ortc_status ortc_contrib_torch_embedding(ortc_lift *l)
{
    return ortc_lift_write(l, "Y = Gather(weight, indices) axis=0");
}

ortc_status ortc_contrib_scaled_silu(ortc_lift *l)
{
    if (ortc_given(l, "scale"))
        ORTC_TRY(ortc_lift_write(l, "factor = Cast(scale) to=@X\n"
                                    "one = Reshape(factor, [])\n"
                                    "z = Mul(X, one)"));
    else
        ORTC_TRY(
            ortc_lift_write(l, "z = Mul(X, %.9g:X)", (double)ortc_node_float(ortc_lift_node(l), "alpha", 1)));
    return ortc_lift_write(l, "s = Sigmoid(z)\n"
                              "Y = Mul(z, s)");
}

ortc_status ortc_contrib_gated_add(ortc_lift *l)
{
    return ortc_lift_write(l, "part = Mul(Y, gate)\n"
                              "output = Add(X, part)");
}

/* In f32, whatever the type: the decay is exponentiated later. */
ortc_status ortc_contrib_linear_attention_gate(ortc_lift *l)
{
    ORTC_TRY(ortc_lift_write(l, "wide = Cast(a) to=1\n"
                                "moved = Add(wide, dt_bias)\n"
                                "soft = Softplus(moved)\n"
                                "scaled = Mul(soft, decay_scale)\n"
                                "decay = Cast(scaled) to=@a"));
    return ortc_wanted(l, 1) ? ortc_lift_write(l, "beta = Sigmoid(b)") : ORTC_OK;
}

/* A token that would end an n-gram which the sequence has already gets the score -infinity: every window
 * of n - 1 tokens is compared with the last. */
ortc_status ortc_contrib_ngram_repeat_block(ortc_lift *l)
{
    const int64_t n = ortc_lift_int(l, "ngram_size", 0);
    char part[320];
    if (n < 1 || n > 64)
        return ortc_lift_fail(l, n < 1 ? ORTC_INVALID_MODEL : ORTC_UNSUPPORTED, "ngram_size is %lld",
                              (long long)n);
    ORTC_TRY(ortc_lift_write(l,
                             "length = Shape(input_ids) start=1\n"
                             "begins = Sub(length, [%lld])\n"
                             "windows = Max(begins, [0])\n"
                             "next_end = Add(windows, [%lld])\n"
                             "next = Slice(input_ids, [%lld], next_end, [1])\n"
                             "next_shape = Shape(next)\n"
                             "same0 = Expand(1:bool, next_shape)",
                             (long long)(n - 1), (long long)(n - 1), (long long)(n - 1)));
    for (int j = 0; j < (int)n - 1; j++) {
        snprintf(part, sizeof part,
                 "end%d = Add(windows, [%d])\n"
                 "here%d = Slice(input_ids, [%d], end%d, [1])\n"
                 "back%d = Add(begins, [%d])\n"
                 "last%d = Max(back%d, [0])\n"
                 "there%d = Gather(input_ids, last%d) axis=1\n"
                 "equal%d = Equal(here%d, there%d)\n"
                 "same%d = And(same%d, equal%d)",
                 j, j, j, j, j, j, j, j, j, j, j, j, j, j, j + 1, j, j);
        ORTC_TRY(ortc_lift_write(l, "%s", part));
    }
    return ortc_lift_write(l,
                           "free = Neg(-inf:scores)\n"
                           "bound = Where(same%lld, -inf:scores, free)\n"
                           "scores_out = ScatterElements(scores, next, bound) axis=1 reduction='min'",
                           (long long)(n - 1));
}

/* ---- Crops --------------------------------------------------------------------------------------------- */

/* `grid_%s` [n, size]: where the pixels of the crops lie along an axis, from -1 to 1 over the picture, and
 * `inside_%s`, which of them it has. Halves go up. */
static ortc_status crop_axis(ortc_lift *l, const char *a, int axis, bool nearest, int type)
{
    ORTC_TRY(ortc_lift_write(l,
                             "extent_%s = Shape(X) start=%d end=%d\n"
                             "pixels_%s = Cast(extent_%s) to=%d\n"
                             "top_%s = Sub(pixels_%s, 1:pixels_%s)\n"
                             "count_%s = Squeeze(size_%s)\n"
                             "steps_%s = Range(0, count_%s, 1)\n"
                             "step_%s = Cast(steps_%s) to=%d\n"
                             "less_%s = Sub(count_%s, 1)\n"
                             "alone_%s = Equal(less_%s, 0)\n"
                             "least_%s = Max(less_%s, 1)\n"
                             "last_%s = Cast(least_%s) to=%d",
                             a, axis, axis + 1, a, a, type, a, a, a, a, a, a, a, a, a, type, a, a, a, a, a, a,
                             a, a, type));
    ORTC_TRY(ortc_lift_write(l,
                             "begin_%s = Mul(%s1, top_%s)\n"
                             "far_%s = Sub(%s2, %s1)\n"
                             "wide_%s = Mul(far_%s, top_%s)\n"
                             "each_%s = Div(wide_%s, last_%s)\n"
                             "way_%s = Mul(each_%s, step_%s)\n"
                             "many_%s = Add(begin_%s, way_%s)\n"
                             "both_%s = Add(%s1, %s2)\n"
                             "half_%s = Mul(both_%s, 0.5:both_%s)\n"
                             "middle_%s = Mul(half_%s, top_%s)\n"
                             "at_%s = Where(alone_%s, middle_%s, many_%s)",
                             a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a, a,
                             a, a, a, a));
    ORTC_TRY(ortc_lift_write(l,
                             "low_%s = GreaterOrEqual(at_%s, 0:at_%s)\n"
                             "high_%s = LessOrEqual(at_%s, top_%s)\n"
                             "inside_%s = And(low_%s, high_%s)",
                             a, a, a, a, a, a, a, a, a));
    if (nearest)
        ORTC_TRY(ortc_lift_write(l,
                                 "moved_%s = Add(at_%s, 0.5:at_%s)\n"
                                 "whole_%s = Floor(moved_%s)",
                                 a, a, a, a, a));
    return ortc_lift_write(l,
                           "some_%s = Max(top_%s, 1:top_%s)\n"
                           "share_%s = Div(%s_%s, some_%s)\n"
                           "twice_%s = Mul(share_%s, 2:at_%s)\n"
                           "grid_%s = Sub(twice_%s, 1:at_%s)",
                           a, a, a, a, nearest ? "whole" : "at", a, a, a, a, a, a, a, a);
}

/* X [N, C, H, W], rois [n, 4] of y1, x1, y2, x2 from 0 to 1 over the centres of pixels. */
ortc_status ortc_contrib_crop_and_resize(ortc_lift *l)
{
    const ortc_node *n = ortc_lift_node(l);
    const char *mode = ortc_node_string(n, "mode", "bilinear");
    const bool nearest = !strcmp(mode, "nearest");
    const int type = ortc_lift_look(l, "rois").dtype == ORTC_F64 ? 11
                                                                 : 1; /* places in f16 would be too coarse */
    if (!nearest && strcmp(mode, "bilinear") != 0)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "attribute mode is '%s', expected bilinear or nearest",
                              mode);
    ORTC_TRY(ortc_lift_write(l,
                             "boxes = Cast(rois) to=%d\n"
                             "y1, x1, y2, x2 = Split(boxes) axis=1 num_outputs=4\n"
                             "sizes = Cast(crop_size) to=7\n"
                             "size_y, size_x = Split(sizes) axis=0 num_outputs=2",
                             type));
    ORTC_TRY(crop_axis(l, "y", 2, nearest, type));
    ORTC_TRY(crop_axis(l, "x", 3, nearest, type));
    return ortc_lift_write(
        l,
        "rows = Unsqueeze(grid_y, [2,3])\n"
        "columns = Unsqueeze(grid_x, [1,3])\n"
        "no_row = Mul(rows, 0:rows)\n"
        "no_column = Mul(columns, 0:columns)\n"
        "all_rows = Add(rows, no_column)\n"
        "all_columns = Add(columns, no_row)\n"
        "grid = Concat(all_columns, all_rows) axis=3\n"
        "good_y = Unsqueeze(inside_y, [1,3])\n"
        "good_x = Unsqueeze(inside_x, [1,2])\n"
        "good = And(good_y, good_x)\n"
        "pictures = Gather(X, batch_indices) axis=0\n"
        "cut = GridSample(pictures, grid) align_corners=1 padding_mode='border' mode='%s'\n"
        "Y = Where(good, cut, %.9g:cut)",
        nearest ? "nearest" : "linear", (double)ortc_node_float(n, "extrapolation_value", 0));
}

/* ---- Words from their letters -------------------------------------------------------------------------- */

/* Sequence [.., L] of letters, C [letters, E], W [F, 1, window, E]: the largest over the first windows of a
 * word, as many as its letters beside 0 make, and one at least; a word that begins with 0 is 0. */
ortc_status ortc_contrib_word_conv_embedding(ortc_lift *l)
{
    ORTC_TRY(ortc_lift_write(l, "around = Shape(Sequence) start=0 end=-1\n"
                                "length = Shape(Sequence) start=-1\n"
                                "flat = Concat([-1], length) axis=0\n"
                                "words = Reshape(Sequence, flat)\n"
                                "letters = Gather(C, words) axis=0\n"
                                "planes = Unsqueeze(letters, [1])\n"
                                "sums = Conv(planes, W, B)\n"
                                "lines = Squeeze(sums, [3])\n"
                                "open = Tanh(lines)"));
    return ortc_lift_write(l, "ends = Equal(words, 0:words)\n"
                              "inside = Not(ends)\n"
                              "each = Cast(inside) to=7\n"
                              "count = ReduceSum(each, [1])\n"
                              "window = Shape(W) start=2 end=3\n"
                              "less = Sub(count, window)\n"
                              "more = Add(less, 1)\n"
                              "windows = Max(more, 1)\n"
                              "places = Shape(open) start=2\n"
                              "last = Squeeze(places)\n"
                              "place = Range(0, last, 1)\n"
                              "whole = Less(place, windows)\n"
                              "good = Unsqueeze(whole, [1])\n"
                              "kept = Where(good, open, -2:open)\n"
                              "best = ReduceMax(kept, [2]) keepdims=0\n"
                              "has = Slice(inside, [0], [1], [1])\n"
                              "made = Where(has, best, 0:best)\n"
                              "wide = Shape(best) start=1\n"
                              "shape = Concat(around, wide) axis=0\n"
                              "Y = Reshape(made, shape)");
}
