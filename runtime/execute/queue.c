/* runtime/execute/queue.c: the queues of a context: one per device with memory of its own, made when first
 * needed (context.h).
 *
 * Work of a run is under way from the first step that is queued until the context is drained; until then
 * nothing that the run was given, and nothing of the context, may be touched or freed.
 */
#include "context.h"

static ortc_status device_failed(const ortc_context *c, uint32_t device, const char *what, ortc_status s,
                                 ortc_error *error)
{
    return ortc_fail(error, s, "device '%s': %s failed (%s)",
                     ortc_unit_target(c->unit, device)->open->spelling, what, ortc_status_name(s));
}

ortc_status ortc_context_queue(ortc_context *c, uint32_t device, void **out, ortc_error *error)
{
    const ortc_target *d = ortc_unit_target(c->unit, device);
    *out = NULL;
    if (!d->space) return ORTC_OK;
    if (!c->queues[device]) {
        ortc_status s = d->provider->queue_create(d->device, NULL, &c->queues[device]);
        if (s != ORTC_OK) return device_failed(c, device, "making a queue", s, error);
    }
    *out = c->queues[device];
    return ORTC_OK;
}

ortc_status ortc_context_fault_word(ortc_context *c, uint32_t device, ortc_error *error)
{
    static const uint32_t none;
    ortc_open_device *d = ortc_unit_target(c->unit, device)->open;
    if (c->faults[device]) return ORTC_OK;
    if (!(c->faults[device] = ortc_device_alloc(d, sizeof none)))
        return ortc_fail(error, ORTC_OUT_OF_MEMORY, "device '%s' has no memory left", d->spelling);
    return ortc_device_transfer(d, c->faults[device], NULL, &none, sizeof none, error);
}

/* What a kernel has reported, and a clean word for the next run. */
static ortc_status take_fault(ortc_context *c, uint32_t device, ortc_error *error)
{
    static const uint32_t none;
    ortc_open_device *d = ortc_unit_target(c->unit, device)->open;
    uint32_t code = c->fault_seen[device];
    if (!code) return ORTC_OK;
    c->fault_seen[device] = 0;
    ORTC_TRY(ortc_device_transfer(d, c->faults[device], NULL, &none, sizeof none, error));
    return ortc_fail(error, ORTC_INVALID_ARGUMENT, "device '%s': %s; the results are not to be used",
                     d->spelling,
                     code & ORTC_FAULT_INDEX
                         ? "an index that the model reads or computes lies outside its axis"
                         : "a value that the model reads or computes is not allowed");
}

static void drop_queue(ortc_context *c, uint32_t device)
{
    const ortc_target *d = ortc_unit_target(c->unit, device);
    if (c->finish[device] && d->provider->event_destroy)
        d->provider->event_destroy(d->device, c->finish[device]);
    if (c->queues[device]) d->provider->queue_destroy(d->device, c->queues[device], device == 0 && c->native);
    if (c->faults[device]) ortc_device_free(d->open, c->faults[device], sizeof *c->faults[device]);
    c->faults[device] = NULL;
    c->finish[device] = c->queues[device] = NULL;
}

void ortc_context_drop_queues(ortc_context *c)
{
    for (uint32_t i = 0; i < c->unit->placed.targets->count; i++) drop_queue(c, i);
    c->native = NULL;
}

ortc_status ortc_context_use_native(ortc_context *c, void *native, ortc_error *error)
{
    const ortc_target *d = ortc_unit_target(c->unit, 0);
    if (native == c->native) return ORTC_OK;
    if (!d->space)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                         "a queue of the caller's is for the first device, and the session's first, "
                         "'%s', has none",
                         d->open->spelling);
    ortc_context_trim(c); /* frames hold the queue that they were made for */
    drop_queue(c, 0);
    c->native = NULL;
    if (native) {
        ortc_status s = d->provider->queue_create(d->device, native, &c->queues[0]);
        if (s != ORTC_OK) return device_failed(c, 0, "taking the caller's queue", s, error);
    }
    c->native = native;
    return ORTC_OK;
}

