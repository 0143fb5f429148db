/* runtime/execute/queue.c: the queues of a context: one per device with memory of its own, made when first needed (context.h).
 *
 * Work of a run is under way from the first step that is queued until the context is drained; until then nothing that the run was
 * given, and nothing of the context, may be touched or freed.
 */
#include "context.h"

static ortc_status device_failed(const ortc_context *c, uint32_t device, const char *what, ortc_status s, ortc_error *error)
{
    return ortc_fail(error, s, "device '%s': %s failed (%s)", c->session->devices[device].open->spelling, what, ortc_status_name(s));
}

ortc_status ortc_context_queue(ortc_context *c, uint32_t device, void **out, ortc_error *error)
{
    const ortc_session_device *d = &c->session->devices[device];
    *out = NULL;
    if (!d->space)
        return ORTC_OK;
    if (!c->queues[device]) {
        ortc_status s = d->provider->queue_create(d->device, NULL, &c->queues[device]);
        if (s != ORTC_OK)
            return device_failed(c, device, "making a queue", s, error);
    }
    *out = c->queues[device];
    return ORTC_OK;
}

static void drop_queue(ortc_context *c, uint32_t device)
{
    const ortc_session_device *d = &c->session->devices[device];
    if (c->finish[device] && d->provider->event_destroy)
        d->provider->event_destroy(d->device, c->finish[device]);
    if (c->queues[device])
        d->provider->queue_destroy(d->device, c->queues[device], device == 0 && c->native);
    c->finish[device] = c->queues[device] = NULL;
}

void ortc_context_drop_queues(ortc_context *c)
{
    for (uint32_t i = 0; i < c->session->n_devices; i++)
        drop_queue(c, i);
    c->native = NULL;
}

ortc_status ortc_context_use_native(ortc_context *c, void *native, ortc_error *error)
{
    const ortc_session_device *d = &c->session->devices[0];
    if (native == c->native)
        return ORTC_OK;
    if (!d->space)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "a queue of the caller's is for the first device, and the session's first, "
                         "'%s', has none", d->open->spelling);
    ortc_context_trim(c); /* frames hold the queue that they were made for */
    drop_queue(c, 0);
    c->native = NULL;
    if (native) {
        ortc_status s = d->provider->queue_create(d->device, native, &c->queues[0]);
        if (s != ORTC_OK)
            return device_failed(c, 0, "taking the caller's queue", s, error);
    }
    c->native = native;
    return ORTC_OK;
}

static ortc_memory memory_of(const ortc_session *s, uint32_t space)
{
    return space ? s->devices[s->device_of[space]].open->memory : (ortc_memory){0, ORTC_MEMORY_HOST};
}

ortc_status ortc_step_copy(ortc_context *c, const ortc_step *s, void *to, const void *from, ortc_error *error)
{
    const ortc_session_device *d = &c->session->devices[s->device];
    if (!s->copy_bytes)
        return ORTC_OK;
    if (!s->in->space && !s->out->space) {
        memcpy(to, from, s->copy_bytes);
        return ORTC_OK;
    }
    void *queue;
    ORTC_TRY(ortc_context_queue(c, s->device, &queue, error));
    c->busy_queues |= 1u << s->device;
    ortc_status status = d->provider->copy(queue, memory_of(c->session, s->out->space), to, memory_of(c->session, s->in->space), from,
                                           s->copy_bytes);
    return status == ORTC_OK ? status : device_failed(c, s->device, "a copy", status, error);
}

ortc_status ortc_step_signal(ortc_context *c, const ortc_step *s, void **event, ortc_error *error)
{
    void *queue;
    ORTC_TRY(ortc_context_queue(c, s->device, &queue, error));
    ortc_status status = c->session->devices[s->device].provider->signal(queue, event);
    return status == ORTC_OK ? status : device_failed(c, s->device, "a signal", status, error);
}

ortc_status ortc_step_wait(ortc_context *c, const ortc_step *s, void *event, ortc_error *error)
{
    ortc_status status = c->session->devices[s->device].provider->wait(NULL, event);
    return status == ORTC_OK ? status : device_failed(c, s->device, "what it was given", status, error);
}

ortc_status ortc_context_mark_end(ortc_context *c, ortc_error *error)
{
    for (uint32_t i = 0; i < c->session->n_devices; i++) {
        if (!(c->busy_queues >> i & 1))
            continue;
        ortc_status s = c->session->devices[i].provider->signal(c->queues[i], &c->finish[i]);
        if (s != ORTC_OK)
            return device_failed(c, i, "a signal", s, error);
    }
    return ORTC_OK;
}

bool ortc_context_is_done(ortc_context *c)
{
    for (uint32_t i = 0; i < c->session->n_devices; i++) {
        const ortc_provider *p = c->session->devices[i].provider;
        if ((c->busy_queues >> i & 1) && (!p->query || !p->query(c->finish[i])))
            return false;
    }
    return true;
}

ortc_status ortc_context_drain(ortc_context *c, ortc_error *error)
{
    ortc_status first = ORTC_OK;
    for (uint32_t i = 0; i < c->session->n_devices; i++) {
        if (!(c->busy_queues >> i & 1))
            continue;
        ortc_status s = c->session->devices[i].provider->wait(NULL, c->finish[i]);
        if (s != ORTC_OK && first == ORTC_OK)
            first = device_failed(c, i, "what it was given", s, error);
    }
    c->busy_queues = 0;
    return first;
}
