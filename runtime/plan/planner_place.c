/* runtime/plan/planner_place.c: the graph's outputs, slots for later segments, and offsets in the arena
 * (planner.h). */
#include "planner.h"

/* From where an edge's bytes are to an output or a slot of the space `to_space`. Between devices it goes
 * through the host. */
static ortc_status copy_out(ortc_planner *p, const ortc_edge *e, uint16_t to, uint32_t index,
                            uint8_t to_space, size_t bytes)
{
    uint8_t from = p->primary[e->id];
    const ortc_home *there = ortc_planner_at(p, e, to_space);
    if (p->forms[from].layout) ORTC_TRY(ortc_planner_reach(p, e, from = p->forms[from].space));
    if (there->lives || there->made)
        from = to_space;
    else if (from && to_space) {
        ORTC_TRY(ortc_planner_reach(p, e, 0));
        from = 0;
    }
    return ortc_planner_copy(p, e, from, to, index, to_space, bytes);
}

/* Outputs of the graph: a block that is one whole output is made in the caller's memory; all else is copied
 * at the end. */
ortc_status ortc_planner_place_outputs(ortc_planner *p)
{
    const ortc_graph *g = p->graph;
    ortc_program *program = p->program;
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        if (!p->wanted[i]) continue;
        const ortc_edge *e = g->outputs[i].edge;
        const ortc_fact *f = &p->facts[e->id];
        ortc_program_output *o = &program->outputs[i];
        ORTC_TRY(ortc_planner_bytes(p, e, 0, &o->bytes));
        o->type = f->type;
        o->dtype = f->type->dtype;
        o->rank = f->rank;
        o->memory = p->memory[i];
        if (!(o->dims = ortc_arena_array(&program->arena, (size_t)f->rank, sizeof *o->dims)))
            return ortc_no_memory(p->error, 0);
        if (f->rank) memcpy((int64_t *)(uintptr_t)o->dims, f->dims, (size_t)f->rank * sizeof *o->dims);
        uint8_t space;
        ortc_home *h;
        ORTC_TRY(ortc_planner_space_of(p, o->memory, g->outputs[i].name, &space));
        ORTC_TRY(ortc_planner_home(p, e, &h));
        if (p->forms[p->primary[e->id]].layout) /* a value that leaves is plain */
            ORTC_TRY(ortc_planner_reach(p, e, p->forms[p->primary[e->id]].space));
        h = ortc_planner_at(p, e, space);
        ortc_home *root = ortc_planner_root(p, h);
        if (root->lives == LIVES_BLOCK && !h->offset && root->bytes == o->bytes) {
            p->spaces[space].blocks.data[root->index].bytes = 0; /* takes no place */
            root->lives = LIVES_OUTPUT;
            root->index = i;
        } else
            ORTC_TRY(copy_out(p, e, ORTC_FROM_OUTPUT, i, space, o->bytes));
    }
    return ORTC_OK;
}

/* Whether a step has this operand. */
static bool is_there(const ortc_step *s, const ortc_operand *o)
{
    return s->kind == ORTC_STEP_COPY || ortc_view_present(&o->view);
}

static ortc_home *home_of(const ortc_planner *p, const ortc_operand *o)
{
    return ortc_planner_at(p, p->graph->edges.data[o->edge], o->form);
}

/* How often a step reads the memory of a root. */
static uint32_t reads(const ortc_planner *p, const ortc_step *s, uint32_t root)
{
    uint32_t n = 0;
    if (s->kind != ORTC_STEP_KERNEL && s->kind != ORTC_STEP_COPY) return 0;
    for (uint32_t k = 0; k < s->n_in; k++) n += is_there(s, &s->in[k]) && home_of(p, &s->in[k])->root == root;
    return n;
}

/* Tied outputs that are written over the input they are tied to: the kernel offers it, the output is the
 * whole of what it makes, and nobody reads the old value beside it, after it, or from another device's
 * queue. */
void ortc_planner_place_ties(ortc_planner *p)
{
    ortc_edge *const *edges = p->graph->edges.data;
    for (size_t i = 0; i < p->in_place.count; i++) {
        const ortc_in_place *offer = &p->in_place.data[i];
        const ortc_home *out = ortc_planner_at(p, edges[offer->out], offer->form),
                        *in = ortc_planner_at(p, edges[offer->in], offer->form);
        const ortc_home *root = ortc_planner_root(p, in);
        size_t in_bytes, out_bytes;
        if (out->lives != LIVES_OUTPUT || root->lives != LIVES_INPUT ||
            p->inputs[root->index].tied != out->index + 1 || in->offset ||
            !ortc_fact_bytes(&p->facts[ortc_planner_owner(p, in->root)->id], &in_bytes) ||
            !ortc_fact_bytes(&p->facts[offer->out], &out_bytes) || in_bytes != out_bytes)
            continue;
        bool alone = true;
        for (uint32_t k = 0; k < p->steps.count && alone; k++) {
            uint32_t n = reads(p, &p->steps.data[k], in->root);
            alone = !n || (k == offer->step ? n == 1
                                            : k < offer->step && p->steps.data[k].device ==
                                                                     p->steps.data[offer->step].device);
        }
        p->program->outputs[out->index].in_place = alone;
    }
}

bool ortc_planner_is_output(const ortc_planner *p, const ortc_edge *e)
{
    for (uint32_t i = 0; i < p->graph->n_outputs; i++)
        if (p->wanted[i] && p->graph->outputs[i].edge == e) return true;
    return false;
}

