/* tests/session/test_half_values.c: which values become bf16 between products that are rounded to it
 * (graph/specialise/half_values.c), which do not, and that results stay near ref's.
 */
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>

#include "graph/specialise/specialise.h"
#include "kernels/conv/tiled.h"
#include "kernels/gemm/product_uk.h"
#include "runtime/registry/registry.h"
#include "runtime/session/create.h"
#include "runtime/session/session.h"

enum { ROWS = 6, INNER = 32, MOST = 4096 };

static ortc_graph *g;
static ortc_model store;
static ortc_error e;
static int64_t n_rows;

static void setup(void)
{
    e = (ortc_error)ORTC_ERROR_INIT;
    cr_assert_eq(ortc_registry_init(&e), ORTC_OK, "%s", e.text);
    cr_assert_not_null(g = ortc_graph_create(NULL));
    n_rows = ROWS;
    cr_assert(ortc_pack_store_init(&store.packed, 0));
}
static void teardown(void)
{
    ortc_graph_destroy(g);
    ortc_pack_store_deinit(&store.packed);
}
TestSuite(half_values, .init = setup, .fini = teardown);

/* ---- Building ------------------------------------------------------------------------------------------ */

static ortc_edge *node(const char *op, ortc_edge *a, ortc_edge *b)
{
    ortc_node *n = ortc_node_create(g, ortc_op_find("", op), NULL, b ? 2 : 1, 1);
    ortc_node_set_in(n, 0, a);
    if (b) ortc_node_set_in(n, 1, b);
    ortc_node_set_out(n, 0, ortc_edge_create(g, NULL));
    return n->out[0];
}
static ortc_edge *input(const char *name, ortc_dtype t)
{
    const ortc_dim dims[2] = {n_rows, INNER};
    ortc_edge *edge = ortc_edge_create(g, name);
    ortc_edge_set_shape(edge, ortc_tensor_type(t), 2, dims);
    ortc_graph_add_input(g, name, edge);
    return edge;
}
/* rows x columns, or all of the value where it is not 0 */
static ortc_edge *matrix(int64_t rows, int64_t columns, uint32_t seed, float value)
{
    const int64_t dims[2] = {rows, columns}, count = value != 0 ? 1 : rows * columns;
    float *data = malloc((size_t)count * sizeof *data);
    ortc_constant *k;
    data[0] = value;
    for (int64_t i = 0; value == 0 && i < count; i++)
        data[i] = (float)((seed = seed * 1664525 + 1013904223) >> 8) / 33554432 - 0.25F;
    cr_assert_eq(ortc_constant_create(ORTC_F32, value != 0 ? 0 : 2, dims, data, (size_t)count * 4, free, data,
                                      &k, &e),
                 ORTC_OK);
    return ortc_graph_constant(g, NULL, k);
}
static ortc_edge *constant(uint32_t seed, float value) { return matrix(INNER, INNER, seed, value); }
static ortc_edge *product(ortc_edge *a, uint32_t seed) { return node("MatMul", a, constant(seed, 0)); }
static void result(const char *name, ortc_edge *y) { ortc_graph_add_output(g, name, y); }

/* ---- Running ------------------------------------------------------------------------------------------- */

typedef struct outcome {
    uint64_t changed; /* nodes */
    int64_t count;
    float y[MOST];
} outcome;

static uint64_t changed_in(ortc_session *s)
{
    uint64_t edits;
    const char *name;
    for (size_t i = 0; (name = ortc_session_pass(s, i, &edits)); i++)
        if (!strcmp(name, "half-values")) return edits;
    cr_assert_fail("there is no such pass");
    return 0;
}

