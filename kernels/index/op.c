/* kernels/index/op.c: operators that take or put elements where a tensor of indices says: Gather,
 * GatherElements, GatherND, ScatterElements, ScatterND: schemas, shapes, older forms. Gather passes small
 * integer values along.
 *
 * Scatter-9 is ScatterElements under its old name. Reductions came at 16 (add, mul) and 18 (min, max).
 */
#include "kernels/index/index.h"

extern const ortc_kernel_table ortc_kernels_ref_index, ortc_kernels_cpu_index;

static ortc_status gather_values(ortc_infer *c, int32_t out_rank)
{
    int64_t n, count;
    ortc_dim out[ORTC_VALUES_LIMIT];
    const ortc_dim *data = ortc_infer_vector(c, 0, &n), *at = ortc_infer_vector(c, 1, &count);
    if (!data || !at || out_rank > 1 || count > ORTC_VALUES_LIMIT) return ORTC_OK;
    for (int64_t i = 0; i < count; i++) {
        int32_t from;
        if (!ortc_dim_is_number(at[i])) return ORTC_OK;
        if (!ortc_axis_of(at[i], n, &from))
            return ortc_infer_fail(c, ORTC_INVALID_MODEL, "index %lld is outside of %lld elements",
                                   (long long)at[i], (long long)n);
        out[i] = data[from];
    }
    return ortc_infer_out_values(c, 0, count, out);
}

static ortc_status infer_gather(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), at = ortc_infer_in(c, 1);
    ortc_dim dims[2 * ORTC_RANK_LIMIT];
    int32_t axis = 0, rank = 0;
    if (x.rank < 0 || at.rank < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    ORTC_TRY(ortc_infer_axis(c, ortc_node_int(ortc_infer_node(c), "axis", 0), x.rank, &axis));
    for (int32_t d = 0; d < axis; d++) dims[rank++] = x.dims[d];
    for (int32_t d = 0; d < at.rank; d++) dims[rank++] = at.dims[d];
    for (int32_t d = axis + 1; d < x.rank; d++) dims[rank++] = x.dims[d];
    if (rank > ORTC_RANK_LIMIT) return ortc_infer_fail(c, ORTC_LIMIT, "the result would have %d dims", rank);
    ORTC_TRY(ortc_infer_out(c, 0, x.dtype, rank, dims));
    return x.rank == 1 ? gather_values(c, rank) : ORTC_OK;
}

/* Indices have the data's rank, and beside the axis no more than its extents. */
static ortc_status check_elements(ortc_infer *c, const ortc_port *x, const ortc_port *at)
{
    int32_t axis = 0;
    if (x->rank < 0 || at->rank < 0) return ORTC_OK;
    ORTC_TRY(ortc_infer_axis(c, ortc_node_int(ortc_infer_node(c), "axis", 0), x->rank, &axis));
    if (x->rank != at->rank)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "indices have rank %d, the data %d", at->rank,
                               x->rank);
    for (int32_t d = 0; d < x->rank; d++)
        if (d != axis && x->dims[d] >= 0 && at->dims[d] > x->dims[d])
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                                   "indices have %lld elements in dim %d, the data %lld",
                                   (long long)at->dims[d], d, (long long)x->dims[d]);
    return ORTC_OK;
}

static ortc_status infer_gather_elements(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), at = ortc_infer_in(c, 1);
    ORTC_TRY(check_elements(c, &x, &at));
    return ortc_infer_out(c, 0, x.dtype, at.rank, at.dims);
}

static ortc_status infer_scatter_elements(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), at = ortc_infer_in(c, 1), u = ortc_infer_in(c, 2);
    ortc_dim same;
    ORTC_TRY(check_elements(c, &x, &at));
    if (at.rank >= 0 && u.rank >= 0 && at.rank != u.rank)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "indices have rank %d, updates %d", at.rank, u.rank);
    for (int32_t d = 0; d < at.rank && u.rank >= 0; d++)
        ORTC_TRY(ortc_infer_same(c, "indices and updates differ in shape", at.dims[d], u.dims[d], &same));
    return ortc_infer_like(c, 0, 0);
}

/* The shape of what tuples of indices pick: theirs without the last dim, then what a tuple leaves of the
 * data. -1: not known. */
