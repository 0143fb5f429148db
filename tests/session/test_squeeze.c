/* tests/session/test_squeeze.c: which convolutions become one node with the pool behind or the Mul before
 * them (graph/specialise/squeeze_excite.c), which do not, and that the cpu then gives what ref gives, the
 * same bits on any number of threads. Inputs and results are f32, what is between them of `type`.
 */
#include <criterion/criterion.h>
#include <math.h>

#include "graph/ir/half.h"
#include "graph/specialise/specialise.h"
#include "kernels/conv/tiled.h"
#include "runtime/registry/registry.h"
#include "runtime/session/create.h"
#include "runtime/session/session.h"
#include "tests/unit/wire_writer.h"

enum { MOST = 1 << 17 };

static ortc_graph *g;
static ortc_model store;
static ortc_error e;
static ortc_dim images; /* a symbol */
static ortc_dtype type;

static void setup(void)
{
    e = (ortc_error)ORTC_ERROR_INIT;
    cr_assert_eq(ortc_registry_init(&e), ORTC_OK, "%s", e.text);
    cr_assert_not_null(g = ortc_graph_create(NULL));
    cr_assert_eq(ortc_dims_symbol(g->dims, &g->arena, "images", &images), ORTC_OK);
    cr_assert(ortc_pack_store_init(&store.packed, 0));
    type = ORTC_F32;
}
static void teardown(void)
{
    ortc_graph_destroy(g);
    ortc_pack_store_deinit(&store.packed);
}
TestSuite(squeeze, .init = setup, .fini = teardown);

/* ---- Building ------------------------------------------------------------------------------------------ */

static ortc_edge *node(const char *op, ortc_edge *a, ortc_edge *b, ortc_edge *c)
{
    ortc_node *n = ortc_node_create(g, ortc_op_find("", op), NULL, c ? 3 : b ? 2 : 1, 1);
    ortc_node_set_in(n, 0, a);
    if (b) ortc_node_set_in(n, 1, b);
    if (c) ortc_node_set_in(n, 2, c);
    ortc_node_set_out(n, 0, ortc_edge_create(g, NULL));
    return n->out[0];
}
static void set(ortc_edge *y, const char *name, int64_t a, int64_t b, uint32_t count)
{
    const int64_t list[4] = {a, b, a, b};
    const ortc_attr attr = {.size = sizeof attr,
                            .kind = count ? ORTC_ATTR_INTS : ORTC_ATTR_INT,
                            .i = a,
                            .count = count,
                            .u.ints = list};
    ortc_node_set_attr(y->producer, name, &attr);
}
static ortc_edge *cast(ortc_edge *x, ortc_dtype from, ortc_dtype to)
{
    ortc_edge *y = from == to ? x : node("Cast", x, NULL, NULL);
    if (y != x) set(y, "to", to, 0, 0);
    return y;
}
static ortc_edge *input(const char *name, int64_t c, int64_t h, int64_t w)
{
    const ortc_dim dims[4] = {images, c, h, w};
    ortc_edge *edge = ortc_edge_create(g, name);
    ortc_edge_set_shape(edge, ortc_tensor_type(ORTC_F32), 4, dims);
    ortc_graph_add_input(g, name, edge);
    return cast(edge, ORTC_F32, type);
}
static ortc_edge *constant(int32_t rank, int64_t f, int64_t c, int64_t k)
{
    const int64_t dims[4] = {f, c, k, k}, count = rank == 1 ? f : f * c * k * k;
    float *data = malloc((size_t)count * sizeof *data);
    uint32_t seed = (uint32_t)(f * 31 + c * 7 + k);
    ortc_constant *made;
    for (int64_t i = 0; i < count; i++)
        data[i] = ((float)((seed = seed * 1664525 + 1013904223) >> 8) / 8388608 - 1) / (float)(c * k);
    for (int64_t i = 0; type != ORTC_F32 && i < count; i++) {
        const uint16_t code = ortc_half_encode((double)data[i], type);
        memcpy((char *)data + 2 * i, &code, sizeof code);
    }
    const size_t size = type == ORTC_F32 ? 4 : 2;
    cr_assert_eq(ortc_constant_create(type, rank, dims, data, (size_t)count * size, free, data, &made, &e),
                 ORTC_OK);
    return ortc_graph_constant(g, NULL, made);
}
/* Windows of one channel each. */
static ortc_edge *depthwise(ortc_edge *x, int64_t c, int64_t k, int64_t stride)
{
    ortc_edge *y = node("Conv", x, constant(4, c, 1, k), constant(1, c, 1, 1));
    set(y, "group", c, 0, 0);
    set(y, "pads", k / 2, k / 2, 4);
    set(y, "strides", stride, stride, 2);
    return y;
}
static ortc_edge *points(ortc_edge *x, int64_t c, int64_t f)
{
    return node("Conv", x, constant(4, f, c, 1), constant(1, f, 1, 1));
}
static ortc_edge *swish(ortc_edge *x) { return node("Mul", x, node("Sigmoid", x, NULL, NULL), NULL); }
static void result(const char *name, ortc_edge *y)
{
    ortc_graph_add_output(g, name, cast(y, type, ORTC_F32));
}
static const char *const names[] = {"y0", "y1"};

