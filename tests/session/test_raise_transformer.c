/* tests/session/test_raise_transformer.c: what transformers are decomposed into is raised, with symbolic
 * batch and length: the node that comes of it, its body, the same numbers as before; what only looks like
 * it stays as it is.
 */
#include "tests/session/raising.h"

TestSuite(raise_transformer, .init = setup, .fini = teardown);

/* ---- Attention ----------------------------------------------------------------------------------------- */

Test(raise_transformer, attention_in_all_its_forms)
{
    char what[32];
    for (int form = 0; form < 2 * FORMS; form++) { /* the last bit: FOUR_D */
        if ((form & SCALE_Q && form & SCALE_BOTH) || (form & DIVIDE && form & SCALE_BOTH) ||
            (form & MASK_FIRST && !(form & MASK)) || (form & DIRECT_KEYS && form & FOUR_D))
            continue;
        snprintf(what, sizeof what, "form %d", form);
        const ortc_node *n = expect_raised(what, "raise-attention", "Attention", attention(form));
        cr_expect_eq(g->n_nodes, 1, "%s: %u nodes", what, g->n_nodes);
        cr_expect_float_eq((double)ortc_node_float(n, "scale", 0), 0.25, 1e-7, "%s", what);
        cr_expect_eq(ortc_node_int(n, "q_num_heads", 0), form & FOUR_D ? 0 : HEADS, "%s", what);
        cr_expect_eq(ortc_node_int(n, "kv_num_heads", 0), form & FOUR_D ? 0 : HEADS, "%s", what);
        cr_expect_eq(n->n_in, form & MASK ? 4u : 3u, "%s", what);
        static const char *const names[] = {"q", "k", "v", "mask"};
        for (uint32_t i = 0; i < n->n_in; i++) cr_expect_str_eq(n->in[i]->name, names[i], "%s", what);
        again();
    }
}

Test(raise_transformer, attention_whose_heads_are_not_put_together_keeps_4_dims)
{
    for (int form = 0; form <= DIRECT_KEYS; form += DIRECT_KEYS) {
        const ortc_node *n;
        ortc_edge *y = attention(APART | form);
        ortc_graph_add_output(g, "y", y);
        cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
        static float before[MAX_COUNT], after[MAX_COUNT];
        const int64_t count = run(g, "ref", before);
        cr_expect_eq(normalise("raise-attention"), 1);
        cr_assert_not_null(n = find(g, "Attention"));
        cr_expect_eq(ortc_node_int(n, "q_num_heads", 0), 0);
        cr_expect_eq(n->in[1]->rank, 4);
        cr_expect_eq(n->in[1]->dims[1], HEADS);
        cr_assert_eq(run(g, "ref", after), count);
        expect_close("apart", after, before, count);
        again();
    }
}

Test(raise_transformer, attention_whose_scale_stands_behind_the_mask_scales_the_mask)
{
    const ortc_node *n = expect_raised("behind", "raise-attention", "Attention", attention(SCALE_AFTER_MASK));
    cr_expect_float_eq((double)ortc_node_float(n, "scale", 0), 0.25, 1e-7);
    cr_expect_str_eq(n->in[3]->producer->type, "Mul");
}

/* GPT-2's masks: scores stay where a table of so many positions, cut to the lengths at hand, says so, and a
 * mask of padding is added, whose length is a symbol of its own. past: there is a cache before the keys. */
static ortc_edge *attention_with_a_table(int64_t positions, ortc_dim total, bool past)
{
    uint8_t below[256];
    for (int64_t i = 0; i < positions * positions; i++) below[i] = i % positions <= i / positions;
    const ortc_dim fresh = past ? length : keys;
    ortc_edge *q = input("q", 4, batch, HEADS, length, SIZE), *k = input("k", 4, batch, HEADS, fresh, SIZE);
    ortc_edge *v = input("v", 4, batch, HEADS, fresh, SIZE), *mask = input("mask", 4, batch, 1, 1, total);
    if (past) {
        k = with_int(two("Concat", input("old_k", 4, batch, HEADS, keys, SIZE), k), "axis", 2);
        v = with_int(two("Concat", input("past_v", 4, batch, HEADS, keys, SIZE), v), "axis", 2);
    }
    ortc_edge *table =
        two("Reshape", constant(ORTC_BOOL, 1, positions * positions, below, (size_t)(positions * positions)),
            INTS(1, 1, positions, positions));
    ortc_edge *n = two("Gather", one("Shape", q), INTS(2)), *all = two("Gather", one("Shape", k), INTS(2));
    ortc_edge *rows = past ? apply("Slice", 4, table, two("Sub", all, n), all, INTS(2))
                           : apply("Slice", 4, table, INTS(0), n, INTS(2));
    ortc_edge *seen = apply("Slice", 4, rows, INTS(0), all, INTS(3));
    ortc_edge *scores = two("Div", two("MatMul", q, transpose(k, 0, 1, 3, 2)), scalar(4));
    scores = two("Add", apply("Where", 3, seen, scores, scalar(-1e4), NULL), mask);
    return two("MatMul", with_int(one("Softmax", scores), "axis", -1), v);
}

