/* kernels/order/cpu.c: ArgMax and ArgMin of floats on the cpu provider, and Hardmax, which marks the places
 * that ArgMax finds: along the last axis by rows, along another one by lines, a tile of results beside each
 * other at a time. */
#include <stdlib.h>

#include "kernels/common/shape.h"
#include "kernels/common/vector/convert.h"
#include "kernels/order/arg.h"
#include "kernels/order/order.h"

ORTC_VEC_TABLE(ortc_arg)

enum { TILE = 512 };

typedef struct arg_state {
    int64_t axis;
    int largest, last;
} arg_state;

typedef struct arg_job {
    const arg_state *s;
    const ortc_arg *body;
    const ortc_convert *convert;
    const char *x;
    int64_t *y;
    ortc_view *hard; /* Hardmax: what the places are in */
    int type;        /* ORTC_FLOAT_* */
    int64_t length, inner, tiles;
} arg_job;

static const float *read(const arg_job *j, int64_t at, int64_t n, float *scratch)
{
    if (j->type == ORTC_FLOAT_F32) return (const float *)(const void *)j->x + at;
    j->convert->widen[j->type]((size_t)n, j->x + 2 * at, scratch);
    return scratch;
}

static void rows_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const arg_job *j = arg;
    for (int64_t i = begin; i < end; i++)
        j->y[i] = j->body->row((size_t)j->length, read(j, i * j->length, j->length, scratch), j->s->largest,
                               j->s->last);
}

static void lines_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const arg_job *j = arg;
    float best[TILE];
    int32_t index[TILE];
    for (int64_t task = begin; task < end; task++) {
        const int64_t at = task % j->tiles * TILE, outer = task / j->tiles,
                      n = j->inner - at < TILE ? j->inner - at : TILE;
        for (int64_t k = 0; k < j->length; k++)
            j->body->line((size_t)n, (int32_t)k, read(j, (outer * j->length + k) * j->inner + at, n, scratch),
                          j->s->largest, j->s->last, best, index);
        for (int64_t i = 0; i < n; i++) j->y[outer * j->inner + at + i] = index[i];
    }
}

static ortc_status arg_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    arg_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (arg_state){ortc_node_int(n, "axis", !strcmp(ortc_node_op(n), "Hardmax") ? -1 : 0),
                     strcmp(ortc_node_op(n), "ArgMin") != 0, ortc_node_int(n, "select_last_index", 0) != 0};
    *out = s;
    return ORTC_OK;
}

static bool arg_shape(const arg_state *s, const ortc_view *x, arg_job *j)
{
    int32_t axis;
    *j = (arg_job){.s = s, .length = 1, .inner = 1};
    if (x->rank > 0 && !ortc_axis_of(s->axis, x->rank, &axis)) return false;
    if (x->rank > 0) j->length = x->dims[axis];
    for (int32_t d = x->rank > 0 ? axis + 1 : 0; d < x->rank; d++) j->inner *= x->dims[d];
    j->tiles = (j->inner + TILE - 1) / TILE;
    return true;
}

/* Of what narrow floats become. */
static size_t row_bytes(const arg_job *j, ortc_dtype t)
{
    return t == ORTC_F32 ? 0 : (size_t)(j->inner > 1 ? TILE : j->length) * sizeof(float);
}

static ortc_status arg_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *x = &p->in[0];
    const double count = (double)ortc_view_count(x);
    arg_job j;
    (void)pstate;
    if (!arg_shape(state, x, &j))
        return ortc_plan_fail(p, ORTC_INVALID_ARGUMENT, "the axis is outside of the input's rank");
    if (j.inner > 1 && j.length > INT32_MAX)
        return ortc_plan_fail(p, ORTC_LIMIT, "%lld elements along the axis", (long long)j.length);
    if (count > 0 && x->dtype != ORTC_F32) ortc_plan_workspace(p, 0, row_bytes(&j, x->dtype));
    ortc_plan_cost(p, 2 * count, count * ortc_dtype_bits(x->dtype) / 8);
    return ORTC_OK;
}