/* ---- Running ------------------------------------------------------------------------------------------- */

static float scale; /* of inputs */

/* Results one behind the other; the groups of nodes that are no programs. */
static int64_t run(const char *providers, const char *precision, uint32_t threads, int64_t n, float *y,
                   int *groups)
{
    static float values[2][MOST];
    ortc_graph *copy;
    ortc_session *s;
    ortc_in in[2];
    ortc_out out[2];
    int64_t count = 0;
    cr_assert_eq(ortc_graph_clone(g, &copy, &e), ORTC_OK, "%s", e.text);
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.providers = providers, o.precision = precision, o.threads = threads;
    cr_assert_eq(ortc_session_from_graph(&store, copy, &o, &s, &e), ORTC_OK, "%s", e.text);
    *groups = 0;
    for (const ortc_node *m = copy->first; m; m = m->next) *groups += m->op == &ortc_op_group && !m->program;
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const ortc_dim *d = g->inputs[i].edge->dims;
        const int64_t dims[4] = {n, d[1], d[2], d[3]};
        cr_assert_leq(n * d[1] * d[2] * d[3], MOST);
        for (int64_t k = 0; k < n * d[1] * d[2] * d[3]; k++)
            values[i][k] = (float)((k * 37 + i * 11) % 29 - 14) * scale;
        in[i] = (ortc_in){g->inputs[i].name, ortc_wrap(values[i], ORTC_F32, 4, dims)};
    }
    for (uint32_t i = 0; i < g->n_outputs; i++) out[i] = (ortc_out){names[i], NULL, 0, 0};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = in, a.n_in = g->n_inputs, a.out = out, a.n_out = g->n_outputs;
    cr_assert_eq(ortc_run(s, &a, &e), ORTC_OK, "%s", e.text);
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        const int64_t some = (int64_t)ortc_value_count(out[i].value);
        cr_assert_leq(count + some, MOST);
        if (some) memcpy(y + count, ortc_value_data(out[i].value), (size_t)some * sizeof *y);
        count += some;
        ortc_value_release(out[i].value);
    }
    for (uint32_t i = 0; i < g->n_inputs; i++) ortc_value_release(in[i].value);
    ortc_session_release(s);
    return count;
}

/* Over the graph as it is built, of n images: so many groups, and what ref gives. */
static void compare(int64_t n, int groups)
{
    static float want[MOST], have[MOST], other[MOST];
    int made;
    float most = 0, largest = 0;
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    const int64_t count = run("ref", NULL, 1, n, want, &made);
    cr_expect_eq(made, 0, "ref has no kernel for such groups");
    cr_assert_eq(run("cpu", NULL, 1, n, have, &made), count);
    cr_expect_eq(made, groups, "%d groups, not %d", made, groups);
    for (int64_t i = 0; i < count; i++)
        most = fmaxf(most, fabsf(have[i] - want[i])), largest = fmaxf(largest, fabsf(want[i]));
    const float bound = type == ORTC_F32 ? 1e-5F : type == ORTC_F16 ? 2e-3F : 2e-2F;
    cr_expect_leq(most, bound * largest, "off by %g of %g", (double)most, (double)largest);
    for (uint32_t threads = 2; threads <= 8; threads *= 4) {
        run("cpu", NULL, threads, n, other, &made);
        cr_expect(!memcmp(have, other, (size_t)count * sizeof *have), "other bits on %u threads", threads);
    }
}

/* ---- What becomes one node ----------------------------------------------------------------------------- */

/* The mean along two axes, which stay. */
static ortc_edge *mean(ortc_edge *x, int64_t a, int64_t b)
{
    const int64_t two = 2;
    int64_t *axes = malloc(2 * sizeof *axes);
    ortc_constant *made;
    axes[0] = a, axes[1] = b;
    cr_assert_eq(ortc_constant_create(ORTC_I64, 1, &two, axes, 2 * sizeof *axes, free, axes, &made, &e),
                 ORTC_OK);
    return node("ReduceMean", x, ortc_graph_constant(g, NULL, made), NULL);
}

