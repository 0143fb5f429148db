/* tools/ortc/bench_report.c: percentiles, text, JSON, comparison with a saved measurement; see bench.h. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench.h"
#include "info.h"
#include "json.h"
#include "term.h"

/* ---- Numbers ------------------------------------------------------------------------------------------- */

enum { PARTS = 10, LEAST = 5 }; /* parts of the time; samples in each, so that their medians mean something */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Between neighbours, as numpy.percentile does it. */
static double percentile(const double *sorted, size_t n, double percent)
{
    double at = percent / 100 * (double)(n - 1);
    size_t i = (size_t)at;
    return i + 1 < n ? sorted[i] + (at - (double)i) * (sorted[i + 1] - sorted[i]) : sorted[n - 1];
}

double measurement_percentile(const measurement *m, double percent)
{
    return percentile(m->samples, m->n, percent);
}

void measurement_add(measurement *m, double *const *samples, const size_t *counts, size_t callers)
{
    size_t total = 0, at = 0, ends[PARTS];
    for (size_t c = 0; c < callers; c++) total += counts[c];
    m->samples = mem_alloc((total + 1) * sizeof *m->samples);
    for (size_t part = 0; part < PARTS; part++) { /* part by part of all callers */
        for (size_t c = 0; c < callers; c++) {
            size_t from = counts[c] * part / PARTS, to = counts[c] * (part + 1) / PARTS;
            if (to > from) memcpy(m->samples + at, samples[c] + from, (to - from) * sizeof **samples);
            at += to - from;
        }
        ends[part] = at;
    }
    double low = INFINITY, high = 0;
    for (size_t part = 0, start = 0; part < PARTS && total; start = ends[part++]) {
        if (ends[part] <= start) continue;
        qsort(m->samples + start, ends[part] - start, sizeof *m->samples, by_size);
        double median = percentile(m->samples + start, ends[part] - start, 50);
        low = fmin(low, median);
        high = fmax(high, median);
    }
    qsort(m->samples, total, sizeof *m->samples, by_size);
    m->n = total;
    m->noise = total >= PARTS * LEAST ? (high - low) / percentile(m->samples, total, 50) : -1;
}

void measurement_free(measurement *m)
{
    free(m->samples);
    *m = (measurement){0};
}

static double mean(const measurement *m)
{
    double sum = 0;
    for (size_t i = 0; i < m->n; i++) sum += m->samples[i];
    return sum / (double)m->n;
}

static double deviation(const measurement *m)
{
    double sum = 0, middle = mean(m);
    for (size_t i = 0; i < m->n; i++) sum += (m->samples[i] - middle) * (m->samples[i] - middle);
    return m->n > 1 ? sqrt(sum / (double)(m->n - 1)) : 0;
}

static double throughput(const measurement *m) { return (double)m->n / m->elapsed; }

/* ---- A saved measurement ------------------------------------------------------------------------------- */

/* The number behind "key": in what json.c wrote, where no key stands twice. */
static bool number_of(const char *text, const char *key, double *out)
{
    char *quoted = mem_printf("\"%s\":", key), *end = NULL;
    const char *at = strstr(text, quoted);
    if (at) *out = strtod(at + strlen(quoted), &end);
    const bool found = at && end != at + strlen(quoted);
    free(quoted);
    return found;
}

ortc_status saved_read(const char *path, saved *out, ortc_error *error)
{
    blob b;
    *out = (saved){0};
    ortc_status s = file_read(path, 1 << 20, &b, error);
    if (s != ORTC_OK) return s;
    buffer text = {0};
    buffer_add(&text, b.data, b.size);
    free(b.data);
    const char *t = (const char *)text.data;
    const bool good = strstr(t, "\"command\": \"bench\"") && number_of(t, "p50", &out->p50) && out->p50 > 0 &&
                      number_of(t, "throughput", &out->throughput) && number_of(t, "noise", &out->noise);
    free(text.data);
    return good ? ORTC_OK
                : fail(error, ORTC_INVALID_ARGUMENT, "'%s' is not what 'ortc bench --save' writes", path);
}

/* What is faster or slower beyond what both measurements scatter by themselves. */
static double noise_of_both(const measurement *m, const saved *old)
{
    return fmax(fmax(m->noise, old->noise), 0);
}

static double change(const measurement *m, const saved *old)
{
    return measurement_percentile(m, 50) * 1e3 / old->p50 - 1;
}

bool bench_is_worse(const measurement *m, const bench_report *r)
{
    return r->against && r->fail_above >= 0 &&
           change(m, &r->old) > fmax(r->fail_above / 100, noise_of_both(m, &r->old));
}

