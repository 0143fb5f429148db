/* The loops of blocked_depthwise.h. A task is some rows of a block; results that registers do not finish wait
 * in scratch, in L1. */
#include "blocked_depthwise.h"

#include <string.h>

#include "kernels/gemm/product_uk.h"

#define TASK_FLOATS 6144 /* of results: with what they read they stay in L1 */
#define GRAIN_MACS 0.1e6

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

int ortc_blocked_depthwise_plan_init(const ortc_conv_geometry *g, ortc_dtype type,
                                     ortc_blocked_depthwise_plan *p)
{
    memset(p, 0, sizeof *p);
    if (g->channels != 1 || g->filters != 1 || g->group == 1 || g->kernel_count > 4096 || g->images == 0 ||
        g->out_count == 0 || !ortc_conv_extents(g, &p->extents))
        return 0;
    p->uk = ortc_blocked_uk_get();
    p->type = ortc_float_index(type);
    p->images = g->images, p->channels = g->group, p->blocks = ceil_div(g->group, ORTC_BLOCK);
    p->in_count = g->in_count, p->out_count = g->out_count, p->taps = g->kernel_count;
    const int64_t *out = p->extents.out, row = out[2] * ORTC_BLOCK;
    if (row > 1 << 20) return 0;
    p->rows = TASK_FLOATS / row > 1 ? TASK_FLOATS / row : 1;
    p->row_tasks = ceil_div(out[1], p->rows);
    p->rows = ceil_div(out[1], p->row_tasks);
    p->row_tasks = ceil_div(out[1], p->rows);
    const double macs = (double)p->taps * (double)(p->rows * row);
    p->grain = macs >= GRAIN_MACS ? 1 : (int64_t)(GRAIN_MACS / macs) + 1;
    p->scratch = (size_t)p->taps * sizeof(ortc_window_tap) + (size_t)(p->rows * row) * sizeof(float);
    return 1;
}

size_t ortc_blocked_depthwise_weight_bytes(const ortc_conv_geometry *g)
{
    return (size_t)(ceil_div(g->group, ORTC_BLOCK) * ORTC_BLOCK * g->kernel_count) * sizeof(float);
}

void ortc_blocked_depthwise_weight_fill(const ortc_conv_geometry *g, ortc_dtype type, const void *w,
                                        float *dst)
{
    const ortc_convert *convert = ortc_convert_get();
    memset(dst, 0, ortc_blocked_depthwise_weight_bytes(g));
    for (int64_t c = 0; c < g->group; c++)
        for (int64_t t = 0; t < g->kernel_count; t++)
            convert->widen[ortc_float_index(type)](1, ortc_product_at(w, c * g->kernel_count + t, type),
                                                   dst +
                                                       ((c / ORTC_BLOCK * g->kernel_count) + t) * ORTC_BLOCK +
                                                       c % ORTC_BLOCK);
}

typedef struct job {
    const ortc_blocked_depthwise_plan *p;
    const ortc_blocked_args *a;
    ortc_blocked_end end;
} job;

/* A task at hand. */
typedef struct task {
    const job *j;
    const float *w, *bias;
    float *y;              /* of the task's first pixel */
    const float *residual; /* likewise, where registers add it */
    int64_t row;
} task;

static void one_run(void *arg, const ortc_window_run *r)
{
    const task *t = arg;
    const ortc_blocked_depthwise_plan *p = t->j->p;
    const int64_t at = ((r->o[1] - t->row) * p->extents.out[2] + r->o[2]) * ORTC_BLOCK;
    const ortc_blocked_taps taps = {.taps = (size_t)r->taps,
                                    .tap = r->tap,
                                    .w = t->w,
                                    .bias = t->bias,
                                    .y = t->y + at,
                                    .residual = t->residual ? t->residual + at : NULL,
                                    .y_step = (size_t)(r->y_step * ORTC_BLOCK),
                                    .clip = t->j->end.straight && t->j->a->tail->act == ORTC_UK_ACT_CLIP,
                                    .lo = t->j->a->tail->lo,
                                    .hi = t->j->a->tail->hi};
    p->uk->depthwise[p->type]((size_t)r->n, &taps);
}

/* Tasks are numbered [image][block][plane][row task]. */
static void body(void *arg, int64_t begin, int64_t end, void *scratch)
{
    static const float zeros[ORTC_BLOCK];
    const job *j = arg;
    const ortc_blocked_depthwise_plan *p = j->p;
    const int64_t *out = p->extents.out;
    const ptrdiff_t pixel = ORTC_BLOCK * (p->type == ORTC_FLOAT_F32 ? 4 : 2);
    ortc_window_tap *tap = scratch;
    float *sums = (float *)(void *)(tap + p->taps);
    for (int64_t i = begin; i < end; i++) {
        int64_t rest = i;
        const int64_t row = rest % p->row_tasks * p->rows,
                      rows = out[1] - row < p->rows ? out[1] - row : p->rows;
        rest /= p->row_tasks;
        const int64_t plane = rest % out[0], block = rest / out[0]; /* of all images */
        const int64_t at = (block * p->out_count + (plane * out[1] + row) * out[2]) * ORTC_BLOCK;
        const int64_t b = block % p->blocks;
        task t = {.j = j,
                  .w = (const float *)j->a->w + b * p->taps * ORTC_BLOCK,
                  .bias = j->a->bias + b * ORTC_BLOCK,
                  .y = sums,
                  .row = row};
        if (j->end.straight) {
            t.y = (float *)j->a->y + at;
            if (j->a->residual) t.residual = (const float *)j->a->residual + at;
        }
        ortc_window_runs(&p->extents, (const char *)j->a->x + block * p->in_count * pixel, pixel,
                         (const char *)zeros, plane, row, row + rows, tap, one_run, &t);
        ortc_blocked_finish(&j->end, t.y, rows * out[2], b * ORTC_BLOCK,
                            b + 1 < p->blocks ? ORTC_BLOCK : (p->channels - 1) % ORTC_BLOCK + 1, at);
    }
}

int32_t ortc_blocked_depthwise_run(const ortc_blocked_depthwise_plan *p, const ortc_blocked_args *a,
                                   const ortc_product_threads *threads)
{
    job j = {p, a, ortc_blocked_end_of(p->uk, p->type, a)};
    return threads->parallel(threads->context, p->images * p->blocks * p->extents.out[0] * p->row_tasks,
                             p->grain, body, &j);
}
