/* kernels/contrib/op_quantize.c: operators of quantised models, as the standard's between DequantizeLinear
 * and QuantizeLinear, and products of integers by MatMulInteger.
 *
 * Scales and zero points of one element may be vectors here; the standard takes them for one per channel
 * then, so they become scalars. / */
#include "kernels/contrib/contrib.h"

/* ---- Into numbers and back ----------------------------------------------------------------------------- */

/* The name to read a parameter of one element by. */
static const char *scalar(ortc_lift *l, const char *name, char buffer[96])
{
    const ortc_port p = ortc_lift_look(l, name);
    if (!p.type || p.rank == 0) return name;
    snprintf(buffer, 96, "one_%s", *name ? name : "_");
    for (char *c = buffer; *c; c++) *c = *c == '[' || *c == ']' ? '_' : *c;
    ortc_lift_write(l, "%s = Reshape(%s, [])", buffer, name); /* what fails is remembered */
    return buffer;
}

static ortc_status into(ortc_lift *l, const char *to, const char *x, const char *scale, const char *zero)
{
    char s[96], z[96];
    return ortc_lift_write(l, "%s = DequantizeLinear(%s, %s, %s)", to, x, scalar(l, scale, s),
                           scalar(l, zero, z));
}

/* of x's type: where there is no zero point, that of 0 says so */
static ortc_status back(ortc_lift *l, const char *to, const char *from, const char *scale, const char *zero,
                        const char *x)
{
    char s[96], z[96], none[96];
    snprintf(none, sizeof none, "0:%s", x);
    return ortc_lift_write(l, "%s = QuantizeLinear(%s, %s, %s)", to, from, scalar(l, scale, s),
                           ortc_lift_look(l, zero).type ? scalar(l, zero, z) : none);
}

ortc_status ortc_contrib_quantize(ortc_lift *l)
{
    return ortc_lift_look(l, "y_scale").rank == 1 && ortc_node_attr(ortc_lift_node(l), "axis").kind
               ? ortc_lift_write(l, "y = QuantizeLinear(x, y_scale, y_zero_point) &axis")
               : ortc_lift_write(l, "y = QuantizeLinear(x, y_scale, y_zero_point)");
}

ortc_status ortc_contrib_dequantize(ortc_lift *l)
{
    return ortc_lift_look(l, "x_scale").rank == 1 && ortc_node_attr(ortc_lift_node(l), "axis").kind
               ? ortc_lift_write(l, "y = DequantizeLinear(x, x_scale, x_zero_point) &axis")
               : ortc_lift_write(l, "y = DequantizeLinear(x, x_scale, x_zero_point)");
}

/* ---- QLinear*: an operator between the two ------------------------------------------------------------- */

static ortc_status binary(ortc_lift *l, const char *op)
{
    ORTC_TRY(into(l, "a", "A", "A_scale", "A_zero_point"));
    ORTC_TRY(into(l, "b", "B", "B_scale", "B_zero_point"));
    ORTC_TRY(ortc_lift_write(l, "c = %s(a, b)", op));
    return back(l, "C", "c", "C_scale", "C_zero_point", "A");
}
ortc_status ortc_contrib_qlinear_add(ortc_lift *l) { return binary(l, "Add"); }
ortc_status ortc_contrib_qlinear_mul(ortc_lift *l) { return binary(l, "Mul"); }

ortc_status ortc_contrib_qlinear_sigmoid(ortc_lift *l)
{
    ORTC_TRY(into(l, "x", "X", "X_scale", "X_zero_point"));
    ORTC_TRY(ortc_lift_write(l, "y = Sigmoid(x)"));
    return back(l, "Y", "y", "Y_scale", "Y_zero_point", "X");
}

ortc_status ortc_contrib_qlinear_leaky_relu(ortc_lift *l)
{
    ORTC_TRY(into(l, "x", "X", "X_scale", "X_zero_point"));
    ORTC_TRY(ortc_lift_write(l, "y = LeakyRelu(x) &alpha"));
    return back(l, "Y", "y", "Y_scale", "Y_zero_point", "X");
}

/* opset: of the Softmax that is meant; below 13 all dims from `axis` on are one. */
ortc_status ortc_contrib_qlinear_softmax(ortc_lift *l)
{
    ORTC_TRY(into(l, "x", "X", "X_scale", "x_zero_point"));
    if (ortc_lift_int(l, "opset", 13) < 13)
        ORTC_TRY(ortc_lift_write(l, "shape = Shape(x)\n"
                                    "flat = Flatten(x) &axis\n"
                                    "lines = Softmax(flat) axis=-1\n"
                                    "y = Reshape(lines, shape)"));
    else
        ORTC_TRY(ortc_lift_write(l, "y = Softmax(x) &axis"));
    return back(l, "Y", "y", "y_scale", "y_zero_point", "X");
}