/* ---- Told ---------------------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    double percent;
} percentiles[] = {{"min", 0},  {"p50", 50},     {"p90", 90}, {"p95", 95},
                   {"p99", 99}, {"p99.9", 99.9}, {"max", 100}};

void bench_print(const measurement *m, const bench_report *r)
{
    char *base = info_bytes(m->base_bytes), *peak = info_bytes(m->peak_bytes),
         *arenas = info_bytes(m->arena_bytes);
    table t;
    table_init(&t, "ll");
    table_cell(&t, "start");
    table_format(&t, "load %.3f ms  create %.3f ms  first run %.3f ms", 1e3 * m->load, 1e3 * m->create,
                 1e3 * m->first);
    table_cell(&t, "latency, ms");
    buffer line = {0};
    for (size_t i = 0; i < COUNT_OF(percentiles); i++)
        buffer_printf(&line, "%s%s %.4g", i ? "  " : "", percentiles[i].name,
                      1e3 * measurement_percentile(m, percentiles[i].percent));
    table_cell(&t, (const char *)line.data);
    free(line.data);
    table_cell(&t, "");
    table_format(&t, "mean %.4g  deviation %.2g  of %zu runs in %.2f s", 1e3 * mean(m), 1e3 * deviation(m),
                 m->n, m->elapsed);
    table_cell(&t, "throughput");
    table_format(&t, "%.5g runs/s from %zu caller%s  processors %.2f busy", throughput(m), m->callers,
                 m->callers == 1 ? "" : "s", m->cpu / m->elapsed);
    table_cell(&t, "memory");
    table_format(&t, "peak %s (%s before loading)  arenas %s", peak, base, arenas);
    if (m->shapes > 1) {
        table_cell(&t, "shapes");
        table_format(&t, "%zu sets, %llu plans", m->shapes, (unsigned long long)m->plans);
    }
    table_cell(&t, "noise");
    if (m->noise >= 0)
        table_format(&t, "%.1f %%: so far apart lie the medians of ten parts of the time", 1e2 * m->noise);
    else
        table_cell(&t, "too few runs to say");
    if (r->against) {
        const double by = change(m, &r->old), noise = noise_of_both(m, &r->old);
        table_cell(&t, "against");
        table_format(&t, "%s: %.4g ms there, %.4g ms here: %s", r->against, r->old.p50,
                     1e3 * measurement_percentile(m, 50),
                     fabs(by) <= noise ? "within the noise"
                     : by > 0          ? "slower"
                                       : "faster");
        table_cell(&t, "");
        table_format(&t, "%+.1f %% (noise %.1f %%)  throughput %+.1f %%", 1e2 * by, 1e2 * noise,
                     1e2 * (throughput(m) / r->old.throughput - 1));
    }
    table_print(&t, 0, false);
    free(base);
    free(peak);
    free(arenas);
}

ortc_status bench_json(const measurement *m, const bench_report *r, const char *path, ortc_error *error)
{
    json j;
    json_begin(&j, "bench");
    json_pair_text(&j, "model", r->model);
    json_pair_text(&j, "provider", r->provider ? r->provider : "cpu");
    json_pair_integer(&j, "threads", r->threads);
    json_pair_unsigned(&j, "callers", m->callers);
    json_pair_unsigned(&j, "shapes", m->shapes);
    json_pair_unsigned(&j, "runs", m->n);
    json_pair_number(&j, "seconds", m->elapsed);
    json_key(&j, "start_ms");
    json_object(&j);
    json_pair_number(&j, "load", 1e3 * m->load);
    json_pair_number(&j, "create", 1e3 * m->create);
    json_pair_number(&j, "first", 1e3 * m->first);
    json_object_end(&j);
    json_key(&j, "latency_ms");
    json_object(&j);
    for (size_t i = 0; i < COUNT_OF(percentiles); i++)
        json_pair_number(&j, percentiles[i].name, 1e3 * measurement_percentile(m, percentiles[i].percent));
    json_pair_number(&j, "mean", 1e3 * mean(m));
    json_pair_number(&j, "deviation", 1e3 * deviation(m));
    json_object_end(&j);
    json_pair_number(&j, "throughput", throughput(m));
    json_pair_number(&j, "processors", m->cpu / m->elapsed);
    json_pair_number(&j, "noise", m->noise);
    json_pair_unsigned(&j, "peak_bytes", m->peak_bytes);
    json_pair_unsigned(&j, "base_bytes", m->base_bytes);
    json_pair_unsigned(&j, "arena_bytes", m->arena_bytes);
    json_pair_unsigned(&j, "plan_bytes", m->plan_bytes);
    json_pair_unsigned(&j, "plans", m->plans);
    if (r->against && !path) {
        json_key(&j, "against");
        json_object(&j);
        json_pair_text(&j, "file", r->against);
        json_pair_number(&j, "p50_ms", r->old.p50);
        json_pair_number(&j, "change", change(m, &r->old));
        json_pair_number(&j, "noise_of_both", noise_of_both(m, &r->old));
        json_object_end(&j);
    }
    if (path) return json_save(&j, path, error);
    json_finish(&j);
    return ORTC_OK;
}
