/* runtime/plan/planner.c: from a session and a key to a program (plan.h says in which stages).
 *
 * Scratch lives in an arena of its own and goes when planning ends; what the program keeps is in the program's arena.
 */
#include "runtime/execute/call.h"
#include "runtime/session/session.h"

#include <stdio.h>

enum { LIVES_NOWHERE, LIVES_POINTER, LIVES_INPUT, LIVES_OUTPUT, LIVES_BLOCK, LIVES_SLOT };

/* Where an edge's bytes are: in the memory of its root edge (itself, or what it is a view of). */
typedef struct home {
    uint32_t lives;   /* LIVES_*; of a root */
    uint32_t index;   /* input, output or block */
    uint32_t root;    /* edge id */
    size_t offset;    /* in the root */
    const void *data; /* LIVES_POINTER */
    size_t bytes;     /* of a root */
    uint32_t last;    /* of a root: last step that reads it */
    bool made;        /* by a step */
} home;

typedef struct planner {
    ortc_session *session;
    const ortc_graph *graph;
    ortc_run_env *env;
    ortc_error *error;
    ortc_program *program;
    ortc_arena scratch;
    ortc_fact *facts;  /* by edge id */
    bool *needed;      /* by edge id */
    home *homes;       /* by edge id */
    const bool *wanted;
    const ortc_node *begin, *end; /* the segment; end NULL: to the last node */
    ortc_value *const *made;      /* slots of earlier segments; NULL: this is the first */
    bool *asked;       /* by edge id: read on some path to a wanted output, whatever shapes turn out to be */
    bool *crosses;     /* by edge id: made here, read by a later segment or an output of a chain */
    bool late;         /* a kernel of this segment makes extents that are not known yet */
    ORTC_ARRAY(ortc_slot) slots;
    ORTC_ARRAY(ortc_step) steps;
    ORTC_ARRAY(ortc_block) blocks;
    ORTC_ARRAY(uint32_t) block_edges; /* edge id; UINT32_MAX: workspace of the step in `from` */
} planner;

/* ---- What a kernel's plan() says ----------------------------------------------------------------------------------------- */

#define MAX_REUSE 8

typedef struct plan_context {
    ortc_plan plan;
    planner *p;
    const ortc_node *node;
    size_t workspace, per_worker;
    double flops, bytes;
    uint64_t packed; /* bit i: input i has a packed form */
    bool is_view;
    uint32_t view_out, view_in;
    int64_t view_offset;
    const int64_t *view_strides;
    uint32_t n_reuse;
    struct {
        uint32_t out, in;
    } reuse[MAX_REUSE];
} plan_context;

static plan_context *outer(ortc_plan *p) { return (plan_context *)(void *)p; }
static void plan_workspace(ortc_plan *p, size_t bytes, size_t per_worker)
{
    outer(p)->workspace = bytes;
    outer(p)->per_worker = per_worker;
}
static void plan_may_reuse(ortc_plan *p, uint32_t out, uint32_t in)
{
    plan_context *c = outer(p);
    if (c->n_reuse < MAX_REUSE && out < p->n_out && in < p->n_in) {
        c->reuse[c->n_reuse].out = out;
        c->reuse[c->n_reuse++].in = in;
    }
}
static void plan_view(ortc_plan *p, uint32_t out, uint32_t in, int64_t byte_offset, const int64_t *strides)
{
    plan_context *c = outer(p);
    if (out >= p->n_out || in >= p->n_in || byte_offset < 0)
        return;
    c->is_view = true;
    c->view_out = out;
    c->view_in = in;
    c->view_offset = byte_offset;
    c->view_strides = strides;
}
static void plan_cost(ortc_plan *p, double flops, double bytes)
{
    outer(p)->flops = flops;
    outer(p)->bytes = bytes;
}
static ortc_status plan_fail(ortc_plan *p, ortc_status s, const char *fmt, va_list args)
{
    return ortc_vfail(outer(p)->p->error, s, fmt, args);
}
static const ortc_device *plan_device(const ortc_plan *p)
{
    const plan_context *c = (const plan_context *)(const void *)p;
    return c->p->session->devices[c->node->device].device;
}

