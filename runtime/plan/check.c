/* runtime/plan/check.c: is a finished program sound? A walk over its steps that keeps book of which bytes
 * hold what, and of what queues may still be reading and writing (plan.h lists what is checked).
 *
 * It knows nothing of how the planner decides: it reads the program, as a run will. Quadratic in what is
 * live; for debug and sanitizer builds, and for tests.
 */
#include <stdio.h>

#include "planner.h"

enum { HOST = -1 }; /* who touches memory: the host, at once; else a device, when its queue comes to it */

/* Bytes of an arena, an output or a slot. end SIZE_MAX: as long as it will be. */
typedef struct extent {
    uint16_t from, space;
    uint32_t index;
    size_t begin, end;
} extent;

typedef struct access {
    extent at;
    uint32_t root; /* writes: the edge whose value the bytes are; UINT32_MAX: workspace */
    uint32_t step;
    int queue; /* HOST, or the device */
} access;

typedef struct checker {
    const ortc_program *program;
    const ortc_placed *placed;
    const ortc_plan_request *request;
    ortc_error *error;
    uint32_t step;                     /* under way */
    ORTC_ARRAY(access) writes;         /* what the memory holds now */
    ORTC_ARRAY(access) reads;          /* of host memory by queues */
    uint32_t waited[ORTC_MAX_DEVICES]; /* the step whose signal the host has waited for last */
    uint32_t *signals;                 /* by event: 1 + its step; 0: not signalled yet */
    uint32_t *gone;                    /* by input: 1 + the step that has written over it; 0: it is there */
} checker;

ORTC_PRINTF(2, 3) static ortc_status wrong(checker *c, const char *fmt, ...)
{
    static const char *const kinds[] = {"kernel", "copy", "signal", "wait"};
    char text[256];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    if (c->step >= c->program->n_steps) return ortc_fail(c->error, ORTC_INTERNAL, "the plan: %s", text);
    const ortc_step *s = &c->program->steps[c->step];
    return ortc_fail(c->error, ORTC_INTERNAL, "the plan, step %u (%s %s): %s", c->step, kinds[s->kind & 3],
                     s->node ? s->node->name : "", text);
}

static bool overlap(const extent *a, const extent *b)
{
    return a->from == b->from && a->index == b->index &&
           (a->from != ORTC_FROM_ARENA || a->space == b->space) && a->begin < b->end && b->begin < a->end;
}

/* ---- Operands to extents ------------------------------------------------------------------------------- */

/* Bytes of an operand; SIZE_MAX: known only when it is made. */
static size_t bytes_of(const ortc_step *s, const ortc_operand *o)
{
    size_t bytes;
    if (s->kind == ORTC_STEP_COPY) return s->values ? SIZE_MAX : s->copy_bytes;
    if (o->view.flags & (ORTC_VIEW_LATE | ORTC_VIEW_VALUE) || o->view.dtype == ORTC_STRING) return SIZE_MAX;
    return ortc_bytes_laid_out(o->view.dtype, o->view.layout, o->view.rank, o->view.dims, &bytes) ? bytes
                                                                                                  : SIZE_MAX;
}

static extent extent_of(const ortc_step *s, const ortc_operand *o)
{
    size_t bytes = bytes_of(s, o);
    return (extent){o->from, o->space, o->from == ORTC_FROM_ARENA ? 0 : o->index, o->offset,
                    bytes > SIZE_MAX - o->offset ? SIZE_MAX : o->offset + bytes};
}

static int actor_of(const ortc_step *s, const ortc_operand *o)
{
    bool queued = s->kind == ORTC_STEP_COPY ? s->in->space || s->out->space : o->space != 0;
    return queued ? s->device : HOST;
}

/* A device's memory is touched by its own queue only. */
static ortc_status check_space(checker *c, const ortc_step *s, const ortc_operand *o)
{
    const ortc_targets *t = c->placed->targets;
    if (o->space >= t->n_spaces) return wrong(c, "there is no space %u", o->space);
    if (o->space && t->of_space[o->space] != s->device)
        return wrong(c, "device %u works in the memory of device %u", s->device, t->of_space[o->space]);
    return ORTC_OK;
}

/* ---- Reading and writing ------------------------------------------------------------------------------- */

/* Nobody's queue is still writing there (or, for a write, reading). */
static ortc_status check_idle(checker *c, const extent *at, int actor, bool write)
{
    for (size_t i = 0; i < c->writes.count; i++) {
        const access *w = &c->writes.data[i];
        if (w->queue != HOST && w->queue != actor && !at->space && overlap(&w->at, at) &&
            c->waited[w->queue] <= w->step)
            return wrong(c, "nothing waits for the copy of step %u", w->step);
    }
    for (size_t i = 0; write && i < c->reads.count; i++) {
        const access *r = &c->reads.data[i];
        if (r->queue != actor && overlap(&r->at, at) && c->waited[r->queue] <= r->step)
            return wrong(c, "writes where the queue may still be reading for step %u", r->step);
    }
    return ORTC_OK;
}

