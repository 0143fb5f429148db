/* tests/session/test_windows.c: what joins convolutions and pools while a model is normalised: a Pad in front
 * of them, a BatchNormalization behind them, branches beside them, views of images. Graphs that must match
 * give ref's numbers as before (of a Pad and a view, its bits); graphs that must not stay as they are.
 */
#include <criterion/criterion.h>
#include <math.h>

#include "graph/ir/half.h"
#include "graph/normalise/normalise.h"
#include "runtime/registry/registry.h"
#include "runtime/session/create.h"

enum { CHANNELS = 4, EXTENT = 6, MAX_COUNT = 2048 };

static ortc_graph *g;
static ortc_model store;
static ortc_error e;
static uint32_t seed;
static ortc_dtype type = ORTC_F32; /* of values and weights; inputs and results are f32 */

static void start(void)
{
    e = (ortc_error)ORTC_ERROR_INIT;
    cr_assert_eq(ortc_registry_init(&e), ORTC_OK, "%s", e.text);
    cr_assert_not_null(g = ortc_graph_create(NULL));
    seed = 1;
}
static void setup(void) { cr_assert(ortc_pack_store_init(&store.packed, 0)); }
static void teardown(void) { ortc_pack_store_deinit(&store.packed); }
TestSuite(windows, .init = setup, .fini = teardown);

/* ---- Building ------------------------------------------------------------------------------------------ */

static float any(void)
{
    seed = seed * 1664525 + 1013904223;
    return (float)(int)(seed >> 16 & 255) / 64 - 2;
}

static ortc_edge *cast(ortc_edge *x, ortc_dtype to)
{
    const ortc_attr a = {.size = sizeof a, .kind = ORTC_ATTR_INT, .i = to};
    ortc_node *n = ortc_node_create(g, ortc_op_find("", "Cast"), NULL, 1, 1);
    ortc_node_set_in(n, 0, x);
    ortc_node_set_attr(n, "to", &a);
    ortc_node_set_out(n, 0, ortc_edge_create(g, NULL));
    return n->out[0];
}

static ortc_edge *image(void)
{
    const ortc_dim dims[4] = {1, CHANNELS, EXTENT, EXTENT};
    ortc_edge *x = ortc_edge_create(g, "x");
    ortc_edge_set_shape(x, ortc_tensor_type(ORTC_F32), 4, dims);
    ortc_graph_add_input(g, "x", x);
    return type == ORTC_F32 ? x : cast(x, type);
}

/* Numbers in 0.25 .. 4.25 where `positive`. */
static ortc_edge *floats(int32_t rank, int64_t a, int64_t b, int64_t c, int64_t d, bool positive)
{
    const int64_t dims[4] = {a, b, c, d};
    int64_t count = 1;
    ortc_constant *k;
    for (int32_t i = 0; i < rank; i++) count *= dims[i];
    float *data = malloc((size_t)count * sizeof *data);
    for (int64_t i = 0; i < count; i++) {
        const float v = any() + (positive ? 2.25f : 0);
        if (type == ORTC_F32)
            data[i] = v;
        else
            ((uint16_t *)(void *)data)[i] = ortc_half_encode((double)v, type);
    }
    ortc_constant_create(type, rank, dims, data, (size_t)count * ortc_dtype_bits(type) / 8, free, data, &k,
                         &e);
    return ortc_graph_constant(g, NULL, k);
}
static ortc_edge *scalar(float v)
{
    ortc_constant *k;
    float *data = malloc(sizeof *data);
    *data = v;
    ortc_constant_create(ORTC_F32, 0, NULL, data, sizeof *data, free, data, &k, &e);
    return ortc_graph_constant(g, NULL, k);
}
static ortc_edge *ints(int64_t count, const int64_t *v)
{
    ortc_constant *k;
    int64_t *data = malloc((size_t)count * sizeof *data);
    memcpy(data, v, (size_t)count * sizeof *data);
    ortc_constant_create(ORTC_I64, 1, &count, data, (size_t)count * sizeof *data, free, data, &k, &e);
    return ortc_graph_constant(g, NULL, k);
}

