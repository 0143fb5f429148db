/* kernels/shape/op_move.c: shapes of operators that move elements: Transpose, Concat, Split, Slice, Expand,
 * ConstantOfShape. Slice and Concat pass small integer values along.
 */
#include <stdio.h>

#include "kernels/shape/shape_ops.h"

/* ---- Transpose ----------------------------------------------------------------------------------------- */

ortc_status ortc_infer_transpose(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    ortc_dim dims[ORTC_RANK_LIMIT];
    bool used[ORTC_RANK_LIMIT] = {false};
    size_t count;
    const int64_t *perm = ortc_node_ints(ortc_infer_node(c), "perm", &count);
    if (x.rank < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    if (perm && count != (size_t)x.rank)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "perm has %zu elements, the input has rank %d", count,
                               x.rank);
    for (int32_t d = 0; d < x.rank; d++) {
        const int64_t from = perm ? perm[d] : x.rank - 1 - d;
        if (from < 0 || from >= x.rank || used[from])
            return ortc_infer_fail(c, ORTC_INVALID_MODEL, "perm is not a permutation of 0 .. %d", x.rank - 1);
        used[from] = true;
        dims[d] = x.dims[from];
    }
    return ortc_infer_out(c, 0, x.dtype, x.rank, dims);
}

/* ---- Concat, Split ------------------------------------------------------------------------------------- */

static ortc_status concat_values(ortc_infer *c, uint32_t n)
{
    ortc_dim out[ORTC_VALUES_LIMIT];
    int64_t total = 0, count;
    for (uint32_t i = 0; i < n; i++) {
        const ortc_dim *v = ortc_infer_vector(c, i, &count);
        if (!v && !(ortc_infer_in(c, i).rank == 1 && ortc_infer_in(c, i).dims[0] == 0)) return ORTC_OK;
        if (total + count > ORTC_VALUES_LIMIT) return ORTC_OK;
        for (int64_t k = 0; k < count; k++) out[total++] = v[k];
    }
    return ortc_infer_out_values(c, 0, total, out);
}

ortc_status ortc_infer_concat(ortc_infer *c)
{
    const uint32_t n = ortc_node_n_in(ortc_infer_node(c));
    const ortc_dtype t = ortc_infer_in(c, 0).dtype;
    ortc_dim dims[ORTC_RANK_LIMIT], along = 0;
    int32_t rank = -1, axis = 0;
    bool every = true; /* the rank of every input is known */
    for (uint32_t i = 0; i < n; i++) {
        const ortc_port p = ortc_infer_in(c, i);
        every &= p.rank >= 0;
        if (p.rank < 0) continue;
        if (rank < 0) {
            rank = p.rank;
            ORTC_TRY(ortc_infer_axis(c, ortc_node_int(ortc_infer_node(c), "axis", 0), rank, &axis));
            ortc_copy_dims(dims, p.dims, rank);
        }
        if (p.rank != rank)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "input %u has rank %d, input 0 has %d", i, p.rank,
                                   rank);
        for (int32_t d = 0; d < rank; d++)
            if (d != axis)
                ORTC_TRY(ortc_infer_same(c, "inputs differ in a dim beside the axis", dims[d], p.dims[d],
                                         &dims[d]));
        along = ortc_dim_add(c, along, p.dims[axis]);
    }
    if (rank < 0) return ortc_infer_out(c, 0, t, -1, NULL);
    dims[axis] = every ? along : ORTC_DIM_UNKNOWN;
    ORTC_TRY(ortc_infer_out(c, 0, t, rank, dims));
    return rank == 1 && every ? concat_values(c, n) : ORTC_OK;
}

/* Concat-1 had an axis of 1 where none is given. */
ortc_status ortc_lift_concat(ortc_lift *l)
{
    return ortc_node_attr(ortc_lift_node(l), "axis").kind ? ORTC_OK : ortc_lift_set_int(l, "axis", 1);
}

ortc_status ortc_infer_split(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    const ortc_node *n = ortc_infer_node(c);
    const int64_t parts = ortc_node_n_out(n), said = ortc_node_int(n, "num_outputs", parts);
    ortc_dim dims[ORTC_RANK_LIMIT];
    int32_t axis = 0;
    /* of a known extent: what no part has taken yet; a sum of parts might overflow */
    int64_t count = 0, left = -1;
    const bool listed = ortc_infer_in(c, 1).type != NULL;
    const ortc_dim *sizes = listed ? ortc_infer_vector(c, 1, &count) : NULL;
    if (said != parts)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "num_outputs is %lld, the node has %lld",
                               (long long)said, (long long)parts);
    if (sizes && count != parts)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "split has %lld elements for %lld outputs",
                               (long long)count, (long long)parts);
    if (x.rank >= 0) {
        ORTC_TRY(ortc_infer_axis(c, ortc_node_int(n, "axis", 0), x.rank, &axis));
        left = x.dims[axis];
    }
    for (int64_t i = 0; i < parts; i++) {
        if (x.rank < 0) {
            ORTC_TRY(ortc_infer_out(c, (uint32_t)i, x.dtype, -1, NULL));
            continue;
        }
        ortc_copy_dims(dims, x.dims, x.rank);
        if (listed) {
            dims[axis] = sizes ? sizes[i] : ORTC_DIM_UNKNOWN;
            if (ortc_dim_is_number(dims[axis]) && dims[axis] < 0)
                return ortc_infer_fail(c, ORTC_INVALID_MODEL, "split[%lld] is %lld", (long long)i,
                                       (long long)dims[axis]);
            if (ortc_dim_is_number(dims[axis]) && left >= 0 && dims[axis] > left)
                return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                                       "split[%lld] is %lld, of the input's %lld elements %lld are left",
                                       (long long)i, (long long)dims[axis], (long long)x.dims[axis],
                                       (long long)left);
            left = ortc_dim_is_number(dims[axis]) && left >= 0 ? left - dims[axis] : -1;
        } else { /* equal parts, the last may be smaller */
            const ortc_dim part = ortc_dim_ceil_div(c, x.dims[axis], parts),
                           before = ortc_dim_mul(c, part, i);
            dims[axis] = i + 1 < parts ? part : ortc_dim_sub(c, x.dims[axis], before);
            if (ortc_dim_is_number(dims[axis]) && dims[axis] < 0)
                return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "%lld elements cannot be split in %lld parts",
                                       (long long)x.dims[axis], (long long)parts);
        }
        ORTC_TRY(ortc_infer_out(c, (uint32_t)i, x.dtype, x.rank, dims));
    }
    if (sizes && left > 0)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "split takes %lld elements, the input has %lld",
                               (long long)(x.dims[axis] - left), (long long)x.dims[axis]);
    return ORTC_OK;
}

