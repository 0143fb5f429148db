/* kernels/order/op.c: operators that ask which elements are the largest along an axis: TopK, ArgMax, ArgMin.
 *
 * TopK's k was an attribute until 10. It is a value that decides a shape.
 */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_order;

static ortc_status infer_topk(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    ortc_dim dims[ORTC_RANK_LIMIT];
    int64_t n;
    int32_t axis = 0;
    const ortc_dim *k = ortc_infer_vector(c, 1, &n);
    if (x.rank < 0) {
        ORTC_TRY(ortc_infer_out(c, 0, x.dtype, -1, NULL));
        return ortc_infer_out(c, 1, ORTC_I64, -1, NULL);
    }
    ORTC_TRY(ortc_infer_axis(c, ortc_node_int(ortc_infer_node(c), "axis", -1), x.rank, &axis));
    ortc_copy_dims(dims, x.dims, x.rank);
    dims[axis] = k && n == 1 ? *k : ORTC_DIM_UNKNOWN;
    if (k && n != 1)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "K has %lld elements, expected 1", (long long)n);
    if (ortc_dim_is_number(dims[axis]) &&
        (dims[axis] < 0 || (x.dims[axis] >= 0 && dims[axis] > x.dims[axis])))
        return ortc_infer_fail(c, ORTC_INVALID_ARGUMENT, "K is %lld, axis %d has %lld elements",
                               (long long)dims[axis], axis, (long long)x.dims[axis]);
    ORTC_TRY(ortc_infer_out(c, 0, x.dtype, x.rank, dims));
    return ortc_infer_out(c, 1, ORTC_I64, x.rank, dims);
}

static ortc_status lift_topk(ortc_lift *l)
{
    const int64_t k = ortc_node_int(ortc_lift_node(l), "k", 0), one = 1;
    ORTC_TRY(ortc_lift_const_in(l, 1, ORTC_I64, 1, &one, &k));
    ortc_lift_drop_attr(l, "k");
    return ORTC_OK;
}

static ortc_status infer_arg(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    const bool keep = ortc_node_int(ortc_infer_node(c), "keepdims", 1) != 0;
    ortc_dim dims[ORTC_RANK_LIMIT];
    int32_t axis = 0, rank = 0;
    if (x.rank < 0) return ortc_infer_out(c, 0, ORTC_I64, -1, NULL);
    ORTC_TRY(ortc_infer_axis(c, ortc_node_int(ortc_infer_node(c), "axis", 0), x.rank, &axis));
    if (x.dims[axis] == 0 && ortc_dims_product(c, x.dims, axis) != 0 &&
        ortc_dims_product(c, x.dims + axis + 1, x.rank - axis - 1) != 0)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "axis %d has no elements to choose from", axis);
    for (int32_t d = 0; d < x.rank; d++)
        if (d != axis || keep) dims[rank++] = d == axis ? 1 : x.dims[d];
    return ortc_infer_out(c, 0, ORTC_I64, rank, dims);
}

#define ARG(name) \
    ORTC_OP("", name, 13, 1, "12 11 1", "data:T", "reduced:i64", \
            "axis:i=0 keepdims:i=1 select_last_index:i=0", "T=num", infer_arg, NULL, 0)
static const ortc_op ops[] = {
    ORTC_OP("", "TopK", 24, 10, "11 10 1", "X:T K:i64!", "Values:T? Indices:I?",
            "axis:i=-1 largest:i=1 sorted:i=1", "T=num I=i64", infer_topk, lift_topk, 0),
    ARG("ArgMax"),
    ARG("ArgMin"),
};
ORTC_FAMILY(order, ops, &ortc_kernels_ref_order);
