/* kernels/order/cuda_order.c: ArgMax and ArgMin on a GPU (extreme.cu). */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/cuda.h"
#include "kernels/common/shape.h"

int ortc_cu_arg(int32_t dtype, int64_t *y, const void *x, int64_t rows, int64_t length, int64_t stride,
                int largest, int last, void *queue);

typedef struct arg {
    int64_t axis;
    int largest, last;
} arg;

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    arg *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->axis = ortc_node_int(n, "axis", 0);
    s->largest = !strcmp(ortc_node_op(n), "ArgMax");
    s->last = ortc_node_int(n, "select_last_index", 0) != 0;
    *out = s;
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const arg *s = state;
    const ortc_view *x = &c->in[0];
    const int64_t rows = ortc_view_count(&c->out[0]);
    int64_t stride = 1;
    int32_t axis;
    (void)pstate;
    if (!ortc_axis_of(s->axis, x->rank, &axis))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "the axis is outside of the input's rank");
    if (rows == 0) return ORTC_OK;
    if (x->dims[axis] == 0)
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "axis %d has no elements to choose from", axis);
    for (int32_t d = axis + 1; d < x->rank; d++) stride *= x->dims[d];
    return ortc_cuda_done(c, ortc_cu_arg(x->dtype, c->out[0].data, x->data, rows, x->dims[axis], stride,
                                         s->largest, s->last, c->queue));
}

static const ortc_kernel kernel = {.size = sizeof kernel, .name = "arg.cuda", .prepare = prepare, .run = run};

ORTC_KERNELS(cuda, order, ORTC_KERNEL("ArgMax", 13, ORTC_NEWEST, (ORTC_TYPES_NUM), &kernel),
             ORTC_KERNEL("ArgMin", 13, ORTC_NEWEST, (ORTC_TYPES_NUM), &kernel));