/* Version 1 had the lengths as an input of the type of the data. */
static ortc_status split_by_floats(ortc_lift *l)
{
    const uint32_t parts = ortc_node_n_out(ortc_lift_node(l));
    char names[1024];
    size_t at = 0;
    if (parts > 64) return ortc_lift_fail(l, ORTC_LIMIT, "%u parts by the input split, at most 64", parts);
    for (uint32_t i = 0; i < parts; i++)
        at += (size_t)snprintf(names + at, sizeof names - at, "%soutputs[%u]", i ? ", " : "", i);
    return ortc_lift_write(l, "sizes = Cast(split) to=7\n%s = Split(input, sizes) &axis", names);
}

ortc_status ortc_lift_split(ortc_lift *l)
{
    size_t n;
    const int64_t *split = ortc_node_ints(ortc_lift_node(l), "split", &n);
    const int64_t count = (int64_t)n;
    if (ortc_lift_version(l) == 1 && ortc_node_in(ortc_lift_node(l), 1).type) return split_by_floats(l);
    if (split) ORTC_TRY(ortc_lift_const_in(l, 1, ORTC_I64, 1, &count, split));
    ortc_lift_drop_attr(l, "split");
    return ORTC_OK;
}

/* ---- Expand, ConstantOfShape --------------------------------------------------------------------------- */

ortc_status ortc_infer_expand(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), shape = ortc_infer_in(c, 1);
    ortc_dim dims[ORTC_RANK_LIMIT];
    int64_t count;
    const ortc_dim *to = ortc_infer_vector(c, 1, &count);
    if (!to && shape.rank == 1) count = shape.dims[0];
    if (x.rank < 0 || (!to && shape.rank != 1) || count < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    if (count > ORTC_RANK_LIMIT)
        return ortc_infer_fail(c, ORTC_LIMIT, "shape has %lld dims", (long long)count);
    const int32_t rank = count > x.rank ? (int32_t)count : x.rank;
    for (int32_t d = 0; d < rank; d++) {
        const int32_t i = d - (rank - x.rank), k = d - (rank - (int32_t)count);
        const ortc_dim a = i >= 0 ? x.dims[i] : 1, b = k < 0 ? 1 : to ? to[k] : ORTC_DIM_UNKNOWN;
        if (ortc_dim_is_number(b) && b < 0)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "shape[%d] is %lld", k, (long long)b);
        if (a >= 0 && b >= 0 && a != b && a != 1 && b != 1)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "%lld elements in dim %d do not expand to %lld",
                                   (long long)a, d, (long long)b);
        dims[d] = ortc_dim_broadcast(c, a, b);
    }
    return ortc_infer_out(c, 0, x.dtype, rank, dims);
}

ortc_status ortc_infer_constant_of_shape(ortc_infer *c)
{
    const ortc_port shape = ortc_infer_in(c, 0);
    const ortc_attr value = ortc_node_attr(ortc_infer_node(c), "value");
    const ortc_dtype t = value.kind == ORTC_ATTR_TENSOR ? value.u.tensors[0].dtype : ORTC_F32;
    ortc_dim dims[ORTC_RANK_LIMIT], out[ORTC_VALUES_LIMIT];
    int64_t count;
    const ortc_dim *to = ortc_infer_vector(c, 0, &count);
    if (!to && shape.rank == 1) count = shape.dims[0];
    if ((!to && shape.rank != 1) || count < 0) return ortc_infer_out(c, 0, t, -1, NULL);
    if (count > ORTC_RANK_LIMIT)
        return ortc_infer_fail(c, ORTC_LIMIT, "shape has %lld dims", (long long)count);
    for (int64_t d = 0; d < count; d++) {
        dims[d] = to ? to[d] : ORTC_DIM_UNKNOWN;
        if (ortc_dim_is_number(dims[d]) && dims[d] < 0)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "shape[%lld] is %lld", (long long)d,
                                   (long long)dims[d]);
    }
    ORTC_TRY(ortc_infer_out(c, 0, t, (int32_t)count, dims));
    if ((t != ORTC_I64 && t != ORTC_I32) || count > 1 ||
        (count == 1 && (dims[0] < 0 || dims[0] > ORTC_VALUES_LIMIT)))
        return ORTC_OK;
    const int64_t n = count == 1 ? dims[0] : 1,
                  v = value.u.tensors[0].data ? ortc_load_i64(value.u.tensors[0].data, t, 0) : 0;
    for (int64_t i = 0; i < n; i++) out[i] = ortc_dim_is_number(v) ? v : ORTC_DIM_UNKNOWN;
    return ortc_infer_out_values(c, 0, n, out);
}
