/* tests/session/test_raise_half.c: what is raised of f16 and bf16, with the casts that exporters put
 * around it.
 */
#include "tests/session/raising.h"

TestSuite(raise_half, .init = setup, .fini = teardown);

/* ---- f16 and bf16 -------------------------------------------------------------------------------------- */

/* How a form steps into f32: not at all, around all of it, or around its first half. */
enum { NARROW, WIDE, HALF_WIDE, STEPS };
static ortc_edge *widen(ortc_edge *x, int how) { return how == NARROW ? x : cast(x, ORTC_F32); }

static ortc_edge *value(double v, int how)
{
    const ortc_dtype t = form_type;
    form_type = how == NARROW ? t : ORTC_F32;
    ortc_edge *c = scalar(v);
    form_type = t;
    return c;
}

static ortc_edge *norm(ortc_edge *x, int how, bool centred, ortc_edge **inner)
{
    ortc_edge *w = widen(x, how), *d = centred ? two("Sub", w, two("ReduceMean", w, INTS(-1))) : w;
    ortc_edge *mean = two("ReduceMean", two("Pow", d, value(2, how)), INTS(-1));
    ortc_edge *y = two("Div", d, *inner = one("Sqrt", two("Add", mean, value(1e-3, how))));
    const ortc_dtype t = form_type;
    if (how == HALF_WIDE) y = cast(y, t); /* the weight is of the type */
    if (how == WIDE) form_type = ORTC_F32;
    y = two("Mul", y, vector(7, 0.5, 0.25));
    if (centred) y = two("Add", y, vector(7, -1, 0.5));
    form_type = t;
    return how == WIDE ? cast(y, t) : y;
}

static ortc_edge *gelu(ortc_edge *x, int how)
{
    ortc_edge *w = widen(x, how), *f = one("Erf", two("Div", w, value(sqrt(2), how)));
    ortc_edge *y = two("Mul", two("Mul", w, two("Add", f, value(1, how))), value(0.5, how));
    return how == NARROW ? y : cast(y, form_type);
}

/* Softmax in f32 between Casts where wide, with 0 for NaN. */
static ortc_edge *weights_of(ortc_edge *scores, int how, double nan)
{
    ortc_edge *w = with_int(one("Softmax", widen(scores, how)), "axis", -1);
    w = apply("Where", 3, one("IsNaN", w), value(nan, how), w, NULL);
    return how == NARROW ? w : cast(w, form_type);
}

static ortc_edge *masked_attention(int how, double nan, double low, ortc_edge *seen, bool fills)
{
    ortc_edge *q = heads_of("q", FOUR_D, length, false), *k = heads_of("k", FOUR_D, keys, true);
    ortc_edge *scores = two("MatMul", two("Mul", q, scalar(0.5)), two("Mul", k, scalar(0.5)));
    if (seen && fills) scores = apply("Where", 3, seen, scalar(low), scores, NULL);
    if (seen && !fills) scores = apply("Where", 3, seen, scores, scalar(low), NULL);
    return two("MatMul", weights_of(scores, how, nan), heads_of("v", FOUR_D, keys, false));
}

static ortc_edge *row(ortc_dim n) /* bool [1, 1, 1, n]: which keys a mask names */
{
    const ortc_dtype t = form_type;
    form_type = ORTC_F32;
    ortc_edge *y = two("Greater", input("seen", 4, 1, 1, 1, n), scalar(0));
    form_type = t;
    return y;
}

