/* kernels/index/cuda_gather.c: Gather on a GPU: any element type of whole bytes. */
#include <stdlib.h>

#include "kernels/common/cuda.h"

int ortc_cu_gather(void *out, const void *data, const void *indices, int wide, int64_t outer, int64_t n,
                   int64_t inner_bytes, int64_t axis, uint32_t *fault, void *queue);

typedef struct gather {
    int64_t axis;
} gather;

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    gather *g = calloc(1, sizeof *g);
    (void)prep;
    if (!g) return ORTC_OUT_OF_MEMORY;
    g->axis = ortc_node_int(n, "axis", 0);
    *out = g;
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *data = &c->in[0], *indices = &c->in[1];
    int64_t axis = ((const gather *)state)->axis, outer = 1, inner = ortc_dtype_bits(data->dtype) / 8;
    (void)pstate;
    axis += axis < 0 ? data->rank : 0;
    for (int32_t i = 0; i < axis; i++) outer *= data->dims[i];
    for (int32_t i = (int32_t)axis + 1; i < data->rank; i++) inner *= data->dims[i];
    if (!data->dims[axis] && ortc_view_count(indices))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "indices into an axis without elements");
    return ortc_cuda_done(c, ortc_cu_gather(c->out[0].data, data->data, indices->data,
                                            indices->dtype == ORTC_I64, outer, ortc_view_count(indices),
                                            inner, data->dims[axis], c->fault, c->queue));
}

static const ortc_kernel kernel = {.size = sizeof kernel,
                                   .flags = ORTC_KERNEL_FAULTS,
                                   .name = "gather.cuda",
                                   .prepare = prepare,
                                   .run = run};

#define WHOLE_BYTES (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_C64) | ORTC_TYPE(ORTC_C128))
ORTC_KERNELS(cuda, gather,
             ORTC_KERNEL("Gather", 13, ORTC_NEWEST, (WHOLE_BYTES, ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64)),
                         &kernel));
