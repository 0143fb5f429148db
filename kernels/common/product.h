/* kernels/common/product.h: the shape of a product of matrices, as numpy's matmul: for MatMul and its
 * quantized relatives.
 *
 * Operands of rank 1 are a row (A) or a column (B) whose extra dim is dropped again; dims before the last two
 * are broadcast.
 */
#ifndef ORTC_KERNELS_PRODUCT_H
#define ORTC_KERNELS_PRODUCT_H

#include "kernels/common/shape.h"

/* Output 0 gets type t and the shape of the product of inputs `first` and `second`. */
static inline ortc_status ortc_infer_product(ortc_infer *c, uint32_t first, uint32_t second, ortc_dtype t)
{
    const ortc_port a = ortc_infer_in(c, first), b = ortc_infer_in(c, second);
    ortc_dim dims[ORTC_RANK_LIMIT], k;
    int32_t n = 0;
    if (a.rank < 0 || b.rank < 0) return ortc_infer_out(c, 0, t, -1, NULL);
    if (a.rank == 0 || b.rank == 0)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "operands must have a dim at least, got ranks %d and %d", a.rank, b.rank);
    ORTC_TRY(ortc_infer_same(c, "elements summed over differ in A and B", a.dims[a.rank - 1],
                             b.dims[b.rank == 1 ? 0 : b.rank - 2], &k));
    const int32_t batch_a = a.rank > 2 ? a.rank - 2 : 0, batch_b = b.rank > 2 ? b.rank - 2 : 0;
    const int32_t batch = batch_a > batch_b ? batch_a : batch_b;
    for (; n < batch; n++) {
        const int32_t ia = n - (batch - batch_a), ib = n - (batch - batch_b);
        const ortc_dim x = ia >= 0 ? a.dims[ia] : 1, y = ib >= 0 ? b.dims[ib] : 1;
        if (x >= 0 && y >= 0 && x != y && x != 1 && y != 1)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "batch dim %d is %lld in A and %lld in B", n,
                                   (long long)x, (long long)y);
        dims[n] = ortc_dim_broadcast(c, x, y);
    }
    if (a.rank > 1) dims[n++] = a.dims[a.rank - 2];
    if (b.rank > 1) dims[n++] = b.dims[b.rank - 1];
    return ortc_infer_out(c, 0, t, n, dims);
}

#endif
