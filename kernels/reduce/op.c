/* kernels/reduce/op.c: reductions along axes: schemas, shape, older forms.
 *
 * Axes were an attribute until 13 (ReduceSum) or 18 (the others) and are an input since. Without axes
 * everything is reduced, or nothing where noop_with_empty_axes says so: then the function is applied to each
 * element alone.
 */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_reduce;

static ortc_status infer_reduce(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    const ortc_node *n = ortc_infer_node(c);
    const bool keep = ortc_node_int(n, "keepdims", 1) != 0,
               noop = ortc_node_int(n, "noop_with_empty_axes", 0) != 0;
    bool drop[ORTC_RANK_LIMIT];
    ortc_dim dims[ORTC_RANK_LIMIT];
    int64_t count = 0;
    int32_t rank = 0;
    int state;
    if (x.rank < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    ORTC_TRY(ortc_infer_axes(c, 1, x.rank, drop, &state, &count));
    if (state == ORTC_AXES_UNKNOWN && !keep) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    for (int32_t d = 0; d < x.rank; d++) {
        if (state == ORTC_AXES_UNKNOWN) {
            dims[rank++] = ORTC_DIM_UNKNOWN;
            continue;
        }
        if (count == 0) drop[d] = !noop;
        if (!drop[d] || keep) dims[rank++] = drop[d] ? 1 : x.dims[d];
    }
    return ortc_infer_out(c, 0, x.dtype, rank, dims);
}

static ortc_status lift_reduce(ortc_lift *l)
{
    size_t n;
    const int64_t *axes = ortc_node_ints(ortc_lift_node(l), "axes", &n);
    const int64_t count = (int64_t)n;
    if (axes) ORTC_TRY(ortc_lift_const_in(l, 1, ORTC_I64, 1, &count, axes));
    ortc_lift_drop_attr(l, "axes");
    return ORTC_OK;
}

#define REDUCE(name, since, form, older, types) \
    ORTC_OP("", name, since, form, older, "data:T axes:i64?!", "reduced:T", \
            "keepdims:i=1 noop_with_empty_axes:i=0", types, infer_reduce, lift_reduce, 0)
#define WIDE "T=float,i32,i64,u32,u64"
static const ortc_op ops[] = {
    REDUCE("ReduceSum", 13, 13, "11 1", WIDE),
    REDUCE("ReduceMean", 18, 18, "13 11 1", WIDE),
    REDUCE("ReduceMax", 20, 18, "18 13 12 11 1", WIDE ",i8,u8,bool"),
    REDUCE("ReduceMin", 20, 18, "18 13 12 11 1", WIDE ",i8,u8,bool"),
    REDUCE("ReduceProd", 18, 18, "13 11 1", WIDE),
    REDUCE("ReduceL1", 18, 18, "13 11 1", WIDE),
    REDUCE("ReduceL2", 18, 18, "13 11 1", WIDE),
    REDUCE("ReduceSumSquare", 18, 18, "13 11 1", WIDE),
    REDUCE("ReduceLogSum", 28, 18, "18 13 11 1", WIDE),
    REDUCE("ReduceLogSumExp", 28, 18, "18 13 11 1", WIDE),
};
ORTC_FAMILY(reduce, ops, &ortc_kernels_ref_reduce);