ortc_status ortc_contrib_qlinear_where(ortc_lift *l)
{
    ORTC_TRY(into(l, "x", "X", "x_scale", "x_zero_point"));
    ORTC_TRY(into(l, "y", "Y", "y_scale", "y_zero_point"));
    ORTC_TRY(ortc_lift_write(l, "z = Where(condition, x, y)"));
    return back(l, "Z", "z", "z_scale", "z_zero_point", "X");
}

/* Y_scale, Y_zero_point, then a tensor, its scale and its zero point, again and again. */
ortc_status ortc_contrib_qlinear_concat(ortc_lift *l)
{
    const uint32_t n = ortc_node_n_in(ortc_lift_node(l)) - 2;
    char list[1024] = "", name[3][40], to[40];
    size_t at = 0;
    if (n == 0 || n % 3 || n > 3 * 60)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "%u inputs are no tensors with scale and zero point", n);
    for (uint32_t i = 0; i < n; i += 3) {
        for (uint32_t k = 0; k < 3; k++) snprintf(name[k], sizeof name[k], "inputs[%u]", i + k);
        snprintf(to, sizeof to, "part%u", i / 3);
        if (ortc_lift_look(l, name[0]).dtype == ORTC_F32)
            ORTC_TRY(ortc_lift_write(l, "%s = Identity(%s)", to, name[0]));
        else
            ORTC_TRY(into(l, to, name[0], name[1], name[2]));
        at += (size_t)snprintf(list + at, sizeof list - at, i ? ", %s" : "%s", to);
    }
    ORTC_TRY(ortc_lift_write(l, "joined = Concat(%s) &axis", list));
    return back(l, "Y", "joined", "Y_scale", "Y_zero_point", "inputs[0]");
}

/* " perm": channels last to channels first, and back */
static void permutations(int32_t rank, char *forth, char *back_again, size_t bytes)
{
    size_t n = (size_t)snprintf(forth, bytes, "0"), m = (size_t)snprintf(back_again, bytes, "0");
    for (int32_t d = 1; d < rank; d++) {
        n += (size_t)snprintf(forth + n, bytes - n, ",%d", d == 1 ? rank - 1 : d - 1);
        m += (size_t)snprintf(back_again + m, bytes - m, ",%d", d == rank - 1 ? 1 : d + 1);
    }
}

/* x to the result `y` by a pool, through channels first where they come last. */
static ortc_status pool(ortc_lift *l, const char *op)
{
    const int32_t rank = ortc_lift_look(l, "X").rank;
    const bool last = ortc_lift_int(l, "channels_last", 0) != 0;
    char forth[ORTC_RANK_LIMIT * 4], back_again[ORTC_RANK_LIMIT * 4];
    if (last && rank < 3) return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the rank of X must be known");
    permutations(rank, forth, back_again, sizeof forth);
    if (last) ORTC_TRY(ortc_lift_write(l, "planes = Transpose(x) perm=[%s]", forth));
    ORTC_TRY(ortc_lift_write(l, "%s = %s(%s)%s", last ? "pooled" : "y", op, last ? "planes" : "x",
                             *op == 'G'
                                 ? ""
                                 : " &auto_pad &ceil_mode &count_include_pad &kernel_shape &pads &strides"));
    return last ? ortc_lift_write(l, "y = Transpose(pooled) perm=[%s]", back_again) : ORTC_OK;
}

static ortc_status average(ortc_lift *l, const char *op)
{
    ORTC_TRY(into(l, "x", "X", "x_scale", "x_zero_point"));
    ORTC_TRY(pool(l, op));
    return back(l, "Y", "y", "y_scale", "y_zero_point", "X");
}
ortc_status ortc_contrib_qlinear_average_pool(ortc_lift *l) { return average(l, "AveragePool"); }
ortc_status ortc_contrib_qlinear_global_average_pool(ortc_lift *l) { return average(l, "GlobalAveragePool"); }

#define CONV \
    "w, w_scale, w_zero_point, y_scale, y_zero_point, B) &auto_pad &dilations &group &kernel_shape &pads " \
    "&strides"

