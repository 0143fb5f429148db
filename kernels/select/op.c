/* kernels/select/op.c: operators whose result is as long as the data says: NonZero. */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_select;

static ortc_status infer_nonzero(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    const ortc_dim dims[2] = {x.rank, ORTC_DIM_UNKNOWN};
    return x.rank < 0 ? ortc_infer_out(c, 0, ORTC_I64, -1, NULL) : ortc_infer_out(c, 0, ORTC_I64, 2, dims);
}

static const ortc_op ops[] = {
    ORTC_OP("", "NonZero", 13, 9, "9", "X:T", "Y:i64", "", "T=all", infer_nonzero, NULL, 0),
};
ORTC_FAMILY(select, ops, &ortc_kernels_ref_select);
