/* kernels/pool/bytes.c: MaxPool of integers of 8 bits on the cpu: for a row of results the rows of X under
 * its windows are folded into one line, whose padding is the lowest number, and each result folds its places
 * of the line. Indices are ref's.
 */
#include "kernels/pool/bytes.h"

#include <stdlib.h>

#include "kernels/common/blocks.h"
#include "kernels/common/layout.h"
#include "kernels/common/window.h"

ORTC_VEC_TABLE(ortc_pool_bytes)

enum { MOST = 4096, TASK = 32768 };

typedef struct bytes_plan {
    ortc_window window;
    int32_t spatial;
    int64_t planes, in_count, rows, taps; /* rows of results in a plane; rows of X under one */
    int64_t in[ORTC_SPATIAL_LIMIT], out[ORTC_SPATIAL_LIMIT], pad[ORTC_SPATIAL_LIMIT];
    int64_t line;
    int64_t channels; /* in blocks; 0: plain, and no: */
    ortc_window_extents extents;
} bytes_plan;

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    static const char *const lists[] = {"kernel_shape", "dilations", "pads", "strides"};
    const ortc_port x = ortc_node_in(n, 0);
    (void)device;
    if (ortc_node_n_out(n) > 1 && ortc_node_out(n, 1).type)
        return ortc_no(why, "the indices of a maximum are not done here");
    if (x.rank < 3) return ortc_no(why, "there is no spatial dim, or none is known");
    for (size_t l = 0; l < sizeof lists / sizeof *lists; l++) {
        size_t count;
        const int64_t *v = ortc_node_ints(n, lists[l], &count);
        for (size_t i = 0; i < count; i++)
            if (v[i] > MOST) return ortc_no(why, "%s of more than %d are not done here", lists[l], MOST);
    }
    return ORTC_OK;
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *attribute, *wrong;
    ortc_window *w = calloc(1, sizeof *w);
    if (!w) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    wrong = ortc_window_read(n, -1, w, &attribute);
    if (wrong) {
        free(w);
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute %s %s", attribute, wrong);
    }
    *out = w;
    return ORTC_OK;
}

/* Clocks: a row is folded and then read at every place along it, byte by byte; in blocks 16 at a time. */
static ortc_status choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const ortc_window *w = state;
    const ortc_view *x = &q->in[0];
    const int blocked = ortc_blocks_asked(q);
    double taps = 1;
    if (blocked < 0) return ortc_no(why, "plain or in blocks of %d channels", ORTC_BLOCK);
    for (int32_t i = 0; i < x->rank - 2; i++) taps *= (double)w->kernel[i];
    if (blocked && (x->rank > 5 || taps > MOST || !ortc_view_count(&q->out[0]) || !ortc_view_count(x)))
        return ortc_no(why, "more than three spatial dims, too large a window, or no elements");
    o->clocks = (blocked ? 0.1 : 0.5) * taps * (double)ortc_view_count(&q->out[0]) +
                0.02 * (double)ortc_view_count(x);
    if (blocked) o->in[0] = o->out[0] = ortc_blocks();
    return ORTC_OK;
}

/* Extents as three, the missing ones 1. */
static void plan_blocks(const ortc_view *x, bytes_plan *g)
{
    ortc_window_extents *e = &g->extents;
    g->channels = x->dims[1];
    g->planes = x->dims[0] * ortc_blocks_of(g->channels);
    g->taps *= g->window.kernel[g->spatial - 1];
    for (int i = 0; i < 3; i++) {
        const int32_t d = g->spatial - 3 + i;
        e->in[i] = d < 0 ? 1 : g->in[d], e->out[i] = d < 0 ? 1 : g->out[d];
        e->kernel[i] = d < 0 ? 1 : g->window.kernel[d], e->stride[i] = d < 0 ? 1 : g->window.stride[d];
        e->dilation[i] = d < 0 ? 1 : g->window.dilation[d], e->pad[i] = d < 0 ? 0 : g->pad[d];
    }
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    const ortc_view *x = &p->in[0], *y = &p->out[0];
    bytes_plan *g = calloc(1, sizeof *g);
    if (!g) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    *out = g;
    if (ortc_view_count(y) == 0) return ORTC_OK;
    g->window = *(const ortc_window *)state;
    g->spatial = x->rank - 2;
    g->planes = x->dims[0] * x->dims[1];
    g->in_count = g->rows = g->taps = 1;
    const int32_t last = g->spatial - 1;
    for (int32_t i = 0; i < g->spatial; i++) {
        g->in[i] = x->dims[i + 2], g->out[i] = y->dims[i + 2];
        g->pad[i] = ortc_window_pad(&g->window, i, g->in[i], g->out[i]);
        g->in_count *= g->in[i];
        if (i == last) continue;
        g->rows *= g->out[i];
        g->taps *= g->window.kernel[i];
    }
    if (x->layout) {
        plan_blocks(x, g);
        ortc_plan_workspace(p, 0, (size_t)g->taps * sizeof(ortc_window_tap));
        return ORTC_OK;
    }
    const int64_t reach = (g->out[last] - 1) * g->window.stride[last] + ortc_window_span(&g->window, last),
                  have = g->pad[last] + g->in[last];
    g->line = reach > have ? reach : have;
    ortc_plan_workspace(p, 0, (size_t)g->line);
    ortc_plan_cost(p, (double)ortc_view_count(y), (double)(ortc_view_count(x) + ortc_view_count(y)));
    return ORTC_OK;
}

