/* tests/session/test_raise_transformer.c: what transformers are decomposed into is raised, with symbolic
 * batch and length: the node that comes of it, its body, the same numbers as before; what only looks like
 * it stays as it is.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "graph/ir/body.h"
#include "graph/normalise/normalise.h"
#include "runtime/registry/registry.h"
#include "runtime/session/create.h"
#include "runtime/session/session.h"

enum { BATCH = 2, LENGTH = 5, KEYS = 6, HEADS = 4, GROUPS = 2, SIZE = 8, MAX_INPUTS = 6, MAX_COUNT = 4096 };

static ortc_graph *g;
static ortc_model store;
static ortc_error e;
static ortc_dim batch, length, keys; /* symbols */

static ortc_dim symbol(const char *name)
{
    ortc_dim d;
    cr_assert_eq(ortc_dims_symbol(g->dims, &g->arena, name, &d), ORTC_OK);
    return d;
}

static void start(void)
{
    e = (ortc_error)ORTC_ERROR_INIT;
    cr_assert_eq(ortc_registry_init(&e), ORTC_OK, "%s", e.text);
    cr_assert_not_null(g = ortc_graph_create(NULL));
    batch = symbol("batch");
    length = symbol("length");
    keys = symbol("keys");
}
static void setup(void)
{
    start();
    cr_assert(ortc_pack_store_init(&store.packed, 0));
}
static void teardown(void)
{
    ortc_graph_destroy(g);
    ortc_pack_store_deinit(&store.packed);
}
TestSuite(raise_transformer, .init = setup, .fini = teardown);

/* ---- Building ------------------------------------------------------------------------------------------ */

/* What forms are computed in; a graph's own inputs and results are f32 all the same. */
static ortc_dtype form_type = ORTC_F32;
static ortc_edge *cast(ortc_edge *x, ortc_dtype t);

static ortc_edge *input(const char *name, int32_t rank, ortc_dim a, ortc_dim b, ortc_dim c, ortc_dim d)
{
    const ortc_dim dims[4] = {a, b, c, d};
    ortc_edge *x = ortc_edge_create(g, name);
    ortc_edge_set_shape(x, ortc_tensor_type(ORTC_F32), rank, dims);
    ortc_graph_add_input(g, name, x);
    return form_type == ORTC_F32 ? x : cast(x, form_type);
}

static ortc_edge *constant(ortc_dtype t, int32_t rank, int64_t count, const void *data, size_t bytes)
{
    ortc_constant *c;
    void *copy = malloc(bytes + 1);
    memcpy(copy, data, bytes);
    cr_assert_eq(ortc_constant_create(t, rank, &count, copy, bytes, free, copy, &c, &e), ORTC_OK);
    return ortc_graph_constant(g, NULL, c);
}
/* to the nearest; of normal numbers and infinity */
static uint16_t narrow(float f, ortc_dtype t)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (t == ORTC_BF16) return (uint16_t)((bits + (isinf(f) ? 0 : 0x8000)) >> 16);
    const uint32_t sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    return (uint16_t)(sign | (isinf(f) ? 0x7c00 : rest ? (rest + 0x1000 - (UINT32_C(112) << 23)) >> 13 : 0));
}
static ortc_edge *scalar(double v)
{
    const float f = (float)v;
    const uint16_t h = narrow(f, form_type);
    return form_type == ORTC_F32 ? constant(ORTC_F32, 0, 1, &f, sizeof f)
                                 : constant(form_type, 0, 1, &h, sizeof h);
}
static ortc_edge *vector(int64_t count, double first, double step)
{
    float f[16];
    uint16_t h[16];
    for (int64_t i = 0; i < count; i++)
        f[i] = (float)(first + step * (double)i), h[i] = narrow(f[i], form_type);
    return form_type == ORTC_F32 ? constant(ORTC_F32, 1, count, f, 4 * (size_t)count)
                                 : constant(form_type, 1, count, h, 2 * (size_t)count);
}
#define INTS(...) \
    constant(ORTC_I64, 1, sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__}, \
             sizeof((int64_t[]){__VA_ARGS__}))

