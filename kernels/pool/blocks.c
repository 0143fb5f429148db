/* The loops of blocks.h: a task is some rows of a block, of a global pool all of one. */
#include "kernels/pool/blocks.h"

#include <math.h>
#include <string.h>

#include "kernels/common/vector/convert.h"

ORTC_VEC_TABLE(ortc_pool_blocks_uk)

enum { PIECE = 512 }; /* pixels of a sum in f32 */
enum { LINE = 64 };   /* bytes, of a cache */

void ortc_pool_blocks_init(ortc_pool_blocks *p)
{
    const ortc_window_extents *e = &p->extents;
    p->uk = ortc_pool_blocks_uk_select();
    p->blocks = (p->channels + ORTC_BLOCK - 1) / ORTC_BLOCK;
    p->in_count = e->in[0] * e->in[1] * e->in[2];
    p->out_count = p->global ? 1 : e->out[0] * e->out[1] * e->out[2];
    if (p->global) {
        p->row_tasks = 1;
        p->grain = ortc_rows_grain(p->in_count * ORTC_BLOCK);
        return;
    }
    const int64_t taps = e->kernel[0] * e->kernel[1] * e->kernel[2], row = taps * e->out[2] * ORTC_BLOCK;
    p->rows = ortc_rows_grain(row) < e->out[1] ? ortc_rows_grain(row) : e->out[1];
    p->row_tasks = (e->out[1] + p->rows - 1) / p->rows;
    p->grain = ortc_rows_grain(p->rows * row);
    p->scratch = (size_t)taps * sizeof(ortc_window_tap);
}

typedef struct job {
    const ortc_pool_blocks *p;
    const char *x;
    char *y;
    ptrdiff_t pixel; /* bytes */
} job;

typedef struct task {
    const job *j;
    const char *x; /* the block's */
    char *y;
    size_t lanes;
} task;

double ortc_pool_counted(const ortc_pool_blocks *p, const int64_t *o)
{
    const ortc_window_extents *e = &p->extents;
    double n = 1;
    for (int i = 0; i < 3; i++) {
        const int64_t step = e->dilation[i], first = o[i] * e->stride[i] - e->pad[i];
        const int64_t before = p->before || first >= 0 ? 0 : -first,
                      within = p->limit[i] > first ? p->limit[i] - first : 0; /* in places */
        const int64_t from = step == 1 ? before : (before + step - 1) / step,
                      to = step == 1 ? within : (within + step - 1) / step;
        const int64_t some = (to < e->kernel[i] ? to : e->kernel[i]) - from;
        n *= some > 0 ? (double)some : 0;
    }
    return n;
}

/* Asks for the rows that windows below these see, and these do not: a fold takes less time than their lines,
 * of which the hardware foresees few. */
static void ask(const task *t, const int64_t *o)
{
    const ortc_window_extents *e = &t->j->p->extents;
    const int64_t bytes = e->in[2] * t->j->pixel,
                  row = o[1] * e->stride[1] - e->pad[1] + (e->kernel[1] - 1) * e->dilation[1] + 1;
    for (int64_t d = 0; d < e->kernel[0]; d++) {
        const int64_t plane = o[0] * e->stride[0] - e->pad[0] + d * e->dilation[0];
        if (plane < 0 || plane >= e->in[0]) continue;
        const char *x = t->x + plane * e->in[1] * bytes;
        for (int64_t i = row < 0 ? 0 : row; i < row + e->stride[1] && i < e->in[1]; i++)
            for (int64_t at = 0; at < bytes; at += LINE) __builtin_prefetch(x + i * bytes + at);
    }
}

