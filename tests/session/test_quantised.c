/* tests/session/test_quantised.c: products, convolutions and moves between DequantizeLinear and
 * QuantizeLinear: which run on integers on the cpu, which must not, and that the results are ref's. Networks
 * of onnxruntime's quantiser are tests/models/quantised.py's.
 */
#include <criterion/criterion.h>
#include <stdio.h>
#include <math.h>

#include "graph/normalise/normalise.h"
#include "runtime/registry/registry.h"
#include "runtime/session/create.h"
#include "runtime/session/session.h"

enum { COUNT = 4096 };

static ortc_graph *g;
static ortc_model store;
static ortc_error e;

static void setup(void)
{
    e = (ortc_error)ORTC_ERROR_INIT;
    cr_assert_eq(ortc_registry_init(&e), ORTC_OK, "%s", e.text);
    cr_assert_not_null(g = ortc_graph_create(NULL));
    cr_assert(ortc_pack_store_init(&store.packed, 0));
}
static void teardown(void)
{
    ortc_graph_destroy(g);
    ortc_pack_store_deinit(&store.packed);
}
TestSuite(quantised, .init = setup, .fini = teardown);

/* ---- Building ------------------------------------------------------------------------------------------ */

typedef struct dims {
    int32_t rank;
    int64_t at[5];
} dims;
#define D(...) ((dims){sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t), {__VA_ARGS__}})
static const dims none = {0, {0}};

/* Of f32 a scale for each element, others bytes of all kinds, or `value`. */
static ortc_edge *constant(ortc_dtype t, dims d, int32_t value)
{
    ortc_constant *c;
    int64_t count;
    cr_assert(ortc_count_elements(d.rank, d.at, &count));
    const size_t bytes = (size_t)count * ortc_dtype_bits(t) / 8;
    char *data = malloc(bytes + 1);
    for (int64_t i = 0; i < count; i++) {
        if (t == ORTC_F32)
            ((float *)(void *)data)[i] = 0.01F * (float)(value + i % 5);
        else
            data[i] = (char)(value >= 0 ? value : (i * 73 + 11) % 251 - 125);
    }
    cr_assert_eq(ortc_constant_create(t, d.rank, d.at, data, bytes, free, data, &c, &e), ORTC_OK);
    return ortc_graph_constant(g, NULL, c);
}

static ortc_edge *apply(const char *op, ortc_edge *a, ortc_edge *b, ortc_edge *c)
{
    ortc_edge *const in[3] = {a, b, c};
    ortc_node *n = ortc_node_create(g, ortc_op_find("", op), NULL, c ? 3 : b ? 2 : 1, 1);
    for (uint32_t i = 0; i < n->n_in; i++)
        if (in[i]) ortc_node_set_in(n, i, in[i]);
    ortc_node_set_out(n, 0, ortc_edge_create(g, NULL));
    return n->out[0];
}
static ortc_edge *with_int(ortc_edge *y, const char *name, int64_t v)
{
    const ortc_attr a = {.size = sizeof a, .kind = ORTC_ATTR_INT, .i = v};
    ortc_node_set_attr(y->producer, name, &a);
    return y;
}
static ortc_edge *with_float(ortc_edge *y, const char *name, float v)
{
    const ortc_attr a = {.size = sizeof a, .kind = ORTC_ATTR_FLOAT, .f = v};
    ortc_node_set_attr(y->producer, name, &a);
    return y;
}
static ortc_edge *with_ints(ortc_edge *y, const char *name, size_t n, const int64_t *v)
{
    const ortc_attr a = {.size = sizeof a, .kind = ORTC_ATTR_INTS, .count = n, .u.ints = v};
    ortc_node_set_attr(y->producer, name, &a);
    return y;
}

static ortc_edge *input(const char *name, dims d)
{
    ortc_edge *x = ortc_edge_create(g, name);
    ortc_edge_set_shape(x, ortc_tensor_type(ORTC_F32), d.rank, d.at);
    ortc_graph_add_input(g, name, x);
    return x;
}

/* A value through 8 bits; scale in hundredths. */
static ortc_edge *quantise(ortc_edge *x, ortc_dtype t, int32_t scale, int32_t zero)
{
    return apply("QuantizeLinear", x, constant(ORTC_F32, none, scale), constant(t, none, zero));
}
static ortc_edge *dequantise(ortc_edge *x, ortc_dtype t, int32_t scale, int32_t zero)
{
    return apply("DequantizeLinear", x, constant(ORTC_F32, none, scale), constant(t, none, zero));
}
static ortc_edge *through(ortc_edge *x, ortc_dtype t, int32_t scale, int32_t zero)
{
    return dequantise(quantise(x, t, scale, zero), t, scale, zero);
}
/* Constant weights; `scales`: 0 one, else so many along `axis`. */
static ortc_edge *weights(ortc_dtype t, dims d, int64_t scales, int64_t axis, int32_t zero)
{
    ortc_edge *w = constant(t, d, -1);
    if (!scales) return dequantise(w, t, 2, zero);
    return with_int(apply("DequantizeLinear", w, constant(ORTC_F32, D(scales), 1),
                          constant(t, D(scales), zero ? -1 : 0)),
                    "axis", axis);
}

/* ---- Running ------------------------------------------------------------------------------------------- */

static bool by_passes;     /* the cpu's graph is as a loaded model's */
static const char *chosen; /* of ortc_session_options.choose, on the cpu */

static ortc_session *session(const char *providers, ortc_graph **copy)
{
    ortc_session *s;
    cr_assert_eq(ortc_graph_clone(g, copy, &e), ORTC_OK, "%s", e.text);
    if (by_passes && !strcmp(providers, "cpu")) {
        uint64_t edits[32];
        ortc_normalise p = {.graph = *copy, .error = &e};
        cr_assert_leq(ortc_normalise_n_passes, 32);
        cr_assert_eq(ortc_normalise_run(&p, NULL, 0, edits), ORTC_OK, "%s", e.text);
        cr_assert_eq(ortc_graph_verify(*copy, &e), ORTC_OK, "%s", e.text);
    }
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.providers = providers;
    o.choose = &chosen, o.n_choose = chosen && !strcmp(providers, "cpu");
    cr_assert_eq(ortc_session_from_graph(&store, *copy, &o, &s, &e), ORTC_OK, "%s", e.text);
    return s;
}

