/* runtime/execute/event.c: runs that go on behind their caller's back (ortc_run_args.done).
 *
 * An event keeps what the run was given, what it makes, and its context until the devices are done: the first
 * wait drains the context's queues, finishes what is left to the host and gives the context back. Releasing
 * waits, too.
 */
#include "context.h"

struct ortc_event {
    pthread_mutex_t lock;
    ortc_unit *unit;       /* retained */
    ortc_context *context; /* NULL: finished */
    bool own_context;      /* the caller's: not given back to the pool */
    ortc_status status;
    ortc_error error;
    ORTC_ARRAY(ortc_value *) held;
    ORTC_ARRAY(ortc_event_copy) copies;
};

ortc_status ortc_event_make(ortc_context *c, const ortc_run_args *a, ortc_event **out, ortc_error *error)
{
    ortc_event *e = *out = calloc(1, sizeof *e);
    if (!e) return ortc_no_memory(error, sizeof *e);
    pthread_mutex_init(&e->lock, NULL);
    e->unit = ortc_unit_retain(c->unit);
    e->own_context = a->context != NULL;
    e->error = (ortc_error)ORTC_ERROR_INIT;
    for (size_t i = 0; i < a->n_in; i++)
        if (a->in[i].value && !ortc_event_hold(e, a->in[i].value)) {
            ortc_event_release(e);
            *out = NULL;
            return ortc_no_memory(error, sizeof(void *));
        }
    return ORTC_OK;
}

bool ortc_event_hold(ortc_event *e, ortc_value *v)
{
    if (!ortc_array_push(&e->held, v)) return false;
    ortc_value_retain(v);
    return true;
}

bool ortc_event_copy_later(ortc_event *e, ortc_value *made, ortc_value *given)
{
    return ortc_array_push(&e->copies, (ortc_event_copy){made, given});
}

void ortc_event_start(ortc_event *e, ortc_context *c) { e->context = c; }

static void finish(ortc_event *e)
{
    ortc_context *c = e->context;
    e->status = ortc_context_drain(c, &e->error);
    for (size_t i = 0; i < e->copies.count; i++) {
        ortc_event_copy *copy = &e->copies.data[i];
        if (e->status == ORTC_OK) memcpy(copy->given->data, copy->made->data, copy->made->bytes);
        ortc_value_release(copy->made);
    }
    e->copies.count = 0;
    ortc_context_clean(c);
    if (e->own_context)
        atomic_store(&c->busy, false);
    else
        ortc_context_return(c);
    e->context = NULL;
    for (size_t i = 0; i < e->held.count; i++) ortc_value_release(e->held.data[i]);
    e->held.count = 0;
}

ortc_status ortc_event_wait(ortc_event *e, ortc_error *error)
{
    if (!e) return ortc_fail(error, ORTC_INVALID_ARGUMENT, "ortc_event_wait: the event is NULL");
    pthread_mutex_lock(&e->lock);
    if (e->context) finish(e);
    ortc_status s = e->status;
    if (s != ORTC_OK) ortc_fail(error, s, "%s", e->error.text);
    pthread_mutex_unlock(&e->lock);
    return s;
}

int ortc_event_done(ortc_event *e)
{
    pthread_mutex_lock(&e->lock);
    int done = !e->context || ortc_context_is_done(e->context);
    pthread_mutex_unlock(&e->lock);
    return done;
}

void ortc_event_release(ortc_event *e)
{
    if (!e) return;
    ortc_event_wait(e, NULL);
    for (size_t i = 0; i < e->held.count; i++) /* of a run that never started */
        ortc_value_release(e->held.data[i]);
    ortc_array_deinit(&e->held);
    ortc_array_deinit(&e->copies);
    ortc_unit_release(e->unit);
    pthread_mutex_destroy(&e->lock);
    free(e);
}
