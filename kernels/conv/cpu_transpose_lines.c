/* kernels/conv/cpu_transpose_lines.c: ConvTranspose of few channels and filters in a group (bilinear
 * filters of segmentation networks, for example) on the cpu provider, in f32 (f16 and bf16 are widened
 * line by line): a line of Y is what the lines of X add that reach it. Sums of the places between two
 * strides, which are as many convolutions of a line, lie beside each other and are put between each other
 * at the end. A task is some lines of Y.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/counts.h"
#include "kernels/common/vector/convert.h"
#include "kernels/common/vector/squares.h"
#include "kernels/conv/cpu.h"
#include "kernels/conv/cpu_transpose.h"
#include "kernels/conv/spread.h"

ORTC_VEC_TABLE(ortc_spread)
ORTC_VEC_TABLE(ortc_squares)

typedef struct lines_plan {
    ortc_transpose t; /* its kernel is W's */
    int32_t spatial;
    int64_t channels, filters;         /* of a group */
    int64_t all_channels, all_filters; /* of an image */
    int64_t in[ORTC_SPATIAL_LIMIT], out[ORTC_SPATIAL_LIMIT], pad[ORTC_SPATIAL_LIMIT];
    int64_t in_count, out_count, places; /* places: of the window */
    int64_t lines, rows;                 /* of Y in a filter; places of the window but for the last dim's */
    int64_t reach;                       /* sums beside each other */
} lines_plan;

static void read_shapes(const ortc_transpose *t, const ortc_view *x, const ortc_view *w, const ortc_view *y,
                        lines_plan *p)
{
    *p = (lines_plan){
        .t = *t, .spatial = x->rank - 2, .in_count = 1, .out_count = 1, .places = 1, .lines = 1, .rows = 1};
    p->channels = x->dims[1] / t->group, p->filters = w->dims[1];
    p->all_channels = x->dims[1], p->all_filters = y->dims[1];
    for (int32_t i = 0; i < p->spatial; i++) {
        p->t.window.kernel[i] = w->dims[i + 2];
        p->in[i] = x->dims[i + 2], p->out[i] = y->dims[i + 2];
        p->pad[i] = ortc_transpose_pad(&p->t, i, p->in[i], p->out[i]);
        p->in_count *= p->in[i], p->out_count *= p->out[i], p->places *= w->dims[i + 2];
        if (i < p->spatial - 1) p->lines *= p->out[i], p->rows *= w->dims[i + 2];
    }
    const int32_t last = p->spatial - 1;
    const ortc_window *window = &p->t.window;
    p->reach = p->in[last] + (window->kernel[last] - 1) * window->dilation[last] / window->stride[last];
}

typedef struct job {
    const lines_plan *p;
    const ortc_tail_spec *tail;
    const ortc_view *in;
    const char *x, *w, *bias;
    char *y;
    int type, result; /* ORTC_FLOAT_* */
    const ortc_convert *convert;
    const ortc_spread *body;
    const ortc_squares *squares;
} job;

/* Floats: sums, twice as they are put between each other, a line of X, of the window and of Y. */
static int64_t sums_of(const lines_plan *p) { return p->t.window.stride[p->spatial - 1] * p->reach; }
static int64_t scratch_floats(const lines_plan *p)
{
    const int32_t last = p->spatial - 1;
    return 3 * sums_of(p) + p->in[last] + p->t.window.kernel[last] + p->out[last];
}

static const char *at_type(const char *x, int64_t at, int type)
{
    return x + at * (type == ORTC_FLOAT_F32 ? 4 : 2);
}

/* `stride` rows of sums, each `reach` of them, put between each other; where. */
static float *between(const job *j, float *sums, float *line, float *more)
{
    const int64_t stride = j->p->t.window.stride[j->p->spatial - 1], n = j->p->reach;
    const size_t size = sizeof *line;
    if (stride == 1) return sums;
    if (stride <= ORTC_FEW_ROWS) {
        j->squares->join((char *)line, (const char *)sums, n * (int64_t)size, n, stride, size);
    } else if (stride % 2 == 0 && stride / 2 <= ORTC_FEW_ROWS) { /* pairs, which are larger elements */
        for (int64_t q = 0; q < stride; q += 2)
            j->squares->join((char *)(more + q * n), (const char *)(sums + q * n), n * (int64_t)size, n, 2,
                             size);
        j->squares->join((char *)line, (const char *)more, 2 * n * (int64_t)size, n, stride / 2, 2 * size);
    } else {
        for (int64_t q = 0; q < stride; q++)
            for (int64_t i = 0; i < n; i++) line[i * stride + q] = sums[q * n + i];
    }
    return line;
}

