/* kernels/sample/op.c: operators that read an image between its pixels: GridSample, AffineGrid, RoiAlign,
 * MaxRoiPool, DeformConv: schemas, shapes, older forms. */
#include "kernels/common/window.h"

extern const ortc_kernel_table ortc_kernels_ref_sample, ortc_kernels_cpu_sample;

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

/* X [N, C, H, W], rois [R, 5]: the image, x and y of the first and of the last pixel. */
static ortc_status infer_roi_pool(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), rois = ortc_infer_in(c, 1);
    size_t count;
    const int64_t *pooled = ortc_node_ints(ortc_infer_node(c), "pooled_shape", &count);
    ortc_dim n = ORTC_DIM_UNKNOWN, same;
    if ((x.rank >= 0 && x.rank != 4) || (rois.rank >= 0 && rois.rank != 2))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "X and rois have ranks %d and %d, expected 4 and 2",
                               x.rank, rois.rank);
    if (count != 2 || pooled[0] < 1 || pooled[1] < 1)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "attribute pooled_shape is not a height and a width");
    if (rois.rank == 2) {
        ORTC_TRY(ortc_infer_same(c, "a region has five numbers", rois.dims[1], 5, &same));
        n = rois.dims[0];
    }
    const ortc_dim dims[4] = {n, x.rank < 0 ? ORTC_DIM_UNKNOWN : x.dims[1], pooled[0], pooled[1]};
    return ortc_infer_out(c, 0, x.dtype, 4, dims);
}

/* theta [N, k, k + 1] and the image's shape [N, C, D1 .. Dk], k is 2 or 3. */
static ortc_status infer_affine(ortc_infer *c)
{
    const ortc_port theta = ortc_infer_in(c, 0), size = ortc_infer_in(c, 1);
    ortc_dim dims[5], same;
    int64_t n, k = theta.rank == 3 && theta.dims[1] >= 0 ? theta.dims[1] : -1;
    const ortc_dim *v = ortc_infer_vector(c, 1, &n);
    if ((theta.rank >= 0 && theta.rank != 3) || (size.rank >= 0 && size.rank != 1))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "theta and size have ranks %d and %d, expected 3 and 1", theta.rank,
                               size.rank);
    if (v || (size.rank == 1 && size.dims[0] >= 0)) {
        n = v ? n : size.dims[0];
        if (k >= 0 && n != k + 2)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "theta is for %lld dims, size has %lld elements",
                                   (long long)k, (long long)n);
        k = n - 2;
    }
    if (k < 0) return ortc_infer_out(c, 0, theta.dtype, -1, NULL);
    if (k != 2 && k != 3)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "a grid has 2 or 3 dims, not %lld", (long long)k);
    dims[0] = v ? v[0] : ORTC_DIM_UNKNOWN;
    if (theta.rank == 3) {
        ORTC_TRY(ortc_infer_same(c, "rows of theta", theta.dims[1], k, &same));
        ORTC_TRY(ortc_infer_same(c, "columns of theta", theta.dims[2], k + 1, &same));
        ORTC_TRY(ortc_infer_same(c, "theta and size differ in the batch", dims[0], theta.dims[0], &dims[0]));
    }
    for (int64_t d = 0; d < k; d++) {
        dims[d + 1] = v ? v[d + 2] : ORTC_DIM_UNKNOWN;
        if (ortc_dim_is_number(dims[d + 1]) && dims[d + 1] < 0)
            return ortc_infer_fail(c, ORTC_INVALID_MODEL, "size has a negative element");
    }
    dims[k + 1] = k;
    return ortc_infer_out(c, 0, theta.dtype, (int32_t)k + 2, dims);
}

/* Extents of the window come from the attribute or from W, those of the result from offset, which the formula
 * must agree with. */