static uint32_t nodes_of(const ortc_graph *of, const char *op)
{
    uint32_t n = 0;
    for (const ortc_node *at = of->first; at; at = at->next)
        n += !strcmp(at->type, op) || (at->fused && !strcmp(at->fused, op)); /* a group by its nodes */
    return n;
}

static int64_t run(ortc_session *s, float *y)
{
    static float x[4][COUNT];
    ortc_in in[4];
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const ortc_edge *edge = g->inputs[i].edge;
        int64_t count;
        cr_assert(ortc_count_elements(edge->rank, edge->dims, &count));
        for (int64_t k = 0; k < count; k++) x[i][k] = (float)((k * 37 + i * 11) % 101 - 50) * 0.03F;
        in[i] = (ortc_in){g->inputs[i].name, ortc_wrap(x[i], ORTC_F32, edge->rank, edge->dims)};
    }
    ortc_out out = {"y", NULL, 0, 0};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = in, a.n_in = g->n_inputs, a.out = &out, a.n_out = 1;
    cr_assert_eq(ortc_run(s, &a, &e), ORTC_OK, "%s", e.text);
    const int64_t count = (int64_t)ortc_value_count(out.value);
    cr_assert_leq(count, COUNT);
    memcpy(y, ortc_value_data(out.value), (size_t)count * sizeof *y);
    for (uint32_t i = 0; i < g->n_inputs; i++) ortc_value_release(in[i].value);
    ortc_value_release(out.value);
    return count;
}

/* With y as the result: on the cpu `op` occurs `times`, in all of `steps` nodes (0: any number); on ref it
 * does not occur; results are within `step`. */
static void check(const char *what, ortc_edge *y, const char *op, uint32_t times, uint32_t steps, float step)
{
    static float want[COUNT], have[COUNT];
    ortc_graph *ref, *cpu;
    ortc_graph_add_output(g, "y", y);
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s: %s", what, e.text);
    ortc_session *on_ref = session("ref", &ref), *on_cpu = session("cpu", &cpu);
    cr_expect_eq(nodes_of(ref, op), 0, "%s: ref has %s", what, op);
    cr_expect_eq(nodes_of(cpu, op), times, "%s: %u of %s", what, nodes_of(cpu, op), op);
    if (steps) cr_expect_eq(cpu->n_nodes, steps, "%s: %u nodes", what, cpu->n_nodes);
    const int64_t count = run(on_ref, want);
    cr_assert_eq(run(on_cpu, have), count);
    for (int64_t i = 0; i < count; i++)
        if (!(fabsf(have[i] - want[i]) <= step + 1e-4F * fabsf(want[i]))) {
            cr_expect_fail("%s: element %d is %g, on ref %g", what, (int)i, (double)have[i], (double)want[i]);
            break;
        }
    ortc_session_release(on_ref);
    ortc_session_release(on_cpu);
    teardown();
    setup();
}

static ortc_edge *rows(void) { return through(input("x", D(5, 12)), ORTC_U8, 2, 120); }
static ortc_edge *image(void) { return through(input("x", D(1, 6, 7, 9)), ORTC_U8, 2, 120); }
static ortc_edge *padded(ortc_edge *y)
{
    static const int64_t ones[4] = {1, 1, 1, 1};
    return with_ints(y, "pads", 4, ones);
}

/* ---- Products ------------------------------------------------------------------------------------------ */

Test(quantised, products_between_dequantised_operands_are_of_integers)
{
    static const ortc_dtype types[] = {ORTC_U8, ORTC_I8};
    for (int a = 0; a < 2; a++)
        for (int b = 0; b < 2; b++)
            for (int zero = 0; zero < 8; zero += 7) {
                const ortc_dtype ta = types[a], tb = types[b];
                ortc_edge *x = through(input("x", D(5, 12)), ta, 2, zero),
                          *y = apply("MatMul", x, weights(tb, D(12, 9), 0, 0, zero), NULL);
                check("one scale", through(y, ta, 30, 3), "MatMulInteger", 1, 2, 0.301F);
                x = through(input("x", D(5, 12)), ta, 2, zero);
                y = apply("MatMul", x, weights(tb, D(12, 9), 9, 1, zero), NULL);
                y = apply("Relu", apply("Add", y, constant(ORTC_F32, D(9), 3), NULL), NULL, NULL);
                check("a scale for each column", through(y, ta, 30, 3), "MatMulInteger", 1, 2, 0.301F);
            }
}

Test(quantised, both_operands_may_be_computed)
{
    ortc_edge *x = through(input("x", D(2, 5, 12)), ORTC_U8, 2, 120),
              *w = through(input("w", D(2, 12, 4)), ORTC_I8, 2, 5);
    check("computed", apply("MatMul", x, w, NULL), "MatMulInteger", 1, 3, 1e-4F);
    ortc_edge *turned = through(input("w", D(9, 12)), ORTC_I8, 2, 5);
    check("computed, turned", with_int(apply("Gemm", rows(), turned, NULL), "transB", 1), "GemmInteger", 1, 3,
          1e-4F);
}

Test(quantised, gemm_is_a_product_of_integers)
{
    ortc_edge *y = apply("Gemm", rows(), weights(ORTC_I8, D(9, 12), 9, 0, 0), constant(ORTC_F32, D(9), 3));
    check("turned", with_int(y, "transB", 1), "GemmInteger", 1, 2, 1e-4F);
    y = apply("Gemm", rows(), weights(ORTC_I8, D(12, 9), 9, -1, 0), NULL);
    check("as it is", y, "MatMulInteger", 1, 2, 1e-4F);
}