static ortc_edge *apply(const char *op, uint32_t n, ortc_edge *a, ortc_edge *b, ortc_edge *c, ortc_edge *d)
{
    ortc_edge *const in[4] = {a, b, c, d};
    ortc_node *node = ortc_node_create(g, ortc_op_find("", op), NULL, n, 1);
    for (uint32_t i = 0; i < n; i++) ortc_node_set_in(node, i, in[i]);
    ortc_node_set_out(node, 0, ortc_edge_create(g, NULL));
    return node->out[0];
}
static ortc_edge *one(const char *op, ortc_edge *a) { return apply(op, 1, a, NULL, NULL, NULL); }
static ortc_edge *two(const char *op, ortc_edge *a, ortc_edge *b) { return apply(op, 2, a, b, NULL, NULL); }

static ortc_edge *with_int(ortc_edge *y, const char *name, int64_t v)
{
    const ortc_attr a = {.size = sizeof a, .kind = ORTC_ATTR_INT, .i = v};
    ortc_node_set_attr(y->producer, name, &a);
    return y;
}
static ortc_edge *cast(ortc_edge *x, ortc_dtype t) { return with_int(one("Cast", x), "to", t); }
static ortc_edge *concat(uint32_t n, ortc_edge *a, ortc_edge *b, ortc_edge *c, ortc_edge *d)
{
    return with_int(apply("Concat", n, a, b, c, d), "axis", 0);
}
static ortc_edge *transpose(ortc_edge *x, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t perm[4] = {a, b, c, d};
    const ortc_attr by = {.size = sizeof by, .kind = ORTC_ATTR_INTS, .count = 4, .u.ints = perm};
    ortc_edge *y = one("Transpose", x);
    ortc_node_set_attr(y->producer, "perm", &by);
    return y;
}

/* ---- Running ------------------------------------------------------------------------------------------- */

static int64_t number(ortc_dim d) { return d == batch ? BATCH : d == length ? LENGTH : d == keys ? KEYS : d; }

/* The first output; inputs are made up from their names. Gives the number of elements. */
static int64_t run(const ortc_graph *from, const char *providers, float *y)
{
    static float x[MAX_INPUTS][MAX_COUNT];
    ortc_graph *copy;
    ortc_session *s;
    ortc_in in[MAX_INPUTS];
    cr_assert_eq(ortc_graph_clone(from, &copy, &e), ORTC_OK, "%s", e.text);
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.providers = providers;
    cr_assert_eq(ortc_session_from_graph(&store, copy, &o, &s, &e), ORTC_OK, "%s", e.text);
    for (uint32_t i = 0; i < from->n_inputs; i++) {
        const ortc_edge *edge = from->inputs[i].edge;
        int64_t dims[4], count = 1;
        for (int32_t d = 0; d < edge->rank; d++) count *= dims[d] = number(edge->dims[d]);
        for (int64_t k = 0; k < count; k++)
            x[i][k] = (float)((k * 37 + from->inputs[i].name[0] * 11) % 29 - 14) * 0.07F;
        in[i] = (ortc_in){from->inputs[i].name, ortc_wrap(x[i], ORTC_F32, edge->rank, dims)};
    }
    ortc_out out = {"y", NULL, 0, 0};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = in, a.n_in = from->n_inputs, a.out = &out, a.n_out = 1;
    cr_assert_eq(ortc_run(s, &a, &e), ORTC_OK, "%s", e.text);
    const int64_t count = (int64_t)ortc_value_count(out.value);
    memcpy(y, ortc_value_data(out.value), (size_t)count * sizeof *y);
    for (uint32_t i = 0; i < from->n_inputs; i++) ortc_value_release(in[i].value);
    ortc_value_release(out.value);
    ortc_session_release(s);
    return count;
}

static uint64_t normalise(const char *pass)
{
    uint64_t edits[32], n = 0;
    ortc_normalise p = {.graph = g, .error = &e};
    cr_assert_leq(ortc_normalise_n_passes, 32);
    cr_assert_eq(ortc_normalise_run(&p, NULL, 0, edits), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_graph_verify(g, &e), ORTC_OK, "%s", e.text);
    for (size_t i = 0; i < ortc_normalise_n_passes; i++)
        if (!strcmp(ortc_normalise_passes[i].name, pass)) n = edits[i];
    return n;
}

static ortc_node *find(const ortc_graph *in, const char *op)
{
    for (ortc_node *n = in->first; n; n = n->next)
        if (!strcmp(n->type, op)) return n;
    return NULL;
}

