/* kernels/cumulative/op.c: CumSum and CumProd: schemas and shapes. The axis is an input, but decides no
 * shape. Sums of small integers are passed along, for they may be offsets into shapes.
 */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_cumulative, ortc_kernels_cpu_cumulative;

static ortc_status infer_cumulative(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ortc_port x = ortc_infer_in(c, 0), at = ortc_infer_in(c, 1);
    const bool sum = !strcmp(ortc_node_op(n), "CumSum"), reverse = ortc_node_int(n, "reverse", 0) != 0;
    const bool exclusive = ortc_node_int(n, "exclusive", 0) != 0;
    ortc_dim out[ORTC_VALUES_LIMIT], total = sum ? 0 : 1;
    int64_t count, n_axis;
    int32_t axis = 0;
    const ortc_dim *axes = ortc_infer_vector(c, 1, &n_axis);
    if (at.rank > 1 || (at.rank == 1 && at.dims[0] >= 0 && at.dims[0] != 1))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "axis is not one number");
    if (axes && n_axis == 1 && ortc_dim_is_number(axes[0]) && x.rank >= 0)
        ORTC_TRY(ortc_infer_axis(c, axes[0], x.rank, &axis));
    ORTC_TRY(ortc_infer_like(c, 0, 0));
    const ortc_dim *v = x.rank == 1 ? ortc_infer_vector(c, 0, &count) : NULL;
    if (!v || count > ORTC_VALUES_LIMIT || x.dtype != ORTC_I64) return ORTC_OK;
    for (int64_t i = 0; i < count; i++) {
        const int64_t k = reverse ? count - 1 - i : i;
        const ortc_dim next = sum ? ortc_element_add(c, total, v[k]) : ortc_element_mul(c, total, v[k]);
        out[k] = exclusive ? total : next;
        total = next;
    }
    return ortc_infer_out_values(c, 0, count, out);
}

#define CUMULATIVE(name, since, older) \
    ORTC_OP("", name, since, 11, older, "x:T axis:T2", "y:T", "exclusive:i=0 reverse:i=0", \
            "T=float,i32,i64,u32,u64 T2=i32,i64", infer_cumulative, NULL, 0)
static const ortc_op ops[] = {
    CUMULATIVE("CumSum", 14, "11"),
    CUMULATIVE("CumProd", 26, ""),
};
ORTC_FAMILY(cumulative, ops, &ortc_kernels_ref_cumulative, &ortc_kernels_cpu_cumulative);