static ortc_node *node(const char *op, uint32_t n, ortc_edge *const *in)
{
    ortc_node *made = ortc_node_create(g, ortc_op_find("", op), NULL, n, 1);
    for (uint32_t i = 0; i < n; i++)
        if (in[i]) ortc_node_set_in(made, i, in[i]);
    ortc_node_set_out(made, 0, ortc_edge_create(g, NULL));
    return made;
}
static void set_int(ortc_node *n, const char *name, int64_t v)
{
    const ortc_attr a = {.size = sizeof a, .kind = ORTC_ATTR_INT, .i = v};
    ortc_node_set_attr(n, name, &a);
}
static void set_ints(ortc_node *n, const char *name, size_t count, const int64_t *v)
{
    const ortc_attr a = {.size = sizeof a, .kind = ORTC_ATTR_INTS, .count = count, .u.ints = v};
    ortc_node_set_attr(n, name, &a);
}
static void set_text(ortc_node *n, const char *name, const char *v)
{
    const ortc_attr a = {.size = sizeof a, .kind = ORTC_ATTR_STRING, .count = strlen(v), .u.s = v};
    ortc_node_set_attr(n, name, &a);
}

/* ---- Running ------------------------------------------------------------------------------------------- */

static size_t run(float *y)
{
    ortc_graph *copy;
    ortc_session *s;
    static float x[CHANNELS * EXTENT * EXTENT];
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = (float)(i * 37 % 29) * 0.25f - 3.5f;
    cr_assert_eq(ortc_graph_clone(g, &copy, &e), ORTC_OK, "%s", e.text);
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.providers = "ref";
    cr_assert_eq(ortc_session_from_graph(&store, copy, &o, &s, &e), ORTC_OK, "%s", e.text);
    const int64_t dims[4] = {1, CHANNELS, EXTENT, EXTENT};
    ortc_in in = {"x", ortc_wrap(x, ORTC_F32, 4, dims)};
    ortc_out out = {.name = "y"};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = &in, a.n_in = 1, a.out = &out, a.n_out = 1;
    cr_assert_eq(ortc_run(s, &a, &e), ORTC_OK, "%s", e.text);
    const size_t count = (size_t)ortc_value_count(out.value);
    cr_assert_leq(count, MAX_COUNT);
    memcpy(y, ortc_value_host(out.value), count * sizeof *y);
    ortc_value_release(in.value), ortc_value_release(out.value);
    ortc_session_release(s);
    return count;
}

/* Ends the graph with y; whether the pass finds `edits`, and y stays within `off` of what it was. */
static void expect(const char *what, ortc_edge *y, const char *pass, uint64_t edits, double off)
{
    static float before[MAX_COUNT], after[MAX_COUNT];
    uint64_t all[64], n = 0;
    ortc_normalise p = {.graph = g, .error = &e};
    ortc_graph_add_output(g, "y", type == ORTC_F32 ? y : cast(y, ORTC_F32));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s: %s", what, e.text);
    const size_t count = run(before);
    cr_assert_leq(ortc_normalise_n_passes, 64);
    cr_assert_eq(ortc_normalise_run(&p, NULL, 0, all), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_graph_verify(g, &e), ORTC_OK, "%s", e.text);
    for (size_t i = 0; i < ortc_normalise_n_passes; i++)
        if (!strcmp(ortc_normalise_passes[i].name, pass)) n = all[i];
    cr_expect_eq(n, edits, "%s: %d edits of %s", what, (int)n, pass);
    cr_expect_eq(run(after), count, "%s: another shape", what);
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        const double d = fabs((double)after[i] - (double)before[i]);
        if (!(d <= most)) most = d;
    }
    cr_expect(most <= off, "%s: off by %g", what, most);
    ortc_graph_destroy(g);
    start();
}

/* ---- Pads ---------------------------------------------------------------------------------------------- */

static ortc_edge *padded(ortc_edge *x, const int64_t *pads, ortc_edge *value, const char *mode)
{
    ortc_node *pad = node("Pad", 3, (ortc_edge *[]){x, ints(8, pads), value});
    if (mode) set_text(pad, "mode", mode);
    return pad->out[0];
}
static ortc_node *conv(ortc_edge *x)
{
    return node("Conv", 2, (ortc_edge *[]){x, floats(4, 3, CHANNELS, 3, 3, false)});
}
static ortc_node *pool(const char *op, ortc_edge *x)
{
    ortc_node *n = node(op, 1, &x);
    set_ints(n, "kernel_shape", 2, (const int64_t[]){3, 3});
    set_ints(n, "strides", 2, (const int64_t[]){2, 2});
    return n;
}
static ortc_edge *relu(ortc_edge *x) { return node("Relu", 1, &x)->out[0]; }