static void expect_close(const char *what, const float *have, const float *want, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        cr_assert_float_eq(have[i], want[i],
                           (form_type == ORTC_F16    ? 0x1p-8
                            : form_type == ORTC_BF16 ? 0x1p-5
                                                     : 1e-5) *
                               (1 + fabs((double)want[i])),
                           "%s: element %d", what, (int)i);
}

/* The graph so far, with y as its output, gets one node of `op` by `pass` and computes the same; so it does
 * with the body. */
static const ortc_node *expect_raised(const char *what, const char *pass, const char *op, ortc_edge *y)
{
    static float before[MAX_COUNT], after[MAX_COUNT];
    ortc_graph *copy;
    ortc_graph_add_output(g, "y", form_type == ORTC_F32 ? y : cast(y, ORTC_F32));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s: %s", what, e.text);
    const int64_t count = run(g, "ref", before);
    cr_expect_eq(normalise(pass), 1, "%s", what);
    ortc_node *n = find(g, op);
    cr_assert(n && ortc_node_is_raised(n), "%s", what);
    cr_expect_eq(n->out[0], y, "%s: the result keeps its edge", what);
    cr_assert_eq(run(g, "ref", after), count, "%s", what);
    expect_close(what, after, before, count);
    cr_expect_eq(ortc_graph_verify(n->body, &e), ORTC_OK, "%s: %s", what, e.text);
    cr_assert_eq(ortc_graph_clone(g, &copy, &e), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_node_expand(find(copy, op), NULL, &e), ORTC_OK, "%s", e.text);
    if (strcmp(pass, "raise-casts")) /* whose bodies hold the same operator, in f32 */
        cr_expect_null(find(copy, op), "%s", what);
    cr_assert_eq(run(copy, "ref", after), count, "%s", what);
    expect_close(what, after, before, count);
    ortc_graph_destroy(copy);
    return n;
}

static void again(void)
{
    ortc_graph_destroy(g);
    start();
}

static void expect_left(const char *what, const char *pass, ortc_edge *y)
{
    ortc_graph_add_output(g, "y", form_type == ORTC_F32 ? y : cast(y, ORTC_F32));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s: %s", what, e.text);
    cr_expect_eq(normalise(pass), 0, "%s", what);
    again();
}

/* ---- Attention ----------------------------------------------------------------------------------------- */

/* how it is written, and what only looks like it */
enum {
    DIRECT_KEYS = 1,
    SCALE_Q = 2,
    SCALE_BOTH = 4,
    DIVIDE = 8,
    MASK = 16,
    MASK_FIRST = 32,
    AXIS_3 = 64,
    FORMS = 128,
    FOUR_D = 128,
    SCALE_AFTER_MASK = 512,
    OTHER_AXIS = 1024,
    SCALE_VECTOR = 2048,
    SCORES_READ = 4096,
    WEIGHTS_READ = 8192,
    APART = 16384
};

/* [B, n, heads * size] or [B, heads, n, size], as [B, heads, n, size] or, keys, [B, heads, size, n] */
static ortc_edge *heads_of(const char *name, int how, ortc_dim n, bool is_key)
{
    ortc_edge *x = how & FOUR_D ? input(name, 4, batch, HEADS, n, SIZE)
                                : input(name, 3, batch, n, HEADS * SIZE, 0);
    if (!(how & FOUR_D)) {
        x = two("Reshape", x, INTS(0, 0, HEADS, SIZE));
        if (is_key && how & DIRECT_KEYS) return transpose(x, 0, 2, 3, 1);
        x = transpose(x, 0, 2, 1, 3);
    }
    return is_key ? transpose(x, 0, 1, 3, 2) : x;
}

