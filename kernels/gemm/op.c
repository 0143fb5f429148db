/* kernels/gemm/op.c: MatMul and Gemm: schemas, shapes, older forms.
 *
 * M rows of the result, N columns, K what is summed over. MatMul follows numpy: operands of rank 1 are a row (A) or a
 * column (B) whose extra dim is dropped again, dims before the last two are broadcast.
 */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_gemm, ortc_kernels_cpu_gemm;

static ortc_status infer_matmul(ortc_infer *c)
{
    const ortc_port a = ortc_infer_in(c, 0), b = ortc_infer_in(c, 1);
    ortc_dim dims[ORTC_RANK_LIMIT], k;
    int32_t n = 0;
    if (a.rank < 0 || b.rank < 0)
        return ortc_infer_out(c, 0, a.dtype ? a.dtype : b.dtype, -1, NULL);
    if (a.rank == 0 || b.rank == 0)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "operands must have a dim at least, got ranks %d and %d", a.rank, b.rank);
    ORTC_TRY(ortc_infer_same(c, "elements summed over differ in A and B", a.dims[a.rank - 1],
                             b.dims[b.rank == 1 ? 0 : b.rank - 2], &k));
    const int32_t batch_a = a.rank > 2 ? a.rank - 2 : 0, batch_b = b.rank > 2 ? b.rank - 2 : 0;
    const int32_t batch = batch_a > batch_b ? batch_a : batch_b;
    for (; n < batch; n++) {
        const int32_t ia = n - (batch - batch_a), ib = n - (batch - batch_b);
        const ortc_dim x = ia >= 0 ? a.dims[ia] : 1, y = ib >= 0 ? b.dims[ib] : 1;
        if (x >= 0 && y >= 0 && x != y && x != 1 && y != 1)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "batch dim %d is %lld in A and %lld in B", n, (long long)x,
                                   (long long)y);
        dims[n] = ortc_dim_broadcast(c, x, y);
    }
    if (a.rank > 1)
        dims[n++] = a.dims[a.rank - 2];
    if (b.rank > 1)
        dims[n++] = b.dims[b.rank - 1];
    return ortc_infer_out(c, 0, a.dtype, n, dims);
}

static ortc_status infer_gemm(ortc_infer *c)
{
    const ortc_node *node = ortc_infer_node(c);
    const ortc_port a = ortc_infer_in(c, 0), b = ortc_infer_in(c, 1), bias = ortc_infer_in(c, 2);
    const bool ta = ortc_node_int(node, "transA", 0) != 0, tb = ortc_node_int(node, "transB", 0) != 0;
    ortc_dim dims[2] = {ORTC_DIM_UNKNOWN, ORTC_DIM_UNKNOWN}, k;
    if ((a.rank >= 0 && a.rank != 2) || (b.rank >= 0 && b.rank != 2))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "A and B must be matrices, got ranks %d and %d", a.rank, b.rank);
    if (a.rank == 2)
        dims[0] = a.dims[ta];
    if (b.rank == 2)
        dims[1] = b.dims[!tb];
    if (a.rank == 2 && b.rank == 2)
        ORTC_TRY(ortc_infer_same(c, "elements summed over differ in A and B", a.dims[!ta], b.dims[tb], &k));
    if (bias.rank > 2)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "C has rank %d, expected at most 2", bias.rank);
    for (int32_t d = 0; d < bias.rank; d++) { /* one way: C is stretched, the result is not */
        const ortc_dim have = bias.dims[d], want = dims[2 - bias.rank + d];
        if (have >= 0 && want >= 0 && have != 1 && have != want)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "C has %lld elements in dim %d, the result %lld", (long long)have, d,
                                   (long long)want);
    }
    return ortc_infer_out(c, 0, a.dtype, 2, dims);
}

/* Below 7 C was stretched only where `broadcast` said so; what was valid then is valid now. */
static ortc_status lift_gemm(ortc_lift *l)
{
    ortc_lift_drop_attr(l, "broadcast");
    return ORTC_OK;
}

#define TYPES "T=float,i32,i64,u32,u64"
static const ortc_op ops[] = {
    ORTC_OP("", "MatMul", 13, 1, "9 1", "A:T B:T", "Y:T", "", TYPES, infer_matmul, NULL, ORTC_OP_HEAVY),
    ORTC_OP("", "Gemm", 13, 7, "11 9 7 6 1", "A:T B:T C:T?", "Y:T", "alpha:f=1 beta:f=1 transA:i=0 transB:i=0", TYPES,
            infer_gemm, lift_gemm, ORTC_OP_HEAVY),
};
ORTC_FAMILY(gemm, ops, &ortc_kernels_ref_gemm, &ortc_kernels_cpu_gemm);
