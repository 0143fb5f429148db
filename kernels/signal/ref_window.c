/* kernels/signal/ref_window.c: HannWindow, HammingWindow, BlackmanWindow and MelWeightMatrix on ref. */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/shape.h"

extern const ortc_kernel ortc_ref_window, ortc_ref_mel;

/* ---- Windows: a[0] - a[1] cos(t) + a[2] cos(2 t), t once around the circle ----------------------------- */

typedef struct window_state {
    double a[3];
    bool periodic;
} window_state;

typedef struct window_job {
    const window_state *s;
    const ortc_view *y;
    double period;
} window_job;

static void window_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const window_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        const double *a = j->s->a, t = 2 * 3.14159265358979323846 * (double)i / j->period;
        ortc_store_f64(j->y->data, j->y->dtype, i, a[0] - a[1] * cos(t) + a[2] * cos(2 * t));
    }
}

static ortc_status window_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    window_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = !strcmp(ortc_node_op(n), "HannWindow")      ? (window_state){{0.5, 0.5, 0}, false}
         : !strcmp(ortc_node_op(n), "HammingWindow") ? (window_state){{25.0 / 46, 21.0 / 46, 0}, false}
                                                     : (window_state){{0.42, 0.5, 0.08}, false};
    s->periodic = ortc_node_int(n, "periodic", 1) != 0;
    *out = s;
    return ORTC_OK;
}

static ortc_status window_run(const void *state, const void *pstate, ortc_call *c)
{
    const window_state *s = state;
    const int64_t n = ortc_view_count(&c->out[0]);
    const window_job j = {s, &c->out[0], (double)(s->periodic ? n : n - 1)};
    if (n == 1 && !s->periodic) { /* 0 / 0 by the formula; a window of one element is 1 */
        ortc_store_f64(c->out[0].data, c->out[0].dtype, 0, 1);
        return ORTC_OK;
    }
    return ortc_parallel(c, n, ortc_grain(60), window_chunk, (void *)(uintptr_t)&j);
}

const ortc_kernel ortc_ref_window = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "window.ref",
                                     .prepare = window_prepare,
                                     .run = window_run};

/* ---- MelWeightMatrix: triangles over frequencies, evenly spaced on the mel scale ----------------------- */

typedef struct mel_job {
    const ortc_view *y;
    double low, step, scale; /* mel of the lowest edge, between two edges; bins per hertz */
} mel_job;

static double mel_of(double hertz) { return 2595 * log10(1 + hertz / 700); }

/* The bin of edge i. */
static double edge(const mel_job *j, int64_t i)
{
    return floor(700 * (pow(10, (j->low + (double)i * j->step) / 2595) - 1) * j->scale);
}

/* Column i rises from edge i to edge i + 1 and falls to edge i + 2. */
static void mel_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const mel_job *j = arg;
    const int64_t bins = j->y->dims[0], columns = j->y->dims[1];
    for (int64_t i = begin; i < end; i++) {
        const double left = edge(j, i), center = edge(j, i + 1), right = edge(j, i + 2);
        for (int64_t k = 0; k < bins; k++) {
            const double at = (double)k;
            double v = 0;
            if (at >= center && at < right)
                v = (right - at) / (right - center);
            else if (at == center)
                v = 1;
            else if (at >= left && at < center)
                v = (at - left) / (center - left);
            ortc_store_f64(j->y->data, j->y->dtype, k * columns + i, v);
        }
    }
}

static ortc_status mel_run(const void *state, const void *pstate, ortc_call *c)
{
    double in[5];
    mel_job j = {.y = &c->out[0]};
    for (uint32_t i = 0; i < 5; i++) {
        if (ortc_view_count(&c->in[i]) != 1)
            return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "input %u is not one number", i);
        in[i] = ortc_load_f64(c->in[i].data, c->in[i].dtype, 0);
    }
    if (!(in[2] > 0)) return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "sample_rate is %g", in[2]);
    j.low = mel_of(in[3]);
    j.step = (mel_of(in[4]) - j.low) / (in[0] + 2);
    j.scale = (in[1] + 1) / in[2];
    if (!isfinite(j.low) || !isfinite(j.step))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "the edges are %g and %g hertz", in[3], in[4]);
    return ortc_parallel(c, j.y->dims[1], ortc_grain(8 * (double)(j.y->dims[0] + 10)), mel_chunk, &j);
}

const ortc_kernel ortc_ref_mel = {.size = ORTC_SIZED(ortc_kernel), .name = "mel.ref", .run = mel_run};