static void run(const char *providers, const char *precision, outcome *o)
{
    static float values[2][ROWS * INNER];
    const int64_t dims[2] = {n_rows, INNER};
    ortc_graph *copy;
    ortc_session *s;
    ortc_in in[2];
    ortc_out out[3];
    cr_assert_eq(ortc_graph_clone(g, &copy, &e), ORTC_OK, "%s", e.text);
    ortc_session_options so = ORTC_SESSION_OPTIONS_INIT;
    so.providers = providers;
    so.precision = precision;
    cr_assert_eq(ortc_session_from_graph(&store, copy, &so, &s, &e), ORTC_OK, "%s", e.text);
    o->changed = changed_in(s);
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        for (int64_t k = 0; k < ROWS * INNER; k++)
            values[i][k] = (float)((k * 37 + i * 11) % 29 - 14) * 0.061F;
        in[i] = (ortc_in){g->inputs[i].name, ortc_wrap(values[i], ORTC_F32, 2, dims)};
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) out[i] = (ortc_out){g->outputs[i].name, NULL, 0, 0};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = in, a.n_in = g->n_inputs, a.out = out, a.n_out = g->n_outputs;
    cr_assert_eq(ortc_run(s, &a, &e), ORTC_OK, "%s", e.text);
    o->count = 0;
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const int64_t n = (int64_t)ortc_value_count(out[i].value);
        cr_assert_eq(ortc_value_dtype(out[i].value), ORTC_F32);
        memcpy(o->y + o->count, ortc_value_data(out[i].value), (size_t)n * sizeof *o->y);
        o->count += n;
        ortc_value_release(out[i].value);
    }
    for (uint32_t i = 0; i < g->n_inputs; i++) ortc_value_release(in[i].value);
    ortc_session_release(s);
}

/* How many nodes are to change where the machine multiplies bf16; and nowhere, and without, nothing is off by
 * more than that. */
static void expect(uint64_t changed)
{
    static outcome want, have;
    const bool can = ortc_product_select(ORTC_BF16, ORTC_BF16) != NULL;
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    run("ref", NULL, &want);
    cr_expect_eq(want.changed, 0);
    run("cpu", NULL, &have);
    cr_expect_eq(have.changed, 0, "nobody asked for it");
    run("cpu", "bf16", &have);
    cr_expect_eq(have.changed, can ? changed : 0, "%d nodes changed", (int)have.changed);
    cr_assert_eq(have.count, want.count);
    for (int64_t i = 0; i < have.count; i++) {
        cr_assert_eq(!!isfinite(want.y[i]), !!isfinite(have.y[i]), "%g, not %g", (double)have.y[i],
                     (double)want.y[i]);
        if (isfinite(want.y[i]))
            cr_assert(fabsf(have.y[i] - want.y[i]) <= 0.03F + 0.02F * fabsf(want.y[i]), "%g, not %g",
                      (double)have.y[i], (double)want.y[i]);
    }
}

/* ---- What changes -------------------------------------------------------------------------------------- */

Test(half_values, between_two_products)
{
    ortc_edge *y = node("Relu", product(input("a", ORTC_F32), 1), NULL);
    result("y", product(y, 2));
    expect(2);
}

Test(half_values, a_residual_that_both_sides_read)
{
    ortc_edge *x = product(input("a", ORTC_F32), 1), *y = product(node("Tanh", x, NULL), 2);
    ortc_edge *sum = node("Add", x, y);
    result("y", product(node("Sigmoid", sum, NULL), 3));
    expect(5);
}

Test(half_values, products_of_values)
{
    ortc_edge *a = input("a", ORTC_F32), *q = product(a, 1), *k = product(a, 2);
    ortc_edge *scores = node("MatMul", q, node("Transpose", k, NULL));
    ortc_edge *weights = node("Softmax", scores, NULL);
    result("y", product(node("MatMul", weights, product(a, 3)), 4));
    expect(7);
}

