/* runtime/plan/planner_values.c: edges whose kernels make them as values of their own: strings, sequences,
 * maps, optionals.
 *
 * They live in slots, also within a segment, and end none: only extents that are not known yet do. Strings
 * that nobody made (constants, inputs) are read where they are.
 */
#include "planner.h"

bool ortc_fact_is_value(const ortc_fact *f)
{
    return f->type && f->type->kind != ORTC_KIND_TENSOR && f->type->kind != ORTC_KIND_NONE;
}

bool ortc_fact_is_given(const ortc_fact *f)
{
    return ortc_fact_is_value(f) || (f->type && f->type->dtype == ORTC_STRING);
}

bool ortc_fact_is_late(const ortc_fact *f)
{
    return !ortc_fact_is_value(f) && (!f->type || !ortc_fact_is_sized(f));
}

bool ortc_fact_same_strings(const ortc_fact *a, const ortc_fact *b)
{
    int64_t n, m;
    return !ortc_fact_is_value(a) && !ortc_fact_is_value(b) && ortc_fact_is_given(a) &&
           ortc_fact_is_given(b) && ortc_fact_is_sized(a) && ortc_fact_is_sized(b) &&
           ortc_count_elements(a->rank, a->dims, &n) && ortc_count_elements(b->rank, b->dims, &m) && n == m;
}

bool ortc_planner_has_values(const ortc_planner *p)
{
    for (size_t i = 0; i < p->graph->edges.count; i++)
        if (p->asked[i] && p->graph->edges.data[i]->producer && ortc_fact_is_given(&p->facts[i])) return true;
    for (uint32_t i = 0; i < p->graph->n_outputs; i++)
        if (p->wanted[i] && ortc_fact_is_given(&p->facts[p->graph->outputs[i].edge->id])) return true;
    return false;
}

ortc_status ortc_planner_value_operand(ortc_planner *p, const ortc_edge *e, bool input, ortc_operand *o)
{
    ortc_home *h;
    o->view.flags = ORTC_VIEW_HOST | ORTC_VIEW_VALUE;
    return input ? ortc_planner_home(p, e, &h) : ORTC_OK;
}

ortc_status ortc_planner_copy_value(ortc_planner *p, const ortc_edge *e)
{
    const ortc_fact *f = &p->facts[e->id];
    ortc_step s = {.kind = ORTC_STEP_COPY, .n_in = 1, .n_out = 1, .values = true};
    ortc_slot slot = {.edge = e->id, .late = true};
    ortc_home *h;
    s.in = ortc_arena_array(&p->program->arena, 1, sizeof *s.in);
    s.out = ortc_arena_array(&p->program->arena, 1, sizeof *s.out);
    if (!s.in || !s.out) return ortc_no_memory(p->error, sizeof s);
    ORTC_TRY(ortc_planner_home(p, e, &h));
    s.in->view.flags = ORTC_VIEW_HOST | (ortc_fact_is_value(f) ? ORTC_VIEW_VALUE : 0);
    if (!ortc_fact_is_value(f)) {
        s.in->view.dtype = f->type->dtype;
        s.in->view.rank = f->rank;
        s.in->view.dims = ortc_arena_copy(&p->program->arena, f->dims, (size_t)f->rank * sizeof *f->dims);
        if (!s.in->view.dims) return ortc_no_memory(p->error, 0);
    }
    s.in->edge = s.out->edge = e->id;
    s.in->from = ORTC_FROM_ARENA; /* resolved with the other operands */
    s.out->from = ORTC_FROM_SLOT;
    s.out->index = s.out->root = e->id;
    if (!ortc_array_push(&p->steps, s) || !ortc_array_push(&p->slots, slot))
        return ortc_no_memory(p->error, sizeof s);
    ortc_planner_note_use(p, e, 0, (uint32_t)p->steps.count - 1);
    return ORTC_OK;
}