static ortc_status pack(planner *p, const ortc_edge *e, const void *device, const ortc_packing *how, const void *param,
                        size_t param_bytes, ortc_pack_item **out)
{
    ortc_pack_store *store = p->session->packed;
    ORTC_TRY(ortc_pack_acquire(store, e->constant, device, how, param, param_bytes, p->env, out, p->error));
    if (!ortc_array_push(&p->program->packs, *out)) {
        ortc_pack_release(store, *out);
        return ortc_no_memory(p->error, sizeof *out);
    }
    p->program->packed_bytes += (*out)->packed.bytes;
    return ORTC_OK;
}

static ortc_status plan_pack(ortc_plan *plan, uint32_t in, const ortc_packing *how, const void *param, size_t param_bytes,
                             const ortc_packed **out)
{
    plan_context *c = outer(plan);
    ortc_edge *e = ortc_node_in_edge(c->node, in);
    ortc_pack_item *item = NULL;
    *out = NULL;
    if (!e || !ortc_edge_is_const(e))
        return ortc_fail(c->p->error, ORTC_INVALID_ARGUMENT, "input %u is not a constant: it cannot be packed", in);
    ORTC_TRY(pack(c->p, e, c->p->session->devices[c->node->device].device, how, param, param_bytes, &item));
    c->packed |= in < 64 ? UINT64_C(1) << in : 0;
    *out = &item->packed;
    return ORTC_OK;
}
static const ortc_plan_api plan_api = {
    .size = sizeof plan_api, .workspace = plan_workspace, .may_reuse = plan_may_reuse, .view = plan_view, .pack = plan_pack,
    .cost = plan_cost, .fail = plan_fail, .device = plan_device};

/* ---- Infer ----------------------------------------------------------------------------------------------------------------- */

static bool all_numbers(const ortc_fact *f)
{
    for (int32_t i = 0; i < f->rank; i++)
        if (!ortc_dim_is_number(f->dims[i]))
            return false;
    return f->rank >= 0;
}

static ortc_status fact_of_value(planner *p, const ortc_value *v, bool decides, ortc_fact *f)
{
    *f = (ortc_fact){.type = v->type, .rank = v->type->kind == ORTC_KIND_TENSOR ? v->rank : -1, .dims = v->dims};
    if (decides && v->type->kind == ORTC_KIND_TENSOR && (v->type->dtype == ORTC_I64 || v->type->dtype == ORTC_I32)) {
        ortc_constant c = {.dtype = v->type->dtype, .rank = v->rank, .dims = v->dims, .count = v->count, .data = v->data};
        f->values = ortc_constant_values(&c, &p->scratch, &f->n_values);
    }
    return ORTC_OK;
}

static ortc_status seed_facts(planner *p, const ortc_planner_input *inputs)
{
    const ortc_graph *g = p->graph;
    for (size_t i = 0; i < g->edges.count; i++) {
        const ortc_edge *e = g->edges.data[i];
        ortc_fact *f = &p->facts[i];
        *f = (ortc_fact){.type = e->type, .rank = -1};
        if (!e->constant)
            continue;
        f->rank = e->constant->rank;
        f->dims = e->constant->dims;
        f->values = ortc_constant_values(e->constant, &p->scratch, &f->n_values);
    }
    for (size_t i = 0; p->made && i < g->edges.count; i++)
        if (p->made[i])
            ORTC_TRY(fact_of_value(p, p->made[i], p->session->deciding[i], &p->facts[i]));
    for (uint32_t i = 0; i < g->n_inputs; i++) {
        const ortc_value *v = inputs[i].value;
        ortc_fact *f = &p->facts[g->inputs[i].edge->id];
        if (!v)
            continue; /* its default, seeded above */
        ORTC_TRY(fact_of_value(p, v, p->session->decides[i], f));
    }
    return ORTC_OK;
}

/* What a wanted output may need, by the graph alone. */
static void mark_asked(planner *p)
{
    for (uint32_t i = 0; i < p->graph->n_outputs; i++)
        if (p->wanted[i])
            p->asked[p->graph->outputs[i].edge->id] = true;
    for (const ortc_node *n = p->graph->last; n; n = n->prev) {
        bool asked = n->op && (n->op->flags & ORTC_OP_STATE);
        for (uint32_t i = 0; i < n->n_out && !asked; i++)
            asked = n->out[i] && p->asked[n->out[i]->id];
        for (uint32_t i = 0; i < n->n_in && asked; i++)
            if (n->in[i])
                p->asked[n->in[i]->id] = true;
    }
}

