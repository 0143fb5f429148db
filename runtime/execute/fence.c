/* runtime/execute/fence.c: under AddressSanitizer a step may touch, of its context's arena, what it reads,
 * what it writes and its workspace: all else is forbidden while it runs, the values of other steps and the
 * bytes between them. An arena is one block, in which a read or a write that goes astray would else stay
 * unseen.
 *
 * Only where all memory is the host's: a device's queue copies from and to the arena at its own time.
 */
#include "context.h"
#include "runtime/plan/choose.h"

#ifdef ORTC_SANITIZED

static bool fenced(const ortc_context *c) { return c->arenas[0] && c->unit->placed.targets->n_spaces == 1; }

static void mark(const void *p, size_t bytes, bool allow)
{
    if (allow)
        ORTC_ALLOW(p, bytes);
    else
        ORTC_FORBID(p, bytes);
}

static void mark_operand(const ortc_step *s, const ortc_operand *o, const ortc_view *v, bool allow)
{
    size_t bytes = s->copy_bytes;
    if (o->from != ORTC_FROM_ARENA) return;
    if (s->kind == ORTC_STEP_COPY || ortc_bytes_laid_out(v->dtype, v->layout, v->rank, v->dims, &bytes))
        mark(v->data, bytes, allow);
}

static void mark_step(const ortc_context *c, const ortc_step *s, const ortc_call *call, bool allow)
{
    const size_t workers = s->workspace_per_worker * c->unit->threads;
    size_t bytes = s->workspace;
    if (!fenced(c)) return;
    for (uint32_t i = 0; i < s->n_in; i++) mark_operand(s, &s->in[i], &call->in[i], allow);
    for (uint32_t i = 0; i < s->n_out; i++) mark_operand(s, &s->out[i], &call->out[i], allow);
    if (workers && ortc_align_size(bytes, ORTC_ALIGNMENT, &bytes)) bytes += workers;
    if (bytes) mark((char *)c->arenas[0] + s->workspace_at, bytes, allow);
}

void ortc_fence_raise(const ortc_context *c)
{
    if (fenced(c)) ORTC_FORBID(c->arenas[0], c->arena_bytes[0]);
}
void ortc_fence_drop(const ortc_context *c)
{
    if (fenced(c)) ORTC_ALLOW(c->arenas[0], c->arena_bytes[0]);
}
void ortc_fence_open(const ortc_context *c, const ortc_step *s, const ortc_call *call)
{
    mark_step(c, s, call, true);
}
void ortc_fence_close(const ortc_context *c, const ortc_step *s, const ortc_call *call)
{
    mark_step(c, s, call, false);
}

#endif
