/* kernels/contrib/op_blocked.c: com.microsoft.nchwc, what onnxruntime's own optimiser writes at its highest
 * level.
 *
 * There a tensor between two such nodes has its channels in blocks, innermost, under the dims that it would
 * have without, and as many channels as fill its blocks. What reads and writes such tensors treats every
 * channel alike or is of that domain itself. So here they are plain: ReorderInput fills up the channels,
 * ReorderOutput cuts them off, and Conv takes its weights, constants that lie in blocks, apart. How long a
 * block is no file says: as long as on the machine that wrote it, which onnxruntime takes to be the one
 * that reads.
 */
#include "kernels/common/cpu_features.h"
#include "kernels/contrib/contrib.h"

#define WINDOW "&auto_pad &dilations &group &kernel_shape &pads &strides"
#define LL(x) ((long long)(x))

/* As onnxruntime has it for this processor, whatever is masked. */
static int64_t block_length(void)
{
    return ortc_cpu_features_detected() & (ORTC_CPU_AVX512 | ORTC_CPU_NEON) ? 16 : 8;
}

/* The weights, as `weights` [O, I, H, W]. Where a block of inputs is not full, only outputs are in blocks. */
static ortc_status unblock_weights(ortc_lift *l)
{
    const int64_t b = block_length(), group = ortc_lift_int(l, "group", 1);
    const ortc_port w = ortc_lift_look(l, "W");
    for (int32_t d = 0; d < 4; d++)
        if (w.rank != 4 || !ortc_dim_is_number(w.dims[d]) || w.dims[d] < 1)
            return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the shape of W must be known, and have four dims");
    const int64_t outs = w.dims[0], ins = w.dims[1], rows = w.dims[2], columns = w.dims[3];
    const bool whole = ins >= b || (group > 1 && ins > 1);
    if (outs % b || (whole && ins % b))
        return ortc_lift_fail(
            l, ORTC_UNSUPPORTED,
            "weights of %lldx%lld channels are not in blocks of %lld: the file was written on "
            "another kind of processor; let onnxruntime save a lower level of optimisation",
            LL(outs), LL(ins), LL(b));
    if (whole)
        ORTC_TRY(ortc_lift_write(l,
                                 "blocks = Reshape(W, [%lld,%lld,%lld,%lld,%lld,%lld])\n"
                                 "apart = Transpose(blocks) perm=[0,5,1,4,2,3]",
                                 LL(outs / b), LL(ins / b), LL(rows), LL(columns), LL(b), LL(b)));
    else
        ORTC_TRY(ortc_lift_write(l,
                                 "blocks = Reshape(W, [%lld,%lld,%lld,%lld,%lld])\n"
                                 "apart = Transpose(blocks) perm=[0,4,1,2,3]",
                                 LL(outs / b), LL(ins), LL(rows), LL(columns), LL(b)));
    return ortc_lift_write(l, "weights = Reshape(apart, [%lld,%lld,%lld,%lld])", LL(outs), LL(ins), LL(rows),
                           LL(columns));
}

ortc_status ortc_contrib_blocked_conv(ortc_lift *l)
{
    const ortc_node *n = ortc_lift_node(l);
    const bool added = ortc_given(l, "Sum");
    size_t count;
    const float *p = ortc_node_floats(n, "activation_params", &count);
    ORTC_TRY(unblock_weights(l));
    ORTC_TRY(ortc_lift_write(l, "%s = Conv(X, weights, B) " WINDOW, added ? "conv" : "sum"));
    if (added) ORTC_TRY(ortc_lift_write(l, "sum = Add(conv, Sum)"));
    return ortc_contrib_activate(l, ortc_node_string(n, "activation", ""), p, count);
}

ortc_status ortc_contrib_blocked_pool(ortc_lift *l)
{
    const char *op = ortc_node_op(ortc_lift_node(l));
    if (!strcmp(op, "MaxPool"))
        return ortc_lift_write(l,
                               "Y = MaxPool(X) &auto_pad &ceil_mode &dilations &kernel_shape &pads &strides");
    if (!strcmp(op, "AveragePool"))
        return ortc_lift_write(l, "Y = AveragePool(X) &auto_pad &ceil_mode &count_include_pad &dilations "
                                  "&kernel_shape &pads &strides");
    return ortc_lift_write(l, "Y = %s(X)", op);
}

ortc_status ortc_contrib_blocked_upsample(ortc_lift *l)
{
    const ortc_node *n = ortc_lift_node(l);
    const bool nearest = !strcmp(ortc_node_string(n, "mode", "nearest"), "nearest");
    size_t count;
    const int64_t *scales = ortc_node_ints(n, "scales", &count);
    if (!scales || count != 4 || scales[0] != 1 || scales[1] != 1)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "attribute scales must be [1, 1, height, width]");
    return ortc_lift_write(l, "factors = Cast([1,1,%lld,%lld]) to=1\nY = Resize(X, _, factors) %s",
                           LL(scales[2]), LL(scales[3]),
                           nearest ? "mode='nearest' coordinate_transformation_mode='asymmetric' "
                                     "nearest_mode='floor'"
                                   : "mode='linear' &coordinate_transformation_mode");
}

ortc_status ortc_contrib_reorder_input(ortc_lift *l)
{
    const int64_t b = block_length();
    const bool last = ortc_lift_int(l, "channels_last", 0) != 0;
    const ortc_port x = ortc_lift_look(l, "X");
    const int32_t axis = last ? 3 : 1;
    if (x.rank != 4 || !ortc_dim_is_number(x.dims[axis]))
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "X must be known to have four dims, and its channels");
    const int64_t missing = (b - x.dims[axis] % b) % b;
    if (!missing) return ortc_lift_write(l, last ? "Y = Transpose(X) perm=[0,3,1,2]" : "Y = Identity(X)");
    if (last) ORTC_TRY(ortc_lift_write(l, "planes = Transpose(X) perm=[0,3,1,2]"));
    return ortc_lift_write(l, "Y = Pad(%s, [0,%lld], _, [1])", last ? "planes" : "X", LL(missing));
}

ortc_status ortc_contrib_reorder_output(ortc_lift *l)
{
    const bool last = ortc_lift_int(l, "channels_last", 0) != 0;
    const ortc_port x = ortc_lift_look(l, "X");
    const int64_t channels = ortc_lift_int(l, "channels", 0);
    const bool all = x.rank == 4 && x.dims[1] == channels;
    if (!all)
        ORTC_TRY(ortc_lift_write(l, "%s = Slice(X, [0], [%lld], [1])", last ? "planes" : "Y", LL(channels)));
    else if (!last)
        return ortc_lift_write(l, "Y = Identity(X)");
    return last ? ortc_lift_write(l, "Y = Transpose(%s) perm=[0,2,3,1]", all ? "X" : "planes") : ORTC_OK;
}
