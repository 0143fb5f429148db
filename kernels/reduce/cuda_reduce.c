/* kernels/reduce/cuda_reduce.c: reductions on a GPU (reduce.cu): the input's dims are sorted into kept and
 * reduced ones, neighbours of a kind that lie together become one.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/cuda.h"
#include "kernels/common/shape.h"
#include "kernels/reduce/reduce_cuda.h"

static const char *const names[] = {"ReduceSum", "ReduceMean", "ReduceMax",       "ReduceMin",   "ReduceProd",
                                    "ReduceL1",  "ReduceL2",   "ReduceSumSquare", "ReduceLogSum"};

typedef struct reduce {
    int what, noop;
} reduce;

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const ortc_port x = ortc_node_in(n, 0);
    const int is_float = ortc_class_of(x.dtype) == ORTC_CLASS_FLOAT;
    (void)device;
    if (x.rank < 0 || x.rank > ORTC_CU_REDUCE_RANK)
        return ortc_no(why, "the rank must be known and at most %d", ORTC_CU_REDUCE_RANK);
    if (!is_float && (!strcmp(ortc_node_op(n), "ReduceL2") || !strcmp(ortc_node_op(n), "ReduceLogSum")))
        return ortc_no(why, "of integers this is not done here");
    return ORTC_OK;
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    reduce *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->noop = ortc_node_int(n, "noop_with_empty_axes", 0) != 0;
    while (strcmp(names[s->what], ortc_node_op(n)) != 0) s->what++;
    *out = s;
    return ORTC_OK;
}

/* 0: an axis is outside. */
static int sort_dims(const reduce *s, const ortc_view *x, const ortc_view *axes, ortc_cu_reduce *r)
{
    const int64_t given = axes ? ortc_view_count(axes) : 0;
    bool drop[ORTC_CU_REDUCE_RANK] = {false};
    int64_t steps[ORTC_CU_REDUCE_RANK];
    int last = -1;
    memset(r, 0, sizeof *r);
    r->what = s->what;
    r->dtype = x->dtype;
    r->results = r->each = 1;
    for (int64_t i = 0; i < given; i++) {
        int32_t axis;
        if (!ortc_axis_of(ortc_load_i64(axes->data, ORTC_I64, i), x->rank, &axis)) return 0;
        drop[axis] = true;
    }
    ortc_dense_strides(x->rank, x->dims, steps);
    for (int32_t d = 0; d < x->rank; d++) {
        const int reduced = given ? drop[d] : !s->noop;
        int64_t *dims = reduced ? r->reduced : r->kept, *to = reduced ? r->reduced_step : r->kept_step;
        int32_t *n = reduced ? &r->n_reduced : &r->n_kept;
        *(reduced ? &r->each : &r->results) *= x->dims[d];
        if (x->dims[d] == 1) continue;
        if (last == reduced) { /* the one before is of the same kind: they lie together */
            dims[*n - 1] *= x->dims[d];
            to[*n - 1] = steps[d];
        } else {
            dims[*n] = x->dims[d];
            to[(*n)++] = steps[d];
        }
        last = reduced;
    }
    return 1;
}

static ortc_status plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *axes = p->n_in > 1 && p->in[1].dtype ? &p->in[1] : NULL;
    ortc_cu_reduce r;
    (void)pstate;
    int64_t results = ortc_view_count(&p->out[0]), all = ortc_view_count(&p->in[0]);
    if (axes && !axes->data && ortc_view_count(axes)) /* the axes come with the run: the shapes say enough */
        r.each = results ? all / results : 0;
    else if (!sort_dims(state, &p->in[0], axes, &r))
        return ortc_plan_fail(p, ORTC_INVALID_ARGUMENT, "an axis is outside of the input's rank");
    const int64_t splits = results ? ortc_cu_reduce_splits(results, r.each) : 1;
    if (splits > 1) ortc_plan_workspace(p, (size_t)(splits * results) * 8, 0);
    ortc_plan_cost(p, (double)all, (double)(all + results) * ortc_dtype_bits(p->in[0].dtype) / 8);
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *axes = c->n_in > 1 && c->in[1].dtype ? &c->in[1] : NULL;
    ortc_cu_reduce r;
    (void)pstate;
    if (ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    if (!sort_dims(state, &c->in[0], axes, &r))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "an axis is outside of the input's rank");
    r.y = c->out[0].data;
    r.x = c->in[0].data;
    r.partial = c->workspace;
    return ortc_cuda_done(c, ortc_cu_reduce_run(&r, c->queue));
}

static const ortc_kernel kernel = {.size = sizeof kernel,
                                   .name = "reduce.cuda",
                                   .host_in = 2,
                                   .supports = supports,
                                   .prepare = prepare,
                                   .plan = plan,
                                   .run = run};

#define WIDE \
    (ORTC_TYPES_FLOAT | ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64) | ORTC_TYPE(ORTC_U32) | ORTC_TYPE(ORTC_U64))
#define NARROW (ORTC_TYPE(ORTC_I8) | ORTC_TYPE(ORTC_U8) | ORTC_TYPE(ORTC_BOOL))
#define K(op, since, types) ORTC_KERNEL(op, since, ORTC_NEWEST, (types), &kernel)
ORTC_KERNELS(cuda, reduce, K("ReduceSum", 13, WIDE), K("ReduceMean", 18, WIDE),
             K("ReduceMax", 20, WIDE | NARROW), K("ReduceMin", 20, WIDE | NARROW), K("ReduceProd", 18, WIDE),
             K("ReduceL1", 18, WIDE), K("ReduceL2", 18, ORTC_TYPES_FLOAT), K("ReduceSumSquare", 18, WIDE),
             K("ReduceLogSum", 28, ORTC_TYPES_FLOAT));