/* Numbers as f32. */
static const float *read(const job *j, const char *x, int64_t at, int64_t n, float *space)
{
    if (j->type == ORTC_FLOAT_F32) return (const float *)(const void *)x + at;
    j->convert->widen[j->type]((size_t)n, at_type(x, at, j->type), space);
    return space;
}

/* Adds what a line of X gives by the window's line of it. */
static void add_line(const job *j, const float *x, const float *w, float *sums)
{
    const ortc_window *window = &j->p->t.window;
    const int32_t last = j->p->spatial - 1;
    const int64_t stride = window->stride[last];
    int64_t place = 0, first = 0; /* of the window's numbers in turn */
    for (int64_t k = 0; k < window->kernel[last]; k++) {
        j->body->add_times((size_t)j->p->in[last], x, w[k], sums + place * j->p->reach + first);
        for (place += window->dilation[last]; place >= stride; place -= stride) first++;
    }
}

/* All lines of X that reach line o of a filter of Y. Extents are below 2^31: divisions of 32 bits are
 * quick. */
static void add_lines(const job *j, int64_t image, int64_t filter, int64_t line, float *sums, float *space)
{
    const lines_plan *p = j->p;
    const ortc_window *window = &p->t.window;
    const int32_t last = p->spatial - 1;
    const int64_t first = filter / p->filters * p->channels, kernel = window->kernel[last];
    for (int64_t q = 0; q < p->rows; q++) {
        int64_t at = 0, step = p->in[last];
        uint32_t rest = (uint32_t)q, o = (uint32_t)line;
        bool inside = true;
        for (int32_t i = last - 1; i >= 0 && inside; i--) {
            const uint32_t k = (uint32_t)window->kernel[i], n = (uint32_t)p->out[i],
                           stride = (uint32_t)window->stride[i];
            const int64_t from = o % n + p->pad[i] - rest % k * window->dilation[i];
            inside = from >= 0 && from <= INT32_MAX && (uint32_t)from % stride == 0 &&
                     (uint32_t)from / stride < p->in[i];
            at += (uint32_t)from / stride * step;
            step *= p->in[i], rest /= k, o /= n;
        }
        for (int64_t c = first; inside && c < first + p->channels; c++) {
            const float *x = read(j, j->x, (image * p->all_channels + c) * p->in_count + at, p->in[last],
                                  space);
            const int64_t row = (c * p->filters + filter % p->filters) * p->places + q * kernel;
            add_line(j, x, read(j, j->w, row, kernel, space + p->in[last]), sums);
        }
    }
}

static void chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const lines_plan *p = j->p;
    const int32_t last = p->spatial - 1;
    const int64_t n = sums_of(p), out = p->out[last], pad = p->pad[last];
    float *sums = scratch, *line = sums + n, *more = line + n, *space = more + n,
          *own = space + p->in[last] + p->t.window.kernel[last];
    const int64_t from = min64(max64(-pad, 0), out), to = max64(min64(out, n - pad), from);
    const bool ends = j->tail->has_rest || j->tail->act != ORTC_UK_ACT_NONE;
    for (int64_t i = begin; i < end; i++) {
        const int64_t filter = i / p->lines % p->all_filters, image = i / p->lines / p->all_filters;
        float bias = 0;
        if (j->bias) j->convert->widen[j->type](1, at_type(j->bias, filter, j->type), &bias);
        float *y = j->result == ORTC_FLOAT_F32 ? (float *)(void *)j->y + i * out : own;
        memset(sums, 0, (size_t)n * sizeof *sums);
        add_lines(j, image, filter, i % p->lines, sums, space);
        const float *put = between(j, sums, line, more);
        for (int64_t k = 0; k < from; k++) y[k] = bias;
        for (int64_t k = to; k < out; k++) y[k] = bias;
        j->body->add_one((size_t)(to - from), put + from + pad, bias, y + from);
        if (ends) ortc_conv_transpose_end(j->tail, j->in, y, out);
        if (y == own)
            j->convert->narrow[j->result]((size_t)out, own,
                                          (char *)(uintptr_t)at_type(j->y, i * out, j->result));
    }
}

