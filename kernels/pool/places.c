/* kernels/pool/places.c: MaxPool with the places of its maxima on the cpu provider, in f32. A row of
 * results goes over the rows and columns of its windows in order, all windows at once; what is larger
 * replaces what was found before, with its place in the channel.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/counts.h"
#include "kernels/common/vector/convert.h"
#include "kernels/common/window.h"
#include "kernels/pool/places.h"

ORTC_VEC_TABLE(ortc_pool_places)

typedef struct places_state {
    ortc_window window;
    bool column_major;
} places_state;

typedef struct places_plan {
    int32_t spatial;
    int64_t channels, in_count, rows, windows; /* rows: of results in a channel; of a window */
    int64_t in[ORTC_SPATIAL_LIMIT], out[ORTC_SPATIAL_LIMIT], pad[ORTC_SPATIAL_LIMIT];
    int64_t step[ORTC_SPATIAL_LIMIT]; /* of a place, as it is told */
} places_plan;

typedef struct places_job {
    const ortc_window *w;
    const places_plan *p;
    const ortc_pool_places *body;
    const ortc_convert *convert;
    const char *x;
    char *y;
    int64_t *places;
    int type; /* ORTC_FLOAT_* */
} places_job;

static int64_t scratch_floats(const places_plan *p)
{
    const int32_t last = p->spatial - 1;
    return 2 * p->out[last] + p->in[last];
}

/* A row of the input, its first element's place, under a row of results' windows. */
static void find_in_row(const places_job *j, const float *x, int64_t first, float *best, int32_t *place)
{
    const int32_t last = j->p->spatial - 1;
    const int64_t stride = j->w->stride[last], step = j->p->step[last];
    for (int64_t k = 0; k < j->w->kernel[last]; k++) {
        const int64_t beside = k * j->w->dilation[last] - j->p->pad[last], /* of the first window */
            room = j->p->in[last] - 1 - beside;
        const int64_t from = beside < 0 ? ceil_div(-beside, stride) : 0,
                      to = room < 0 ? 0 : min64(j->p->out[last], room / stride + 1);
        const int64_t at = from * stride + beside;
        if (to > from)
            j->body->find((size_t)(to - from), x + at, (size_t)stride, (int32_t)(first + at * step),
                          (int32_t)(stride * step), best + from, place + from);
    }
}

static void chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const places_job *j = arg;
    const places_plan *p = j->p;
    const int32_t last = p->spatial - 1;
    const int64_t out = p->out[last], width = p->in[last], size = j->type == ORTC_FLOAT_F32 ? 4 : 2;
    float *best = scratch, *wide = best + out;
    int32_t *place = (int32_t *)(void *)(wide + width);
    for (int64_t row = begin; row < end; row++) {
        const int64_t channel = row / p->rows;
        for (int64_t i = 0; i < out; i++) best[i] = -INFINITY, place[i] = -1;
        for (int64_t q = 0; q < p->windows; q++) {
            int64_t k = q, o = row % p->rows, at = 0, first = 0, lines = 1;
            bool inside = true;
            for (int32_t i = last - 1; i >= 0; i--) {
                const int64_t here = o % p->out[i] * j->w->stride[i] - p->pad[i] +
                                     k % j->w->kernel[i] * j->w->dilation[i];
                inside &= here >= 0 && here < p->in[i];
                at += here * lines, first += here * p->step[i];
                o /= p->out[i], k /= j->w->kernel[i], lines *= p->in[i];
            }
            if (!inside) continue;
            const char *x = j->x + (channel * p->in_count + at * width) * size;
            if (size == 2) j->convert->widen[j->type]((size_t)width, x, wide);
            find_in_row(j, size == 2 ? wide : (const float *)(const void *)x, first, best, place);
        }
        if (j->y) j->convert->narrow[j->type]((size_t)out, best, j->y + row * out * size);
        if (j->places) j->body->store((size_t)out, place, channel * p->in_count, j->places + row * out);
    }
}

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const ortc_port x = ortc_node_in(n, 0);
    (void)device;
    if (ortc_node_n_out(n) < 2 || !ortc_node_out(n, 1).type) return ortc_no(why, "no places are wanted");
    if (x.rank >= 0 && x.rank < 3) return ortc_no(why, "there is no spatial dim");
    size_t count;
    for (int list = 0; list < 4; list++) {
        static const char *const lists[] = {"kernel_shape", "dilations", "pads", "strides"};
        const int64_t *v = ortc_node_ints(n, lists[list], &count);
        for (size_t i = 0; i < count; i++)
            if (v[i] > 4096) return ortc_no(why, "%s of more than 4096 are not done here", lists[list]);
    }
    return ORTC_OK;
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *attribute, *wrong;
    places_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->column_major = ortc_node_int(n, "storage_order", 0) != 0;
    wrong = ortc_window_read(n, -1, &s->window, &attribute);
    if (wrong) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute %s %s", attribute, wrong);
    }
    *out = s;
    return ORTC_OK;
}

