/* tests/session/test_passes.c: passes on graphs that are built by hand: what they change, and that they keep
 * it whole. */
#include <criterion/criterion.h>

#include "graph/normalise/normalise.h"
#include "graph/specialise/specialise.h"
#include "runtime/registry/registry.h"
#include "runtime/session/evaluate.h"

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
    uint64_t edits[32], n = 0;
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

static ortc_edge *constant(ortc_dtype t, int32_t rank, const int64_t *dims, const void *data, size_t bytes)
{
    ortc_constant *c;
    ortc_edge *x = ortc_edge_create(g, NULL);
    cr_assert_eq(ortc_constant_create(t, rank, dims, data, bytes, NULL, NULL, &c, &e), ORTC_OK, "%s", e.text);
    cr_assert(ortc_edge_set_constant(x, c));
    return x;
}

static ortc_edge *integer(int64_t value)
{
    static int64_t values[16];
    static int n;
    const int64_t one = 1;
    values[n %= 16] = value;
    return constant(ORTC_I64, 1, &one, &values[n++], sizeof value);
}

/* x[begin:end:step] along axis 1. */
static ortc_edge *slice(ortc_edge *x, int64_t begin, int64_t end, int64_t step)
{
    ortc_node *n = ortc_node_create(g, ortc_op_find("", "Slice"), NULL, 5, 1);
    ortc_edge *in[] = {x, integer(begin), integer(end), integer(1), integer(step)};
    for (uint32_t i = 0; i < 5; i++) ortc_node_set_in(n, i, in[i]);
    ortc_node_set_out(n, 0, ortc_edge_create(g, NULL));
    return n->out[0];
}

Test(passes, what_takes_all_of_its_input_passes_it_on)
{
    const ortc_dim dims[2] = {2, 3};
    ortc_edge *x = input("x", 2, dims);
    ortc_graph_add_output(g, "y", apply("Relu", slice(apply("Concat", x, NULL), 0, 100, 1), NULL));
    ortc_node *concat = g->first;
    const ortc_attr axis = {.size = sizeof axis, .kind = ORTC_ATTR_INT, .i = 1};
    ortc_node_set_attr(concat, "axis", &axis);
    cr_expect_eq(normalise("remove-identity"), 2);
    cr_expect_eq(g->n_nodes, 1);
    cr_expect_eq(g->first->in[0], x);
}

Test(passes, a_slice_backwards_or_of_a_part_stays)
{
    const ortc_dim dims[2] = {2, 3};
    ortc_edge *x = input("x", 2, dims);
    ortc_graph_add_output(g, "y", slice(x, -1, -100, -1));
    ortc_graph_add_output(g, "z", slice(x, 1, 100, 1));
    cr_expect_eq(normalise("remove-identity"), 0);
    cr_expect_eq(g->n_nodes, 2);
}

static ortc_status is_asked(void *arg, const ortc_node *n, ortc_constant **out, ortc_error *error)
{
    (void)n, (void)out, (void)error;
    ++*(int *)arg;
    return ORTC_LIMIT;
}

/* Whether folding asks for a node's result, in a model with such weights. */
static bool asks_for(ortc_edge *y, uint64_t weight_bytes)
{
    int count = 0;
    uint64_t edits[32];
    ortc_normalise p = {
        .graph = g, .error = &e, .evaluate = is_asked, .evaluate_arg = &count, .weight_bytes = weight_bytes};
    ortc_graph_add_output(g, "y", y);
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_normalise_run(&p, NULL, 0, edits), ORTC_OK, "%s", e.text);
    teardown();
    cr_assert_not_null(g = ortc_graph_create(NULL));
    return count > 0;
}

Test(passes, what_is_folded_may_be_larger_by_a_share_of_the_weights)
{
    static const uint8_t bytes[1 << 19];
    static const float scale = 1;
    const int64_t count = 1 << 19, one = 1, many = 1 << 19, few = 1 << 17; /* elements: 2 MiB, 512 KiB */
    const uint64_t megabyte = 1 << 20;
    for (uint64_t weights = 0; weights <= 128 * megabyte; weights += 64 * megabyte) {
        cr_expect(asks_for(apply("ConstantOfShape", constant(ORTC_I64, 1, &one, &few, 8), NULL), weights));
        cr_expect_eq(asks_for(apply("ConstantOfShape", constant(ORTC_I64, 1, &one, &many, 8), NULL), weights),
                     weights == 128 * megabyte);
        /* that stays in few bytes */
        cr_expect(!asks_for(apply("DequantizeLinear", constant(ORTC_U8, 1, &count, bytes, sizeof bytes),
                                  constant(ORTC_F32, 0, NULL, &scale, sizeof scale)),
                            weights));
    }
}