/* A chain's results and what later segments read are slots. What no step makes (known values, and in the last
 * segment outputs that are inputs or constants) is copied into one. */
ortc_status ortc_planner_fill_slots(ortc_planner *p)
{
    for (size_t i = 0; i < p->graph->edges.count; i++) {
        const ortc_edge *e = p->graph->edges.data[i];
        bool stays = e->input >= 0 || e->constant; /* later segments find it where it is */
        if (!p->crosses[i] || ortc_planner_at(p, e, p->primary[i])->lives == LIVES_SLOT ||
            (p->made && p->made[i]))
            continue;
        if (stays ? p->end != NULL || !ortc_planner_is_output(p, e) : !ortc_fact_values_known(&p->facts[i]))
            continue;
        ortc_home *h;
        size_t bytes;
        if (ortc_fact_is_given(&p->facts[i])) {
            ORTC_TRY(ortc_planner_copy_value(p, e));
            continue;
        }
        ORTC_TRY(ortc_planner_home(p, e, &h));
        ORTC_TRY(ortc_planner_bytes(p, e, 0, &bytes));
        ORTC_TRY(copy_out(p, e, ORTC_FROM_SLOT, e->id, 0, bytes));
        const ortc_fact *f = &p->facts[i];
        ortc_slot s = {.edge = e->id,
                       .deciding = p->placed->deciding[i],
                       .dtype = f->type->dtype,
                       .rank = f->rank};
        if (f->rank &&
            !(s.dims = ortc_arena_copy(&p->program->arena, f->dims, (size_t)f->rank * sizeof *f->dims)))
            return ortc_no_memory(p->error, 0);
        if (!ortc_array_push(&p->slots, s)) return ortc_no_memory(p->error, sizeof s);
    }
    ortc_slot *slots = ortc_arena_copy(&p->program->arena, p->slots.data, p->slots.count * sizeof *slots);
    if (p->slots.count && !slots) return ortc_no_memory(p->error, 0);
    p->program->slots = slots;
    p->program->n_slots = (uint32_t)p->slots.count;
    return ORTC_OK;
}

static void resolve(const ortc_planner *p, ortc_operand *o)
{
    const ortc_home *h = home_of(p, o), *root = ortc_planner_root(p, h);
    o->offset = h->offset;
    o->index = root->index;
    o->root = ortc_planner_owner(p, h->root)->id;
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
        o->offset += p->spaces[p->forms[o->form].space].blocks.data[root->index].offset;
        break;
    }
}

static ortc_status lay_out(ortc_planner *p, uint32_t space)
{
    ortc_space *s = &p->spaces[space];
    for (size_t i = 0; i < s->blocks.count; i++) { /* outputs take no place, so nobody takes over theirs */
        ortc_block *b = &s->blocks.data[i];
        if (b->reuse >= 0 && !s->blocks.data[b->reuse].bytes) b->reuse = -1;
    }
    size_t bytes = ortc_lay_out(s->blocks.data, (uint32_t)s->blocks.count);
    if (bytes == SIZE_MAX) return ortc_no_memory(p->error, bytes);
    p->program->arena_bytes[space] = bytes;
    for (size_t i = 0; i < s->blocks.count; i++)
        if (s->block_edges.data[i] == UINT32_MAX)
            p->steps.data[s->blocks.data[i].from].workspace_at = s->blocks.data[i].offset;
    return ORTC_OK;
}

/* Results whose blocks have taken over the place of an input's say so. */
static void note_reuse(const ortc_planner *p, uint32_t index)
{
    ortc_step *s = &p->steps.data[index];
    for (uint32_t k = 0; k < s->n_out; k++) {
        ortc_operand *o = &s->out[k];
        if (o->from != ORTC_FROM_ARENA || !ortc_view_present(&o->view)) continue;
        const ortc_block *blocks = p->spaces[o->space].blocks.data, *b = &blocks[home_of(p, o)->index];
        if (b->reuse < 0 || blocks[b->reuse].offset != b->offset || blocks[b->reuse].to != index) continue;
        for (uint32_t i = 0; i < s->n_in && !o->over; i++) {
            const ortc_home *in = is_there(s, &s->in[i]) && s->in[i].form == o->form
                                      ? ortc_planner_root(p, home_of(p, &s->in[i]))
                                      : NULL;
            if (in && in->lives == LIVES_BLOCK && (int32_t)in->index == b->reuse) o->over = i + 1;
        }
    }
}

ortc_status ortc_planner_place_blocks(ortc_planner *p)
{
    for (uint32_t space = 0; space < p->targets->n_spaces; space++) ORTC_TRY(lay_out(p, space));
    for (size_t i = 0; i < p->steps.count; i++) {
        ortc_step *s = &p->steps.data[i];
        if (s->kind != ORTC_STEP_KERNEL && s->kind != ORTC_STEP_COPY) continue;
        for (uint32_t k = 0; k < s->n_in; k++)
            if (is_there(s, &s->in[k])) resolve(p, &s->in[k]);
        for (uint32_t k = 0; k < s->n_out; k++)
            if (s->kind == ORTC_STEP_COPY ? s->out[k].from == ORTC_FROM_ARENA : is_there(s, &s->out[k]))
                resolve(p, &s->out[k]);
        if (s->kind == ORTC_STEP_KERNEL) note_reuse(p, (uint32_t)i);
    }
    return ORTC_OK;
}