static void read_shapes(const places_state *s, const ortc_view *x, const ortc_view *y, places_plan *p)
{
    *p = (places_plan){
        .spatial = x->rank - 2, .channels = x->dims[0] * x->dims[1], .in_count = 1, .rows = 1, .windows = 1};
    for (int32_t i = 0; i < p->spatial; i++) {
        p->in[i] = x->dims[i + 2], p->out[i] = y->dims[i + 2];
        p->pad[i] = ortc_window_pad(&s->window, i, p->in[i], p->out[i]);
        p->step[i] = p->in_count; /* in column-major order */
        p->in_count *= p->in[i];
        if (i < p->spatial - 1) p->rows *= p->out[i], p->windows *= s->window.kernel[i];
    }
    for (int32_t i = p->spatial - 1, step = 1; i >= 0 && !s->column_major; i--)
        p->step[i] = step, step *= (int32_t)p->in[i];
}

static const ortc_view *shape_of(const ortc_view *out) { return out[0].dtype ? &out[0] : &out[1]; }

static ortc_status choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const places_state *s = state;
    const ortc_view *x = &q->in[0], *y = shape_of(q->out);
    double taps = 1, channel = 1;
    for (int32_t i = 0; i < x->rank - 2; i++)
        taps *= (double)s->window.kernel[i], channel *= (double)x->dims[i + 2];
    if (channel >= 1 << 30) return ortc_no(why, "channels of so many elements are not done here");
    o->clocks = 0.125 * (double)ortc_view_count(x) + 0.5 * taps * (double)ortc_view_count(y);
    return ORTC_OK;
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    places_plan *g = calloc(1, sizeof *g);
    if (!g) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    *out = g;
    if (ortc_view_count(shape_of(p->out)) == 0) return ORTC_OK;
    read_shapes(state, &p->in[0], shape_of(p->out), g);
    ortc_plan_workspace(p, 0, (size_t)scratch_floats(g) * sizeof(float));
    ortc_plan_cost(p, (double)ortc_view_count(shape_of(p->out)),
                   (double)ortc_view_count(&p->in[0]) * ortc_dtype_bits(p->in[0].dtype) / 8);
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const places_plan *p = pstate;
    const ortc_view *shape = shape_of(c->out);
    if (ortc_view_count(shape) == 0) return ORTC_OK;
    places_job j = {&((const places_state *)state)->window,
                    p,
                    ortc_pool_places_select(),
                    ortc_convert_get(),
                    c->in[0].data,
                    c->out[0].dtype ? c->out[0].data : NULL,
                    c->out[1].dtype ? c->out[1].data : NULL,
                    ortc_float_index(c->in[0].dtype)};
    const int32_t last = p->spatial - 1;
    return ortc_parallel(c, p->channels * p->rows,
                         ortc_rows_grain(p->windows * j.w->kernel[last] * (p->out[last] + 16)), chunk, &j);
}

const ortc_kernel ortc_cpu_pool_places = {.size = ORTC_SIZED(ortc_kernel),
                                          .name = "pool.places",
                                          .supports = supports,
                                          .prepare = prepare,
                                          .plan = plan,
                                          .run = run,
                                          .choose = choose};
