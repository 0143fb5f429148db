/* runtime/plan/planner_node.c: one node of the graph: what its kernel says to the shapes, and the step that
 * comes of it (planner.h).
 */
#include "planner.h"
#include "runtime/registry/registry.h"

/* ---- What a kernel's plan() says ----------------------------------------------------------------------- */

#define MAX_REUSE 8
#define MAX_VIEWS 32 /* outputs that may be parts of inputs; of more the kernel makes copies */

typedef struct plan_context {
    ortc_plan plan;
    ortc_planner *p;
    const ortc_node *node;
    const ortc_target *target;
    size_t workspace, per_worker;
    double flops, bytes;
    uint64_t packed; /* bit i: input i has a packed form */
    uint32_t n_views, n_reuse;
    size_t first_part;    /* of the planner's */
    size_t first_passing; /* of the program's */
    struct {
        uint32_t out, in;
        int64_t offset; /* bytes */
    } views[MAX_VIEWS];
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
static void plan_view(ortc_plan *p, uint32_t out, uint32_t in, int64_t byte_offset)
{
    plan_context *c = outer(p);
    bool again = false; /* one place for an output: the first that is offered */
    for (uint32_t i = 0; i < c->n_views; i++) again |= c->views[i].out == out;
    if (again || c->n_views == MAX_VIEWS || out >= p->n_out || in >= p->n_in) return;
    c->views[c->n_views].out = out;
    c->views[c->n_views].in = in;
    c->views[c->n_views].offset = byte_offset;
    c->n_views++;
}
/* An offer only: without memory for it the kernel copies. */
static void plan_part(ortc_plan *p, uint32_t out, uint32_t in, int64_t byte_offset)
{
    plan_context *c = outer(p);
    if (out < p->n_out && in < p->n_in && byte_offset >= 0)
        (void)ortc_array_push(&c->p->parts,
                              (ortc_part){.port = in, .out = out, .offset = (size_t)byte_offset});
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
    return c->target->device;
}

static ortc_status plan_pack(ortc_plan *plan, uint32_t in, const ortc_packing *how, const void *param,
                             size_t param_bytes, const ortc_packed **out)
{
    plan_context *c = outer(plan);
    ortc_edge *e = ortc_node_in_edge(c->node, in);
    ortc_pack_item *item = NULL;
    *out = NULL;
    if (!e || !ortc_edge_is_const(e))
        return ortc_fail(c->p->error, ORTC_INVALID_ARGUMENT,
                         "input %u is not a constant: it cannot be packed", in);
    ORTC_TRY(ortc_planner_pack(c->p, e, c->target->open, how, param, param_bytes, &item));
    if (!e->constant->of || ortc_packing_has(how, ORTC_PACKING_ROUNDS))
        c->packed |= in < 64 ? UINT64_C(1) << in : 0;
    if (item) *out = &item->packed;
    return ORTC_OK;
}
static const ortc_plan_api plan_api = {.size = sizeof plan_api,
                                       .workspace = plan_workspace,
                                       .may_reuse = plan_may_reuse,
                                       .view = plan_view,
                                       .pack = plan_pack,
                                       .cost = plan_cost,
                                       .fail = plan_fail,
                                       .device = plan_device,
                                       .part = plan_part};

/* ---- Choose -------------------------------------------------------------------------------------------- */

static ortc_status operand(ortc_planner *p, const ortc_edge *e, bool input, const ortc_node *n, uint32_t port,
                           ortc_operand *o)
{
    *o = (ortc_operand){.view = {.rank = 0}};
    if (!e) return ORTC_OK;
    const ortc_fact *f = &p->facts[e->id];
    o->edge = e->id;
    o->form = ortc_planner_port_form(p, n, port, input);
    o->space = p->forms[o->form].space;
    if (ortc_fact_is_value(f)) return ortc_planner_value_operand(p, e, input, o);
    if (!input && f->type && f->type->kind == ORTC_KIND_TENSOR && !ortc_fact_is_sized(f)) {
        int32_t rank = f->rank < 0 ? 0 : f->rank;
        int64_t *dims = ortc_arena_array(&p->program->arena, (size_t)rank, sizeof *dims);
        if (!dims) return ortc_no_memory(p->error, 0);
        for (int32_t i = 0; i < rank; i++) dims[i] = ortc_dim_is_number(f->dims[i]) ? f->dims[i] : -1;
        o->view = (ortc_view){.dtype = f->type->dtype,
                              .rank = rank,
                              .flags = ORTC_VIEW_HOST | ORTC_VIEW_LATE,
                              .dims = dims};
        return ORTC_OK;
    }
    if (!f->type || f->type->kind != ORTC_KIND_TENSOR || !ortc_fact_is_sized(f))
        return ortc_fail(p->error, ORTC_UNSUPPORTED,
                         "node '%s' (%s): %s %u ('%s') has a shape or type known only when the model runs, "
                         "which this version "
                         "cannot plan",
                         n->name, n->type, input ? "input" : "output", port, e->name);
    o->view.dtype = f->type->dtype;
    o->view.rank = f->rank;
    o->view.flags = ORTC_VIEW_HOST;
    o->view.layout = p->forms[o->form].layout;
    if (f->rank &&
        !(o->view.dims = ortc_arena_copy(&p->program->arena, f->dims, (size_t)f->rank * sizeof *f->dims)))
        return ortc_no_memory(p->error, 0);
    if (!input) return ORTC_OK;
    ortc_home *h;
    ORTC_TRY(ortc_planner_home(p, e, &h));
    const ortc_home *root = ortc_planner_root(p, h);
    if (root->lives == LIVES_POINTER) {
        o->view.flags |= ortc_edge_is_const(e) ? ORTC_VIEW_CONST : 0;
        o->view.data = (char *)(uintptr_t)root->data + h->offset;
    }
    return ORTC_OK;
}

uint8_t ortc_planner_port_form(const ortc_planner *p, const ortc_node *n, uint32_t port, bool input)
{
    const ortc_pick *pick = &p->picks[n->id];
    const ortc_layout *layouts = input ? pick->in : pick->out;
    return ortc_planner_form(p, ortc_port_space(p->placed, p->facts, n, port, input),
                             layouts ? layouts[port] : ORTC_PLAIN);
}

static ortc_status add_slot(ortc_planner *p, const ortc_edge *e, bool late, uint8_t space)
{
    const ortc_fact *f = &p->facts[e->id];
    ortc_home *h = ortc_planner_at(p, e, space);
    ortc_slot s = {.edge = e->id,
                   .late = late,
                   .deciding = p->placed->deciding[e->id],
                   .space = space,
                   .dtype = f->type->dtype,
                   .rank = f->rank};
    p->primary[e->id] = space;
    *h = (ortc_home){.lives = LIVES_SLOT, .index = e->id, .root = ortc_planner_number(p, h), .made = true};
    if (!late) {
        ORTC_TRY(ortc_planner_bytes(p, e, space, &h->bytes));
        if (f->rank &&
            !(s.dims = ortc_arena_copy(&p->program->arena, f->dims, (size_t)f->rank * sizeof *f->dims)))
            return ortc_no_memory(p->error, 0);
    }
    return ortc_array_push(&p->slots, s) ? ORTC_OK : ortc_no_memory(p->error, sizeof s);
}

/* A constant that a kernel will read as it is needs the alignment of its elements (in one-file models it lies
 * anywhere) unless the kernel says otherwise, and to be rounded where it is yet to be. One that the kernel
 * has packed is left alone: nobody reads it while running. */
static ortc_status align_constant(ortc_planner *p, const ortc_edge *e, const ortc_kernel *kernel)
{
    ortc_home *root = ortc_planner_root(p, ortc_planner_at(p, e, 0));
    const ortc_edge *owner = ortc_planner_owner(p, ortc_planner_number(p, root));
    uint32_t bytes = ortc_dtype_bits(p->facts[owner->id].type->dtype) / 8;
    if (root->lives != LIVES_POINTER || !owner->constant || bytes < 2 ||
        (root->data &&
         ((kernel->flags & ORTC_KERNEL_UNALIGNED) || (uintptr_t)root->data % (bytes > 8 ? 8 : bytes) == 0)) ||
        (!root->data && !owner->constant->of))
        return ORTC_OK;
    ortc_pack_item *item;
    ORTC_TRY(ortc_planner_pack(p, owner, NULL, &ortc_packing_aligned, NULL, 0, &item));
    p->program->constant_bytes -= owner->constant->bytes;
    root->data = item->packed.data;
    return ORTC_OK;
}

/* Can the output be a part of the input's memory? An offer that leaves that memory is not declined but an
 * error: whoever made it would read and write there, too. */
static ortc_status may_view(const ortc_planner *p, const plan_context *c, uint32_t i, bool *out)
{
    const ortc_edge *from = c->node->in[c->views[i].in], *to = c->node->out[c->views[i].out];
    const int64_t offset = c->views[i].offset;
    size_t bytes, from_bytes;
    *out = false;
    if (!from || !to || p->crosses[to->id]) return ORTC_OK;
    const ortc_layout lies = c->plan.in[c->views[i].in].layout, layout = c->plan.out[c->views[i].out].layout;
    if (ortc_fact_is_given(&p->facts[to->id]) || ortc_fact_is_given(&p->facts[from->id])) {
        *out = !offset && ortc_fact_same_strings(&p->facts[from->id], &p->facts[to->id]);
        return ORTC_OK;
    }
    const ortc_fact *of = &p->facts[from->id], *made = &p->facts[to->id];
    if (!ortc_fact_bytes(made, &bytes) || !ortc_fact_bytes(of, &from_bytes) ||
        !ortc_bytes_laid_out(made->type->dtype, layout, made->rank, made->dims, &bytes) ||
        !ortc_bytes_laid_out(of->type->dtype, lies, of->rank, of->dims, &from_bytes))
        return ORTC_OK;
    if (offset < 0 || (uint64_t)offset > from_bytes || bytes > from_bytes - (size_t)offset)
        return ortc_fail(
            p->error, ORTC_SHAPE_MISMATCH,
            "node '%s' (%s): output %u would be %zu bytes from byte %lld of input %u, which has %zu",
            c->node->name, c->node->type, c->views[i].out, bytes, (long long)offset, c->views[i].in,
            from_bytes);
    *out = true;
    return ORTC_OK;
}

/* The outputs become views of inputs' memory, plain ones wherever that is; *out false: one of them cannot,
 * the kernel must run. */
static ortc_status make_views(ortc_planner *p, const plan_context *c, bool *out)
{
    const ortc_node *n = c->node;
    bool all = c->n_views > 0;
    for (uint32_t port = 0; port < n->n_out; port++) {
        uint32_t i = 0;
        bool may = !ortc_view_present(&c->plan.out[port]);
        while (i < c->n_views && c->views[i].out != port) i++;
        if (i < c->n_views) ORTC_TRY(may_view(p, c, i, &may));
        all &= may;
    }
    *out = all;
    if (!all) return ORTC_OK;
    for (uint32_t i = 0; i < c->n_views; i++) {
        const ortc_edge *from = n->in[c->views[i].in], *to = n->out[c->views[i].out];
        const ortc_layout lies = c->plan.in[c->views[i].in].layout,
                          layout = c->plan.out[c->views[i].out].layout;
        const bool plain = !lies && !layout;
        const uint8_t at = p->primary[from->id], space = plain ? p->forms[at].space : c->target->space,
                      form = ortc_planner_form(p, space, lies);
        if (!plain || p->forms[at].layout) ORTC_TRY(ortc_planner_reach(p, from, form));
        for (uint8_t f = plain ? 0 : form; f < (plain ? p->targets->n_spaces : form + 1u); f++) {
            const ortc_home *h = ortc_planner_at(p, from, f);
            if (h->lives || h->made || h->root != ortc_planner_number(p, h))
                *ortc_planner_at(p, to, plain ? f : ortc_planner_form(p, space, layout)) = (ortc_home){
                    .root = h->root, .offset = h->offset + (size_t)c->views[i].offset, .made = true};
        }
        p->primary[to->id] = ortc_planner_form(p, space, layout);
    }
    p->program->n_views++;
    return ORTC_OK;
}

void ortc_step_drop_pstate(const ortc_step *s)
{
    if (s->pstate) (s->kernel->release_plan ? s->kernel->release_plan(s->state, s->pstate) : free(s->pstate));
}

/* Brings a step's inputs to where its kernel reads them. A packed constant is read by nobody while
 * running. */
static ortc_status bring_inputs(ortc_planner *p, const ortc_node *n, ortc_step *s, uint64_t packed)
{
    for (uint32_t i = 0; i < n->n_in; i++) {
        if (!n->in[i] || (i < 64 && (packed >> i & 1))) continue;
        ORTC_TRY(ortc_planner_reach(p, n->in[i], s->in[i].form));
        if (s->in[i].space) {
            s->in[i].view.flags &= (uint16_t)~ORTC_VIEW_HOST;
            continue;
        }
        ORTC_TRY(ortc_planner_ready(p, n->in[i]));
        ORTC_TRY(align_constant(p, n->in[i], s->kernel));
    }
    return ORTC_OK;
}

/* ---- One node ------------------------------------------------------------------------------------------ */

/* A step with its operands, which the kernel sees as copies: a sanitizer sees what leaves them. */
static ortc_status begin_step(ortc_planner *p, const ortc_node *n, ortc_step *s, ortc_plan *plan)
{
    s->in = ortc_arena_array(&p->program->arena, n->n_in, sizeof *s->in);
    s->out = ortc_arena_array(&p->program->arena, n->n_out, sizeof *s->out);
    ortc_view *ins = ortc_arena_array(&p->scratch, n->n_in, sizeof *ins);
    ortc_view *outs = ortc_arena_array(&p->scratch, n->n_out, sizeof *outs);
    if (!s->in || !s->out || !ins || !outs) return ortc_no_memory(p->error, 0);
    for (uint32_t i = 0; i < n->n_in; i++) {
        ORTC_TRY(operand(p, n->in[i], true, n, i, &s->in[i]));
        ins[i] = s->in[i].view;
        s->values |= n->in[i] && ortc_fact_is_given(&p->facts[n->in[i]->id]);
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
        const bool makes = ortc_planner_makes(p, n, i);
        ORTC_TRY(operand(p, makes ? n->out[i] : NULL, false, n, i, &s->out[i]));
        outs[i] = s->out[i].view;
        s->values |= makes && ortc_fact_is_given(&p->facts[n->out[i]->id]);
    }
    *plan = (ortc_plan){.api = &plan_api,
                        .size = sizeof *plan,
                        .n_in = n->n_in,
                        .n_out = n->n_out,
                        .threads = p->env->threads,
                        .in = ins,
                        .out = outs};
    return ORTC_OK;
}

/* What was chosen (choose.h). */
static ortc_status take(ortc_planner *p, ortc_step *s)
{
    const ortc_pick *pick = &p->picks[s->node->id];
    s->kernel = pick->candidate->kernel;
    s->state = pick->candidate->state;
    s->name = pick->offer.name;
    s->clocks = pick->offer.clocks;
    s->n_offers = pick->n_offers;
    if (pick->n_offers &&
        !(s->offers = ortc_arena_copy(&p->program->arena, pick->offers, pick->n_offers * sizeof *s->offers)))
        return ortc_no_memory(p->error, 0);
    return ORTC_OK;
}

/* The kernel's own plan. */
static ortc_status ask(ortc_planner *p, ortc_step *s, plan_context *c)
{
    if (!s->kernel->plan) return ORTC_OK;
    if (p->error) p->error->text[0] = 0;
    ortc_status status = s->kernel->plan(s->state, &c->plan, &s->pstate);
    return status == ORTC_OK ? status : ortc_step_failed(s->node, s->kernel, status, p->error);
}

/* Puts the step behind those that bring its inputs; from then on the program owns its pstate. */
static ortc_status add_step(ortc_planner *p, ortc_step *s, const plan_context *c, uint32_t *out)
{
    const ortc_node *n = s->node;
    ORTC_TRY(bring_inputs(p, n, s, c->packed));
    s->captures = ortc_planner_captures(p, s);
    s->flops = c->flops;
    s->bytes = c->bytes;
    s->workspace = c->workspace;
    *out = (uint32_t)p->steps.count;
    if (!ortc_array_push(&p->steps, *s)) return ortc_no_memory(p->error, sizeof *s);
    for (size_t i = c->first_passing; i < p->program->passing.count; i++)
        p->program->passing.data[i].step = *out;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i]) ortc_planner_note_use(p, n->in[i], s->in[i].form, *out);
    if (c->target->space) {
        p->program->queues |= 1u << s->device;
        p->program->faults |= s->kernel->flags & ORTC_KERNEL_FAULTS ? 1u << s->device : 0;
    }
    return ORTC_OK;
}

