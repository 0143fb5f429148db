/* tests/session/test_epilogues.c: which pointwise nodes become the epilogue of what they follow, which do
 * not, and that the cpu then gives what ref gives node by node, in f32, f16 and bf16.
 */
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>

#include "graph/ir/pointwise.h"
#include "graph/specialise/specialise.h"
#include "kernels/activation/expand.h"
#include "kernels/conv/tiled.h"
#include "kernels/gemm/tail.h"
#include "runtime/registry/registry.h"
#include "runtime/session/create.h"
#include "runtime/session/session.h"

enum { BATCH = 2, CHANNELS = 20, EXTENT = 6, INNER = 7, MAX_INPUTS = 8, MAX_COUNT = 8192 };

static ortc_graph *g;
static ortc_model store;
static ortc_error e;
static ortc_dim batch;          /* a symbol */
static ortc_dtype type;         /* of what is computed; a graph's own inputs and results are f32 */
static bool depthwise;          /* of convolutions */
static int64_t window, filters; /* of those that are transposed, with stride 2 */

static void start(void)
{
    e = (ortc_error)ORTC_ERROR_INIT;
    cr_assert_eq(ortc_registry_init(&e), ORTC_OK, "%s", e.text);
    cr_assert_not_null(g = ortc_graph_create(NULL));
    cr_assert_eq(ortc_dims_symbol(g->dims, &g->arena, "batch", &batch), ORTC_OK);
}
static void setup(void)
{
    start();
    type = ORTC_F32;
    depthwise = false;
    cr_assert(ortc_pack_store_init(&store.packed, 0));
}
static void teardown(void)
{
    ortc_graph_destroy(g);
    ortc_pack_store_deinit(&store.packed);
}
TestSuite(epilogues, .init = setup, .fini = teardown);

/* ---- Building ------------------------------------------------------------------------------------------ */

static ortc_edge *apply(const char *op, uint32_t n, ortc_edge *a, ortc_edge *b, ortc_edge *c)
{
    ortc_edge *const in[3] = {a, b, c};
    ortc_node *node = ortc_node_create(g, ortc_op_find("", op), NULL, n, 1);
    for (uint32_t i = 0; i < n; i++)
        if (in[i]) ortc_node_set_in(node, i, in[i]);
    ortc_node_set_out(node, 0, ortc_edge_create(g, NULL));
    return node->out[0];
}
static ortc_edge *one(const char *op, ortc_edge *a) { return apply(op, 1, a, NULL, NULL); }
static ortc_edge *two(const char *op, ortc_edge *a, ortc_edge *b) { return apply(op, 2, a, b, NULL); }

static ortc_edge *with_int(ortc_edge *y, const char *name, int64_t v)
{
    const ortc_attr a = {.size = sizeof a, .kind = ORTC_ATTR_INT, .i = v};
    ortc_node_set_attr(y->producer, name, &a);
    return y;
}
static ortc_edge *cast(ortc_edge *x, ortc_dtype t)
{
    return t == x->type->dtype ? x : with_int(one("Cast", x), "to", t);
}

static ortc_edge *input(const char *name, int32_t rank, ortc_dim a, ortc_dim b, ortc_dim c, ortc_dim d)
{
    const ortc_dim dims[4] = {a, b, c, d};
    ortc_edge *x = ortc_edge_create(g, name);
    ortc_edge_set_shape(x, ortc_tensor_type(ORTC_F32), rank, dims);
    ortc_graph_add_input(g, name, x);
    return cast(x, type);
}

/* Numbers around 0, the same in all types; of `count` elements, or one that is 0.5. */
static ortc_edge *constant(int32_t rank, int64_t a, int64_t b, int64_t c, int64_t d)
{
    const int64_t dims[4] = {a, b, c, d};
    ortc_constant *k;
    int64_t count;
    cr_assert(ortc_count_elements(rank, dims, &count));
    float *data = malloc((size_t)count * sizeof *data);
    uint16_t *narrow = (uint16_t *)(void *)data;
    for (int64_t i = 0; i < count; i++) {
        const float v = count == 1 ? 0.5F : (float)((i * 5 + rank) % 9 - 4) * 0.125F;
        uint32_t bits;
        memcpy(&bits, &v, sizeof bits);
        if (type == ORTC_F32) data[i] = v;
        if (type == ORTC_BF16) narrow[i] = (uint16_t)(bits >> 16);
        if (type == ORTC_F16)
            narrow[i] = (uint16_t)((bits >> 16 & 0x8000) |
                                   (v == 0 ? 0 : (bits & 0x7fffffff) - (UINT32_C(112) << 23)) >> 13);
    }
    const size_t bytes = (size_t)count * (type == ORTC_F32 ? 4 : 2);
    cr_assert_eq(ortc_constant_create(type, rank, dims, data, bytes, free, data, &k, &e), ORTC_OK);
    return ortc_graph_constant(g, NULL, k);
}
static ortc_edge *scalar(void) { return constant(0, 0, 0, 0, 0); }
static ortc_edge *channels(void) { return constant(3, CHANNELS, 1, 1, 0); } /* beside a convolution's */

