/* kernels/gemm/op.c: MatMul and Gemm: schemas, shapes, older forms.
 *
 * M rows of the result, N columns, K what is summed over. MatMul follows numpy (kernels/common/product.h).
 */
#include "kernels/common/product.h"

extern const ortc_kernel_table ortc_kernels_ref_gemm, ortc_kernels_cpu_gemm, ortc_kernels_cpu_gemm_siblings;

static ortc_status infer_matmul(ortc_infer *c)
{
    const ortc_dtype t = ortc_infer_in(c, 0).dtype;
    return ortc_infer_product(c, 0, 1, t ? t : ortc_infer_in(c, 1).dtype);
}

static ortc_status infer_gemm(ortc_infer *c)
{
    const ortc_node *node = ortc_infer_node(c);
    const ortc_port a = ortc_infer_in(c, 0), b = ortc_infer_in(c, 1), bias = ortc_infer_in(c, 2);
    const bool ta = ortc_node_int(node, "transA", 0) != 0, tb = ortc_node_int(node, "transB", 0) != 0;
    ortc_dim dims[2] = {ORTC_DIM_UNKNOWN, ORTC_DIM_UNKNOWN}, k;
    if ((a.rank >= 0 && a.rank != 2) || (b.rank >= 0 && b.rank != 2))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "A and B must be matrices, got ranks %d and %d",
                               a.rank, b.rank);
    if (a.rank == 2) dims[0] = a.dims[ta];
    if (b.rank == 2) dims[1] = b.dims[!tb];
    if (a.rank == 2 && b.rank == 2)
        ORTC_TRY(ortc_infer_same(c, "elements summed over differ in A and B", a.dims[!ta], b.dims[tb], &k));
    if (bias.rank > 2)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "C has rank %d, expected at most 2", bias.rank);
    for (int32_t d = 0; d < bias.rank; d++) { /* one way: C is stretched, the result is not */
        const ortc_dim have = bias.dims[d], want = dims[2 - bias.rank + d];
        if (have >= 0 && want >= 0 && have != 1 && have != want)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "C has %lld elements in dim %d, the result %lld",
                                   (long long)have, d, (long long)want);
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
    ORTC_OP("", "Gemm", 13, 7, "11 9 7 6 1", "A:T B:T C:T?", "Y:T",
            "alpha:f=1 beta:f=1 transA:i=0 transB:i=0", TYPES, infer_gemm, lift_gemm, ORTC_OP_HEAVY),
};
ORTC_FAMILY(gemm, ops, &ortc_kernels_ref_gemm, &ortc_kernels_cpu_gemm, &ortc_kernels_cpu_gemm_siblings);