/* Whether a step reads the memory of an input through another one, too: the same value, or a part of it, of
 * which the kernel that offers to write in place knows nothing. */
static bool is_read_twice(const ortc_planner *p, const ortc_step *s, uint32_t port)
{
    uint32_t root = ortc_planner_at(p, s->node->in[port], s->in[port].form)->root, times = 0;
    for (uint32_t i = 0; i < s->n_in; i++)
        times += s->node->in[i] && ortc_planner_at(p, s->node->in[i], s->in[i].form)->root == root;
    return times > 1;
}

/* A block that may take over the place of an input's: in place. */
static ortc_status offer_reuse(ortc_planner *p, const plan_context *c, uint32_t index, uint32_t port,
                               const ortc_home *h)
{
    const ortc_step *s = &p->steps.data[index];
    const uint8_t form = s->out[port].form;
    for (uint32_t k = 0; k < c->n_reuse; k++) {
        const ortc_edge *from = s->node->in[c->reuse[k].in];
        if (c->reuse[k].out != port || !from || s->in[c->reuse[k].in].form != form) continue;
        if ((s->kernel->flags & ORTC_KERNEL_STATE) &&
            !ortc_array_push(&p->in_place, (ortc_in_place){index, s->node->out[port]->id, from->id, form}))
            return ortc_no_memory(p->error, sizeof *p->in_place.data);
        const ortc_home *in = ortc_planner_root(p, ortc_planner_at(p, from, form));
        if (in->lives == LIVES_BLOCK && in->bytes == h->bytes && !is_read_twice(p, s, c->reuse[k].in))
            ortc_planner_space(p, form)->blocks.data[h->index].reuse = (int32_t)in->index;
    }
    return ORTC_OK;
}