static bool is_asked(const planner *p, const ortc_node *n)
{
    bool asked = n->op && (n->op->flags & ORTC_OP_STATE);
    for (uint32_t i = 0; i < n->n_out && !asked; i++)
        asked = n->out[i] && p->asked[n->out[i]->id];
    return asked;
}

/* Shapes from the segment's first node on, until one that cannot be known; that sets the segment's end. */
static ortc_status infer_segment(planner *p)
{
    ortc_infer c;
    ortc_infer_init(&c, NULL, &p->scratch, p->facts, p->error);
    for (const ortc_node *n = p->begin; n; n = n->next) {
        if (!is_asked(p, n))
            continue;
        ortc_fact *out = ortc_arena_array(&p->scratch, n->n_out, sizeof *out);
        if (!out)
            return ortc_no_memory(p->error, 0);
        ORTC_TRY(ortc_infer_run(&c, n, out));
        bool late = false;
        for (uint32_t i = 0; i < n->n_out; i++)
            if (n->out[i]) {
                if (!out[i].type)
                    out[i].type = n->out[i]->type;
                late |= p->asked[n->out[i]->id] && !all_numbers(&out[i]);
            }
        if (late && !(n->kernel->flags & ORTC_KERNEL_LATE_OUT)) {
            if (n == p->begin)
                return ortc_fail(p->error, ORTC_UNSUPPORTED,
                                 "node '%s' (%s): the shape of its result cannot be told from what is known when it runs", n->name,
                                 n->type);
            p->end = n; /* once what is before it has run, the values that it waits for are known */
            return ORTC_OK;
        }
        for (uint32_t i = 0; i < n->n_out; i++)
            if (n->out[i])
                p->facts[n->out[i]->id] = out[i];
        if (late) {
            p->late = true;
            p->end = n->next;
            return ORTC_OK;
        }
    }
    return ORTC_OK;
}

/* ---- Need -------------------------------------------------------------------------------------------------------------------- */

static bool runs(const planner *p, const ortc_node *n)
{
    if (n->op && (n->op->flags & ORTC_OP_STATE))
        return true;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i] && p->needed[n->out[i]->id] && !ortc_fact_values_known(&p->facts[n->out[i]->id]))
            return true;
    return false;
}

/* Edges whose bytes some step must provide. An edge with known values is provided by the planner itself. */
static void mark_needed(planner *p)
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
                if (n->in[i])
                    p->needed[n->in[i]->id] = p->crosses[n->in[i]->id] = true;
        if (n == p->end)
            break;
    }
    for (const ortc_node *n = p->end ? p->end->prev : g->last; n && n != p->begin->prev; n = n->prev) {
        if (!runs(p, n)) {
            p->program->n_folded++;
            continue;
        }
        for (uint32_t i = 0; i < n->n_in; i++)
            if (n->in[i])
                p->needed[n->in[i]->id] = true;
    }
}

/* ---- Homes --------------------------------------------------------------------------------------------------------------------- */

static bool known_bytes(const ortc_fact *f, size_t *out)
{
    int64_t count;
    return f->type && f->type->kind == ORTC_KIND_TENSOR && all_numbers(f) && ortc_count_elements(f->rank, f->dims, &count) &&
           ortc_tensor_bytes(f->type->dtype, count, out);
}

static ortc_status fact_bytes(planner *p, const ortc_edge *e, size_t *out)
{
    const ortc_fact *f = &p->facts[e->id];
    int64_t count;
    char buffer[160];
    ortc_text t = ORTC_TEXT(buffer);
    if (!f->type || f->type->kind != ORTC_KIND_TENSOR || !all_numbers(f))
        return ortc_fail(p->error, ORTC_UNSUPPORTED, "the shape of '%s' is known only when the model runs, which this version "
                         "cannot plan", e->name);
    if (f->type->dtype == ORTC_STRING)
        return ortc_fail(p->error, ORTC_UNSUPPORTED, "'%s' holds strings that the model makes, which this version cannot do", e->name);
    if (!ortc_count_elements(f->rank, f->dims, &count) || !ortc_tensor_bytes(f->type->dtype, count, out) ||
        *out > SIZE_MAX / 4) {
        ortc_text_tensor(&t, f->type->dtype, f->rank, f->dims);
        return ortc_fail(p->error, ORTC_LIMIT, "'%s' would be %s, which is too large", e->name, buffer);
    }
    return ORTC_OK;
}

