/* runtime/plan/planner_place.c: the graph's outputs, slots for later segments, and offsets in the arena (planner.h). */
#include "planner.h"

static ortc_status copy_step(ortc_planner *p, const ortc_edge *from, uint32_t to, uint32_t index, size_t bytes)
{
    ortc_step s = {.kind = ORTC_STEP_COPY, .n_in = 1, .n_out = 1, .copy_bytes = bytes};
    s.in = ortc_arena_array(&p->program->arena, 1, sizeof *s.in);
    s.out = ortc_arena_array(&p->program->arena, 1, sizeof *s.out);
    if (!s.in || !s.out || !ortc_array_push(&p->steps, s))
        return ortc_no_memory(p->error, sizeof s);
    ortc_planner_note_use(p, from, (uint32_t)p->steps.count - 1);
    s.out->from = to;
    s.out->index = index;
    s.in->index = from->id; /* resolved with the other operands */
    s.in->from = ORTC_FROM_ARENA;
    return ORTC_OK;
}

/* Outputs of the graph: a block that is one whole output is made in the caller's memory; all else is copied at the end. */
ortc_status ortc_planner_place_outputs(ortc_planner *p)
{
    const ortc_graph *g = p->graph;
    ortc_program *program = p->program;
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        if (!p->wanted[i])
            continue;
        const ortc_edge *e = g->outputs[i].edge;
        const ortc_fact *f = &p->facts[e->id];
        ortc_program_output *o = &program->outputs[i];
        ORTC_TRY(ortc_planner_bytes(p, e, &o->bytes));
        o->type = f->type;
        o->dtype = f->type->dtype;
        o->rank = f->rank;
        if (!(o->dims = ortc_arena_array(&program->arena, (size_t)f->rank, sizeof *o->dims)))
            return ortc_no_memory(p->error, 0);
        if (f->rank)
            memcpy((int64_t *)(uintptr_t)o->dims, f->dims, (size_t)f->rank * sizeof *o->dims);
        ortc_home *h;
        ORTC_TRY(ortc_planner_home(p, e, &h));
        ortc_home *root = &p->homes[h->root];
        if (root->lives == LIVES_BLOCK && !h->offset && root->bytes == o->bytes) {
            p->blocks.data[root->index].bytes = 0; /* takes no place */
            root->lives = LIVES_OUTPUT;
            root->index = i;
        } else
            ORTC_TRY(copy_step(p, e, ORTC_FROM_OUTPUT, i, o->bytes));
    }
    return ORTC_OK;
}

/* Tied outputs that are written over the input they are tied to: the kernel offers it, the output is the whole of what it
 * makes, and nobody reads the old value beside it or after it. */
void ortc_planner_place_ties(ortc_planner *p)
{
    for (size_t i = 0; i < p->in_place.count; i++) {
        const ortc_in_place *offer = &p->in_place.data[i];
        const ortc_node *n = p->steps.data[offer->step].node;
        const ortc_home *out = &p->homes[offer->out], *in = &p->homes[offer->in], *root = &p->homes[in->root];
        size_t in_bytes, out_bytes;
        if (out->lives != LIVES_OUTPUT || root->lives != LIVES_INPUT || p->inputs[root->index].tied != out->index + 1 ||
            root->last != offer->step || in->offset || !ortc_fact_bytes(&p->facts[in->root], &in_bytes) ||
            !ortc_fact_bytes(&p->facts[offer->out], &out_bytes) || in_bytes != out_bytes)
            continue;
        uint32_t readers = 0;
        for (uint32_t k = 0; k < n->n_in; k++)
            readers += n->in[k] && p->homes[n->in[k]->id].root == in->root;
        p->program->outputs[out->index].in_place = readers == 1;
    }
}

static bool is_output(const ortc_planner *p, const ortc_edge *e)
{
    for (uint32_t i = 0; i < p->graph->n_outputs; i++)
        if (p->wanted[i] && p->graph->outputs[i].edge == e)
            return true;
    return false;
}

/* A chain's results and what later segments read are slots. What no step makes (known values, and in the last segment
 * outputs that are inputs or constants) is copied into one. */