Test(quantised, convolutions_are_of_integers)
{
    ortc_edge *y = apply("Conv", image(), weights(ORTC_I8, D(8, 6, 3, 3), 8, 0, 0),
                         constant(ORTC_F32, D(8), 2));
    check("with a bias", through(apply("Relu", padded(y), NULL, NULL), ORTC_U8, 9, 0), "ConvInteger", 1, 2,
          0.091F);
    y = with_int(apply("Conv", image(), weights(ORTC_U8, D(6, 1, 3, 3), 0, 0, 128), NULL), "group", 6);
    check("one channel a group", padded(y), "ConvInteger", 1, 2, 1e-3F);
}

/* k x k by s, so many filters; with what follows in networks. */
static ortc_edge *transposed(int64_t k, int64_t s, const int64_t *pads, int64_t filters, ortc_dtype t,
                             bool each, bool bias)
{
    static int64_t strides[2];
    strides[0] = strides[1] = s;
    ortc_edge *w = weights(t, D(6, filters, k, k), each ? filters : 0, each ? 1 : 0, t == ORTC_U8 ? 128 : 0);
    ortc_edge *y = apply("ConvTranspose", image(), w, bias ? constant(ORTC_F32, D(filters), 2) : NULL);
    return with_ints(with_ints(y, "strides", 2, strides), "pads", 4, pads);
}

Test(quantised, transposed_convolutions_are_convolutions_of_integers)
{
    static const int64_t none_cut[4] = {0, 0, 0, 0}, ones[4] = {1, 1, 1, 1}, uneven[4] = {3, 0, 0, 1},
                         more[2] = {1, 0};
    by_passes = true;
    ortc_edge *y = transposed(4, 2, ones, 16, ORTC_I8, true, true);
    check("as of generators", through(apply("Relu", y, NULL, NULL), ORTC_U8, 9, 0), "ConvInteger", 1, 0,
          0.091F);
    y = through(transposed(2, 2, none_cut, 16, ORTC_I8, false, false), ORTC_U8, 9, 120);
    y = apply("Add", apply("Mul", y, constant(ORTC_F32, D(16, 1, 1), 40), NULL),
              constant(ORTC_F32, D(1, 16, 1, 1), -9), NULL);
    check("with a normalisation behind", through(y, ORTC_I8, 7, -3), "ConvInteger", 1, 4, 0.071F);
    y = transposed(4, 2, uneven, 3, ORTC_I8, false, true);
    check("cut unevenly", y, "ConvInteger", 1, 0, 1e-3F);
    y = with_ints(transposed(3, 3, ones, 5, ORTC_I8, true, true), "output_padding", 2, more);
    check("with more rows", apply("Sigmoid", y, NULL, NULL), "ConvInteger", 1, 0, 1e-3F);
    y = through(transposed(6, 3, uneven, 5, ORTC_U8, false, true), ORTC_U8, 9, 120);
    ortc_graph_add_output(g, "more", y);
    check("read twice", through(apply("Tanh", y, NULL, NULL), ORTC_U8, 1, 120), "ConvInteger", 1, 0, 0.011F);
    check("windows that are no multiple", transposed(3, 2, ones, 5, ORTC_I8, false, true), "ConvInteger", 0,
          0, 1e-3F);
}

Test(quantised, a_residual_is_read_as_it_was_quantised)
{
    ortc_edge *x = quantise(input("x", D(1, 6, 7, 9)), ORTC_U8, 2, 120),
              *w = weights(ORTC_I8, D(6, 6, 3, 3), 0, 0, 0);
    ortc_edge *y = padded(apply("Conv", dequantise(x, ORTC_U8, 2, 120), w, NULL));
    y = apply("Add", through(y, ORTC_U8, 9, 100), dequantise(x, ORTC_U8, 2, 120), NULL);
    /* nothing is left between the two but the convolution, which reads x itself */
    check("two readers of x", through(apply("Relu", y, NULL, NULL), ORTC_U8, 9, 0), "ConvInteger", 1, 2,
          0.091F);
}

Test(quantised, what_is_not_the_form_stays_as_it_is)
{
    ortc_edge *w = weights(ORTC_I8, D(12, 9), 0, 0, 0), *y;
    y = apply("MatMul", input("x", D(5, 12)), w, NULL);
    check("an operand that is not quantised", y, "MatMulInteger", 0, 0, 1e-4F);
    ortc_edge *x = quantise(input("x", D(5, 12)), ORTC_U8, 2, 120);
    x = apply("DequantizeLinear", x, input("scale", none), constant(ORTC_U8, none, 120));
    check("a scale that is not known", apply("MatMul", x, weights(ORTC_I8, D(12, 9), 0, 0, 0), NULL),
          "MatMulInteger", 0, 0, 1e-3F);
    x = quantise(input("x", D(5, 12)), ORTC_U8, 2, 120);
    x = with_int(apply("DequantizeLinear", x, constant(ORTC_F32, D(12), 1), NULL), "axis", 1);
    check("scales along the sum", apply("MatMul", x, weights(ORTC_I8, D(12, 9), 0, 0, 0), NULL),
          "MatMulInteger", 0, 0, 1e-3F);
    check("the same of weights", apply("MatMul", rows(), weights(ORTC_I8, D(12, 9), 12, 0, 0), NULL),
          "MatMulInteger", 0, 0, 1e-3F);
    y = apply("Gemm", rows(), weights(ORTC_I8, D(12, 9), 0, 0, 0), NULL);
    check("a factor", with_float(y, "alpha", 2), "MatMulInteger", 0, 0, 1e-3F);
    y = apply("Conv", image(), weights(ORTC_I8, D(8, 6, 3, 3), 3, 3, 0), NULL);
    check("scales along a window", padded(y), "ConvInteger", 0, 0, 1e-3F);
}

