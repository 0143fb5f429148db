/* base/stop.h: what ends a long call before its time: the caller's flag, the caller's deadline. */
#ifndef ORTC_STOP_H
#define ORTC_STOP_H

#include "base.h"

struct ortc_cancel {
    atomic_bool set;
};

typedef struct ortc_stop {
    const char *what;    /* "the run", for texts */
    ortc_cancel *cancel; /* NULL: none */
    int64_t deadline_ns; /* CLOCK_MONOTONIC; 0: none */
} ortc_stop;

/* ORTC_OK, or the reason to stop; stop NULL: there is none. */
static inline ortc_status ortc_stop_poll(const ortc_stop *s, ortc_error *error)
{
    if (!s) return ORTC_OK;
    if (s->cancel && atomic_load_explicit(&s->cancel->set, memory_order_relaxed))
        return ortc_fail(error, ORTC_CANCELLED, "%s was cancelled", s->what);
    if (s->deadline_ns && ortc_now_ns() >= s->deadline_ns)
        return ortc_fail(error, ORTC_DEADLINE, "%s's deadline has passed", s->what);
    return ORTC_OK;
}

#endif