static const int64_t same[8] = {0, 0, 1, 0, 0, 0, 2, 1}, crop[8] = {0, 0, 1, -1, 0, 0, 0, 0},
                     channel[8] = {0, 1, 0, 0, 0, 0, 0, 0}, wide[8] = {0, 0, 3, 0, 0, 0, 0, 0};

/* x as 8 bits and back. */
static ortc_edge *rounded(ortc_edge *x)
{
    ortc_constant *k;
    uint8_t *zero = malloc(1);
    *zero = 77;
    ortc_constant_create(ORTC_U8, 0, NULL, zero, 1, free, zero, &k, &e);
    ortc_edge *z = ortc_graph_constant(g, NULL, k), *s = scalar(0.05f);
    ortc_edge *q = node("QuantizeLinear", 3, (ortc_edge *[]){x, s, z})->out[0];
    return node("DequantizeLinear", 3, (ortc_edge *[]){q, s, z})->out[0];
}

Test(windows, a_pad_becomes_the_windows_own)
{
    start();
    expect("zeros", conv(padded(image(), same, NULL, NULL))->out[0], "fold-pads", 1, 0);
    expect("a zero", conv(padded(image(), same, scalar(0), "constant"))->out[0], "fold-pads", 1, 0);
    ortc_node *n = conv(padded(image(), same, NULL, NULL));
    set_ints(n, "pads", 4, (const int64_t[]){0, 1, 1, 0});
    expect("beside its own", n->out[0], "fold-pads", 1, 0);
    set_text(n = conv(padded(image(), same, NULL, NULL)), "auto_pad", "VALID");
    expect("VALID", n->out[0], "fold-pads", 1, 0);
    ortc_node *pad = node("Pad", 4,
                          (ortc_edge *[]){image(), ints(2, (const int64_t[]){2, 1}), NULL,
                                          ints(1, (const int64_t[]){-1})});
    expect("one axis", conv(pad->out[0])->out[0], "fold-pads", 1, 0);
    expect("twice", conv(padded(padded(image(), same, NULL, NULL), wide, NULL, NULL))->out[0], "fold-pads", 2,
           0);
    expect("rounded", conv(rounded(padded(image(), same, NULL, NULL)))->out[0], "fold-pads", 1, 0);
    expect("an average", pool("AveragePool", padded(image(), same, NULL, NULL))->out[0], "fold-pads", 1, 0);
    expect("a maximum", pool("MaxPool", padded(image(), same, scalar(-INFINITY), NULL))->out[0], "fold-pads",
           1, 0);
    expect("a maximum of what is not negative",
           pool("MaxPool", padded(relu(image()), same, NULL, NULL))->out[0], "fold-pads", 1, 0);
}

Test(windows, a_pad_that_means_something_else_stays)
{
    start();
    expect("another number", conv(padded(image(), same, scalar(1), NULL))->out[0], "fold-pads", 0, 0);
    expect("minus infinity, rounded",
           pool("MaxPool", rounded(padded(image(), same, scalar(-INFINITY), NULL)))->out[0], "fold-pads", 0,
           0);
    expect("reflected", conv(padded(image(), same, NULL, "reflect"))->out[0], "fold-pads", 0, 0);
    expect("cropped", conv(padded(image(), crop, NULL, NULL))->out[0], "fold-pads", 0, 0);
    ortc_edge *y = padded(image(), channel, NULL, NULL);
    expect("channels", node("Conv", 2, (ortc_edge *[]){y, floats(4, 3, CHANNELS + 1, 3, 3, false)})->out[0],
           "fold-pads", 0, 0);
    ortc_node *n = conv(padded(image(), same, NULL, NULL));
    set_text(n, "auto_pad", "SAME_UPPER");
    expect("SAME_UPPER", n->out[0], "fold-pads", 0, 0);
    y = padded(image(), same, NULL, NULL);
    ortc_graph_add_output(g, "padded", y);
    expect("read by others", conv(y)->out[0], "fold-pads", 0, 0);
    set_ints(n = pool("AveragePool", padded(image(), same, NULL, NULL)), "pads", 4,
             (const int64_t[]){1, 1, 1, 1});
    expect("an average that does not count its own", n->out[0], "fold-pads", 0, 0);
    set_int(n = pool("AveragePool", padded(image(), same, NULL, NULL)), "ceil_mode", 1);
    expect("an average over half windows", n->out[0], "fold-pads", 0, 0);
    expect("a maximum with zeros", pool("MaxPool", padded(image(), same, NULL, NULL))->out[0], "fold-pads", 0,
           0);
    expect("a window of padding alone", pool("MaxPool", padded(relu(image()), wide, NULL, NULL))->out[0],
           "fold-pads", 0, 0);
}