static ortc_edge *image(const char *name) { return input(name, 4, batch, CHANNELS, EXTENT, EXTENT); }
/* Of the shape of x. */
static ortc_edge *convolution(ortc_edge *x)
{
    const int64_t ones[4] = {1, 1, 1, 1};
    const ortc_attr pads = {.size = sizeof pads, .kind = ORTC_ATTR_INTS, .count = 4, .u.ints = ones};
    ortc_edge *y = two("Conv", x, constant(4, CHANNELS, depthwise ? 1 : CHANNELS, 3, 3));
    ortc_node_set_attr(y->producer, "pads", &pads);
    return with_int(y, "group", depthwise ? CHANNELS : 1);
}
static ortc_edge *transposed(ortc_edge *x)
{
    const int64_t twos[2] = {2, 2};
    const ortc_attr strides = {.size = sizeof strides, .kind = ORTC_ATTR_INTS, .count = 2, .u.ints = twos};
    ortc_edge *y = two("ConvTranspose", x, constant(4, CHANNELS, filters, window, window));
    ortc_node_set_attr(y->producer, "strides", &strides);
    return y;
}
static ortc_edge *rows(const char *name) { return input(name, 2, batch, CHANNELS, 0, 0); }
static ortc_edge *product(ortc_edge *x) { return two("MatMul", x, constant(2, CHANNELS, CHANNELS, 0, 0)); }

/* ---- Running ------------------------------------------------------------------------------------------- */

