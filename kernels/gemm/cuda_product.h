/* kernels/gemm/cuda_product.h: a MatMul or Gemm on a GPU as parts that several kernels are made of: alone
 * (cuda.c), and as one of a group (cuda_siblings.c).
 */
#ifndef ORTC_KERNELS_CUDA_PRODUCT_H
#define ORTC_KERNELS_CUDA_PRODUCT_H

#include "kernels/common/cuda.h"
#include "kernels/gemm/cuda_gemm.h"

enum { ORTC_CUDA_RANK = 64 }; /* of any tensor, at most */

/* What a node says: a product and its epilogue. */
typedef struct ortc_cuda_product {
    int32_t is_matmul, trans_a, trans_b, b_constant, act, bias, residual; /* the last two: ports, -1 none */
    float alpha, beta, act_alpha, act_beta;
} ortc_cuda_product;

/* And its shapes. A batch of more dims than one launch takes: the outermost are `outer`, walked by the
 * host. */
typedef struct ortc_cuda_product_plan {
    ortc_cu_gemm product; /* all but addresses */
    int32_t outer;
    int32_t c_is_bias; /* a Gemm's C is what a bias is */
    int64_t launches;
    int64_t dims[ORTC_CUDA_RANK], a_step[ORTC_CUDA_RANK], b_step[ORTC_CUDA_RANK], y_step[ORTC_CUDA_RANK];
} ortc_cuda_product_plan; /* steps: elements */

/* Both kinds of ports are the node's. 0: not done here, *why says what. */
int ortc_cuda_product_read(const ortc_node *, ortc_cuda_product *, const char **why);
void ortc_cuda_product_plan_of(const ortc_cuda_product *, const ortc_cuda_device *, const ortc_view *in,
                               uint32_t n_in, const ortc_view *out, ortc_cuda_product_plan *);
/* With the addresses of all operands: the first launch of it. */
ortc_cu_gemm ortc_cuda_product_bind(const ortc_cuda_product *, const ortc_cuda_product_plan *,
                                    const ortc_view *in, uint32_t n_in, const ortc_view *out);
/* Queues it; a cudaError_t. */
int ortc_cuda_product_run(const ortc_cuda_product_plan *, const ortc_cu_gemm *bound, void *queue);

#endif