Test(raise_transformer, attention_with_a_table_of_masks)
{
    for (int past = 0; past < 2; past++) { /* a mask of one is stretched */
        const ortc_node *n = expect_raised("a table", "raise-attention", "Attention",
                                           attention_with_a_table(16, past ? 1 : symbol("total"), past));
        cr_expect_str_eq(n->in[0]->name, "q");
        cr_expect_str_eq(n->in[3]->producer->type, "Add");
        again();
        /* 1 is stretched to all keys and queries, and Attention would not see the others */
        expect_left("a table of one", "raise-attention", attention_with_a_table(1, symbol("total"), past));
    }
}

/* k and v [B, groups, S, D], every head HEADS / GROUPS times, as LLaMA's repeat_kv. */
static ortc_edge *repeated(ortc_edge *x, int64_t times)
{
    ortc_edge *wide = two("Expand", two("Unsqueeze", x, INTS(2)), INTS(1, 1, times, 1, 1));
    ortc_edge *kept = one("Shape", x), *b = two("Gather", kept, INTS(0)), *n = two("Gather", kept, INTS(2));
    return two("Reshape", wide, concat(4, b, INTS(GROUPS * times), n, INTS(SIZE)));
}

Test(raise_transformer, attention_with_grouped_heads)
{
    ortc_edge *q = input("q", 4, batch, HEADS, length, SIZE), *k = input("k", 4, batch, GROUPS, keys, SIZE);
    ortc_edge *v = input("v", 4, batch, GROUPS, keys, SIZE);
    const ortc_node *n = expect_raised("groups", "raise-attention", "Attention",
                                       attention_with(FOUR_D, q,
                                                      transpose(repeated(k, HEADS / GROUPS), 0, 1, 3, 2),
                                                      repeated(v, HEADS / GROUPS), NULL));
    cr_expect_eq(n->in[1], k);
    cr_expect_eq(n->in[2], v);
    cr_expect_eq(g->n_nodes, 1);
}

Test(raise_transformer, what_only_looks_like_attention_is_left)
{
    static const struct {
        const char *what;
        int how;
    } forms[] = {{"softmax over the queries", OTHER_AXIS},
                 {"scale of each key", SCALE_VECTOR | FOUR_D},
                 {"scores are read", SCORES_READ},
                 {"weights are read", WEIGHTS_READ}};
    for (size_t i = 0; i < ORTC_LENGTH(forms); i++)
        expect_left(forms[i].what, "raise-attention", attention(forms[i].how));

    static const char *const masks[] = {"one for all keys", "of another length", "of another batch",
                                        "stretches the scores"};
    for (size_t i = 0; i < ORTC_LENGTH(masks); i++) {
        const ortc_dim one_batch = i == 3 ? 1 : batch;
        ortc_edge *q = input("q", 4, one_batch, HEADS, length, SIZE),
                  *k = input("k", 4, one_batch, HEADS, keys, SIZE);
        ortc_edge *v = input("v", 4, one_batch, HEADS, keys, SIZE);
        ortc_edge *mask = input("mask", 4, i == 2 ? symbol("other") : batch, 1, 1,
                                i == 0   ? 1
                                : i == 1 ? length
                                         : keys);
        expect_left(masks[i], "raise-attention",
                    attention_with(FOUR_D, q, transpose(k, 0, 1, 3, 2), v, mask));
    }
    ortc_edge *q = input("q", 4, batch, HEADS, length, SIZE), *v = input("v", 4, batch, HEADS, keys, SIZE);
    expect_left("keys of one sample", "raise-attention",
                attention_with(FOUR_D, q, transpose(input("k", 4, 1, HEADS, keys, SIZE), 0, 1, 3, 2), v,
                               NULL));
    q = input("q", 4, batch, HEADS, length, SIZE), v = input("v", 4, batch, HEADS, keys, SIZE);
    expect_left("keys that nothing transposes", "raise-attention",
                attention_with(FOUR_D, q, input("k", 4, batch, HEADS, SIZE, keys), v, NULL));
}