static ortc_edge *attention_with(int how, ortc_edge *q, ortc_edge *k, ortc_edge *v, ortc_edge *mask)
{
    const double scale = 0.25;
    if (how & SCALE_BOTH) {
        q = two("Mul", q, scalar(sqrt(scale)));
        k = two("Mul", scalar(sqrt(scale)), k);
    } else if (how & SCALE_Q)
        q = how & DIVIDE ? two("Div", q, scalar(1 / scale)) : two("Mul", q, scalar(scale));
    ortc_edge *scores = two("MatMul", q, k);
    if (how & SCORES_READ) ortc_graph_add_output(g, "more", one("Relu", scores));
    if (how & SCALE_VECTOR)
        scores = two("Mul", scores, constant(ORTC_F32, 1, KEYS, (float[KEYS]){1, 2, 3, 4, 5, 6}, 4 * KEYS));
    if (!(how & (SCALE_Q | SCALE_BOTH | SCALE_AFTER_MASK)))
        scores = how & DIVIDE ? two("Div", scores, scalar(1 / scale)) : two("Mul", scores, scalar(scale));
    if (mask) scores = how & MASK_FIRST ? two("Add", mask, scores) : two("Add", scores, mask);
    if (how & SCALE_AFTER_MASK) scores = two("Mul", scores, scalar(scale));
    ortc_edge *weights = with_int(one("Softmax", scores), "axis",
                                  how & OTHER_AXIS ? 2
                                  : how & AXIS_3   ? 3
                                                   : -1);
    if (how & WEIGHTS_READ) ortc_graph_add_output(g, "more", one("Relu", weights));
    ortc_edge *y = two("MatMul", weights, v);
    if (how & FOUR_D) return y;
    y = transpose(y, 0, 2, 1, 3);
    return two("Reshape", y, how & APART ? INTS(0, 0, HEADS, SIZE) : INTS(0, 0, HEADS * SIZE));
}

static ortc_edge *attention(int how)
{
    const ortc_dim n = how & SCALE_VECTOR ? KEYS : keys;
    ortc_edge *q = heads_of("q", how, length, false), *k = heads_of("k", how, n, true);
    ortc_edge *v = heads_of("v", how, n, false);
    return attention_with(how, q, k, v,
                          how & (MASK | SCALE_AFTER_MASK) ? input("mask", 4, batch, 1, 1, n) : NULL);
}

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

/* ---- RotaryEmbedding ----------------------------------------------------------------------------------- */
enum {
    SWAPPED = 1,
    FACTOR = 2,
    ROTARY_FORMS = 4,
    TWO_ANGLES = 4,
    NO_NEG = 8,
    SIN_TWICE = 16,
    TURNED_READ = 32
};

static ortc_edge *rotary(int how)
{
    ortc_edge *x = input("x", 4, batch, HEADS, length, SIZE), *a = input("a", 3, batch, length, SIZE / 2, 0);
    ortc_edge *b = how & TWO_ANGLES ? input("b", 3, batch, length, SIZE / 2, 0) : a;
    ortc_edge *all = with_int(two("Concat", a, b), "axis", -1),
              *cos = one(how & SIN_TWICE ? "Sin" : "Cos", all), *sin = one("Sin", all);
    if (how & FACTOR) cos = two("Mul", cos, scalar(1.5)), sin = two("Mul", scalar(1.5), sin);
    cos = two("Unsqueeze", cos, INTS(1));
    sin = two("Unsqueeze", sin, INTS(1));
    ortc_edge *low = apply("Slice", 4, x, INTS(0), INTS(SIZE / 2), INTS(3));
    ortc_edge *high = apply("Slice", 4, x, INTS(SIZE / 2), INTS(INT64_MAX), INTS(3));
    ortc_edge *turned = with_int(two("Concat", how & NO_NEG ? one("Relu", high) : one("Neg", high), low),
                                 "axis", -1);
    if (how & TURNED_READ) ortc_graph_add_output(g, "more", one("Relu", turned));
    ortc_edge *kept = how & SWAPPED ? two("Mul", cos, x) : two("Mul", x, cos);
    turned = how & SWAPPED ? two("Mul", sin, turned) : two("Mul", turned, sin);
    return how & SWAPPED ? two("Add", turned, kept) : two("Add", kept, turned);
}

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

Test(raise_transformer, forms_of_f16_and_bf16)
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

Test(raise_transformer, an_operator_between_casts_is_of_their_type_where_its_constants_are)
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

Test(raise_transformer, what_casts_away_more_than_its_type_or_is_read_on_the_way_is_left)
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

/* ---- Targets ------------------------------------------------------------------------------------------- */