/* Results of normalisations go to 8 bits in their epilogues. */
Test(quantised, normalisations_are_rounded_as_they_are_made)
{
    static const int64_t two[2] = {2, 2};
    for (int which = 0; which < 8; which++) {
        const ortc_dtype t = which % 2 ? ORTC_I8 : ORTC_U8;
        const bool is_softmax = which > 5, is_layer = which > 3;
        ortc_edge *x = input("x", is_layer ? D(2, 20, 9, 8) : D(2, 20, 7, 9)),
                  *scale = constant(ORTC_F32, D(is_layer ? 8 : 20), 60),
                  *bias = constant(ORTC_F32, D(is_layer ? 8 : 20), -30);
        ortc_edge *y = apply(which < 2   ? "InstanceNormalization"
                             : which < 4 ? "GroupNormalization"
                             : which < 6 ? "LayerNormalization"
                                         : "Softmax",
                             x, is_softmax ? NULL : scale, is_softmax ? NULL : bias);
        if (which / 2 == 1) with_int(y, "num_groups", 4);
        y = with_ints(apply("MaxPool", through(y, t, 2, 20), NULL, NULL), "kernel_shape", 2, two);
        check("rounded", through(y, t, 2, 20), "MatMulInteger", 0, 3, 0.0201F);
    }
}

/* ---- Ends ---------------------------------------------------------------------------------------------- */

/* Integers of a product or convolution. */
static ortc_edge *sums(const char *op, int64_t rows, int64_t n, int64_t group)
{
    const int64_t k = 24;
    ortc_edge *y;
    if (!strcmp(op, "MatMulInteger"))
        y = apply(op, quantise(input("x", D(rows, k)), ORTC_U8, 2, 117), constant(ORTC_I8, D(k, n), -1),
                  constant(ORTC_U8, none, 117));
    else
        y = with_int(apply(op, quantise(input("x", D(1, n, rows, 3)), ORTC_U8, 2, 117),
                           constant(ORTC_I8, D(n, n / group, 3, 2), -1), constant(ORTC_U8, none, 117)),
                     "group", group);
    return y;
}

/* A constant along the columns of a product, the channels of a convolution. */
static ortc_edge *channels(const ortc_edge *s, int64_t n, int32_t value)
{
    return constant(ORTC_F32, !strcmp(s->producer->type, "ConvInteger") ? D(n, 1, 1) : D(n), value);
}

/* One of the forms in which quantised networks go on. */
enum { FORMS = 13 };
static ortc_edge *form(int which, ortc_edge *s, int64_t rows, int64_t n)
{
    ortc_edge *y = with_int(apply("Cast", s, NULL, NULL), "to", ORTC_F32);
    y = apply("Mul", y, channels(s, n, 1), NULL);
    if (which == 0) return through(y, ORTC_U8, 30, 3);
    if (which == 1) return through(apply("Relu", y, NULL, NULL), ORTC_I8, 9, -128);
    y = through(y, ORTC_U8, 30, 120);
    if (which == 2) return through(apply("Add", y, channels(s, n, 40), NULL), ORTC_I8, 25, 7);
    if (which == 3) return through(apply("Mul", y, channels(s, n, -90), NULL), ORTC_U8, 30, 100);
    if (which == 4) { /* a BatchNormalization */
        y = apply("Add", apply("Mul", y, channels(s, n, 30), NULL), channels(s, n, -60), NULL);
        return through(y, ORTC_U8, 7, 130);
    }
    y = through(apply("Add", y, channels(s, n, 40), NULL), ORTC_U8, 25, 121);
    if (which == 5) return through(apply("Sigmoid", y, NULL, NULL), ORTC_U8, 1, 0);
    if (which == 6) return through(apply("Mul", y, channels(s, n, 70), NULL), ORTC_U8, 30, 110);
    if (which > 7) { /* with a residual, of 8 bits */
        const dims d = !strcmp(s->producer->type, "ConvInteger") ? D(1, n, rows - 2, 2) : D(rows, n);
        ortc_edge *r = through(input("r", d), ORTC_U8, 2, 99);
        if (which > 10) { /* and another one behind it */
            y = through(apply("Add", y, r, NULL), ORTC_U8, 31, 77);
            if (which > 11) y = through(apply("Sigmoid", y, NULL, NULL), ORTC_U8, 1, 0);
            r = through(input("more", d), ORTC_I8, 3, -9);
            return through(apply("Add", y, r, NULL), ORTC_U8, 35, 90);
        }
        if (which > 8) y = through(apply("Mul", y, channels(s, n, 70), NULL), ORTC_I8, 30, -20);
        y = apply("Add", which > 9 ? r : y, which > 9 ? y : r, NULL);
        return through(y, ORTC_U8, 31, 77);
    }
    y = apply("Mul", y, channels(s, n, 70), NULL);
    return through(apply("Relu", apply("Add", y, channels(s, n, -9), NULL), NULL, NULL), ORTC_U8, 9, 0);
}

/* Whether it has the bits of the same done step by step. */
static void ends(const char *op, int64_t rows, int64_t n, int64_t group, int which)
{
    static float want[COUNT], have[COUNT];
    ortc_graph *apart, *together;
    ortc_edge *s = sums(op, rows, n, group);
    ortc_graph_add_output(g, "y", form(which, s, rows, n));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    ortc_session *at_once = session("cpu", &together);
    ortc_graph_add_output(g, "s", s); /* nothing of what is behind it is done with it */
    ortc_session *by_steps = session("cpu", &apart);
    cr_expect((which > 7 || apart->n_nodes > together->n_nodes) && together->n_nodes == (which > 10  ? 4u
                                                                                         : which > 7 ? 3u
                                                                                                     : 2u),
              "form %d: %u nodes, %u step by step", which, together->n_nodes, apart->n_nodes);
    const int64_t count = run(by_steps, want);
    cr_assert_eq(run(at_once, have), count);
    for (int64_t i = 0; i < count; i++)
        if (memcmp(&have[i], &want[i], sizeof *have)) {
            cr_expect_fail("%s, %d x %d, form %d: element %d is %g, step by step %g", op, (int)rows, (int)n,
                           which, (int)i, (double)have[i], (double)want[i]);
            break;
        }
    ortc_session_release(by_steps);
    ortc_session_release(at_once);
    teardown();
    setup();
}