/* What the kernel has said of parts becomes what the planner knows them by; of other forms there are none. */
static void note_parts(ortc_planner *p, const plan_context *c, uint32_t index)
{
    const ortc_step *s = &p->steps.data[index];
    size_t kept = c->first_part;
    for (size_t i = kept; i < p->parts.count; i++) {
        ortc_part o = p->parts.data[i];
        const ortc_edge *in = s->node->in[o.port], *out = s->node->out[o.out];
        if (!in || !ortc_view_present(&s->out[o.out].view) || s->in[o.port].form != s->out[o.out].form)
            continue;
        o.step = index;
        o.form = s->out[o.out].form;
        o.in = in->id;
        o.out = out->id;
        p->parts.data[kept++] = o;
    }
    p->parts.count = kept;
}

/* Slots and blocks for what the step makes. */
static ortc_status place_results(ortc_planner *p, const plan_context *c, uint32_t index)
{
    ortc_step *s = &p->steps.data[index];
    for (uint32_t i = 0; i < s->n_out; i++) {
        const ortc_edge *e = s->node->out[i];
        if (!ortc_view_present(&s->out[i].view)) continue;
        const uint8_t form = s->out[i].form, space = p->forms[form].space;
        if (space) s->out[i].view.flags &= ~(uint32_t)ORTC_VIEW_HOST;
        const bool late = (s->out[i].view.flags & ORTC_VIEW_LATE) || ortc_fact_is_given(&p->facts[e->id]);
        if (late || (p->crosses[e->id] && form == space)) {
            ORTC_TRY(add_slot(p, e, late, space));
            continue;
        }
        ortc_home *h = ortc_planner_at(p, e, form);
        p->primary[e->id] = form;
        *h = (ortc_home){.lives = LIVES_BLOCK, .root = ortc_planner_number(p, h), .made = true};
        ORTC_TRY(ortc_planner_bytes(p, e, form, &h->bytes));
        ORTC_TRY(ortc_planner_add_block(p, form, h->bytes, index, e->id, &h->index));
        ORTC_TRY(offer_reuse(p, c, index, i, h));
    }
    return ORTC_OK;
}

