/* The bands of dwconv.h: filling phases, running the correlation, and storing its rows. */
#include "dwconv.h"

#include <string.h>

#include "kernels/common/counts.h"
#include "plane_end.h"

#define BAND_FLOATS 8192            /* input of a band: stays in L1 */
#define SCRATCH_LIMIT (1024 * 1024) /* bytes; larger: not this way */
#define GRAIN_FLOPS 0.25e6
#define MULTIPLIER_LIMIT 2 /* more filters per channel: a product reads the image once for all of them */

typedef struct job {
    const ortc_dwconv_plan *p;
    ortc_plane_end end;
    const void *x, *w;
} job;

int ortc_dwconv_plan_init(const ortc_conv_geometry *g, ortc_dtype type, ortc_dwconv_plan *p)
{
    memset(p, 0, sizeof *p);
    if (g->channels != 1 || g->spatial > 2 || g->filters > MULTIPLIER_LIMIT ||
        g->kernel_count > ORTC_DWCONV_TAPS)
        return 0;
    p->uk = ortc_dwconv_uk_select();
    p->columns = ortc_columns_uk_select();
    p->type = type;
    for (int i = 0; i < 2; i++) {
        const int32_t d = g->spatial - 2 + i; /* one dim: a single row */
        p->in[i] = d < 0 ? 1 : g->in[d], p->out[i] = d < 0 ? 1 : g->out[d];
        p->kernel[i] = d < 0 ? 1 : g->kernel[d], p->stride[i] = d < 0 ? 1 : g->stride[d];
        p->dilation[i] = d < 0 ? 1 : g->dilation[d], p->pad[i] = d < 0 ? 0 : g->pad[d];
        if (p->stride[i] > 64 || p->kernel[i] * p->dilation[i] > 4096 || p->in[i] > INT32_MAX) return 0;
    }
    p->planes = g->images * g->group * g->filters;
    p->channels = g->group * g->filters;
    p->filters = g->filters;
    if (p->planes == 0 || g->out_count == 0) return 1;
    const int64_t span0 = (p->kernel[0] - 1) * p->dilation[0] + 1,
                  span1 = (p->kernel[1] - 1) * p->dilation[1] + 1;
    const int64_t width = (p->out[1] - 1) * p->stride[1] + span1, most = BAND_FLOATS / width - span0;
    p->band = most <= 0 ? 1 : most / p->stride[0] + 1;
    if (p->band > p->out[0]) p->band = p->out[0];
    p->bands = ceil_div(p->out[0], p->band);
    p->band = ceil_div(p->out[0], p->bands); /* evenly */
    p->bands = ceil_div(p->out[0], p->band);
    p->rows = ceil_div((p->band - 1) * p->stride[0] + span0, p->stride[0]);
    p->pitch = ceil_div(width, p->stride[1]);
    p->phase = p->rows * p->pitch;
    /* input rows that a band reads, and more that its phases have */
    const double rows = (double)p->rows * (double)p->stride[0];
    const double floats =
        (double)p->phase * (double)(p->stride[0] * p->stride[1]) + (double)p->band * (double)p->pitch +
        (type == ORTC_F32 ? 0 : rows * (double)p->in[1] + (double)p->band * (double)p->out[1]);
    if (floats * 4 > SCRATCH_LIMIT) return 0;
    p->wide = p->phase * p->stride[0] * p->stride[1] + p->band * p->pitch;
    p->result = p->wide + (type == ORTC_F32 ? 0 : p->rows * p->stride[0] * p->in[1]);
    p->scratch = (size_t)(p->result + (type == ORTC_F32 ? 0 : p->band * p->out[1])) * sizeof(float);
    for (int64_t i = 0; i < p->kernel[0]; i++)
        for (int64_t j = 0; j < p->kernel[1]; j++) {
            const int64_t r = i * p->dilation[0], c = j * p->dilation[1];
            p->offset[i * p->kernel[1] + j] = (int32_t)((r % p->stride[0] * p->stride[1] + c % p->stride[1]) *
                                                            p->phase +
                                                        r / p->stride[0] * p->pitch + c / p->stride[1]);
        }
    const double flops = 2.0 * (double)g->kernel_count * (double)p->band * (double)p->out[1];
    p->grain = flops >= GRAIN_FLOPS ? 1 : (int64_t)(GRAIN_FLOPS / flops) + 1;
    return 1;
}

/* Phase (r, q) of the input of output rows from `row` on: rows r, r + stride, .. of these columns q, q +
 * stride, .. */
