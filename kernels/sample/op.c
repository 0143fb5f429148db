/* kernels/sample/op.c: operators that read an image between its pixels: GridSample, RoiAlign: schemas,
 * shapes, older forms. */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_sample;

/* X [N, C, D1 .. Dk], grid [N, O1 .. Ok, k]. */
static ortc_status infer_grid(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), grid = ortc_infer_in(c, 1);
    ortc_dim dims[ORTC_RANK_LIMIT], same;
    if (x.rank < 0 || grid.rank < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    if (x.rank < 3 || grid.rank != x.rank)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "X has rank %d and grid %d, expected the same of 3 at least", x.rank,
                               grid.rank);
    ORTC_TRY(ortc_infer_same(c, "X and grid differ in the batch", x.dims[0], grid.dims[0], &dims[0]));
    ORTC_TRY(
        ortc_infer_same(c, "coordinates in grid and spatial dims", grid.dims[x.rank - 1], x.rank - 2, &same));
    dims[1] = x.dims[1];
    for (int32_t d = 2; d < x.rank; d++) dims[d] = grid.dims[d - 1];
    return ortc_infer_out(c, 0, x.dtype, x.rank, dims);
}

/* Version 16 named the modes after two dims. */
static ortc_status lift_grid(ortc_lift *l)
{
    const char *mode = ortc_node_string(ortc_lift_node(l), "mode", "bilinear");
    return !strcmp(mode, "bilinear")  ? ortc_lift_set_string(l, "mode", "linear")
           : !strcmp(mode, "bicubic") ? ortc_lift_set_string(l, "mode", "cubic")
                                      : ORTC_OK;
}

/* X [N, C, H, W], rois [R, 4], batch_indices [R]. */
static ortc_status infer_roi(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), rois = ortc_infer_in(c, 1), batch = ortc_infer_in(c, 2);
    const int64_t h = ortc_node_int(ortc_infer_node(c), "output_height", 1),
                  w = ortc_node_int(ortc_infer_node(c), "output_width", 1);
    ortc_dim n = ORTC_DIM_UNKNOWN, same;
    if ((x.rank >= 0 && x.rank != 4) || (rois.rank >= 0 && rois.rank != 2) ||
        (batch.rank >= 0 && batch.rank != 1))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "X, rois and batch_indices have ranks %d, %d and %d, expected 4, 2 and 1",
                               x.rank, rois.rank, batch.rank);
    if (h < 1 || w < 1)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "the output is %lld x %lld", (long long)h,
                               (long long)w);
    if (rois.rank == 2) {
        ORTC_TRY(ortc_infer_same(c, "a region has four coordinates", rois.dims[1], 4, &same));
        n = rois.dims[0];
    }
    if (batch.rank == 1) ORTC_TRY(ortc_infer_same(c, "regions and batch_indices", n, batch.dims[0], &n));
    const ortc_dim dims[4] = {n, x.rank < 0 ? ORTC_DIM_UNKNOWN : x.dims[1], h, w};
    return ortc_infer_out(c, 0, x.dtype, 4, dims);
}

/* Before 16 the first pixel's corner was the origin. */
static ortc_status lift_roi(ortc_lift *l)
{
    return ortc_lift_set_string(l, "coordinate_transformation_mode", "output_half_pixel");
}

static const ortc_op ops[] = {
    ORTC_OP("", "GridSample", 22, 20, "20 16", "X:T1 grid:T2", "Y:T1",
            "align_corners:i=0 mode:s=linear padding_mode:s=zeros", "T1=num,bool,string,c64,c128 T2=float",
            infer_grid, lift_grid, 0),
    ORTC_OP("", "RoiAlign", 22, 16, "16 10", "X:T1 rois:T1 batch_indices:T2", "Y:T1",
            "coordinate_transformation_mode:s=half_pixel mode:s=avg output_height:i=1 output_width:i=1 "
            "sampling_ratio:i=0 "
            "spatial_scale:f=1",
            "T1=float T2=i64", infer_roi, lift_roi, 0),
};
ORTC_FAMILY(sample, ops, &ortc_kernels_ref_sample);
