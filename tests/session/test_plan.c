/* tests/session/test_plan.c: what the planner makes of small graphs, and that a plan in which any one
 * invariant is damaged is refused by the check (runtime/plan/check.c). */
#include <criterion/criterion.h>
#include <stdlib.h>

#include "kernels/common/cpu_features.h"
#include "runtime/call/call.h"
#include "runtime/plan/plan.h"
#include "runtime/registry/registry.h"
#include "runtime/session/create.h"

static ortc_graph *g;
static ortc_model store; /* a session keeps packed forms with its model */
static ortc_session *s;
static ortc_program *p;
static ortc_plan_request request;
static ortc_planner_input inputs[4];
static bool wanted[4];
static uint32_t memory[4];
static ortc_error e;

static void setup(void)
{
    e = (ortc_error)ORTC_ERROR_INIT;
    memset(inputs, 0, sizeof inputs);
    memset(memory, 0, sizeof memory);
    for (size_t i = 0; i < 4; i++) wanted[i] = true;
    cr_assert_eq(ortc_registry_init(&e), ORTC_OK, "%s", e.text);
    cr_assert(ortc_pack_store_init(&store.packed, 0));
    cr_assert_not_null(g = ortc_graph_create(NULL));
}

static void teardown(void)
{
    ortc_program_release(p);
    ortc_session_release(s);
    for (size_t i = 0; i < 4; i++) ortc_value_release((ortc_value *)(uintptr_t)inputs[i].value);
    ortc_pack_store_deinit(&store.packed);
}
TestSuite(plan, .init = setup, .fini = teardown);

/* ---- Building ------------------------------------------------------------------------------------------ */

static ortc_edge *input(const char *name, ortc_dtype t, int32_t rank, const ortc_dim *dims)
{
    ortc_edge *x = ortc_edge_create(g, name);
    cr_assert(ortc_edge_set_shape(x, ortc_tensor_type(t), rank, dims));
    cr_assert(ortc_graph_add_input(g, name, x));
    return x;
}

/* Two dims: "rows" (a symbol) times 16, f32. */
static ortc_edge *rows(const char *name)
{
    ortc_dim n;
    cr_assert_eq(ortc_dims_symbol(g->dims, &g->arena, "rows", &n), ORTC_OK);
    return input(name, ORTC_F32, 2, (ortc_dim[]){n, 16});
}

static ortc_edge *ints(int64_t count, const int64_t *values)
{
    ortc_constant *c;
    int64_t *data = malloc((size_t)count * sizeof *data);
    memcpy(data, values, (size_t)count * sizeof *data);
    ortc_constant_create(ORTC_I64, 1, &count, data, (size_t)count * sizeof *data, free, data, &c, &e);
    return ortc_graph_constant(g, NULL, c);
}

static ortc_edge *floats(int64_t count)
{
    ortc_constant *c;
    float *data = calloc((size_t)count, sizeof *data);
    ortc_constant_create(ORTC_F32, 1, &count, data, (size_t)count * sizeof *data, free, data, &c, &e);
    return ortc_graph_constant(g, NULL, c);
}

/* 64 floats, as in a file, at an odd address. */
static ortc_edge *odd_floats(void)
{
    static char bytes[64 * sizeof(float) + 1];
    ortc_constant *c;
    char *at = bytes + ((uintptr_t)bytes + 1) % 2;
    ortc_constant_create(ORTC_F32, 1, (int64_t[]){64}, at, 64 * sizeof(float), NULL, NULL, &c, &e);
    return ortc_graph_constant(g, NULL, c);
}

static ortc_node *node(const char *op, uint32_t n_in, ortc_edge *const *in, uint32_t n_out)
{
    ortc_node *n = ortc_node_create(g, ortc_op_find("", op), NULL, n_in, n_out);
    cr_assert_not_null(n, "%s", op);
    for (uint32_t i = 0; i < n_in; i++)
        if (in[i]) ortc_node_set_in(n, i, in[i]);
    for (uint32_t i = 0; i < n_out; i++) ortc_node_set_out(n, i, ortc_edge_create(g, NULL));
    return n;
}

static ortc_edge *apply(const char *op, ortc_edge *a, ortc_edge *b)
{
    return node(op, b ? 2 : 1, (ortc_edge *[]){a, b}, 1)->out[0];
}

static void output(const char *name, ortc_edge *y) { cr_assert(ortc_graph_add_output(g, name, y)); }

