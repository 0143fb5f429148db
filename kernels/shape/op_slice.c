/* kernels/shape/op_slice.c: Slice: which elements a range takes, for its shape function and its kernel.
 *
 * Starts and ends count from the end where they are negative and are clamped to the dim, so that "to the end"
 * is any large number.
 */
#include "kernels/shape/shape_ops.h"

/* Where a bound lies in a dim that is a symbol, stepping forwards. */
static ortc_dim bound(ortc_infer *c, ortc_dim extent, ortc_dim at)
{
    if (at == extent || (ortc_dim_is_number(at) && at >= INT32_MAX)) /* "to the end" */
        return extent;
    if (at == 0 || (ortc_dim_is_number(at) && at <= -INT32_MAX)) return 0;
    if (ortc_dim_is_number(at) && at < 0) return ortc_dim_max(c, ortc_dim_add(c, extent, at), 0);
    return ortc_dim_min(c, at, extent);
}

static ortc_dim symbolic_count(ortc_infer *c, ortc_dim extent, ortc_dim start, ortc_dim end, ortc_dim step)
{
    if (!ortc_dim_is_number(step) || extent == ORTC_DIM_UNKNOWN || start == ORTC_DIM_UNKNOWN ||
        end == ORTC_DIM_UNKNOWN)
        return ORTC_DIM_UNKNOWN;
    if (step < 0) /* only the whole dim backwards */
        return start == -1 && ortc_dim_is_number(end) && end <= -INT32_MAX
                   ? ortc_dim_ceil_div(c, extent, -step)
                   : ORTC_DIM_UNKNOWN;
    const ortc_dim first = bound(c, extent, start), behind = bound(c, extent, end);
    if (first == 0) return ortc_dim_ceil_div(c, behind, step);
    return ortc_dim_ceil_div(c, ortc_dim_max(c, ortc_dim_sub(c, behind, first), 0), step);
}

/* The values of a vector of integers, sliced. */
static ortc_status slice_values(ortc_infer *c, ortc_dim start, ortc_dim end, ortc_dim step)
{
    int64_t n, first;
    ortc_dim out[ORTC_VALUES_LIMIT];
    const ortc_dim *v = ortc_infer_vector(c, 0, &n);
    if (!v || n > ORTC_VALUES_LIMIT || !ortc_dim_is_number(start) || !ortc_dim_is_number(end) ||
        !ortc_dim_is_number(step))
        return ORTC_OK;
    const int64_t count = ortc_slice_count(n, start, end, step, &first);
    for (int64_t i = 0; i < count; i++) out[i] = v[first + i * step];
    return ortc_infer_out_values(c, 0, count, out);
}

ortc_status ortc_infer_slice(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    int64_t n, n_ends, n_axes, n_steps;
    const ortc_dim *starts = ortc_infer_vector(c, 1, &n), *ends = ortc_infer_vector(c, 2, &n_ends);
    const ortc_dim *axes = ortc_infer_vector(c, 3, &n_axes), *steps = ortc_infer_vector(c, 4, &n_steps);
    const bool has_axes = ortc_infer_in(c, 3).type != NULL, has_steps = ortc_infer_in(c, 4).type != NULL;
    ortc_dim dims[ORTC_RANK_LIMIT];
    bool seen[ORTC_RANK_LIMIT] = {false};
    if (x.rank < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    if ((starts && ends && n != n_ends) || (starts && axes && n != n_axes) ||
        (starts && steps && n != n_steps) || (starts && !has_axes && n > x.rank))
        return ortc_infer_fail(c, ORTC_INVALID_MODEL,
                               "starts, ends, axes and steps differ in length or exceed rank %d", x.rank);
    if (!starts || !ends ||
        (has_axes && !axes)) { /* which dims stay as they are is not known, or what of them */
        for (int32_t d = 0; d < x.rank; d++) dims[d] = ORTC_DIM_UNKNOWN;
        if (has_axes && axes) {
            ortc_copy_dims(dims, x.dims, x.rank);
            for (int64_t i = 0; i < n_axes; i++) {
                int32_t axis = 0;
                ORTC_TRY(ortc_infer_axis(c, axes[i], x.rank, &axis));
                dims[axis] = ORTC_DIM_UNKNOWN;
            }
        }
        return ortc_infer_out(c, 0, x.dtype, x.rank, dims);
    }
    ortc_copy_dims(dims, x.dims, x.rank);
    for (int64_t i = 0; i < n; i++) {
        int32_t axis = 0;
        const ortc_dim step = !has_steps ? 1 : steps ? steps[i] : ORTC_DIM_UNKNOWN;
        int64_t first;
        ORTC_TRY(ortc_infer_axis(c, axes ? axes[i] : i, x.rank, &axis));
        if (seen[axis] || step == 0)
            return ortc_infer_fail(c, ORTC_INVALID_MODEL,
                                   seen[axis] ? "axis %d is given twice" : "the step of axis %d is 0", axis);
        seen[axis] = true;
        if (x.dims[axis] >= 0 && ortc_dim_is_number(starts[i]) && ortc_dim_is_number(ends[i]) &&
            ortc_dim_is_number(step))
            dims[axis] = ortc_slice_count(x.dims[axis], starts[i], ends[i], step, &first);
        else
            dims[axis] = symbolic_count(c, x.dims[axis], starts[i], ends[i], step);
    }
    ORTC_TRY(ortc_infer_out(c, 0, x.dtype, x.rank, dims));
    return n == 1 && x.rank == 1 ? slice_values(c, starts[0], ends[0],
                                                !has_steps ? 1
                                                : steps    ? steps[0]
                                                           : ORTC_DIM_UNKNOWN)
                                 : ORTC_OK;
}

/* Slice-1 had its ranges as attributes. */
ortc_status ortc_lift_slice(ortc_lift *l)
{
    static const char *const names[] = {"starts", "ends", "axes"};
    for (uint32_t i = 0; i < 3; i++) {
        size_t n;
        const int64_t *v = ortc_node_ints(ortc_lift_node(l), names[i], &n);
        const int64_t count = (int64_t)n;
        if (v || i < 2) ORTC_TRY(ortc_lift_const_in(l, i + 1, ORTC_I64, 1, &count, v ? v : &count));
        ortc_lift_drop_attr(l, names[i]);
    }
    return ORTC_OK;
}
