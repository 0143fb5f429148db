/* tests/session/test_pointwise.c: pointwise programs (ortc/program.h): what is one, how operators expand,
 * and which nodes become a group. That groups compute what their nodes do is tests/models/pointwise.py's. */
#include <criterion/criterion.h>
#include <math.h>

#include "graph/ir/pointwise.h"
#include "graph/specialise/specialise.h"
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
    uint64_t edits[8];
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

/* What products do to a tile in place: every activation that is a program, tiles of many sizes, nothing
 * beside them touched. */
Test(pointwise, a_tile_is_changed_in_place_and_nothing_beside_it)
{
    static const size_t sizes[][3] = {{1, 1, 1}, {14, 32, 32},    {14, 32, 40},
                                      {3, 1, 7}, {5, 1023, 1030}, {2, 3000, 3001}};
    static float tile[7000];
    for (int32_t act = ORTC_ACT_SIGMOID; act <= ORTC_ACT_HARD_SWISH; act++) {
        const ortc_epilogue epilogue = {sizeof epilogue, act, -1, -1, 0, 0};
        ortc_tail_spec spec;
        cr_assert(ortc_tail_spec_init(&epilogue, &spec) && spec.tile);
        for (size_t s = 0; s < ORTC_LENGTH(sizes); s++) {
            const size_t rows = sizes[s][0], cols = sizes[s][1], ld = sizes[s][2];
            size_t bad = 0;
            for (size_t i = 0; i < ORTC_LENGTH(tile); i++)
                tile[i] = (float)((double)(i * 7919 % 2003) / 100 - 10);
            spec.tile(spec.tile_arg, tile, rows, cols, ld, 0, 0);
            for (size_t i = 0; i < ORTC_LENGTH(tile); i++) {
                const double x = (double)(float)((double)(i * 7919 % 2003) / 100 - 10);
                const double y = act == ORTC_ACT_SIGMOID ? 1 / (1 + exp(-x))
                                 : act == ORTC_ACT_TANH  ? tanh(x)
                                 : act == ORTC_ACT_GELU  ? 0.5 * x * erfc(-x * 0.70710678118654752440)
                                 : act == ORTC_ACT_GELU_TANH
                                     ? 0.5 * x *
                                           (1 + tanh(0.79788456080286535588 * (x + 0.044715 * pow(x, 3))))
                                 : act == ORTC_ACT_SILU ? x / (1 + exp(-x))
                                                        : x * fmin(fmax(x / 6 + 0.5, 0), 1);
                const double want = i / ld < rows && i % ld < cols ? y : x;
                bad += !(fabs((double)tile[i] - want) <=
                         (i / ld < rows && i % ld < cols ? 2e-6 * (1 + fabs(x)) : 0));
            }
            cr_expect_eq(bad, 0, "activation %d, tile %zu: %zu elements", (int)act, s, bad);
        }
    }
}
