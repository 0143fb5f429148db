/* kernels/signal/ref.c: DFT and STFT on ref, and the family's table: lines of the signal are read into
 * complex numbers of double, transformed (fft.h) and written.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/shape.h"
#include "kernels/signal/dft.h"
#include "kernels/signal/fft.h"

extern const ortc_kernel ortc_ref_window, ortc_ref_mel; /* ref_window.c */

typedef struct dft_job {
    const ortc_dft_state *s;
    const ortc_fft *fft;
    const ortc_view *x, *y, *window;
    int64_t n; /* numbers of a line that are transformed */
    ortc_dft_lines lines;
} dft_job;

static size_t line_bytes(int64_t n) { return ((size_t)n * 2 * sizeof(double) + 63) / 64 * 64; }

static void load(const dft_job *j, double *line, int64_t at, int64_t count)
{
    const ortc_dft_side *x = &j->lines.x;
    for (int64_t i = 0; i < count; i++, at += x->step) {
        line[2 * i] = ortc_load_f64(j->x->data, j->x->dtype, at);
        line[2 * i + 1] = x->parts == 2 ? ortc_load_f64(j->x->data, j->x->dtype, at + 1) : 0;
    }
    for (int64_t i = 2 * count; i < 2 * j->n; i++) line[i] = 0;
}

/* The frequencies of a real signal that were left out: those of the other half, conjugate. */
static void complete(double *line, int64_t n)
{
    line[1] = 0;
    if (n % 2 == 0) line[n + 1] = 0;
    for (int64_t i = n / 2 + 1; i < n; i++) {
        line[2 * i] = line[2 * (n - i)];
        line[2 * i + 1] = -line[2 * (n - i) + 1];
    }
}

static void store(const dft_job *j, const double *line, int64_t at, double scale)
{
    const ortc_dft_side *y = &j->lines.y;
    for (int64_t i = 0; i < y->count; i++, at += y->step)
        for (int64_t k = 0; k < y->parts; k++)
            ortc_store_f64(j->y->data, j->y->dtype, at + k, line[2 * i + k] * scale);
}

static void chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const dft_job *j = arg;
    const ortc_dft_lines *l = &j->lines;
    const bool completes = j->s->inverse && j->s->onesided;
    const int64_t needed = completes ? j->n / 2 + 1 : j->n;
    double *line = scratch;
    for (int64_t i = begin; i < end; i++) {
        const int64_t outer = i / l->lines, inner = i % l->lines;
        load(j, line, outer * l->x.outer + inner * l->x.line, l->x.count < needed ? l->x.count : needed);
        if (completes) complete(line, j->n);
        for (int64_t k = 0; j->window && k < j->n; k++) {
            const double w = ortc_load_f64(j->window->data, j->window->dtype, k);
            line[2 * k] *= w, line[2 * k + 1] *= w;
        }
        ortc_fft_run(j->fft, line, (char *)scratch + line_bytes(j->n), j->s->inverse);
        store(j, line, outer * l->y.outer + inner * l->y.line, j->s->inverse ? 1 / (double)j->n : 1);
    }
}

ortc_status ortc_dft_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    ortc_dft_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->inverse = ortc_node_int(n, "inverse", 0) != 0;
    s->onesided = ortc_node_int(n, "onesided", 0) != 0; /* STFT has a default of its own in the schema */
    *out = s;
    return ORTC_OK;
}

/* Scratch of a worker for lines of up to n elements: the line, and what its transform takes at most. */
static void plan_length(ortc_plan *p, int64_t n)
{
    n = n < 1 ? 1 : n > ORTC_FFT_LIMIT ? ORTC_FFT_LIMIT : n;
    ortc_plan_workspace(p, 0, line_bytes(n) + ortc_fft_scratch_for(n));
}

static ortc_status transform(ortc_call *c, dft_job *j)
{
    if (j->n > ORTC_FFT_LIMIT)
        return ortc_call_fail(c, ORTC_LIMIT, "%lld elements are transformed, at most %lld can be",
                              (long long)j->n, (long long)ORTC_FFT_LIMIT);
    ortc_fft *fft = ortc_fft_create(j->n);
    if (!fft) return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for the roots of unity");
    j->fft = fft;
    const double cost = 20 * (double)j->n * (2 + log2((double)j->n));
    const ortc_status status = ortc_parallel(c, j->lines.outers * j->lines.lines, 1 + (int64_t)(1e5 / cost),
                                             chunk, j);
    free(fft);
    return status;
}

bool ortc_dft_length(const ortc_dft_state *s, const ortc_view *in, uint32_t n_in, const ortc_view *y,
                     int32_t *axis, int64_t *n)
{
    const ortc_view *x = &in[0], *length = n_in > 1 && in[1].dtype ? &in[1] : NULL,
                    *where = n_in > 2 && in[2].dtype ? &in[2] : NULL;
    if ((length && !length->data) || (where && !where->data)) return false;
    if (!ortc_axis_of(where ? ortc_load_i64(where->data, ORTC_I64, 0) : -2, x->rank, axis)) return false;
    *n = length                      ? ortc_load_i64(length->data, length->dtype, 0)
         : s->onesided && s->inverse ? y->dims[*axis]
                                     : x->dims[*axis];
    return true;
}

