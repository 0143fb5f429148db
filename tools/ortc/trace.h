/* tools/ortc/trace.h: what a session's runs did, as a trace that browsers show (chrome://tracing,
 * Perfetto). */
#ifndef TRACE_H
#define TRACE_H

#include "cli.h"

typedef struct trace_event {
    const char *name, *op, *provider, *kernel; /* they live as long as the session */
    uint32_t kind, step;
    int64_t start_ns, duration_ns;
    double flops, bytes, clocks;
} trace_event;

typedef struct trace {
    ortc_profiler profiler; /* for ortc_run_args.profiler */
    trace_event *events;
    size_t count, capacity;
} trace;

void trace_init(trace *);
/* One JSON object {"traceEvents": [...]}; times from the first event on. -1: good; else it has said what is
 * wrong. */
/* `option` names the file in messages. */
int trace_write(const trace *, const char *option, const char *path);
void trace_free(trace *);

#endif
