/* kernels/quantize/cuda_quantize.c: DequantizeLinear on a GPU, of integers of 4 to 32 bits: y = (x - zero) *
 * scale, one scale for all, for each index along the axis, or for each block of indices (dequantize.cu).
 */
#include <stdlib.h>

#include "kernels/common/cuda.h"
#include "kernels/quantize/dequantize_cuda.h"
#include "kernels/quantize/quantize.h"

typedef struct linear {
    int64_t axis, block;
} linear;

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    linear *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->axis = ortc_node_int(n, "axis", 1);
    s->block = ortc_node_int(n, "block_size", 0);
    *out = s;
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const linear *s = state;
    const ortc_view *x = &c->in[0], *scale = &c->in[1],
                    *zero = c->n_in > 2 && c->in[2].dtype ? &c->in[2] : NULL;
    ortc_cu_dequantize d = {.y = c->out[0].data,
                            .x = x->data,
                            .scale = scale->data,
                            .zero = zero ? zero->data : NULL,
                            .count = ortc_view_count(x),
                            .x_dtype = x->dtype,
                            .scale_dtype = scale->dtype,
                            .y_dtype = c->out[0].dtype};
    (void)pstate;
    if (d.count == 0) return ORTC_OK;
    const ortc_granularity g = ortc_granularity_of(x, scale, s->axis, s->block);
    d.whole = g.whole;
    d.inner = g.inner;
    d.extent = g.extent;
    d.block = g.block;
    d.blocks = g.blocks;
    return ortc_cuda_done(c, ortc_cu_dequantize_run(&d, c->queue));
}

static const ortc_kernel kernel = {.size = sizeof kernel,
                                   .name = "dequantize.cuda",
                                   .prepare = prepare,
                                   .run = run};

#define SCALES (ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_F16) | ORTC_TYPE(ORTC_BF16))
#define INTEGERS \
    (ORTC_TYPE(ORTC_I8) | ORTC_TYPE(ORTC_U8) | ORTC_TYPE(ORTC_I16) | ORTC_TYPE(ORTC_U16) | \
     ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I4) | ORTC_TYPE(ORTC_U4))
ORTC_KERNELS(cuda, quantize,
             ORTC_KERNEL("DequantizeLinear", 28, ORTC_NEWEST, (INTEGERS, SCALES, SCALES), &kernel));