Test(quantised, ends_have_the_bits_of_their_steps)
{
    static const int64_t rows[] = {1, 3, 4, 17, 30}, columns[] = {9, 16, 40, 64, 100};
    for (size_t r = 0; r < 5; r++)
        for (size_t c = 0; c < 5; c++)
            for (int which = 0; which < FORMS; which++) ends("MatMulInteger", rows[r], columns[c], 1, which);
}

Test(quantised, groups_that_are_joined_have_them_too)
{
    static const int64_t shapes[][2] = {{32, 8}, {48, 2}, {32, 4}, {24, 2}, {40, 5}, {32, 2}, {20, 1}};
    for (size_t i = 0; i < 7; i++)
        for (int which = 0; which < FORMS; which++) ends("ConvInteger", 9, shapes[i][0], shapes[i][1], which);
}

/* ---- Pointwise ----------------------------------------------------------------------------------------- */

/* Values near halves of the scale, beyond the bounds, and what looks like a zero point and is none. */
Test(quantised, quantising_has_the_bits_of_its_steps)
{
    for (int32_t scale = 1; scale < 30; scale++) {
        check("u8", through(input("x", D(7, 101)), ORTC_U8, scale, 17), "MatMulInteger", 0, 0, 0);
        check("i8", through(input("x", D(7, 101)), ORTC_I8, scale, 127), "MatMulInteger", 0, 0, 0);
        ortc_edge *y = apply("Div", input("x", D(7, 101)), constant(ORTC_F32, none, scale), NULL);
        y = apply("Add", apply("Round", y, NULL, NULL), constant(ORTC_F32, none, 50), NULL);
        check("half a step more", through(y, ORTC_I8, 100, 0), "MatMulInteger", 0, 0, 0);
    }
}

/* ---- Means --------------------------------------------------------------------------------------------- */

static ortc_edge *mean_of(ortc_edge *x, int32_t rank)
{
    int64_t *axes = malloc(8 * sizeof *axes), count = rank - 2;
    ortc_constant *c;
    for (int32_t i = 0; i < count; i++) axes[i] = i + 2;
    cr_assert_eq(ortc_constant_create(ORTC_I64, 1, &count, axes, (size_t)count * sizeof *axes, free, axes, &c,
                                      &e),
                 ORTC_OK);
    return apply("ReduceMean", x, ortc_graph_constant(g, NULL, c), NULL);
}

#define REDUCED "DequantizeLinear ReduceMean QuantizeLinear"
#define POOLED "DequantizeLinear GlobalAveragePool QuantizeLinear"

Test(quantised, means_of_channels_go_from_bytes_to_bytes)
{
    static const dims shapes[] = {D(2, 20, 7, 9), D(1, 16, 32, 8), D(3, 5, 129), D(1, 1, 1, 1),
                                  D(1, 3, 1200),  D(2, 20, 3, 4),  D(1, 4, 13)};
    static const ortc_dtype types[] = {ORTC_U8, ORTC_I8};
    for (size_t i = 0; i < 7; i++)
        for (int k = 0; k < 4; k++) {
            const ortc_dtype from = types[k / 2], to = types[k % 2];
            ortc_edge *x = through(input("x", shapes[i]), from, 2, 12);
            check("ReduceMean", through(mean_of(x, shapes[i].rank), to, 1, 100), REDUCED, 1, 3, 0.011F);
            x = through(input("x", shapes[i]), from, 2, 12);
            x = apply("GlobalAveragePool", x, NULL, NULL);
            check("GlobalAveragePool", through(x, to, 1, 3), POOLED, 1, 3, 0.011F);
        }
    /* beside another reader */
    ortc_edge *x = through(input("x", D(2, 20, 7, 9)), ORTC_U8, 2, 120);
    ortc_edge *y = apply("Mul", x, through(mean_of(x, 4), ORTC_U8, 1, 100), NULL);
    check("beside another", through(y, ORTC_U8, 2, 120), REDUCED, 1, 0, 0.021F);
    /* in blocks, the last of which is not full */
    for (int64_t filters = 16; filters < 40; filters += 11) {
        x = through(input("x", D(1, 16, 16, 16)), ORTC_U8, 2, 120);
        x = padded(apply("Conv", x, weights(ORTC_I8, D(filters, 16, 3, 3), 0, 0, 0), NULL));
        x = through(x, ORTC_U8, 20, 120);
        x = through(apply("GlobalAveragePool", x, NULL, NULL), ORTC_U8, 1, 100);
        check("in blocks", x, POOLED, 1, 0, 0.011F);
    }
}