/* ---- The kernel ---------------------------------------------------------------------------------------- */

#define MOST_SCRATCH (1 << 20) /* floats */
#define MOST_STEP 4096

/* Clocks, as they were measured: of a line, of each that may reach it, and of each number of the window. */
static ortc_status choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const ortc_conv_transpose_state *s = state;
    lines_plan p;
    if (ortc_view_count(&q->in[0]) == 0 || ortc_view_count(&q->out[0]) == 0 ||
        ortc_view_count(&q->in[1]) == 0)
        return ortc_no(why, "there is nothing to do");
    for (int32_t i = 0; i < q->in[0].rank - 2; i++)
        if (s->t.window.stride[i] > MOST_STEP || s->t.window.dilation[i] > MOST_STEP ||
            q->in[1].dims[i + 2] > MOST_STEP)
            return ortc_no(why, "strides, dilations and windows of more than %d are not done here",
                           MOST_STEP);
    read_shapes(&s->t, &q->in[0], &q->in[1], &q->out[0], &p);
    if (scratch_floats(&p) > MOST_SCRATCH || p.lines > INT32_MAX || p.rows > 4096)
        return ortc_no(why, "it is too large");
    double hits = 1; /* lines of a channel of X that reach one of Y */
    for (int32_t i = 0; i < p.spatial - 1; i++)
        hits *= (double)p.t.window.kernel[i] / (double)p.t.window.stride[i];
    const int32_t last = p.spatial - 1;
    const double lines = (double)q->out[0].dims[0] * (double)p.all_filters * (double)p.lines,
                 each = (double)p.channels * hits * (double)p.t.window.kernel[last];
    o->clocks = lines *
                (200 + 12 * (double)p.rows + each * (15 + (double)p.in[last] / 5) + (double)sums_of(&p));
    o->form = ORTC_TRANSPOSE_FORM | 2;
    return ORTC_OK;
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    lines_plan *l = malloc(sizeof *l);
    if (!l) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    read_shapes(&((const ortc_conv_transpose_state *)state)->t, &p->in[0], &p->in[1], &p->out[0], l);
    ortc_plan_workspace(p, 0, (size_t)scratch_floats(l) * sizeof(float));
    const double products = (double)ortc_view_count(&p->in[0]) * (double)(l->filters * l->places);
    ortc_plan_cost(p, 2 * products,
                   (double)ortc_bytes_of(ortc_dtype_bits(p->in[0].dtype), ortc_view_count(&p->out[0])));
    *out = l;
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_conv_transpose_state *s = state;
    const lines_plan *p = pstate;
    const job j = {.p = p,
                   .tail = &s->tail,
                   .in = c->in,
                   .x = c->in[0].data,
                   .w = c->in[1].data,
                   .bias = ortc_call_data(c, ortc_conv_bias_port(&s->tail)),
                   .y = c->out[0].data,
                   .type = ortc_float_index(c->in[0].dtype),
                   .result = ortc_float_index(c->out[0].dtype),
                   .convert = ortc_convert_get(),
                   .body = ortc_spread_select(),
                   .squares = ortc_squares_select()};
    const int64_t lines = c->out[0].dims[0] * p->all_filters * p->lines;
    return ortc_parallel(c, lines,
                         ortc_rows_grain(sums_of(p) + p->rows * p->channels * p->in[p->spatial - 1]), chunk,
                         (void *)(uintptr_t)&j);
}

const ortc_kernel ortc_conv_transpose_lines = {.size = ORTC_SIZED(ortc_kernel),
                                               .flags = ORTC_KERNEL_EPILOGUE,
                                               .name = "conv_transpose.lines",
                                               .supports = ortc_conv_transpose_supports,
                                               .prepare = ortc_conv_transpose_prepare_tail,
                                               .plan = plan,
                                               .run = run,
                                               .choose = choose};
