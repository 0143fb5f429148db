/* tests/session/test_raise.c: what exporters decompose is raised: the node that comes of it, and the same
 * numbers as before; a form of which a part is read by others stays as it is. */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "graph/ir/body.h"
#include "graph/normalise/normalise.h"
#include "runtime/registry/registry.h"
#include "runtime/session/create.h"

static ortc_graph *g;
static ortc_model store; /* a session keeps packed forms with its model */
static ortc_error e;
enum { ROWS = 3, MIDDLE = 2, WIDTH = 5, COUNT = ROWS * MIDDLE * WIDTH };
static const int64_t shape[3] = {ROWS, MIDDLE, WIDTH};

static void start(void)
{
    e = (ortc_error)ORTC_ERROR_INIT;
    cr_assert_eq(ortc_registry_init(&e), ORTC_OK, "%s", e.text);
    cr_assert_not_null(g = ortc_graph_create(NULL));
}
static void setup(void)
{
    start();
    cr_assert(ortc_pack_store_init(&store.packed, 0));
}
static void teardown(void) { ortc_pack_store_deinit(&store.packed); }
TestSuite(raise, .init = setup, .fini = teardown);

/* ---- Building ------------------------------------------------------------------------------------------ */

static ortc_edge *input(void)
{
    ortc_edge *x = ortc_edge_create(g, "x");
    ortc_edge_set_shape(x, ortc_tensor_type(ORTC_F32), 3, shape);
    ortc_graph_add_input(g, "x", x);
    return x;
}

/* `count` elements of the last dim, 0: a scalar; from `value` on in steps of `step`. */
static ortc_edge *floats(int64_t count, double value, double step)
{
    ortc_constant *c;
    const size_t n = count ? (size_t)count : 1;
    float *data = malloc(n * sizeof *data);
    for (size_t i = 0; i < n; i++) data[i] = (float)(value + step * (double)i);
    ortc_constant_create(ORTC_F32, count ? 1 : 0, &count, data, n * sizeof *data, free, data, &c, &e);
    return ortc_graph_constant(g, NULL, c);
}
static ortc_edge *scalar(double v) { return floats(0, v, 0); }

static ortc_edge *ints(int64_t count, int64_t first)
{
    ortc_constant *c;
    int64_t *data = malloc((size_t)count * sizeof *data);
    for (int64_t i = 0; i < count; i++) data[i] = first + i;
    ortc_constant_create(ORTC_I64, 1, &count, data, (size_t)count * sizeof *data, free, data, &c, &e);
    return ortc_graph_constant(g, NULL, c);
}

static ortc_edge *apply(const char *op, ortc_edge *a, ortc_edge *b)
{
    ortc_node *n = ortc_node_create(g, ortc_op_find("", op), NULL, b ? 2 : 1, 1);
    ortc_edge *y = ortc_edge_create(g, NULL);
    ortc_node_set_in(n, 0, a);
    if (b) ortc_node_set_in(n, 1, b);
    ortc_node_set_out(n, 0, y);
    return y;
}

/* ---- Running ------------------------------------------------------------------------------------------- */

