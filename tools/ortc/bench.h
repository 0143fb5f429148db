/* tools/ortc/bench.h: what `ortc bench` measured, and how it is told, saved and compared. */
#ifndef BENCH_H
#define BENCH_H

#include "cli.h"

typedef struct measurement {
    double load, create, first; /* seconds: the file, the session, the first run */
    double *samples;            /* seconds of runs, sorted */
    size_t n;
    double elapsed, cpu; /* seconds of the measured part, and of processor time in it */
    /* how far the medians of ten parts of the measured time lie apart, as a share of the whole's median;
     * negative: too few runs to say */
    double noise;
    uint64_t base_bytes, peak_bytes; /* resident memory before loading, and at most */
    uint64_t arena_bytes, plan_bytes, plans;
    size_t callers, shapes; /* threads that run at once; sets of input shapes */
} measurement;

/* From each caller's samples in the order of time, which are taken; computes what is computed of them. */
void measurement_add(measurement *, double *const *samples, const size_t *counts, size_t callers);
double measurement_percentile(const measurement *, double percent);
void measurement_free(measurement *);

/* A measurement that was saved, as far as it is compared. */
typedef struct saved {
    char *model; /* NULL: none */
    double p50, throughput, noise;
} saved;
ortc_status saved_read(const char *path, saved *out, ortc_error *);

typedef struct bench_report {
    const char *model, *provider, *against; /* against: the file's name; NULL: none */
    int64_t threads;
    double fail_above; /* per cent; negative: never */
    saved old;
} bench_report;

void bench_print(const measurement *, const bench_report *);
/* The same as JSON, on stdout with `path` NULL. */
ortc_status bench_json(const measurement *, const bench_report *, const char *path, ortc_error *);
/* Whether it is slower than what was saved by more than is allowed, and than the noise of both. */
bool bench_is_worse(const measurement *, const bench_report *);

#endif