/* What later segments read, or take as results, is plain. */
static ortc_status fill_plain_slots(ortc_planner *p, const ortc_node *n, const ortc_step *s)
{
    for (uint32_t i = 0; i < n->n_out; i++) {
        const ortc_edge *e = n->out[i];
        const uint8_t form = s->out[i].form, space = p->forms[form].space;
        if (!ortc_view_present(&s->out[i].view) || !p->crosses[e->id] || form == space) continue;
        ORTC_TRY(add_slot(p, e, false, space));
        ORTC_TRY(ortc_planner_reorder(p, e, form, space));
    }
    return ORTC_OK;
}

/* Workspace is a block of its own, for this step only. */
static ortc_status place_workspace(ortc_planner *p, const plan_context *c, uint32_t index)
{
    size_t all = c->workspace, each, workers;
    uint32_t block;
    if (c->per_worker) {
        if (!ortc_align_size(c->per_worker, ORTC_ALIGNMENT, &each) ||
            !ortc_add_size(each, ortc_worker_gap(p->env->threads), &each) ||
            !ortc_mul_size(each, p->env->threads, &workers) || !ortc_align_size(all, ORTC_ALIGNMENT, &all) ||
            !ortc_add_size(all, workers, &all))
            return ortc_no_memory(p->error, c->per_worker);
        p->steps.data[index].workspace_per_worker = each;
    }
    p->program->workspace_bytes += all;
    return all ? ortc_planner_add_block(p, c->target->space, all, index, UINT32_MAX, &block) : ORTC_OK;
}