static void run(const ortc_graph *from, float *y)
{
    ortc_graph *copy;
    ortc_session *s;
    float x[COUNT];
    for (int i = 0; i < COUNT; i++) x[i] = (float)(i * 37 % 29 - 14) * 0.21F;
    cr_assert_eq(ortc_graph_clone(from, &copy, &e), ORTC_OK, "%s", e.text);
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.providers = "ref";
    cr_assert_eq(ortc_session_from_graph(&store, copy, &o, &s, &e), ORTC_OK, "%s", e.text);
    ortc_in in = {"x", ortc_wrap(x, ORTC_F32, 3, shape)};
    ortc_out out = {"y", ortc_wrap(y, ORTC_F32, 3, shape), 0, 0};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = &in, a.n_in = 1, a.out = &out, a.n_out = 1;
    cr_assert_eq(ortc_run(s, &a, &e), ORTC_OK, "%s", e.text);
    ortc_value_release(in.value);
    ortc_value_release(out.value);
    ortc_session_release(s);
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

/* The graph's one node is raised, and its body is what was there before, to the bit. */
static void expect_body(const char *what, const float *before)
{
    float after[COUNT];
    ortc_graph *copy;
    cr_assert(ortc_node_is_raised(g->first), "%s", what);
    cr_expect_eq(g->first->body->n_inputs, g->first->n_in, "%s", what);
    cr_expect_eq(ortc_graph_verify(g->first->body, &e), ORTC_OK, "%s: %s", what, e.text);
    cr_assert_eq(ortc_graph_clone(g, &copy, &e), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_node_expand(copy->first, NULL, &e), ORTC_OK, "%s: %s", what, e.text);
    cr_assert_eq(ortc_graph_verify(copy, &e), ORTC_OK, "%s: %s", what, e.text);
    cr_expect_gt(copy->n_nodes, 1u, "%s", what);
    run(copy, after);
    cr_expect_arr_eq(after, before, sizeof after, "%s", what);
    ortc_graph_destroy(copy);
}

/* The graph so far, with y as its output, becomes one node of `op`, which computes the same. The graph is
 * given up. */
static const ortc_node *expect_raised(const char *what, const char *pass, const char *op, ortc_edge *y)
{
    float before[COUNT], after[COUNT];
    ortc_graph_add_output(g, "y", y);
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s: %s", what, e.text);
    run(g, before);
    cr_expect_eq(normalise(pass), 1, "%s", what);
    cr_assert_eq(g->n_nodes, 1, "%s: %u nodes", what, g->n_nodes);
    cr_expect_str_eq(g->first->type, op, "%s", what);
    cr_expect_eq(g->first->out[0], y, "%s: the result keeps its edge", what);
    cr_expect_str_eq(g->first->in[0]->name, "x", "%s", what);
    run(g, after);
    for (int i = 0; i < COUNT; i++)
        cr_assert_float_eq(after[i], before[i], 1e-5 + 1e-5 * fabs((double)before[i]), "%s: element %d", what,
                           i);
    expect_body(what, before);
    return g->first;
}

static void expect_left(const char *what, const char *pass, ortc_edge *y)
{
    ortc_graph_add_output(g, "y", y);
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s: %s", what, e.text);
    cr_expect_eq(normalise(pass), 0, "%s", what);
    ortc_graph_destroy(g);
    start();
}

/* ---- LayerNormalization and RMSNormalization ----------------------------------------------------------- */

typedef struct layer_parts {
    ortc_edge *mean, *d, *square, *root, *quotient, *scaled, *y;
} layer_parts;

enum {
    BY_MUL = 1,
    MIRRORED = 2,
    RECIPROCAL = 4,
    NO_BIAS = 8,
    LAST_TWO = 16,
    FROM_FRONT = 32,
    RMS = 64,
    ONE_OVER = 128
};

static layer_parts layer(ortc_edge *x, int how)
{
    layer_parts p = {0};
    ortc_edge *axes = how & LAST_TWO ? ints(2, how & FROM_FRONT ? 1 : -2)
                                     : ints(1, how & FROM_FRONT ? 2 : -1);
    ortc_edge *epsilon = scalar(1e-3), *scale = floats(WIDTH, 0.5, 0.25), *bias = floats(WIDTH, -1, 0.5);
    if (!(how & RMS)) p.mean = apply("ReduceMean", x, axes);
    p.d = how & RMS ? x : apply("Sub", x, p.mean);
    p.square = how & BY_MUL ? apply("Mul", p.d, p.d) : apply("Pow", p.d, scalar(2));
    ortc_edge *variance = apply("ReduceMean", p.square, axes);
    p.root = apply("Sqrt", how & MIRRORED ? apply("Add", epsilon, variance) : apply("Add", variance, epsilon),
                   NULL);
    if (how & (RECIPROCAL | ONE_OVER)) {
        ortc_edge *r = how & RECIPROCAL ? apply("Reciprocal", p.root, NULL) : apply("Div", scalar(1), p.root);
        p.quotient = how & MIRRORED ? apply("Mul", r, p.d) : apply("Mul", p.d, r);
    } else
        p.quotient = apply("Div", p.d, p.root);
    p.scaled = how & MIRRORED ? apply("Mul", scale, p.quotient) : apply("Mul", p.quotient, scale);
    p.y = how & (NO_BIAS | RMS) ? p.scaled
          : how & MIRRORED      ? apply("Add", bias, p.scaled)
                                : apply("Add", p.scaled, bias);
    return p;
}

Test(raise, layer_normalization_in_all_its_forms)
{
    char what[32];
    for (int how = 0; how < 256; how++) {
        if ((how & RECIPROCAL && how & ONE_OVER) || (how & RMS && how & NO_BIAS)) continue;
        snprintf(what, sizeof what, "form %d", how);
        const ortc_node *n = expect_raised(what, "raise-layernorm",
                                           how & RMS ? "RMSNormalization" : "LayerNormalization",
                                           layer(input(), how).y);
        cr_expect_eq(ortc_node_int(n, "axis", 0), how & LAST_TWO ? -2 : -1, "%s", what);
        cr_expect_float_eq((double)ortc_node_float(n, "epsilon", 0), 1e-3, 1e-9, "%s", what);
        cr_expect_eq(ortc_node_int(n, "stash_type", 0), 1, "%s", what);
        cr_expect_eq(n->n_in, how & (NO_BIAS | RMS) ? 2u : 3u, "%s", what);
        cr_expect_eq(n->in[1]->constant->count, WIDTH, "%s", what);
        ortc_graph_destroy(g);
        start();
    }
    ortc_graph_destroy(g);
}

Test(raise, layer_normalization_with_parts_that_others_read_is_left)
{
    static const char *const names[] = {"mean", "difference", "square", "root", "quotient"};
    for (size_t i = 0; i < ORTC_LENGTH(names); i++) {
        const layer_parts p = layer(input(), 0);
        ortc_edge *const parts[] = {p.mean, p.d, p.square, p.root, p.quotient};
        ortc_graph_add_output(g, "more", apply("Relu", parts[i], NULL));
        expect_left(names[i], "raise-layernorm", p.y);
    }
    const layer_parts p = layer(input(), RMS); /* an output of the graph is a reader too */
    ortc_graph_add_output(g, "more", p.quotient);
    expect_left("quotient is an output", "raise-layernorm", p.y);
    ortc_graph_destroy(g);
}

Test(raise, a_scaled_value_that_others_read_keeps_its_bias_apart)
{
    const layer_parts p = layer(input(), 0);
    ortc_graph_add_output(g, "scaled", p.scaled);
    ortc_graph_add_output(g, "y", p.y);
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK);
    cr_expect_eq(normalise("raise-layernorm"), 1);
    cr_assert_eq(g->n_nodes, 2);
    cr_expect_str_eq(g->first->type, "LayerNormalization");
    cr_expect_eq(g->first->n_in, 2);
    cr_expect_str_eq(g->last->type, "Add");
    ortc_graph_destroy(g);
}