static void open_session(const char *providers)
{
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.providers = providers;
    o.threads = 1;
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_session_from_graph(&store, g, &o, &s, &e), ORTC_OK, "%s", e.text);
}

static void give(uint32_t i, ortc_dtype t, int32_t rank, const int64_t *dims)
{
    ortc_value *v;
    ortc_value_release((ortc_value *)(uintptr_t)inputs[i].value);
    cr_assert_eq(ortc_value_create(t, rank, dims, &v, &e), ORTC_OK);
    memset(v->data, 0, v->bytes);
    inputs[i].value = v;
}

/* Plans for what is given and wanted now; every plan of these tests is sound. */
static void plan(void)
{
    ortc_run_env env = {.threads = 1, .error = &e};
    ortc_program_release(p);
    request = (ortc_plan_request){inputs, wanted, memory, NULL, NULL};
    cr_assert_eq(ortc_program_build(&s->unit.placed, &store.packed, &request, &env, &p, &e), ORTC_OK, "%s",
                 e.text);
    cr_assert_eq(ortc_program_check(p, &s->unit.placed, &request, &e), ORTC_OK, "%s", e.text);
}

static void plan_rows(int64_t n)
{
    give(0, ORTC_F32, 2, (int64_t[]){n, 16});
    plan();
}

/* The index of the first step of this kind, or of this operator. */
static uint32_t step_of(int kind, const char *op)
{
    for (uint32_t i = 0; i < p->n_steps; i++)
        if (p->steps[i].kind == kind && (!op || !strcmp(p->steps[i].node->type, op))) return i;
    cr_assert_fail("there is no step %d %s", kind, op ? op : "");
    return 0;
}

/* ---- What is planned ----------------------------------------------------------------------------------- */

Test(plan, a_chain_takes_two_blocks_and_the_last_writes_the_result)
{
    ortc_edge *x = rows("x");
    for (int i = 0; i < 4; i++) x = apply("Transpose", x, NULL); /* never in place */
    output("y", x);
    open_session("ref");
    plan_rows(32);
    cr_assert_eq(p->n_steps, 4);
    cr_expect_eq(p->steps[0].in[0].from, ORTC_FROM_INPUT);
    for (uint32_t i = 0; i < 3; i++) cr_expect_eq(p->steps[i].out[0].from, ORTC_FROM_ARENA);
    cr_expect_eq(p->steps[0].out[0].offset, p->steps[2].out[0].offset, "the first is free again");
    cr_expect_neq(p->steps[0].out[0].offset, p->steps[1].out[0].offset);
    cr_expect_eq(p->steps[3].out[0].from, ORTC_FROM_OUTPUT);
    cr_expect_eq(p->arena_bytes[0], 2 * 32 * 16 * sizeof(float));
    cr_expect_eq(p->outputs[0].dims[0], 32);
    plan_rows(64);
    cr_expect_eq(p->arena_bytes[0], 2 * 64 * 16 * sizeof(float));
}

Test(plan, in_place_takes_one_block_and_says_so)
{
    ortc_edge *x = rows("x");
    output("y", apply("Abs", apply("Neg", apply("Abs", apply("Neg", x, NULL), NULL), NULL), NULL));
    open_session("ref");
    plan_rows(32);
    cr_assert_eq(p->n_steps, 4);
    for (uint32_t i = 0; i < 3; i++) cr_expect_eq(p->steps[i].out[0].over, i > 0, "step %u", i);
    cr_expect_eq(p->arena_bytes[0], 32 * 16 * sizeof(float));
}

/* Every row of a minus its first, where a is needed no more: in its place, the first row would be gone before
 * the others are made. */
Test(plan, not_in_place_where_another_input_is_a_part_of_it)
{
    ortc_edge *x = rows("x"), *a = apply("Neg", x, NULL);
    ortc_edge *first =
        node("Slice", 3, (ortc_edge *[]){a, ints(1, (int64_t[]){0}), ints(1, (int64_t[]){1})}, 1)->out[0];
    output("y", apply("Transpose", apply("Sub", a, first), NULL));
    open_session("ref");
    plan_rows(32);
    cr_assert_eq(p->n_steps, 3);
    cr_expect_eq(p->steps[1].in[1].root, a->id);
    cr_expect_eq(p->steps[1].out[0].over, 0);
    cr_expect_neq(p->steps[1].out[0].offset, p->steps[1].in[0].offset);
}