/* Known values that a kernel or an output wants to read: written out as a literal. */
static ortc_status literal(planner *p, const ortc_edge *e, home *h)
{
    const ortc_fact *f = &p->facts[e->id];
    int64_t *data = ortc_arena_array(&p->program->arena, (size_t)f->n_values + 1, sizeof *data);
    if (!data)
        return ortc_no_memory(p->error, 0);
    for (int64_t i = 0; i < f->n_values; i++)
        if (f->type->dtype == ORTC_I32)
            ((int32_t *)data)[i] = (int32_t)f->values[i];
        else
            data[i] = f->values[i];
    *h = (home){.lives = LIVES_POINTER, .root = e->id, .data = data};
    return fact_bytes(p, e, &h->bytes);
}

/* Gives a home to an edge that a step reads and nobody has made: constants, inputs, literals. */
static ortc_status home_of(planner *p, const ortc_edge *e, home **out)
{
    home *h = &p->homes[e->id];
    const ortc_fact *f = &p->facts[e->id];
    *out = h;
    if (h->lives || h->made || h->root != e->id)
        return ORTC_OK;
    if (p->made && p->made[e->id]) {
        *h = (home){.lives = LIVES_SLOT, .index = e->id, .root = e->id, .bytes = p->made[e->id]->bytes};
        return ORTC_OK;
    }
    bool defaulted = e->input >= 0 && e->constant && f->dims == e->constant->dims;
    if (e->constant && (e->input < 0 || defaulted)) {
        const ortc_constant *c = e->constant;
        *h = (home){.lives = LIVES_POINTER, .root = e->id, .data = c->data, .bytes = c->bytes};
        p->program->constant_bytes += c->bytes;
        return ORTC_OK;
    }
    if (e->input >= 0) {
        *h = (home){.lives = LIVES_INPUT, .index = (uint32_t)e->input, .root = e->id};
        return ORTC_OK;
    }
    if (ortc_fact_values_known(f))
        return literal(p, e, h);
    return ortc_fail(p->error, ORTC_INTERNAL, "'%s' is read before it is made", e->name);
}

/* ---- Choose ------------------------------------------------------------------------------------------------------------------------ */

static ortc_status operand(planner *p, const ortc_edge *e, bool input, const ortc_node *n, uint32_t port, ortc_operand *o)
{
    *o = (ortc_operand){.view = {.rank = 0}};
    if (!e)
        return ORTC_OK;
    const ortc_fact *f = &p->facts[e->id];
    if (!input && f->type && f->type->kind == ORTC_KIND_TENSOR && !all_numbers(f)) {
        int32_t rank = f->rank < 0 ? 0 : f->rank;
        int64_t *dims = ortc_arena_array(&p->program->arena, (size_t)rank, sizeof *dims);
        if (!dims)
            return ortc_no_memory(p->error, 0);
        for (int32_t i = 0; i < rank; i++)
            dims[i] = ortc_dim_is_number(f->dims[i]) ? f->dims[i] : -1;
        o->view = (ortc_view){.dtype = f->type->dtype, .rank = rank, .flags = ORTC_VIEW_HOST | ORTC_VIEW_LATE, .dims = dims};
        return ORTC_OK;
    }
    if (!f->type || f->type->kind != ORTC_KIND_TENSOR || !all_numbers(f))
        return ortc_fail(p->error, ORTC_UNSUPPORTED,
                         "node '%s' (%s): %s %u ('%s') has a shape or type known only when the model runs, which this version "
                         "cannot plan", n->name, n->type, input ? "input" : "output", port, e->name);
    o->view.dtype = f->type->dtype;
    o->view.rank = f->rank;
    o->view.flags = ORTC_VIEW_HOST;
    if (f->rank && !(o->view.dims = ortc_arena_copy(&p->program->arena, f->dims, (size_t)f->rank * sizeof *f->dims)))
        return ortc_no_memory(p->error, 0);
    if (!input)
        return ORTC_OK;
    home *h;
    ORTC_TRY(home_of(p, e, &h));
    if (p->homes[h->root].lives == LIVES_POINTER) {
        o->view.flags |= ortc_edge_is_const(e) ? ORTC_VIEW_CONST : 0;
        o->view.data = (char *)(uintptr_t)p->homes[h->root].data + h->offset;
    }
    return ORTC_OK;
}