Test(raise, what_only_looks_like_layer_normalization_is_left)
{
    ortc_edge *x = input(), *axes = ints(1, 1); /* not the last axis */
    ortc_edge *d = apply("Sub", x, apply("ReduceMean", x, axes));
    ortc_edge *root = apply("Sqrt", apply("Add", apply("ReduceMean", apply("Mul", d, d), axes), scalar(1e-5)),
                            NULL);
    expect_left("middle axis", "raise-layernorm", apply("Mul", apply("Div", d, root), floats(WIDTH, 1, 1)));
    x = input(), axes = ints(1, -1); /* mean over one axis, variance over two */
    d = apply("Sub", x, apply("ReduceMean", x, axes));
    root = apply("Sqrt", apply("Add", apply("ReduceMean", apply("Mul", d, d), ints(2, -2)), scalar(1e-5)),
                 NULL);
    expect_left("other axes", "raise-layernorm", apply("Mul", apply("Div", d, root), floats(WIDTH, 1, 1)));
    x = input(), axes = ints(1, -1); /* a cube */
    root = apply("Sqrt", apply("Add", apply("ReduceMean", apply("Pow", x, scalar(3)), axes), scalar(1e-5)),
                 NULL);
    expect_left("cube", "raise-layernorm", apply("Mul", apply("Div", x, root), floats(WIDTH, 1, 1)));
    ortc_graph_destroy(g);
}

