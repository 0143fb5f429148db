/* tests/session/test_siblings.c: which products become one node (graph/specialise/sibling_products.c), which
 * do not, and that the cpu then gives what ref gives, with the precision that was asked for.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "graph/specialise/specialise.h"
#include "kernels/gemm/product_uk.h"
#include "runtime/registry/registry.h"
#include "runtime/session/create.h"
#include "runtime/session/session.h"
#include "tests/unit/wire_writer.h"

enum { ROWS = 21, INNER = 40, COLUMNS = 36, MOST = 4096 };
enum { BITS_INNER = 72, BITS_BLOCKS = 5, BITS_ROW = 40 }; /* blocks of 16 of 4 bits, the last is half full */

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
    result("y1", two("Add", product(a, 6), two("Hardmax", first, NULL)));
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

/* ---- Weights of 4 bits --------------------------------------------------------------------------------- */

typedef struct few_bits {
    int64_t rows, accuracy;
    bool zeros, unlike; /* zero points; the second node is of another accuracy */
} few_bits;

static void put_tensor(buffer *graph, const char *name, int i, int dtype, int rank, const int64_t *dims)
{
    uint8_t bytes[4096];
    char full[16];
    int64_t count = 1;
    uint32_t seed = (uint32_t)(*name * 7 + i);
    for (int k = 0; k < rank; k++) count *= dims[k];
    snprintf(full, sizeof full, "%s%d", name, i);
    for (int64_t k = 0; k < count; k++) {
        seed = seed * 1664525 + 1013904223;
        const float f = 0.01F + (float)(seed >> 8) * 1e-9F;
        if (dtype == ORTC_F32)
            memcpy(bytes + 4 * k, &f, 4);
        else
            bytes[k] = (uint8_t)(seed >> 24);
    }
    buffer b = make_tensor(full, dtype, rank, dims, bytes, (size_t)count * (dtype == ORTC_F32 ? 4 : 1));
    put_message(graph, 5, &b);
}

/* y{i} = MatMulNBits(x, b{i}, s{i}, z{i}), of 19 columns and more. */
static void put_few_bits(buffer *graph, int i, const few_bits *f)
{
    const int64_t n = 19 + 14 * i;
    const struct {
        const char *name;
        int64_t value;
    } attrs[] = {{"K", BITS_INNER},
                 {"N", n},
                 {"bits", 4},
                 {"block_size", 16},
                 {"accuracy_level", f->unlike && i == 1 ? 4 - f->accuracy : f->accuracy}};
    char in[64], y[8];
    snprintf(in, sizeof in, f->zeros ? "x b%d s%d z%d" : "x b%d s%d", i, i, i);
    snprintf(y, sizeof y, "y%d", i);
    buffer node = make_node("MatMulNBits", "com.microsoft", in, y), b;
    for (size_t k = 0; k < ORTC_LENGTH(attrs); k++) {
        buffer a = {0};
        put_string(&a, 1, attrs[k].name);
        put_int(&a, 3, attrs[k].value);
        put_int(&a, 20, 2);
        put_message(&node, 5, &a);
    }
    put_message(graph, 1, &node);
    put_tensor(graph, "b", i, ORTC_U8, 3, (int64_t[]){n, BITS_BLOCKS, 8});
    put_tensor(graph, "s", i, ORTC_F32, 1, (int64_t[]){n * BITS_BLOCKS});
    if (f->zeros) put_tensor(graph, "z", i, ORTC_U8, 1, (int64_t[]){n * 3});
    b = make_value_info(y, ORTC_F32, 2, (int64_t[]){f->rows, n});
    put_message(graph, 12, &b);
}

/* `count` products from `first` on, one result behind the other; how many groups they became. */
static int64_t run_few_bits(const few_bits *f, int first, int count, float *y, int *groups)
{
    static float x[ROWS * BITS_INNER];
    ortc_model *m;
    ortc_session *s;
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    ortc_out out[3];
    int64_t made = 0;
    buffer graph = {0}, b = make_value_info("x", ORTC_F32, 2, (int64_t[]){f->rows, BITS_INNER});
    put_message(&graph, 11, &b);
    for (int i = 0; i < count; i++) {
        put_few_bits(&graph, first + i, f);
        out[i] = (ortc_out){names[first + i], NULL, 0, 0};
    }
    buffer model = make_model(8, 18, &graph);
    put_opset(&model, 8, "com.microsoft", 1);
    for (int i = 0; i < ROWS * BITS_INNER; i++) x[i] = (float)(i * 37 % 29 - 14) * 0.0613F;
    ortc_in in = {"x", ortc_wrap(x, ORTC_F32, 2, (int64_t[]){f->rows, BITS_INNER})};
    a.in = &in, a.n_in = 1, a.out = out, a.n_out = (size_t)count;
    cr_assert_eq(ortc_model_load_memory(model.data, model.bytes, NULL, &m, &e), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_session_create(m, NULL, &s, &e), ORTC_OK, "%s", e.text);
    *groups = 0;
    for (const ortc_node *n = s->unit.placed.graph->first; n; n = n->next)
        *groups += n->op == &ortc_op_group && !n->program;
    cr_assert_eq(ortc_run(s, &a, &e), ORTC_OK, "%s", e.text);
    for (int i = 0; i < count; i++) {
        memcpy(y + made, ortc_value_host(out[i].value), ortc_value_bytes(out[i].value));
        made += ortc_value_count(out[i].value);
        ortc_value_release(out[i].value);
    }
    ortc_value_release(in.value);
    ortc_session_release(s);
    ortc_model_release(m);
    buffer_free(&model);
    return made;
}

static void same_bits_together_and_alone(const few_bits *f, int groups)
{
    static float together[MOST], alone[MOST];
    int made, none;
    const int64_t count = run_few_bits(f, 0, 3, together, &made);
    int64_t n = 0;
    cr_expect_eq(made, groups, "%d groups, not %d", made, groups);
    for (int i = 0; i < 3; i++) {
        n += run_few_bits(f, i, 1, alone + n, &none);
        cr_expect_eq(none, 0);
    }
    cr_assert_eq(n, count);
    cr_expect_arr_eq(together, alone, (size_t)n * sizeof *alone, "rows %lld, accuracy %lld, zeros %d",
                     (long long)f->rows, (long long)f->accuracy, f->zeros);
}

Test(siblings, of_few_bits_have_the_bits_that_they_have_alone)
{
    static const int64_t rows_of[] = {1, 5, ROWS};
    for (size_t i = 0; i < ORTC_LENGTH(rows_of); i++)
        for (int64_t accuracy = 0; accuracy <= 4; accuracy += 4)
            for (int zeros = 0; zeros < 2; zeros++)
                same_bits_together_and_alone(&(few_bits){rows_of[i], accuracy, zeros, false}, 1);
}

Test(siblings, of_few_bits_and_another_accuracy)
{
    same_bits_together_and_alone(&(few_bits){1, 0, false, true}, 0);
}