Test(raise_half, forms_of_f16_and_bf16)
{
    static const ortc_dtype types[] = {ORTC_F16, ORTC_BF16};
    char what[64];
    ortc_edge *inner;
    for (size_t t = 0; t < 2; t++)
        for (int how = 0; how < STEPS; how++) {
            form_type = types[t];
            snprintf(what, sizeof what, "type %d, form %d", (int)form_type, how);
            const ortc_node *n = expect_raised(what, "raise-layernorm", "LayerNormalization",
                                               norm(input("x", 3, batch, length, 7, 0), how, true, &inner));
            for (int i = 0; i < 3; i++)
                cr_expect(ortc_type_equal(n->in[i]->type, ortc_tensor_type(form_type)), "%s, input %d", what,
                          i);
            again();
            expect_raised(what, "raise-layernorm", "RMSNormalization",
                          norm(input("x", 3, batch, length, 7, 0), how, false, &inner));
            again();
            n = expect_raised(what, "raise-gelu", "Gelu", gelu(input("x", 3, batch, length, 7, 0), how));
            cr_expect(ortc_type_equal(n->in[0]->type, ortc_tensor_type(form_type)), "%s", what);
            again();
            for (int masks = 0; masks < 3; masks++) {
                n = expect_raised(what, "raise-attention", "Attention",
                                  masked_attention(how, 0, masks == 1 ? (double)-INFINITY : -3e4,
                                                   masks ? row(keys) : NULL, masks == 2));
                cr_expect(ortc_type_equal(n->in[0]->type, ortc_tensor_type(form_type)), "%s", what);
                cr_expect_eq(n->n_in, masks ? 4u : 3u, "%s", what);
                if (masks)
                    cr_expect(ortc_type_equal(n->in[3]->type, ortc_tensor_type(masks == 1 ? ORTC_BOOL
                                                                               : how      ? ORTC_F32
                                                                                          : form_type)),
                              "%s: mask %d", what, masks);
                again();
            }
            expect_raised(what, "raise-rotary", "RotaryEmbedding", rotary(how ? FACTOR : 0));
            again();
        }
    form_type = ORTC_F32;
}

Test(raise_half, an_operator_between_casts_is_of_their_type_where_its_constants_are)
{
    form_type = ORTC_F16;
    ortc_edge *x = cast(input("x", 3, batch, length, 7, 0), ORTC_F32);
    expect_raised("softmax", "raise-casts", "Softmax",
                  cast(with_int(one("Softmax", x), "axis", -1), ORTC_F16));
    for (int exact = 0; exact < 2; exact++) {
        again();
        x = cast(input("x", 3, batch, length, 7, 0), ORTC_F32);
        form_type = ORTC_F32;
        ortc_edge *y = two("LayerNormalization", x, vector(7, exact ? 0.5 : 0.1, 0.25));
        form_type = ORTC_F16;
        if (exact)
            expect_raised("weights of f16", "raise-casts", "LayerNormalization", cast(y, ORTC_F16));
        else
            expect_left("weights of f32", "raise-casts", cast(y, ORTC_F16));
    }
    form_type = ORTC_F32;
}

Test(raise_half, what_casts_away_more_than_its_type_or_is_read_on_the_way_is_left)
{
    ortc_edge *x, *inner, *y;
    y = cast(cast(attention(FOUR_D)->producer->in[0], ORTC_BF16),
             ORTC_F32); /* weights lose bits on the way */
    expect_left("f32 by way of bf16", "raise-attention",
                two("MatMul", y, heads_of("w", FOUR_D, keys, false)));
    form_type = ORTC_F16;
    x = input("x", 3, batch, length, 7, 0);
    y = norm(x, WIDE, true, &inner);
    ortc_graph_add_output(g, "more", one("Relu", inner));
    expect_left("the root is read", "raise-layernorm", y);
    x = input("x", 3, batch, length, 7, 0);
    y = norm(cast(x, ORTC_BF16), WIDE, true, &inner); /* bf16 inside of f16 */
    ortc_node *back = y->producer;
    const ortc_attr to = {.size = sizeof to, .kind = ORTC_ATTR_INT, .i = ORTC_F16};
    ortc_node_set_attr(back, "to", &to);
    ortc_graph_add_output(g, "y", cast(y, ORTC_F32));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    cr_expect_eq(normalise("raise-layernorm"), 1); /* in f32, between the Casts */
    cr_expect(ortc_type_equal(find(g, "LayerNormalization")->in[0]->type, ortc_tensor_type(ORTC_F32)));
    cr_expect_not_null(find(g, "Cast"));
    again();
    expect_left("1 for NaN", "raise-attention", masked_attention(NARROW, 1, -3e4, NULL, false));
    expect_left("a low that is not low", "raise-attention",
                masked_attention(NARROW, 0, -5, row(keys), false));
    expect_left("one for all keys", "raise-attention", masked_attention(NARROW, 0, -3e4, row(1), false));
    expect_left("of another length", "raise-attention",
                masked_attention(NARROW, 0, -3e4, row(symbol("other")), true));
    form_type = ORTC_F32;
}
