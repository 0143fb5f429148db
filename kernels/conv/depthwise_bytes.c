/* Depthwise convolutions of bytes: bands of rows (depthwise_bytes.h). */
#include "depthwise_bytes.h"

#include <string.h>

#include "cpu.h"
#include "kernels/common/counts.h"
#include "kernels/common/element.h"

ORTC_VEC_TABLE(ortc_depthwise_bytes_body)

#define BAND 4096  /* sums of a task: they stay in L1 */
#define TASK 60000 /* multiplications handed out together */
/* Of several channels: products for a result, and filters of a group, for each of which they are read. */
enum { FEW_TERMS = ORTC_MIXED, FEW_FILTERS = ORTC_MIXED };

int ortc_depthwise_bytes_init(const ortc_conv_geometry *g, ortc_depthwise_bytes *d)
{
    memset(d, 0, sizeof *d);
    if (g->spatial < 1 || g->spatial > 2) return 0;
    if (g->channels != 1 && (g->channels * g->kernel_count > FEW_TERMS || g->filters > FEW_FILTERS)) return 0;
    d->ins = g->channels;
    for (int i = 0; i < 2; i++) { /* one dim is one row */
        const int own = i - (2 - g->spatial);
        d->in[i] = own < 0 ? 1 : g->in[own];
        d->out[i] = own < 0 ? 1 : g->out[own];
        d->kernel[i] = own < 0 ? 1 : g->kernel[own];
        d->stride[i] = own < 0 ? 1 : g->stride[own];
        d->dilation[i] = own < 0 ? 1 : g->dilation[own];
        d->pad[i] = own < 0 ? 0 : g->pad[own];
    }
    d->filters = g->filters;
    d->channels = g->group * g->filters;
    d->mixes = g->channels > 1 && ortc_conv_is_pointwise(g);
    if (d->mixes) {
        const int64_t most = BAND / d->filters / 64 * 64;
        d->planes = g->images * g->group;
        d->band = g->out_count < most ? g->out_count : most;
        d->bands = (g->out_count + d->band - 1) / d->band;
        d->grain = 1 + TASK / (1 + d->band * d->filters * g->channels);
        d->scratch = (size_t)(d->band * d->filters) * sizeof(int32_t);
        return 1;
    }
    d->planes = g->images * d->channels;
    d->band = d->out[1] >= BAND ? 1 : BAND / d->out[1];
    d->band = d->band < d->out[0] ? d->band : d->out[0];
    d->bands = (d->out[0] + d->band - 1) / d->band;
    d->grain = 1 + TASK / (1 + d->band * d->out[1] * g->kernel_count * g->channels);
    d->scratch = (size_t)(d->band * d->out[1]) * sizeof(int32_t);
    return 1;
}

typedef struct job {
    const ortc_depthwise_bytes *d;
    const ortc_int_tail *tail;
    const ortc_int_ends *ends;
    const ortc_call *call;
    const ortc_depthwise_bytes_body *body;
    int32_t x_zero, w_zero;
    const int32_t *w_zeros;
} job;

/* The outputs o, of n, with 0 <= o * stride + shift < extent: *first .. the result. */
static int64_t inside(int64_t n, int64_t stride, int64_t shift, int64_t extent, int64_t *first)
{
    *first = shift >= 0 ? 0 : min64((-shift + stride - 1) / stride, n);
    return extent > shift ? max64(min64((extent - shift + stride - 1) / stride, n), *first) : *first;
}

/* The k-th of a filter, less its zero point. */
static int32_t weight(const job *j, int64_t filter, int64_t k)
{
    const ortc_view *w = &j->call->in[1];
    const int64_t terms = j->d->ins * j->d->kernel[0] * j->d->kernel[1];
    return (int32_t)ortc_load_i64(w->data, w->dtype, filter * terms + k) -
           (j->w_zeros ? j->w_zeros[filter] : j->w_zero);
}

