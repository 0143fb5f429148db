/* kernels/softmax/cpu.c: Softmax and LogSoftmax on the cpu provider: rows along the last axis, some a task,
 * f32 where it lies, f16 and bf16 through a worker's scratch; along another axis a task is a tile of columns
 * beside each other, dense in the scratch, because lines that lie a power of two apart would push each other
 * out of the caches.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/shape.h"
#include "kernels/common/vector/convert.h"
#include "kernels/softmax/rows.h"

ORTC_VEC_TABLE(ortc_softmax_rows)

typedef struct softmax_state {
    int64_t axis;
    int log;
} softmax_state;

enum { MOST_COLUMNS = 256 };

typedef struct softmax_plan {
    const ortc_softmax_rows *body;
    const ortc_convert *convert;
    int64_t outer, length, inner;
    int64_t width, tiles; /* inner > 1: columns of a task, tasks for one of `outer` */
} softmax_plan;

typedef struct softmax_job {
    const softmax_plan *p;
    const char *x;
    char *y;
    int type, log; /* ORTC_FLOAT_* */
} softmax_job;

static void rows_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const softmax_job *j = arg;
    const softmax_plan *p = j->p;
    const size_t length = (size_t)p->length;
    if (j->type == ORTC_FLOAT_F32) {
        const size_t at = (size_t)begin * length * sizeof(float);
        p->body->rows((size_t)(end - begin), length, (const float *)(const void *)(j->x + at),
                      (float *)(void *)(j->y + at), j->log);
        return;
    }
    for (int64_t row = begin; row < end; row++) {
        const size_t at = (size_t)row * length * 2;
        p->convert->widen[j->type](length, j->x + at, scratch);
        p->body->rows(1, length, scratch, scratch, j->log);
        p->convert->narrow[j->type](length, scratch, j->y + at);
    }
}

static void columns_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const softmax_job *j = arg;
    const softmax_plan *p = j->p;
    const size_t length = (size_t)p->length, inner = (size_t)p->inner;
    const size_t bytes = j->type == ORTC_FLOAT_F32 ? 4 : 2;
    const bool f32 = j->type == ORTC_FLOAT_F32;
    float *tile = scratch;
    for (int64_t task = begin; task < end; task++) {
        const int64_t first = task % p->tiles * p->width, left = p->inner - first;
        const size_t width = (size_t)(left < p->width ? left : p->width);
        const size_t at = (size_t)(task / p->tiles * p->length * p->inner + first);
        const char *x = j->x + at * bytes;
        char *y = j->y + at * bytes;
        for (size_t k = 0; !f32 && k < length; k++)
            p->convert->widen[j->type](width, x + k * inner * bytes, tile + k * width);
        p->body->columns(length, width, f32 ? (const float *)(const void *)x : tile, f32 ? inner : width,
                         tile, f32 ? (float *)(void *)y : tile, f32 ? inner : width, j->log);
        for (size_t k = 0; !f32 && k < length; k++)
            p->convert->narrow[j->type](width, tile + k * width, y + k * inner * bytes);
    }
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    softmax_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (softmax_state){ortc_node_int(n, "axis", -1), !strcmp(ortc_node_op(n), "LogSoftmax")};
    *out = s;
    return ORTC_OK;
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    const softmax_state *s = state;
    const ortc_view *x = &p->in[0];
    const int64_t count = ortc_view_count(x);
    softmax_plan *g = calloc(1, sizeof *g);
    int32_t axis;
    if (!g) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    *g = (softmax_plan){ortc_softmax_rows_select(), ortc_convert_get(), 0, 1, 1, 0, 0};
    *out = g;
    if (count == 0) return ORTC_OK;
    if (ortc_axis_of(s->axis, x->rank, &axis)) { /* a scalar is a row of one */
        g->length = x->dims[axis];
        for (int32_t d = axis + 1; d < x->rank; d++) g->inner *= x->dims[d];
    }
    g->outer = count / g->length / g->inner;
    g->width = 65536 / g->length; /* a tile of 256 KB, so that it stays in L2 */
    g->width = g->width > MOST_COLUMNS ? MOST_COLUMNS : g->width < 16 ? 16 : g->width;
    g->width = g->width < g->inner ? g->width : g->inner;
    g->tiles = (g->inner + g->width - 1) / g->width;
    if (x->dtype != ORTC_F32 || g->inner > 1)
        ortc_plan_workspace(p, 0, (size_t)(g->length * g->width) * sizeof(float));
    ortc_plan_in_place(p, 0, 0);
    ortc_plan_cost(p, 20.0 * (double)count, 2.0 * (double)ortc_bytes_of(ortc_dtype_bits(x->dtype), count));
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const softmax_state *s = state;
    const softmax_plan *p = pstate;
    softmax_job j = {p, c->in[0].data, c->out[0].data, ortc_float_index(c->in[0].dtype), s->log};
    if (p->outer == 0) return ORTC_OK;
    if (p->inner == 1) return ortc_parallel(c, p->outer, ortc_rows_grain(p->length), rows_chunk, &j);
    return ortc_parallel(c, p->outer * p->tiles, ortc_rows_grain(p->length * p->width), columns_chunk, &j);
}

static const ortc_kernel softmax = {
    .size = ORTC_SIZED(ortc_kernel), .name = "softmax.cpu", .prepare = prepare, .plan = plan, .run = run};

ORTC_KERNELS(cpu, softmax, ORTC_KERNEL("Softmax", 13, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &softmax),
             ORTC_KERNEL("LogSoftmax", 13, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &softmax));