static ortc_status add_block(planner *p, size_t bytes, uint32_t step, uint32_t edge, uint32_t *out)
{
    size_t aligned;
    if (!ortc_align_size(bytes ? bytes : 1, ORTC_ALIGNMENT, &aligned))
        return ortc_no_memory(p->error, bytes);
    *out = (uint32_t)p->blocks.count;
    if (!ortc_array_push(&p->blocks, (ortc_block){aligned, step, step, -1, 0}) || !ortc_array_push(&p->block_edges, edge))
        return ortc_no_memory(p->error, sizeof(ortc_block));
    return ORTC_OK;
}

static ortc_status add_slot(planner *p, const ortc_edge *e, bool late)
{
    const ortc_fact *f = &p->facts[e->id];
    home *h = &p->homes[e->id];
    ortc_slot s = {.edge = e->id, .late = late, .deciding = p->session->deciding[e->id], .dtype = f->type->dtype, .rank = f->rank};
    *h = (home){.lives = LIVES_SLOT, .index = e->id, .root = e->id, .made = true};
    if (!late) {
        ORTC_TRY(fact_bytes(p, e, &h->bytes));
        if (f->rank && !(s.dims = ortc_arena_copy(&p->program->arena, f->dims, (size_t)f->rank * sizeof *f->dims)))
            return ortc_no_memory(p->error, 0);
    }
    return ortc_array_push(&p->slots, s) ? ORTC_OK : ortc_no_memory(p->error, sizeof s);
}

/* A constant that a kernel will read as it is needs the alignment of its elements; in one-file models it lies anywhere.
 * One that the kernel has packed is left alone: nobody reads it while running. */
static ortc_status align_constant(planner *p, const ortc_edge *e)
{
    home *root = &p->homes[p->homes[e->id].root];
    const ortc_edge *owner = p->graph->edges.data[p->homes[e->id].root];
    uint32_t bytes = ortc_dtype_bits(p->facts[owner->id].type->dtype) / 8;
    if (root->lives != LIVES_POINTER || !owner->constant || bytes < 2 || (uintptr_t)root->data % (bytes > 8 ? 8 : bytes) == 0)
        return ORTC_OK;
    ortc_pack_item *item;
    ORTC_TRY(pack(p, owner, NULL, &ortc_packing_aligned, NULL, 0, &item));
    p->program->constant_bytes -= owner->constant->bytes;
    root->data = item->packed.data;
    return ORTC_OK;
}

/* The output becomes a view of the input's memory; false: it cannot, the kernel must run. */
static bool make_view(planner *p, const plan_context *c)
{
    const ortc_node *n = c->node;
    const ortc_edge *from = n->in[c->view_in], *to = n->out[c->view_out];
    const home *h = &p->homes[from->id];
    size_t bytes, from_bytes;
    if (p->crosses[to->id] || c->view_strides || n->n_out != 1 || !known_bytes(&p->facts[to->id], &bytes) ||
        !known_bytes(&p->facts[from->id], &from_bytes) || (uint64_t)c->view_offset > from_bytes || bytes > from_bytes - (size_t)c->view_offset)
        return false;
    p->homes[to->id] = (home){.root = h->root, .offset = h->offset + (size_t)c->view_offset, .made = true};
    p->program->n_views++;
    return true;
}

static void note_use(planner *p, const ortc_edge *e, uint32_t step)
{
    home *root = &p->homes[p->homes[e->id].root];
    root->last = step;
    if (root->lives == LIVES_BLOCK)
        p->blocks.data[root->index].to = step;
}