/* ---- Windows wider than what they look at -------------------------------------------------------------- */

static ortc_node *dilated(int64_t dilation, int64_t above, int64_t left, int64_t below, int64_t right)
{
    ortc_node *n = conv(image());
    set_ints(n, "dilations", 2, (const int64_t[]){dilation, dilation});
    set_ints(n, "pads", 4, (const int64_t[]){above, left, below, right});
    return n;
}

Test(windows, taps_that_see_padding_alone_are_left_out)
{
    start();
    const int64_t far = EXTENT + 2;
    expect("the middle is left", dilated(far, far, far, far, far)->out[0], "crop-windows", 1, 0);
    expect("the last", dilated(far, 2 * far, 2 * far, 2, 0)->out[0], "crop-windows", 1, 0);
    ortc_node *n = dilated(1, 1, far, 1, far);
    set_ints(n, "dilations", 2, (const int64_t[]){1, far});
    set_ints(n, "strides", 2, (const int64_t[]){2, 1});
    expect("a column of them", n->out[0], "crop-windows", 1, 0);
}

Test(windows, taps_that_see_something_stay)
{
    start();
    expect("as most windows", dilated(1, 1, 1, 1, 1)->out[0], "crop-windows", 0, 0);
    const int64_t less = EXTENT - 1;
    expect("a pixel", dilated(less, less, less, less, less)->out[0], "crop-windows", 0, 0);
    ortc_node *n = dilated(EXTENT, EXTENT, EXTENT, EXTENT, EXTENT);
    ((float *)(uintptr_t)n->in[1]->constant->data)[0] = INFINITY;
    expect("an infinity times padding", n->out[0], "crop-windows", 0, 0);
}

/* ---- BatchNormalization -------------------------------------------------------------------------------- */

static ortc_edge *normalised(ortc_edge *x, int64_t channels)
{
    return node("BatchNormalization", 5,
                (ortc_edge *[]){x, floats(1, channels, 0, 0, 0, false), floats(1, channels, 0, 0, 0, false),
                                floats(1, channels, 0, 0, 0, false), floats(1, channels, 0, 0, 0, true)})
        ->out[0];
}
static ortc_node *transposed(ortc_edge *bias, int64_t group)
{
    ortc_node *n = node("ConvTranspose", 3,
                        (ortc_edge *[]){image(), floats(4, CHANNELS, 3, 2, 3, false), bias});
    set_int(n, "group", group);
    return n;
}

Test(windows, a_batchnormalization_goes_into_what_it_follows)
{
    start();
    expect("Conv", normalised(conv(image())->out[0], 3), "conv-batchnorm", 1, 1e-4);
    expect("ConvTranspose", normalised(transposed(NULL, 1)->out[0], 3), "conv-batchnorm", 1, 1e-4);
    expect("bias", normalised(transposed(floats(1, 3, 0, 0, 0, false), 1)->out[0], 3), "conv-batchnorm", 1,
           1e-4);
    expect("groups", normalised(transposed(floats(1, 6, 0, 0, 0, false), 2)->out[0], 6), "conv-batchnorm", 1,
           1e-4);
    ortc_edge *y = transposed(NULL, 1)->out[0];
    ortc_graph_add_output(g, "sums", y);
    expect("read by others", normalised(y, 3), "conv-batchnorm", 0, 1e-4);
}

/* ---- Branches ------------------------------------------------------------------------------------------ */