ortc_status ortc_planner_node(ortc_planner *p, const ortc_node *n)
{
    const ortc_site *site = ortc_site_of(p->placed, n);
    plan_context c = {.p = p,
                      .node = n,
                      .target = ortc_target_of(p->placed, n),
                      .first_part = p->parts.count,
                      .first_passing = p->program->passing.count};
    ortc_step s = {.kind = ORTC_STEP_KERNEL,
                   .device = (uint8_t)site->device,
                   .node = n,
                   .n_in = n->n_in,
                   .n_out = n->n_out};
    bool viewed = false;
    uint32_t index;
    ORTC_TRY(begin_step(p, n, &s, &c.plan));
    ORTC_TRY(take(p, &s));
    for (uint32_t i = 0; i < 32; i++)
        if (p->picks[n->id].reuse >> i & 1) plan_may_reuse(&c.plan, 0, i);
    ORTC_TRY(ask(p, &s, &c));
    ortc_status status = make_views(p, &c, &viewed);
    if (status == ORTC_OK && !viewed) status = add_step(p, &s, &c, &index);
    if (status != ORTC_OK || viewed) {
        ortc_step_drop_pstate(&s);
        p->parts.count = c.first_part;
        while (p->program->passing.count > c.first_passing)
            free(p->program->passing.data[--p->program->passing.count].item);
        return status;
    }
    note_parts(p, &c, index);
    ORTC_TRY(place_results(p, &c, index));
    ORTC_TRY(place_workspace(p, &c, index));
    return fill_plain_slots(p, n, &s);
}