/* A constant of which only a packed form exists, which alone is read. */
static bool is_only_packed(const checker *c, const ortc_operand *o)
{
    const ortc_edge *e = o->root < c->placed->graph->edges.count ? c->placed->graph->edges.data[o->root]
                                                                 : NULL;
    return o->from == ORTC_FROM_POINTER && !o->view.data && e && ortc_edge_is_const(e) && e->constant->of;
}

/* What is read from outside the program: the caller's inputs, constants, slots of earlier segments. */
static ortc_status check_given(checker *c, const ortc_operand *o, const extent *at, bool *given)
{
    const ortc_value *v = NULL;
    *given = true;
    if (o->from == ORTC_FROM_POINTER)
        return o->view.data || at->begin == at->end || is_only_packed(c, o)
                   ? ORTC_OK
                   : wrong(c, "a constant has no address");
    if (o->from == ORTC_FROM_INPUT) {
        if (o->index >= c->placed->graph->n_inputs || !(v = c->request->inputs[o->index].value))
            return wrong(c, "reads input %u, which is not given", o->index);
        if (c->gone[o->index])
            return wrong(c, "reads input %u, which step %u has written over", o->index,
                         c->gone[o->index] - 1);
    } else if (o->from == ORTC_FROM_SLOT && c->request->slots)
        v = o->index < c->placed->graph->edges.count ? c->request->slots[o->index] : NULL;
    if (!v) {
        *given = false;
        return ORTC_OK;
    }
    return at->end == SIZE_MAX || at->end <= v->bytes
               ? ORTC_OK
               : wrong(c, "reads bytes %zu to %zu of a value that has %zu", at->begin, at->end, v->bytes);
}

/* A view of a constant stays in its bytes, or in those of a form that was made of them. */
static ortc_status check_constant(checker *c, const ortc_operand *o, size_t bytes)
{
    const ortc_edge *e = o->root < c->placed->graph->edges.count ? c->placed->graph->edges.data[o->root]
                                                                 : NULL;
    const char *at = o->view.data;
    if (o->from != ORTC_FROM_POINTER || !e || !ortc_edge_is_const(e) || bytes == SIZE_MAX || !bytes ||
        is_only_packed(c, o))
        return ORTC_OK;
    const char *own = e->constant->data;
    bool inside = at >= own && bytes <= e->constant->bytes && at <= own + (e->constant->bytes - bytes);
    for (size_t i = 0; i < c->program->packs.count && !inside; i++) {
        const ortc_packed *p = &c->program->packs.data[i]->packed;
        const char *from = p->data;
        inside = at >= from && bytes <= p->bytes && at <= from + (p->bytes - bytes);
    }
    for (size_t i = 0; i < c->program->literals.count && !inside; i++) {
        const ortc_literal *l = &c->program->literals.data[i];
        const char *from = l->data;
        inside = at >= from && bytes <= l->bytes && at <= from + (l->bytes - bytes);
    }
    return inside ? ORTC_OK : wrong(c, "reads outside the constant '%s'", e->name);
}

static ortc_status read_one(checker *c, const ortc_step *s, const ortc_operand *o)
{
    extent at = extent_of(s, o);
    int actor = actor_of(s, o);
    bool given;
    if (o->from == ORTC_FROM_NOTHING || at.begin == at.end) return ORTC_OK;
    ORTC_TRY(check_space(c, s, o));
    ORTC_TRY(check_given(c, o, &at, &given));
    ORTC_TRY(check_constant(c, o, bytes_of(s, o)));
    const access *found = NULL;
    for (size_t i = 0; i < c->writes.count && !given; i++) {
        const access *w = &c->writes.data[i];
        if (w->root == o->root && overlap(&w->at, &at)) found = w;
    }
    if (!given && !found)
        return wrong(c, "reads '%s', whose bytes are not there: not made yet, or written over",
                     c->placed->graph->edges.data[o->root]->name);
    if (found && (at.begin < found->at.begin || (at.end > found->at.end && at.end != SIZE_MAX)))
        return wrong(c, "reads bytes %zu to %zu of '%s', which lies in %zu to %zu", at.begin, at.end,
                     c->placed->graph->edges.data[o->root]->name, found->at.begin, found->at.end);
    ORTC_TRY(check_idle(c, &at, actor, false));
    if (actor == HOST || o->space || o->from == ORTC_FROM_POINTER) return ORTC_OK;
    return ortc_array_push(&c->reads, (access){at, o->root, c->step, actor}) ? ORTC_OK
                                                                             : ortc_no_memory(c->error, 0);
}

