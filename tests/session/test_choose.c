/* tests/session/test_choose.c: which kernels and layouts are chosen (runtime/plan/choose.h), on random graphs
 * of an operator whose kernels like layouts to different degrees: as good as the best of all choices, and
 * right. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>

#include "runtime/call/call.h"
#include "runtime/plan/choose.h"
#include "runtime/registry/registry.h"
#include "runtime/session/create.h"

#define LAYOUT_A ortc_layout_blocked(1, 4)
#define LAYOUT_B ortc_layout_last(3, 1)

/* ---- test.Step: the sum of its inputs and 1, by a kernel that takes any layout ------------------------- */

/* Half the clocks an element: plain, in blocks, channels last; 0: not done. "likes" is asked for by itself.
 * */
typedef struct step_state {
    int64_t clocks[3], likes;
} step_state;

static ortc_status prepare(const ortc_node *n, ortc_prep *p, void **out)
{
    size_t count;
    const int64_t *clocks = ortc_node_ints(n, "clocks", &count);
    step_state *s = calloc(1, sizeof *s);
    (void)p;
    if (!s || count != 3) return free(s), ORTC_INVALID_MODEL;
    memcpy(s->clocks, clocks, sizeof s->clocks);
    s->likes = ortc_node_int(n, "likes", 0);
    *out = s;
    return ORTC_OK;
}

static ortc_layout layout_of(int64_t i) { return i == 1 ? LAYOUT_A : i == 2 ? LAYOUT_B : ORTC_PLAIN; }

static ortc_status choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const step_state *s = state;
    int64_t way = 0;
    if (q->layout == ORTC_ANY_LAYOUT) way = s->likes;
    for (int64_t i = 1; i < 3; i++)
        if (q->layout == layout_of(i)) way = i;
    if ((q->layout && !way) || !s->clocks[way]) return ortc_no(why, "not in this layout");
    o->clocks = 2.0 * (double)(s->clocks[way] * ortc_view_count(&q->out[0]));
    for (uint32_t i = 0; i < q->n_in; i++) o->in[i] = layout_of(way);
    o->out[0] = layout_of(way);
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *y = &c->out[0];
    float *out = y->data;
    int64_t index[3];
    (void)state, (void)pstate;
    memset(out, 0, (size_t)ortc_view_stored(y) * sizeof *out);
    for (int64_t i = 0; i < ortc_view_count(y); i++) {
        for (int64_t d = 2, rest = i; d >= 0; rest /= y->dims[d--]) index[d] = rest % y->dims[d];
        float sum = 1;
        for (uint32_t k = 0; k < c->n_in; k++)
            sum += ((const float *)c->in[k].data)[ortc_layout_at(c->in[k].layout, 3, y->dims, index)];
        out[ortc_layout_at(y->layout, 3, y->dims, index)] = sum;
    }
    return ORTC_OK;
}

static ortc_status infer(ortc_infer *c) { return ortc_infer_like(c, 0, 0); }
static const ortc_kernel step = {.size = sizeof step,
                                 .flags = ORTC_KERNEL_LAYOUTS,
                                 .name = "step",
                                 .prepare = prepare,
                                 .run = run,
                                 .choose = choose};
static const ortc_kernel plain_step = {.size = sizeof step, .name = "plain_step", .run = run};
/* Of a Choice there are two kernels, of which the second takes what the first does not. */
static const ortc_op ops[] = {ORTC_OP("test", "Step", 1, 1, "", "x:T+", "y:T", "clocks:is! likes:i=0",
                                      "T=f32", infer, NULL, 0),
                              ORTC_OP("test", "Choice", 1, 1, "", "x:T+", "y:T", "clocks:is! likes:i=0",
                                      "T=f32", infer, NULL, 0)};
ORTC_KERNELS(cpu, choosing, ORTC_KERNEL_IN("test", "Step", 1, 1, (ORTC_TYPE(ORTC_F32)), &step),
             ORTC_KERNEL_IN("test", "Choice", 1, 1, (ORTC_TYPE(ORTC_F32)), &step),
             ORTC_KERNEL_IN("test", "Choice", 1, 1, (ORTC_TYPE(ORTC_F32)), &plain_step));
ORTC_FAMILY(choosing, ops, &ortc_kernels_cpu_choosing);

/* ---- Random graphs ------------------------------------------------------------------------------------- */

#define NODES 6

static ortc_graph *g;
static ortc_model store;
static ortc_session *s;
static ortc_error e;
static uint32_t seed;
static int64_t dims[3];        /* of all values */
static bool liked[3] = {true}; /* layouts that some node of the graph likes; others nobody proposes */

static uint32_t draw(uint32_t n)
{
    seed = seed * 1664525u + 1013904223u;
    return (seed >> 8) % n;
}

static void setup(void)
{
    e = (ortc_error)ORTC_ERROR_INIT;
    cr_assert_eq(ortc_registry_init(&e), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_host_add_family(ortc_host_get(), &ortc_family_choosing), ORTC_OK);
}
TestSuite(choose, .init = setup);