Test(plan, views_are_no_steps)
{
    ortc_edge *x = rows("x"), *a = apply("Neg", x, NULL);
    ortc_edge *flat = apply("Reshape", a, ints(1, (int64_t[]){-1}));
    ortc_edge *part =
        node("Slice", 3, (ortc_edge *[]){a, ints(1, (int64_t[]){2}), ints(1, (int64_t[]){4})}, 1)->out[0];
    output("y", apply("Neg", flat, NULL));
    output("z", apply("Neg", part, NULL));
    open_session("ref");
    plan_rows(8);
    cr_assert_eq(p->n_steps, 3);
    cr_expect_eq(p->n_views, 2);
    const ortc_operand *made = &p->steps[0].out[0];
    for (uint32_t i = 1; i < 3; i++) {
        const ortc_operand *o = &p->steps[i].in[0];
        const bool is_part = o->view.rank == 2;
        cr_expect_eq(o->from, ORTC_FROM_ARENA);
        cr_expect_eq(o->root, a->id);
        cr_expect_eq(o->offset, made->offset + (is_part ? 2 * 16 * sizeof(float) : 0));
        cr_expect_eq(o->view.dims[0], is_part ? 2 : 8 * 16);
    }
}

Test(plan, what_only_computes_shapes_is_not_run)
{
    ortc_edge *x = rows("x");
    ortc_edge *n = apply("Gather", apply("Shape", x, NULL), ints(1, (int64_t[]){0}));
    ortc_edge *target = node("Concat", 2, (ortc_edge *[]){n, ints(2, (int64_t[]){4, 4})}, 1)->out[0];
    ortc_attr axis = {.size = sizeof axis, .kind = ORTC_ATTR_INT};
    ortc_node_set_attr(target->producer, "axis", &axis);
    output("y", apply("Neg", apply("Reshape", x, target), NULL));
    open_session("ref");
    plan_rows(5);
    cr_expect_eq(p->n_steps, 1);
    cr_expect_eq(p->n_folded, 3);
    cr_expect_eq(p->outputs[0].rank, 3);
    cr_expect_eq(p->outputs[0].dims[0], 5);
}

Test(plan, only_what_is_wanted_runs)
{
    ortc_edge *x = rows("x"), *a = apply("Neg", x, NULL);
    output("a", a);
    output("b", apply("Abs", a, NULL));
    open_session("ref");
    wanted[1] = false;
    plan_rows(2);
    cr_expect_eq(p->n_steps, 1);
    wanted[0] = false, wanted[1] = true;
    plan_rows(2);
    cr_expect_eq(p->n_steps, 2);
}

Test(plan, late_extents_end_a_segment)
{
    ortc_edge *x = rows("x");
    output("y", apply("Neg", apply("NonZero", x, NULL), NULL));
    open_session("ref");
    plan_rows(2);
    cr_expect_eq(p->n_steps, 1);
    cr_expect(p->chained);
    cr_assert_not_null(p->end);
    cr_expect_str_eq(p->end->type, "Neg");
    cr_assert_eq(p->n_slots, 1);
    cr_expect(p->slots[0].late);
    cr_expect_eq(p->steps[0].out[0].from, ORTC_FROM_SLOT);
}

static void load_sim(void) { cr_assert_eq(ortc_plugin_load(getenv("ORTC_SIM"), &e), ORTC_OK, "%s", e.text); }

/* Neg on the device, Abs on the host, Neg on the device again. */
static void there_and_back(void)
{
    ortc_edge *x = rows("x");
    load_sim();
    output("y", apply("Neg", apply("Abs", apply("Neg", x, NULL), NULL), NULL));
    open_session("sim:only=Neg");
    plan_rows(32);
}

Test(plan, devices_get_copies_signals_and_waits)
{
    static const int kinds[] = {ORTC_STEP_COPY,   ORTC_STEP_KERNEL, ORTC_STEP_COPY,
                                ORTC_STEP_SIGNAL, ORTC_STEP_WAIT,   ORTC_STEP_KERNEL,
                                ORTC_STEP_COPY,   ORTC_STEP_KERNEL, ORTC_STEP_COPY};
    there_and_back();
    cr_assert_eq(p->n_steps, ORTC_LENGTH(kinds));
    for (uint32_t i = 0; i < p->n_steps; i++) cr_expect_eq(p->steps[i].kind, kinds[i], "step %u", i);
    cr_expect_eq(p->n_events, 1);
    cr_expect_eq(p->steps[8].out[0].from, ORTC_FROM_OUTPUT);
}