/* A Conv of x with windows of h by w whose results are as many as x's elements, but for the stride. */
static ortc_node *window(ortc_edge *x, int64_t h, int64_t w, int64_t group, int64_t stride)
{
    ortc_node *n = node("Conv", 3,
                        (ortc_edge *[]){x, floats(4, CHANNELS, CHANNELS / group, h, w, false),
                                        floats(1, CHANNELS, 0, 0, 0, false)});
    set_ints(n, "pads", 4, (const int64_t[]){h / 2, w / 2, h / 2, w / 2});
    set_ints(n, "strides", 2, (const int64_t[]){stride, stride});
    set_int(n, "group", group);
    return n;
}
static ortc_edge *two(const char *op, ortc_edge *a, ortc_edge *b)
{
    return node(op, 2, (ortc_edge *[]){a, b})->out[0];
}
static ortc_edge *of_channels(void) { return floats(3, CHANNELS, 1, 1, 0, true); }

Test(windows, branches_of_one_input_are_one_convolution)
{
    start();
    ortc_edge *x = image();
    expect("a pixel", two("Add", window(x, 3, 3, 1, 1)->out[0], window(x, 1, 1, 1, 1)->out[0]),
           "conv-branches", 1, 1e-4);
    x = image();
    expect("first", two("Add", window(x, 1, 1, 2, 1)->out[0], window(x, 3, 3, 2, 1)->out[0]), "conv-branches",
           1, 1e-4);
    x = image();
    expect("strides", two("Sub", window(x, 3, 3, 1, 2)->out[0], window(x, 1, 1, 1, 2)->out[0]),
           "conv-branches", 1, 1e-4);
    x = image();
    expect("a row", two("Add", window(x, 3, 5, 1, 1)->out[0], window(x, 1, 5, 1, 1)->out[0]), "conv-branches",
           1, 1e-4);
    x = image();
    expect("fewer channels", two("Add", window(x, 3, 3, 2, 1)->out[0], window(x, 3, 3, 4, 1)->out[0]),
           "conv-branches", 1, 1e-4);
    x = image();
    ortc_node *every_second = window(x, 3, 3, 1, 1);
    set_ints(every_second, "dilations", 2, (const int64_t[]){2, 2});
    set_ints(every_second, "pads", 4, (const int64_t[]){2, 2, 2, 2});
    expect("every second tap", two("Add", window(x, 5, 5, 1, 1)->out[0], every_second->out[0]),
           "conv-branches", 1, 1e-4);
    x = image();
    expect("the input", two("Add", x, window(x, 3, 3, 1, 1)->out[0]), "conv-branches", 1, 1e-4);
    x = image();
    expect("less what is normalised", two("Sub", window(x, 3, 3, 4, 1)->out[0], normalised(x, CHANNELS)),
           "conv-branches", 1, 1e-4);
    /* all of them, and what is done on the way */
    x = image();
    ortc_edge *y = two("Add", window(x, 1, 1, 4, 1)->out[0], normalised(x, CHANNELS));
    y = two("Add", y, window(x, 3, 3, 4, 1)->out[0]);
    y = two("Sub", y, scalar(0.5f));
    y = two("Add", two("Div", two("Mul", of_channels(), y), scalar(3)), x);
    expect("many", two("Mul", y, of_channels()), "conv-branches", 2, 1e-4);
    x = image();
    y = two("Add", two("Add", window(x, 3, 3, 4, 1)->out[0], window(x, 1, 1, 4, 1)->out[0]), x);
    expect("before a BatchNormalization", normalised(y, CHANNELS), "conv-batchnorm", 1, 1e-4);
}

Test(windows, branches_that_are_something_else_stay)
{
    start();
    ortc_edge *x = image();
    expect("no tap in common", two("Add", window(x, 3, 1, 1, 1)->out[0], window(x, 1, 3, 1, 1)->out[0]),
           "conv-branches", 0, 0);
    x = image();
    expect("another input", two("Add", conv(x)->out[0], conv(relu(x))->out[0]), "conv-branches", 0, 0);
    x = image();
    expect("taken from", two("Sub", x, window(x, 3, 3, 1, 1)->out[0]), "conv-branches", 0, 0);
    expect("no branch", two("Mul", conv(image())->out[0], scalar(2)), "conv-branches", 0, 0);
    x = image();
    expect("by column",
           two("Add", two("Mul", window(x, 3, 3, 1, 1)->out[0], floats(1, EXTENT, 0, 0, 0, true)), x),
           "conv-branches", 0, 0);
    x = image();
    expect("a large factor", two("Add", two("Mul", window(x, 3, 3, 1, 1)->out[0], scalar(1e30f)), x),
           "conv-branches", 0, 0);
    x = image();
    ortc_node *n = window(x, 3, 3, 1, 1);
    ortc_graph_add_output(g, "sums", n->out[0]);
    expect("read by others", two("Add", n->out[0], x), "conv-branches", 0, 0);
    x = image();
    n = window(x, 1, 1, 1, 1);
    ortc_graph_add_output(g, "sums", n->out[0]);
    expect("a branch that is", two("Add", window(x, 3, 3, 1, 1)->out[0], n->out[0]), "conv-branches", 0, 0);
    x = image();
    n = node("Conv", 2, (ortc_edge *[]){x, floats(4, CHANNELS, CHANNELS, 3, 3, false)});
    set_text(n, "auto_pad", "SAME_UPPER");
    expect("SAME_UPPER", two("Add", n->out[0], x), "conv-branches", 0, 0);
}