Test(raise_transformer, targets_that_are_computed_become_constants_where_they_say_the_same)
{
    static float before[MAX_COUNT], after[MAX_COUNT];
    ortc_edge *x = input("x", 3, batch, length, HEADS * SIZE, 0), *shape = one("Shape", x);
    ortc_edge *target = concat(3, two("Gather", shape, INTS(0)), two("Gather", shape, INTS(1)),
                               INTS(HEADS, SIZE), NULL);
    ortc_edge *split = two("Reshape", x, target);
    ortc_edge *flat = two("Reshape", one("Relu", split),
                          concat(2, two("Mul", two("Gather", shape, INTS(0)), two("Gather", shape, INTS(1))),
                                 INTS(HEADS * SIZE), NULL, NULL));
    ortc_graph_add_output(g, "y", flat);
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    const int64_t count = run(g, "ref", before);
    cr_expect_eq(normalise("constant-targets"), 2);
    cr_expect_eq(g->n_nodes, 3);
    static const int64_t four[4] = {0, 0, HEADS, SIZE}, rows[2] = {-1, HEADS * SIZE};
    cr_expect_arr_eq(split->producer->in[1]->constant->data, four, sizeof four);
    cr_expect_arr_eq(flat->producer->in[1]->constant->data, rows, sizeof rows);
    cr_assert_eq(run(g, "ref", after), count);
    expect_close("targets", after, before, count);
    again();
    /* length and batch change places: neither is kept, and -1 can stand for one only */
    x = input("x", 3, batch, length, SIZE, 0), shape = one("Shape", x);
    expect_left("two that are open", "constant-targets",
                two("Reshape", x,
                    concat(3, two("Gather", shape, INTS(1)), two("Gather", shape, INTS(0)), INTS(SIZE),
                           NULL)));
    /* beside a dim that is kept, and may be 0, -1 means nothing */
    x = input("x", 3, batch, length, keys, 0), shape = one("Shape", x);
    expect_left("open beside one that is kept", "constant-targets",
                two("Reshape", x,
                    concat(2, two("Gather", shape, INTS(0)),
                           two("Mul", two("Gather", shape, INTS(1)), two("Gather", shape, INTS(2))), NULL,
                           NULL)));
}

/* ---- Heads and masks as vision transformers move them -------------------------------------------------- */

/* Part i of [batch, length, 3 * HEADS * SIZE], as [batch, HEADS, length, SIZE]; looks_like: 1 the axes go
 * elsewhere, 2 a part is gathered as a dim. */
static ortc_edge *gathered(ortc_edge *x, int i, int looks_like)
{
    const int64_t perm[5] = {2, 0, looks_like == 1 ? 1 : 3, looks_like == 1 ? 3 : 1, 4}, at = i;
    const ortc_attr by = {.size = sizeof by, .kind = ORTC_ATTR_INTS, .count = 5, .u.ints = perm};
    ortc_edge *y = one("Transpose", two("Reshape", x, INTS(0, 0, 3, HEADS, SIZE)));
    ortc_node_set_attr(y->producer, "perm", &by);
    y = two("Gather", y, looks_like == 2 ? INTS(at) : constant(ORTC_I64, 0, 1, &at, sizeof at));
    return with_int(y, "axis", 0);
}

Test(raise_transformer, heads_of_one_product_are_split_before_they_are_moved)
{
    static float before[MAX_COUNT], after[MAX_COUNT];
    ortc_edge *x = input("x", 3, batch, length, 3 * HEADS * SIZE, 0);
    ortc_edge *q = gathered(x, 0, 0), *k = gathered(x, 1, 0), *v = gathered(x, -1, 0);
    ortc_graph_add_output(g, "y", attention_with(0, q, transpose(k, 0, 1, 3, 2), v, NULL));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    const int64_t count = run(g, "ref", before);
    cr_expect_eq(normalise("split-heads"), 3);
    const ortc_node *n = find(g, "Attention");
    cr_assert(n && find(g, "Split") && !find(g, "Gather") && !find(g, "Transpose"));
    cr_expect_eq(ortc_node_int(n, "q_num_heads", 0), HEADS);
    cr_assert_eq(run(g, "ref", after), count);
    expect_close("split", after, before, count);
    for (int like = 1; like < 3; like++) {
        again();
        expect_left("what looks like it", "split-heads",
                    one("Relu", gathered(input("x", 3, batch, length, 3 * HEADS * SIZE, 0), 1, like)));
    }
    again();
    ortc_edge *both = one("Transpose", input("x", 3, batch, length, 3 * HEADS * SIZE, 0));
    expect_left("no heads", "split-heads", with_int(two("Gather", both, INTS(1)), "axis", 0));
}