static ortc_status plan_node(planner *p, const ortc_node *n)
{
    ortc_program *program = p->program;
    uint32_t index = (uint32_t)p->steps.count;
    ortc_step s = {.kind = ORTC_STEP_KERNEL, .device = (uint8_t)n->device, .node = n, .kernel = n->kernel, .n_in = n->n_in,
                   .n_out = n->n_out};
    s.in = ortc_arena_array(&program->arena, n->n_in, sizeof *s.in);
    s.out = ortc_arena_array(&program->arena, n->n_out, sizeof *s.out);
    ortc_view *views = ortc_arena_array(&p->scratch, n->n_in + n->n_out, sizeof *views);
    if (!s.in || !s.out || !views)
        return ortc_no_memory(p->error, 0);
    for (uint32_t i = 0; i < n->n_in; i++) {
        ORTC_TRY(operand(p, n->in[i], true, n, i, &s.in[i]));
        views[i] = s.in[i].view;
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
        const ortc_edge *e = n->out[i];
        ORTC_TRY(operand(p, e && (e->uses || p->needed[e->id]) ? e : NULL, false, n, i, &s.out[i]));
        views[n->n_in + i] = s.out[i].view;
    }
    plan_context c = {.plan = {.api = &plan_api, .size = sizeof(ortc_plan), .n_in = n->n_in, .n_out = n->n_out, .in = views,
                               .out = views + n->n_in},
                      .p = p, .node = n};
    if (n->kernel->plan) {
        if (p->error)
            p->error->text[0] = 0;
        ortc_status status = n->kernel->plan(n->state, &c.plan, &s.pstate);
        if (status != ORTC_OK)
            return ortc_step_failed(n, n->kernel, status, p->error);
    }
    if (c.is_view && make_view(p, &c)) {
        if (s.pstate)
            (n->kernel->release_plan ? n->kernel->release_plan(n->state, s.pstate) : free(s.pstate));
        return ORTC_OK;
    }
    if (!ortc_array_push(&p->steps, s)) { /* from here on the step owns pstate */
        if (s.pstate)
            (n->kernel->release_plan ? n->kernel->release_plan(n->state, s.pstate) : free(s.pstate));
        return ortc_no_memory(p->error, sizeof s);
    }
    ortc_step *step = &p->steps.data[index];
    step->flops = c.flops;
    step->bytes = c.bytes;
    step->workspace = c.workspace;
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (!n->in[i])
            continue;
        note_use(p, n->in[i], index);
        if (i >= 64 || !(c.packed >> i & 1))
            ORTC_TRY(align_constant(p, n->in[i]));
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
        const ortc_edge *e = n->out[i];
        if (!step->out[i].view.dtype)
            continue;
        home *h = &p->homes[e->id];
        if (p->crosses[e->id] || (step->out[i].view.flags & ORTC_VIEW_LATE)) {
            ORTC_TRY(add_slot(p, e, (step->out[i].view.flags & ORTC_VIEW_LATE) != 0));
            continue;
        }
        *h = (home){.lives = LIVES_BLOCK, .root = e->id, .last = index, .made = true};
        ORTC_TRY(fact_bytes(p, e, &h->bytes));
        ORTC_TRY(add_block(p, h->bytes, index, e->id, &h->index));
        for (uint32_t k = 0; k < c.n_reuse; k++)
            if (c.reuse[k].out == i && n->in[c.reuse[k].in]) {
                const home *in = &p->homes[p->homes[n->in[c.reuse[k].in]->id].root];
                if (in->lives == LIVES_BLOCK && in->bytes == h->bytes)
                    p->blocks.data[h->index].reuse = (int32_t)in->index;
            }
    }
    size_t all = c.workspace;
    if (c.per_worker) {
        size_t each, workers;
        if (!ortc_align_size(c.per_worker, ORTC_ALIGNMENT, &each) || !ortc_mul_size(each, p->env->threads, &workers) ||
            !ortc_align_size(all, ORTC_ALIGNMENT, &all) || !ortc_add_size(all, workers, &all))
            return ortc_no_memory(p->error, c.per_worker);
        step->workspace_per_worker = each;
    }
    if (all) {
        uint32_t block;
        ORTC_TRY(add_block(p, all, index, UINT32_MAX, &block));
        program->workspace_bytes += all;
    }
    return ORTC_OK;
}