static void add_taps(const job *j, int64_t plane, int64_t row0, int64_t rows, int32_t *sums)
{
    const ortc_depthwise_bytes *d = j->d;
    const ortc_view *xv = &j->call->in[0];
    const int64_t channel = plane % d->channels, taps = d->kernel[0] * d->kernel[1],
                  area = d->in[0] * d->in[1];
    const uint8_t *of = (const uint8_t *)xv->data + plane / d->filters * d->ins * area;
    for (int64_t k = 0; k < d->ins * taps; k++) {
        const uint8_t *x = of + k / taps * area;
        const int64_t t = k % taps;
        const int32_t w = weight(j, channel, k);
        const int64_t down = t / d->kernel[1] * d->dilation[0] - d->pad[0],
                      along = t % d->kernel[1] * d->dilation[1] - d->pad[1];
        int64_t first;
        const int64_t end = inside(d->out[1], d->stride[1], along, d->in[1], &first);
        for (int64_t r = 0; r < rows && first < end; r++) {
            const int64_t from = (row0 + r) * d->stride[0] + down;
            if (from < 0 || from >= d->in[0]) continue;
            j->body->tap((size_t)(end - first), x + from * d->in[1] + first * d->stride[1] + along,
                         xv->dtype == ORTC_I8, (size_t)d->stride[1], j->x_zero, w,
                         sums + r * d->out[1] + first);
        }
    }
}

/* n neighbouring pixels of a channel, `element` the first one's place in y. */
static void end_along(const job *j, int64_t channel, int32_t *sums, int64_t n, int64_t element)
{
    const ortc_tail_place at = {.channel = channel, .channel_row = 1, .element = element, .col = 1};
    void *y = ortc_product_at(j->call->out[0].data, element, j->call->out[0].dtype);
    if (ortc_int_ends_has(j->ends, (size_t)channel))
        ortc_int_ends_along(j->ends, (size_t)channel, sums, (size_t)n, j->call->in, element, y);
    else
        ortc_int_tail_over(j->tail, j->call->in, &at, sums, (size_t)n, y, (size_t)n, 1, (size_t)n);
}

static void mixed(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const ortc_depthwise_bytes *d = j->d;
    const ortc_dtype type = j->call->out[0].dtype;
    const int64_t area = d->in[0] * d->in[1];
    const bool follows = j->tail->has_pass || j->tail->has_rest;
    for (int64_t task = begin; task < end; task++) {
        const int64_t plane = task / d->bands, first = task % d->bands * d->band,
                      count = min64(d->band, area - first), channel = plane * d->filters % d->channels,
                      element = plane * d->filters * area + first;
        int32_t w[ORTC_MIXED][ORTC_MIXED];
        for (int64_t f = 0; f < d->filters; f++)
            for (int64_t c = 0; c < d->ins; c++) w[f][c] = weight(j, channel + f, c);
        void *y = ortc_product_at(j->call->out[0].data, element, type);
        int32_t *sums = follows ? scratch : y;
        const size_t ld = (size_t)(follows ? count : area);
        j->body->mix((size_t)count, (size_t)d->ins, (size_t)d->filters,
                     (const uint8_t *)j->call->in[0].data + plane * d->ins * area + first, (size_t)area,
                     j->call->in[0].dtype == ORTC_I8, j->x_zero, w, sums, ld);
        for (int64_t f = 0; follows && f < d->filters; f++)
            end_along(j, channel + f, sums + f * count, count, element + f * area);
    }
}

static void bands(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const ortc_depthwise_bytes *d = j->d;
    const ortc_dtype type = j->call->out[0].dtype;
    for (int64_t task = begin; task < end; task++) {
        const int64_t plane = task / d->bands, row0 = task % d->bands * d->band,
                      rows = min64(d->band, d->out[0] - row0), count = rows * d->out[1];
        const int64_t element = plane * d->out[0] * d->out[1] + row0 * d->out[1];
        void *y = ortc_product_at(j->call->out[0].data, element, type);
        int32_t *sums = j->tail->has_pass || j->tail->has_rest ? scratch : y;
        memset(sums, 0, (size_t)count * sizeof *sums);
        add_taps(j, plane, row0, rows, sums);
        if (sums != y) end_along(j, plane % d->channels, sums, count, element);
    }
}

ortc_status ortc_depthwise_bytes_run(const ortc_depthwise_bytes *d, const ortc_int_tail *tail,
                                     const ortc_int_ends *ends, int32_t x_zero, int32_t w_zero,
                                     const int32_t *w_zeros, ortc_call *call)
{
    job j = {d, tail, ends, call, ortc_depthwise_bytes_body_select(), x_zero, w_zero, w_zeros};
    return ortc_parallel(call, d->planes * d->bands, d->grain, d->mixes ? mixed : bands, &j);
}
