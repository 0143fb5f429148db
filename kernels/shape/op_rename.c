/* kernels/shape/op_rename.c: shapes of operators that leave elements where they are (Identity, Reshape,
 * Flatten, Squeeze, Unsqueeze) or only tell them (Shape, Size). Small integer values go through all of them.
 */
#include "kernels/shape/shape_ops.h"

/* Output 0 has the values of input 0, where it has at most one dim. */
static ortc_status pass_values(ortc_infer *c, int32_t out_rank)
{
    int64_t count;
    const ortc_dim *v = ortc_infer_vector(c, 0, &count);
    return v && out_rank <= 1 ? ortc_infer_out_values(c, 0, count, v) : ORTC_OK;
}

ortc_status ortc_infer_identity(ortc_infer *c)
{
    ORTC_TRY(ortc_infer_like(c, 0, 0));
    return pass_values(c, ortc_infer_in(c, 0).rank);
}

/* ---- Reshape ------------------------------------------------------------------------------------------- */

/* Dims that stand in both shapes cancel each other; what is left of the input over what is left of the target
 * is the extent that -1 asks for. Cancelling first keeps it exact for symbols, and for extents of zero that
 * are copied. */
static ortc_status reshape_rest(ortc_infer *c, const ortc_port *x, ortc_dim *dims, int32_t rank, int32_t hole)
{
    bool used[ORTC_RANK_LIMIT] = {false};
    ortc_dim wanted[ORTC_RANK_LIMIT], had[ORTC_RANK_LIMIT];
    int32_t n_wanted = 0, n_had = 0;
    for (int32_t d = 0; d < rank; d++) {
        int32_t match = -1;
        if (d == hole) continue;
        if (dims[d] == ORTC_DIM_UNKNOWN) return ORTC_OK;
        for (int32_t i = 0; i < x->rank && match < 0; i++)
            if (!used[i] && x->dims[i] == dims[d]) match = i;
        if (match >= 0)
            used[match] = true;
        else
            wanted[n_wanted++] = dims[d];
    }
    for (int32_t i = 0; i < x->rank; i++)
        if (!used[i]) had[n_had++] = x->dims[i];
    const ortc_dim want = ortc_dims_product(c, wanted, n_wanted), have = ortc_dims_product(c, had, n_had);
    if (hole >= 0 && want == 0)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "no extent can be found for -1 beside an extent of 0");
    if (have >= 0 && want >= 0 && (hole >= 0 ? have % want : have != want)) {
        bool empty = have == want;
        for (int32_t d = 0; d < rank; d++) /* equal dims may have cancelled an extent of 0 on one side only */
            empty |= dims[d] == 0;
        for (int32_t i = 0; i < x->rank && empty; i++)
            if (x->dims[i] == 0) return ORTC_OK;
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "the input has %lld elements where the target shape takes %lld%s",
                               (long long)have, (long long)want, hole >= 0 ? " times a number" : "");
    }
    if (hole >= 0) dims[hole] = ortc_dim_div(c, have, want);
    return ORTC_OK;
}

ortc_status ortc_infer_reshape(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), shape = ortc_infer_in(c, 1);
    const bool allow_zero = ortc_node_int(ortc_infer_node(c), "allowzero", 0) != 0;
    ortc_dim dims[ORTC_RANK_LIMIT];
    int32_t hole = -1, rank;
    int64_t count;
    const ortc_dim *to = ortc_infer_vector(c, 1, &count);
    if (shape.rank >= 0 && shape.rank != 1)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "shape has rank %d, expected 1", shape.rank);
    if (!to && shape.rank == 1) count = shape.dims[0];
    if ((!to && shape.rank != 1) || count < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    if (count > ORTC_RANK_LIMIT)
        return ortc_infer_fail(c, ORTC_LIMIT, "shape has %lld dims", (long long)count);
    rank = (int32_t)count;
    for (int32_t d = 0; d < rank; d++) {
        dims[d] = to ? to[d] : ORTC_DIM_UNKNOWN;
        if (to && to[d] == 0 && !allow_zero) {
            if (x.rank >= 0 && d >= x.rank)
                return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "shape[%d] is 0, but the input has rank %d", d,
                                       x.rank);
            dims[d] = x.rank >= 0 ? x.dims[d] : ORTC_DIM_UNKNOWN;
        } else if (to && ortc_dim_is_number(to[d]) && to[d] < 0) {
            if (to[d] != -1 || hole >= 0)
                return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "shape[%d] is %lld", d, (long long)to[d]);
            hole = d;
            dims[d] = ORTC_DIM_UNKNOWN;
        }
    }
    if (x.rank >= 0) ORTC_TRY(reshape_rest(c, &x, dims, rank, hole));
    ORTC_TRY(ortc_infer_out(c, 0, x.dtype, rank, dims));
    return pass_values(c, rank);
}

