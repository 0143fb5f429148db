/* kernels/rearrange/op_pad.c: Pad and CenterCropPad: shapes, and Pad's older forms (pads as an attribute,
 * which version 1 called paddings).
 */
#include "kernels/rearrange/rearrange.h"

/* An axis for each element of the list `axes`, or all in order. false: not known. */
static ortc_status listed_axes(ortc_infer *c, int32_t rank, int32_t *list, int64_t *count, bool *known)
{
    bool mask[ORTC_RANK_LIMIT];
    int state;
    int64_t n = 0;
    ORTC_TRY(ortc_infer_axes(c, 3, rank, mask, &state, &n));
    const ortc_dim *axes = state == ORTC_AXES_KNOWN ? ortc_infer_vector(c, 3, &n) : NULL;
    *known = state != ORTC_AXES_UNKNOWN;
    *count = state == ORTC_AXES_KNOWN ? n : rank;
    for (int64_t i = 0; i < *count; i++) {
        list[i] = (int32_t)i;
        if (axes) ortc_axis_of(axes[i], rank, &list[i]);
    }
    return ORTC_OK;
}

ortc_status ortc_infer_pad(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), pads = ortc_infer_in(c, 1);
    const char *mode = ortc_node_string(ortc_infer_node(c), "mode", "constant");
    const bool filled = !strcmp(mode, "constant");
    ortc_dim dims[ORTC_RANK_LIMIT];
    int32_t list[ORTC_RANK_LIMIT];
    int64_t count = 0, n;
    bool known = false;
    const ortc_dim *v = ortc_infer_vector(c, 1, &n);
    if (!filled && strcmp(mode, "reflect") != 0 && strcmp(mode, "edge") != 0 && strcmp(mode, "wrap") != 0)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL,
                               "attribute mode is '%s', expected constant, reflect, edge or wrap", mode);
    if (pads.rank > 2 || (pads.rank == 0))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "pads has rank %d, expected 1", pads.rank);
    if (x.rank < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    ORTC_TRY(listed_axes(c, x.rank, list, &count, &known));
    n = v ? n : pads.rank == 1 ? pads.dims[0] : -1;
    if (known && n >= 0 && n != 2 * count)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "pads has %lld elements, expected two for each of %lld axes", (long long)n,
                               (long long)count);
    for (int32_t d = 0; d < x.rank; d++) dims[d] = v && known ? x.dims[d] : ORTC_DIM_UNKNOWN;
    for (int64_t i = 0; v && known && i < count; i++) {
        dims[list[i]] = ortc_dim_add(c, x.dims[list[i]], ortc_dim_add(c, v[i], v[count + i]));
        if (ortc_dim_is_number(dims[list[i]]) &&
            (dims[list[i]] < 0 || (!filled && x.dims[list[i]] == 0 && dims[list[i]] > 0)))
            return ortc_infer_fail(c, ORTC_INVALID_ARGUMENT,
                                   "pads leave %lld of the %lld elements of axis %d",
                                   (long long)dims[list[i]], (long long)x.dims[list[i]], list[i]);
    }
    return ortc_infer_out(c, 0, x.dtype, x.rank, dims);
}

ortc_status ortc_lift_pad(ortc_lift *l)
{
    const char *name = ortc_lift_version(l) == 1 ? "paddings" : "pads";
    const ortc_dtype t = ortc_node_in(ortc_lift_node(l), 0).dtype;
    unsigned char value[8] = {0};
    size_t n;
    const int64_t *pads = ortc_node_ints(ortc_lift_node(l), name, &n);
    const int64_t count = (int64_t)n;
    ORTC_TRY(ortc_lift_const_in(l, 1, ORTC_I64, 1, &count, pads ? pads : &count));
    const ortc_dtype as = ortc_class_of(t) == ORTC_CLASS_FLOAT ? t : ORTC_F32;
    ortc_store_f64(value, as, 0, (double)ortc_node_float(ortc_lift_node(l), "value", 0));
    ORTC_TRY(ortc_lift_const_in(l, 2, as, 0, NULL, value));
    ortc_lift_drop_attr(l, name);
    ortc_lift_drop_attr(l, "value");
    return ORTC_OK;
}

ortc_status ortc_infer_center(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), shape = ortc_infer_in(c, 1);
    ortc_dim dims[ORTC_RANK_LIMIT];
    size_t given;
    int64_t n;
    const int64_t *axes = ortc_node_ints(ortc_infer_node(c), "axes", &given);
    const ortc_dim *v = ortc_infer_vector(c, 1, &n);
    if (x.rank < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    const int64_t count = axes ? (int64_t)given : x.rank;
    n = v ? n : shape.rank == 1 ? shape.dims[0] : -1;
    if (n >= 0 && n != count)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "shape has %lld elements for %lld axes", (long long)n,
                               (long long)count);
    ortc_copy_dims(dims, x.dims, x.rank);
    for (int64_t i = 0; i < count; i++) {
        int32_t axis = 0;
        ORTC_TRY(ortc_infer_axis(c, axes ? axes[i] : i, x.rank, &axis));
        dims[axis] = v ? v[i] : ORTC_DIM_UNKNOWN;
        if (v && ortc_dim_is_number(v[i]) && v[i] < 0)
            return ortc_infer_fail(c, ORTC_INVALID_ARGUMENT, "shape[%lld] is %lld", (long long)i,
                                   (long long)v[i]);
    }
    return ortc_infer_out(c, 0, x.dtype, x.rank, dims);
}