/* Windows, plain and in blocks, with what the standard does at their ends. */
Test(quantised, means_of_windows_go_from_bytes_to_bytes)
{
#define WINDOWED "DequantizeLinear AveragePool QuantizeLinear"
    static const struct {
        dims x;
        int64_t kernel[3], strides[3], pads[6], dilations[3];
        int include, ceil;
    } all[] = {
        {D(2, 20, 7, 9), {3, 3}, {1, 1}, {1, 1, 1, 1}, {1, 1}, 0, 0},
        {D(1, 33, 8, 11), {3, 2}, {2, 1}, {1, 0, 1, 1}, {1, 1}, 1, 0},
        {D(1, 16, 9, 8), {2, 2}, {2, 2}, {0, 0, 0, 0}, {1, 1}, 0, 1},
        {D(1, 5, 9, 10), {3, 3}, {2, 2}, {1, 1, 1, 1}, {1, 2}, 1, 1},
        {D(3, 17, 29), {4}, {3}, {2, 1}, {1}, 0, 0},
        {D(1, 18, 4, 5, 6), {2, 3, 2}, {1, 2, 1}, {1, 1, 0, 0, 1, 1}, {1, 1, 1}, 0, 0},
    };
    static const ortc_dtype types[] = {ORTC_U8, ORTC_I8};
    for (size_t i = 0; i < ORTC_LENGTH(all); i++)
        for (int k = 0; k < 12; k++) {
            const ortc_dtype from = types[k / 2 % 2], to = types[k % 2];
            const size_t spatial = (size_t)all[i].x.rank - 2;
            chosen = k / 4 == 0 ? "*=pool.averages@plain" : NULL;
            ortc_edge *x = through(input("x", all[i].x), from, 2, k % 3 ? 12 : -3);
            if (k / 4 == 1) { /* in blocks */
                const dims w = {all[i].x.rank, {21, all[i].x.at[1], 1, 1, 1}};
                x = through(apply("Conv", x, weights(ORTC_I8, w, 0, 0, 0), NULL), from, 21,
                            12); /* no sum is next to a half */
            }
            x = apply("AveragePool", x, NULL, NULL);
            with_ints(x, "kernel_shape", spatial, all[i].kernel);
            with_ints(x, "strides", spatial, all[i].strides);
            with_ints(x, "pads", 2 * spatial, all[i].pads);
            with_ints(x, "dilations", spatial, all[i].dilations);
            with_int(with_int(x, "count_include_pad", all[i].include), "ceil_mode", all[i].ceil);
            check("windows", through(x, to, k / 4 == 2 ? 2 : 1, 3), WINDOWED, 1, 0,
                  k / 4 == 2 ? 0.021F : 0.011F);
        }
    chosen = NULL;
}

Test(quantised, other_means_stay_as_they_are)
{
    const dims shape = D(2, 20, 7, 9);
    ortc_edge *x = quantise(input("x", shape), ORTC_U8, 2, 120);
    x = with_int(apply("DequantizeLinear", x, constant(ORTC_F32, D(20), 1), constant(ORTC_U8, D(20), 120)),
                 "axis", 1);
    check("a scale for each channel", through(mean_of(x, 4), ORTC_U8, 1, 100), REDUCED, 0, 0, 0.011F);
    x = through(input("x", shape), ORTC_U8, 2, 120);
    check("not rounded", mean_of(x, 4), REDUCED, 0, 0, 1e-4F);
    x = mean_of(through(input("x", shape), ORTC_U8, 2, 120), 4);
    check("read twice", apply("Add", x, through(x, ORTC_U8, 1, 100), NULL), REDUCED, 0, 0, 0.011F);
    x = mean_of(through(input("x", D(7, 3, 9)), ORTC_U8, 2, 120), 3);
    x = apply("Transpose", x, NULL, NULL); /* what is reduced is not what is behind the channels */
    check("moved", through(x, ORTC_U8, 1, 100), REDUCED, 0, 0, 0.011F);
}

/* ---- Read by several ----------------------------------------------------------------------------------- */

/* Residuals and roundings of one value read its bytes, each for itself, but of one that has a scale for each
 * channel, or where they meet again. */
Test(quantised, readers_have_numbers_of_their_own)
{
    ortc_edge *x = through(input("x", D(1, 16, 6, 7)), ORTC_U8, 2, 120), *made[2];
    for (int i = 0; i < 2; i++) {
        ortc_edge *y = apply("Conv", x, weights(ORTC_I8, D(16, 16, 1, 1), 0, 0, 0), NULL);
        made[i] = through(apply("Add", y, x, NULL), ORTC_U8, 20 + i, 120);
    }
    check("two residuals", through(apply("Add", made[0], made[1], NULL), ORTC_U8, 30, 120), "ConvInteger", 2,
          3, 0.61F);
    x = through(input("x", D(5, 40)), ORTC_U8, 2, 120);
    ortc_edge *a = through(x, ORTC_I8, 3, 3), *b = through(x, ORTC_U8, 4, 3);
    check("two roundings", with_int(apply("Concat", a, b, NULL), "axis", 0),
          "DequantizeLinear QuantizeLinear DequantizeLinear", 2, 4, 0.0401F);
    x = quantise(input("x", D(5, 40)), ORTC_U8, 2, 120);
    x = with_int(apply("DequantizeLinear", x, constant(ORTC_F32, D(40), 1), constant(ORTC_U8, D(40), 120)),
                 "axis", 1);
    a = through(x, ORTC_I8, 3, 3), b = through(x, ORTC_U8, 4, 3);
    check("a scale for each channel", with_int(apply("Concat", a, b, NULL), "axis", 0),
          "QuantizeLinear DequantizeLinear", 3, 4, 0.0401F);
    x = through(input("x", D(5, 40)), ORTC_U8, 2, 120);
    a = through(apply("Sigmoid", x, NULL, NULL), ORTC_U8, 1, 0);
    check("what meets again", apply("Mul", x, a, NULL),
          "QuantizeLinear DequantizeLinear Sigmoid QuantizeLinear DequantizeLinear Mul", 1, 1, 0.0301F);
}

/* ---- Windows that see one pixel, or all ---------------------------------------------------------------- */

/* Few channels mixed pixel by pixel, with long rows of one channel to end; an image that one window sees. */
Test(quantised, windows_end_along_rows_of_channels)
{
    static const dims images[] = {D(2, 4, 6, 40), D(1, 3, 9, 31), D(3, 6, 3, 4)},
                      filters[] = {D(4, 4, 1, 1), D(5, 3, 1, 1), D(37, 6, 3, 4)};
    for (int i = 0; i < 6; i++) {
        const dims image = images[i / 2], w = filters[i / 2];
        const ortc_dtype t = i % 2 ? ORTC_I8 : ORTC_U8;
        for (int how = 0; how < 3; how++) {
            ortc_edge *x = through(input("x", image), t, 2, 12), *bias = constant(ORTC_F32, D(w.at[0]), 30);
            ortc_edge *y = apply("Conv", x, weights(ORTC_I8, w, w.at[0], 0, 0), bias);
            if (how == 1) y = apply("Mul", through(y, t, 5, 7), constant(ORTC_F32, none, 40), NULL);
            if (how == 2) y = apply("Add", through(y, t, 5, 7), constant(ORTC_F32, none, 40), NULL);
            check("ends", how ? through(y, t, 4, 3) : y, "ConvInteger", 1, 0, how ? 0.0601F : 1e-3F);
        }
    }
}