/* Reshape-1 had the target as an attribute. */
ortc_status ortc_lift_reshape(ortc_lift *l)
{
    size_t n;
    const int64_t *shape = ortc_node_ints(ortc_lift_node(l), "shape", &n);
    const int64_t count = (int64_t)n;
    ORTC_TRY(ortc_lift_const_in(l, 1, ORTC_I64, 1, &count, shape));
    ortc_lift_drop_attr(l, "shape");
    ortc_lift_drop_attr(l, "consumed_inputs");
    return ORTC_OK;
}

/* ---- Flatten, Squeeze, Unsqueeze ----------------------------------------------------------------------- */

ortc_status ortc_infer_flatten(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    int64_t axis = ortc_node_int(ortc_infer_node(c), "axis", 1);
    ortc_dim dims[2] = {ORTC_DIM_UNKNOWN, ORTC_DIM_UNKNOWN};
    if (x.rank >= 0) {
        if (axis < -x.rank || axis > x.rank)
            return ortc_infer_fail(c, ORTC_INVALID_MODEL, "axis %lld is outside of rank %d", (long long)axis,
                                   x.rank);
        axis += axis < 0 ? x.rank : 0;
        dims[0] = ortc_dims_product(c, x.dims, (int32_t)axis);
        dims[1] = ortc_dims_product(c, x.dims + axis, x.rank - (int32_t)axis);
    }
    return ortc_infer_out(c, 0, x.dtype, 2, dims);
}

ortc_status ortc_infer_squeeze(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    bool drop[ORTC_RANK_LIMIT];
    ortc_dim dims[ORTC_RANK_LIMIT];
    int state;
    int32_t rank = 0;
    if (x.rank < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    ORTC_TRY(ortc_infer_axes(c, 1, x.rank, drop, &state, NULL));
    if (state == ORTC_AXES_UNKNOWN) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    for (int32_t d = 0; d < x.rank; d++) {
        if (state == ORTC_AXES_LEFT_OUT) {
            if (x.dims[d] < 0) /* a symbol may turn out to be 1 */
                return ortc_infer_out(c, 0, x.dtype, -1, NULL);
            drop[d] = x.dims[d] == 1;
        }
        if (!drop[d])
            dims[rank++] = x.dims[d];
        else if (x.dims[d] >= 0 && x.dims[d] != 1)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "dim %d has %lld elements and cannot be dropped",
                                   d, (long long)x.dims[d]);
    }
    ORTC_TRY(ortc_infer_out(c, 0, x.dtype, rank, dims));
    return pass_values(c, rank);
}

ortc_status ortc_infer_unsqueeze(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), axes = ortc_infer_in(c, 1);
    bool add[ORTC_RANK_LIMIT];
    ortc_dim dims[ORTC_RANK_LIMIT];
    int64_t count = axes.rank == 1 ? axes.dims[0] : axes.rank == 0 ? 1 : -1;
    int state;
    if (x.rank < 0 || count < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    if (count > ORTC_RANK_LIMIT - x.rank)
        return ortc_infer_fail(c, ORTC_LIMIT, "%lld axes are added to rank %d", (long long)count, x.rank);
    const int32_t rank = x.rank + (int32_t)count;
    ORTC_TRY(ortc_infer_axes(c, 1, rank, add, &state, NULL));
    for (int32_t d = 0, from = 0; d < rank; d++)
        dims[d] = state != ORTC_AXES_KNOWN ? ORTC_DIM_UNKNOWN : add[d] ? 1 : x.dims[from++];
    ORTC_TRY(ortc_infer_out(c, 0, x.dtype, rank, dims));
    return pass_values(c, rank);
}

ortc_status ortc_lift_axes(ortc_lift *l)
{
    size_t n;
    const int64_t *axes = ortc_node_ints(ortc_lift_node(l), "axes", &n);
    const int64_t count = (int64_t)n;
    if (axes) ORTC_TRY(ortc_lift_const_in(l, 1, ORTC_I64, 1, &count, axes));
    ortc_lift_drop_attr(l, "axes");
    return ORTC_OK;
}

/* ---- Shape, Size --------------------------------------------------------------------------------------- */

ortc_status ortc_infer_shape(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    const ortc_node *n = ortc_infer_node(c);
    ortc_dim count = ORTC_DIM_UNKNOWN;
    if (x.rank < 0) return ortc_infer_out(c, 0, ORTC_I64, 1, &count);
    int64_t start = ortc_node_int(n, "start", 0), end = ortc_node_int(n, "end", x.rank);
    start += start < 0 ? x.rank : 0;
    end += end < 0 ? x.rank : 0;
    start = start < 0 ? 0 : start > x.rank ? x.rank : start;
    end = end < start ? start : end > x.rank ? x.rank : end;
    count = end - start;
    ORTC_TRY(ortc_infer_out(c, 0, ORTC_I64, 1, &count));
    return ortc_infer_out_values(c, 0, count, x.dims + start);
}

ortc_status ortc_infer_size(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    ORTC_TRY(ortc_infer_out(c, 0, ORTC_I64, 0, NULL));
    if (x.rank < 0) return ORTC_OK;
    const ortc_dim n = ortc_dims_product(c, x.dims, x.rank);
    return ortc_infer_out_values(c, 0, 1, &n);
}