/* ---- What the check refuses ---------------------------------------------------------------------------- */

static void expect_refused(const char *what)
{
    e.text[0] = 0;
    cr_expect_eq(ortc_program_check(p, &s->unit.placed, &request, &e), ORTC_INTERNAL, "%s", what);
    cr_expect(strstr(e.text, what), "expected '%s': %s", what, e.text);
}

static void expect_sound(void)
{
    cr_expect_eq(ortc_program_check(p, &s->unit.placed, &request, &e), ORTC_OK, "%s", e.text);
}

static void swap_steps(uint32_t a, uint32_t b)
{
    ortc_step t = p->steps[a];
    p->steps[a] = p->steps[b];
    p->steps[b] = t;
}

/* Damage, refusal, repair. */
#define DAMAGED(lvalue, value, text) \
    do { \
        __typeof__(lvalue) before = (lvalue); \
        (lvalue) = (value); \
        expect_refused(text); \
        (lvalue) = before; \
        expect_sound(); \
    } while (0)

static ortc_edge *join(uint32_t n, ortc_edge *const *x)
{
    ortc_attr axis = {.size = sizeof axis, .kind = ORTC_ATTR_INT};
    ortc_edge *y = node("Concat", n, x, 1)->out[0];
    ortc_node_set_attr(y->producer, "axis", &axis);
    return y;
}

/* Joins within joins: what two of them want is where the last has it, of what is read twice there is one, an
 * input stays where it is, and parts of one value go along if all of it does. */
Test(plan, what_is_joined_is_made_there)
{
    const size_t row = 16 * sizeof(float);
    ortc_edge *x = rows("x"), *a = apply("Neg", x, NULL), *b = apply("Transpose", x, NULL), *half[2];
    for (int64_t i = 0; i < 2; i++) {
        ortc_edge *from = ints(1, (int64_t[]){8 * i}), *to = ints(1, (int64_t[]){8 * i + 8});
        half[i] = node("Slice", 3, (ortc_edge *[]){b, from, to}, 1)->out[0];
    }
    ortc_edge *twice = join(2, (ortc_edge *[]){a, a}), *some = join(2, (ortc_edge *[]){x, half[0]});
    output("y", apply("Transpose", join(3, (ortc_edge *[]){twice, half[0], half[1]}), NULL));
    output("z", apply("Transpose", join(2, (ortc_edge *[]){some, twice}), NULL));
    open_session("cpu");
    plan_rows(16);
    static const bool parts[4][3] = {{true}, {false}, {false, true, true}, {true, true}};
    static const size_t at[3] = {0, 32, 40};
    ortc_step *step = p->steps;
    for (uint32_t i = 0; i < 4; i++, step++) {
        while (strcmp(step->node->type, "Concat")) step++;
        for (uint32_t k = 0; k < step->n_in; k++) cr_expect_eq(step->in[k].part, parts[i][k], "%u %u", i, k);
        for (uint32_t k = 1; k < step->n_in && i == 2; k++)
            cr_expect_eq(step->in[k].offset, step->out[0].offset + at[k] * row);
        if (i == 3) cr_expect_eq(step->in[1].offset, step->out[0].offset + 24 * row);
        if (i >= 2) DAMAGED(step->in[1].part, false, "over its input 1");
    }
}

Test(plan, the_check_refuses_wrong_order_and_lifetimes)
{
    ortc_edge *x = rows("x"), *a = apply("Neg", x, NULL), *b = apply("Transpose", a, NULL);
    output("y", apply("Add", apply("Transpose", b, NULL), a)); /* a lives to the end */
    open_session("ref");
    plan_rows(32);
    cr_assert_eq(p->n_steps, 4);
    swap_steps(0, 1);
    expect_refused("not there");
    swap_steps(0, 1);
    expect_sound();
    ortc_step *second = &p->steps[1];
    DAMAGED(second->out[0].offset, p->steps[0].out[0].offset, "over its input 0");
    /* the third result over the first, which the last step still reads */
    const size_t at = p->steps[2].out[0].offset;
    p->steps[2].out[0].offset = p->steps[3].in[0].offset = p->steps[0].out[0].offset;
    expect_refused("not there: not made yet, or written over");
    p->steps[2].out[0].offset = p->steps[3].in[0].offset = at;
    expect_sound();
    DAMAGED(second->in[0].offset, second->in[0].offset + 64, "lies in");
    DAMAGED(second->in[0].root, x->id, "not there");
    DAMAGED(p->arena_bytes[0], p->arena_bytes[0] - 256, "of a range that has");
    DAMAGED(p->steps[3].out[0].offset, 64, "of a range that has");
    DAMAGED(p->steps[3].out[0].from, ORTC_FROM_INPUT, "has no place");
    DAMAGED(p->steps[3].out[0].from, ORTC_FROM_SLOT, "a slot that the program does not have");
    DAMAGED(p->n_steps, 3, "output 'y' is not made");
    DAMAGED(p->steps[0].in[0].index, 7, "input 7, which is not given");
    DAMAGED(p->steps[0].in[0].offset, 64, "of a value that has");
    DAMAGED(p->steps[0].device, 9, "there is no device 9");
    DAMAGED(p->steps[0].out[0].space, 1, "there is no space 1");
}

