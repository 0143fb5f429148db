/* tools/ortc/profile_page.h: what `ortc profile` has measured, and the page that shows it. */
#ifndef PROFILE_PAGE_H
#define PROFILE_PAGE_H

#include "inputs.h"
#include "machine.h"
#include "trace.h"

/* One operator, node or kernel. */
typedef struct profile_line {
    const char *name, *op, *kernel, *provider;
    uint64_t calls;
    double own, flops, bytes; /* seconds without inner steps; of all calls */
} profile_line;

typedef struct profile_lines {
    profile_line *items;
    size_t count;
    double total;
} profile_lines;

/* The share of the machine's roofline; 0: the kernel does not tell what it does. */
static inline double profile_roof(const profile_line *l, const machine *m)
{
    return l->own > 0 ? machine_floor(m, l->flops, l->bytes) / l->own : 0;
}

typedef struct profile_run {
    double seconds;
    size_t first, end; /* of the trace's events */
} profile_run;

typedef struct profile_runs {
    profile_run *items;
    size_t count;
    double wall; /* seconds of all */
} profile_runs;

typedef struct profile_view {
    const char *model, *provider; /* provider NULL: the default */
    const trace *trace;
    const profile_runs *runs;
    const profile_lines *nodes;
    const machine *machine;
    ortc_session *session; /* asked for its plan's memory */
    const inputs *inputs;
} profile_view;

/* -1: good; else the exit code, the error is printed. */
int profile_page(const char *path, const profile_view *);

#endif
