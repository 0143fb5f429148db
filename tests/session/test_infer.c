/* tests/session/test_infer.c: shape functions at work on extents: what no extent can hold is an error that
 * names the node, what elements of a tensor may do is none; a graph may have as many expressions as it likes.
 */
#include <criterion/criterion.h>
#include <stdio.h>

#include "graph/ir/infer.h"
#include "runtime/registry/registry.h"
#include "runtime/session/create.h"

static ortc_graph *g;
static ortc_error e = ORTC_ERROR_INIT;

static void setup(void)
{
    cr_assert_eq(ortc_registry_init(&e), ORTC_OK, "%s", e.text);
    cr_assert_not_null(g = ortc_graph_create(NULL));
}
static void teardown(void) { ortc_graph_destroy(g); }
TestSuite(infer, .init = setup, .fini = teardown);

static ortc_dim symbol(const char *name)
{
    ortc_dim d;
    cr_assert_eq(ortc_dims_symbol(g->dims, &g->arena, name, &d), ORTC_OK);
    return d;
}

static ortc_edge *input(const char *name, ortc_dtype t, int32_t rank, const ortc_dim *dims)
{
    ortc_edge *x = ortc_edge_create(g, name);
    ortc_edge_set_shape(x, ortc_tensor_type(t), rank, dims);
    ortc_graph_add_input(g, name, x);
    return x;
}

static ortc_edge *ints(int64_t count, const int64_t *values)
{
    ortc_constant *c;
    void *copy = malloc((size_t)count * 8);
    memcpy(copy, values, (size_t)count * 8);
    cr_assert_eq(ortc_constant_create(ORTC_I64, 1, &count, copy, (size_t)count * 8, free, copy, &c, &e),
                 ORTC_OK);
    return ortc_graph_constant(g, NULL, c);
}
#define INTS(...) ints(sizeof((int64_t[]){__VA_ARGS__}) / 8, (int64_t[]){__VA_ARGS__})

static ortc_edge *apply(const char *op, const char *name, ortc_edge *a, ortc_edge *b)
{
    ortc_node *node = ortc_node_create(g, ortc_op_find("", op), name, 2, 1);
    ortc_node_set_in(node, 0, a);
    ortc_node_set_in(node, 1, b);
    ortc_node_set_out(node, 0, ortc_edge_create(g, NULL));
    return node->out[0];
}

Test(infer, an_extent_that_overflows_is_an_error_of_its_node)
{
    const int64_t big = INT64_C(1) << 40;
    apply("Tile", "tiles", input("x", ORTC_F32, 2, (ortc_dim[]){big, 1}), INTS(big, 1));
    cr_expect_eq(ortc_graph_infer(g, &e), ORTC_SHAPE_MISMATCH);
    cr_expect(strstr(e.text, "node 'tiles' (Tile)") && strstr(e.text, "1099511627776 * 1099511627776"), "%s",
              e.text);
}

Test(infer, with_symbols_the_numbers_decide)
{
    const int64_t big = INT64_C(1) << 40;
    ortc_edge *y = apply("Tile", "tiles", input("x", ORTC_F32, 1, (ortc_dim[]){symbol("n")}), INTS(big));
    ortc_edge *z = apply("Tile", "tiles again", y, INTS(big)); /* n may be 0 */
    cr_expect_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    cr_expect_not(ortc_dim_is_number(z->dims[0]));
    ortc_graph_add_output(g, "z", z);
    ortc_model store = {0};
    ortc_session *s;
    ortc_graph *copy;
    cr_assert(ortc_pack_store_init(&store.packed, 0));
    cr_assert_eq(ortc_graph_clone(g, &copy, &e), ORTC_OK, "%s", e.text);
    const ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    cr_assert_eq(ortc_session_from_graph(&store, copy, &o, &s, &e), ORTC_OK, "%s", e.text);
    for (int64_t n = 0; n < 2; n++) {
        float x = 1;
        ortc_in in = {"x", ortc_wrap(&x, ORTC_F32, 1, &n)};
        ortc_out out = {"z", NULL, 0, 0};
        ortc_run_args a = ORTC_RUN_ARGS_INIT;
        a.in = &in, a.n_in = 1, a.out = &out, a.n_out = 1;
        cr_expect_eq(ortc_run(s, &a, &e), n ? ORTC_SHAPE_MISMATCH : ORTC_OK, "%s", e.text);
        cr_expect(!n || strstr(e.text, "tiles again"), "%s", e.text);
        ortc_value_release(in.value);
        ortc_value_release(out.value);
    }
    ortc_session_release(s);
    ortc_pack_store_deinit(&store.packed);
}