Test(windows, a_batchnormalization_of_something_else_is_what_it_does_to_elements)
{
    start();
    expect("an input", normalised(image(), CHANNELS), "expand-batchnorm", 1, 1e-4);
    expect("a value", relu(normalised(relu(image()), CHANNELS)), "expand-batchnorm", 1, 1e-4);
    expect("a Conv", normalised(conv(image())->out[0], 3), "expand-batchnorm", 0, 1e-4);
    ortc_edge *x = image();
    ortc_node *n =
        node("BatchNormalization", 5,
             (ortc_edge *[]){x, floats(1, CHANNELS, 0, 0, 0, false), floats(1, CHANNELS, 0, 0, 0, false),
                             floats(1, CHANNELS, 0, 0, 0, false), floats(1, CHANNELS, 0, 0, 0, true)});
    set_int(n, "training_mode", 1);
    expect("what trains", n->out[0], "expand-batchnorm", 0, 0);
}

/* All codes of f16, and what lies between two of them, by both ways of half.h. */
Test(windows, f16_is_read_and_written_quickly)
{
    for (uint32_t i = 0; i < 65536; i++) {
        const double v = ortc_half_decode((uint16_t)i, ORTC_F16),
                     up = ortc_half_decode((uint16_t)(i + 1), ORTC_F16);
        const float quick = ortc_f16_decode((uint16_t)i);
        cr_assert(isnan(v) ? isnan(quick) : (double)quick == v && !signbit(quick) == !signbit(v), "%x", i);
        if (!isnan(v)) cr_assert_eq(ortc_f16_encode(quick), i, "%x", i);
        if (!isfinite(v) || !isfinite(up)) continue;
        const float half = (float)((v + up) / 2),
                    some[3] = {half, nextafterf(half, -1e9F), nextafterf(half, 1e9F)};
        for (int k = 0; k < 3; k++)
            cr_assert_eq(ortc_f16_encode(some[k]), ortc_half_encode((double)some[k], ORTC_F16), "%x", i);
    }
    static const float large[] = {65504, 65519, 65520, 1e6F, 3e38F, INFINITY, 1e-9F, 0x1p-25F, 0x1.8p-25F};
    for (size_t i = 0; i < 18; i++) {
        const float v = i < 9 ? large[i] : -large[i - 9];
        cr_assert_eq(ortc_f16_encode(v), ortc_half_encode((double)v, ORTC_F16), "%g", (double)v);
    }
    cr_assert(isnan(ortc_f16_decode(ortc_f16_encode(NAN))));
}

