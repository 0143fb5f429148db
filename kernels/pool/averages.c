/* kernels/pool/averages.c: means of windows of 8 bits on the cpu, from bytes to bytes: a group of
 * DequantizeLinear, AveragePool and QuantizeLinear (graph/specialise/between_bytes.c). Sums are exact, as
 * those of means.c. In blocks of channels they are those of blocks.h; a plain image goes window by window.
 */
#include <stdlib.h>

#include "kernels/common/blocks.h"
#include "kernels/common/window.h"
#include "kernels/pool/bytes.h"

enum { MOST = 4096 }; /* places of a window */

typedef struct state {
    ortc_pool_group group;
    ortc_window window;
    bool include_pad;
} state;

/* Extents and counts are there for a plain image, too: one channel is a block of it. */
typedef struct averages_plan {
    ortc_pool_blocks blocks;
    int64_t planes; /* plain: of the batch; 0: in blocks */
} averages_plan;

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    ortc_pool_group g;
    size_t count;
    int64_t places = 1;
    (void)device;
    if (!ortc_pool_read_group(n, &g) || !ortc_is_plain(g.mean, "AveragePool"))
        return ortc_no(why, "it is no mean of windows of 8 bits");
    if (g.x.rank > 5) return ortc_no(why, "one to three spatial dims are done");
    const int64_t *kernel = ortc_node_ints(g.mean, "kernel_shape", &count);
    for (size_t i = 0; i < count; i++)
        if (kernel[i] > MOST || (places *= kernel[i]) > MOST)
            return ortc_no(why, "a window of more than %d places", MOST);
    return ORTC_OK;
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *attribute, *wrong;
    state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for the group");
    ortc_pool_read_group(n, &s->group);
    s->include_pad = ortc_node_int(s->group.mean, "count_include_pad", 0) != 0;
    wrong = ortc_window_read(s->group.mean, -1, &s->window, &attribute);
    if (wrong) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute %s %s", attribute, wrong);
    }
    *out = s;
    return ORTC_OK;
}

/* Clocks: of a result some, and of each place one for a vector of them. */
static ortc_status choose(const void *of, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const state *s = of;
    const ortc_view *x = &q->in[s->group.port], *y = &q->out[0];
    const int blocked = ortc_blocks_asked(q);
    double taps = 1;
    if (blocked < 0) return ortc_no(why, "plain or in blocks of %d channels", ORTC_BLOCK);
    if (blocked && (!ortc_view_count(x) || !ortc_view_count(y))) return ortc_no(why, "there are no elements");
    for (int32_t i = 0; i < x->rank - 2; i++) taps *= (double)s->window.kernel[i];
    o->clocks = (blocked ? 0.6 + 0.06 * taps : 10 + 2 * taps) * (double)ortc_view_count(y);
    if (blocked) o->in[s->group.port] = o->out[0] = ortc_blocks();
    return ORTC_OK;
}

static ortc_status plan(const void *of, ortc_plan *p, void **out)
{
    const state *s = of;
    const ortc_window *w = &s->window;
    const ortc_view *x = &p->in[s->group.port], *y = &p->out[0];
    averages_plan *g = calloc(1, sizeof *g);
    if (!g) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    *out = g;
    if (!ortc_view_count(y) || !ortc_view_count(x)) return ORTC_OK;
    ortc_pool_blocks *b = &g->blocks;
    ortc_window_extents *e = &b->extents;
    *b = (ortc_pool_blocks){.fold = ORTC_POOL_MEAN,
                            .between = &s->group.between,
                            .before = s->include_pad,
                            .images = x->dims[0],
                            .channels = x->dims[1]};
    for (int i = 0; i < 3; i++) {
        const int32_t d = x->rank - 5 + i; /* of the spatial dims */
        e->in[i] = e->out[i] = e->kernel[i] = e->stride[i] = e->dilation[i] = b->limit[i] = 1;
        if (d < 0) continue;
        e->in[i] = x->dims[d + 2], e->out[i] = y->dims[d + 2];
        e->kernel[i] = w->kernel[d], e->stride[i] = w->stride[d], e->dilation[i] = w->dilation[d];
        e->pad[i] = ortc_window_pad(w, d, e->in[i], e->out[i]);
        const bool same = w->auto_pad == ORTC_PAD_SAME_UPPER || w->auto_pad == ORTC_PAD_SAME_LOWER;
        b->limit[i] = !s->include_pad ? e->in[i] : same ? INT64_MAX / 2 : e->in[i] + w->pad_end[d];
    }
    ortc_pool_blocks_init(b);
    if (x->layout)
        ortc_plan_workspace(p, 0, b->scratch);
    else
        g->planes = x->dims[0] * x->dims[1];
    return ORTC_OK;
}

/* ---- A plain image ------------------------------------------------------------------------------------- */

typedef struct job {
    const ortc_pool_blocks *p;
    const uint8_t *x;
    uint8_t *y;
} job;

/* The sum of a window's numbers in one plane, in units of the scale. */
static int64_t sum_of(const ortc_pool_blocks *p, const uint8_t *x, const int64_t *o)
{
    const ortc_window_extents *e = &p->extents;
    const ortc_pool_between *b = p->between;
    int64_t sum = 0;
    for (int64_t k = 0; k < e->kernel[0] * e->kernel[1] * e->kernel[2]; k++) {
        int64_t rest = k, step = 1, at = 0;
        bool inside = true;
        for (int i = 2; i >= 0; rest /= e->kernel[i], step *= e->in[i], i--) {
            const int64_t place = o[i] * e->stride[i] - e->pad[i] + rest % e->kernel[i] * e->dilation[i];
            inside &= place >= 0 && place < e->in[i];
            at += place * step;
        }
        if (inside) sum += (b->x_signed ? (int8_t)x[at] : x[at]) - b->x_zero;
    }
    return sum;
}

static void plain_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const ortc_pool_blocks *p = j->p;
    const int64_t *out = p->extents.out;
    (void)scratch;
    for (int64_t i = begin; i < end; i++)
        for (int64_t k = 0; k < p->out_count; k++) {
            const int64_t o[3] = {k / out[2] / out[1], k / out[2] % out[1], k % out[2]};
            j->y[i * p->out_count + k] = ortc_pool_between_of(p->between,
                                                              sum_of(p, j->x + i * p->in_count, o),
                                                              ortc_pool_counted(p, o));
        }
}

static int32_t parallel(void *call, int64_t n, int64_t grain, ortc_parallel_fn body, void *arg)
{
    return ortc_parallel((ortc_call *)call, n, grain, body, arg);
}

static ortc_status run(const void *of, const void *pstate, ortc_call *c)
{
    const state *s = of;
    const averages_plan *p = pstate;
    job j = {&p->blocks, c->in[s->group.port].data, c->out[0].data};
    if (!p->blocks.images) return ORTC_OK;
    if (p->planes) return ortc_parallel(c, p->planes, 1 + 4096 / (1 + p->blocks.out_count), plain_chunk, &j);
    return ortc_pool_blocks_run(&p->blocks, j.x, j.y, parallel, c);
}

const ortc_kernel ortc_cpu_pool_averages = {.size = ORTC_SIZED(ortc_kernel),
                                            .flags = ORTC_KERNEL_LAYOUTS,
                                            .name = "pool.averages",
                                            .supports = supports,
                                            .prepare = prepare,
                                            .plan = plan,
                                            .run = run,
                                            .choose = choose};