Test(plan, the_check_refuses_views_outside_of_a_constant)
{
    ortc_edge *x = rows("x"), *c = floats(64);
    ortc_edge *part =
        node("Slice", 3, (ortc_edge *[]){c, ints(1, (int64_t[]){48}), ints(1, (int64_t[]){64})}, 1)->out[0];
    output("y", apply("Add", x, part));
    open_session("ref");
    plan_rows(2);
    cr_assert_eq(p->n_steps, 1);
    cr_assert_eq(p->steps[0].in[1].from, ORTC_FROM_POINTER);
    void **data = &p->steps[0].in[1].view.data;
    DAMAGED(*data, (char *)*data + 4, "outside the constant");
    DAMAGED(*data, NULL, "has no address");
}

/* TensorScatter writes into its first input where that is nobody else's. */
Test(plan, the_check_refuses_what_is_in_place_and_does_not_say_so)
{
    const int64_t cache[3] = {1, 8, 16}, update[3] = {1, 2, 16};
    ortc_edge *x = input("x", ORTC_F32, 3, cache), *u = input("u", ORTC_F32, 3, update);
    ortc_edge *a = apply("Neg", x, NULL);
    ortc_edge *b = node("TensorScatter", 2, (ortc_edge *[]){a, u}, 1)->out[0];
    ortc_attr axis = {.size = sizeof axis, .kind = ORTC_ATTR_INT};
    axis.i = 1;
    ortc_node_set_attr(b->producer, "axis", &axis);
    output("y", apply("Neg", b, NULL));
    open_session("ref");
    give(0, ORTC_F32, 3, cache);
    give(1, ORTC_F32, 3, update);
    plan();
    ortc_step *t = &p->steps[step_of(ORTC_STEP_KERNEL, "TensorScatter")];
    cr_assert_eq(t->out[0].over, 1);
    cr_expect_eq(t->out[0].offset, t->in[0].offset);
    DAMAGED(t->out[0].over, 0, "over its input 0");
    DAMAGED(t->out[0].over, 5, "an input that is not there");
}

Test(plan, the_check_refuses_workspace_over_operands)
{
    ortc_edge *x = rows("x"), *a = apply("Neg", x, NULL);
    output("y", apply("Neg", apply("Transpose", a, NULL), NULL));
    open_session("ref");
    plan_rows(32);
    ortc_step *step = &p->steps[1];
    step->workspace_at = p->steps[1].in[0].offset;
    DAMAGED(step->workspace, 256, "over its input 0");
    step->workspace_at = p->steps[1].out[0].offset;
    DAMAGED(step->workspace, 256, "its workspace lies over output 0");
    step->workspace_at = p->arena_bytes[0];
    DAMAGED(step->workspace, 256, "of a range that has");
}

Test(plan, the_check_refuses_copies_that_nobody_waits_for)
{
    there_and_back();
    const uint32_t wait = step_of(ORTC_STEP_WAIT, NULL), signal = step_of(ORTC_STEP_SIGNAL, NULL),
                   host = step_of(ORTC_STEP_KERNEL, "Abs");
    swap_steps(wait, host);
    expect_refused("nothing waits for the copy");
    swap_steps(wait, host);
    expect_sound();
    swap_steps(wait, signal);
    expect_refused("nobody has signalled");
    swap_steps(wait, signal);
    expect_sound();
    swap_steps(signal, signal - 1); /* the signal in front of the copy */
    expect_refused("nothing waits for the copy");
    swap_steps(signal, signal - 1);
    expect_sound();
    DAMAGED(p->steps[wait].kind, ORTC_STEP_SIGNAL, "signalled before");
    DAMAGED(p->steps[wait].event, 3, "there is no event 3");
    DAMAGED(p->steps[wait].device, 1, "another device's");
    DAMAGED(p->steps[host].in[0].space, 1, "in the memory of device 0");
}

