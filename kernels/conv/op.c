/* kernels/conv/op.c: Conv, ConvTranspose (op_transpose.c), ConvInteger and QLinearConv: schemas and shapes.
 *
 * Every version means the same; they differ in element types. X [N, C, D1 ..], W [M, C / group, K1 ..], B
 * [M], Y [N, M, O1 ..].
 */
#include "kernels/common/window.h"
#include "kernels/conv/transpose.h"

extern const ortc_kernel_table ortc_kernels_ref_conv, ortc_kernels_cpu_conv, ortc_kernels_cpu_conv_transpose;

/* Which inputs are X, W and B; the type of Y. */
static ortc_status infer_windows(ortc_infer *c, uint32_t at_x, uint32_t at_w, uint32_t at_b, ortc_dtype t)
{
    const ortc_port x = ortc_infer_in(c, at_x), w = ortc_infer_in(c, at_w), b = ortc_infer_in(c, at_b);
    const int64_t group = ortc_node_int(ortc_infer_node(c), "group", 1);
    const int32_t rank = x.rank >= 0 ? x.rank : w.rank;
    ortc_window window;
    if (group < 1) return ortc_infer_fail(c, ORTC_INVALID_MODEL, "group is %lld", (long long)group);
    if (rank < 0) return ortc_infer_out(c, 0, t, -1, NULL);
    if (rank < 3)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "input X has rank %d, expected [N, C, spatial ...]",
                               rank);
    if (x.rank >= 0 && w.rank >= 0 && x.rank != w.rank)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "X has rank %d and W rank %d", x.rank, w.rank);
    ORTC_TRY(ortc_infer_window(c, rank - 2, &window));

    ortc_dim dims[ORTC_RANK_LIMIT];
    for (int32_t d = 0; d < rank; d++) dims[d] = ORTC_DIM_UNKNOWN;
    if (x.rank >= 0) dims[0] = x.dims[0];
    if (w.rank >= 0) {
        dims[1] = w.dims[0];
        if (w.dims[0] >= 0 && w.dims[0] % group)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "%lld filters are not a multiple of group %lld",
                                   (long long)w.dims[0], (long long)group);
    }
    if (b.rank >= 0) {
        if (b.rank != 1) return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "B has rank %d, expected 1", b.rank);
        ORTC_TRY(ortc_infer_same(c, "filters of W and elements of B", dims[1], b.dims[0], &dims[1]));
    }
    if (x.rank >= 0 && w.rank >= 0 && x.dims[1] >= 0 && w.dims[1] >= 0 &&
        (x.dims[1] % group || x.dims[1] / group != w.dims[1]))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "X has %lld channels, W expects %lld in each of %lld groups",
                               (long long)x.dims[1], (long long)w.dims[1], (long long)group);
    for (int32_t i = 0; i < window.spatial; i++) {
        if (w.rank >= 0 && w.dims[i + 2] >= 0) {
            if (window.has_kernel && window.kernel[i] != w.dims[i + 2])
                return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "kernel_shape says %lld in dim %d, W has %lld",
                                       (long long)window.kernel[i], i, (long long)w.dims[i + 2]);
            if (w.dims[i + 2] < 1 || w.dims[i + 2] > INT32_MAX)
                return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "W has %lld elements in spatial dim %d",
                                       (long long)w.dims[i + 2], i);
            window.kernel[i] = w.dims[i + 2];
        } else if (!window.has_kernel) {
            continue;
        }
        if (x.rank >= 0) ORTC_TRY(ortc_infer_window_out(c, &window, i, x.dims[i + 2], &dims[i + 2]));
    }
    return ortc_infer_out(c, 0, t, rank, dims);
}

static ortc_status infer_conv(ortc_infer *c) { return infer_windows(c, 0, 1, 2, ortc_infer_in(c, 0).dtype); }

/* One number, or one for each filter. */
static ortc_status check_filter_numbers(ortc_infer *c, uint32_t port, uint32_t at_w)
{
    const ortc_port p = ortc_infer_in(c, port), w = ortc_infer_in(c, at_w);
    if (p.rank > 1 || (p.rank == 1 && p.dims[0] >= 0 && p.dims[0] != 1 && w.rank > 0 && w.dims[0] >= 0 &&
                       p.dims[0] != w.dims[0]))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "input %u is neither one number nor one for each filter", port);
    return ORTC_OK;
}
static ortc_status infer_conv_integer(ortc_infer *c)
{
    ORTC_TRY(check_filter_numbers(c, 3, 1));
    return infer_windows(c, 0, 1, UINT32_MAX, ORTC_I32);
}
static ortc_status infer_qlinear_conv(ortc_infer *c)
{
    ORTC_TRY(check_filter_numbers(c, 4, 3));
    ORTC_TRY(check_filter_numbers(c, 5, 3));
    return infer_windows(c, 0, 3, 8, ortc_infer_in(c, 7).dtype);
}

#define WINDOW "auto_pad:s=NOTSET dilations:is? group:i=1 kernel_shape:is? pads:is? strides:is?"
static const ortc_op ops[] = {
    ORTC_OP("", "Conv", 22, 1, "11 1", "X:T W:T B:T?", "Y:T", WINDOW, "T=float", infer_conv, NULL,
            ORTC_OP_HEAVY),
    ORTC_OP("", "ConvTranspose", 22, 1, "11 1", "X:T W:T B:T?", "Y:T",
            WINDOW " output_padding:is? output_shape:is?", "T=float", ortc_infer_conv_transpose, NULL,
            ORTC_OP_HEAVY),
    ORTC_OP("", "ConvInteger", 10, 10, "", "x:T1 w:T2 x_zero_point:T1? w_zero_point:T2?", "y:T3", WINDOW,
            "T1=i8,u8 T2=i8,u8 T3=i32", infer_conv_integer, NULL, ORTC_OP_HEAVY),
    ORTC_OP(
        "", "QLinearConv", 10, 10, "",
        "x:T1 x_scale:f32 x_zero_point:T1 w:T2 w_scale:f32 w_zero_point:T2 y_scale:f32 y_zero_point:T3 B:T4?",
        "y:T3", WINDOW, "T1=i8,u8 T2=i8,u8 T3=i8,u8 T4=i32", infer_qlinear_conv, NULL, ORTC_OP_HEAVY),
};
ORTC_FAMILY(conv, ops, &ortc_kernels_ref_conv, &ortc_kernels_cpu_conv, &ortc_kernels_cpu_conv_transpose);