/* x [6, HEADS, 5, 5] as [m, n, HEADS, 5, 5] and back, between which [c0, c1, 5, 5], or without the first,
 * is added. */
static ortc_edge *added_view(int64_t m, int64_t n, int32_t rank, int64_t c0, int64_t c1)
{
    ortc_edge *x = input("x", 4, 6, HEADS, 5, 5);
    ortc_edge *c = rank == 4 ? input("mask", 4, c0, c1, 5, 5) : input("mask", 3, c1, 5, 5, 0);
    ortc_edge *y = two("Add", two("Reshape", x, INTS(m, n, HEADS, 5, 5)), c);
    return two("Reshape", y, INTS(-1, HEADS, 5, 5));
}

Test(raise_transformer, what_is_added_to_a_view_is_added_to_what_is_viewed)
{
    static float before[MAX_COUNT], after[MAX_COUNT];
    const struct {
        int64_t m, n;
        int32_t rank;
        int64_t c0, c1;
    } forms[] = {{1, 6, 4, 6, 1}, {1, 6, 4, 6, HEADS}, {2, 3, 4, 1, HEADS}, {2, 3, 3, 0, 1}};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        ortc_graph_add_output(g, "y",
                              added_view(forms[i].m, forms[i].n, forms[i].rank, forms[i].c0, forms[i].c1));
        cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
        const int64_t count = run(g, "ref", before);
        cr_expect_eq(normalise("added-views"), 1, "form %d", (int)i);
        cr_assert_eq(run(g, "ref", after), count);
        cr_expect_arr_eq(after, before, (size_t)count * sizeof *after, "form %d", (int)i);
        again();
    }
    expect_left("for every second", "added-views", added_view(2, 3, 4, 3, 1));
}

/* x expanded to [batch, middle, 7], by a target that is asked where it equals `below`. */
static ortc_edge *asked(int64_t middle, int64_t below)
{
    ortc_edge *x = input("x", 3, batch, 1, 7, 0), *b = two("Gather", one("Shape", x), INTS(0));
    ortc_edge *target = concat(3, b, INTS(middle), INTS(7), NULL);
    ortc_edge *equal = two("Equal", target, INTS(below, below, below));
    return two("Expand", x, apply("Where", 3, equal, INTS(1, 1, 1), target, NULL));
}

Test(raise_transformer, a_where_is_decided_where_no_extent_can_equal_what_is_asked)
{
    static float before[MAX_COUNT], after[MAX_COUNT];
    for (int64_t middle = -1; middle < 4; middle += 4) { /* one element is replaced, none is */
        ortc_edge *y = asked(middle, -1);
        ortc_graph_add_output(g, "y", one("Relu", y));
        cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
        const int64_t count = run(g, "ref", before);
        cr_expect_eq(normalise("decided-where"), 1);
        cr_expect_null(find(g, "Where"));
        cr_assert_eq(run(g, "ref", after), count);
        cr_expect_arr_eq(after, before, (size_t)count * sizeof *after);
        again();
    }
    expect_left("batch may be 2", "decided-where", asked(3, 2));
}

/* ---- Bodies -------------------------------------------------------------------------------------------- */

static ortc_edge *byte(uint8_t v) { return constant(ORTC_U8, 0, 1, &v, 1); }

/* A product of quantised matrices, its result as f32. */
static ortc_edge *quantised_product(void)
{
    ortc_edge *in[8] = {apply("QuantizeLinear", 3, input("x", 2, batch, 8, 0, 0), scalar(0.05), byte(100),
                              NULL),
                        scalar(0.05),
                        byte(100),
                        constant(ORTC_U8, 1, 8, "\1\7\3\11\5\2\4\6", 8),
                        scalar(0.25),
                        byte(5),
                        scalar(0.5),
                        byte(128)};
    ortc_node *n = ortc_node_create(g, ortc_op_find("", "QLinearMatMul"), NULL, 8, 1);
    for (uint32_t i = 0; i < 8; i++) ortc_node_set_in(n, i, in[i]);
    ortc_node_set_out(n, 0, ortc_edge_create(g, NULL));
    return apply("DequantizeLinear", 3, n->out[0], in[6], in[7], NULL);
}

