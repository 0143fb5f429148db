/* runtime/session/evaluate.c: constant folding's arithmetic: a session of one node. What plans and runs a
 * model also plans and runs this, so nothing is computed differently at load. Most nodes over constants are
 * small: they are computed on the reference provider. What takes it longer than making a session of the cpu's
 * does is begun anew there, and taken off the budget as the reference provider estimated it: the same nodes
 * are folded on every machine. What only has other extents is not computed: it keeps the constant's memory.
 */
#include "evaluate.h"

#include "create.h"
#include "graph/ir/quantised.h"
#include "runtime/execute/context.h"

/* What making and ending a session costs, whatever the node does. */
#define NODE_OPERATIONS 20000

/* What the reference provider does itself. */
#define SMALL_OPERATIONS 1000000

static void release_value(void *v) { ortc_value_release(v); }

/* A graph of this one node: its constants, its attributes (borrowed), its wanted outputs. */
static ortc_graph *graph_of(const ortc_node *n)
{
    ortc_graph *g = ortc_graph_create(NULL);
    ortc_node *copy = g ? ortc_node_create(g, n->op, n->name, n->n_in, n->n_out) : NULL;
    if (!copy) goto failed;
    copy->version = n->version;
    copy->attrs = n->attrs;
    copy->n_attrs = n->n_attrs;
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (!n->in[i]) continue;
        ortc_edge *e = ortc_graph_constant(g, NULL, ortc_constant_retain(n->in[i]->constant));
        if (!e || !ortc_node_set_in(copy, i, e)) goto failed;
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
        if (!n->out[i]) continue;
        ortc_edge *e = ortc_edge_create(g, NULL);
        if (!e || !ortc_node_set_out(copy, i, e) || !ortc_graph_add_output(g, e->name, e)) goto failed;
    }
    return g;
failed:
    ortc_graph_destroy(g);
    return NULL;
}

/* The constant with other extents; *out NULL: the graph's node is something else. */
static ortc_status view_of(const ortc_graph *g, ortc_constant **out, ortc_error *error)
{
    static const char *const views[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity"};
    const ortc_node *n = g->first;
    ortc_constant *c = n->n_in && n->in[0] ? n->in[0]->constant : NULL;
    const ortc_edge *y = n->out[0];
    bool is_view = false, is_known = y && y->rank >= 0;
    int64_t count;
    for (size_t i = 0; i < ORTC_LENGTH(views); i++) is_view |= ortc_is_op(n, views[i]);
    for (int32_t d = 0; is_known && d < y->rank; d++) is_known = ortc_dim_is_number(y->dims[d]);
    if (!c || !c->data || !is_view || !is_known || c->dtype == ORTC_STRING ||
        !ortc_count_elements(y->rank, y->dims, &count) || count != c->count)
        return ORTC_OK;
    return ortc_constant_seen_as(c, c->dtype, y->rank, y->dims, out, error);
}

static ortc_status run_on(const char *providers, ortc_evaluation *by, const ortc_node *n, ortc_budget *budget,
                          ortc_constant **out, ortc_error *error)
{
    ortc_graph *g = graph_of(n);
    ortc_session *s = NULL;
    ortc_out outputs[16] = {{0}};
    if (!g) return ortc_no_memory(error, 0);
    if (g->n_outputs > ORTC_LENGTH(outputs)) {
        ortc_graph_destroy(g);
        return ortc_fail(error, ORTC_UNSUPPORTED, "too many outputs to fold");
    }
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.providers = providers;
    o.threads = 1;
    o.flags = ORTC_SESSION_NO_FUSION;
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    ortc_status status = ortc_graph_infer(g, error);
    if (status == ORTC_OK) status = view_of(g, &out[0], error);
    if (status == ORTC_OK && out[0]) {
        ortc_graph_destroy(g);
        return ORTC_OK;
    }
    if (status == ORTC_OK)
        status = ortc_session_from_graph(by->model, g, &o, &s, error); /* takes the graph */
    else
        ortc_graph_destroy(g);
    if (status != ORTC_OK) return status;
    for (uint32_t i = 0; i < g->n_outputs; i++) outputs[i].name = g->outputs[i].name;
    a.out = outputs;
    a.n_out = g->n_outputs;
    a.cancel = by->stop ? by->stop->cancel : NULL;
    a.deadline_ns = by->stop ? by->stop->deadline_ns : 0;
    s->unit.budget = budget;
    status = ortc_run(s, &a, error);
    for (uint32_t i = 0, k = 0; i < n->n_out && status == ORTC_OK; i++) {
        if (!n->out[i]) continue;
        ortc_value *v = outputs[k++].value;
        status = ortc_constant_create(v->type->dtype, v->rank, v->dims, v->data, v->bytes, release_value, v,
                                      &out[i], error);
        if (status == ORTC_OK) outputs[k - 1].value = NULL;
    }
    for (uint32_t i = 0; i < n->n_out && status != ORTC_OK; i++) {
        ortc_constant_release(out[i]);
        out[i] = NULL;
    }
    for (size_t i = 0; i < a.n_out; i++) ortc_value_release(outputs[i].value);
    ortc_session_release(s);
    return status;
}

ortc_status ortc_evaluate_node(void *evaluation, const ortc_node *n, ortc_constant **out, ortc_error *error)
{
    ortc_evaluation *by = evaluation;
    ORTC_TRY(ortc_stop_poll(by->stop, error));
    if (by->operations < NODE_OPERATIONS) return ortc_fail(error, ORTC_LIMIT, "no operations are left");
    by->operations -= NODE_OPERATIONS;
    ortc_budget small = {.left = by->operations < SMALL_OPERATIONS ? by->operations : SMALL_OPERATIONS};
    ortc_status status = run_on("ref", by, n, &small, out, error);
    double took = (double)small.done;
    if (status == ORTC_LIMIT && small.wanted > SMALL_OPERATIONS && small.wanted <= (double)by->operations) {
        ortc_budget rest = {.left = by->operations};
        *error = (ortc_error)ORTC_ERROR_INIT;
        status = run_on("cpu", by, n, &rest, out, error);
        took = small.wanted > (double)rest.done ? small.wanted : (double)rest.done;
    }
    by->operations -= (uint64_t)took;
    return status;
}