static void one_run(void *arg, const ortc_window_run *r)
{
    const task *t = arg;
    const ortc_pool_blocks *p = t->j->p;
    if (r->y_step == 1) ask(t, r->o);
    const int64_t *out = p->extents.out, at = (r->o[0] * out[1] + r->o[1]) * out[2] + r->o[2];
    const ortc_pool_window w = {.taps = (size_t)r->taps,
                                .tap = r->tap,
                                .count = p->fold == ORTC_POOL_MEAN ? (float)ortc_pool_counted(p, r->o) : 1,
                                .lanes = t->lanes,
                                .y = t->y + at * t->j->pixel,
                                .y_step = (size_t)(r->y_step * ORTC_BLOCK),
                                .between = p->between};
    (p->between ? p->uk->between : p->uk->window[p->fold][p->type])((size_t)r->n, &w);
}

static void global_block(const job *j, int64_t block, size_t lanes)
{
    const ortc_pool_blocks *p = j->p;
    const char *x = j->x + block * p->in_count * j->pixel;
    double r[ORTC_BLOCK];
    float y[ORTC_BLOCK], piece[ORTC_BLOCK];
    for (int c = 0; c < ORTC_BLOCK; c++) {
        r[c] = 0;
        piece[c] = -INFINITY;
    }
    for (int64_t at = 0; at < p->in_count; at += PIECE) {
        const int64_t n = p->in_count - at < PIECE ? p->in_count - at : PIECE;
        if (p->fold == ORTC_POOL_MEAN) memset(piece, 0, sizeof piece);
        p->uk->all[p->fold][p->type]((size_t)n, x + at * j->pixel, piece);
        for (int c = 0; c < ORTC_BLOCK; c++) r[c] += (double)piece[c];
    }
    for (size_t c = 0; c < ORTC_BLOCK; c++)
        y[c] = c >= lanes ? 0 : p->fold == ORTC_POOL_MEAN ? (float)(r[c] / (double)p->in_count) : piece[c];
    ortc_convert_get()->narrow[p->type](ORTC_BLOCK, y, j->y + block * j->pixel);
}

static void body(void *arg, int64_t begin, int64_t end, void *scratch)
{
    static const float zeros[ORTC_BLOCK];
    const job *j = arg;
    const ortc_pool_blocks *p = j->p;
    float lowest[ORTC_BLOCK];
    char fill[ORTC_BLOCK * sizeof(float)];
    for (int c = 0; c < ORTC_BLOCK; c++) lowest[c] = -INFINITY;
    if (p->between)
        memset(fill, p->between->x_zero, ORTC_BLOCK);
    else
        ortc_convert_get()->narrow[p->type](ORTC_BLOCK, p->fold == ORTC_POOL_MAX ? lowest : zeros, fill);
    for (int64_t i = begin; i < end; i++) {
        int64_t rest = i;
        const int64_t row = rest % p->row_tasks * p->rows;
        rest /= p->row_tasks;
        const int64_t planes = p->global ? 1 : p->extents.out[0], plane = rest % planes,
                      block = rest / planes;
        const size_t lanes = (size_t)(block % p->blocks + 1 < p->blocks ? ORTC_BLOCK
                                                                        : (p->channels - 1) % ORTC_BLOCK + 1);
        if (p->global) {
            global_block(j, block, lanes);
            continue;
        }
        const int64_t end_row = row + p->rows < p->extents.out[1] ? row + p->rows : p->extents.out[1];
        task t = {j, j->x + block * p->in_count * j->pixel, j->y + block * p->out_count * j->pixel, lanes};
        ortc_window_runs(&p->extents, t.x, j->pixel, fill, plane, row, end_row, scratch, one_run, &t);
    }
}

int32_t ortc_pool_blocks_run(const ortc_pool_blocks *p, const void *x, void *y,
                             int32_t (*parallel)(void *context, int64_t n, int64_t grain,
                                                 ortc_parallel_fn body, void *arg),
                             void *context)
{
    job j = {p, x, y, ORTC_BLOCK * (p->between ? 1 : p->type == ORTC_FLOAT_F32 ? 4 : 2)};
    return parallel(context, p->images * p->blocks * (p->global ? 1 : p->extents.out[0]) * p->row_tasks,
                    p->grain, body, &j);
}