/* ---- Gelu ---------------------------------------------------------------------------------------------- */

enum { PRODUCTS = 4, ERF_ARGUMENTS = 2, ARGUMENTS = 6 };

static ortc_edge *argument(ortc_edge *x, int form)
{
    const double c = 0.7978845608, k = 0.044715;
    switch (form) {
    case 0: return apply("Div", x, scalar(sqrt(2)));
    case 1: return apply("Mul", scalar(0.70710678), x);
    case 2:
        return apply("Mul", scalar(c), apply("Add", x, apply("Mul", scalar(k), apply("Pow", x, scalar(3)))));
    case 3:
        return apply("Mul", apply("Add", apply("Mul", apply("Mul", apply("Mul", x, x), x), scalar(k)), x),
                     scalar(c));
    case 4:
        return apply("Mul", apply("Mul", x, scalar(c)),
                     apply("Add", apply("Mul", apply("Mul", x, scalar(k)), x), scalar(1)));
    default: return apply("Mul", x, apply("Add", scalar(c), apply("Mul", apply("Mul", x, x), scalar(c * k))));
    }
}

static ortc_edge *product(ortc_edge *x, ortc_edge *a, int form)
{
    switch (form) {
    case 0: return apply("Mul", apply("Mul", x, a), scalar(0.5));
    case 1: return apply("Mul", x, apply("Mul", scalar(0.5), a));
    case 2: return apply("Mul", apply("Mul", x, scalar(0.5)), a);
    default: return apply("Div", apply("Mul", a, x), scalar(2));
    }
}

Test(raise, gelu_in_all_its_forms)
{
    char what[32];
    for (int from = 0; from < ARGUMENTS; from++)
        for (int to = 0; to < 2 * PRODUCTS; to++) {
            const bool is_erf = from < ERF_ARGUMENTS;
            ortc_edge *x = input(), *f = apply(is_erf ? "Erf" : "Tanh", argument(x, from), NULL);
            ortc_edge *a = to & 1 ? apply("Add", scalar(1), f) : apply("Add", f, scalar(1));
            snprintf(what, sizeof what, "form %d, %d", from, to);
            const ortc_node *n = expect_raised(what, "raise-gelu", "Gelu", product(x, a, to / 2));
            cr_expect_str_eq(ortc_node_string(n, "approximate", ""), is_erf ? "none" : "tanh", "%s", what);
            ortc_graph_destroy(g);
            start();
        }
    ortc_graph_destroy(g);
}

Test(raise, what_is_not_gelu_or_is_read_by_others_is_left)
{
    ortc_edge *x = input(), *f = apply("Erf", argument(x, 0), NULL);
    ortc_graph_add_output(g, "more", apply("Relu", f, NULL));
    expect_left("erf is read twice", "raise-gelu", product(x, apply("Add", f, scalar(1)), 0));
    x = input();
    ortc_edge *in = argument(x, 2);
    ortc_graph_add_output(g, "more", in->producer->in[1]);
    expect_left("the sum is an output", "raise-gelu",
                product(x, apply("Add", apply("Tanh", in, NULL), scalar(1)), 0));
    x = input();
    f = apply("Erf", apply("Div", x, scalar(1.415)), NULL);
    expect_left("another constant", "raise-gelu", product(x, apply("Add", f, scalar(1)), 1));
    x = input();
    f = apply("Tanh", argument(x, 0), NULL);
    expect_left("tanh of erf's argument", "raise-gelu", product(x, apply("Add", f, scalar(1)), 2));
    x = input();
    f = apply("Erf", argument(x, 0), NULL);
    expect_left("a factor that is not x", "raise-gelu",
                product(apply("Relu", x, NULL), apply("Add", f, scalar(1)), 2));
    ortc_graph_destroy(g);
}
