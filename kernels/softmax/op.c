/* kernels/softmax/op.c: Softmax, LogSoftmax and Hardmax: schemas and older forms.
 *
 * Since 13 they act along one axis. Before, the input was seen as a matrix, cut before `axis` (1 where it was
 * left out), and they acted along its rows: between two Reshapes it is the same. The default of `axis` is not
 * in the schema, for a lifting would then be told the newest one where none is given.
 */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_softmax;

static ortc_status infer_softmax(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    int32_t axis;
    if (x.rank > 0 || (x.rank == 0 && ortc_node_int(ortc_infer_node(c), "axis", -1) > 0))
        ORTC_TRY(ortc_infer_axis(c, ortc_node_int(ortc_infer_node(c), "axis", -1), x.rank, &axis));
    return ortc_infer_like(c, 0, 0);
}

static ortc_status lift_softmax(ortc_lift *l)
{
    const ortc_port x = ortc_node_in(ortc_lift_node(l), 0);
    int64_t cut = ortc_node_int(ortc_lift_node(l), "axis", 1), to[ORTC_RANK_LIMIT];
    int32_t unknown = 0, axis;
    if (x.rank < 0)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the rank of the input must be known for this version");
    if (cut == x.rank) /* rows of one element; rank 1 with the axis left out */
        axis = x.rank;
    else if (!ortc_axis_of(cut, x.rank, &axis))
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "axis %lld is outside of rank %d", (long long)cut,
                              x.rank);
    ORTC_TRY(ortc_lift_set_int(l, "axis", -1));
    if (axis + 1 == x.rank) return ORTC_OK; /* a row is the last axis already */
    for (int32_t d = 0; d < axis; d++) to[d] = 0;
    to[axis] = axis == x.rank ? 1 : -1;
    ORTC_TRY(ortc_lift_wrap_in(l, 0, "Reshape", to, (size_t)axis + 1));
    for (int32_t d = axis; d < x.rank; d++) {
        to[d] = x.dims[d] >= 0 ? x.dims[d] : -1;
        unknown += x.dims[d] < 0;
    }
    if (unknown > 1)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED,
                              "for this version at most one extent behind the axis may be unknown");
    return ortc_lift_wrap_out(l, 0, "Reshape", to, (size_t)x.rank);
}

static const ortc_op ops[] = {
    ORTC_OP("", "Softmax", 13, 13, "11 1", "input:T", "output:T", "axis:i?", "T=float", infer_softmax,
            lift_softmax, 0),
    ORTC_OP("", "LogSoftmax", 13, 13, "11 1", "input:T", "output:T", "axis:i?", "T=float", infer_softmax,
            lift_softmax, 0),
    ORTC_OP("", "Hardmax", 13, 13, "11 1", "input:T", "output:T", "axis:i?", "T=float", infer_softmax,
            lift_softmax, 0),
};
ORTC_FAMILY(softmax, ops, &ortc_kernels_ref_softmax);