int64_t ortc_stft_length(const ortc_view *in, uint32_t n_in)
{
    if (n_in > 3 && in[3].dtype) return ortc_load_i64(in[3].data, in[3].dtype, 0);
    return n_in > 2 && in[2].dtype ? in[2].dims[0] : in[0].dims[1];
}

static ortc_dft_side side_of(const ortc_view *v, int32_t axis, int64_t *inner)
{
    ortc_dft_side s = {.count = v->dims[axis], .parts = v->dims[v->rank - 1]};
    s.step = s.parts;
    for (int32_t d = axis + 1; d < v->rank - 1; d++) s.step *= v->dims[d];
    *inner = s.step / s.parts;
    s.outer = s.count * s.step;
    s.line = s.parts;
    return s;
}

ortc_dft_lines ortc_dft_lines_of(const ortc_view *x, const ortc_view *y, int32_t axis)
{
    ortc_dft_lines l = {.outers = 1};
    l.x = side_of(x, axis, &l.lines), l.y = side_of(y, axis, &l.lines);
    for (int32_t d = 0; d < axis; d++) l.outers *= x->dims[d];
    if (l.lines == 1) /* all lines of numbers beside each other are as those of one outer index */
        l.lines = l.outers, l.outers = 1, l.x.line = l.x.outer, l.y.line = l.y.outer;
    return l;
}

ortc_dft_lines ortc_stft_lines_of(const ortc_view *x, const ortc_view *y, int64_t frame_step, int64_t length)
{
    const int64_t parts = x->dims[2];
    return (ortc_dft_lines){
        .outers = y->dims[0],
        .lines = y->dims[1],
        .x = {x->dims[1] * parts, frame_step * parts, parts, length, parts},
        .y = {y->dims[1] * y->dims[2] * 2, y->dims[2] * 2, 2, y->dims[2], 2},
    };
}

static ortc_status dft_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *y = &p->out[0];
    int32_t axis = 0;
    int64_t n = 1;
    if (!ortc_dft_length(state, p->in, p->n_in, y, &axis, &n))
        for (int32_t d = 0; d < y->rank - 1; d++) /* half of it may be left out in the result */
            n = y->dims[d] > ORTC_FFT_LIMIT || 2 * y->dims[d] > n ? 2 * y->dims[d] : n;
    plan_length(p, n);
    return ORTC_OK;
}

static ortc_status dft_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0], *y = &c->out[0];
    dft_job j = {.s = state, .x = x, .y = y};
    int32_t axis = 0;
    if (ortc_view_count(y) == 0) return ORTC_OK;
    if (!ortc_dft_length(state, c->in, c->n_in, y, &axis, &j.n))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "the axis is outside of the input's rank");
    j.lines = ortc_dft_lines_of(x, y, axis);
    return transform(c, &j);
}

static ortc_status stft_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *y = &p->out[0]; /* as many frequencies as elements, or half of them and one */
    plan_length(p, y->dims[2] > ORTC_FFT_LIMIT ? ORTC_FFT_LIMIT : 2 * y->dims[2]);
    return ORTC_OK;
}

static ortc_status stft_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0], *y = &c->out[0];
    dft_job j = {.s = state, .x = x, .y = y};
    if (ortc_view_count(y) == 0) return ORTC_OK;
    j.n = ortc_stft_length(c->in, c->n_in);
    j.window = c->n_in > 2 && c->in[2].dtype ? &c->in[2] : NULL;
    j.lines = ortc_stft_lines_of(x, y, ortc_load_i64(c->in[1].data, c->in[1].dtype, 0), j.n);
    return transform(c, &j);
}

static const ortc_kernel dft_ref = {.size = ORTC_SIZED(ortc_kernel),
                                    .name = "dft.ref",
                                    .prepare = ortc_dft_prepare,
                                    .plan = dft_plan,
                                    .run = dft_run};
static const ortc_kernel stft_ref = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "stft.ref",
                                     .prepare = ortc_dft_prepare,
                                     .plan = stft_plan,
                                     .run = stft_run};

#define INDEX (ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64))
ORTC_KERNELS(ref, signal, ORTC_KERNEL("DFT", 20, ORTC_NEWEST, (ORTC_TYPES_FLOAT, INDEX), &dft_ref),
             ORTC_KERNEL("STFT", 17, ORTC_NEWEST, (ORTC_TYPES_FLOAT, INDEX), &stft_ref),
             ORTC_KERNEL("HannWindow", 17, ORTC_NEWEST, (INDEX, ORTC_TYPES_NUM), &ortc_ref_window),
             ORTC_KERNEL("HammingWindow", 17, ORTC_NEWEST, (INDEX, ORTC_TYPES_NUM), &ortc_ref_window),
             ORTC_KERNEL("BlackmanWindow", 17, ORTC_NEWEST, (INDEX, ORTC_TYPES_NUM), &ortc_ref_window),
             ORTC_KERNEL("MelWeightMatrix", 17, ORTC_NEWEST, (INDEX, ORTC_TYPES_FLOAT, ORTC_TYPES_NUM),
                         &ortc_ref_mel));
