/* tests/session/test_passes.c: passes on graphs that are built by hand: what they change, and that they keep
 * it whole. */
#include <criterion/criterion.h>

#include "graph/normalise/normalise.h"
#include "graph/specialise/specialise.h"
#include "runtime/registry/registry.h"

static ortc_graph *g;
static ortc_error e;

static void setup(void)
{
    e = (ortc_error)ORTC_ERROR_INIT;
    cr_assert_eq(ortc_registry_init(&e), ORTC_OK, "%s", e.text);
    cr_assert_not_null(g = ortc_graph_create(NULL));
}
static void teardown(void) { ortc_graph_destroy(g); }
TestSuite(passes, .init = setup, .fini = teardown);

static ortc_edge *input(const char *name, int32_t rank, const ortc_dim *dims)
{
    ortc_edge *x = ortc_edge_create(g, name);
    ortc_edge_set_shape(x, ortc_tensor_type(ORTC_F32), rank, dims);
    ortc_graph_add_input(g, name, x);
    return x;
}

static ortc_edge *constant(int32_t rank, const int64_t *dims, float value)
{
    int64_t n;
    ortc_constant *c;
    ortc_count_elements(rank, dims, &n);
    float *data = malloc((size_t)n * sizeof *data);
    for (int64_t i = 0; i < n; i++) data[i] = value;
    ortc_constant_create(ORTC_F32, rank, dims, data, (size_t)n * sizeof *data, free, data, &c, &e);
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

static uint64_t normalise(const char *pass)
{
    uint64_t edits[16], n = 0;
    ortc_normalise p = {.graph = g, .error = &e};
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_normalise_run(&p, NULL, 0, edits), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_graph_verify(g, &e), ORTC_OK, "%s", e.text);
    for (size_t i = 0; i < ortc_normalise_n_passes; i++)
        if (!strcmp(ortc_normalise_passes[i].name, pass)) n = edits[i];
    return n;
}

Test(passes, equal_nodes_are_shared_and_dead_ones_go)
{
    const ortc_dim dims[2] = {2, 3};
    ortc_edge *x = input("x", 2, dims);
    ortc_edge *one = apply("Relu", x, NULL), *two = apply("Relu", x, NULL);
    apply("Relu", two, NULL); /* nobody reads it */
    ortc_graph_add_output(g, "y", apply("Add", one, two));
    cr_expect_eq(normalise("share-nodes"), 1);
    cr_expect_eq(g->n_nodes, 2);
    cr_expect_eq(g->last->in[0], g->last->in[1]);
}

Test(passes, an_identity_between_input_and_output_leaves_no_node)
{
    const ortc_dim dims[1] = {4};
    ortc_edge *x = input("x", 1, dims);
    ortc_graph_add_output(g, "y", apply("Identity", x, NULL));
    cr_expect_eq(normalise("remove-identity"), 1);
    cr_expect_eq(g->n_nodes, 0);
    cr_expect_eq(g->outputs[0].edge, x);
}

static int asked;
static bool yes(void *arg, const ortc_node *proposal, const ortc_node *node, const ortc_node *where)
{
    (void)arg, (void)where;
    asked += !node && proposal->epilogue; /* and not about groups of what is pointwise */
    return true;
}
static bool together(void *arg, const ortc_node *a, const ortc_node *b) { return true; }
static bool no(void *arg, const ortc_node *proposal, const ortc_node *node, const ortc_node *where)
{
    (void)arg, (void)where;
    asked += !node && proposal->epilogue; /* and not about groups of what is pointwise */
    return false;
}

