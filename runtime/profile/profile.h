/* runtime/profile/profile.h: telling a run's profiler what was done; called only where there is one. */
#ifndef ORTC_PROFILE_H
#define ORTC_PROFILE_H

#include "base/base.h"

/* A part of a step that is under way. */
typedef struct ortc_phase {
    const char *name; /* NULL: none */
    int64_t start_ns;
    const ortc_profile_event *of; /* the step */
} ortc_phase;

/* Ends the phase that is under way, if there is one, and begins `name` (NULL: none). */
void ortc_profile_phase(const ortc_profiler *, ortc_phase *, const char *name);
/* Tells of what began at e->start_ns. */
void ortc_profile_end(const ortc_profiler *, ortc_profile_event *e);

#endif