/* Host memory that a queue is still reading must not be written. */
Test(plan, the_check_refuses_writing_what_a_queue_reads)
{
    ortc_edge *x = rows("x");
    load_sim();
    ortc_edge *a = apply("Abs", x, NULL), *there = apply("Neg", a, NULL);
    ortc_edge *b = apply("Abs", apply("Abs", x, NULL), NULL);
    output("y", there);
    output("z", b);
    open_session("sim:only=Neg");
    plan_rows(512);
    const uint32_t copy = step_of(ORTC_STEP_COPY, NULL);
    cr_assert_eq(p->steps[copy].out[0].from, ORTC_FROM_ARENA);
    cr_assert_eq(p->steps[copy].in[0].root, a->id);
    for (uint32_t i = copy + 1; i < p->n_steps; i++) {
        ortc_step *step = &p->steps[i];
        if (step->kind != ORTC_STEP_KERNEL || step->out[0].space || step->out[0].from != ORTC_FROM_ARENA)
            continue;
        cr_expect_neq(step->out[0].offset, p->steps[copy].in[0].offset);
        DAMAGED(step->out[0].offset, p->steps[copy].in[0].offset, "may still be reading");
        return;
    }
    cr_assert_fail("no host kernel behind the copy");
}

Test(plan, the_check_refuses_ranges_out_of_order)
{
    ortc_edge *x = rows("x");
    load_sim();
    output("y", apply("Neg", apply("Neg", apply("Neg", x, NULL), NULL), NULL));
    open_session("sim");
    plan_rows(512);
    cr_assert_eq(p->n_ranges, 1);
    cr_expect_eq(p->ranges[0].count, 3);
    DAMAGED(p->ranges[0].count, 4, "cannot be captured");
    DAMAGED(p->ranges[0].count, 400, "out of order");
    DAMAGED(p->ranges[0].first, 0, "cannot be captured");
    DAMAGED(p->steps[2].captures, false, "cannot be captured");
}

/* ---- Choice -------------------------------------------------------------------------------------------- */

static ortc_edge *image(int64_t channels, int64_t extent)
{
    return input("x", ORTC_F32, 4, (ortc_dim[]){1, channels, extent, extent});
}

/* Conv of `filters` with a square window, padded so that the image keeps its size. */
static void conv(ortc_edge *x, int64_t filters, int64_t window, int64_t group)
{
    const int64_t channels = x->dims[1] / group, dims[4] = {filters, channels, window, window};
    const int64_t pads[4] = {window / 2, window / 2, window / 2, window / 2};
    const size_t bytes = (size_t)(filters * channels * window * window) * sizeof(float);
    ortc_constant *c;
    float *data = calloc(1, bytes);
    ortc_constant_create(ORTC_F32, 4, dims, data, bytes, free, data, &c, &e);
    ortc_edge *w = ortc_graph_constant(g, NULL, c);
    ortc_node *n = node("Conv", 2, (ortc_edge *[]){x, w}, 1);
    n->name = "the_conv";
    ortc_attr a = {.size = sizeof a, .kind = ORTC_ATTR_INT, .i = group};
    ortc_node_set_attr(n, "group", &a);
    a = (ortc_attr){.size = sizeof a, .kind = ORTC_ATTR_INTS, .count = 4, .u = {.ints = pads}};
    ortc_node_set_attr(n, "pads", &a);
    output("y", n->out[0]);
}

/* The decisions for a table of shapes, plain before and behind: what is computed in blocks stands between two
 * Reorders, which small images are worth. Those of products depend on the width of a tile; 128 pixels in rest
 * 1 are the same for all. Blocks know no windows of 65 x 65. AMX, which takes others, is left out. */
