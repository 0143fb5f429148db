/* kernels/contrib/op_moe.c: mixtures of experts, MoE and QMoE.
 *
 * T tokens, E experts, H elements of a token, I inside of an expert. As nodes every expert sees every
 * token, as one product over E batches, and a token adds up those that its router chose: E / k times the
 * arithmetic that is needed, on kernels that are there. What an expert makes of a token that did not choose
 * it is dropped before it is added, so that it may overflow. The cpu has a kernel for both that multiplies
 * what was chosen (gemm/experts.c).
 */
#include "kernels/contrib/contrib.h"

#define LL(x) ((long long)(x))

/* `scores` [T, 2] of SparseMixer (Liu and others, "Sparse Backpropagation for MoE Training", as Phi-3.5-MoE
 * has it): the best expert's among those within 2 % of it, and the next one's, without the best, likewise. */
static ortc_status write_sparse_mixer(ortc_lift *l)
{
    ORTC_TRY(
        ortc_lift_write(l, "wide = Cast(router_probs) to=1\n" /* who is near is decided with what they are */
                           "wide_best = Cast(best) to=1\n"
                           "top_0, top_1 = Split(wide_best) axis=1 num_outputs=2\n"
                           "who_0, who_1 = Split(which) axis=1 num_outputs=2\n"
                           "size = Abs(wide)\n"
                           "lowest = Expand(-inf:wide, [1,1])\n"
                           "gone_shape = Shape(who_0)\n"
                           "gone = Expand(lowest, gone_shape)\n"
                           "left_0 = Identity(wide)\n"
                           "left_1 = ScatterElements(wide, who_0, gone) axis=1"));
    for (int i = 0; i < 2; i++)
        ORTC_TRY(ortc_lift_write(l,
                                 "unit_%d = Max(size, top_%d)\n"
                                 "gap_%d = Sub(top_%d, wide)\n"
                                 "part_%d = Div(gap_%d, unit_%d)\n"
                                 "far_%d = Greater(part_%d, 0.02:wide)\n"
                                 "near_%d = Where(far_%d, -inf:wide, left_%d)\n"
                                 "likely_%d = Softmax(near_%d) axis=-1\n"
                                 "score_%d = GatherElements(likely_%d, who_%d) axis=1",
                                 i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i, i));
    return ortc_lift_write(l, "wide_scores = Concat(score_0, score_1) axis=1\n"
                              "scores = Cast(wide_scores) to=@router_probs");
}

/* `mix` [E, T, 1]: how much of each expert a token takes, 0 for most; `chosen`, the same as flags. */
static ortc_status write_router(ortc_lift *l)
{
    const int64_t k = ortc_lift_int(l, "k", 1);
    const bool normalise = ortc_lift_int(l, "normalize_routing_weights", 0) != 0;
    const bool sparse = ortc_lift_int(l, "use_sparse_mixer", 0) != 0;
    if (sparse && k != 2)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "use_sparse_mixer is for two experts, k is %lld", LL(k));
    ORTC_TRY(ortc_lift_write(l, "best, which = TopK(router_probs, [%lld]) axis=-1", LL(k)));
    if (sparse) {
        ORTC_TRY(write_sparse_mixer(l));
    } else if (!strcmp(ortc_node_op(ortc_lift_node(l)), "QMoE") && ortc_given(l, "router_weights")) {
        ORTC_TRY(ortc_lift_write(l, "%s = GatherElements(router_weights, which) axis=1",
                                 normalise ? "picked" : "scores"));
        if (normalise)
            ORTC_TRY(ortc_lift_write(l, "all_picked = ReduceSum(picked, [1])\n"
                                        "scores = Div(picked, all_picked)"));
    } else if (normalise) {
        ORTC_TRY(ortc_lift_write(l, "scores = Softmax(best) axis=-1"));
    } else {
        ORTC_TRY(ortc_lift_write(l, "likely = Softmax(router_probs) axis=-1\n"
                                    "scores = GatherElements(likely, which) axis=1"));
    }
    return ortc_lift_write(l, "router_shape = Shape(router_probs)\n"
                              "nothing = Expand(0:router_probs, router_shape)\n"
                              "shares = ScatterElements(nothing, which, scores) axis=1\n"
                              "turned = Transpose(shares) perm=[1,0]\n"
                              "mix = Unsqueeze(turned, [2])\n"
                              "none = Equal(mix, 0:mix)\n"
                              "chosen = Not(none)");
}

