/* kernels/cumulative/cuda_cumulative.c: CumSum and CumProd on a GPU (scan.cu), where the axis is known when
 * the model is loaded: a captured graph could not follow one that changes.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/cuda.h"
#include "kernels/common/shape.h"

int ortc_cu_scan(int32_t dtype, void *y, const void *x, int64_t count, int64_t length, int64_t inner,
                 int product, int exclusive, int reverse, void *queue);

typedef struct cumulative {
    int64_t axis;
    int product, exclusive, reverse;
} cumulative;

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const ortc_port axis = ortc_node_in(n, 1);
    (void)device;
    for (int32_t d = 0; d < axis.rank; d++)
        if (axis.dims[d] != 1) return ortc_no(why, "axis is not one number");
    return axis.data ? ORTC_OK : ortc_no(why, "the axis must be a constant");
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const ortc_port axis = ortc_node_in(n, 1);
    cumulative *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->axis = ortc_load_i64(axis.data, axis.dtype, 0);
    s->product = !strcmp(ortc_node_op(n), "CumProd");
    s->exclusive = ortc_node_int(n, "exclusive", 0) != 0;
    s->reverse = ortc_node_int(n, "reverse", 0) != 0;
    *out = s;
    return ORTC_OK;
}

static ortc_status plan(const void *state, ortc_plan *p, void **pstate)
{
    (void)state, (void)pstate;
    ortc_plan_in_place(p, 0, 0);
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const cumulative *s = state;
    const ortc_view *x = &c->in[0];
    const int64_t count = ortc_view_count(x);
    int64_t inner = 1;
    int32_t axis;
    (void)pstate;
    if (!ortc_axis_of(s->axis, x->rank, &axis))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "axis is not one of the %d axes of the input",
                              x->rank);
    for (int32_t d = axis + 1; d < x->rank; d++) inner *= x->dims[d];
    return count ? ortc_cuda_done(c, ortc_cu_scan(x->dtype, c->out[0].data, x->data, count / x->dims[axis],
                                                  x->dims[axis], inner, s->product, s->exclusive, s->reverse,
                                                  c->queue))
                 : ORTC_OK;
}

static const ortc_kernel kernel = {.size = sizeof kernel,
                                   .name = "cumulative.cuda",
                                   .host_in = 2,
                                   .supports = supports,
                                   .prepare = prepare,
                                   .plan = plan,
                                   .run = run};

#define TYPES \
    (ORTC_TYPES_FLOAT | ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64) | ORTC_TYPE(ORTC_U32) | ORTC_TYPE(ORTC_U64))
#define INDEX (ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64))
ORTC_KERNELS(cuda, cumulative, ORTC_KERNEL("CumSum", 14, ORTC_NEWEST, (TYPES, INDEX), &kernel),
             ORTC_KERNEL("CumProd", 26, ORTC_NEWEST, (TYPES, INDEX), &kernel));