/* MatMul + bias + residual + Relu: all into one node when the kernel agrees, nothing when it does not. */
Test(passes, epilogues_are_fused_as_far_as_the_kernel_agrees)
{
    const ortc_dim dims[2] = {2, 3};
    const int64_t wd[2] = {3, 4}, bd[1] = {4};
    ortc_edge *x = input("x", 2, dims), *w = constant(2, wd, 1), *b = constant(1, bd, 2);
    const ortc_dim rd[2] = {2, 4};
    ortc_edge *r = input("r", 2, rd);
    ortc_edge *product = apply("MatMul", x, w);
    ortc_edge *y = apply("Relu", apply("Add", r, apply("Add", product, b)), NULL);
    ortc_graph_add_output(g, "y", y);
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    ortc_specialise s = {.graph = g, .error = &e, .accept = no, .together = together};
    uint64_t edits[4];
    cr_assert_eq(ortc_specialise_run(&s, edits), ORTC_OK, "%s", e.text);
    cr_expect_eq(edits[0], 0);
    cr_expect_eq(asked, 1);
    cr_expect_eq(g->n_nodes, 4);
    s.accept = yes;
    cr_assert_eq(ortc_specialise_run(&s, edits), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_graph_verify(g, &e), ORTC_OK, "%s", e.text);
    cr_expect_eq(edits[0], 3);
    cr_assert_eq(g->n_nodes, 1);
    const ortc_node *n = g->first;
    cr_assert_not_null(n->epilogue);
    cr_expect_eq(n->in[n->epilogue->bias], b);
    cr_expect_eq(n->in[n->epilogue->residual], r);
    cr_expect_eq(n->epilogue->activation, ORTC_ACT_RELU);
    cr_expect_eq(n->out[0], y);
    cr_expect_str_eq(n->fused, "Add Add Relu");
    /* The body is what it stands for. */
    cr_assert_not_null(n->body);
    cr_expect_eq(n->body->n_nodes, 4);
    cr_expect_eq(n->body->n_inputs, n->n_in);
    cr_expect_eq(ortc_graph_verify(n->body, &e), ORTC_OK, "%s", e.text);
}

Test(passes, a_value_that_is_read_twice_is_not_swallowed)
{
    const ortc_dim dims[2] = {2, 3};
    const int64_t wd[2] = {3, 4};
    ortc_edge *product = apply("MatMul", input("x", 2, dims), constant(2, wd, 1));
    ortc_graph_add_output(g, "y", apply("Relu", product, NULL));
    ortc_graph_add_output(g, "p", product);
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    ortc_specialise s = {.graph = g, .error = &e, .accept = yes, .together = together};
    uint64_t edits[4];
    cr_assert_eq(ortc_specialise_run(&s, edits), ORTC_OK);
    cr_expect_eq(edits[0], 0);
}

Test(passes, a_clone_is_the_same_graph)
{
    const ortc_dim dims[2] = {2, 3};
    ortc_graph *copy;
    ortc_edge *x = input("x", 2, dims);
    ortc_graph_add_output(g, "y", apply("Add", apply("Relu", x, NULL), x));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK);
    cr_assert_eq(ortc_graph_clone(g, &copy, &e), ORTC_OK, "%s", e.text);
    cr_expect_eq(ortc_graph_verify(copy, &e), ORTC_OK, "%s", e.text);
    cr_expect_eq(copy->n_nodes, g->n_nodes);
    cr_expect_eq(copy->n_inputs, 1u);
    cr_expect_neq(copy->first, g->first);
    ortc_graph_destroy(copy);
}

Test(passes, a_schema_is_read_as_written)
{
    const ortc_op *conv = ortc_op_find("", "Conv");
    cr_assert_not_null(conv);
    cr_expect_eq(ortc_op_find("ai.onnx", "Conv"), conv);
    cr_expect_null(ortc_op_find("", "Convolution"));
    cr_expect_eq(ortc_op_bind(conv, 28), 22);
    cr_expect_eq(ortc_op_bind(conv, 17), 11);
    cr_expect_eq(ortc_op_bind(conv, 5), 1);
    const ortc_schema *s = ortc_op_schema(conv);
    cr_expect_eq(s->n_in, 3);
    cr_expect(s->in[2].flags & ORTC_FORMAL_OPTIONAL);
    cr_expect_null(ortc_schema_in(s, 3));
    ortc_op broken = ORTC_OP("", "Broken", 1, 1, "", "x", "y:T", "", "T=f32", NULL, NULL, 0);
    cr_expect_eq(ortc_op_add(&broken, "test", &e), ORTC_INVALID_ARGUMENT);
    cr_expect(strstr(e.text, "'x' is not NAME:TYPE"), "%s", e.text);
}