ortc_status ortc_contrib_qlinear_conv(ortc_lift *l)
{
    const int32_t rank = ortc_lift_look(l, "x").rank;
    char forth[ORTC_RANK_LIMIT * 4], back_again[ORTC_RANK_LIMIT * 4];
    if (!ortc_lift_int(l, "channels_last", 0))
        return ortc_lift_write(l, "y = QLinearConv(x, x_scale, x_zero_point, " CONV);
    if (rank < 3) return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the rank of x must be known");
    permutations(rank, forth, back_again, sizeof forth);
    return ortc_lift_write(l,
                           "planes = Transpose(x) perm=[%s]\n"
                           "conv = QLinearConv(planes, x_scale, x_zero_point, " CONV "\n"
                           "y = Transpose(conv) perm=[%s]",
                           forth, back_again);
}

/* ---- Products of integers ------------------------------------------------------------------------------ */

/* Y from the integers `product` and their scales `a` and `b`, with `bias` */
static ortc_status scale_product(ortc_lift *l, const char *a, const char *b, const char *type)
{
    const bool bias = ortc_given(l, "bias");
    ORTC_TRY(ortc_lift_write(l,
                             "real = Cast(product) to=@%s\n"
                             "scale = Mul(%s, %s)\n"
                             "%s = Mul(real, scale)",
                             type, a, b, bias ? "scaled" : "Y"));
    return bias ? ortc_lift_write(l, "Y = Add(scaled, bias)") : ORTC_OK;
}

ortc_status ortc_contrib_dynamic_quantize_matmul(ortc_lift *l)
{
    ORTC_TRY(ortc_lift_write(l, "a, a_scale, a_zero = DynamicQuantizeLinear(A)\n"
                                "product = MatMulInteger(a, B, a_zero, b_zero_point)"));
    return scale_product(l, "a_scale", "b_scale", "A");
}

ortc_status ortc_contrib_matmul_integer_to_float(ortc_lift *l)
{
    ORTC_TRY(ortc_lift_write(l, "product = MatMulInteger(A, B, a_zero_point, b_zero_point)"));
    return scale_product(l, "a_scale", "b_scale", "a_scale");
}

/* alpha * a_scale * b_scale * (A * B + C), quantised where y_scale says how. */
ortc_status ortc_contrib_qgemm(ortc_lift *l)
{
    const bool turn_a = ortc_lift_int(l, "transA", 0) != 0, turn_b = ortc_lift_int(l, "transB", 0) != 0,
               quantised = ortc_given(l, "y_scale");
    char z[96];
    if (turn_a) ORTC_TRY(ortc_lift_write(l, "a = Transpose(A) perm=[1,0]"));
    if (turn_b) ORTC_TRY(ortc_lift_write(l, "b = Transpose(B) perm=[1,0]"));
    ORTC_TRY(ortc_lift_write(l, "product = MatMulInteger(%s, %s, %s, b_zero_point)", turn_a ? "a" : "A",
                             turn_b ? "b" : "B", scalar(l, "a_zero_point", z)));
    if (ortc_given(l, "C")) ORTC_TRY(ortc_lift_write(l, "sum = Add(product, C)"));
    ORTC_TRY(ortc_lift_write(l,
                             "real = Cast(%s) to=1\n"
                             "scales = Mul(a_scale, b_scale)\n"
                             "scale = Mul(scales, %.9g:f32)\n"
                             "%s = Mul(real, scale)",
                             ortc_given(l, "C") ? "sum" : "product",
                             (double)ortc_node_float(ortc_lift_node(l), "alpha", 1), quantised ? "y" : "Y"));
    return quantised ? back(l, "Y", "y", "y_scale", "y_zero_point", "A") : ORTC_OK;
}

/* Sums wrap around in 32 bits. */
ortc_status ortc_contrib_matmul_integer16(ortc_lift *l)
{
    return ortc_lift_write(l, "a = Cast(A) to=6\n"
                              "b = Cast(B) to=6\n"
                              "Y = MatMul(a, b)");
}

ortc_status ortc_contrib_mul_integer(ortc_lift *l)
{
    const char *names[2] = {"A", "B"};
    for (int i = 0; i < 2; i++) {
        char zero[16], z[96];
        snprintf(zero, sizeof zero, "%s_zero_point", names[i]);
        const bool given = ortc_given(l, zero);
        ORTC_TRY(ortc_lift_write(l, "%s%s = Cast(%s) to=6", given ? "wide_" : "moved_", names[i], names[i]));
        if (given)
            ORTC_TRY(ortc_lift_write(l,
                                     "zero_%s = Cast(%s) to=6\n"
                                     "moved_%s = Sub(wide_%s, zero_%s)",
                                     names[i], scalar(l, zero, z), names[i], names[i], names[i]));
    }
    return ortc_lift_write(l, "C = Mul(moved_A, moved_B)");
}