ortc_status ortc_planner_fill_slots(ortc_planner *p)
{
    for (size_t i = 0; i < p->graph->edges.count; i++) {
        const ortc_edge *e = p->graph->edges.data[i];
        bool stays = e->input >= 0 || e->constant; /* later segments find it where it is */
        if (!p->crosses[i] || p->homes[i].lives == LIVES_SLOT || (p->made && p->made[i]))
            continue;
        if (stays ? p->end != NULL || !is_output(p, e) : !ortc_fact_values_known(&p->facts[i]))
            continue;
        ortc_home *h;
        size_t bytes;
        ORTC_TRY(ortc_planner_home(p, e, &h));
        ORTC_TRY(ortc_planner_bytes(p, e, &bytes));
        ORTC_TRY(copy_step(p, e, ORTC_FROM_SLOT, e->id, bytes));
        const ortc_fact *f = &p->facts[i];
        ortc_slot s = {.edge = e->id, .deciding = p->session->deciding[i], .dtype = f->type->dtype, .rank = f->rank};
        if (f->rank && !(s.dims = ortc_arena_copy(&p->program->arena, f->dims, (size_t)f->rank * sizeof *f->dims)))
            return ortc_no_memory(p->error, 0);
        if (!ortc_array_push(&p->slots, s))
            return ortc_no_memory(p->error, sizeof s);
    }
    ortc_slot *slots = ortc_arena_copy(&p->program->arena, p->slots.data, p->slots.count * sizeof *slots);
    if (p->slots.count && !slots)
        return ortc_no_memory(p->error, 0);
    p->program->slots = slots;
    p->program->n_slots = (uint32_t)p->slots.count;
    return ORTC_OK;
}

static void resolve(const ortc_planner *p, const ortc_edge *e, ortc_operand *o)
{
    if (!e)
        return;
    const ortc_home *h = &p->homes[e->id], *root = &p->homes[h->root];
    o->offset = h->offset;
    o->index = root->index;
    switch (root->lives) {
    case LIVES_POINTER:
        o->from = ORTC_FROM_POINTER;
        o->view.data = (char *)(uintptr_t)root->data + h->offset;
        break;
    case LIVES_INPUT: o->from = ORTC_FROM_INPUT; break;
    case LIVES_OUTPUT: o->from = ORTC_FROM_OUTPUT; break;
    case LIVES_SLOT: o->from = ORTC_FROM_SLOT; break;
    case LIVES_BLOCK:
        o->from = ORTC_FROM_ARENA;
        o->offset += p->blocks.data[root->index].offset;
        break;
    }
}

ortc_status ortc_planner_place_blocks(ortc_planner *p)
{
    ortc_program *program = p->program;
    for (size_t i = 0; i < p->blocks.count; i++) { /* outputs take no place, so nobody takes over theirs */
        ortc_block *b = &p->blocks.data[i];
        if (b->reuse >= 0 && !p->blocks.data[b->reuse].bytes)
            b->reuse = -1;
    }
    size_t bytes = ortc_layout(p->blocks.data, (uint32_t)p->blocks.count);
    if (bytes == SIZE_MAX)
        return ortc_no_memory(p->error, bytes);
    program->arena_bytes = bytes;
    for (size_t i = 0; i < p->blocks.count; i++)
        if (p->block_edges.data[i] == UINT32_MAX)
            p->steps.data[p->blocks.data[i].from].workspace_at = p->blocks.data[i].offset;
    for (size_t i = 0; i < p->steps.count; i++) {
        ortc_step *s = &p->steps.data[i];
        if (s->kind == ORTC_STEP_COPY) {
            resolve(p, p->graph->edges.data[s->in->index], s->in);
            continue;
        }
        for (uint32_t k = 0; k < s->n_in; k++)
            resolve(p, s->node->in[k], &s->in[k]);
        for (uint32_t k = 0; k < s->n_out; k++)
            if (s->out[k].view.dtype)
                resolve(p, s->node->out[k], &s->out[k]);
    }
    return ORTC_OK;
}