static ortc_status write_one(checker *c, const extent *at, uint32_t root, int actor)
{
    size_t kept = 0, limit = SIZE_MAX;
    if (at->begin == at->end && at->from != ORTC_FROM_SLOT) return ORTC_OK; /* an empty value is made, too */
    if (at->from == ORTC_FROM_ARENA) limit = c->program->arena_bytes[at->space];
    if (at->from == ORTC_FROM_OUTPUT && at->index < c->program->n_outputs)
        limit = c->program->outputs[at->index].bytes;
    if (at->end > limit)
        return wrong(c, "writes bytes %zu to %zu of a range that has %zu", at->begin, at->end, limit);
    ORTC_TRY(check_idle(c, at, actor, true));
    for (size_t i = 0; i < c->writes.count; i++) /* what was there is no more */
        if (!overlap(&c->writes.data[i].at, at)) c->writes.data[kept++] = c->writes.data[i];
    c->writes.count = kept;
    return ortc_array_push(&c->writes, (access){*at, root, c->step, actor}) ? ORTC_OK
                                                                            : ortc_no_memory(c->error, 0);
}

/* ---- Steps --------------------------------------------------------------------------------------------- */

/* Whether bytes of a result are there already: those of an input that is a part of it. */
static bool is_part(const ortc_step *s, const extent *in, const extent *at, uint32_t root)
{
    for (uint32_t i = 0; i < s->n_in; i++) {
        const extent e = extent_of(s, &s->in[i]);
        if (s->in[i].part && s->in[i].root == root && overlap(&e, in) && e.begin <= in->begin &&
            in->end <= e.end && at->begin <= e.begin && e.end <= at->end)
            return true;
    }
    return false;
}

/* What a step writes lies beside what it reads, but for an input that it says it is written over, and
 * for parts of the result that are there already. */
static ortc_status check_beside(checker *c, const ortc_step *s, const extent *at, uint32_t root,
                                uint32_t over)
{
    for (uint32_t i = 0; i < s->n_in; i++) {
        const extent in = extent_of(s, &s->in[i]);
        const bool same = over == i + 1 && at->begin == in.begin && at->end == in.end;
        if (s->in[i].from == ORTC_FROM_ARENA && overlap(&in, at) && !same && !is_part(s, &in, at, root))
            return wrong(c, "writes bytes %zu to %zu over its input %u in %zu to %zu", at->begin, at->end, i,
                         in.begin, in.end);
    }
    return ORTC_OK;
}

static bool is_slot(const ortc_program *p, uint32_t edge)
{
    for (uint32_t i = 0; i < p->n_slots; i++)
        if (p->slots[i].edge == edge) return true;
    return false;
}

static ortc_status write_result(checker *c, const ortc_step *s, uint32_t port)
{
    const ortc_operand *o = &s->out[port];
    const extent at = extent_of(s, o);
    if (s->kind == ORTC_STEP_KERNEL && !ortc_view_present(&o->view)) return ORTC_OK;
    ORTC_TRY(check_space(c, s, o));
    if (o->over > s->n_in) return wrong(c, "output %u is written over an input that is not there", port);
    if (o->from == ORTC_FROM_INPUT || o->from == ORTC_FROM_POINTER || o->from == ORTC_FROM_NOTHING)
        return wrong(c, "output %u has no place", port);
    if (o->from == ORTC_FROM_SLOT && !is_slot(c->program, o->index))
        return wrong(c, "output %u is written to a slot that the program does not have", port);
    if (o->from == ORTC_FROM_ARENA) ORTC_TRY(check_beside(c, s, &at, o->root, o->over));
    for (uint32_t k = 0; k < port; k++) {
        const extent other = extent_of(s, &s->out[k]);
        if (s->out[k].from && overlap(&other, &at))
            return wrong(c, "outputs %u and %u lie over each other", k, port);
    }
    return write_one(c, &at, o->root, actor_of(s, o));
}

static ortc_status write_workspace(checker *c, const ortc_step *s)
{
    const uint8_t space = c->placed->targets->list[s->device].space;
    if (!s->workspace && !s->workspace_per_worker) return ORTC_OK;
    const extent at = {ORTC_FROM_ARENA, space, 0, s->workspace_at,
                       s->workspace_at + s->workspace + s->workspace_per_worker};
    ORTC_TRY(check_beside(c, s, &at, UINT32_MAX, 0));
    for (uint32_t k = 0; k < s->n_out; k++) {
        const extent out = extent_of(s, &s->out[k]);
        if (s->out[k].from == ORTC_FROM_ARENA && overlap(&out, &at))
            return wrong(c, "its workspace lies over output %u", k);
    }
    return write_one(c, &at, UINT32_MAX, space ? s->device : HOST);
}