static ortc_status infer_deform(ortc_infer *c)
{
    const ortc_node *node = ortc_infer_node(c);
    const ortc_port x = ortc_infer_in(c, 0), w = ortc_infer_in(c, 1), offset = ortc_infer_in(c, 2),
                    bias = ortc_infer_in(c, 3), mask = ortc_infer_in(c, 4);
    const int64_t group = ortc_node_int(node, "group", 1),
                  offset_group = ortc_node_int(node, "offset_group", 1);
    ortc_dim dims[ORTC_RANK_LIMIT], same, elements = 1;
    ortc_window window;
    if (group < 1 || offset_group < 1 || group > INT32_MAX || offset_group > INT32_MAX)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "group and offset_group are %lld and %lld",
                               (long long)group, (long long)offset_group);
    if (x.rank < 0 || w.rank < 0 || offset.rank < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    if (x.rank < 3 || w.rank != x.rank || offset.rank != x.rank || (mask.rank >= 0 && mask.rank != x.rank) ||
        (bias.rank >= 0 && bias.rank != 1))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "X, W and offset have ranks %d, %d and %d", x.rank,
                               w.rank, offset.rank);
    ORTC_TRY(ortc_infer_window(c, x.rank - 2, &window));
    ORTC_TRY(ortc_infer_same(c, "channels of X, and of W in all groups", x.dims[1],
                             ortc_dim_mul(c, w.dims[1], group), &same));
    if ((x.dims[1] >= 0 && x.dims[1] % offset_group) || (w.dims[0] >= 0 && w.dims[0] % group))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "channels do not fall into %lld and %lld groups",
                               (long long)group, (long long)offset_group);
    ORTC_TRY(ortc_infer_same(c, "X and offset differ in the batch", x.dims[0], offset.dims[0], &dims[0]));
    if (mask.rank >= 0)
        ORTC_TRY(ortc_infer_same(c, "X and mask differ in the batch", x.dims[0], mask.dims[0], &same));
    if (bias.rank == 1) ORTC_TRY(ortc_infer_same(c, "B and W", bias.dims[0], w.dims[0], &same));
    dims[1] = w.dims[0];
    for (int32_t d = 2; d < x.rank; d++) {
        ortc_dim kernel = w.dims[d], out = ORTC_DIM_UNKNOWN;
        if (window.has_kernel)
            ORTC_TRY(ortc_infer_same(c, "kernel_shape and W", window.kernel[d - 2], kernel, &kernel));
        if (kernel >= 0) {
            if (kernel < 1 || kernel > INT32_MAX)
                return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "W has %lld elements in dim %d",
                                       (long long)kernel, d);
            window.kernel[d - 2] = kernel;
            ORTC_TRY(ortc_infer_window_out(c, &window, d - 2, x.dims[d], &out));
        }
        elements = ortc_dim_mul(c, elements, kernel);
        ORTC_TRY(ortc_infer_same(c, "elements of the result, and of offset", out, offset.dims[d], &dims[d]));
        if (mask.rank >= 0)
            ORTC_TRY(ortc_infer_same(c, "elements of the result, and of mask", out, mask.dims[d], &same));
    }
    elements = ortc_dim_mul(c, elements, offset_group);
    if (mask.rank >= 0) ORTC_TRY(ortc_infer_same(c, "elements of mask", mask.dims[1], elements, &same));
    ORTC_TRY(ortc_infer_same(c, "elements of offset", offset.dims[1], ortc_dim_mul(c, elements, x.rank - 2),
                             &same));
    return ortc_infer_out(c, 0, x.dtype, x.rank, dims);
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
    ORTC_OP("", "MaxRoiPool", 22, 1, "1", "X:T rois:T", "Y:T", "pooled_shape:is! spatial_scale:f=1",
            "T=float", infer_roi_pool, NULL, 0),
    ORTC_OP("", "AffineGrid", 20, 20, "", "theta:T1 size:T2!", "grid:T1", "align_corners:i=0",
            "T1=float T2=i64", infer_affine, NULL, 0),
    ORTC_OP("", "DeformConv", 22, 19, "19", "X:T W:T offset:T B:T? mask:T?", "Y:T",
            "dilations:is? group:i=1 kernel_shape:is? offset_group:i=1 pads:is? strides:is?", "T=float",
            infer_deform, NULL, ORTC_OP_HEAVY),
};
ORTC_FAMILY(sample, ops, &ortc_kernels_ref_sample, &ortc_kernels_cpu_sample);