/* ---- Tables -------------------------------------------------------------------------------------------- */

/* More behind a product than its epilogue takes: it ends in 8 bits, from which all else follows. */
Test(quantised, long_chains_go_from_bytes_to_bytes)
{
    for (int is_signed = 0; is_signed < 2; is_signed++) {
        const ortc_dtype t = is_signed ? ORTC_I8 : ORTC_U8;
        const int32_t zero = is_signed ? 3 : 120;
        ortc_edge *x = through(input("x", D(16, 12)), ORTC_U8, 2, 120);
        ortc_edge *v = through(apply("MatMul", x, weights(ORTC_I8, D(12, 256), 0, 0, 0), NULL), t, 3, zero);
        v = through(apply("Add", v, constant(ORTC_F32, D(256), 20), NULL), t, 3, zero);
        ortc_edge *half = through(apply("Mul", v, constant(ORTC_F32, none, 50), NULL), t, 2, zero),
                  *square = through(apply("Mul", v, v, NULL), t, 4, is_signed ? -128 : 0),
                  *cube = through(apply("Mul", square, v, NULL), t, 4, zero),
                  *less = through(apply("Mul", cube, constant(ORTC_F32, none, 40), NULL), t, 3, zero),
                  *sum = through(apply("Add", v, less, NULL), t, 4, zero),
                  *most = through(apply("Mul", sum, constant(ORTC_F32, none, 80), NULL), t, 3, zero),
                  *bent = through(apply("Tanh", most, NULL, NULL), t, 1, zero);
        bent = through(apply("Add", bent, constant(ORTC_F32, none, 100), NULL), t, 2, zero);
        check("a chain", through(apply("Mul", half, bent, NULL), t, 2, zero),
              "Cast Mul QuantizeLinear DequantizeLinear Add QuantizeLinear", 1, 3, 0.0201F);
    }
}

/* ---- Normalisations ------------------------------------------------------------------------------------ */

enum { LAYER, RMS, INSTANCE, GROUP, NORMS };

static ortc_edge *norm_of(int which, ortc_edge *x, int64_t length, int64_t axis)
{
    static const char *const ops[] = {"LayerNormalization", "RMSNormalization", "InstanceNormalization",
                                      "GroupNormalization"};
    ortc_edge *scale = constant(ORTC_F32, D(length), 60),
              *bias = which == RMS ? NULL : constant(ORTC_F32, D(length), -30);
    ortc_edge *y = apply(ops[which], x, scale, bias);
    if (which == LAYER || which == RMS) with_int(y, "axis", axis);
    return which == GROUP ? with_int(y, "num_groups", length / 4) : y;
}

/* The group's nodes, and what followed it. */
static const char *group_of_norm(int which, const char *behind)
{
    static const char *const ops[] = {"LayerNormalization", "RMSNormalization", "InstanceNormalization",
                                      "GroupNormalization"};
    static char name[128];
    snprintf(name, sizeof name, "DequantizeLinear %s%s%s", ops[which], *behind ? " " : "", behind);
    return name;
}

/* Rows that are short, long, many, one; with what follows, and without. */
Test(quantised, normalisations_read_bytes)
{
    static const ortc_dtype types[] = {ORTC_U8, ORTC_I8};
    for (int which = 0; which < NORMS; which++) {
        const bool of_rows = which < INSTANCE;
        static const dims rows_of[] = {D(2, 20, 12), D(3, 4, 300), D(1, 77), D(1, 1, 1000)},
                          images[] = {D(2, 20, 7, 9), D(1, 16, 28, 9), D(3, 8, 129), D(1, 12, 2, 3)};
        for (int i = 0; i < 8; i++) {
            const dims d = of_rows ? rows_of[i / 2] : images[i / 2];
            const ortc_dtype t = types[i % 2];
            const int64_t length = of_rows ? d.at[d.rank - 1] : d.at[1];
            ortc_edge *x = through(input("x", d), t, 2, 12);
            check("alone", norm_of(which, x, length, -1), group_of_norm(which, ""), 1, 2, 1e-3F);
            x = through(input("x", d), t, 2, 12);
            check("rounded", through(norm_of(which, x, length, -1), t, 2, 3),
                  group_of_norm(which, "QuantizeLinear"), 1, 3, 0.0201F);
            /* a residual by another DequantizeLinear, which is read with it */
            x = through(input("x", d), t, 2, 12);
            ortc_edge *y = apply("Add", norm_of(which, x, length, -1), x, NULL);
            check("beside another", through(y, t, 4, 3),
                  group_of_norm(which, "DequantizeLinear Add QuantizeLinear"), 1, 3, 0.0401F);
        }
        /* in blocks, the last of which is not full */
        for (int64_t filters = 16; filters < 40 && !of_rows; filters += 12) {
            ortc_edge *x = through(input("x", D(1, 16, 8, 16)), ORTC_U8, 2, 120);
            x = padded(apply("Conv", x, weights(ORTC_I8, D(filters, 16, 3, 3), 0, 0, 0), NULL));
            x = through(x, ORTC_U8, 20, 120);
            check("in blocks", through(norm_of(which, x, filters, 0), ORTC_U8, 2, 100),
                  group_of_norm(which, "QuantizeLinear"), 1, 0, 0.0201F);
        }
    }
}

