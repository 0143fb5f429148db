/* From a node's epilogue (ortc_epilogue in op.h) to what the GEMM and convolution kernels do with a result:
 * shared by the families that compute through product.h.
 *
 * Relu, Clip and LeakyRelu run on registers in the micro-kernels. The others are pointwise programs
 * (kernels/elementwise/program.h) that run over each finished tile of f32 sums, while it is in L1.
 */
#ifndef ORTC_KERNELS_GEMM_EPILOGUE_H
#define ORTC_KERNELS_GEMM_EPILOGUE_H

#include "kernels/gemm/product.h"
#include "ortc/op.h"

/* What a kernel keeps of an epilogue. */
typedef struct ortc_tail_spec {
    int32_t act;        /* ORTC_UK_ACT_* */
    float lo, hi;       /* its parameters */
    ortc_tile_fn *tile; /* NULL: none */
    void *tile_arg;
    int32_t bias, residual; /* input ports, -1: none */
} ortc_tail_spec;

/* Fills `out` from a node's epilogue (NULL: none). 0 if the activation is not known here. */
int ortc_tail_spec_init(const ortc_epilogue *e, ortc_tail_spec *out);

/* The data of input `port` of a call; NULL for -1, for a port that is not there and for one left out. */
static inline const void *ortc_call_data(const ortc_call *c, int32_t port)
{
    return port >= 0 && (uint32_t)port < c->n_in && c->in[port].dtype ? c->in[port].data : NULL;
}

/* ortc_parallel as ortc_product_threads wants it; the context is the call. */
static inline ortc_status ortc_call_parallel(void *call, int64_t n, int64_t grain, ortc_parallel_fn body,
                                             void *arg)
{
    return ortc_parallel((ortc_call *)call, n, grain, body, arg);
}

#endif
