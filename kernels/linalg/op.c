/* kernels/linalg/op.c: operators of square matrices: Det, and com.microsoft's Inverse: schemas
 * and shapes. */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_linalg;

/* X [.., M, M], Y [..]. */
static ortc_status infer_det(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    ortc_dim same;
    if (x.rank < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    if (x.rank < 2)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the input has rank %d, expected 2 at least", x.rank);
    ORTC_TRY(
        ortc_infer_same(c, "the matrices are not square", x.dims[x.rank - 2], x.dims[x.rank - 1], &same));
    return ortc_infer_out(c, 0, x.dtype, x.rank - 2, x.dims);
}

static ortc_status infer_inverse(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    ortc_dim same;
    if (x.rank < 0) return ortc_infer_like(c, 0, 0);
    if (x.rank < 2)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the input has rank %d, expected 2 at least", x.rank);
    ORTC_TRY(
        ortc_infer_same(c, "the matrices are not square", x.dims[x.rank - 2], x.dims[x.rank - 1], &same));
    return ortc_infer_like(c, 0, 0);
}

static const ortc_op ops[] = {
    ORTC_OP("", "Det", 22, 11, "11", "X:T", "Y:T", "", "T=float", infer_det, NULL, 0),
    ORTC_OP("com.microsoft", "Inverse", 1, 1, "", "X:T", "Y:T", "", "T=f16,f32,f64", infer_inverse, NULL, 0),
};
ORTC_FAMILY(linalg, ops, &ortc_kernels_ref_linalg);