/* `to` [E, T, N] from `x` [.., T, K] and `weights` [E, N, K], with a bias [E, N] where there is one. */
static ortc_status layer(ortc_lift *l, const char *to, const char *x, const char *weights, const char *bias)
{
    const bool added = ortc_given(l, bias);
    ORTC_TRY(ortc_lift_write(l,
                             "%s_turned = Transpose(%s) perm=[0,2,1]\n"
                             "%s%s = MatMul(%s, %s_turned)",
                             to, weights, to, added ? "_product" : "", x, to));
    return added ? ortc_lift_write(l,
                                   "%s_bias = Unsqueeze(%s, [1])\n"
                                   "%s = Add(%s_product, %s_bias)",
                                   to, bias, to, to, to)
                 : ORTC_OK;
}

/* `inner` from `first`, and `third` where there is one. */
static ortc_status activate(ortc_lift *l, bool third)
{
    const ortc_node *n = ortc_lift_node(l);
    const char *name = ortc_node_string(n, "activation_type", "relu");
    const int64_t fusion = ortc_lift_int(l, "swiglu_fusion", 0);
    const ortc_attr limit = ortc_node_attr(n, "swiglu_limit");
    const char *gate = "first", *linear = "third", *to = third ? "active" : "inner";
    if (!strcmp(name, "swiglu")) {
        if (fusion == 1)
            ORTC_TRY(ortc_lift_write(l, "gates = Slice(first, [0], [9223372036854775807], [2], [2])\n"
                                        "linears = Slice(first, [1], [9223372036854775807], [2], [2])"));
        else if (fusion == 2)
            ORTC_TRY(ortc_lift_write(l, "gates, linears = Split(first) axis=2 num_outputs=2"));
        else if (!third)
            return ortc_lift_fail(l, ORTC_INVALID_MODEL,
                                  "swiglu that is not fused needs fc3_experts_weights");
        if (fusion) gate = "gates", linear = "linears";
        if (limit.kind == ORTC_ATTR_FLOAT) {
            ORTC_TRY(ortc_lift_write(l,
                                     "gates_low = Min(%s, %.9g:%s)\n"
                                     "linears_low = Clip(%s, %.9g:%s, %.9g:%s)",
                                     gate, (double)limit.f, gate, linear, -(double)limit.f, linear,
                                     (double)limit.f, linear));
            gate = "gates_low", linear = "linears_low";
        }
        return ortc_lift_write(l,
                               "open = Swish(%s) alpha=%.9g\n"
                               "moved = Add(%s, %.9g:%s)\n"
                               "inner = Mul(open, moved)",
                               gate, (double)ortc_node_float(n, "activation_alpha", 1), linear,
                               (double)ortc_node_float(n, "activation_beta", 0), linear);
    }
    if (!strcmp(name, "relu"))
        ORTC_TRY(ortc_lift_write(l, "%s = Relu(first)", to));
    else if (!strcmp(name, "gelu"))
        ORTC_TRY(ortc_lift_write(l, "%s = Gelu(first) approximate='tanh'", to));
    else if (!strcmp(name, "silu"))
        ORTC_TRY(ortc_lift_write(l, "%s = Swish(first)", to));
    else if (!strcmp(name, "identity"))
        ORTC_TRY(ortc_lift_write(l, "%s = Identity(first)", to));
    else
        return ortc_lift_fail(
            l, ORTC_INVALID_MODEL,
            "attribute activation_type is '%s', expected relu, gelu, silu, swiglu or identity", name);
    return third ? ortc_lift_write(l, "inner = Mul(active, third)") : ORTC_OK;
}

/* The experts, whose weights are `w1`, `w2` and, where there is a third layer, `w3`. */
static ortc_status mix_experts(ortc_lift *l, const char *w1, const char *w2, const char *w3)
{
    ORTC_TRY(write_router(l));
    ORTC_TRY(ortc_lift_write(l, "shape = Shape(input)\n"
                                "width = Shape(input) start=-1\n"
                                "one = Concat([1,-1], width) axis=0\n"
                                "tokens = Reshape(input, one)"));
    ORTC_TRY(layer(l, "first", "tokens", w1, "fc1_experts_bias"));
    if (w3) ORTC_TRY(layer(l, "third", "tokens", w3, "fc3_experts_bias"));
    ORTC_TRY(activate(l, w3 != NULL));
    ORTC_TRY(layer(l, "made", "inner", w2, "fc2_experts_bias"));
    return ortc_lift_write(l, "share = Mul(made, mix)\n"
                              "taken = Where(chosen, share, 0:share)\n"
                              "sum = ReduceSum(taken, [0]) keepdims=0\n"
                              "output = Reshape(sum, shape)");
}

