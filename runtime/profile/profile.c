/* runtime/profile/profile.c: events of a run for the caller's profiler (profile.h). */
#include "profile.h"

void ortc_profile_end(const ortc_profiler *p, ortc_profile_event *e)
{
    e->size = sizeof *e;
    e->duration_ns = ortc_now_ns() - e->start_ns;
    p->record(p->arg, e);
}

void ortc_profile_phase(const ortc_profiler *p, ortc_phase *phase, const char *name)
{
    if (phase->name) {
        ortc_profile_event e = *phase->of;
        e.kind = ORTC_PROFILE_PHASE;
        e.name = phase->name;
        e.start_ns = phase->start_ns;
        e.flops = e.bytes = 0;
        ortc_profile_end(p, &e);
    }
    phase->name = name;
    phase->start_ns = ortc_now_ns();
}
