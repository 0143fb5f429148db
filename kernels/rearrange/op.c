/* kernels/rearrange/op.c: operators that put a tensor's elements elsewhere: Pad and CenterCropPad (op_pad.c),
 * Tile, Trilu, ReverseSequence, DepthToSpace, SpaceToDepth, Col2Im: schemas and shapes.
 */
#include "kernels/common/window.h"
#include "kernels/rearrange/rearrange.h"

extern const ortc_kernel_table ortc_kernels_ref_rearrange, ortc_kernels_cpu_rearrange;

static ortc_status infer_tile(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), repeats = ortc_infer_in(c, 1);
    ortc_dim dims[ORTC_RANK_LIMIT];
    int64_t n;
    const ortc_dim *v = ortc_infer_vector(c, 1, &n);
    if (x.rank < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    n = v ? n : repeats.rank == 1 ? repeats.dims[0] : -1;
    if (repeats.rank > 1 || (n >= 0 && n != x.rank))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "repeats has %lld elements, the input has rank %d",
                               (long long)n, x.rank);
    for (int32_t d = 0; d < x.rank; d++) {
        if (v && ortc_dim_is_number(v[d]) && v[d] < 0)
            return ortc_infer_fail(c, ORTC_INVALID_ARGUMENT, "repeats[%d] is %lld", d, (long long)v[d]);
        dims[d] = v ? ortc_dim_mul(c, x.dims[d], v[d]) : ORTC_DIM_UNKNOWN;
    }
    return ortc_infer_out(c, 0, x.dtype, x.rank, dims);
}

static ortc_status infer_trilu(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), k = ortc_infer_in(c, 1);
    if (x.rank == 0 || x.rank == 1)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the input has rank %d, expected 2 at least", x.rank);
    if (k.type && (k.rank > 1 || (k.rank == 1 && k.dims[0] >= 0 && k.dims[0] != 1)))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "k is not one number");
    return ortc_infer_like(c, 0, 0);
}

static ortc_status infer_reverse(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), lengths = ortc_infer_in(c, 1);
    const int64_t batch = ortc_node_int(ortc_infer_node(c), "batch_axis", 1),
                  time = ortc_node_int(ortc_infer_node(c), "time_axis", 0);
    ortc_dim same;
    if (batch < 0 || batch > 1 || time != 1 - batch)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL,
                               "batch_axis and time_axis are %lld and %lld, expected 0 and 1",
                               (long long)batch, (long long)time);
    if (x.rank >= 0 && x.rank < 2)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the input has rank %d, expected 2 at least", x.rank);
    if (lengths.rank >= 0 && lengths.rank != 1)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "sequence_lens has rank %d, expected 1", lengths.rank);
    if (x.rank >= 0 && lengths.rank == 1)
        ORTC_TRY(ortc_infer_same(c, "sequence_lens is not as long as the batch", lengths.dims[0],
                                 x.dims[batch], &same));
    return ortc_infer_like(c, 0, 0);
}

/* DepthToSpace and SpaceToDepth: blocks of b x b elements against channels. */
static ortc_status infer_depth(ortc_infer *c)
{
    const ortc_node *n = ortc_infer_node(c);
    const ortc_port x = ortc_infer_in(c, 0);
    const int64_t b = ortc_node_int(n, "blocksize", 0);
    const bool to_space = ortc_node_op(n)[0] == 'D';
    const char *mode = ortc_node_string(n, "mode", "DCR");
    if (b < 1 || b > INT32_MAX / 2)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "blocksize is %lld", (long long)b);
    if (strcmp(mode, "DCR") != 0 && strcmp(mode, "CRD") != 0)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "attribute mode is '%s', expected DCR or CRD", mode);
    if (x.rank >= 0 && x.rank != 4)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the input has rank %d, expected 4", x.rank);
    if (x.rank < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    if ((to_space && x.dims[1] >= 0 && x.dims[1] % (b * b)) ||
        (!to_space && ((x.dims[2] >= 0 && x.dims[2] % b) || (x.dims[3] >= 0 && x.dims[3] % b))))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "blocks of %lld do not divide the input",
                               (long long)b);
    ortc_dim dims[4] = {x.dims[0]};
    dims[1] = to_space ? ortc_dim_div(c, x.dims[1], b * b) : ortc_dim_mul(c, x.dims[1], b * b);
    for (int d = 2; d < 4; d++)
        dims[d] = to_space ? ortc_dim_mul(c, x.dims[d], b) : ortc_dim_div(c, x.dims[d], b);
    return ortc_infer_out(c, 0, x.dtype, 4, dims);
}