/* Tied state that is written in place: from here on its input is gone. */
static void take_inputs(checker *c, const ortc_step *s)
{
    for (uint32_t k = 0; k < s->n_out; k++)
        for (uint32_t i = 0; s->out[k].from == ORTC_FROM_OUTPUT && i < c->placed->graph->n_inputs; i++)
            if (c->program->outputs[s->out[k].index].in_place &&
                c->request->inputs[i].tied == s->out[k].index + 1)
                c->gone[i] = c->step + 1;
}

static ortc_status check_work(checker *c, const ortc_step *s)
{
    for (uint32_t i = 0; i < s->n_in; i++) ORTC_TRY(read_one(c, s, &s->in[i]));
    if (s->kind == ORTC_STEP_KERNEL) ORTC_TRY(write_workspace(c, s));
    for (uint32_t i = 0; i < s->n_out; i++) ORTC_TRY(write_result(c, s, i));
    take_inputs(c, s);
    return ORTC_OK;
}

static ortc_status check_event(checker *c, const ortc_step *s)
{
    if (s->event >= c->program->n_events) return wrong(c, "there is no event %u", s->event);
    if (s->kind == ORTC_STEP_SIGNAL) {
        if (c->signals[s->event]) return wrong(c, "event %u has been signalled before", s->event);
        c->signals[s->event] = c->step + 1;
        return ORTC_OK;
    }
    if (!c->signals[s->event]) return wrong(c, "waits for event %u, which nobody has signalled", s->event);
    const uint32_t signal = c->signals[s->event] - 1;
    if (c->program->steps[signal].device != s->device)
        return wrong(c, "event %u is another device's", s->event);
    if (c->waited[s->device] < signal) c->waited[s->device] = signal;
    return ORTC_OK;
}

/* ---- The whole ----------------------------------------------------------------------------------------- */

static ortc_status check_ranges(checker *c)
{
    const ortc_program *p = c->program;
    for (uint32_t i = 0, behind = 0; i < p->n_ranges; i++) {
        const ortc_range *r = &p->ranges[i];
        if (r->first < behind || r->first >= p->n_steps || r->count > p->n_steps - r->first || r->count < 2)
            return wrong(c, "captured range %u (%u steps from %u) is out of order", i, r->count, r->first);
        for (uint32_t k = r->first; k < r->first + r->count; k++)
            if (p->steps[k].kind != ORTC_STEP_KERNEL || !p->steps[k].captures ||
                p->steps[k].device != r->device)
                return wrong(c, "captured range %u holds step %u, which cannot be captured with it", i, k);
        behind = r->first + r->count;
    }
    return ORTC_OK;
}

static ortc_status check_outputs(checker *c)
{
    const ortc_program *p = c->program;
    for (uint32_t i = 0; i < p->n_outputs && !p->end; i++) {
        const uint32_t edge = c->placed->graph->outputs[i].edge->id;
        bool made = !c->request->wanted[i] ||
                    (p->chained ? c->request->slots && c->request->slots[edge] : !p->outputs[i].bytes);
        for (size_t k = 0; k < c->writes.count && !made; k++) {
            const extent *w = &c->writes.data[k].at;
            made = p->chained ? w->from == ORTC_FROM_SLOT && w->index == edge
                              : w->from == ORTC_FROM_OUTPUT && w->index == i && !w->begin &&
                                    w->end == p->outputs[i].bytes;
        }
        if (!made) return wrong(c, "output '%s' is not made", c->placed->graph->outputs[i].name);
    }
    return ORTC_OK;
}

static ortc_status check_all(checker *c)
{
    const ortc_program *p = c->program;
    for (c->step = 0; c->step < p->n_steps; c->step++) {
        const ortc_step *s = &p->steps[c->step];
        if (s->device >= c->placed->targets->count) return wrong(c, "there is no device %u", s->device);
        ORTC_TRY(s->kind == ORTC_STEP_KERNEL || s->kind == ORTC_STEP_COPY ? check_work(c, s)
                                                                          : check_event(c, s));
    }
    ORTC_TRY(check_ranges(c));
    return check_outputs(c);
}

ortc_status ortc_program_check(const ortc_program *p, const ortc_placed *placed,
                               const ortc_plan_request *request, ortc_error *error)
{
    checker c = {.program = p, .placed = placed, .request = request, .error = error};
    c.signals = calloc(p->n_events + 1u, sizeof *c.signals);
    c.gone = calloc(placed->graph->n_inputs + 1u, sizeof *c.gone);
    ortc_status s = c.signals && c.gone ? check_all(&c) : ortc_no_memory(error, 0);
    ortc_array_deinit(&c.writes);
    ortc_array_deinit(&c.reads);
    free(c.signals);
    free(c.gone);
    return s;
}