/* Of f16 and bf16 the same, computed in f32 and rounded once; weights that leave f16's range stay. */
Test(windows, half_precision_goes_into_weights_that_keep_it)
{
    static const ortc_dtype types[] = {ORTC_F16, ORTC_BF16};
    start();
    for (int i = 0; i < 2; i++) {
        const double off = i ? 6 : 0.75; /* of results of some hundred */
        type = types[i];
        expect("Conv", normalised(conv(image())->out[0], 3), "conv-batchnorm", 1, off);
        expect("ConvTranspose", normalised(transposed(NULL, 1)->out[0], 3), "conv-batchnorm", 1, off);
        expect("groups", normalised(transposed(floats(1, 6, 0, 0, 0, false), 2)->out[0], 6), "conv-batchnorm",
               1, off);
        ortc_edge *x = image();
        ortc_edge *y = two("Add", window(x, 1, 1, 4, 1)->out[0], normalised(x, CHANNELS));
        y = two("Add", two("Add", y, window(x, 3, 3, 4, 1)->out[0]), x);
        expect("branches", y, "conv-branches", 2, off);
        expect("an input", normalised(image(), CHANNELS), "expand-batchnorm", 1, off / 8);
        for (int large = 0; large < 2; large++) {
            x = conv(image())->out[0];
            ortc_edge *scale = floats(1, 3, 0, 0, 0, true), *var = floats(1, 3, 0, 0, 0, true);
            *(uint16_t *)(uintptr_t)scale->constant->data = ortc_half_encode(large ? 60000 : 0x1p-14, type);
            *(uint16_t *)(uintptr_t)var->constant->data = ortc_half_encode(0.25, type);
            y = node("BatchNormalization", 5,
                     (ortc_edge *[]){x, scale, floats(1, 3, 0, 0, 0, false), floats(1, 3, 0, 0, 0, false),
                                     var})
                    ->out[0];
            y = two("Min", two("Max", y, cast(scalar(-60), type)), cast(scalar(60), type));
            expect("beyond f16", y, "conv-batchnorm", i, off);
        }
    }
    type = ORTC_F32;
}

static ortc_node *spread(bool pixel, bool bias)
{
    ortc_edge *x = image();
    if (pixel) x = node("GlobalAveragePool", 1, &x)->out[0];
    return node("ConvTranspose", bias ? 3 : 2,
                (ortc_edge *[]){x, floats(4, CHANNELS, 3, 4, 2, false),
                                bias ? floats(1, 3, 0, 0, 0, false) : NULL});
}

Test(windows, a_transposed_convolution_of_a_pixel_is_a_product)
{
    start();
    expect("a pixel", spread(true, false)->out[0], "pixel-products", 1, 1e-4);
    expect("with a bias", relu(spread(true, true)->out[0]), "pixel-products", 1, 1e-4);
    ortc_node *n = spread(true, true);
    set_ints(n, "strides", 2, (int64_t[]){3, 2});
    expect("with strides, which nothing goes by", n->out[0], "pixel-products", 1, 1e-4);
    expect("with a BatchNormalization", normalised(spread(true, true)->out[0], 3), "pixel-products", 1, 1e-4);
    expect("more pixels", spread(false, true)->out[0], "pixel-products", 0, 1e-4);
    n = spread(true, true);
    set_ints(n, "pads", 4, (int64_t[]){1, 0, 0, 0});
    expect("with padding", n->out[0], "pixel-products", 0, 1e-4);
    n = spread(true, true);
    set_ints(n, "dilations", 2, (int64_t[]){2, 1});
    expect("with holes", n->out[0], "pixel-products", 0, 1e-4);
    n = spread(true, true);
    set_ints(n, "strides", 2, (int64_t[]){2, 2});
    set_ints(n, "output_padding", 2, (int64_t[]){1, 0});
    expect("with more than its windows", n->out[0], "pixel-products", 0, 1e-4);
    n = spread(true, false);
    set_text(n, "auto_pad", "SAME_UPPER");
    expect("SAME_UPPER", n->out[0], "pixel-products", 0, 1e-4);
    n = spread(true, false);
    set_int(n, "group", 2);
    expect("of groups", n->out[0], "pixel-products", 0, 1e-4);
}

static ortc_edge *moved(ortc_edge *x, const int64_t *perm)
{
    ortc_node *n = node("Transpose", 1, &x);
    set_ints(n, "perm", 4, perm);
    return n->out[0];
}

Test(windows, a_product_over_channels_is_a_convolution)
{
    static const int64_t to_end[4] = {0, 2, 3, 1}, back[4] = {0, 3, 1, 2};
    start();
    ortc_edge *w = floats(2, CHANNELS, 3, 0, 0, false);
    expect("mixed", moved(two("MatMul", moved(image(), to_end), w), back), "channel-products", 1, 1e-4);
    ortc_edge *y = two("MatMul", moved(image(), to_end), floats(2, CHANNELS, 3, 0, 0, false));
    expect("with a bias", relu(moved(two("Add", floats(1, 3, 0, 0, 0, false), y), back)), "channel-products",
           1, 1e-4);
    y = two("MatMul", moved(image(), to_end), floats(2, CHANNELS, 3, 0, 0, false));
    expect("with a number", moved(two("Add", y, scalar(2)), back), "channel-products", 0, 0);
    y = two("MatMul", moved(image(), to_end), floats(2, CHANNELS, 3, 0, 0, false));
    expect("not back", moved(y, to_end), "channel-products", 0, 0);
    y = two("MatMul", moved(image(), back), floats(2, EXTENT, 3, 0, 0, false));
    expect("over columns", moved(y, back), "channel-products", 0, 0);
    y = moved(image(), to_end);
    ortc_graph_add_output(g, "pixels", y);
    y = two("MatMul", y, floats(2, CHANNELS, 3, 0, 0, false));
    expect("of what others read", moved(y, back), "channel-products", 0, 0);
    y = two("MatMul", moved(image(), to_end), floats(2, CHANNELS, 3, 0, 0, false));
    ortc_graph_add_output(g, "sums", y);
    expect("that others read", moved(y, back), "channel-products", 0, 0);
}

