/* tests/session/test_siblings.c: which products become one node (graph/specialise/sibling_products.c), which
 * do not, and that the cpu then gives what ref gives, with the precision that was asked for.
 */
#include <criterion/criterion.h>
#include <math.h>

#include "graph/specialise/specialise.h"
#include "kernels/gemm/product_uk.h"
#include "runtime/registry/registry.h"
#include "runtime/session/create.h"
#include "runtime/session/session.h"

enum { ROWS = 21, INNER = 40, COLUMNS = 36, MOST = 4096 };

static ortc_graph *g;
static ortc_model store;
static ortc_error e;
static ortc_dim rows; /* a symbol */

static void start(void)
{
    e = (ortc_error)ORTC_ERROR_INIT;
    cr_assert_eq(ortc_registry_init(&e), ORTC_OK, "%s", e.text);
    cr_assert_not_null(g = ortc_graph_create(NULL));
    cr_assert_eq(ortc_dims_symbol(g->dims, &g->arena, "rows", &rows), ORTC_OK);
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
TestSuite(siblings, .init = setup, .fini = teardown);

/* ---- Building ------------------------------------------------------------------------------------------ */

static ortc_edge *two(const char *op, ortc_edge *a, ortc_edge *b)
{
    ortc_node *node = ortc_node_create(g, ortc_op_find("", op), NULL, b ? 2 : 1, 1);
    ortc_node_set_in(node, 0, a);
    if (b) ortc_node_set_in(node, 1, b);
    ortc_node_set_out(node, 0, ortc_edge_create(g, NULL));
    return node->out[0];
}
static ortc_edge *x(const char *name)
{
    const ortc_dim dims[3] = {1, rows, INNER};
    ortc_edge *edge = ortc_edge_create(g, name);
    ortc_edge_set_shape(edge, ortc_tensor_type(ORTC_F32), 3, dims);
    ortc_graph_add_input(g, name, edge);
    return edge;
}
static ortc_edge *constant(int64_t a, int64_t b, uint32_t seed)
{
    const int64_t dims[2] = {a ? a : b, b}, count = (a ? a : 1) * b;
    float *data = malloc((size_t)count * sizeof *data);
    ortc_constant *k;
    for (int64_t i = 0; i < count; i++)
        data[i] = (float)((seed = seed * 1664525 + 1013904223) >> 8) / 8388608 - 1;
    cr_assert_eq(ortc_constant_create(ORTC_F32, a ? 2 : 1, dims, data, (size_t)count * 4, free, data, &k, &e),
                 ORTC_OK);
    return ortc_graph_constant(g, NULL, k);
}
static ortc_edge *product(ortc_edge *a, uint32_t seed)
{
    return two("MatMul", a, constant(INNER, COLUMNS + seed % 3 * 5, seed));
}
static void result(const char *name, ortc_edge *y) { ortc_graph_add_output(g, name, y); }
static const char *const names[] = {"y0", "y1", "y2"};

/* ---- Running ------------------------------------------------------------------------------------------- */

/* All results, one behind the other; how many nodes of products are left, and groups of them. */
static int64_t run(const char *providers, const char *precision, float *y, int *products, int *groups)
{
    static float values[2][ROWS * INNER];
    const int64_t dims[3] = {1, ROWS, INNER};
    ortc_graph *copy;
    ortc_session *s;
    ortc_in in[2];
    ortc_out out[3];
    int64_t count = 0;
    cr_assert_eq(ortc_graph_clone(g, &copy, &e), ORTC_OK, "%s", e.text);
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.providers = providers;
    o.precision = precision;
    cr_assert_eq(ortc_session_from_graph(&store, copy, &o, &s, &e), ORTC_OK, "%s", e.text);
    *products = *groups = 0;
    for (const ortc_node *n = copy->first; n; n = n->next) {
        *products += !strcmp(n->type, "MatMul");
        *groups += n->op == &ortc_op_group && !n->program;
    }
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        for (int64_t k = 0; k < ROWS * INNER; k++)
            values[i][k] = (float)((k * 37 + i * 11) % 29 - 14) * 0.0613F;
        in[i] = (ortc_in){g->inputs[i].name, ortc_wrap(values[i], ORTC_F32, 3, dims)};
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) out[i] = (ortc_out){names[i], NULL, 0, 0};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = in, a.n_in = g->n_inputs, a.out = out, a.n_out = g->n_outputs;
    cr_assert_eq(ortc_run(s, &a, &e), ORTC_OK, "%s", e.text);
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const int64_t n = (int64_t)ortc_value_count(out[i].value);
        cr_assert_leq(count + n, MOST);
        memcpy(y + count, ortc_value_data(out[i].value), (size_t)n * sizeof *y);
        count += n;
        ortc_value_release(out[i].value);
    }
    for (uint32_t i = 0; i < g->n_inputs; i++) ortc_value_release(in[i].value);
    ortc_session_release(s);
    return count;
}

