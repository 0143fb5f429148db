/* tests/session/test_pointwise.c: pointwise programs (ortc/program.h): what is one, how operators expand,
 * and which nodes become a group. That groups compute what their nodes do is tests/models/pointwise.py's. */
#include <criterion/criterion.h>
#include <math.h>

#include "graph/ir/half.h"
#include "graph/ir/pointwise.h"
#include "graph/specialise/specialise.h"
#include "kernels/activation/expand.h"
#include "kernels/common/cpu_features.h"
#include "kernels/gemm/epilogue.h"
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
TestSuite(pointwise, .init = setup, .fini = teardown);

static ortc_edge *input(const char *name, ortc_dtype t, int32_t rank, const ortc_dim *dims)
{
    ortc_edge *x = ortc_edge_create(g, name);
    ortc_edge_set_shape(x, ortc_tensor_type(t), rank, dims);
    ortc_graph_add_input(g, name, x);
    return x;
}

static ortc_edge *number(float value)
{
    ortc_constant *c;
    float *data = malloc(sizeof *data);
    *data = value;
    ortc_constant_create(ORTC_F32, 0, NULL, data, sizeof *data, free, data, &c, &e);
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

static bool takes_all;
static uint32_t asked;
static bool accept(void *arg, const ortc_node *proposal, const ortc_node *node, const ortc_node *where)
{
    (void)arg, (void)where;
    asked += !node; /* else the answer is being kept */
    cr_expect_not_null(ortc_node_program(proposal));
    return takes_all;
}

static bool together(void *arg, const ortc_node *a, const ortc_node *b)
{
    (void)arg, (void)a, (void)b;
    return true;
}

static uint64_t specialise(bool yes)
{
    uint64_t edits[32];
    cr_assert_leq(ortc_specialise_n_passes, 32);
    ortc_specialise s = {.graph = g, .error = &e, .accept = accept, .together = together};
    takes_all = yes;
    asked = 0;
    cr_assert_eq(ortc_specialise_run(&s, edits), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_graph_verify(g, &e), ORTC_OK, "%s", e.text);
    for (size_t i = 0; i < ortc_specialise_n_passes; i++)
        if (!strcmp(ortc_specialise_passes[i].name, "group-pointwise")) return edits[i];
    return UINT64_MAX;
}

static const ortc_dim dims[2] = {2, 3};

Test(pointwise, an_operator_expands_with_its_constants_inside)
{
    ortc_graph_add_output(g, "y", apply("Mul", number(2), input("x", ORTC_F32, 2, dims)));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    const ortc_pointwise *p = ortc_node_program(g->first);
    cr_assert_not_null(p);
    cr_expect(ortc_pointwise_valid(p, p->bytes));
    cr_expect_eq(p->steps[0].op, ORTC_PW_CONST);
    cr_expect_eq(p->steps[0].k.f, 2);
    cr_expect_eq(p->steps[p->n - 1].op, ORTC_PW_STORE);
    cr_expect_eq(p->steps[p->n - 1].type, ORTC_F32);
}

Test(pointwise, elements_of_16_bits_are_f32_in_registers)
{
    ortc_graph_add_output(g, "y", apply("Exp", input("x", ORTC_F16, 2, dims), NULL));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    const ortc_pointwise *p = ortc_node_program(g->first);
    cr_assert_not_null(p);
    cr_assert_eq(p->n, 3);
    cr_expect_eq(p->steps[0].type, ORTC_F16);
    cr_expect_eq(p->steps[1].type, ORTC_F32);
    cr_expect_eq(p->steps[2].type, ORTC_F16);
}

Test(pointwise, equal_nodes_have_equal_bytes)
{
    ortc_edge *x = input("x", ORTC_F32, 2, dims);
    ortc_graph_add_output(g, "y", apply("Gelu", x, NULL));
    ortc_graph_add_output(g, "z", apply("Gelu", x, NULL));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    const ortc_pointwise *p = ortc_node_program(g->first), *q = ortc_node_program(g->last);
    cr_assert(p && q && p->bytes == q->bytes);
    cr_expect_eq(memcmp(p, q, p->bytes), 0);
}

Test(pointwise, bytes_that_are_no_program_are_refused)
{
    ortc_edge *x = input("x", ORTC_F32, 2, dims);
    ortc_graph_add_output(g, "y", apply("Sub", apply("Exp", x, NULL), x));
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    takes_all = true;
    cr_assert_eq(specialise(true), 1);
    const ortc_pointwise *good = ortc_node_program(g->first);
    cr_assert_not_null(good);
    struct {
        uint64_t head;
        ortc_pw_step steps[8];
    } copy;
    const size_t bytes = good->bytes;
    ortc_pointwise *p = (ortc_pointwise *)(void *)&copy;
    cr_assert_leq(bytes, sizeof copy);
#define BROKEN(statement) \
    memcpy(&copy, good, bytes); \
    statement; \
    cr_expect_not(ortc_pointwise_valid(p, bytes), #statement)
    memcpy(&copy, good, bytes);
    cr_assert(ortc_pointwise_valid(p, bytes));
    cr_expect_not(ortc_pointwise_valid(p, bytes - 1));
    BROKEN(copy.steps[1].a = 1);                   /* of itself */
    BROKEN(copy.steps[0].a = 1);                   /* an input that is not there */
    BROKEN(copy.steps[1].type = ORTC_I32);         /* not what it works on */
    BROKEN(copy.steps[1].op = ORTC_PW_AND);        /* not for floats */
    BROKEN(copy.steps[p->n - 1].op = ORTC_PW_NEG); /* no result */
    BROKEN(copy.steps[1].op = 255);
    BROKEN(copy.steps[p->n - 1].type = ORTC_I32); /* a store converts nothing */
    BROKEN(p->n = 1000);
}

Test(pointwise, nodes_become_a_group_when_its_kernel_agrees)
{
    ortc_edge *x = input("x", ORTC_F32, 2, dims), *row = input("row", ORTC_F32, 1, dims + 1);
    ortc_edge *s = apply("Add", x, row);
    ortc_edge *y = apply("Mul", s, apply("Sigmoid", s, NULL)); /* read twice, inside */
    ortc_graph_add_output(g, "y", y);
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    cr_expect_eq(specialise(false), 0);
    cr_expect_gt(asked, 0);
    cr_expect_eq(g->n_nodes, 3);
    cr_expect_eq(specialise(true), 1);
    cr_assert_eq(g->n_nodes, 1);
    cr_expect_eq(g->first->op, &ortc_op_group);
    cr_expect_eq(g->first->out[0], y);
    cr_expect_str_eq(g->first->fused, "Add Sigmoid Mul");
    cr_expect_eq(g->first->body->n_nodes, 3);
    cr_expect(ortc_pointwise_valid(g->first->program, g->first->program->bytes));
}

Test(pointwise, what_others_read_and_other_shapes_stay_outside)
{
    const ortc_dim one[1] = {1};
    ortc_edge *x = input("x", ORTC_F32, 2, dims), *small = apply("Exp", input("s", ORTC_F32, 1, one), NULL);
    ortc_edge *seen = apply("Neg", x, NULL);
    ortc_graph_add_output(g, "y", apply("Mul", apply("Tanh", seen, NULL), small));
    ortc_graph_add_output(g, "seen", seen);
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    cr_expect_eq(specialise(true), 1);
    cr_expect_eq(g->n_nodes, 3);
    cr_expect_str_eq(g->last->fused, "Tanh Mul");
}

Test(pointwise, arithmetic_on_shapes_is_left_alone)
{
    ortc_edge *x = input("x", ORTC_F32, 2, dims), *shape = apply("Shape", x, NULL);
    ortc_graph_add_output(g, "y", apply("Reshape", x, apply("Mul", apply("Add", shape, shape), shape)));
    cr_assert_eq(ortc_graph_infer(g, &e),
                 ORTC_SHAPE_MISMATCH); /* nonsense, but its values are known by now */
    cr_expect_eq(specialise(true), 0);
    cr_expect_eq(asked, 0);
}

/* What was built, as code for tiles. */
static void lower(const ortc_pw_builder *b, ortc_pw_code *code)
{
    union {
        ortc_pointwise p;
        char bytes[sizeof(ortc_pointwise) + ORTC_PW_STEPS * sizeof(ortc_pw_step)];
    } u = {.p = {.bytes = (uint32_t)ortc_pointwise_bytes(b->n), .n_in = b->n_in, .n = (uint16_t)b->n}};
    const char *why;
    cr_assert_not(b->failed);
    memcpy(u.p.steps, b->steps, b->n * sizeof *b->steps);
    cr_assert(ortc_pw_lower(&u.p, code, &why), "%s", why);
}

/* What products do to a tile in place, with other inputs of every type beside it: tiles of many sizes,
 * nothing beside them touched, and an element does not depend on the tile that it is in. */
Test(pointwise, a_tile_is_changed_in_place_and_nothing_beside_it)
{
    /* rows, columns, from a row to the next; of rows side by side whole blocks stay where they are */
    static const size_t sizes[][3] = {{1, 1, 1},      {14, 32, 32},    {14, 32, 40},   {448, 1, 1},
                                      {3, 1, 7},      {5, 1023, 1030}, {5, 256, 256},  {33, 16, 16},
                                      {17, 200, 200}, {1, 1001, 1001}, {2, 3000, 3001}};
    static float tile[7000], before[7000], pieces[7000], full[7000];
    static uint16_t along[7000];
    static uint8_t flags[7000];
    /* x sigmoid(x) along[col] + full[row][col], where flag[row]; else x * 0.5 */
    ortc_pw_builder b = {.size = sizeof b, .n_in = 6};
    const int32_t x = ortc_pw_load(&b, 0, ORTC_F32);
    const int32_t y = ortc_pw_2(&b, ORTC_PW_MUL,
                                ortc_pw_2(&b, ORTC_PW_MUL, x, ortc_pw_1(&b, ORTC_PW_SIGMOID, x)),
                                ortc_pw_load(&b, 3, ORTC_BF16));
    const int32_t z = ortc_pw_2(&b, ORTC_PW_ADD, y, ortc_pw_load(&b, 4, ORTC_F32));
    ortc_pw_to(&b, ORTC_PW_STORE, ORTC_F32,
               ortc_pw_select(&b, ortc_pw_load(&b, 5, ORTC_BOOL), z,
                              ortc_pw_2(&b, ORTC_PW_MUL, x, ortc_pw_load(&b, 1, ORTC_F32))));
    ortc_pw_code code;
    lower(&b, &code);
    cr_assert(ortc_pw_tile_can(&code));
    const float half = 0.5F;
    for (size_t i = 0; i < ORTC_LENGTH(tile); i++) {
        before[i] = (float)((double)(i * 7919 % 2003) / 100 - 10);
        full[i] = (float)(i % 101) * 0.25F;
        along[i] = (uint16_t)(0x3f80 + i % 64); /* 1 + k / 128 */
        flags[i] = i % 3 != 0;
    }
    for (size_t s = 0; s < 2 * ORTC_LENGTH(sizes); s++) {
        const size_t *size = sizes[s / 2], rows = size[0], cols = size[1], ld = size[2];
        const size_t each = s % 2; /* a flag for each row, or one */
        const ortc_pw_place in[6] = {
            [1] = {&half, 0, 0}, [3] = {along, 0, 1}, [4] = {full, cols, 1}, [5] = {flags + 1, each, 0}};
        size_t bad = 0, other = 0;
        memcpy(tile, before, sizeof tile);
        ortc_pw_tile(&code, in, tile, ld, tile, ld, rows, cols);
        for (size_t i = 0; i < ORTC_LENGTH(tile); i++) {
            const double v = (double)before[i];
            const size_t r = i / ld, c = i % ld;
            const bool inside = r < rows && c < cols;
            const double result = !inside               ? v
                                  : flags[1 + r * each] ? v / (1 + exp(-v)) * (1 + (double)(c % 64) / 128) +
                                                              (double)full[r * cols + c]
                                                        : v * 0.5;
            bad += !(fabs((double)tile[i] - result) <=
                     (inside ? 3e-6 * (1 + fabs(v)) + 2e-6 * fabs(result) : 0));
        }
        cr_expect_eq(bad, 0, "tile %zu x %zu: %zu elements", rows, cols, bad);
        /* the same in pieces */
        memcpy(pieces, before, sizeof pieces);
        for (size_t r = 0; r < rows; r += 3)
            for (size_t c = 0; c < cols; c += 37) {
                const ortc_pw_place at[6] = {[1] = in[1],
                                             [3] = {along + c, 0, 1},
                                             [4] = {full + r * cols + c, cols, 1},
                                             [5] = {flags + 1 + r * each, each, 0}};
                ortc_pw_tile(&code, at, pieces + r * ld + c, ld, pieces + r * ld + c, ld,
                             rows - r < 3 ? rows - r : 3, cols - c < 37 ? cols - c : 37);
            }
        for (size_t i = 0; i < ORTC_LENGTH(tile); i++)
            other += memcmp(&tile[i], &pieces[i], sizeof *tile) != 0;
        cr_expect_eq(other, 0, "tile %zu x %zu: %zu elements differ in pieces", rows, cols, other);
    }
}

/* x sigmoid(x) as bf16, which is all that is exact, whatever way it is rounded. */
Test(pointwise, a_sigmoid_that_becomes_bf16)
{
    enum { N = 1 << 14 };
    static float x[N];
    static uint16_t y[N];
    ortc_pw_builder b = {.size = sizeof b, .n_in = 1};
    const int32_t v = ortc_pw_load(&b, 0, ORTC_F32);
    ortc_pw_to(&b, ORTC_PW_STORE, ORTC_BF16,
               ortc_pw_2(&b, ORTC_PW_MUL, v, ortc_pw_1(&b, ORTC_PW_SIGMOID, v)));
    ortc_pw_code code;
    lower(&b, &code);
    for (size_t i = 0; i < N; i++) x[i] = (float)((double)i / 100 - 80);
    x[5] = NAN, x[6] = INFINITY, x[8] = -0.0F, x[9] = -3e38F;
    const uint32_t unit = ORTC_CPU_AMX | ORTC_CPU_AVX512;
    for (int amx = 0; amx < ((ortc_cpu_features() & unit) == unit ? 2 : 1); amx++) {
        size_t bad = 0;
        if (amx) code.lines[code.n - 1].op = ORTC_PWL_store_bf16_amx;
        ortc_pw_tile(&code, NULL, x, N, y, N, 1, N);
        for (size_t i = 0; i < N; i++) {
            const double want = (double)x[i] / (1 + exp(-(double)x[i])),
                         got = ortc_half_decode(y[i], ORTC_BF16);
            bad += isnan(want) ? !isnan(got) : got != want && !(fabs(got - want) <= 4.1e-3 * fabs(want));
        }
        cr_expect_eq(bad, 0, "%zu elements%s", bad, amx ? ", by AMX's instruction" : "");
    }
}

/* x by the normal distribution's function, with an addition before it, as products end. */
Test(pointwise, a_gelu_that_becomes_bf16)
{
    enum { N = 1 << 14 };
    static float x[N];
    static uint16_t y[N];
    ortc_pw_builder b = {.size = sizeof b, .n_in = 1};
    const int32_t x0 = ortc_pw_load(&b, 0, ORTC_F32),
                  v = ortc_pw_2(&b, ORTC_PW_ADD, x0, ortc_pw_const(&b, x0, 1));
    ortc_pw_to(&b, ORTC_PW_STORE, ORTC_BF16, ortc_expand_gelu(&b, v));
    ortc_pw_code code;
    lower(&b, &code);
    for (size_t i = 0; i < N; i++) x[i] = (float)((double)i / 512 - 16);
    x[5] = NAN, x[6] = INFINITY, x[7] = -INFINITY, x[9] = -3e38F;
    size_t bad = 0;
    ortc_pw_tile(&code, NULL, x, N, y, N, 1, N);
    for (size_t i = 0; i < N; i++) {
        const double at = (double)(x[i] + 1), want = at * (0.5 * erfc(-at / sqrt(2))),
                     got = ortc_half_decode(y[i], ORTC_BF16);
        bad += isnan(want) ? !isnan(got) : got != want && !(fabs(got - want) <= 4.4e-3 * fabs(want) + 1e-6);
    }
    cr_expect_eq(bad, 0, "%zu elements", bad);
}

/* Rows of pixels and columns of channels, of a tensor [N, C, pixels]: the call of kernels with tiles of their
 * own. */
Test(pointwise, a_tile_of_pixels_by_channels)
{
    enum { PIXELS = 10, ALL = 40, CHANNELS = 16, LD = 18 };
    float tile[PIXELS * LD], scale[64], residual[64 * ALL];
    ortc_pw_builder b = {.size = sizeof b, .n_in = 5};
    const int32_t x = ortc_pw_load(&b, 0, ORTC_F32);
    ortc_pw_to(&b, ORTC_PW_STORE, ORTC_F32,
               ortc_pw_2(&b, ORTC_PW_ADD, ortc_pw_2(&b, ORTC_PW_MUL, x, ortc_pw_load(&b, 3, ORTC_F32)),
                         ortc_pw_load(&b, 4, ORTC_F32)));
    ortc_tail_spec spec = {.has_rest = 1, .lies = {[3] = ORTC_PW_CHANNEL, [4] = ORTC_PW_FULL}};
    lower(&b, &spec.rest);
    for (size_t i = 0; i < ORTC_LENGTH(tile); i++) tile[i] = (float)i;
    for (size_t i = 0; i < ORTC_LENGTH(scale); i++) scale[i] = (float)(i % 7);
    for (size_t i = 0; i < ORTC_LENGTH(residual); i++) residual[i] = (float)(i * 3);
    const ortc_view in[5] = {
        [3] = {.dtype = ORTC_F32, .data = scale}, [4] = {.dtype = ORTC_F32, .data = residual}};
    const size_t c0 = 32, p0 = 25;
    const ortc_tail_place at = {
        .channel = (int64_t)c0, .channel_col = 1, .element = (int64_t)(c0 * ALL + p0), .row = 1, .col = ALL};
    ortc_tail_over(&spec, in, &at, tile, LD, tile, LD, PIXELS, CHANNELS);
    size_t bad = 0;
    for (size_t i = 0; i < ORTC_LENGTH(tile); i++) {
        const size_t p = i / LD, c = i % LD;
        const float want = c < CHANNELS ? (float)i * scale[c0 + c] + residual[(c0 + c) * ALL + p0 + p]
                                        : (float)i;
        bad += tile[i] != want;
    }
    cr_expect_eq(bad, 0);
}
