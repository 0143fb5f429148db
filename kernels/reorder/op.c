/* kernels/reorder/op.c: Reorder: the same tensor in another layout. Not an operator of the standard, and
 * never a node of a graph: the planner makes steps of its kernels, where a value is read in another layout
 * than the one it was made in. The layouts are those of the call's views; kernels are asked through `choose`
 * what it costs, and are prepared once for each type. */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_reorder, ortc_kernels_cpu_reorder;

static ortc_status infer_reorder(ortc_infer *c) { return ortc_infer_like(c, 0, 0); }

static const ortc_op ops[] = {
    ORTC_OP("ortc", "Reorder", 1, 1, "", "input:T", "output:T", "", "T=all", infer_reorder, NULL, 0),
};
ORTC_FAMILY(reorder, ops, &ortc_kernels_ref_reorder, &ortc_kernels_cpu_reorder);