Test(quantised, other_normalisations_stay_as_they_are)
{
    const dims shape = D(2, 20, 12);
    ortc_edge *x = quantise(input("x", shape), ORTC_U8, 2, 120);
    x = with_int(apply("DequantizeLinear", x, constant(ORTC_F32, D(12), 1), constant(ORTC_U8, D(12), 120)),
                 "axis", 2);
    check("a scale for each column", norm_of(LAYER, x, 12, -1), group_of_norm(LAYER, ""), 0, 0, 1e-3F);
    check("numbers", norm_of(LAYER, input("x", shape), 12, -1), group_of_norm(LAYER, ""), 0, 1, 1e-3F);
    check("no rows", norm_of(LAYER, through(input("x", D(0, 12)), ORTC_U8, 2, 120), 12, -1),
          group_of_norm(LAYER, ""), 1, 2, 1e-3F);
    x = through(input("x", D(3, 0)), ORTC_U8, 2, 120);
    check("no columns", apply("LayerNormalization", x, constant(ORTC_F32, D(0), 60), NULL),
          group_of_norm(LAYER, ""), 1, 2, 1e-3F);
    /* rows of several dims are read, but not followed */
    x = through(input("x", D(2, 5, 7, 3)), ORTC_U8, 2, 120);
    ortc_edge *y = apply("LayerNormalization", x, constant(ORTC_F32, D(5, 7, 3), 60), NULL);
    check("several dims", through(with_int(y, "axis", 1), ORTC_U8, 2, 3), group_of_norm(LAYER, ""), 1, 3,
          0.0201F);
}

/* ---- Moves --------------------------------------------------------------------------------------------- */

static ortc_edge *reshaped(ortc_edge *x, const int64_t *to, int64_t n)
{
    int64_t *copy = malloc((size_t)n * sizeof *copy);
    ortc_constant *c;
    memcpy(copy, to, (size_t)n * sizeof *copy);
    cr_assert_eq(ortc_constant_create(ORTC_I64, 1, &n, copy, (size_t)n * sizeof *copy, free, copy, &c, &e),
                 ORTC_OK);
    return apply("Reshape", x, ortc_graph_constant(g, NULL, c), NULL);
}

static ortc_edge *picked(ortc_edge *x, int64_t i)
{
    ortc_constant *c;
    int64_t *copy = malloc(sizeof *copy);
    *copy = i;
    cr_assert_eq(ortc_constant_create(ORTC_I64, 0, NULL, copy, sizeof *copy, free, copy, &c, &e), ORTC_OK);
    return apply("Gather", x, ortc_graph_constant(g, NULL, c), NULL);
}

/* As queries and keys are of one value, in f32 where other scales say so. */
Test(quantised, what_is_picked_is_of_integers)
{
    for (int other = 0; other < 2; other++) {
        ortc_edge *x = through(input("x", D(3, 5, 8)), ORTC_U8, 2, 120),
                  *a = through(picked(x, 0), ORTC_U8, other ? 3 : 2, 120),
                  *b = through(picked(x, 2), ORTC_U8, 2, 120);
        b = through(apply("Transpose", b, NULL, NULL), ORTC_U8, 2, 120);
        check("picked", through(apply("MatMul", a, b, NULL), ORTC_U8, 30, 120), "MatMulInteger", 1,
              other ? 0 : 5, 0.301F);
    }
}

/* Nothing is quantised between them, or everything is: as rows of pixels become images. */
Test(quantised, moves_beside_each_other_are_of_integers)
{
    static const int64_t swap[3] = {0, 2, 1}, to_image[4] = {1, 32, 7, 9}, ones[4] = {1, 1, 1, 1},
                         back[3] = {1, 32, 63};
    for (int between = 0; between < 2; between++) {
        ortc_edge *x = through(input("x", D(1, 63, 32)), ORTC_U8, 2, 120);
        x = with_ints(apply("Transpose", x, NULL, NULL), "perm", 3, swap);
        x = reshaped(between ? through(x, ORTC_U8, 2, 120) : x, to_image, 4);
        check("no rounding, or one, between", through(x, ORTC_U8, 2, 120), "MatMulInteger", 0, 4, 1e-4F);
    }
    by_passes = true;
    ortc_edge *x = through(input("x", D(1, 63, 32)), ORTC_U8, 2, 120);
    x = through(with_ints(apply("Transpose", x, NULL, NULL), "perm", 3, swap), ORTC_U8, 2, 120);
    x = through(reshaped(x, to_image, 4), ORTC_U8, 2, 120);
    ortc_edge *y = apply("Conv", x, weights(ORTC_I8, D(32, 1, 3, 3), 0, 0, 0), NULL);
    y = through(with_ints(with_int(y, "group", 32), "pads", 4, ones), ORTC_U8, 9, 120);
    y = through(reshaped(y, back, 3), ORTC_U8, 9, 120);
    y = with_ints(apply("Transpose", y, NULL, NULL), "perm", 3, swap);
    /* QuantizeLinear, to images and back by two moves each, ConvInteger, DequantizeLinear */
    check("as images", through(y, ORTC_U8, 9, 120), "ConvInteger", 1, 7, 0.091F);
    by_passes = false;
}

Test(quantised, moves_between_one_scale_are_of_integers_between_two_are_not)
{
    static const int64_t perm[4] = {0, 2, 3, 1};
    for (int other = 0; other < 3; other++) {
        ortc_graph *cpu;
        ortc_edge *y = with_ints(apply("Transpose", image(), NULL, NULL), "perm", 4, perm);
        y = through(y, ORTC_U8, other == 1 ? 3 : 2, other == 2 ? 121 : 120);
        ortc_graph_add_output(g, "y", y);
        cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
        ortc_session *s = session("cpu", &cpu);
        const ortc_node *n = cpu->first;
        while (n && strcmp(n->type, "Transpose")) n = n->next;
        cr_assert_not_null(n);
        cr_expect_eq(n->in[0]->type->dtype, other ? ORTC_F32 : ORTC_U8, "case %d", other);
        ortc_session_release(s);
        teardown();
        setup();
    }
}