/* ---- Softmax, Swish ------------------------------------------------------------------------------------ */

static ortc_edge *softmax(ortc_edge *x, ortc_edge *of, int64_t axis, int64_t sum_axis, bool kept,
                          ortc_edge **exp)
{
    ortc_edge *top = with_int(two("ReduceMax", of, INTS(axis)), "keepdims", 1);
    *exp = one("Exp", two("Sub", x, top));
    return two("Div", *exp, with_int(two("ReduceSum", *exp, INTS(sum_axis)), "keepdims", kept));
}

Test(raise_transformer, softmax_and_what_is_not)
{
    ortc_edge *x, *exp;
    for (int64_t axis = -3; axis < 3; axis++) {
        x = input("x", 3, batch, length, 7, 0);
        const ortc_node *n = expect_raised("softmax", "raise-softmax", "Softmax",
                                           softmax(x, x, axis, axis < 0 ? axis + 3 : axis - 3, true, &exp));
        cr_expect_eq(ortc_node_int(n, "axis", 9), axis < 0 ? axis + 3 : axis);
        cr_expect_eq(g->n_nodes, 1);
        again();
    }
    x = input("x", 3, batch, length, 7, 0);
    expect_left("another axis", "raise-softmax", softmax(x, x, 2, 1, true, &exp));
    x = input("x", 3, batch, length, 7, 0);
    expect_left("the greatest of something else", "raise-softmax",
                softmax(x, one("Relu", x), 2, 2, true, &exp));
    x = input("x", 3, 1, 1, 7, 0);
    expect_left("the sum loses its dim", "raise-softmax", softmax(x, x, 1, 1, false, &exp));
    x = input("x", 3, batch, length, 7, 0);
    ortc_edge *y = softmax(x, x, 2, 2, true, &exp);
    ortc_graph_add_output(g, "more", one("Relu", exp));
    expect_left("exponentials are read", "raise-softmax", y);
    x = input("x", 3, batch, length, 7, 0);
    exp = one("Exp", x);
    expect_left("nothing is taken off", "raise-softmax",
                two("Div", exp, with_int(two("ReduceSum", exp, INTS(2)), "keepdims", 1)));
}

Test(raise_transformer, swish_and_what_is_not)
{
    for (int form = 0; form < 4; form++) {
        ortc_edge *x = input("x", 3, batch, length, 7, 0), *in = form & 1 ? two("Mul", x, scalar(1.702F)) : x;
        ortc_edge *s = one("Sigmoid", in);
        const ortc_node *n = expect_raised("swish", "raise-swish", "Swish",
                                           form & 2 ? two("Mul", x, s) : two("Mul", s, x));
        cr_expect_float_eq((double)ortc_node_float(n, "alpha", 0), form & 1 ? 1.702 : 1, 1e-6);
        cr_expect_eq(g->n_nodes, 1);
        again();
    }
    ortc_edge *x = input("x", 3, batch, length, 7, 0), *s = one("Sigmoid", x);
    ortc_graph_add_output(g, "more", one("Relu", s));
    expect_left("the sigmoid is read", "raise-swish", two("Mul", x, s));
    x = input("x", 3, batch, length, 7, 0);
    expect_left("the gate of something else", "raise-swish", two("Mul", x, one("Sigmoid", one("Relu", x))));
    x = input("x", 3, batch, length, 7, 0);
    expect_left("a gate that is added", "raise-swish", two("Add", x, one("Sigmoid", x)));
}

/* ---- GroupNormalization -------------------------------------------------------------------------------- */