static int64_t run_chosen(const ortc_graph *from, const char *providers, const char *choose, float *y)
{
    static float x[MAX_INPUTS][MAX_COUNT];
    ortc_graph *copy;
    ortc_session *s;
    ortc_in in[MAX_INPUTS];
    cr_assert_eq(ortc_graph_clone(from, &copy, &e), ORTC_OK, "%s", e.text);
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.providers = providers;
    o.choose = &choose, o.n_choose = choose != NULL;
    cr_assert_eq(ortc_session_from_graph(&store, copy, &o, &s, &e), ORTC_OK, "%s", e.text);
    for (uint32_t i = 0; i < from->n_inputs; i++) {
        const ortc_edge *edge = from->inputs[i].edge;
        int64_t dims[4], count = 1;
        for (int32_t d = 0; d < edge->rank; d++)
            count *= dims[d] = edge->dims[d] == batch ? BATCH : edge->dims[d];
        for (int64_t k = 0; k < count; k++)
            x[i][k] = (float)((k * 37 + from->inputs[i].name[0] * 11) % 29 - 14) * 0.0625F;
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

static int64_t run(const ortc_graph *from, const char *providers, float *y)
{
    return run_chosen(from, providers, NULL, y);
}

/* Whether the Cast of a result to f32, which is behind all, goes in, too: it does if what is before it has.
 */
static bool takes_cast(const ortc_node *n)
{
    const bool can = type == ORTC_BF16 && !strncmp(n->type, "Conv", 4) && !depthwise &&
                     ortc_tiled_uk_get(ORTC_TILED_BF16);
    cr_expect(!can || !n->next || strcmp(n->next->type, "Cast") || n->next->in[0] != n->out[0],
              "a Cast is left behind %s", n->type);
    return can && !n->next;
}

/* What the cpu has fused into the first node of the operator; "": nothing. */
static void expect_fused(const char *name, const char *op, const char *fused)
{
    ortc_graph *copy;
    ortc_session *s;
    cr_assert_eq(ortc_graph_clone(g, &copy, &e), ORTC_OK, "%s", e.text);
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.providers = "cpu";
    cr_assert_eq(ortc_session_from_graph(&store, copy, &o, &s, &e), ORTC_OK, "%s", e.text);
    const ortc_node *n = copy->first;
    while (n && strcmp(n->type, op)) n = n->next;
    cr_assert_not_null(n);
    char all[64];
    const bool cast = takes_cast(n);
    snprintf(all, sizeof all, "%s%s%s", fused, cast && *fused ? " " : "", cast ? "Cast" : "");
    cr_expect_str_eq(n->fused ? n->fused : "", all, "%s in type %d: '%s' has gone into %s", name, type,
                     n->fused ? n->fused : "", op);
    cr_expect_eq(n->epilogue != NULL, *all != 0);
    if (n->epilogue) {
        cr_expect(ortc_pointwise_valid(n->epilogue, n->epilogue->bytes));
        cr_expect_eq(n->epilogue->n_in, n->n_in);
        cr_expect_eq(ortc_graph_verify(n->body, &e), ORTC_OK, "%s", e.text);
        cr_expect_eq(n->body->n_inputs, n->n_in);
    }
    ortc_session_release(s);
}

static bool goes_in_blocks(const char *op)
{
    return !strcmp(op, "Conv") || (!strcmp(op, "ConvTranspose") && (window == 2 || filters >= 8)) ||
           (type == ORTC_F32 && (!strcmp(op, "InstanceNormalization") || !strcmp(op, "GroupNormalization")));
}

/* The result of `make` on the cpu against ref; of a convolution, in blocks of channels, too. */
static void check(const char *name, ortc_edge *(*make)(void), const char *op, const char *fused)
{
    static const ortc_dtype types[] = {ORTC_F32, ORTC_F16, ORTC_BF16};
    static float want[MAX_COUNT], have[MAX_COUNT];
    for (size_t t = 0; t < ORTC_LENGTH(types); t++) {
        type = types[t];
        ortc_edge *y = make();
        cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
        ortc_graph_add_output(g, "y", cast(y, ORTC_F32));
        cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
        expect_fused(name, op, fused);
        const int64_t count = run(g, "ref", want);
        /* ref rounds after every node */
        const float eps = type == ORTC_F32 ? 1e-5F : type == ORTC_F16 ? 4e-3F : 3e-2F;
        for (int blocks = 0; blocks <= goes_in_blocks(op); blocks++) {
            const ortc_node *n = g->first;
            char choose[64];
            while (strcmp(n->type, op)) n = n->next;
            snprintf(choose, sizeof choose, "%s=%s", n->name, /* by name: or planning fails */
                     !strcmp(op, "ConvTranspose") ? "conv_transpose.blocked" : "@aBcd16b");
            cr_assert_eq(run_chosen(g, "cpu", blocks ? choose : NULL, have), count);
            for (int64_t i = 0; i < count; i++)
                cr_assert_leq(fabsf(have[i] - want[i]), eps * (4 + fabsf(want[i])),
                              "%s in type %d%s: element %d is %g, on ref %g", name, type,
                              blocks ? " in blocks" : "", (int)i, (double)have[i], (double)want[i]);
        }
        ortc_graph_destroy(g);
        start();
    }
}

/* ---- What goes in -------------------------------------------------------------------------------------- */

static ortc_edge *residual_block(void)
{
    ortc_edge *x = image("x"), *y = two("Add", convolution(x), channels());
    return one("Relu", two("Add", image("r"), y));
}
static ortc_edge *own_input(void) /* the residual is what the convolution reads */
{
    ortc_edge *x = image("x");
    return one("LeakyRelu", two("Add", convolution(x), x));
}
static ortc_edge *silu(void)
{
    ortc_edge *y = convolution(image("x"));
    return two("Add", two("Mul", y, one("Sigmoid", y)), image("r"));
}
static ortc_edge *two_residuals(void)
{
    ortc_edge *y = two("Add", convolution(image("x")), image("r"));
    return two("Add", image("s"), one("HardSwish", y));
}
static ortc_edge *scales(void) /* as a normalisation that was not folded */
{
    ortc_edge *y = two("Mul", convolution(image("x")), channels());
    return apply("Clip", 3, two("Add", y, channels()), NULL, scalar());
}
static ortc_edge *prelu(void) { return two("PRelu", convolution(image("x")), channels()); }
static ortc_edge *mish(void)
{
    ortc_edge *y = two("Mul", convolution(image("x")), scalar());
    return two("Mul", y, one("Tanh", one("Softplus", y)));
}
static ortc_edge *meeting(void)
{
    ortc_edge *y = convolution(image("x")), *left = one("Relu", y), *right = one("Tanh", y);
    return two("Sub", left, two("Mul", right, scalar()));
}
static ortc_edge *later(void) /* the residual is made behind the product */
{
    ortc_edge *y = convolution(image("x"));
    return one("Elu", two("Add", y, one("Softsign", image("r"))));
}

Test(epilogues, of_convolutions)
{
    for (int k = 0; k < 2; k++) {
        depthwise = k;
        check("residual block", residual_block, "Conv", "Add Add Relu");
        check("own input", own_input, "Conv", "Add LeakyRelu");
        check("silu", silu, "Conv", "Sigmoid Mul Add");
        check("two residuals", two_residuals, "Conv", "Add HardSwish Add");
        check("scales", scales, "Conv", "Mul Add Clip");
        check("prelu", prelu, "Conv", "PRelu");
        check("mish", mish, "Conv", "Mul Softplus Tanh Mul");
        check("meeting", meeting, "Conv", "Relu Tanh Mul Sub");
        check("later", later, "Conv", "Add Elu");
    }
}

static ortc_edge *relu(void) { return one("Relu", transposed(image("x"))); }
static ortc_edge *biased(void)
{
    const int64_t n = filters;
    return one("Sigmoid", two("Add", transposed(image("x")), constant(3, n, 1, 1, 0)));
}
static ortc_edge *swish(void)
{
    ortc_edge *y = transposed(image("x"));
    return two("Mul", y, one("HardSigmoid", two("Add", y, scalar())));
}
static ortc_edge *by_filter(void)
{
    return two("PRelu", one("Tanh", transposed(image("x"))), constant(3, filters, 1, 1, 0));
}

/* Windows side by side, and others; filters of some blocks, of less than one, so few that Y is plain. */
Test(epilogues, of_transposed_convolutions)
{
    for (window = 2; window <= 3; window++) {
        static const int64_t some[] = {CHANNELS, 12, 3, 1};
        for (size_t k = 0; k < ORTC_LENGTH(some); k++) {
            filters = some[k];
            check("relu", relu, "ConvTranspose", "Relu");
            check("biased", biased, "ConvTranspose", "Add Sigmoid");
            check("swish", swish, "ConvTranspose", "Add HardSigmoid Mul");
            check("by filter", by_filter, "ConvTranspose", filters == 1 ? "Tanh PRelu" : "Tanh");
        }
    }
}

/* The same where the device rounds f32 to bf16, whose kernel is another one. */
Test(epilogues, of_transposed_convolutions_that_round)
{
    static ortc_edge *(*const made[])(void) = {relu, biased, swish, by_filter};
    static float want[MAX_COUNT], have[MAX_COUNT];
    filters = 12;
    for (size_t k = 0; k < 2 * ORTC_LENGTH(made); k++) {
        window = 2 + (int64_t)k % 2;
        ortc_graph_add_output(g, "y", made[k / 2]());
        cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
        const int64_t count = run(g, "ref", want);
        cr_assert_eq(run(g, "cpu:precision=bf16", have), count);
        for (int64_t i = 0; i < count; i++)
            cr_assert_leq(fabsf(have[i] - want[i]), 0.05F * (1 + fabsf(want[i])));
        ortc_graph_destroy(g);
        start();
    }
}

static ortc_edge *dense(void)
{
    return two("Add", one("Gelu", two("Add", product(rows("x")), constant(1, CHANNELS, 0, 0, 0))), rows("r"));
}
static ortc_edge *gated(
    void) /* the later of two products takes what joins them: its inputs are there by then */
{
    ortc_edge *gate = one("Sigmoid", product(rows("z")));
    return two("Mul", product(rows("x")), gate);
}
static ortc_edge *full_c(void) /* C has the residual's place in registers */
{
    ortc_edge *y = apply("Gemm", 3, rows("x"), constant(2, CHANNELS, CHANNELS, 0, 0), rows("c"));
    return one("Tanh", two("Add", two("Mul", y, constant(1, CHANNELS, 0, 0, 0)), rows("r")));
}
static ortc_edge *matvec(void)
{
    ortc_edge *y = two("MatMul", rows("x"), constant(1, CHANNELS, 0, 0, 0));
    return one("Relu", two("Add", y, input("r", 1, batch, 0, 0, 0)));
}
static ortc_edge *runtime_scalar(void) { return two("Mul", product(rows("x")), input("k", 1, 1, 0, 0, 0)); }

Test(epilogues, of_products)
{
    check("dense", dense, "MatMul", "Add Gelu Add");
    check("full c", full_c, "Gemm", "Mul Add Tanh");
    check("matvec", matvec, "MatMul", "Add Relu");
    check("runtime scalar", runtime_scalar, "MatMul", "Mul");
    check("gated", gated, "MatMul", "Sigmoid");
}

static ortc_edge *weight(void) { return constant(1, CHANNELS, 0, 0, 0); }
static ortc_edge *layer_norm(void)
{
    ortc_edge *y = apply("LayerNormalization", 3, rows("x"), weight(), weight());
    return two("Add", one("Gelu", two("Add", y, weight())), rows("r"));
}
static ortc_edge *root_norm(void)
{
    return one("Relu", two("Mul", two("RMSNormalization", rows("x"), weight()), rows("r")));
}
static ortc_edge *instance_norm(void)
{
    ortc_edge *y = apply("InstanceNormalization", 3, image("x"), weight(), weight());
    return two("Add", one("LeakyRelu", y), image("r"));
}
static ortc_edge *group_norm(void)
{
    ortc_edge *y = apply("GroupNormalization", 3, image("x"), weight(), weight());
    return one("Tanh", two("Mul", with_int(y, "num_groups", 5), channels()));
}
static ortc_edge *norm_of_images(void) /* rows of several dims */
{
    ortc_edge *y = two("LayerNormalization", image("x"), constant(3, CHANNELS, EXTENT, EXTENT, 0));
    return one("Relu", with_int(y, "axis", 1));
}

static ortc_edge *softmax(void)
{
    return one("Tanh", two("Add", two("Mul", one("Softmax", rows("x")), weight()), rows("r")));
}
static ortc_edge *log_softmax(void) { return two("Mul", one("LogSoftmax", rows("x")), rows("r")); }
static ortc_edge *softmax_of_channels(void) /* not of rows */
{
    return one("Sqrt", with_int(one("Softmax", image("x")), "axis", 1));
}

Test(epilogues, of_normalisations)
{
    check("softmax", softmax, "Softmax", "Mul Add Tanh");
    check("logarithms", log_softmax, "LogSoftmax", "Mul");
    check("softmax of channels", softmax_of_channels, "Softmax", "");
    check("layer norm", layer_norm, "LayerNormalization", "Add Gelu Add");
    check("root norm", root_norm, "RMSNormalization", "Mul Relu");
    check("instance norm", instance_norm, "InstanceNormalization", "LeakyRelu Add");
    check("group norm", group_norm, "GroupNormalization", "Mul Tanh");
    check("norm of images", norm_of_images, "LayerNormalization", "");
}

/* ---- What stays out ------------------------------------------------------------------------------------ */

static ortc_edge *by_pixel(void) /* a mask over the image: the kernel says no, and takes what is before it */
{
    return one("Relu", two("Add", one("Tanh", convolution(image("x"))), constant(2, EXTENT, EXTENT, 0, 0)));
}
static ortc_edge *grows(void) /* the sum is larger than the product */
{
    ortc_edge *y = two("Conv", image("x"), constant(4, CHANNELS, CHANNELS, EXTENT, EXTENT));
    return two("Add", one("Relu", y), image("r"));
}
static ortc_edge *read_twice(void) /* by something that is not pointwise */
{
    ortc_edge *y = convolution(image("x"));
    return two("Add", one("Relu", y), one("GlobalAveragePool", y));
}
static ortc_edge *read_twice_later(void)
{
    ortc_edge *y = one("Relu", convolution(image("x")));
    return two("Add", one("Tanh", y), one("GlobalAveragePool", y));
}
static ortc_edge *not_a_product(void) { return one("Relu", one("GlobalAveragePool", image("x"))); }

Test(epilogues, end_where_something_else_is_needed)
{
    check("by pixel", by_pixel, "Conv", "Tanh");
    check("grows", grows, "Conv", "Relu");
    check("read twice", read_twice, "Conv", "");
    check("read twice later", read_twice_later, "Conv", "Relu");
    check("not a product", not_a_product, "GlobalAveragePool", "");
}

Test(epilogues, an_output_is_not_swallowed)
{
    ortc_edge *y = one("Relu", convolution(image("x")));
    ortc_graph_add_output(g, "middle", y);
    ortc_graph_add_output(g, "y", one("Tanh", y));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    expect_fused("an output", "Conv", "Relu");
}

/* ---- The pass ------------------------------------------------------------------------------------------ */

static uint32_t asked, longest; /* longest: steps of the programs that are accepted */
static bool accept(void *arg, const ortc_node *proposal, const ortc_node *node, const ortc_node *where)
{
    (void)arg, (void)where;
    asked += !node && proposal->epilogue;
    return proposal->epilogue && proposal->epilogue->n <= longest;
}
static bool together(void *arg, const ortc_node *a, const ortc_node *b)
{
    (void)arg, (void)a, (void)b;
    return true;
}
static void specialise(void)
{
    ortc_specialise s = {.graph = g, .error = &e, .accept = accept, .together = together};
    asked = 0;
    cr_assert_eq(ortc_pass_fuse_epilogue(&s), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_graph_verify(g, &e), ORTC_OK, "%s", e.text);
}

Test(epilogues, the_most_is_asked_for_first)
{
    ortc_graph_add_output(g, "y", residual_block());
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    specialise();
    cr_expect_eq(asked, 3);
    cr_expect_eq(g->n_nodes, 4);
    longest = 7; /* two additions: what the last Relu adds is a constant and a maximum */
    specialise();
    cr_expect_eq(asked, 2);
    cr_expect_eq(g->n_nodes, 2);
    cr_expect_str_eq(g->first->fused, "Add Add");
}

/* load, load, add, .. store: inputs are ports behind the operator's own, constants of one element are inside,
 * the body is all of it. */
Test(epilogues, a_program_reads_ports_behind_the_operators_own)
{
    ortc_edge *y = residual_block();
    ortc_graph_add_output(g, "y", two("Mul", y, scalar()));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    longest = ORTC_PW_STEPS;
    specialise();
    cr_assert_eq(g->n_nodes, 1);
    const ortc_node *n = g->first;
    cr_assert_eq(n->n_in, 5);
    cr_expect_null(n->in[2]); /* B */
    cr_expect_str_eq(n->fused, "Add Add Relu Mul");
    cr_expect_eq(n->body->n_nodes, 5);
    cr_expect_eq(n->body->n_inputs, 5);
    const ortc_pointwise *p = ortc_node_epilogue(n);
    cr_assert(ortc_pointwise_valid(p, p->bytes));
    const struct {
        uint8_t op;
        uint16_t a, b;
    } want[] = {{ORTC_PW_LOAD, 0, 0}, {ORTC_PW_LOAD, 3, 0},  {ORTC_PW_ADD, 0, 1}, {ORTC_PW_LOAD, 4, 0},
                {ORTC_PW_ADD, 3, 2},  {ORTC_PW_CONST, 0, 0}, {ORTC_PW_MAX, 4, 5}, {ORTC_PW_CONST, 0, 0},
                {ORTC_PW_MUL, 6, 7},  {ORTC_PW_STORE, 8, 0}};
    cr_assert_eq(p->n, ORTC_LENGTH(want));
    for (uint32_t i = 0; i < p->n; i++)
        cr_expect(p->steps[i].op == want[i].op && p->steps[i].a == want[i].a && p->steps[i].b == want[i].b,
                  "step %u: %s of %d and %d", i, ortc_pw_name(p->steps[i].op), p->steps[i].a, p->steps[i].b);
    const ortc_port y_port = ortc_node_out(n, 0), bias = ortc_node_in(n, 3), residual = ortc_node_in(n, 4);
    cr_expect_eq(ortc_pw_lies(&bias, &y_port, 1), ORTC_PW_CHANNEL);
    cr_expect_eq(ortc_pw_lies(&bias, &y_port, 3), ORTC_PW_OTHER);
    cr_expect_eq(ortc_pw_lies(&residual, &y_port, 1), ORTC_PW_FULL);
}

/* Sums of 16 bits are f32; integers are what they are; what is stored may be of another type, and then the
 * shape is inferred with it. */
Test(epilogues, sums_are_wide_and_the_last_type_counts)
{
    type = ORTC_F16;
    ortc_edge *y = one("Relu", product(rows("x")));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    ortc_graph_add_output(g, "y", with_int(one("Cast", y), "to", ORTC_I8));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    longest = ORTC_PW_STEPS;
    specialise();
    const ortc_node *n = g->last;
    cr_assert_not_null(n->epilogue);
    cr_expect_eq(n->epilogue->steps[0].type, ORTC_F32);
    cr_expect_eq(n->epilogue->steps[n->epilogue->n - 1].type, ORTC_I8);
    cr_expect_eq(n->out[0]->type->dtype, ORTC_I8);
    cr_expect_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
}

Test(epilogues, of_integers)
{
    const ortc_dim dims[2] = {3, 4};
    ortc_edge *x = ortc_edge_create(g, "x");
    ortc_edge_set_shape(x, ortc_tensor_type(ORTC_U8), 2, dims);
    ortc_graph_add_input(g, "x", x);
    ortc_edge *w = ortc_edge_create(g, "w");
    ortc_edge_set_shape(w, ortc_tensor_type(ORTC_U8), 2, (ortc_dim[]){4, 5});
    ortc_graph_add_input(g, "w", w);
    ortc_edge *y = with_int(one("Cast", two("MatMulInteger", x, w)), "to", ORTC_F32);
    y = one("Round", two("Mul", y, input("s", 1, 5, 0, 0, 0)));
    ortc_graph_add_output(g, "y", with_int(one("Cast", y), "to", ORTC_U8));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    longest = ORTC_PW_STEPS;
    specialise();
    cr_assert_eq(g->n_nodes, 1);
    const ortc_pointwise *p = g->first->epilogue;
    cr_expect_eq(p->steps[0].type, ORTC_I32);
    cr_expect_eq(p->steps[p->n - 1].type, ORTC_U8);
    cr_expect_eq(g->first->n_in, 5); /* zero points are ports of the operator */
    cr_expect_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
}

Test(epilogues, the_later_of_two_products_takes_what_joins_them)
{
    ortc_graph_add_output(g, "y", gated());
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    longest = ORTC_PW_STEPS;
    specialise();
    cr_assert_eq(g->n_nodes, 2);
    cr_expect_str_eq(g->first->fused, "Sigmoid");
    cr_expect_str_eq(g->last->fused, "Mul");
    cr_expect_eq(g->last->in[2], g->first->out[0]);
}

/* ---- Splitting ----------------------------------------------------------------------------------------- */

static ortc_edge *row(void) { return constant(1, CHANNELS, 0, 0, 0); }

/* What is split off the epilogue that `y` becomes, and what is left. */
static ortc_tail split(ortc_edge *y, uint32_t may)
{
    ortc_tail t;
    const char *why = NULL;
    ortc_graph_add_output(g, "y", y);
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    longest = ORTC_PW_STEPS;
    specialise();
    const ortc_node *n = g->last;
    cr_assert_not_null(n->epilogue);
    cr_assert(ortc_tail_read(n, 1, may, &t, &why), "%s", why);
    if (t.bias >= 0) cr_expect_eq(n->in[t.bias]->rank, 1);
    if (t.residual >= 0) cr_expect_eq(n->in[t.residual]->rank, 2);
    if (t.has_rest) cr_expect(ortc_pointwise_valid(&t.u.rest, t.u.rest.bytes));
    ortc_graph_destroy(g);
    start();
    return t;
}
#define EXPECT_SPLIT(y, may, scales, has_bias, has_residual, activation, low, high, rest) \
    do { \
        const ortc_tail t = split(y, may); \
        cr_expect_eq(t.scale, scales); \
        cr_expect_eq(t.bias >= 0, has_bias); \
        cr_expect_eq(t.residual >= 0, has_residual); \
        cr_expect_eq(t.act, ORTC_UK_ACT_##activation); \
        if (t.act) cr_expect_eq(t.lo, low); \
        if (t.act == ORTC_UK_ACT_CLIP) cr_expect_eq(t.hi, high); \
        cr_expect_eq(t.has_rest, rest); \
    } while (0)

static ortc_edge *everything(void)
{
    ortc_edge *y = two("Add", two("Mul", product(rows("x")), scalar()), row());
    return one("Relu", two("Add", rows("r"), y));
}
static ortc_edge *other_order(void) { return two("Add", two("Add", product(rows("x")), rows("r")), row()); }
static ortc_edge *sum_first(void) { return two("Mul", two("Add", product(rows("x")), row()), scalar()); }
static ortc_edge *read_again(void)
{
    ortc_edge *y = two("Add", product(rows("x")), row());
    return two("Mul", y, one("Relu", y));
}
static ortc_edge *clip(bool low, bool high)
{
    return apply("Clip", 3, product(rows("x")), low ? scalar() : NULL, high ? scalar() : NULL);
}
static ortc_edge *then(ortc_edge *y, const char *op) { return one(op, y); }

Test(epilogues, registers_take_what_they_can)
{
    const uint32_t all = ORTC_TAIL_ALL;
    EXPECT_SPLIT(everything(), all, 0.5F, 1, 1, CLIP, 0, INFINITY, 0);
    EXPECT_SPLIT(everything(), all & ~(uint32_t)ORTC_TAIL_ACT, 0.5F, 1, 1, NONE, 0, 0, 1);
    EXPECT_SPLIT(everything(), all & ~(uint32_t)ORTC_TAIL_RESIDUAL, 0.5F, 1, 0, NONE, 0, 0, 1);
    EXPECT_SPLIT(everything(), all & ~(uint32_t)ORTC_TAIL_SCALE, 1, 0, 0, NONE, 0, 0, 1);
    EXPECT_SPLIT(everything(), 0, 1, 0, 0, NONE, 0, 0, 1);
    EXPECT_SPLIT(other_order(), all, 1, 0, 1, NONE, 0, 0, 1);
    EXPECT_SPLIT(two("Div", product(rows("x")), scalar()), all, 2, 0, 0, NONE, 0, 0, 0);
    EXPECT_SPLIT(two("Div", scalar(), product(rows("x"))), all, 1, 0, 0, NONE, 0, 0, 1);
    EXPECT_SPLIT(two("Div", product(rows("x")), two("Mul", scalar(), row())), all, 1, 0, 0, NONE, 0, 0, 1);
    EXPECT_SPLIT(sum_first(), all, 1, 1, 0, NONE, 0, 0, 1);
    EXPECT_SPLIT(read_again(), all, 1, 1, 0, NONE, 0, 0, 1);
    EXPECT_SPLIT(clip(true, true), all, 1, 0, 0, CLIP, 0.5F, 0.5F, 0);
    EXPECT_SPLIT(clip(true, false), all, 1, 0, 0, CLIP, 0.5F, INFINITY, 0);
    EXPECT_SPLIT(clip(false, true), all, 1, 0, 0, CLIP, -INFINITY, 0.5F, 0);
    EXPECT_SPLIT(then(product(rows("x")), "LeakyRelu"), all, 1, 0, 0, LEAKY, 0.01F, 0, 0);
    EXPECT_SPLIT(two("PRelu", product(rows("x")), scalar()), all, 1, 0, 0, LEAKY, 0.5F, 0, 0);
    EXPECT_SPLIT(two("PRelu", product(rows("x")), row()), all, 1, 0, 0, NONE, 0, 0, 1);
    EXPECT_SPLIT(then(then(product(rows("x")), "Relu"), "Tanh"), all, 1, 0, 0, CLIP, 0, INFINITY, 1);
    EXPECT_SPLIT(then(product(rows("x")), "Elu"), all, 1, 0, 0, NONE, 0, 0, 1);
    for (int k = 0; k < 2; k++) { /* the sums are f32, the ports are not */
        type = k ? ORTC_F16 : ORTC_BF16;
        EXPECT_SPLIT(everything(), all, 0.5F, 1, 1, CLIP, 0, INFINITY, 0);
    }
}

Test(epilogues, a_result_of_another_type_is_not_split)
{
    ortc_tail t;
    const char *why = NULL;
    ortc_edge *y = product(rows("x"));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    ortc_graph_add_output(g, "y", with_int(one("Cast", y), "to", ORTC_F16));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    longest = ORTC_PW_STEPS;
    specialise();
    cr_assert_not_null(g->last->epilogue);
    cr_expect_not(ortc_tail_read(g->last, 1, ORTC_TAIL_ALL, &t, &why));
    cr_expect_not_null(why);
}

/* Activations that a kernel has in its own way are known by what they do, however a model spells them. */
static ortc_edge *gelu(bool by_tanh)
{
    const ortc_attr a = {.size = sizeof a,
                         .kind = ORTC_ATTR_STRING,
                         .count = 4,
                         .u.s = by_tanh ? "tanh" : "none"};
    ortc_edge *y = one("Gelu", product(rows("x")));
    ortc_node_set_attr(y->producer, "approximate", &a);
    return y;
}
static ortc_edge *spelled(bool turned)
{
    ortc_edge *y = two("Add", product(rows("x")), row()), *s = one("Sigmoid", y);
    return turned ? two("Mul", s, y) : two("Mul", y, s);
}

Test(epilogues, activations_are_known_by_what_they_do)
{
    static int32_t (*const known[])(ortc_pw_builder *,
                                    int32_t) = {ortc_expand_sigmoid,   ortc_expand_tanh,
                                                ortc_expand_silu,      ortc_expand_gelu,
                                                ortc_expand_gelu_tanh, ortc_expand_hard_swish};
    for (size_t i = 0; i < 10; i++) {
        const char *const names[] = {"Sigmoid", "Tanh", "Swish"};
        const size_t is = i < 6 ? i : i < 8 ? 2 : ORTC_LENGTH(known);
        const ortc_tail t = split(i < 3    ? one(names[i], product(rows("x")))
                                  : i < 5  ? gelu(i == 4)
                                  : i == 5 ? one("HardSwish", product(rows("x")))
                                  : i < 8  ? spelled(i == 7)
                                           : one(i == 8 ? "Mish" : "HardSigmoid", product(rows("x"))),
                                  ORTC_TAIL_ALL);
        cr_assert(t.has_rest);
        cr_expect_eq(t.bias >= 0, i == 6 || i == 7);
        const ortc_pointwise *p = &t.u.rest;
        for (size_t k = 0; k < ORTC_LENGTH(known); k++)
            cr_expect_eq(ortc_expands_to(p, p->steps[p->n - 1].a, t.at, known[k]), k == is, "%zu as %zu", i,
                         k);
    }
}
