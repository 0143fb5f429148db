/* What MatMul's shapes mean as products: shared by MatMul and its integer forms on the cpu.
 *
 * A [.., M, K] times B [.., K, N], batch dims broadcast, vectors gain a dim of 1. When B is one matrix, the
 * batch of A joins M: one large product.
 */
#ifndef ORTC_KERNELS_GEMM_MATMUL_SHAPE_H
#define ORTC_KERNELS_GEMM_MATMUL_SHAPE_H

#include "ortc/op.h"

#define ORTC_BATCH_RANK 64

typedef struct ortc_matmul_shape {
    int64_t m, n, k, batch;
    int64_t rows; /* of one matrix of A: m, but where the batch has joined it */
    int32_t rank; /* of the batch */
    int64_t dims[ORTC_BATCH_RANK], a_step[ORTC_BATCH_RANK],
        b_step[ORTC_BATCH_RANK]; /* elements; 0: broadcast */
} ortc_matmul_shape;

/* 0: a rank is not possible. Nothing to do: m == n == k == batch == 0. */
int ortc_matmul_shape_init(const ortc_view *a, const ortc_view *b, const ortc_view *y, ortc_matmul_shape *);

/* The first elements of A's and B's matrices for matrix `index` of the batch, dims walked from the last. */
void ortc_matmul_at(const ortc_matmul_shape *, int64_t index, int64_t *a, int64_t *b);

#endif