/* x [ROWS, INNER] as [1, ROWS, INNER], or that back */
static ortc_edge *viewed(ortc_edge *x, bool back)
{
    const int64_t to[] = {1, ROWS, INNER}, rank = back ? 2 : 3;
    ortc_constant *k;
    int64_t *data = malloc(sizeof to);
    memcpy(data, to + back, (size_t)rank * sizeof *to);
    cr_assert_eq(ortc_constant_create(ORTC_I64, 1, &rank, data, (size_t)rank * sizeof *to, free, data, &k,
                                      &e),
                 ORTC_OK);
    return node("Reshape", x, ortc_graph_constant(g, NULL, k));
}
static ortc_edge *with_int(ortc_edge *y, const char *name, int64_t v)
{
    const ortc_attr a = {.size = sizeof a, .kind = ORTC_ATTR_INT, .i = v};
    ortc_node_set_attr(y->producer, name, &a);
    return y;
}

/* Positions stay f32, and so does what they turn; queries and keys are rounded behind that. */
Test(half_values, attention_whose_queries_and_keys_are_turned)
{
    ortc_edge *a = input("a", ORTC_F32), *to[3];
    ortc_edge *b = with_int(with_int(node("Split", viewed(input("b", ORTC_F32), false), NULL), "axis", 2),
                            "num_outputs", 2);
    ortc_node_set_out(b->producer, 1, ortc_edge_create(g, NULL));
    ortc_edge *cosines = node("Cos", b, NULL), *sines = node("Sin", b, NULL);
    for (uint32_t i = 0; i < 3; i++) {
        to[i] = viewed(product(a, i + 1), false);
        if (i == 2) break;
        to[i] = with_int(node("RotaryEmbedding", to[i], cosines), "num_heads", 1);
        ortc_node_set_in(to[i]->producer, 2, sines);
    }
    ortc_edge *y = with_int(with_int(node("Attention", to[0], to[1]), "q_num_heads", 2), "kv_num_heads", 2);
    ortc_node_set_in(y->producer, 2, to[2]);
    result("y", product(viewed(y, true), 4));
    expect(8);
}

/* A column is read where it lies: its weights are rounded and kept, the others only packed. */
Test(half_values, weights_that_are_not_packed)
{
    ortc_edge *x = node("MatMul", input("a", ORTC_F32), matrix(INNER, 2048, 1, 0));
    ortc_edge *y = node("MatMul", node("Relu", x, NULL), matrix(2048, 1, 2, 0));
    result("y", node("MatMul", node("Tanh", y, NULL), matrix(1, INNER, 3, 0)));
    expect(4);
}

Test(half_values, the_largest_number_stays_finite)
{
    ortc_edge *y = node("Max", product(input("a", ORTC_F32), 1), constant(0, -FLT_MAX));
    result("y", product(node("Min", y, constant(0, FLT_MAX)), 2));
    expect(3);
}

Test(half_values, whatever_is_pointwise)
{
    ortc_edge *y = node("Reciprocal", node("Softplus", product(input("a", ORTC_F32), 1), NULL), NULL);
    result("y", product(node("Softsign", y, NULL), 2));
    expect(4);
}

/* W [first, second, 3] of a window along a value's last dim */
static ortc_edge *windows(const char *op, ortc_edge *x, int64_t first, int64_t second, uint32_t seed)
{
    const int64_t dims[3] = {first, second, 3}, one[2] = {1, 1};
    const ortc_attr pads = {.size = sizeof pads, .kind = ORTC_ATTR_INTS, .count = 2, .u.ints = one};
    ortc_edge *w = matrix(first, second * 3, seed, 0);
    ortc_constant *k;
    float *data = malloc((size_t)(first * second * 3) * sizeof *data);
    memcpy(data, w->constant->data, (size_t)(first * second * 3) * sizeof *data);
    cr_assert_eq(ortc_constant_create(ORTC_F32, 3, dims, data, (size_t)(first * second * 3) * sizeof *data,
                                      free, data, &k, &e),
                 ORTC_OK);
    ortc_edge *y = node(op, x, ortc_graph_constant(g, NULL, k));
    ortc_node_set_attr(y->producer, "pads", &pads);
    return y;
}