/* " [0,2]" of the attribute axes */
static ortc_status axes_text(ortc_lift *l, char *text, size_t bytes)
{
    size_t count, at = 0;
    const int64_t *axes = ortc_node_ints(ortc_lift_node(l), "axes", &count);
    if (count > ORTC_RANK_LIMIT) return ortc_lift_fail(l, ORTC_INVALID_MODEL, "there are %zu axes", count);
    for (size_t i = 0; i < count; i++)
        at += (size_t)snprintf(text + at, bytes - at, i ? ",%lld" : "%lld", (long long)axes[i]);
    return ORTC_OK;
}

ortc_status ortc_contrib_qlinear_reduce_mean(ortc_lift *l)
{
    char axes[ORTC_RANK_LIMIT * 22] = "";
    ORTC_TRY(axes_text(l, axes, sizeof axes));
    ORTC_TRY(into(l, "x", "data", "data_scale", "data_zero_point"));
    ORTC_TRY(ortc_lift_write(l, "y = ReduceMean(x, [%s]) &keepdims", axes));
    return back(l, "reduced", "y", "reduced_scale", "reduced_zero_point", "data");
}

ortc_status ortc_contrib_reduce_sum_integer(ortc_lift *l)
{
    char axes[ORTC_RANK_LIMIT * 22] = "";
    ORTC_TRY(axes_text(l, axes, sizeof axes));
    return ortc_lift_write(l,
                           "wide = Cast(data) to=%d\n"
                           "reduced = ReduceSum(wide, [%s]) &keepdims",
                           ortc_node_out(ortc_lift_node(l), 0).dtype == ORTC_U32 ? ORTC_U32 : ORTC_I32, axes);
}

/* ---- DynamicQuantizeLSTM ------------------------------------------------------------------------------- */

/* `to` [directions, 4 hidden, from] from integers [directions, from, 4 hidden]: a scale and a zero point
 * for each direction, or for each column of one. */
static ortc_status gates(ortc_lift *l, const char *to, const char *weights)
{
    char scale[16], zero[24];
    snprintf(scale, sizeof scale, "%s_scale", weights);
    snprintf(zero, sizeof zero, "%s_zero_point", weights);
    const ortc_port s = ortc_lift_look(l, scale);
    if (s.rank != 1 && s.rank != 2)
        return ortc_lift_fail(l, s.rank < 0 ? ORTC_UNSUPPORTED : ORTC_SHAPE_MISMATCH,
                              "%s must be known to have one dim or two", scale);
    const char *axes = s.rank == 1 ? "[1,2]" : "[1]";
    return ortc_lift_write(l,
                           "%s_wide = Cast(%s) to=1\n"
                           "%s_zero = Cast(%s) to=1\n"
                           "%s_offset = Unsqueeze(%s_zero, %s)\n"
                           "%s_moved = Sub(%s_wide, %s_offset)\n"
                           "%s_step = Unsqueeze(%s, %s)\n"
                           "%s_real = Mul(%s_moved, %s_step)\n"
                           "%s = Transpose(%s_real) perm=[0,2,1]",
                           to, weights, to, zero, to, to, axes, to, to, to, to, scale, axes, to, to, to, to,
                           to);
}

/* onnxruntime rounds X and every hidden state to 8 bits, too, with a scale of the moment, for its
 * products of integers. That is what makes them fast there, not what the weights mean: here only they
 * are of 8 bits. */
ortc_status ortc_contrib_dynamic_quantize_lstm(ortc_lift *l)
{
    ORTC_TRY(gates(l, "w", "W"));
    ORTC_TRY(gates(l, "r", "R"));
    return ortc_lift_write(
        l,
        "%s, %s, %s = LSTM(X, w, r, B, sequence_lens, initial_h, initial_c, P) &activation_alpha "
        "&activation_beta &activations &clip &direction &hidden_size &input_forget",
        ortc_wanted(l, 0) ? "Y" : "_", ortc_wanted(l, 1) ? "Y_h" : "_", ortc_wanted(l, 2) ? "Y_c" : "_");
}