static void fill_phase(const ortc_dwconv_plan *p, const float *plane, int64_t row, int64_t r, int64_t q,
                       float *dst)
{
    const int64_t s = p->stride[1], shift = q - p->pad[1], top = row * p->stride[0] - p->pad[0] + r;
    /* Columns and rows of the phase that lie in the image. */
    int64_t lo = shift >= 0 ? 0 : ceil_div(-shift, s),
            hi = p->in[1] > shift ? ceil_div(p->in[1] - shift, s) : 0;
    int64_t first = top >= 0 ? 0 : ceil_div(-top, p->stride[0]);
    int64_t end = p->in[0] > top ? ceil_div(p->in[0] - top, p->stride[0]) : 0;
    hi = hi > p->pitch ? p->pitch : hi, end = end > p->rows ? p->rows : end;
    if (lo >= hi || first >= end) {
        memset(dst, 0, (size_t)p->phase * sizeof *dst);
        return;
    }
    memset(dst, 0, (size_t)(first * p->pitch) * sizeof *dst);
    p->columns->run((size_t)(end - first), dst + first * p->pitch, (size_t)p->pitch,
                    plane + (top + first * p->stride[0]) * p->in[1] + lo * s + shift,
                    (size_t)(p->stride[0] * p->in[1]), (size_t)s, (size_t)lo, (size_t)(hi - lo),
                    (size_t)(p->pitch - hi));
    memset(dst + end * p->pitch, 0, (size_t)((p->rows - end) * p->pitch) * sizeof *dst);
}

/* All phases. Rows and columns beyond what taps read are filled too: they are few. */
static void fill(const ortc_dwconv_plan *p, const float *plane, int64_t row, float *dst)
{
    for (int64_t r = 0; r < p->stride[0]; r++)
        for (int64_t q = 0; q < p->stride[1]; q++)
            fill_phase(p, plane, row, r, q, dst + (r * p->stride[1] + q) * p->phase);
}

/* The plane that `fill` may read: as it lies, or the rows that it will read in f32, its first row so placed
 * that the plane would begin where the result points. */
static const float *input(const ortc_dwconv_plan *p, const void *x, int64_t plane, int64_t row, float *space)
{
    const int64_t at = plane * p->in[0] * p->in[1], top = row * p->stride[0] - p->pad[0];
    if (p->type == ORTC_F32) return (const float *)x + at;
    const int64_t first = top > 0 ? (top < p->in[0] ? top : p->in[0]) : 0;
    int64_t end = top + p->rows * p->stride[0];
    end = end > p->in[0] ? p->in[0] : end;
    if (end > first) ortc_plane_floats(p->type, x, at + first * p->in[1], (end - first) * p->in[1], space);
    return space - first * p->in[1];
}

static void body(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const ortc_dwconv_plan *p = j->p;
    const ortc_tail_spec *t = j->end.tail;
    float *phases = scratch, *sums = phases + p->phase * p->stride[0] * p->stride[1];
    float *wide = phases + p->wide, *result = phases + p->result;
    const int64_t taps = p->kernel[0] * p->kernel[1];
    const int late = j->end.residual || t->alpha != 1; /* then the tail is not the micro-kernel's */
    for (int64_t i = begin; i < end; i++) {
        const int64_t plane = i / p->bands, row = i % p->bands * p->band, m = plane % p->channels;
        const int64_t rows = p->out[0] - row < p->band ? p->out[0] - row : p->band;
        const int64_t n = (rows - 1) * p->pitch + p->out[1], at = (plane * p->out[0] + row) * p->out[1];
        float bias = 0, taps_wide[ORTC_DWCONV_TAPS];
        float *y = p->type == ORTC_F32 ? (float *)j->end.y + at : result;
        if (j->end.bias) bias = ortc_uk_load_f32(ortc_plane_floats(p->type, j->end.bias, m, 1, &bias));
        fill(p, input(p, j->x, plane / p->filters, row, wide), row, phases);
        p->uk->run((size_t)n, (size_t)taps, phases, p->offset,
                   ortc_plane_floats(p->type, j->w, m * taps, taps, taps_wide), late ? 0 : bias,
                   late ? ORTC_UK_ACT_NONE : t->act, t->lo, t->hi, sums);
        p->columns->run((size_t)rows, y, (size_t)p->out[1], sums, (size_t)p->pitch, 1, 0, (size_t)p->out[1],
                        0);
        const int64_t count = rows * p->out[1];
        if (late) ortc_plane_tail(&j->end, m, at, count, y, sums); /* what was there is no longer needed */
        ortc_plane_store(&j->end, m, at, count, y);
    }
}

ortc_status ortc_dwconv_run(const ortc_dwconv_plan *p, const ortc_tail_spec *tail, const void *x,
                            const void *w, const void *bias, const void *residual, ortc_call *call)
{
    job j = {p, {tail, call->in, p->type, bias, residual, call->out[0].data}, x, w};
    return ortc_parallel(call, p->planes * p->bands, p->grain, body, &j);
}