/* With their epilogues; rows are dealt to threads by pixels (30), or by channels. */
Test(squeeze, windows_and_the_pool_behind)
{
    static const int64_t sizes[][4] = {{24, 30, 3, 1}, {40, 9, 5, 1}, {16, 31, 3, 2}};
    static const ortc_dtype types[] = {ORTC_F32, ORTC_F16, ORTC_BF16};
    scale = 0.07F;
    for (size_t i = 0; i < 4 * sizeof sizes / sizeof *sizes; i++) { /* one type has two ends */
        const int64_t *size = sizes[i % 3];
        if (i) teardown(), setup();
        type = types[i / 3 % 3];
        ortc_edge *y = depthwise(input("x", size[0], size[1], size[1]), size[0], size[2], size[3]);
        y = i < 9 ? swish(y) : node("Relu", y, NULL, NULL);
        result("y0", y);
        result("y1", i % 2 ? mean(y, -1, 2) : node("GlobalAveragePool", y, NULL, NULL));
        compare(1 + (int64_t)i % 2, 1);
        compare(0, 1);
    }
}

/* Weights are multiplied where pixels are many; else pixels, on machines that have a unit of tiles. Of f16
 * such machines have quicker points. */
static void excite(int64_t c, int64_t f, int64_t size, int64_t n, int first)
{
    ortc_edge *x = input("x", c, size, size), *factor = node("Sigmoid", input("s", c, 1, 1), NULL, NULL);
    ortc_edge *y = points(first ? node("Mul", factor, x, NULL) : node("Mul", x, factor, NULL), c, f);
    result("y0", c == f ? node("Add", y, x, NULL) : node("Relu", y, NULL, NULL));
    const int tiles = ortc_tiled_uk_get(ORTC_TILED_PIECES) != NULL;
    compare(n, type == ORTC_F32 ? f <= size * size || tiles : f <= size * size && !tiles);
}

Test(squeeze, points_and_the_factors_before)
{
    static const int64_t sizes[][4] = {
        {24, 20, 12, 2}, {40, 40, 8, 1}, {96, 112, 7, 2}, {40, 40, 5, 3}, {16, 8, 3, 0}};
    scale = 0.07F;
    for (size_t i = 0; i < 2 * (sizeof sizes / sizeof *sizes); i++) {
        const int64_t *size = sizes[i % 5];
        if (i) teardown(), setup();
        type = i < 5 ? ORTC_F32 : ORTC_F16;
        excite(size[0], size[1], size[2], size[3], i % 2);
    }
}

/* Values that pieces do not hold, times their factors. */
Test(squeeze, of_tiny_and_of_large_values)
{
    scale = 1e-20F;
    excite(64, 96, 7, 1, 0);
    teardown(), setup();
    scale = 1e19F;
    excite(64, 96, 7, 1, 1);
}

/* Both, and what is between them. */
Test(squeeze, and_excite)
{
    scale = 0.05F;
    ortc_edge *y = swish(depthwise(input("x", 48, 14, 14), 48, 3, 1));
    ortc_edge *factor = node("Sigmoid",
                             points(swish(points(node("GlobalAveragePool", y, NULL, NULL), 48, 4)), 4, 48),
                             NULL, NULL);
    result("y0", points(node("Mul", factor, y, NULL), 48, 32));
    compare(2, 2);
}

/* ---- What does not ------------------------------------------------------------------------------------- */

Test(squeeze, a_pool_that_alone_reads_or_windows_of_all_channels)
{
    scale = 0.07F;
    ortc_edge *x = input("x", 24, 9, 9), *y = points(x, 24, 20);
    result("y0", node("GlobalAveragePool", depthwise(x, 24, 3, 1), NULL, NULL));
    result("y1", node("Mul", y, node("GlobalAveragePool", y, NULL, NULL), NULL));
    compare(1, 0);
}

Test(squeeze, means_that_are_not_of_a_channel)
{
    scale = 0.07F;
    ortc_edge *y = depthwise(input("x", 24, 9, 9), 24, 3, 1);
    result("y0", node("Mul", y, mean(y, 1, 2), NULL));
    compare(2, 0);
}

Test(squeeze, factors_of_pixels_or_values_that_others_read)
{
    scale = 0.07F;
    ortc_edge *x = input("x", 24, 9, 9), *s = input("s", 24, 1, 1);
    ortc_edge *scaled = node("Mul", x, node("Sigmoid", s, NULL, NULL), NULL);
    result("y0", node("Add", points(scaled, 24, 24), scaled, NULL));
    result("y1", points(node("Mul", x, node("Cos", x, NULL, NULL), NULL), 24, 20));
    compare(1, 0);
}

Test(squeeze, windows_that_are_no_points)
{
    scale = 0.07F;
    ortc_edge *x = input("x", 24, 9, 9), *s = input("s", 24, 1, 1);
    ortc_edge *y = node("Conv", node("Mul", x, s, NULL), constant(4, 20, 24, 3), NULL);
    result("y0", y);
    compare(1, 0);
}