/* Of nodes of test.Step or test.Choice. */
static void make_graph(const char *op)
{
    ortc_edge *values[NODES + 1];
    liked[1] = liked[2] = false;
    cr_assert(ortc_pack_store_init(&store.packed, 0));
    cr_assert_not_null(g = ortc_graph_create(NULL));
    values[0] = ortc_edge_create(g, "x");
    for (int i = 0; i < 3; i++) dims[i] = 1 + draw(i == 1 ? 21 : 7); /* often no multiple of a block */
    ortc_edge_set_shape(values[0], ortc_tensor_type(ORTC_F32), 3, dims);
    ortc_graph_add_input(g, "x", values[0]);
    for (uint32_t i = 0; i < NODES; i++) {
        const uint32_t n_in = 1 + draw(2);
        char name[16];
        snprintf(name, sizeof name, "n%u", i);
        ortc_node *n = ortc_node_create(g, ortc_op_find("test", op), name, n_in, 1);
        const int64_t clocks[3] = {2 + draw(40), draw(4) ? 2 + draw(40) : 0, draw(4) ? 2 + draw(40) : 0};
        const int64_t likes = clocks[1] && draw(2) ? 1 : clocks[2] && draw(2) ? 2 : 0;
        liked[likes] = true;
        n->version = 1;
        for (uint32_t k = 0; k < n_in; k++) /* near ones, so that chains and diamonds come */
            ortc_node_set_in(n, k, values[k && i > 1 ? i - draw(3) : i]);
        values[i + 1] = ortc_edge_create(g, NULL);
        ortc_node_set_out(n, 0, values[i + 1]);
        ortc_node_set_attr(
            n, "clocks",
            &(ortc_attr){.size = sizeof(ortc_attr), .kind = ORTC_ATTR_INTS, .count = 3, .u.ints = clocks});
        ortc_node_set_attr(n, "likes",
                           &(ortc_attr){.size = sizeof(ortc_attr), .kind = ORTC_ATTR_INT, .i = likes});
    }
    ortc_graph_add_output(g, "y", values[NODES]);
    if (draw(2)) ortc_graph_add_output(g, "z", values[1 + draw(NODES - 1)]);
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.providers = "cpu";
    o.threads = 1;
    cr_assert_eq(ortc_graph_infer(g, &e), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_session_from_graph(&store, g, &o, &s, &e), ORTC_OK, "%s", e.text);
}

/* Plans, and sums what all steps would take; layouts: of the nodes, as forced (what was settled without them
 * is no answer then), NULL: free. *out the result. */
static double plan(const int *layouts, uint32_t *reorders)
{
    static ortc_forced forced[NODES];
    static char names[NODES][8];
    for (int i = 0; i < NODES && layouts; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        forced[i] = (ortc_forced){names[i], "", true, layout_of(layouts[i])};
    }
    s->unit.placed.forced = forced;
    s->unit.placed.n_forced = layouts ? NODES : 0;
    if (layouts) s->unit.placed.settled = NULL;
    ortc_value *x;
    ortc_run_env env = {.threads = 1, .error = &e};
    ortc_program *p = NULL;
    double clocks = 0;
    cr_assert_eq(ortc_value_create(ORTC_F32, 3, dims, &x, &e), ORTC_OK);
    const ortc_planner_input in = {.value = x};
    const bool wanted[2] = {true, true};
    const uint32_t memory[2] = {0, 0};
    const ortc_plan_request request = {&in, wanted, memory, NULL, NULL};
    const ortc_status status = ortc_program_build(&s->unit.placed, &store.packed, &request, &env, &p, &e);
    if (status == ORTC_INVALID_ARGUMENT && layouts) { /* some node has no such way */
        ortc_value_release(x);
        return -1;
    }
    cr_assert_eq(status, ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_program_check(p, &s->unit.placed, &request, &e), ORTC_OK, "%s", e.text);
    *reorders = 0;
    for (uint32_t i = 0; i < p->n_steps; i++) {
        clocks += p->steps[i].clocks;
        *reorders += p->steps[i].node && !strcmp(p->steps[i].node->type, "Reorder");
    }
    ortc_program_release(p);
    ortc_value_release(x);
    return clocks;
}

static float *result(void)
{
    ortc_value *x;
    float *copy;
    cr_assert_eq(ortc_value_create(ORTC_F32, 3, dims, &x, &e), ORTC_OK);
    for (int64_t i = 0; i < x->count; i++) ((float *)x->data)[i] = (float)i;
    ortc_in in = {"x", x};
    ortc_out out = {.name = "y"};
    ortc_run_args args = {sizeof args, .in = &in, .n_in = 1, .out = &out, .n_out = 1};
    ortc_session_trim(s); /* no plan of before */
    cr_assert_eq(ortc_run(s, &args, &e), ORTC_OK, "%s", e.text);
    copy = malloc(x->bytes);
    memcpy(copy, ortc_value_host(out.value), x->bytes);
    ortc_value_release(out.value);
    ortc_value_release(x);
    return copy;
}

/* ---- What was settled ---------------------------------------------------------------------------------- */