Test(infer, elements_may_wrap_around)
{
    static const char *const ops[] = {"Add", "Mul", "Sub"};
    for (size_t i = 0; i < ORTC_LENGTH(ops); i++) {
        ortc_edge *y = apply(ops[i], ops[i], INTS(INT64_MAX, 5), INTS(i == 2 ? -7 : 7, 7));
        cr_expect_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
        cr_assert_eq(y->n_values, 2);
        cr_expect_eq(y->values[0], ORTC_DIM_UNKNOWN);
        cr_expect_eq(y->values[1], i == 1 ? 35 : i == 2 ? -2 : 12);
    }
}

/* So a cache is padded by max(total - room, 0), which is nothing where it has room for all. */
Test(infer, greatest_and_least_of_elements_are_known)
{
    const ortc_dim room = symbol("room");
    for (int least = 0; least < 2; least++) {
        ortc_edge *y = apply(least ? "Min" : "Max", "some", INTS(-511, 3, INT64_MAX), INTS(0));
        cr_expect_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
        cr_assert_eq(y->n_values, 3);
        cr_expect_eq(y->values[0], least ? -511 : 0);
        cr_expect_eq(y->values[1], least ? 0 : 3);
        cr_expect_eq(y->values[2], least ? 0 : INT64_MAX);
    }
    ortc_node *shape = ortc_node_create(g, ortc_op_find("", "Shape"), "shape", 1, 1);
    ortc_node_set_in(shape, 0, input("x", ORTC_F32, 1, &room));
    ortc_node_set_out(shape, 0, ortc_edge_create(g, NULL));
    ortc_edge *y = apply("Max", "extent", INTS(0), shape->out[0]);
    cr_expect_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    cr_assert_eq(y->n_values, 1);
    cr_expect_eq(y->values[0], room);
}

/* From 64 expressions on a copy of their table once was full, and a look-up in it never ended. */
Test(infer, sessions_of_graphs_with_many_symbols, .timeout = 30)
{
    for (int n = 1; n <= 300; n += n < 140 ? 1 : 20) {
        ortc_graph_destroy(g);
        cr_assert_not_null(g = ortc_graph_create(NULL));
        ortc_edge *sum = NULL;
        for (int i = 0; i < n; i++) {
            char name[8];
            snprintf(name, sizeof name, "s%d", i);
            const ortc_dim dims[2] = {symbol(name), 3};
            ortc_edge *x = input(name, ORTC_F32, 2, dims);
            sum = sum ? apply("Add", NULL, sum, x) : x;
        }
        if (n > 1) ortc_graph_add_output(g, "y", sum);
        cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
        ortc_model store = {0};
        ortc_session *s;
        ortc_graph *copy;
        cr_assert(ortc_pack_store_init(&store.packed, 0));
        cr_assert_eq(ortc_graph_clone(g, &copy, &e), ORTC_OK, "%s", e.text);
        char *fixed[] = {"s0"};
        const int64_t five = 5;
        ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
        o.n_dims = 1, o.dim_names = (const char *const *)fixed, o.dim_values = &five;
        cr_assert_eq(ortc_session_from_graph(&store, copy, &o, &s, &e), ORTC_OK, "%s", e.text);
        ortc_session_release(s);
        ortc_pack_store_deinit(&store.packed);
    }
}