/* ---- Views of images ----------------------------------------------------------------------------------- */

static ortc_edge *viewed(ortc_edge *x, int64_t rank, const int64_t *dims)
{
    return node("Reshape", 2, (ortc_edge *[]){x, ints(rank, dims)})->out[0];
}
static ortc_edge *swapped(ortc_edge *x, const int64_t *perm)
{
    ortc_node *n = node("Transpose", 1, &x);
    set_ints(n, "perm", 3, perm);
    return n->out[0];
}

enum { PIXELS = EXTENT * EXTENT };
static const int64_t last_two[3] = {0, 2, 1}, all[3] = {2, 0, 1}, an_image[4] = {0, CHANNELS, EXTENT, EXTENT},
                     rows[3] = {0, PIXELS, CHANNELS}, planes[3] = {0, CHANNELS, PIXELS};

Test(windows, what_is_transposed_is_the_image)
{
    start();
    ortc_edge *x = viewed(image(), 3, rows);
    expect("of rows", conv(viewed(swapped(x, last_two), 4, an_image))->out[0], "image-views", 1, 0);
    expect("rows of it", swapped(viewed(window(image(), 3, 3, 1, 1)->out[0], 3, planes), last_two),
           "image-views", 1, 0);
    expect("rows of what is behind it",
           swapped(viewed(relu(window(image(), 3, 3, 1, 1)->out[0]), 3, planes), last_two), "image-views", 1,
           0);
    expect("and what follows",
           relu(swapped(viewed(window(image(), 3, 3, 1, 1)->out[0], 3, planes), last_two)), "image-views", 2,
           0);
    x = viewed(swapped(viewed(image(), 3, rows), last_two), 4, an_image);
    x = swapped(viewed(window(x, 3, 3, 4, 1)->out[0], 3, planes), last_two);
    expect("there and back", relu(relu(x)), "image-views", 4, 0);
    x = node("AveragePool", 1,
             (ortc_edge *[]){viewed(swapped(viewed(image(), 3, rows), last_two), 4, an_image)})
            ->out[0];
    set_ints(x->producer, "kernel_shape", 2, (const int64_t[]){2, 2});
    expect("a pool", x, "image-views", 1, 0);
}

Test(windows, views_of_something_else_stay)
{
    start();
    ortc_edge *x = viewed(image(), 3, rows);
    expect("no windows", relu(viewed(swapped(x, last_two), 4, an_image)), "image-views", 0, 0);
    x = swapped(viewed(image(), 3, rows), last_two);
    ortc_graph_add_output(g, "planes", x);
    expect("read by others", conv(viewed(x, 4, an_image))->out[0], "image-views", 0, 0);
    expect("rows of an input", swapped(viewed(image(), 3, planes), last_two), "image-views", 0, 0);
    expect("another order", swapped(viewed(window(image(), 3, 3, 1, 1)->out[0], 3, planes), all),
           "image-views", 0, 0);
    x = window(image(), 3, 3, 1, 1)->out[0];
    expect("channels with rows",
           swapped(viewed(x, 3, (const int64_t[]){0, CHANNELS * EXTENT, EXTENT}), last_two), "image-views", 0,
           0);
    x = window(image(), 3, 3, 1, 1)->out[0];
    ortc_graph_add_output(g, "sums", x);
    expect("sums that others read", relu(viewed(x, 3, planes)), "image-views", 0, 0);
    expect("two inputs", two("Mul", viewed(window(image(), 3, 3, 1, 1)->out[0], 3, planes), scalar(2)),
           "image-views", 0, 0);
}