/* cpu has MatMulInteger and no QLinearMatMul: the work stays there. ref has the operator itself. */
Test(raise_transformer, a_body_takes_the_place_of_a_node_that_no_listed_provider_has)
{
    static float before[MAX_COUNT], after[MAX_COUNT];
    ortc_session *s;
    ortc_graph *copy;
    ortc_graph_add_output(g, "y", quantised_product());
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    cr_expect_eq(normalise("qlinear"), 1);
    const int64_t count = run(g, "ref", before);
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    for (int i = 0; i < 2; i++) {
        o.providers = i ? "cpu" : "ref";
        cr_assert_eq(ortc_graph_clone(g, &copy, &e), ORTC_OK);
        cr_assert_eq(ortc_session_from_graph(&store, copy, &o, &s, &e), ORTC_OK, "%s", e.text);
        const ortc_node *product = find(copy, "MatMulInteger");
        cr_expect_eq(find(copy, "QLinearMatMul") == NULL, i == 1);
        cr_expect_eq(product != NULL, i == 1);
        if (product) cr_expect_eq(ortc_site_of(&s->unit.placed, product)->device, 0);
        ortc_session_release(s);
    }
    cr_assert_eq(run(g, "cpu", after), count);
    expect_close("on cpu", after, before, count);
}

Test(raise_transformer, what_is_raised_is_fused_and_leaves_its_body_in_that_of_the_node)
{
    static float before[MAX_COUNT], after[MAX_COUNT];
    for (int scaled = 0; scaled < 2; scaled++) { /* by alpha */
        ortc_session *s;
        ortc_graph *copy;
        ortc_edge *product = two("MatMul", input("x", 3, batch, length, 7, 0), input("w", 2, 7, 9, 0, 0));
        ortc_graph_add_output(g, "y",
                              two("Mul", product,
                                  one("Sigmoid", scaled ? two("Mul", product, scalar(1.5)) : product)));
        cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
        const int64_t count = run(g, "ref", before);
        cr_expect_eq(normalise("raise-swish"), 1);
        cr_assert_eq(ortc_graph_clone(g, &copy, &e), ORTC_OK);
        ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
        cr_assert_eq(ortc_session_from_graph(&store, copy, &o, &s, &e), ORTC_OK, "%s", e.text);
        cr_expect_eq(copy->n_nodes, 1u);
        cr_expect_str_eq(copy->first->fused, "Swish");
        cr_expect_eq(ortc_graph_verify(copy->first->body, &e), ORTC_OK, "%s", e.text);
        const ortc_node *swish = find(copy->first->body, "Swish");
        cr_expect(swish && ortc_node_is_raised(swish));
        ortc_session_release(s);
        cr_assert_eq(run(g, "cpu", after), count);
        expect_close("fused", after, before, count);
        again();
    }
}

Test(raise_transformer, what_is_raised_is_written_as_its_body_where_the_opset_would_rise)
{
    ortc_graph *lowered;
    const char *domain = "";
    int64_t opset = 17;
    ortc_model_info info = {.size = sizeof info,
                            .n_opsets = 1,
                            .opset_domains = &domain,
                            .opset_versions = &opset};
    ortc_graph_add_output(g, "y", attention(MASK));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    cr_expect_eq(normalise("raise-attention"), 1);
    cr_assert_eq(ortc_onnx_lower(g, &info, &lowered, &e), ORTC_OK, "%s", e.text);
    cr_assert_not_null(lowered);
    cr_expect_null(find(lowered, "Attention"));
    cr_expect_not_null(find(lowered, "Softmax"));
    cr_expect_not_null(find(g, "Attention"), "the model's own graph stays");
    cr_expect_eq(ortc_graph_verify(lowered, &e), ORTC_OK, "%s", e.text);
    ortc_graph_destroy(lowered);
    opset = 23;
    cr_assert_eq(ortc_onnx_lower(g, &info, &lowered, &e), ORTC_OK, "%s", e.text);
    cr_expect_null(lowered, "Attention-23 is valid there");
}