/* input [N, C * block, L] to [N, C, image ..]. */
static ortc_status infer_col2im(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    ortc_dim dims[ORTC_RANK_LIMIT], block = 1;
    int64_t n, n_block;
    const ortc_dim *image = ortc_infer_vector(c, 1, &n), *kernel = ortc_infer_vector(c, 2, &n_block);
    ortc_window w;
    if (x.rank >= 0 && x.rank != 3)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the input has rank %d, expected 3", x.rank);
    if (!image || !kernel) {
        const ortc_port lists[2] = {ortc_infer_in(c, 1), ortc_infer_in(c, 2)};
        for (int i = 0; i < 2; i++)
            if (lists[i].rank >= 0 && lists[i].rank != 1)
                return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "image_shape and block_shape are vectors");
        return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    }
    if (n != n_block || n < 1 || n > ORTC_SPATIAL_LIMIT)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "image_shape has %lld elements, block_shape %lld",
                               (long long)n, (long long)n_block);
    ORTC_TRY(ortc_infer_window(c, (int32_t)n, &w));
    for (int64_t d = 0; d < n; d++) {
        if ((ortc_dim_is_number(image[d]) && (image[d] < 0 || image[d] > INT32_MAX)) ||
            (ortc_dim_is_number(kernel[d]) && (kernel[d] < 1 || kernel[d] > INT32_MAX)))
            return ortc_infer_fail(c, ORTC_INVALID_MODEL, "a block of %lld in an image of %lld elements",
                                   (long long)kernel[d], (long long)image[d]);
        block = ortc_dim_mul(c, block, kernel[d]);
        dims[d + 2] = image[d];
    }
    dims[0] = x.rank < 0 ? ORTC_DIM_UNKNOWN : x.dims[0];
    dims[1] = x.rank < 0 ? ORTC_DIM_UNKNOWN : ortc_dim_div(c, x.dims[1], block);
    if (x.rank == 3 && x.dims[1] >= 0 && ortc_dim_is_number(block) && x.dims[1] % block)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "blocks of %lld elements do not divide %lld",
                               (long long)block, (long long)x.dims[1]);
    return ortc_infer_out(c, 0, x.dtype, (int32_t)n + 2, dims);
}

#define PLAIN "num,bool,string,c64,c128"
#define T_PLAIN "T=" PLAIN
static const ortc_op ops[] = {
    ORTC_OP("", "Pad", 25, 11, "24 23 21 19 18 13 11 2 1", "data:T pads:i64! constant_value:T? axes:Tind?!",
            "output:T", "mode:s=constant", T_PLAIN ",f8,f8e8m0,u4,i4,f4e2m1,u2,i2 Tind=i32,i64",
            ortc_infer_pad, ortc_lift_pad, 0),
    ORTC_OP("", "CenterCropPad", 18, 18, "", "input_data:T shape:Tind!", "output_data:T", "axes:is?",
            T_PLAIN " Tind=i32,i64", ortc_infer_center, NULL, 0),
    ORTC_OP("", "Tile", 13, 6, "6 1", "input:T repeats:T1!", "output:T", "", T_PLAIN " T1=i64", infer_tile,
            NULL, 0),
    ORTC_OP("", "Trilu", 14, 14, "", "input:T k:i64?", "output:T", "upper:i=1", T_PLAIN, infer_trilu, NULL,
            0),
    ORTC_OP("", "ReverseSequence", 28, 10, "10", "input:T sequence_lens:i64", "Y:T",
            "batch_axis:i=1 time_axis:i=0", T_PLAIN, infer_reverse, NULL, 0),
    ORTC_OP("", "DepthToSpace", 28, 1, "13 11 1", "input:T", "output:T", "blocksize:i! mode:s=DCR", T_PLAIN,
            infer_depth, NULL, 0),
    ORTC_OP("", "SpaceToDepth", 28, 1, "13 1", "input:T", "output:T", "blocksize:i! mode:s=DCR", T_PLAIN,
            infer_depth, NULL, 0),
    ORTC_OP("", "Col2Im", 18, 18, "", "input:T image_shape:i64! block_shape:i64!", "output:T",
            "dilations:is? pads:is? strides:is?", T_PLAIN, infer_col2im, NULL, 0),
};
ORTC_FAMILY(rearrange, ops, &ortc_kernels_ref_rearrange, &ortc_kernels_cpu_rearrange);