/* ---- Place ---------------------------------------------------------------------------------------------------------------------------- */

static ortc_status copy_step(planner *p, const ortc_edge *from, uint32_t to, uint32_t index, size_t bytes)
{
    ortc_step s = {.kind = ORTC_STEP_COPY, .n_in = 1, .n_out = 1, .copy_bytes = bytes};
    s.in = ortc_arena_array(&p->program->arena, 1, sizeof *s.in);
    s.out = ortc_arena_array(&p->program->arena, 1, sizeof *s.out);
    if (!s.in || !s.out || !ortc_array_push(&p->steps, s))
        return ortc_no_memory(p->error, sizeof s);
    note_use(p, from, (uint32_t)p->steps.count - 1);
    s.out->from = to;
    s.out->index = index;
    s.in->index = from->id; /* resolved with the other operands */
    s.in->from = ORTC_FROM_ARENA;
    return ORTC_OK;
}

/* Outputs of the graph: a block that is one whole output is made in the caller's memory; all else is copied at the end. */
static ortc_status place_outputs(planner *p)
{
    const ortc_graph *g = p->graph;
    ortc_program *program = p->program;
    for (uint32_t i = 0; i < g->n_outputs; i++) {
        if (!p->wanted[i])
            continue;
        const ortc_edge *e = g->outputs[i].edge;
        const ortc_fact *f = &p->facts[e->id];
        ortc_program_output *o = &program->outputs[i];
        ORTC_TRY(fact_bytes(p, e, &o->bytes));
        o->type = f->type;
        o->dtype = f->type->dtype;
        o->rank = f->rank;
        if (!(o->dims = ortc_arena_array(&program->arena, (size_t)f->rank, sizeof *o->dims)))
            return ortc_no_memory(p->error, 0);
        if (f->rank)
            memcpy((int64_t *)(uintptr_t)o->dims, f->dims, (size_t)f->rank * sizeof *o->dims);
        home *h;
        ORTC_TRY(home_of(p, e, &h));
        home *root = &p->homes[h->root];
        if (root->lives == LIVES_BLOCK && !h->offset && root->bytes == o->bytes) {
            p->blocks.data[root->index].bytes = 0; /* takes no place */
            root->lives = LIVES_OUTPUT;
            root->index = i;
        } else
            ORTC_TRY(copy_step(p, e, ORTC_FROM_OUTPUT, i, o->bytes));
    }
    return ORTC_OK;
}

static bool is_output(const planner *p, const ortc_edge *e)
{
    for (uint32_t i = 0; i < p->graph->n_outputs; i++)
        if (p->wanted[i] && p->graph->outputs[i].edge == e)
            return true;
    return false;
}

/* A chain's results and what later segments read are slots. What no step makes (known values, and in the last segment
 * outputs that are inputs or constants) is copied into one. */
