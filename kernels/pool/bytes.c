/* kernels/pool/bytes.c: MaxPool of integers of 8 bits on the cpu: for a row of results the rows of X under
 * its windows are folded into one line, whose padding is the lowest number, and each result folds its places
 * of the line. Indices are ref's.
 */
#include "kernels/pool/bytes.h"

#include <stdlib.h>

#include "kernels/common/window.h"

ORTC_VEC_TABLE(ortc_pool_bytes)

enum { MOST = 4096, TASK = 32768 };

typedef struct bytes_plan {
    ortc_window window;
    int32_t spatial;
    int64_t planes, in_count, rows, taps; /* rows of results in a plane; rows of X under one */
    int64_t in[ORTC_SPATIAL_LIMIT], out[ORTC_SPATIAL_LIMIT], pad[ORTC_SPATIAL_LIMIT];
    int64_t line;
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

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const bytes_plan *p = pstate;
    job j = {ortc_pool_bytes_select(), p, c->in[0].data, c->out[0].data, c->in[0].dtype == ORTC_I8};
    (void)state;
    if (p->planes == 0) return ORTC_OK;
    return ortc_parallel(c, p->planes * p->rows, 1 + TASK / (1 + p->line * (p->taps + 1)), chunk, &j);
}

const ortc_kernel ortc_cpu_pool_bytes = {.size = ORTC_SIZED(ortc_kernel),
                                         .name = "pool.bytes",
                                         .supports = supports,
                                         .prepare = prepare,
                                         .plan = plan,
                                         .run = run};