/* The places of `count` results, of a job that has its shape. */
static ortc_status places(ortc_call *c, arg_job *j, int64_t count, int64_t *to)
{
    j->body = ortc_arg_select();
    j->convert = ortc_convert_get();
    j->x = c->in[0].data;
    j->y = to;
    j->type = ortc_float_index(c->in[0].dtype);
    if (j->inner == 1) return ortc_parallel(c, count, ortc_rows_grain(j->length), rows_chunk, j);
    const int64_t width = j->inner < TILE ? j->inner : TILE;
    return ortc_parallel(c, count / j->inner * j->tiles, ortc_rows_grain(j->length * width), lines_chunk, j);
}

static ortc_status arg_run(const void *state, const void *pstate, ortc_call *c)
{
    const int64_t count = ortc_view_count(&c->out[0]);
    arg_job j;
    (void)pstate;
    if (count == 0 || !arg_shape(state, &c->in[0], &j)) return ORTC_OK;
    return places(c, &j, count, c->out[0].data);
}

/* ---- Hardmax: one at each place, nought elsewhere ------------------------------------------------------ */

static ortc_status hardmax_plan(const void *state, ortc_plan *p, void **pstate)
{
    const int64_t count = ortc_view_count(&p->in[0]);
    arg_job j;
    ORTC_TRY(arg_plan(state, p, pstate));
    if (count > 0 && arg_shape(state, &p->in[0], &j))
        ortc_plan_workspace(p, (size_t)(count / j.length) * sizeof(int64_t), row_bytes(&j, p->in[0].dtype));
    return ORTC_OK;
}

static void hardmax_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const arg_job *j = arg;
    const size_t bytes = ortc_dtype_bits(j->hard->dtype) / 8;
    const int64_t all = j->length * j->inner;
    (void)scratch;
    memset((char *)j->hard->data + (size_t)(begin * all) * bytes, 0, (size_t)((end - begin) * all) * bytes);
    for (int64_t i = begin * j->inner; i < end * j->inner; i++)
        ortc_store_f64(j->hard->data, j->hard->dtype, i / j->inner * all + j->y[i] * j->inner + i % j->inner,
                       1);
}

static ortc_status hardmax_run(const void *state, const void *pstate, ortc_call *c)
{
    const int64_t count = ortc_view_count(&c->in[0]);
    arg_job j;
    (void)pstate;
    if (count == 0 || !arg_shape(state, &c->in[0], &j)) return ORTC_OK;
    j.hard = &c->out[0];
    ORTC_TRY(places(c, &j, count / j.length, c->workspace));
    const int64_t all = j.length * j.inner;
    return ortc_parallel(c, count / all, ortc_grain((double)all / 8), hardmax_chunk, &j);
}

static const ortc_kernel arg_cpu = {.size = ORTC_SIZED(ortc_kernel),
                                    .name = "arg.cpu",
                                    .prepare = arg_prepare,
                                    .plan = arg_plan,
                                    .run = arg_run};

static const ortc_kernel hardmax_cpu = {.size = ORTC_SIZED(ortc_kernel),
                                        .name = "hardmax.cpu",
                                        .prepare = arg_prepare,
                                        .plan = hardmax_plan,
                                        .run = hardmax_run};

ORTC_KERNELS(cpu, order, ORTC_KERNEL("Hardmax", 13, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &hardmax_cpu),
             ORTC_KERNEL("TopK", 24, ORTC_NEWEST, (ORTC_TYPES_NUM, ORTC_TYPE(ORTC_I64)), &ortc_cpu_topk),
             ORTC_KERNEL("ArgMax", 13, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &arg_cpu),
             ORTC_KERNEL("ArgMax", 13, ORTC_NEWEST, (ORTC_TYPE(ORTC_F64) | ORTC_TYPES_INT | ORTC_TYPES_UINT),
                         &ortc_cpu_arg_integers),
             ORTC_KERNEL("ArgMin", 13, ORTC_NEWEST, (ORTC_TYPES_INT | ORTC_TYPES_UINT),
                         &ortc_cpu_arg_integers),
             ORTC_KERNEL("ArgMin", 13, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &arg_cpu));
