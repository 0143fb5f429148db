/* tests/session/raising.h: what the tests of raising share: a graph with symbolic batch and length in the
 * making, runs of it before and after a pass, what is expected of it. Each file of tests has its own.
 */
#ifndef ORTC_TESTS_RAISING_H
#define ORTC_TESTS_RAISING_H

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

static inline ortc_dim symbol(const char *name)
{
    ortc_dim d;
    cr_assert_eq(ortc_dims_symbol(g->dims, &g->arena, name, &d), ORTC_OK);
    return d;
}

static inline void start(void)
{
    e = (ortc_error)ORTC_ERROR_INIT;
    cr_assert_eq(ortc_registry_init(&e), ORTC_OK, "%s", e.text);
    cr_assert_not_null(g = ortc_graph_create(NULL));
    batch = symbol("batch");
    length = symbol("length");
    keys = symbol("keys");
}
static inline void setup(void)
{
    start();
    cr_assert(ortc_pack_store_init(&store.packed, 0));
}
static inline void teardown(void)
{
    ortc_graph_destroy(g);
    ortc_pack_store_deinit(&store.packed);
}

/* ---- Building ------------------------------------------------------------------------------------------ */

/* What forms are computed in; a graph's own inputs and results are f32 all the same. */
static ortc_dtype form_type = ORTC_F32;
static inline ortc_edge *cast(ortc_edge *x, ortc_dtype t);

static inline ortc_edge *input(const char *name, int32_t rank, ortc_dim a, ortc_dim b, ortc_dim c, ortc_dim d)
{
    const ortc_dim dims[4] = {a, b, c, d};
    ortc_edge *x = ortc_edge_create(g, name);
    ortc_edge_set_shape(x, ortc_tensor_type(ORTC_F32), rank, dims);
    ortc_graph_add_input(g, name, x);
    return form_type == ORTC_F32 ? x : cast(x, form_type);
}

static inline ortc_edge *constant(ortc_dtype t, int32_t rank, int64_t count, const void *data, size_t bytes)
{
    ortc_constant *c;
    void *copy = malloc(bytes + 1);
    memcpy(copy, data, bytes);
    cr_assert_eq(ortc_constant_create(t, rank, &count, copy, bytes, free, copy, &c, &e), ORTC_OK);
    return ortc_graph_constant(g, NULL, c);
}
/* to the nearest; of normal numbers and infinity */
static inline uint16_t narrow(float f, ortc_dtype t)
{
    uint32_t bits;
    memcpy(&bits, &f, sizeof bits);
    if (t == ORTC_BF16) return (uint16_t)((bits + (isinf(f) ? 0 : 0x8000)) >> 16);
    const uint32_t sign = bits >> 16 & 0x8000, rest = bits & 0x7fffffff;
    return (uint16_t)(sign | (isinf(f) ? 0x7c00 : rest ? (rest + 0x1000 - (UINT32_C(112) << 23)) >> 13 : 0));
}
static inline ortc_edge *scalar(double v)
{
    const float f = (float)v;
    const uint16_t h = narrow(f, form_type);
    return form_type == ORTC_F32 ? constant(ORTC_F32, 0, 1, &f, sizeof f)
                                 : constant(form_type, 0, 1, &h, sizeof h);
}
static inline ortc_edge *vector(int64_t count, double first, double step)
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

static inline ortc_edge *apply(const char *op, uint32_t n, ortc_edge *a, ortc_edge *b, ortc_edge *c,
                               ortc_edge *d)
{
    ortc_edge *const in[4] = {a, b, c, d};
    ortc_node *node = ortc_node_create(g, ortc_op_find("", op), NULL, n, 1);
    for (uint32_t i = 0; i < n; i++) ortc_node_set_in(node, i, in[i]);
    ortc_node_set_out(node, 0, ortc_edge_create(g, NULL));
    return node->out[0];
}
static inline ortc_edge *one(const char *op, ortc_edge *a) { return apply(op, 1, a, NULL, NULL, NULL); }
static inline ortc_edge *two(const char *op, ortc_edge *a, ortc_edge *b)
{
    return apply(op, 2, a, b, NULL, NULL);
}

static inline ortc_edge *with_int(ortc_edge *y, const char *name, int64_t v)
{
    const ortc_attr a = {.size = sizeof a, .kind = ORTC_ATTR_INT, .i = v};
    ortc_node_set_attr(y->producer, name, &a);
    return y;
}
static inline ortc_edge *cast(ortc_edge *x, ortc_dtype t) { return with_int(one("Cast", x), "to", t); }
static inline ortc_edge *concat(uint32_t n, ortc_edge *a, ortc_edge *b, ortc_edge *c, ortc_edge *d)
{
    return with_int(apply("Concat", n, a, b, c, d), "axis", 0);
}
static inline ortc_edge *transpose(ortc_edge *x, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t perm[4] = {a, b, c, d};
    const ortc_attr by = {.size = sizeof by, .kind = ORTC_ATTR_INTS, .count = 4, .u.ints = perm};
    ortc_edge *y = one("Transpose", x);
    ortc_node_set_attr(y->producer, "perm", &by);
    return y;
}

/* ---- Running ------------------------------------------------------------------------------------------- */

static inline int64_t number(ortc_dim d) /* of other symbols that of keys */
{
    return d == batch ? BATCH : d == length ? LENGTH : d >= 0 ? d : KEYS;
}

/* The first output; inputs are made up from their names. Gives the number of elements. */
static inline int64_t run(const ortc_graph *from, const char *providers, float *y)
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

static inline uint64_t normalise(const char *pass)
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

static inline ortc_node *find(const ortc_graph *in, const char *op)
{
    for (ortc_node *n = in->first; n; n = n->next)
        if (!strcmp(n->type, op)) return n;
    return NULL;
}

static inline void expect_close(const char *what, const float *have, const float *want, int64_t count)
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
static inline const ortc_node *expect_raised(const char *what, const char *pass, const char *op, ortc_edge *y)
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

static inline void again(void)
{
    ortc_graph_destroy(g);
    start();
}

static inline void expect_left(const char *what, const char *pass, ortc_edge *y)
{
    ortc_graph_add_output(g, "y", form_type == ORTC_F32 ? y : cast(y, ORTC_F32));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s: %s", what, e.text);
    cr_expect_eq(normalise(pass), 0, "%s", what);
    again();
}

/* ---- Forms --------------------------------------------------------------------------------------------- */

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
static inline ortc_edge *heads_of(const char *name, int how, ortc_dim n, bool is_key)
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

static inline ortc_edge *attention_with(int how, ortc_edge *q, ortc_edge *k, ortc_edge *v, ortc_edge *mask)
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

static inline ortc_edge *attention(int how)
{
    const ortc_dim n = how & SCALE_VECTOR ? KEYS : keys;
    ortc_edge *q = heads_of("q", how, length, false), *k = heads_of("k", how, n, true);
    ortc_edge *v = heads_of("v", how, n, false);
    return attention_with(how, q, k, v,
                          how & (MASK | SCALE_AFTER_MASK) ? input("mask", 4, batch, 1, 1, n) : NULL);
}

enum {
    SWAPPED = 1,
    FACTOR = 2,
    ROTARY_FORMS = 4,
    TWO_ANGLES = 4,
    NO_NEG = 8,
    SIN_TWICE = 16,
    TURNED_READ = 32
};

static inline ortc_edge *rotary(int how)
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

#endif