/* Whether a last convolution reads bf16 and gives f32. */
static uint64_t widens(void) { return ortc_tiled_uk_get(ORTC_TILED_BF16) != NULL; }

/* Results that were rounded on their way are few. */
static void expect_sums(void)
{
    static outcome have;
    int64_t rounded = 0;
    run("cpu", "bf16", &have);
    for (int64_t i = 0; i < have.count; i++) {
        uint32_t bits;
        memcpy(&bits, &have.y[i], sizeof bits);
        rounded += (bits & 0xffff) == 0;
    }
    cr_expect_lt(rounded, have.count / 8, "%d of %d results are bf16", (int)rounded, (int)have.count);
}

Test(half_values, a_last_convolution_reads_bf16)
{
    ortc_edge *x = windows("Conv", viewed(input("a", ORTC_F32), false), 32, ROWS, 1);
    result("y", windows("Conv", node("Relu", x, NULL), ROWS, 32, 2));
    expect(2 + widens());
    expect_sums();
}

Test(half_values, last_convolutions_with_more_behind_them)
{
    ortc_edge *x = windows("Conv", viewed(input("a", ORTC_F32), false), 32, ROWS, 1);
    ortc_edge *y = windows("ConvTranspose", x, 32, 2, 2), *z = windows("Conv", x, ROWS, 32, 3);
    result("y", node("Sigmoid", y, NULL));
    result("z", z);
    result("softmax", node("Softmax", z, NULL));
    expect(1 + 2 * widens());
    expect_sums();
}

Test(half_values, a_last_convolution_by_channels)
{
    ortc_edge *x = windows("Conv", viewed(input("a", ORTC_F32), false), 32, ROWS, 1);
    result("y", with_int(windows("Conv", x, 32, 1, 2), "group", 32));
    expect(1);
    expect_sums();
}

/* ---- What does not ------------------------------------------------------------------------------------- */

Test(half_values, one_product)
{
    ortc_edge *a = input("a", ORTC_F32);
    result("y", node("Relu", product(node("Neg", a, NULL), 1), NULL));
    expect(0);
}

Test(half_values, results_and_what_leads_to_them)
{
    ortc_edge *x = product(input("a", ORTC_F32), 1), *y = product(x, 2);
    result("x", x);
    result("y", node("Softmax", y, NULL));
    expect(0);
}

Test(half_values, positions_and_other_operators)
{
    ortc_edge *angles = product(input("a", ORTC_F32), 1);
    result("y", product(node("Cos", angles, NULL), 2));
    expect(0);
}

Test(half_values, what_makes_more_of_an_error)
{
    ortc_edge *x = product(input("a", ORTC_F32), 1);
    result("y", product(node("Exp", x, NULL), 2));
    result("z", product(node("Floor", x, NULL), 2));
    expect(0);
}

Test(half_values, what_is_not_made_from_weights)
{
    ortc_edge *x = product(input("a", ORTC_F32), 1), *mask = input("b", ORTC_F32);
    ortc_edge *scores = node("Add", x, mask); /* stays, and all behind it */
    result("y", product(node("Softmax", scores, NULL), 2));
    expect(1);
}

/* ---- A row of f32 -------------------------------------------------------------------------------------- */

Test(half_values, a_row_meets_rounded_weights)
{
    static outcome want, have;
    n_rows = 1;
    result("y", product(input("a", ORTC_F32), 1));
    expect(0);
    run("ref", NULL, &want);
    run("cpu", "bf16", &have);
    float most = 0;
    for (int64_t i = 0; i < have.count; i++) most = fmaxf(most, fabsf(have.y[i] - want.y[i]));
    if (ortc_product_select(ORTC_BF16, ORTC_BF16)) cr_expect_gt(most, 1e-5F, "nothing was rounded");
}