/* A port's dims are those; -1 stands for what is not known. */
static ortc_status agree(ortc_infer *c, uint32_t port, const char *what, int32_t rank, const ortc_dim *dims)
{
    const ortc_port p = ortc_infer_in(c, port);
    ortc_dim same;
    if (!p.type || p.rank < 0) return ORTC_OK;
    if (p.rank != rank)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "%s has %d dims, expected %d", what, p.rank, rank);
    for (int32_t d = 0; d < rank; d++)
        if (dims[d] != ORTC_DIM_UNKNOWN) ORTC_TRY(ortc_infer_same(c, what, p.dims[d], dims[d], &same));
    return ORTC_OK;
}

/* Of the shape of the input. The weights of the second layer [E, H, I] say what the others must be. */
ortc_status ortc_contrib_infer_moe(ortc_infer *c)
{
    enum { INPUT, ROUTER, W1, B1, W2, B2, W3, B3 };
    const ortc_node *n = ortc_infer_node(c);
    const ortc_port x = ortc_infer_in(c, INPUT), w2 = ortc_infer_in(c, W2);
    const int64_t k = ortc_node_int(n, "k", 1);
    const bool fused = !strcmp(ortc_node_string(n, "activation_type", ""), "swiglu") &&
                       ortc_node_int(n, "swiglu_fusion", 0) != 0;
    if (x.rank == 0) return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "input is a scalar");
    if (w2.rank == 3) {
        const ortc_dim e = w2.dims[0], h = w2.dims[1], i = w2.dims[2],
                       rows = fused ? ortc_dim_mul(c, i, 2) : i;
        ortc_dim tokens = x.rank > 0 ? 1 : ORTC_DIM_UNKNOWN, same;
        for (int32_t d = 0; d < x.rank - 1; d++) tokens = ortc_dim_mul(c, tokens, x.dims[d]);
        if (x.rank > 0) ORTC_TRY(ortc_infer_same(c, "last dim of input", x.dims[x.rank - 1], h, &same));
        if (k < 1 || (ortc_dim_is_number(e) && k > e))
            return ortc_infer_fail(c, ORTC_INVALID_ARGUMENT, "%lld experts for a token, of %lld", LL(k),
                                   LL(e));
        ORTC_TRY(agree(c, ROUTER, "router_probs", 2, (const ortc_dim[]){tokens, e}));
        ORTC_TRY(agree(c, W1, "fc1_experts_weights", 3, (const ortc_dim[]){e, rows, h}));
        ORTC_TRY(agree(c, B1, "fc1_experts_bias", 2, (const ortc_dim[]){e, rows}));
        ORTC_TRY(agree(c, B2, "fc2_experts_bias", 2, (const ortc_dim[]){e, h}));
        ORTC_TRY(agree(c, W3, "fc3_experts_weights", 3, (const ortc_dim[]){e, i, h}));
        ORTC_TRY(agree(c, B3, "fc3_experts_bias", 2, (const ortc_dim[]){e, i}));
    } else if (w2.rank >= 0) {
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "fc2_experts_weights has %d dims, expected 3",
                               w2.rank);
    }
    return ortc_infer_out(c, 0, x.dtype, x.rank, x.dims);
}

/* Bytes of so many elements. */
static ortc_dim packed(ortc_dim elements, int64_t bits)
{
    return ortc_dim_is_number(elements) ? (elements * bits + 7) / 8 : ORTC_DIM_UNKNOWN;
}

