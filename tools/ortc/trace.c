/* tools/ortc/trace.c: events of runs, collected and written in the trace event format: one "X" event per
 * plan, step and phase, with the node's operator, provider, kernel and the kernel's estimates as arguments.
 */
#include "trace.h"

#include <stdlib.h>

#include "json.h"

static void record(void *arg, const ortc_profile_event *e)
{
    trace *t = arg;
    if (t->count == t->capacity) {
        t->capacity = t->capacity ? 2 * t->capacity : 256;
        t->events = mem_grow(t->events, t->capacity, sizeof *t->events);
    }
    t->events[t->count++] = (trace_event){e->name,  e->op,    e->provider, e->kernel,
                                          e->kind,  e->step,  e->start_ns, e->duration_ns,
                                          e->flops, e->bytes, e->clocks};
}

void trace_init(trace *t)
{
    *t = (trace){.profiler = ORTC_PROFILER_INIT};
    t->profiler.arg = t;
    t->profiler.record = record;
}

void trace_free(trace *t)
{
    free(t->events);
    *t = (trace){0};
}

static void put_event(json *j, const trace_event *e, int64_t start)
{
    static const char *const kinds[] = {"", "step", "phase", "plan"};
    json_object(j);
    json_pair_text(j, "name", e->name);
    json_pair_text(j, "cat", e->kind < COUNT_OF(kinds) ? kinds[e->kind] : "");
    json_pair_text(j, "ph", "X");
    json_pair_number(j, "ts", (double)(e->start_ns - start) / 1e3);
    json_pair_number(j, "dur", (double)e->duration_ns / 1e3);
    json_pair_integer(j, "pid", 1);
    json_pair_integer(j, "tid", 1);
    json_key(j, "args");
    json_object(j);
    if (e->kind != ORTC_PROFILE_PLAN) json_pair_integer(j, "step", e->step);
    if (*e->op) {
        json_pair_text(j, "op", e->op);
        json_pair_text(j, "provider", e->provider);
        json_pair_text(j, "kernel", e->kernel);
    }
    if (e->flops > 0) json_pair_number(j, "flops", e->flops);
    if (e->bytes > 0) json_pair_number(j, "bytes", e->bytes);
    if (e->clocks > 0) json_pair_number(j, "clocks", e->clocks);
    json_object_end(j);
    json_object_end(j);
}

int trace_write(const trace *t, const char *option, const char *path)
{
    json j = {.first = true};
    int64_t start = INT64_MAX;
    for (size_t i = 0; i < t->count; i++)
        start = t->events[i].start_ns < start ? t->events[i].start_ns : start;
    json_object(&j);
    json_pair_text(&j, "displayTimeUnit", "ns");
    json_key(&j, "traceEvents");
    json_array(&j);
    for (size_t i = 0; i < t->count; i++) put_event(&j, &t->events[i], start);
    json_array_end(&j);
    json_object_end(&j);
    ortc_error e = ORTC_ERROR_INIT;
    ortc_status s = file_write(path, j.out.data, j.out.size, &e);
    free(j.out.data);
    if (s == ORTC_OK) return -1;
    say_error("%s: %s", option, e.text);
    return EXIT_RUN;
}