/* Over the graph as it is built: products left, and groups; the largest difference from ref. */
static float compare(const char *precision, int products, int groups)
{
    static float want[MOST], have[MOST];
    int left, made;
    float most = 0;
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    const int64_t count = run("ref", NULL, want, &left, &made);
    cr_expect_eq(made, 0, "ref has no kernel for groups of products");
    cr_assert_eq(run("cpu", precision, have, &left, &made), count);
    cr_expect_eq(left, products, "%d products are left, not %d", left, products);
    cr_expect_eq(made, groups, "%d groups, not %d", made, groups);
    for (int64_t i = 0; i < count; i++) most = fmaxf(most, fabsf(have[i] - want[i]));
    return most;
}

#define CLOSE 2e-5F

/* ---- What becomes one node ----------------------------------------------------------------------------- */

Test(siblings, with_their_epilogues)
{
    ortc_edge *a = x("a");
    result("y0", two("Add", product(a, 1), constant(0, COLUMNS + 5, 7)));
    result("y1", product(a, 2));
    result("y2", two("Relu", product(a, 3), NULL));
    cr_expect_leq(compare(NULL, 0, 1), CLOSE);
}

Test(siblings, each_of_two_values)
{
    ortc_edge *a = x("a"), *b = x("b");
    result("y0", two("Add", product(a, 3), product(b, 6))); /* the second is the first's residual */
    result("y1", product(a, 4));
    result("y2", product(b, 5));
    cr_expect_leq(compare(NULL, 0, 2), CLOSE);
}

/* ---- What does not ------------------------------------------------------------------------------------- */

Test(siblings, one_that_reads_another)
{
    ortc_edge *a = x("a"), *first = product(a, 3);
    result("y0", first);
    result("y1", two("Add", product(a, 6), two("Softmax", first, NULL)));
    cr_expect_leq(compare(NULL, 2, 0), CLOSE);
}

Test(siblings, of_other_values_or_what_is_not_constant)
{
    ortc_edge *a = x("a"), *b = x("b");
    const int64_t swap[3] = {0, 2, 1};
    const ortc_attr perm = {.size = sizeof perm, .kind = ORTC_ATTR_INTS, .count = 3, .u.ints = swap};
    ortc_edge *turned = two("Transpose", b, NULL);
    ortc_node_set_attr(turned->producer, "perm", &perm);
    result("y0", product(a, 1));
    result("y1", product(b, 2));
    result("y2", two("MatMul", a, turned));
    cr_expect_leq(compare(NULL, 3, 0), CLOSE);
}

/* ---- Precision ----------------------------------------------------------------------------------------- */

/* Operands of 8 bits: rounded where there are instructions for it, and by no more than that. */
Test(siblings, precision_is_what_was_asked_for)
{
    const bool can = ortc_product_select(ORTC_BF16, ORTC_BF16) != NULL;
    ortc_edge *a = x("a");
    result("y0", product(a, 1));
    cr_expect_leq(compare("f32", 1, 0), CLOSE);
    const float off = compare("bf16", 1, 0);
    cr_expect_leq(off, can ? 0.05F : CLOSE);
    if (can) cr_expect_gt(off, 1e-3F, "nothing was rounded");
    result("y1", product(a, 2));
    cr_expect_leq(compare(NULL, 0, 1), CLOSE);
    const float both = compare("bf16", 0, 1);
    if (can) cr_expect(both > 1e-3F && both < 0.05F, "off by %g", (double)both);
}

Test(siblings, precision_has_two_names)
{
    ortc_graph *copy;
    ortc_session *s = NULL;
    result("y0", product(x("a"), 1));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_graph_clone(g, &copy, &e), ORTC_OK, "%s", e.text);
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.precision = "f8";
    cr_expect_eq(ortc_session_from_graph(&store, copy, &o, &s, &e), ORTC_INVALID_ARGUMENT);
    cr_expect_null(s);
    cr_expect(strstr(e.text, "f8"), "%s", e.text);
}
