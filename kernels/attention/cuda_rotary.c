/* kernels/attention/cuda_rotary.c: RotaryEmbedding on a GPU, in place where it may be. */
#include <stdlib.h>

#include "kernels/attention/attention.h"
#include "kernels/common/cuda.h"

int ortc_cu_rotary(void *y, const void *x, const void *cosines, const void *sines, const void *ids, int type,
                   int interleaved, int packed, int64_t batch, int64_t heads, int64_t length, int64_t size,
                   int64_t half, int64_t positions, uint32_t *fault, void *queue);

typedef struct rotary_state {
    bool interleaved;
    int64_t heads, turned;
} rotary_state;

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    rotary_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (rotary_state){ortc_node_int(n, "interleaved", 0) != 0, ortc_node_int(n, "num_heads", 0),
                        ortc_node_int(n, "rotary_embedding_dim", 0)};
    *out = s;
    return ORTC_OK;
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    (void)state;
    (void)out;
    ortc_plan_in_place(p, 0, 0); /* a pair is read and written by one thread */
    ortc_plan_cost(p, 3.0 * (double)ortc_view_count(&p->in[0]), 0);
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const rotary_state *s = state;
    const ortc_view *x = &c->in[0];
    const bool packed = x->rank == 3, by_position = c->n_in > 3 && c->in[3].dtype;
    const int64_t heads = packed ? s->heads : x->dims[1], length = x->dims[packed ? 1 : 2];
    const int64_t size = packed ? x->dims[2] / s->heads : x->dims[3],
                  half = (s->turned ? s->turned : size) / 2;
    (void)pstate;
    if (ortc_view_count(x) == 0) return ORTC_OK;
    if (by_position && c->in[1].dims[0] == 0)
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "position_ids point into caches without positions");
    return ortc_cuda_done(c, ortc_cu_rotary(c->out[0].data, x->data, c->in[1].data, c->in[2].data,
                                            by_position ? c->in[3].data : NULL, x->dtype, s->interleaved,
                                            packed, x->dims[0], heads, length, size, half, c->in[1].dims[0],
                                            c->fault, c->queue));
}

static const ortc_kernel kernel = {.size = sizeof kernel,
                                   .flags = ORTC_KERNEL_FAULTS,
                                   .name = "rotary_embedding.cuda",
                                   .prepare = prepare,
                                   .plan = plan,
                                   .run = run};

ORTC_KERNELS(cuda, rotary,
             ORTC_KERNEL("RotaryEmbedding", 23, ORTC_NEWEST,
                         (ORTC_TYPE(ORTC_F16) | ORTC_TYPE(ORTC_BF16) | ORTC_TYPE(ORTC_F32),
                          ORTC_TYPE(ORTC_I64)),
                         &kernel));