/* Layer `fc` of QMoE: weights [E, N, K], by their ports; N and K may be unknown. */
static ortc_status agree_bits(ortc_infer *c, int fc, const uint32_t port[4], ortc_dim e, ortc_dim n,
                              ortc_dim k, int64_t bits)
{
    const ortc_port w = ortc_infer_in(c, port[0]), scales = ortc_infer_in(c, port[1]);
    char what[4][32];
    static const char *const parts[] = {"experts_weights", "scales", "experts_bias", "zero_points"};
    for (int i = 0; i < 4; i++) snprintf(what[i], sizeof what[i], "fc%d_%s", fc, parts[i]);
    if (!w.type) return ORTC_OK;
    if (!scales.type) return ortc_infer_fail(c, ORTC_INVALID_MODEL, "%s is missing", what[1]);
    ORTC_TRY(agree(c, port[0], what[0], 3, (const ortc_dim[]){e, n, packed(k, bits)}));
    ORTC_TRY(agree(c, port[2], what[2], 2, (const ortc_dim[]){e, n}));
    if (scales.rank == 2) {
        ORTC_TRY(agree(c, port[1], what[1], 2, (const ortc_dim[]){e, n}));
        return agree(c, port[3], what[3], 2, (const ortc_dim[]){e, packed(n, bits)});
    }
    if (scales.rank < 0) return ORTC_OK;
    ORTC_TRY(agree(c, port[1], what[1], 3, (const ortc_dim[]){e, n, ORTC_DIM_UNKNOWN}));
    const ortc_dim blocks = scales.dims[2];
    if (ortc_dim_is_number(blocks) && (blocks < 1 || (ortc_dim_is_number(k) && k % blocks)))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "%lld elements in %lld blocks", LL(k), LL(blocks));
    return agree(c, port[3], what[3], 3, (const ortc_dim[]){e, n, packed(blocks, bits)});
}

/* Of the shape of the input. */
ortc_status ortc_contrib_infer_qmoe(ortc_infer *c)
{
    static const uint32_t ports[3][4] = {{2, 3, 4, 11}, {5, 6, 7, 12}, {8, 9, 10, 13}};
    const ortc_node *n = ortc_infer_node(c);
    const ortc_port x = ortc_infer_in(c, 0), w2 = ortc_infer_in(c, ports[1][0]);
    const int64_t all = ortc_node_int(n, "expert_weight_bits", 4), k = ortc_node_int(n, "k", 1);
    const int64_t bits[3] = {ortc_node_int(n, "fc1_expert_weight_bits", all),
                             ortc_node_int(n, "fc2_expert_weight_bits", all),
                             ortc_node_int(n, "fc3_expert_weight_bits", all)};
    const bool fused = !strcmp(ortc_node_string(n, "activation_type", ""), "swiglu") &&
                       ortc_node_int(n, "swiglu_fusion", 0) != 0;
    for (int i = 0; i < 3; i++)
        if (bits[i] != 2 && bits[i] != 4 && bits[i] != 8)
            return ortc_infer_fail(c, ORTC_UNSUPPORTED, "weights of %lld bits are not supported",
                                   LL(bits[i]));
    if (x.rank == 0) return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "input is a scalar");
    if (w2.rank >= 0 && w2.rank != 3)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "fc2_experts_weights has %d dims, expected 3",
                               w2.rank);
    if (w2.rank == 3) {
        const ortc_dim e = w2.dims[0], h = w2.dims[1], i = ortc_dim_mul(c, w2.dims[2], 8 / bits[1]);
        ortc_dim tokens = x.rank > 0 ? 1 : ORTC_DIM_UNKNOWN, same;
        for (int32_t d = 0; d < x.rank - 1; d++) tokens = ortc_dim_mul(c, tokens, x.dims[d]);
        if (x.rank > 0) ORTC_TRY(ortc_infer_same(c, "last dim of input", x.dims[x.rank - 1], h, &same));
        if (k < 1 || (ortc_dim_is_number(e) && k > e))
            return ortc_infer_fail(c, ORTC_INVALID_ARGUMENT, "%lld experts for a token, of %lld", LL(k),
                                   LL(e));
        ORTC_TRY(agree(c, 1, "router_probs", 2, (const ortc_dim[]){tokens, e}));
        ORTC_TRY(agree(c, 14, "router_weights", 2, (const ortc_dim[]){tokens, e}));
        ORTC_TRY(agree_bits(c, 1, ports[0], e, fused ? ortc_dim_mul(c, i, 2) : i, h, bits[0]));
        ORTC_TRY(agree_bits(c, 2, ports[1], e, h, i, bits[1]));
        ORTC_TRY(agree_bits(c, 3, ports[2], e, i, h, bits[2]));
    }
    return ortc_infer_out(c, 0, x.dtype, x.rank, x.dims);
}