static ortc_status picked(ortc_infer *c, const ortc_port *x, const ortc_port *at, int64_t batch,
                          int32_t *rank, ortc_dim *dims)
{
    *rank = -1;
    ortc_dim same;
    if (at->rank == 0) return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "indices must have a dim at least");
    if (x->rank < 0 || at->rank < 0) return ORTC_OK;
    if (batch < 0 || batch >= at->rank || batch > x->rank)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "batch_dims is %lld for ranks %d and %d",
                               (long long)batch, x->rank, at->rank);
    for (int32_t d = 0; d < batch; d++)
        ORTC_TRY(
            ortc_infer_same(c, "data and indices differ in a batch dim", x->dims[d], at->dims[d], &same));
    const ortc_dim length = at->dims[at->rank - 1];
    if (length < 0) return ORTC_OK;
    if (length > x->rank - batch)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "tuples of %lld indices for data of rank %d, %lld of them batch dims",
                               (long long)length, x->rank, (long long)batch);
    const int32_t rest = x->rank - (int32_t)batch - (int32_t)length;
    if (at->rank - 1 + rest > ORTC_RANK_LIMIT)
        return ortc_infer_fail(c, ORTC_LIMIT, "the result would have %d dims", at->rank - 1 + rest);
    *rank = at->rank - 1 + rest;
    ortc_copy_dims(dims, at->dims, at->rank - 1);
    ortc_copy_dims(dims + at->rank - 1, x->dims + x->rank - rest, rest);
    return ORTC_OK;
}

static ortc_status infer_gather_nd(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), at = ortc_infer_in(c, 1);
    ortc_dim dims[ORTC_RANK_LIMIT];
    int32_t rank = -1;
    ORTC_TRY(picked(c, &x, &at, ortc_node_int(ortc_infer_node(c), "batch_dims", 0), &rank, dims));
    return ortc_infer_out(c, 0, x.dtype, rank, dims);
}

static ortc_status infer_scatter_nd(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), at = ortc_infer_in(c, 1), u = ortc_infer_in(c, 2);
    ortc_dim dims[ORTC_RANK_LIMIT], same;
    int32_t rank = -1;
    ORTC_TRY(picked(c, &x, &at, 0, &rank, dims));
    if (rank >= 0 && u.rank >= 0 && rank != u.rank)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "updates have rank %d, expected %d", u.rank, rank);
    for (int32_t d = 0; d < rank && u.rank >= 0; d++)
        ORTC_TRY(ortc_infer_same(c, "updates are not of the shape that indices ask for", u.dims[d], dims[d],
                                 &same));
    return ortc_infer_like(c, 0, 0);
}

static ortc_status lift_scatter(ortc_lift *l) { return ortc_lift_rename(l, "ScatterElements"); }

#define PLAIN "T=num,bool,string,c64,c128"
static const ortc_op ops[] = {
    ORTC_OP("", "Gather", 13, 1, "11 1", "data:T indices:Tind", "output:T", "axis:i=0", PLAIN " Tind=i32,i64",
            infer_gather, NULL, ORTC_OP_PICKS),
    ORTC_OP("", "GatherElements", 13, 11, "11", "data:T indices:Tind", "output:T", "axis:i=0",
            PLAIN " Tind=i32,i64", infer_gather_elements, NULL, ORTC_OP_PICKS),
    ORTC_OP("", "GatherND", 13, 11, "12 11", "data:T indices:i64", "output:T", "batch_dims:i=0", PLAIN,
            infer_gather_nd, NULL, ORTC_OP_PICKS),
    ORTC_OP("", "ScatterElements", 18, 11, "16 13 11", "data:T indices:Tind updates:T", "output:T",
            "axis:i=0 reduction:s=none", PLAIN " Tind=i32,i64", infer_scatter_elements, NULL, 0),
    ORTC_OP("", "ScatterND", 18, 11, "16 13 11", "data:T indices:i64 updates:T", "output:T",
            "reduction:s=none", PLAIN, infer_scatter_nd, NULL, 0),
    ORTC_OP("", "Scatter", 11, 11, "9", "data:T indices:Tind updates:T", "output:T", "axis:i=0",
            PLAIN " Tind=i32,i64", infer_scatter_elements, lift_scatter, 0),
};
ORTC_FAMILY(index, ops, &ortc_kernels_ref_index, &ortc_kernels_cpu_index);
