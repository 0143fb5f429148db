/* kernels/attention/cuda_scatter.c: TensorScatter on a GPU: in place where nobody else reads the cache, so
 * that a decoder's step moves only what is new. Where to is read on the device: one captured graph serves
 * every step.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/cuda.h"
#include "kernels/common/shape.h"
#include "kernels/shape/cuda_strided.h"

int ortc_cu_tensor_scatter(void *cache, const void *update, const void *indices, int64_t samples,
                           int64_t per_sample, int64_t length, int64_t room, int64_t inner_bytes,
                           int circular, uint32_t *fault, void *queue);

typedef struct scatter {
    int64_t axis;
    int circular;
} scatter;

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    scatter *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->axis = ortc_node_int(n, "axis", -2);
    s->circular = !strcmp(ortc_node_string(n, "mode", "linear"), "circular");
    *out = s;
    return ORTC_OK;
}

static ortc_status plan(const void *state, ortc_plan *p, void **pstate)
{
    (void)state, (void)pstate;
    ortc_plan_may_reuse(p, 0, 0);
    ortc_plan_cost(p, 0, 2.0 * (double)ortc_view_count(&p->in[1]) * ortc_dtype_bits(p->in[1].dtype) / 8);
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const scatter *s = state;
    const ortc_view *cache = &c->in[0];
    const int64_t bytes = ortc_dtype_bits(cache->dtype) / 8;
    int64_t per_sample = 1, inner = bytes;
    int32_t axis;
    (void)pstate;
    if (!ortc_axis_of(s->axis, cache->rank, &axis))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "the axis is outside of the cache's rank");
    for (int32_t d = 1; d < cache->rank; d++)
        if (d != axis) *(d < axis ? &per_sample : &inner) *= cache->dims[d];
    if (c->out[0].data != cache->data && ortc_view_count(cache)) {
        const ortc_cu_move whole = {.to = c->out[0].data,
                                    .from = cache->data,
                                    .rank = 1,
                                    .bytes = 1,
                                    .dims = {ortc_view_count(cache) * bytes},
                                    .to_step = {1},
                                    .from_step = {1}};
        const int error = ortc_cu_move_run(&whole, c->queue);
        if (error) return ortc_cuda_done(c, error);
    }
    const void *indices = c->n_in > 2 && c->in[2].dtype ? c->in[2].data : NULL;
    return ortc_cuda_done(c, ortc_cu_tensor_scatter(c->out[0].data, c->in[1].data, indices, cache->dims[0],
                                                    per_sample, c->in[1].dims[axis], cache->dims[axis], inner,
                                                    s->circular, c->fault, c->queue));
}

static const ortc_kernel kernel = {.size = sizeof kernel,
                                   .flags = ORTC_KERNEL_STATE | ORTC_KERNEL_FAULTS,
                                   .name = "tensor_scatter.cuda",
                                   .prepare = prepare,
                                   .plan = plan,
                                   .run = run};

#define WHOLE_BYTES (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_C64) | ORTC_TYPE(ORTC_C128))
ORTC_KERNELS(cuda, scatter,
             ORTC_KERNEL("TensorScatter", 24, ORTC_NEWEST, (WHOLE_BYTES, ORTC_TYPE(ORTC_I64)), &kernel));