ortc_status ortc_contrib_moe(ortc_lift *l)
{
    return mix_experts(l, "fc1_experts_weights", "fc2_experts_weights",
                       ortc_given(l, "fc3_experts_weights") ? "fc3_experts_weights" : NULL);
}

/* `to` [E, N, K] as numbers from the bytes of layer `n`: a scale, and maybe a zero point, for each row or
 * each block of one. */
static ortc_status read_weights(ortc_lift *l, const char *to, int n)
{
    char name[3][32], attribute[32], codes[32], zeros[32];
    static const char *const parts[] = {"experts_weights", "scales", "zero_points"};
    for (int i = 0; i < 3; i++) snprintf(name[i], sizeof name[i], "fc%d_%s", n, parts[i]);
    snprintf(attribute, sizeof attribute, "fc%d_expert_weight_bits", n);
    snprintf(codes, sizeof codes, "codes%d", n);
    snprintf(zeros, sizeof zeros, "zeros%d", n);
    const ortc_port w = ortc_lift_look(l, name[0]), s = ortc_lift_look(l, name[1]);
    const int64_t bits = ortc_lift_int(l, attribute, ortc_lift_int(l, "expert_weight_bits", 4));
    if (bits != 2 && bits != 4 && bits != 8)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "weights of %lld bits are not supported", LL(bits));
    for (int32_t d = 0; d < 3; d++)
        if (w.rank != 3 || s.rank < 2 || s.rank > 3 || w.dims[d] < 0 || (d < s.rank && s.dims[d] < 0) ||
            w.dims[d] > INT32_MAX)
            return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the shapes of %s and %s must be known", name[0],
                                  name[1]);
    const int64_t columns = w.dims[2] * (8 / bits), blocks = s.rank == 3 ? s.dims[2] : 1;
    int64_t rows;
    if (__builtin_mul_overflow(w.dims[0], w.dims[1], &rows) || s.dims[0] != w.dims[0] ||
        s.dims[1] != w.dims[1] || blocks < 1 || columns % blocks)
        return ortc_lift_fail(l, ORTC_SHAPE_MISMATCH, "%s and %s do not fit together", name[0], name[1]);
    ORTC_TRY(ortc_contrib_unpack(l, codes, name[0], bits, rows, columns, NULL));
    if (ortc_given(l, name[2]) && s.rank == 3)
        ORTC_TRY(ortc_contrib_unpack(l, zeros, name[2], bits, rows, blocks, codes));
    else if (ortc_given(l, name[2])) /* rows of an expert are packed together */
        ORTC_TRY(ortc_contrib_unpack(l, zeros, name[2], bits, w.dims[0], w.dims[1], codes));
    else
        ORTC_TRY(ortc_contrib_middle(l, zeros, codes, bits, rows, blocks));
    return ortc_lift_write(l,
                           "%s_steps = Reshape(%s, [%lld,%lld])\n"
                           "%s_zeros = Reshape(%s, [%lld,%lld])\n"
                           "%s_rows = DequantizeLinear(%s, %s_steps, %s_zeros) axis=1 block_size=%lld\n"
                           "%s_typed = Cast(%s_rows) to=@input\n"
                           "%s = Reshape(%s_typed, [%lld,%lld,%lld])",
                           to, name[1], LL(rows), LL(blocks), to, zeros, LL(rows), LL(blocks), to, codes, to,
                           to, LL(columns / blocks), to, to, to, to, LL(w.dims[0]), LL(w.dims[1]),
                           LL(columns));
}

ortc_status ortc_contrib_qmoe(ortc_lift *l)
{
    const bool third = ortc_given(l, "fc3_experts_weights");
    if (strcmp(ortc_node_string(ortc_lift_node(l), "quant_type", "int"), "int") != 0 ||
        ortc_lift_int(l, "weights_prepacked", -1) > 0)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED,
                              "only weights of integers are supported, and not prepacked");
    ORTC_TRY(read_weights(l, "w1", 1));
    ORTC_TRY(read_weights(l, "w2", 2));
    if (third) ORTC_TRY(read_weights(l, "w3", 3));
    return mix_experts(l, "w1", "w2", third ? "w3" : NULL);
}
