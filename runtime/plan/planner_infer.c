/* runtime/plan/planner_infer.c: shapes with numbers, the segment's end, and what must run at all
 * (planner.h). */
#include "planner.h"

bool ortc_fact_is_sized(const ortc_fact *f)
{
    for (int32_t i = 0; i < f->rank; i++)
        if (!ortc_dim_is_number(f->dims[i])) return false;
    return f->rank >= 0;
}

static ortc_status fact_of_value(ortc_planner *p, const ortc_value *v, bool decides, ortc_fact *f)
{
    *f = (ortc_fact){.type = v->type, .rank = ortc_value_is_tensor(v) ? v->rank : -1, .dims = v->dims};
    if (decides && !v->device && v->type->kind == ORTC_KIND_TENSOR &&
        (v->type->dtype == ORTC_I64 || v->type->dtype == ORTC_I32)) {
        ortc_constant c = {
            .dtype = v->type->dtype, .rank = v->rank, .dims = v->dims, .count = v->count, .data = v->data};
        f->values = ortc_constant_values(&c, &p->scratch, &f->n_values);
    }
    return ORTC_OK;
}

ortc_status ortc_planner_seed(ortc_planner *p)
{
    const ortc_graph *g = p->graph;
    for (size_t i = 0; i < g->edges.count; i++) {
        const ortc_edge *e = g->edges.data[i];
        ortc_fact *f = &p->facts[i];
        *f = (ortc_fact){.type = e->type, .rank = -1};
        if (!e->constant) continue;
        f->rank = e->constant->rank;
        f->dims = e->constant->dims;
        f->values = ortc_constant_values(e->constant, &p->scratch, &f->n_values);
    }
    for (size_t i = 0; p->made && i < g->edges.count; i++)
        if (p->made[i]) ORTC_TRY(fact_of_value(p, p->made[i], p->placed->deciding[i], &p->facts[i]));
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const ortc_value *v = p->inputs[i].value;
        ortc_fact *f = &p->facts[g->inputs[i].edge->id];
        if (!v) continue; /* its default, seeded above */
        ORTC_TRY(fact_of_value(p, v, p->placed->decides[i], f));
    }
    return ORTC_OK;
}

bool ortc_planner_makes(const ortc_planner *p, const ortc_node *n, uint32_t port)
{
    return n->out[port] && p->asked[n->out[port]->id];
}

static bool is_asked(const ortc_planner *p, const ortc_node *n)
{
    bool asked = n->op && (n->op->flags & ORTC_OP_STATE);
    for (uint32_t i = 0; i < n->n_out && !asked; i++) asked = ortc_planner_makes(p, n, i);
    return asked;
}

/* What a wanted output may need, by the graph alone. */
void ortc_planner_mark_asked(ortc_planner *p)
{
    for (uint32_t i = 0; i < p->graph->n_outputs; i++)
        if (p->wanted[i]) p->asked[p->graph->outputs[i].edge->id] = true;
    for (const ortc_node *n = p->graph->last; n; n = n->prev) {
        const bool asked = is_asked(p, n);
        for (uint32_t i = 0; i < n->n_in && asked; i++)
            if (n->in[i]) p->asked[n->in[i]->id] = true;
    }
}

/* Shapes from the segment's first node on, until one that cannot be known; that sets the segment's end. */
ortc_status ortc_planner_infer(ortc_planner *p)
{
    ortc_infer c;
    ortc_infer_init(&c, NULL, &p->scratch, p->facts, p->error);
    for (const ortc_node *n = p->begin; n; n = n->next) {
        if (!is_asked(p, n)) continue;
        ortc_fact *out = ortc_arena_array(&p->scratch, n->n_out, sizeof *out);
        if (!out) return ortc_no_memory(p->error, 0);
        ORTC_TRY(ortc_infer_run(&c, n, out));
        bool late = false;
        for (uint32_t i = 0; i < n->n_out; i++)
            if (n->out[i]) {
                if (!out[i].type) out[i].type = n->out[i]->type;
                if (ortc_fact_is_sized(&out[i]) && !ortc_fact_values_fit(&out[i]))
                    out[i].values = NULL; /* a shape function contradicts itself: the node runs */
                late |= ortc_planner_makes(p, n, i) && ortc_fact_is_late(&out[i]);
            }
        if (late && !(ortc_kernel_of(p->placed, n)->flags & ORTC_KERNEL_LATE_OUT)) {
            if (n == p->begin)
                return ortc_fail(
                    p->error, ORTC_UNSUPPORTED,
                    "node '%s' (%s): the shape of its result cannot be told from what is known when it runs",
                    n->name, n->type);
            p->end = n; /* once what is before it has run, the values that it waits for are known */
            return ORTC_OK;
        }
        for (uint32_t i = 0; i < n->n_out; i++)
            if (n->out[i]) p->facts[n->out[i]->id] = out[i];
        if (late) {
            p->late = true;
            p->end = n->next;
            return ORTC_OK;
        }
    }
    return ORTC_OK;
}

bool ortc_planner_runs(const ortc_planner *p, const ortc_node *n)
{
    if (n->op && (n->op->flags & ORTC_OP_STATE)) return true;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] && p->needed[n->out[i]->id] && !ortc_fact_values_known(&p->facts[n->out[i]->id]))
            return true;
    return false;
}

/* Edges whose bytes some step must provide. An edge with known values is provided by the planner itself. */
void ortc_planner_mark_needed(ortc_planner *p)
{
    const ortc_graph *g = p->graph;
    for (uint32_t i = 0; i < g->n_outputs; i++)
        if (p->wanted[i]) {
            p->needed[g->outputs[i].edge->id] = true;
            p->crosses[g->outputs[i].edge->id] = p->program->chained;
        }
    for (const ortc_node *n = g->last; p->end && n; n = n->prev) {
        if (is_asked(p, n))
            for (uint32_t i = 0; i < n->n_in; i++)
                if (n->in[i]) p->needed[n->in[i]->id] = p->crosses[n->in[i]->id] = true;
        if (n == p->end) break;
    }
    for (const ortc_node *n = p->end ? p->end->prev : g->last; n && n != p->begin->prev; n = n->prev) {
        if (!ortc_planner_runs(p, n)) {
            p->program->n_folded++;
            continue;
        }
        for (uint32_t i = 0; i < n->n_in; i++)
            if (n->in[i]) p->needed[n->in[i]->id] = true;
    }
}
