/* kernels/reorder/op.c: Reorder: the same tensor in another layout. Not an operator of the standard:
 * specialisation puts it where a device's wishes begin and end, and no file is written with it. The layouts
 * are those of the node's ports. */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_reorder;

static ortc_status infer_reorder(ortc_infer *c) { return ortc_infer_like(c, 0, 0); }

static const ortc_op ops[] = {
    ORTC_OP("ortc", "Reorder", 1, 1, "", "input:T", "output:T", "", "T=all", infer_reorder, NULL, 0),
};
ORTC_FAMILY(reorder, ops, &ortc_kernels_ref_reorder);
