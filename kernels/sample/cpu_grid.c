/* kernels/sample/cpu_grid.c: GridSample of f32 on the cpu provider, over one to three spatial dims. Where a
 * position reads and how much each pixel weighs is as on ref (grid.h), found once for all channels: a task is
 * a piece of the positions of an image, of which pixels and weights lie in scratch, those of a tap together.
 */
#include <stdlib.h>

#include "kernels/sample/grid.h"

enum { PIECE = 256 };

typedef struct grid_job {
    const ortc_grid_state *s;
    const ortc_view *x, *grid;
    float *y;
    int32_t spatial;
    int64_t taps;                        /* of all dims */
    int64_t out_count, in_count, pieces; /* positions of a channel; pieces of them */
} grid_job;

/* at and weight: [tap][PIECE]; a tap without a pixel has the first one and weight 0. */
static void read_grid(const grid_job *j, int64_t image, int64_t first, int64_t n, int64_t *at, float *weight)
{
    for (int64_t i = 0; i < n; i++) {
        const int64_t g0 = (image * j->out_count + first + i) * j->spatial;
        ortc_grid_taps t[3] = {{0}};
        for (int32_t d = j->spatial - 1; d >= 0; d--) /* coordinates come last dim first */
            t[d] = ortc_grid_around(j->s,
                                    ortc_load_f64(j->grid->data, j->grid->dtype, g0 + j->spatial - 1 - d),
                                    j->x->dims[d + 2]);
        for (int64_t k = 0; k < j->taps; k++) {
            int64_t rest = k, place = 0, step = 1;
            double w = 1;
            for (int32_t d = j->spatial - 1; d >= 0; d--) {
                const int64_t tap = rest % t[d].n;
                rest /= t[d].n;
                if (t[d].at[tap] < 0 || t[d].weight[tap] == 0) w = 0;
                w *= t[d].weight[tap];
                place += t[d].at[tap] * step;
                step *= j->x->dims[d + 2];
            }
            at[k * PIECE + i] = w == 0 ? 0 : place;
            weight[k * PIECE + i] = (float)w;
        }
    }
}

/* With weight 0 it adds nothing, whatever the pixel is. */
static inline float tap(const float *x, const int64_t *at, const float *weight, int64_t k)
{
    const float v = weight[k] * x[at[k]];
    return weight[k] != 0 ? v : 0;
}

static void grid_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const grid_job *j = arg;
    const int64_t channels = j->x->dims[1];
    int64_t *at = scratch;
    float *weight = (float *)(void *)(at + j->taps * PIECE);
    for (int64_t task = begin; task < end; task++) {
        const int64_t image = task / j->pieces, first = task % j->pieces * PIECE;
        const int64_t n = j->out_count - first < PIECE ? j->out_count - first : PIECE;
        read_grid(j, image, first, n, at, weight);
        for (int64_t c = 0; c < channels; c++) {
            const float *x = (const float *)j->x->data + (image * channels + c) * j->in_count;
            float *y = j->y + (image * channels + c) * j->out_count + first;
            if (j->taps == 4) { /* of most networks */
                for (int64_t i = 0; i < n; i++) {
                    const float above = tap(x, at, weight, i) + tap(x, at, weight, PIECE + i);
                    y[i] = above + (tap(x, at, weight, 2 * PIECE + i) + tap(x, at, weight, 3 * PIECE + i));
                }
                continue;
            }
            for (int64_t i = 0; i < n; i++) y[i] = 0;
            for (int64_t k = 0; k < j->taps; k++)
                for (int64_t i = 0; i < n; i++) y[i] += tap(x, at, weight, k * PIECE + i);
        }
    }
}

static ortc_status grid_supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const int32_t rank = ortc_node_in(n, 0).rank;
    (void)device;
    return rank >= 3 && rank <= 5 ? ORTC_OK : ortc_no(why, "one to three spatial dims are done here");
}

static int64_t taps_of(const ortc_grid_state *s, int32_t spatial)
{
    int64_t taps = 1;
    for (int32_t d = 0; d < spatial; d++) taps *= ortc_grid_taps_of(s);
    return taps;
}

static ortc_status grid_plan(const void *state, ortc_plan *p, void **pstate)
{
    const int64_t taps = taps_of(state, p->in[0].rank - 2);
    (void)pstate;
    ortc_plan_workspace(p, 0, (size_t)taps * PIECE * (sizeof(int64_t) + sizeof(float)));
    ortc_plan_cost(p, (double)ortc_view_count(&p->out[0]) * 2 * (double)taps,
                   8.0 * (double)ortc_view_count(&p->out[0]));
    return ORTC_OK;
}

static ortc_status grid_run(const void *state, const void *pstate, ortc_call *c)
{
    grid_job j = {.s = state,
                  .x = &c->in[0],
                  .grid = &c->in[1],
                  .y = c->out[0].data,
                  .spatial = c->in[0].rank - 2,
                  .out_count = 1,
                  .in_count = 1};
    (void)pstate;
    if (ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    for (int32_t d = 2; d < j.x->rank; d++) {
        j.out_count *= c->out[0].dims[d];
        j.in_count *= j.x->dims[d];
    }
    if (j.in_count == 0) return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "there is no pixel to sample");
    j.taps = taps_of(j.s, j.spatial);
    j.pieces = (j.out_count - 1) / PIECE + 1;
    const int64_t grain = 65536 / (PIECE * (j.taps * j.x->dims[1] + 100));
    return ortc_parallel(c, j.x->dims[0] * j.pieces, grain > 0 ? grain : 1, grid_chunk, &j);
}

static const ortc_kernel grid_cpu = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "grid_sample.cpu",
                                     .supports = grid_supports,
                                     .prepare = ortc_grid_prepare,
                                     .plan = grid_plan,
                                     .run = grid_run};

ORTC_KERNELS(cpu, sample,
             ORTC_KERNEL("GridSample", 22, ORTC_NEWEST, (ORTC_TYPE(ORTC_F32), ORTC_TYPES_FLOAT), &grid_cpu));