/* ---- Reordering ---------------------------------------------------------------------------------------- */

ortc_status ortc_planner_reorder(ortc_planner *p, const ortc_edge *e, uint8_t from, uint8_t to)
{
    const ortc_fact *f = &p->facts[e->id];
    const ortc_mover *m = ortc_mover_of(p->placed, p->forms[to].space, f->type->dtype);
    if (!m) return ortc_fail(p->error, ORTC_INTERNAL, "'%s': nothing brings it into another layout", e->name);
    const ortc_target *d = &p->targets->list[m->device];
    const uint32_t index = (uint32_t)p->steps.count;
    ortc_step s = {.kind = ORTC_STEP_KERNEL,
                   .device = (uint8_t)m->device,
                   .node = m->node,
                   .kernel = m->candidate.kernel,
                   .state = m->candidate.state,
                   .name = m->candidate.kernel->name,
                   .clocks = ortc_reorder_clocks(p->placed, f, d->space, p->forms[from].layout,
                                                 p->forms[to].layout),
                   .n_in = 1,
                   .n_out = 1};
    ortc_view v = {.dtype = f->type->dtype, .rank = f->rank, .flags = d->space ? 0 : ORTC_VIEW_HOST}, in, out;
    s.in = ortc_arena_array(&p->program->arena, 1, sizeof *s.in);
    s.out = ortc_arena_array(&p->program->arena, 1, sizeof *s.out);
    v.dims = ortc_arena_copy(&p->program->arena, f->dims, (size_t)f->rank * sizeof *f->dims);
    if (!s.in || !s.out || !v.dims) return ortc_no_memory(p->error, sizeof s);
    *s.in = (ortc_operand){.view = v, .space = d->space, .form = from, .edge = e->id};
    *s.out = (ortc_operand){.view = v, .space = d->space, .form = to, .edge = e->id};
    in = s.in->view;
    out = s.out->view;
    in.layout = s.in->view.layout = p->forms[from].layout;
    out.layout = s.out->view.layout = p->forms[to].layout;
    plan_context c = {
        .p = p,
        .node = m->node,
        .target = d,
        .first_part = p->parts.count,
        .plan = {.api = &plan_api, .size = sizeof c.plan, .n_in = 1, .n_out = 1, .in = &in, .out = &out}};
    ORTC_TRY(ask(p, &s, &c));
    s.bytes = c.bytes ? c.bytes
                      : 2 * (double)ortc_view_stored(in.layout ? &in : &out) * ortc_dtype_bits(v.dtype) / 8;
    s.workspace = c.workspace;
    p->parts.count = c.first_part;
    s.captures = d->space && d->provider->capture_begin && !(s.kernel->flags & ORTC_KERNEL_NO_CAPTURE);
    if (!ortc_array_push(&p->steps, s)) {
        ortc_step_drop_pstate(&s);
        return ortc_no_memory(p->error, sizeof s);
    }
    ortc_planner_note_use(p, e, from, index);
    ortc_planner_note_use(p, e, to, index);
    p->program->queues |= d->space ? 1u << s.device : 0;
    return place_workspace(p, &c, index);
}