/* Of x [batch, 6, 4, 5], in 3 groups; scale and bias of the instances, which are ones and zeros. */
static ortc_edge *grouped(ortc_edge *x, double scale, double step, ortc_edge *(*between)(ortc_edge *))
{
    ortc_edge *rows = two("Reshape", x, INTS(0, 3, -1));
    if (between) rows = between(rows);
    ortc_edge *y = apply("InstanceNormalization", 3, rows, vector(3, scale, step), vector(3, 0, 0), NULL);
    if (between) y = between(y);
    return two("Reshape", y, INTS(-1, 6, 4, 5));
}
static ortc_edge *by_channel(double first) /* [6, 1, 1] */
{
    const ortc_constant *v = vector(6, first, 0.25)->constant;
    const int64_t dims[3] = {6, 1, 1};
    ortc_constant *c;
    void *copy = memcpy(malloc(v->bytes), v->data, v->bytes);
    cr_assert_eq(ortc_constant_create(v->dtype, 3, dims, copy, v->bytes, free, copy, &c, &e), ORTC_OK);
    return ortc_graph_constant(g, NULL, c);
}
static ortc_edge *rounded(ortc_edge *x)
{
    const uint8_t zero = 120;
    const float scale = 0.03F;
    ortc_edge *s = constant(ORTC_F32, 0, 1, &scale, sizeof scale), *z = constant(ORTC_U8, 0, 1, &zero, 1);
    return apply("DequantizeLinear", 3, apply("QuantizeLinear", 3, x, s, z, NULL), s, z, NULL);
}

Test(raise_transformer, group_normalization_and_what_is_not)
{
    static const ortc_dtype types[] = {ORTC_F32, ORTC_F16, ORTC_BF16};
    for (size_t t = 0; t < ORTC_LENGTH(types); t++) {
        form_type = types[t];
        for (int form = 0; form < 3; form++) {
            ortc_edge *y = grouped(input("x", 4, batch, 6, 4, 5), 1, 0, NULL);
            if (form > 0) y = two("Mul", y, by_channel(0.5));
            if (form > 1) y = two("Add", by_channel(-0.75), y);
            const ortc_node *n = expect_raised("groups", "raise-groupnorm", "GroupNormalization", y);
            cr_expect_eq(ortc_node_int(n, "num_groups", 0), 3);
            again();
        }
    }
    form_type = ORTC_F32;
    static float before[MAX_COUNT], after[MAX_COUNT];
    ortc_graph_add_output(g, "y", grouped(input("x", 4, batch, 6, 4, 5), 1, 0, rounded));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    const int64_t count = run(g, "ref", before);
    cr_expect_eq(normalise("raise-groupnorm"), 2, "roundings move, then it is raised");
    cr_expect_eq(g->n_nodes, 5);
    cr_assert_not_null(find(g, "GroupNormalization"));
    cr_assert_eq(run(g, "ref", after), count);
    expect_close("between roundings", after, before, count);
    again();
    expect_left("scales", "raise-groupnorm", grouped(input("x", 4, batch, 6, 4, 5), 1, 0.5, NULL));
    ortc_edge *x = input("x", 4, batch, 6, 4, 5), *rows = two("Reshape", x, INTS(0, 3, -1));
    ortc_graph_add_output(g, "more", rows);
    ortc_edge *y = apply("InstanceNormalization", 3, rows, vector(3, 1, 0), vector(3, 0, 0), NULL);
    expect_left("other extents", "raise-groupnorm", two("Reshape", y, INTS(-1, 6, 5, 4)));
    x = input("x", 4, batch, 6, 4, 5);
    y = apply("InstanceNormalization", 3, two("Reshape", x, INTS(-1, 2, 20)), vector(2, 1, 0),
              vector(2, 0, 0), NULL);
    expect_left("groups of other images", "raise-groupnorm", two("Reshape", y, INTS(-1, 6, 4, 5)));
}

/* ---- RotaryEmbedding ----------------------------------------------------------------------------------- */

Test(raise_transformer, rotary_embedding_and_what_is_not)
{
    for (int form = 0; form < ROTARY_FORMS; form++) {
        const ortc_node *n = expect_raised("rotary", "raise-rotary", "RotaryEmbedding", rotary(form));
        cr_expect_str_eq(n->in[0]->name, "x");
        cr_expect_eq(n->in[1]->dims[2], SIZE / 2);
        cr_expect_eq(ortc_node_int(n, "interleaved", 9), 0);
        again();
    }
    expect_left("halves that may differ", "raise-rotary", rotary(TWO_ANGLES));
    expect_left("nothing is negated", "raise-rotary", rotary(NO_NEG));
    expect_left("sines for cosines", "raise-rotary", rotary(SIN_TWICE));
    expect_left("the turned half is read", "raise-rotary", rotary(TURNED_READ));
}