static ortc_status fill_slots(planner *p)
{
    for (size_t i = 0; i < p->graph->edges.count; i++) {
        const ortc_edge *e = p->graph->edges.data[i];
        bool stays = e->input >= 0 || e->constant; /* later segments find it where it is */
        if (!p->crosses[i] || p->homes[i].lives == LIVES_SLOT || (p->made && p->made[i]))
            continue;
        if (stays ? p->end != NULL || !is_output(p, e) : !ortc_fact_values_known(&p->facts[i]))
            continue;
        home *h;
        size_t bytes;
        ORTC_TRY(home_of(p, e, &h));
        ORTC_TRY(fact_bytes(p, e, &bytes));
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

static void resolve(const planner *p, const ortc_edge *e, ortc_operand *o)
{
    if (!e)
        return;
    const home *h = &p->homes[e->id], *root = &p->homes[h->root];
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

static ortc_status place_blocks(planner *p)
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

/* ---- The whole --------------------------------------------------------------------------------------------------------------------------- */

static ortc_status build(planner *p, const ortc_planner_input *inputs)
{
    const ortc_graph *g = p->graph;
    size_t n = g->edges.count;
    p->facts = ortc_arena_array(&p->scratch, n, sizeof *p->facts);
    p->needed = ortc_arena_array(&p->scratch, n, sizeof *p->needed);
    p->homes = ortc_arena_array(&p->scratch, n, sizeof *p->homes);
    p->asked = ortc_arena_array(&p->scratch, n, sizeof *p->asked);
    p->crosses = ortc_arena_array(&p->scratch, n, sizeof *p->crosses);
    p->program->outputs = ortc_arena_array(&p->program->arena, g->n_outputs, sizeof *p->program->outputs);
    p->program->n_outputs = g->n_outputs;
    if (!p->facts || !p->needed || !p->homes || !p->asked || !p->crosses || !p->program->outputs)
        return ortc_no_memory(p->error, n * sizeof *p->homes);
    for (size_t i = 0; i < n; i++)
        p->homes[i].root = (uint32_t)i;
    ORTC_TRY(seed_facts(p, inputs));
    mark_asked(p);
    ORTC_TRY(infer_segment(p));
    p->program->end = p->end;
    p->program->chained = p->made || p->end || p->late;
    mark_needed(p);
    for (const ortc_node *node = p->begin; node != p->end; node = node->next) {
        if (!runs(p, node))
            continue;
        if (p->env->cancel || p->env->deadline_ns)
            ORTC_TRY(ortc_run_env_poll(p->env));
        ORTC_TRY(plan_node(p, node));
    }
    ORTC_TRY(p->program->chained ? fill_slots(p) : place_outputs(p));
    ORTC_TRY(place_blocks(p));
    /* The steps move into the program's arena; those that own a pstate are its to release from now on. */
    ortc_step *steps = ortc_arena_array(&p->program->arena, p->steps.count, sizeof *steps);
    if (!steps)
        return ortc_no_memory(p->error, 0);
    if (p->steps.count)
        memcpy(steps, p->steps.data, p->steps.count * sizeof *steps);
    p->program->steps = steps;
    p->program->n_steps = (uint32_t)p->steps.count;
    return ORTC_OK;
}

static void release_steps(ortc_step *steps, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (steps[i].pstate) {
            const ortc_kernel *k = steps[i].kernel;
            if (k->release_plan)
                k->release_plan(steps[i].node->state, steps[i].pstate);
            else
                free(steps[i].pstate);
        }
}

ortc_status ortc_program_build(ortc_session *session, const ortc_planner_input *inputs, const bool *wanted,
                               const ortc_program *after, ortc_value *const *slots, ortc_run_env *env, ortc_program **out,
                               ortc_error *error)
{
    static atomic_uint_fast64_t next_id = 1;
    *out = NULL;
    ortc_program *program = calloc(1, sizeof *program);
    if (!program)
        return ortc_no_memory(error, sizeof *program);
    atomic_init(&program->references, 1);
    program->id = atomic_fetch_add(&next_id, 1);
    program->store = session->packed;
    planner p = {.session = session, .graph = session->graph, .env = env, .error = error, .program = program,
                 .wanted = wanted, .begin = after ? after->end : session->graph->first, .made = after ? slots : NULL};
    ortc_status s = build(&p, inputs);
    if (s != ORTC_OK)
        release_steps(p.steps.data, p.steps.count);
    ortc_array_deinit(&p.steps);
    ortc_array_deinit(&p.blocks);
    ortc_array_deinit(&p.block_edges);
    ortc_array_deinit(&p.slots);
    ortc_arena_deinit(&p.scratch);
    if (s != ORTC_OK) {
        program->n_steps = 0;
        ortc_program_release(program);
        return s;
    }
    *out = program;
    return ORTC_OK;
}

ortc_program *ortc_program_retain(ortc_program *p)
{
    atomic_fetch_add_explicit(&p->references, 1, memory_order_relaxed);
    return p;
}

void ortc_program_release(ortc_program *p)
{
    if (!p || atomic_fetch_sub_explicit(&p->references, 1, memory_order_acq_rel) != 1)
        return;
    release_steps(p->steps, p->n_steps);
    for (size_t i = 0; i < p->packs.count; i++)
        ortc_pack_release(p->store, p->packs.data[i]);
    ortc_array_deinit(&p->packs);
    ortc_arena_deinit(&p->arena);
    free(p);
}
