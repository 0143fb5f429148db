/* kernels/index/cuda_index.c: GatherElements and GatherND on a GPU: any element type of whole bytes, ranks up
 * to 8. Indices outside are clamped and reported through the fault word.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/cuda.h"
#include "kernels/common/shape.h"
#include "kernels/index/index_cuda.h"

typedef struct where {
    int64_t axis, batch;
} where;

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const ortc_port x = ortc_node_in(n, 0), at = ortc_node_in(n, 1);
    (void)device;
    if (x.rank < 0 || x.rank > ORTC_CU_INDEX_RANK || at.rank < 0 || at.rank > ORTC_CU_INDEX_RANK)
        return ortc_no(why, "ranks must be known and at most %d", ORTC_CU_INDEX_RANK);
    return ORTC_OK;
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    where *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->axis = ortc_node_int(n, "axis", 0);
    s->batch = ortc_node_int(n, "batch_dims", 0);
    *out = s;
    return ORTC_OK;
}

static ortc_status elements_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0], *at = &c->in[1];
    int64_t steps[ORTC_CU_INDEX_RANK];
    ortc_cu_pick p = {.y = c->out[0].data,
                      .x = x->data,
                      .indices = at->data,
                      .wide = at->dtype == ORTC_I64,
                      .count = ortc_view_count(at),
                      .rank = at->rank,
                      .fault = c->fault};
    int32_t axis;
    (void)pstate;
    if (!ortc_axis_of(((const where *)state)->axis, x->rank, &axis))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "the axis is outside of the data's rank");
    if (p.count == 0) return ORTC_OK;
    if (x->dims[axis] == 0)
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "indices into an axis without elements");
    ortc_dense_strides(x->rank, x->dims, steps);
    p.extent = x->dims[axis];
    p.stride = steps[axis];
    steps[axis] = 0;
    memcpy(p.dims, at->dims, (size_t)at->rank * sizeof *p.dims);
    memcpy(p.step, steps, (size_t)at->rank * sizeof *p.step);
    return ortc_cuda_done(c, ortc_cu_gather_elements(&p, ortc_dtype_bits(x->dtype) / 8, c->queue));
}

static ortc_status tuples_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *x = &c->in[0], *at = &c->in[1];
    const int64_t batch = ((const where *)state)->batch;
    ortc_cu_tuples t = {.y = c->out[0].data,
                        .x = x->data,
                        .indices = at->data,
                        .length = (int32_t)at->dims[at->rank - 1],
                        .each = 1,
                        .tuples = 1,
                        .rows = 1,
                        .slice_bytes = ortc_dtype_bits(x->dtype) / 8,
                        .fault = c->fault};
    (void)pstate;
    if (ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    for (int32_t d = 0; d + 1 < at->rank; d++) {
        t.tuples *= at->dims[d];
        t.each *= d < batch ? 1 : at->dims[d];
    }
    for (int32_t d = (int32_t)batch; d < x->rank; d++)
        *(d < batch + t.length ? &t.rows : &t.slice_bytes) *= x->dims[d];
    if (t.rows == 0) return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "indices into dims without elements");
    for (int32_t k = 0; k < t.length; k++) t.dims[k] = x->dims[batch + k];
    return ortc_cuda_done(c, ortc_cu_gather_nd(&t, c->queue));
}

#define KERNEL(symbol, title, how) \
    static const ortc_kernel symbol = {.size = sizeof(ortc_kernel), \
                                       .flags = ORTC_KERNEL_FAULTS, \
                                       .name = title, \
                                       .supports = supports, \
                                       .prepare = prepare, \
                                       .run = how}
KERNEL(elements_kernel, "gather_elements.cuda", elements_run);
KERNEL(tuples_kernel, "gather_nd.cuda", tuples_run);

#define PLAIN (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_C64) | ORTC_TYPE(ORTC_C128))
ORTC_KERNELS(cuda, index,
             ORTC_KERNEL("GatherElements", 13, ORTC_NEWEST,
                         (PLAIN, ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64)), &elements_kernel),
             ORTC_KERNEL("GatherND", 13, ORTC_NEWEST, (PLAIN), &tuples_kernel));