typedef struct job {
    const ortc_pool_bytes *body;
    const bytes_plan *p;
    const uint8_t *x;
    uint8_t *y;
    int is_signed;
} job;

/* Folds the rows under the windows of one row of results into the line. */
static void fold(const job *j, int64_t plane, int64_t row, uint8_t *line)
{
    const bytes_plan *p = j->p;
    const ortc_window *w = &p->window;
    const int32_t last = p->spatial - 1;
    int64_t o[ORTC_SPATIAL_LIMIT];
    for (int32_t i = last - 1; i >= 0; i--) {
        o[i] = row % p->out[i];
        row /= p->out[i];
    }
    for (int64_t tap = 0; tap < p->taps; tap++) {
        int64_t at = 0, step = p->in[last], rest = tap;
        int inside = 1;
        for (int32_t i = last - 1; i >= 0; i--) {
            const int64_t place = o[i] * w->stride[i] - p->pad[i] + rest % w->kernel[i] * w->dilation[i];
            rest /= w->kernel[i];
            inside &= place >= 0 && place < p->in[i];
            at += place * step;
            step *= p->in[i];
        }
        if (inside)
            j->body->rows((size_t)p->in[last], j->x + plane * p->in_count + at, j->is_signed,
                          line + p->pad[last]);
    }
}

static void chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const bytes_plan *p = j->p;
    const int32_t last = p->spatial - 1;
    uint8_t *line = scratch;
    for (int64_t row = begin; row < end; row++) {
        memset(line, j->is_signed ? 0x80 : 0, (size_t)p->line);
        fold(j, row / p->rows, row % p->rows, line);
        j->body->across((size_t)p->out[last], (size_t)p->window.kernel[last],
                        (size_t)p->window.dilation[last], (size_t)p->window.stride[last], line, j->is_signed,
                        j->y + row * p->out[last]);
    }
}

typedef struct block {
    const job *j;
    uint8_t *y;
} block;

static void one_run(void *arg, const ortc_window_run *r)
{
    const block *b = arg;
    const int64_t *out = b->j->p->extents.out, at = (r->o[0] * out[1] + r->o[1]) * out[2] + r->o[2];
    b->j->body->blocks((size_t)r->n, (size_t)r->taps, r->tap, b->j->is_signed, b->y + at * ORTC_BLOCK,
                       (ptrdiff_t)(r->y_step * ORTC_BLOCK));
}

/* A plane of a block. */
static void block_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const bytes_plan *p = j->p;
    const ortc_window_extents *e = &p->extents;
    const int64_t count = e->out[0] * e->out[1] * e->out[2];
    char lowest[ORTC_BLOCK];
    memset(lowest, j->is_signed ? 0x80 : 0, sizeof lowest);
    for (int64_t i = begin; i < end; i++) {
        block b = {j, j->y + i / e->out[0] * count * ORTC_BLOCK};
        ortc_window_runs(e, (const char *)j->x + i / e->out[0] * p->in_count * ORTC_BLOCK, ORTC_BLOCK, lowest,
                         i % e->out[0], 0, e->out[1], scratch, one_run, &b);
    }
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const bytes_plan *p = pstate;
    job j = {ortc_pool_bytes_select(), p, c->in[0].data, c->out[0].data, c->in[0].dtype == ORTC_I8};
    (void)state;
    if (p->planes == 0) return ORTC_OK;
    if (p->channels) {
        const int64_t tasks = p->planes * p->extents.out[0];
        const ortc_status status =
            ortc_parallel(c, tasks, 1 + TASK / (1 + p->taps * p->extents.out[1] * p->extents.out[2]),
                          block_chunk, &j);
        ortc_layout_zero_rest(&c->out[0]);
        return status;
    }
    return ortc_parallel(c, p->planes * p->rows, 1 + TASK / (1 + p->line * (p->taps + 1)), chunk, &j);
}

const ortc_kernel ortc_cpu_pool_bytes = {.size = ORTC_SIZED(ortc_kernel),
                                         .flags = ORTC_KERNEL_LAYOUTS,
                                         .name = "pool.bytes",
                                         .supports = supports,
                                         .prepare = prepare,
                                         .plan = plan,
                                         .run = run,
                                         .choose = choose};