Test(plan, conv_is_chosen_by_shape)
{
    static const struct {
        int64_t channels, extent, filters, window, group;
        const char *kernel;
    } table[] = {{32, 16, 32, 3, 32, "conv.depthwise"},     {12, 32, 12, 65, 4, "conv.columns"},
                 {64, 32, 64, 1, 1, "conv.pointwise"},      {64, 56, 64, 3, 1, "conv.winograd_4x4"},
                 {128, 7, 128, 1, 1, "conv.turned"},        {128, 7, 4, 65, 2, "conv.columns"},
                 {1024, 7, 1024, 1, 1, "conv.blocked_1x1"}, {64, 32, 64, 3, 16, "conv.blocked_depthwise"}};
    ortc_cpu_features_set_mask(~(uint32_t)ORTC_CPU_AMX);
    for (size_t i = 0; i < ORTC_LENGTH(table); i++) {
        if (i) cr_assert_not_null(g = ortc_graph_create(NULL));
        conv(image(table[i].channels, table[i].extent), table[i].filters, table[i].window, table[i].group);
        open_session("cpu");
        give(0, ORTC_F32, 4, (int64_t[]){1, table[i].channels, table[i].extent, table[i].extent});
        plan();
        const ortc_step *step = &p->steps[0];
        while (strncmp(step->name, "conv.", 5) && step < &p->steps[p->n_steps - 1]) step++;
        cr_expect_str_eq(step->name, table[i].kernel, "line %zu: %s", i, step->name);
        const bool blocks = strstr(step->name, "blocked") || strstr(step->name, "winograd");
        cr_expect_eq(p->n_steps, blocks ? 3 : 1, "line %zu", i);
        cr_expect_eq(p->packs.count, strcmp(table[i].kernel, "conv.depthwise") != 0,
                     "line %zu: only the winner packs", i);
        for (uint32_t k = 0; k < step->n_offers; k++)
            if (!step->offers[k].layout || blocks) /* others cost Reorders, too */
                cr_expect_leq(step->clocks, step->offers[k].clocks, "line %zu", i);
        ortc_program_release(p), p = NULL;
        ortc_session_release(s), s = NULL;
    }
}

/* Whatever sizes come, and in whatever order: W is packed in the form of the kernel for the size that is
 * expected, and in that of the last candidate. */
Test(plan, a_constant_has_two_packed_forms_at_most)
{
    static const int64_t sizes[][2] = {{7, 7},   {224, 224}, {1, 1},  {56, 56},
                                       {3, 300}, {14, 14},   {2, 33}, {7, 7}};
    static const int64_t kinds[][3] = {{64, 64, 3}, {128, 128, 1}, {1024, 1024, 1}, {128, 128, 3}};
    for (size_t k = 0; k < ORTC_LENGTH(kinds); k++) {
        const ortc_pack_item *seen[ORTC_LENGTH(sizes)];
        const char *first = NULL;
        ortc_program *kept[ORTC_LENGTH(sizes)];
        size_t n = 0;
        ortc_dim h, w;
        if (k) cr_assert_not_null(g = ortc_graph_create(NULL));
        cr_assert_eq(ortc_dims_symbol(g->dims, &g->arena, "h", &h), ORTC_OK);
        cr_assert_eq(ortc_dims_symbol(g->dims, &g->arena, "w", &w), ORTC_OK);
        conv(input("x", ORTC_F32, 4, (ortc_dim[]){1, kinds[k][0], h, w}), kinds[k][1], kinds[k][2], 1);
        open_session("cpu");
        for (size_t i = 0; i < ORTC_LENGTH(sizes); i++) {
            give(0, ORTC_F32, 4, (int64_t[]){1, kinds[k][0], sizes[i][0], sizes[i][1]});
            plan();
            for (size_t j = 0; j < p->packs.count; j++) {
                bool again = false;
                for (size_t o = 0; o < n; o++) again |= seen[o] == p->packs.data[j];
                if (!again) seen[n++] = p->packs.data[j];
            }
            const ortc_step *step = &p->steps[0];
            while (strncmp(step->name, "conv.", 5)) step++;
            if (!i) first = step->name;
            if (i + 1 == ORTC_LENGTH(sizes))
                cr_expect_str_eq(step->name, first, "kind %zu: what came between", k);
            kept[i] = p, p = NULL; /* so that forms stay */
        }
        cr_expect_leq(n, 2u, "kind %zu has %zu packed forms", k, n);
        for (size_t i = 0; i < ORTC_LENGTH(sizes); i++) ortc_program_release(kept[i]);
        ortc_session_release(s), s = NULL;
    }
}

/* A program in the cache under the number `key`, of which the caller keeps nothing. */
static void put_program(ortc_plan_cache *cache, int key, ortc_pack_item *item)
{
    ortc_program *made = calloc(1, sizeof *made);
    cr_assert_not_null(made);
    atomic_init(&made->references, 1);
    made->store = &store.packed;
    if (item) cr_assert(ortc_array_push(&made->packs, item));
    cr_assert(ortc_plan_cache_put(cache, made, &key, sizeof key));
    ortc_program_release(made);
}
static bool holds(ortc_plan_cache *cache, int key)
{
    ortc_program *found = ortc_plan_cache_get(cache, &key, sizeof key);
    ortc_program_release(found);
    return found != NULL;
}

