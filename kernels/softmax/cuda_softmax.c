/* kernels/softmax/cuda_softmax.c: Softmax and LogSoftmax on a GPU (softmax.cu). */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/cuda.h"
#include "kernels/common/shape.h"
#include "kernels/softmax/softmax_cuda.h"

typedef struct softmax {
    int64_t axis;
    int is_log;
} softmax;

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    softmax *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->axis = ortc_node_int(n, "axis", -1);
    s->is_log = !strcmp(ortc_node_op(n), "LogSoftmax");
    *out = s;
    return ORTC_OK;
}

static ortc_status plan(const void *state, ortc_plan *p, void **pstate)
{
    (void)state, (void)pstate;
    ortc_plan_in_place(p, 0, 0);
    ortc_plan_cost(p, 5.0 * (double)ortc_view_count(&p->in[0]),
                   2.0 * (double)ortc_view_count(&p->in[0]) * ortc_dtype_bits(p->in[0].dtype) / 8);
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const softmax *s = state;
    const ortc_view *x = &c->in[0];
    const int64_t count = ortc_view_count(x);
    int64_t length = 1, stride = 1;
    int32_t axis;
    (void)pstate;
    if (count == 0) return ORTC_OK;
    if (ortc_axis_of(s->axis, x->rank, &axis)) { /* a scalar is a row of one */
        length = x->dims[axis];
        for (int32_t d = axis + 1; d < x->rank; d++) stride *= x->dims[d];
    }
    return ortc_cuda_done(c, ortc_cu_softmax(x->dtype, s->is_log, c->out[0].data, x->data, count / length,
                                             length, stride, c->queue));
}

static const ortc_kernel kernel = {
    .size = sizeof kernel, .name = "softmax.cuda", .prepare = prepare, .plan = plan, .run = run};

#define FLOATS (ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_F16) | ORTC_TYPE(ORTC_BF16))
ORTC_KERNELS(cuda, softmax, ORTC_KERNEL("Softmax", 13, ORTC_NEWEST, (FLOATS), &kernel),
             ORTC_KERNEL("LogSoftmax", 13, ORTC_NEWEST, (FLOATS), &kernel));
