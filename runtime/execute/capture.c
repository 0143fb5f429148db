/* runtime/execute/capture.c: a device's steps as one captured graph, replayed (context.h; the planner marks
 * the ranges).
 *
 * A range is run step by step the first times, so that whatever a library loads lazily is there, then
 * captured, which executes nothing, and replayed from then on. A capture holds addresses: those that change
 * between runs (the caller's tensors, the two buffers of tied state) are compared, and a few captures are
 * kept for each range; where they change every time, the range stays as it is.
 */
#include "context.h"

#define SEEN_BEFORE 2  /* runs before the capture */
#define MAX_CAPTURES 8 /* of one range: with more, its addresses never settle */

static uint64_t addresses_of(const ortc_frame *f, uint32_t range)
{
    const ortc_range *r = &f->program->ranges[range];
    uint64_t hash = 1;
    for (size_t i = 0; i < f->patches.count; i++) {
        const ortc_patch *p = &f->patches.data[i];
        if (p->step >= r->first && p->step < r->first + r->count)
            hash = ortc_hash(p->where, sizeof *p->where, hash);
    }
    return hash;
}

static ortc_status run_steps(ortc_context *c, ortc_frame *f, const ortc_range *r, ortc_error *error)
{
    for (uint32_t i = r->first; i < r->first + r->count; i++) ORTC_TRY(ortc_frame_step(c, f, i, error));
    return ORTC_OK;
}

static void give_up(const ortc_unit *u, const ortc_range *r, ortc_capture *g, const char *why)
{
    g->captures = MAX_CAPTURES + 1;
    ortc_log(ORTC_LOG_INFO, "device '%s': steps %u to %u are not captured any more: %s",
             ortc_unit_target(u, r->device)->open->spelling, r->first, r->first + r->count - 1, why);
}

/* Makes the capture for these addresses in the older of the two places; NULL: it runs step by step for
 * now. */
static ortc_status capture(ortc_context *c, ortc_frame *f, uint32_t range, uint64_t addresses,
                           ortc_capture_exec **out, ortc_error *error)
{
    const ortc_range *r = &f->program->ranges[range];
    const ortc_target *d = ortc_unit_target(c->unit, r->device);
    ortc_capture *g = &f->captures[range];
    ortc_capture_exec *e = &g->execs[g->captures % ORTC_LENGTH(g->execs)];
    void *exec = NULL;
    *out = NULL;
    if (g->captures == MAX_CAPTURES) {
        give_up(c->unit, r, g, "what it reads and writes lies somewhere else in every run");
        return ORTC_OK;
    }
    if (d->provider->capture_begin(c->queues[r->device]) != ORTC_OK) {
        give_up(c->unit, r, g, "the device refuses to capture");
        return ORTC_OK;
    }
    ortc_status s = run_steps(c, f, r, error), ended = d->provider->capture_end(c->queues[r->device], &exec);
    if (s != ORTC_OK) { /* a kernel's own no: that of the run */
        if (exec) d->provider->capture_free(d->device, exec);
        return s;
    }
    if (ended != ORTC_OK) {
        give_up(c->unit, r, g, "a kernel does what cannot be captured");
        return ORTC_OK;
    }
    if (e->exec) d->provider->capture_free(d->device, e->exec);
    *e = (ortc_capture_exec){exec, addresses};
    g->captures++;
    atomic_fetch_add_explicit(&c->unit->captures, 1, memory_order_relaxed);
    *out = e;
    return ORTC_OK;
}

ortc_status ortc_frame_range(ortc_context *c, ortc_frame *f, uint32_t range, ortc_error *error)
{
    const ortc_range *r = &f->program->ranges[range];
    const ortc_target *d = ortc_unit_target(c->unit, r->device);
    ortc_capture *g = &f->captures[range];
    ortc_capture_exec *e = NULL;
    if (g->captures <= MAX_CAPTURES && g->seen >= SEEN_BEFORE) {
        uint64_t addresses = addresses_of(f, range);
        for (size_t i = 0; i < ORTC_LENGTH(g->execs) && !e; i++)
            e = g->execs[i].exec && g->execs[i].addresses == addresses ? &g->execs[i] : NULL;
        if (!e) ORTC_TRY(capture(c, f, range, addresses, &e, error));
    }
    g->seen++;
    if (!e) return run_steps(c, f, r, error);
    c->busy_queues |= 1u << r->device;
    atomic_fetch_add_explicit(&c->unit->replays, 1, memory_order_relaxed);
    ortc_status s = d->provider->replay(c->queues[r->device], e->exec);
    return s == ORTC_OK ? s
                        : ortc_fail(error, s, "device '%s': replaying a captured graph failed (%s)",
                                    d->open->spelling, ortc_status_name(s));
}

void ortc_frame_drop_captures(ortc_frame *f)
{
    for (uint32_t i = 0; f->captures && i < f->program->n_ranges; i++) {
        const ortc_target *d = ortc_unit_target(f->unit, f->program->ranges[i].device);
        for (size_t k = 0; k < ORTC_LENGTH(f->captures[i].execs); k++)
            if (f->captures[i].execs[k].exec)
                d->provider->capture_free(d->device, f->captures[i].execs[k].exec);
    }
}