/* A question like the one that was settled, but for one thing. */
typedef struct asked {
    const ortc_node *left_out, *without; /* does not run; makes nothing */
    const ortc_edge *unread;             /* an output that nobody wants */
} asked;

static bool asked_runs(const void *arg, const ortc_node *n) { return n != ((const asked *)arg)->left_out; }
static bool asked_makes(const void *arg, const ortc_node *n, uint32_t port)
{
    return n->out[port] && n != ((const asked *)arg)->without;
}
static bool asked_reads(const void *arg, const ortc_edge *edge)
{
    bool output = false;
    for (const ortc_use *u = edge->uses; u; u = u->next) output |= !u->node;
    return output && edge != ((const asked *)arg)->unread;
}

static bool is_settled(ortc_choosing *c, const asked *a)
{
    c->arg = a;
    const ortc_pick *picks = ortc_settled(c);
    cr_expect(!picks || picks == c->placed->settled);
    return picks;
}

Test(choose, what_was_settled_is_asked_once)
{
    seed = 7;
    make_graph("Choice");
    ortc_placed *p = &s->unit.placed;
    const size_t edges = g->edges.count;
    ortc_fact *facts = malloc(edges * sizeof *facts);
    memcpy(facts, p->expected, edges * sizeof *facts);
    ortc_choosing c = {.placed = p,
                       .facts = facts,
                       .begin = g->first,
                       .runs = asked_runs,
                       .makes = asked_makes,
                       .is_read = asked_reads};
    cr_assert_not_null(p->settled);
    cr_expect(is_settled(&c, &(asked){NULL}));
    cr_expect(!is_settled(&c, &(asked){.left_out = g->last}));
    cr_expect(!is_settled(&c, &(asked){.without = g->first}));
    cr_expect(!is_settled(&c, &(asked){.unread = g->outputs[0].edge}));
    c.end = g->last;
    cr_expect(!is_settled(&c, &(asked){NULL}));
    c.end = NULL, c.begin = g->first->next;
    cr_expect(!is_settled(&c, &(asked){NULL}));
    c.begin = g->first;
    for (size_t i = 0; i < edges; i++) { /* of another extent, rank or type, or not known */
        const ortc_fact before = facts[i];
        const int64_t longer[3] = {dims[0], dims[1], dims[2] + 1};
        facts[i].dims = longer;
        cr_expect(!is_settled(&c, &(asked){NULL}), "extents of %zu", i);
        facts[i] = before, facts[i].rank = 2;
        cr_expect(!is_settled(&c, &(asked){NULL}), "rank of %zu", i);
        facts[i] = before, facts[i].type = ortc_tensor_type(ORTC_F64);
        cr_expect(!is_settled(&c, &(asked){NULL}), "type of %zu", i);
        facts[i] = before, facts[i].type = NULL;
        cr_expect(!is_settled(&c, &(asked){NULL}), "nothing of %zu", i);
        facts[i] = before;
    }
    uint32_t reorders[2];
    const double kept = plan(NULL, &reorders[0]);
    p->settled = NULL;
    cr_expect_eq(kept, plan(NULL, &reorders[1]));
    cr_expect_eq(reorders[0], reorders[1]);
    free(facts);
    ortc_session_release(s);
    ortc_pack_store_deinit(&store.packed);
}

/* ---- The best ------------------------------------------------------------------------------------------ */

Test(choose, as_good_as_the_best_of_all_choices, .timeout = 120)
{
    uint32_t best_found = 0, mixed = 0;
    double worst = 1;
    enum { GRAPHS = 60, ALL = 729 };
    seed = 1;
    for (int made = 0; made < GRAPHS; made++) {
        make_graph("Step");
        uint32_t reorders, ignored;
        const double chosen = plan(NULL, &reorders);
        float *free_result = result();
        double least = -1;
        for (int code = 0; code < ALL; code++) {
            int layouts[NODES], rest = code;
            bool proposed = true;
            for (int i = 0; i < NODES; i++, rest /= 3) proposed &= liked[layouts[i] = rest % 3];
            const double clocks = proposed ? plan(layouts, &ignored) : -1;
            if (clocks >= 0 && (least < 0 || clocks < least)) least = clocks;
        }
        cr_assert(least >= 0);
        best_found += chosen <= least * (1 + 1e-12);
        if (chosen / least > worst) worst = chosen / least;
        mixed += reorders > 0;
        const int plain[NODES] = {0};
        plan(plain, &ignored);
        float *plain_result = result();
        cr_expect_arr_eq(free_result, plain_result, (size_t)(dims[0] * dims[1] * dims[2]) * sizeof(float));
        free(free_result);
        free(plain_result);
        s->unit.placed.n_forced = 0;
        ortc_session_release(s);
        ortc_pack_store_deinit(&store.packed);
    }
    cr_log_info("%u of 60 are the best, the worst is %.3f of it; %u reorder", best_found, worst, mixed);
    cr_expect_geq(best_found, 58u, "only %u of 60 are the best; the worst takes %.3f of the best", best_found,
                  worst);
    cr_expect_leq(worst, 1.05);
    cr_expect_geq(mixed, 10u, "nothing to choose from: %u", mixed);
}