Test(plan, who_alone_has_a_packed_form_leaves_the_cache_last)
{
    ortc_plan_cache cache;
    ortc_pack_item *item = calloc(1, sizeof *item);
    cr_assert_not_null(item);
    item->references = 1; /* of the first program */
    item->failed = true;  /* it is in no bucket of the store */
    cr_assert(ortc_plan_cache_init(&cache, UINT64_MAX));
    put_program(&cache, 0, item);
    cache.max_bytes = 4 * cache.bytes;
    for (int i = 1; i < 50; i++) put_program(&cache, i, NULL);
    cr_expect(holds(&cache, 49) && !holds(&cache, 40), "what is not used leaves");
    cr_expect(holds(&cache, 0), "but for a packed form that nobody else has");
    item->references = 2; /* as if another one had it, too */
    for (int i = 50; i < 100; i++) put_program(&cache, i, NULL);
    cr_expect_not(holds(&cache, 0));
    cr_expect_eq(item->references, 1u);
    put_program(&cache, 100, item);
    for (int i = 101; i < 6000; i++) put_program(&cache, i, NULL);
    cr_expect_not(holds(&cache, 100), "nor for ever");
    ortc_plan_cache_deinit(&cache);
    ortc_graph_destroy(g);
}

static ortc_status plan_chosen(const char *choice)
{
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    ortc_graph *copy;
    ortc_run_env env = {.threads = 1, .error = &e};
    o.choose = &choice;
    o.n_choose = 1;
    ortc_program_release(p), p = NULL;
    ortc_session_release(s), s = NULL;
    cr_assert_eq(ortc_graph_clone(g, &copy, &e), ORTC_OK);
    ORTC_TRY(ortc_session_from_graph(&store, copy, &o, &s, &e));
    request = (ortc_plan_request){inputs, wanted, memory, NULL, NULL};
    return ortc_program_build(&s->unit.placed, &store.packed, &request, &env, &p, &e);
}

Test(plan, a_choice_can_be_forced)
{
    conv(image(12, 32), 12, 65, 4);
    give(0, ORTC_F32, 4, (int64_t[]){1, 12, 32, 32});
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK);
    cr_assert_eq(plan_chosen("Relu=relu.fast"), ORTC_OK, "%s", e.text);
    cr_expect_str_eq(p->steps[0].name, "conv.columns");
    cr_expect_eq(plan_chosen("the_conv=conv.turned"), ORTC_INVALID_ARGUMENT, "too few filters");
    cr_expect(strstr(e.text, "'conv.turned'"), "%s", e.text);
    cr_assert_eq(plan_chosen("Conv=conv.turned"), ORTC_OK, "%s", e.text);
    cr_expect_str_eq(p->steps[0].name, "conv.columns", "free where it cannot");
    cr_expect_eq(plan_chosen("nothing"), ORTC_INVALID_ARGUMENT);
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK);
    ortc_graph_destroy(g);
    cr_assert_not_null(g = ortc_graph_create(NULL));
    conv(image(128, 7), 128, 3, 1);
    give(0, ORTC_F32, 4, (int64_t[]){1, 128, 7, 7});
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK);
    cr_assert_eq(plan_chosen("the_conv=conv.columns"), ORTC_OK, "%s", e.text);
    cr_expect_str_eq(p->steps[0].name, "conv.columns");
    ortc_graph_destroy(g);
}

Test(plan, a_constant_at_an_odd_address_is_copied_only_for_kernels_that_mind)
{
    ortc_edge *x = input("x", ORTC_I64, 1, (ortc_dim[]){64}), *a = input("a", ORTC_F32, 1, (ortc_dim[]){64});
    output("y", apply("Gather", odd_floats(), x));
    output("z", apply("Add", a, odd_floats()));
    open_session("cpu");
    give(0, ORTC_I64, 1, (int64_t[]){64});
    give(1, ORTC_F32, 1, (int64_t[]){64});
    wanted[1] = false;
    plan();
    cr_expect_eq(p->packed_bytes, 0);
    wanted[0] = false, wanted[1] = true;
    plan();
    cr_expect_gt(p->packed_bytes, 0);
}