static ortc_memory memory_of(const ortc_unit *u, uint32_t space)
{
    return space ? ortc_unit_target(u, u->placed.targets->of_space[space])->open->memory
                 : (ortc_memory){0, ORTC_MEMORY_HOST};
}

ortc_status ortc_step_copy(ortc_context *c, const ortc_step *s, void *to, const void *from, ortc_error *error)
{
    const ortc_target *d = ortc_unit_target(c->unit, s->device);
    if (!s->copy_bytes) return ORTC_OK;
    if (!s->in->space && !s->out->space) {
        memcpy(to, from, s->copy_bytes);
        return ORTC_OK;
    }
    void *queue;
    ORTC_TRY(ortc_context_queue(c, s->device, &queue, error));
    c->busy_queues |= 1u << s->device;
    atomic_fetch_add_explicit(s->out->space ? &c->unit->bytes_to_devices : &c->unit->bytes_from_devices,
                              s->copy_bytes, memory_order_relaxed);
    ortc_status status = d->provider->copy(queue, memory_of(c->unit, s->out->space), to,
                                           memory_of(c->unit, s->in->space), from, s->copy_bytes);
    return status == ORTC_OK ? status : device_failed(c, s->device, "a copy", status, error);
}

ortc_status ortc_step_signal(ortc_context *c, const ortc_step *s, void **event, ortc_error *error)
{
    void *queue;
    ORTC_TRY(ortc_context_queue(c, s->device, &queue, error));
    ortc_status status = ortc_unit_target(c->unit, s->device)->provider->signal(queue, event);
    return status == ORTC_OK ? status : device_failed(c, s->device, "a signal", status, error);
}

ortc_status ortc_step_wait(ortc_context *c, const ortc_step *s, void *event, ortc_error *error)
{
    ortc_status status = ortc_unit_target(c->unit, s->device)->provider->wait(NULL, event);
    return status == ORTC_OK ? status : device_failed(c, s->device, "what it was given", status, error);
}

ortc_status ortc_context_mark_end(ortc_context *c, ortc_error *error)
{
    for (uint32_t i = 0; i < c->unit->placed.targets->count; i++) {
        if (!(c->busy_queues >> i & 1)) continue;
        const ortc_target *d = ortc_unit_target(c->unit, i);
        ortc_status s = ORTC_OK;
        if (c->watched >> i & 1) { /* at the wait that comes anyway */
            atomic_fetch_add_explicit(&c->unit->bytes_from_devices, sizeof c->fault_seen[i],
                                      memory_order_relaxed);
            s = d->provider->copy(c->queues[i], (ortc_memory){0, ORTC_MEMORY_HOST}, &c->fault_seen[i],
                                  d->open->memory, c->faults[i], sizeof c->fault_seen[i]);
        }
        if (s == ORTC_OK) s = d->provider->signal(c->queues[i], &c->finish[i]);
        if (s != ORTC_OK) return device_failed(c, i, "a signal", s, error);
    }
    return ORTC_OK;
}

bool ortc_context_is_done(ortc_context *c)
{
    for (uint32_t i = 0; i < c->unit->placed.targets->count; i++) {
        const ortc_provider *p = ortc_unit_target(c->unit, i)->provider;
        if ((c->busy_queues >> i & 1) && (!p->query || !p->query(c->finish[i]))) return false;
    }
    return true;
}

ortc_status ortc_context_drain(ortc_context *c, ortc_error *error)
{
    ortc_status first = ORTC_OK;
    for (uint32_t i = 0; i < c->unit->placed.targets->count; i++) {
        if (!(c->busy_queues >> i & 1)) continue;
        ortc_status s = c->finish[i] ? ortc_unit_target(c->unit, i)->provider->wait(NULL, c->finish[i])
                                     : ORTC_OK;
        if (s != ORTC_OK && first == ORTC_OK) first = device_failed(c, i, "what it was given", s, error);
        if (s == ORTC_OK && (c->watched >> i & 1) &&
            (s = take_fault(c, i, first == ORTC_OK ? error : NULL)) != ORTC_OK)
            first = first == ORTC_OK ? s : first;
    }
    c->busy_queues = c->watched = 0;
    return first;
}