/* What has other extents only is the constant's memory: no model is asked to run anything. */
Test(passes, views_of_constants_keep_their_memory)
{
    static const float data[6] = {1, -2, 3, -4, 5, -6};
    static const int64_t target[3] = {3, -1, 1}, three = 3, dims[2] = {2, 3};
    static const struct {
        const char *op;
        int32_t rank;
    } tried[] = {{"Reshape", 3}, {"Flatten", 2}, {"Identity", 2}};
    for (size_t i = 0; i < sizeof tried / sizeof *tried; i++) {
        ortc_evaluation by = {.operations = 1000000000};
        ortc_edge *x = constant(ORTC_F32, 2, dims, data, sizeof data),
                  *to = constant(ORTC_I64, 1, &three, target, sizeof target);
        ortc_edge *y = apply(tried[i].op, x, i == 0 ? to : NULL);
        ortc_constant *c = NULL;
        cr_assert_eq(ortc_evaluate_node(&by, y->producer, &c, &e), ORTC_OK, "%s: %s", tried[i].op, e.text);
        cr_expect_eq(c->rank, tried[i].rank, "%s: rank %d", tried[i].op, c->rank);
        cr_expect_eq(c->data, data, "%s", tried[i].op);
        ortc_graph_destroy(g); /* which holds the constant no more */
        cr_expect_eq(c->count, 6, "%s", tried[i].op);
        cr_expect_eq(((const float *)c->data)[5], -6, "%s", tried[i].op);
        ortc_constant_release(c);
        cr_assert_not_null(g = ortc_graph_create(NULL));
    }
}

static void is_ready(void *arg, const ortc_op *op)
{
    cr_expect_eq(ortc_op_ready(op, &e), ORTC_OK, "%s", e.text);
    ++*(int *)arg;
}

/* Ours are parsed when a model needs them. */
/* DequantizeLinear of bytes by one scale; they may be 2 MB of constants. */
static ortc_edge *dequantised(ortc_edge *x, float scale)
{
    static float scales[4];
    static int n;
    float *s = &scales[n++ % 4];
    *s = scale;
    ortc_edge *y = apply("DequantizeLinear", x, constant(ORTC_F32, 0, NULL, s, sizeof *s));
    return y;
}
static ortc_edge *large_weights(int32_t rank, const int64_t *dims)
{
    static char bytes[2 << 20];
    return dequantised(constant(ORTC_I8, rank, dims, bytes, sizeof bytes), 0.5F);
}
static ortc_edge *bytes_of(int32_t rank, const ortc_dim *dims)
{
    ortc_edge *x = ortc_edge_create(g, "b");
    ortc_edge_set_shape(x, ortc_tensor_type(ORTC_I8), rank, dims);
    ortc_graph_add_input(g, "b", x);
    return x;
}

/* Weights stay bytes for a product that takes them so, however large; for one that does not, and for what
 * computes with them, they become numbers, though that is more. */
Test(passes, dequantised_weights_are_folded_where_no_product_of_integers_takes_them)
{
    const int64_t two[2] = {1 << 10, 2 << 10}, four[4] = {128, 1 << 10, 4, 4};
    const ortc_dim rows[2] = {3, 1 << 10}, image[4] = {1, 128, 5, 5};
    ortc_edge *x = dequantised(bytes_of(2, rows), 0.25F);
    cr_expect_not(asks_for(apply("MatMul", x, large_weights(2, two)), 0));
    x = dequantised(bytes_of(4, image), 0.25F);
    cr_expect(asks_for(apply("ConvTranspose", x, large_weights(4, four)), 0));
    x = input("x", 2, rows); /* standardised before they are multiplied */
    ortc_edge *w = large_weights(2, two);
    cr_expect(asks_for(apply("MatMul", x, apply("Sub", w, apply("ReduceMean", w, NULL))), 0));
    const int64_t table[2] = {1 << 10, 2 << 10};
    const ortc_dim one[1] = {1};
    ortc_edge *i = ortc_edge_create(g, "i");
    ortc_edge_set_shape(i, ortc_tensor_type(ORTC_I64), 1, one);
    ortc_graph_add_input(g, "i", i);
    cr_expect_not(asks_for(apply("Gather", large_weights(2, table), i), 0), "a table is read here and there");
}

Test(passes, what_is_dequantised_is_no_nan)
{
    const ortc_dim dims[2] = {3, 4};
    for (int k = 0; k < 3; k++) {
        static const float zero[1], far[1] = {1e38F};
        ortc_edge *x = k == 1 ? input("x", 2, dims) : dequantised(bytes_of(2, dims), k == 2 ? *far : 0.5F);
        ortc_edge *asked = apply("IsNaN", x, NULL), *y = ortc_edge_create(g, NULL);
        ortc_node *n = ortc_node_create(g, ortc_op_find("", "Where"), NULL, 3, 1);
        ortc_node_set_in(n, 0, asked);
        ortc_node_set_in(n, 1, constant(ORTC_F32, 0, NULL, zero, sizeof zero));
        ortc_node_set_in(n, 2, x);
        ortc_node_set_out(n, 0, y);
        ortc_graph_add_output(g, "y", apply("Relu", y, NULL));
        cr_expect_eq(normalise("decided-where"), k == 0 ? 1u : 0u, "case %d", k);
        teardown();
        setup();
    }
}

Test(passes, every_schema_can_be_read)
{
    int count = 0;
    ortc_op_each(is_ready, &count);
    cr_expect_gt(count, 300);
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
    cr_expect_eq(ortc_op_add(&broken, "test", true, &e), ORTC_INVALID_ARGUMENT);
    cr_expect(strstr(e.text, "'x' is not NAME:TYPE"), "%s", e.text);
}
