/* kernels/select/op.c: operators whose result is as long as the data says: NonZero, Compress, Unique,
 * NonMaxSuppression: schemas and what can be said of their shapes. */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_select, ortc_kernels_cpu_select;

static ortc_status infer_nonzero(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    const ortc_dim dims[2] = {x.rank, ORTC_DIM_UNKNOWN};
    return x.rank < 0 ? ortc_infer_out(c, 0, ORTC_I64, -1, NULL) : ortc_infer_out(c, 0, ORTC_I64, 2, dims);
}

static ortc_status infer_compress(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), condition = ortc_infer_in(c, 1);
    const ortc_attr at = ortc_node_attr(ortc_infer_node(c), "axis");
    ortc_dim dims[ORTC_RANK_LIMIT];
    int32_t axis = 0;
    if (condition.rank >= 0 && condition.rank != 1)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "condition has rank %d, expected 1", condition.rank);
    dims[0] = ORTC_DIM_UNKNOWN;
    if (at.kind != ORTC_ATTR_INT) return ortc_infer_out(c, 0, x.dtype, 1, dims);
    if (x.rank < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    ORTC_TRY(ortc_infer_axis(c, at.i, x.rank, &axis));
    ortc_copy_dims(dims, x.dims, x.rank);
    dims[axis] = ORTC_DIM_UNKNOWN;
    return ortc_infer_out(c, 0, x.dtype, x.rank, dims);
}

static ortc_status infer_unique(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    const ortc_attr at = ortc_node_attr(ortc_infer_node(c), "axis");
    const bool flat = at.kind != ORTC_ATTR_INT;
    const ortc_dim found = ORTC_DIM_UNKNOWN;
    ortc_dim dims[ORTC_RANK_LIMIT], all = ORTC_DIM_UNKNOWN;
    int32_t axis = 0;
    dims[0] = found;
    if (x.rank >= 0 && flat) all = ortc_dims_product(c, x.dims, x.rank);
    if (x.rank >= 0 && !flat) {
        ORTC_TRY(ortc_infer_axis(c, at.i, x.rank, &axis));
        ortc_copy_dims(dims, x.dims, x.rank);
        all = dims[axis];
        dims[axis] = found;
    }
    ORTC_TRY(ortc_infer_out(c, 0, x.dtype, flat ? 1 : x.rank, dims));
    ORTC_TRY(ortc_infer_out(c, 1, ORTC_I64, 1, &found));
    ORTC_TRY(ortc_infer_out(c, 2, ORTC_I64, 1, &all));
    return ortc_infer_out(c, 3, ORTC_I64, 1, &found);
}

static ortc_status infer_nms(ortc_infer *c)
{
    const ortc_port boxes = ortc_infer_in(c, 0), scores = ortc_infer_in(c, 1);
    const ortc_dim dims[2] = {ORTC_DIM_UNKNOWN, 3};
    ortc_dim same;
    if ((boxes.rank >= 0 && boxes.rank != 3) || (scores.rank >= 0 && scores.rank != 3))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "boxes and scores have ranks %d and %d, expected 3",
                               boxes.rank, scores.rank);
    if (boxes.rank == 3 && boxes.dims[2] >= 0 && boxes.dims[2] != 4)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "boxes have %lld coordinates, expected 4",
                               (long long)boxes.dims[2]);
    if (boxes.rank == 3 && scores.rank == 3) {
        ORTC_TRY(
            ortc_infer_same(c, "boxes and scores differ in the batch", boxes.dims[0], scores.dims[0], &same));
        ORTC_TRY(ortc_infer_same(c, "boxes and scores differ in the number of boxes", boxes.dims[1],
                                 scores.dims[2], &same));
    }
    return ortc_infer_out(c, 0, ORTC_I64, 2, dims);
}

#define PLAIN "T=num,bool,string,c64,c128"
static const ortc_op ops[] = {
    ORTC_OP("", "NonZero", 13, 9, "9", "X:T", "Y:i64", "", "T=all", infer_nonzero, NULL, 0),
    ORTC_OP("", "Compress", 28, 9, "11 9", "input:T condition:T1", "output:T", "axis:i?", PLAIN " T1=bool",
            infer_compress, NULL, 0),
    ORTC_OP("", "Unique", 28, 11, "11", "X:T", "Y:T indices:i64? inverse_indices:i64? counts:i64?",
            "axis:i? sorted:i=1", PLAIN, infer_unique, NULL, 0),
    ORTC_OP("", "NonMaxSuppression", 11, 10, "10",
            "boxes:f32 scores:f32 max_output_boxes_per_class:i64? iou_threshold:f32? score_threshold:f32?",
            "selected_indices:i64", "center_point_box:i=0", "", infer_nms, NULL, 0),
};
ORTC_FAMILY(select, ops, &ortc_kernels_ref_select, &ortc_kernels_cpu_select);
