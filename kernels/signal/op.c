/* kernels/signal/op.c: DFT, STFT, their windows and MelWeightMatrix: schemas and shapes.
 *
 * A complex signal has a last dim of 2 (real, imaginary), a real one of 1. Of n frequencies of a real signal
 * n / 2 + 1 are different: `onesided` asks for those alone. Lengths and steps are scalars whose values decide
 * shapes.
 */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_signal, ortc_kernels_cpu_signal;

/* The one number of input `in`; UNKNOWN where it is left out or not known. */
static ortc_status infer_scalar(ortc_infer *c, uint32_t in, int64_t least, ortc_dim *out)
{
    const ortc_port p = ortc_infer_in(c, in);
    int64_t n;
    const ortc_dim *v = ortc_infer_vector(c, in, &n);
    *out = ORTC_DIM_UNKNOWN;
    if (p.rank > 1 || (p.rank == 1 && p.dims[0] >= 0 && p.dims[0] != 1))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "input %u is not one number", in);
    if (!v || n != 1) return ORTC_OK;
    if (ortc_dim_is_number(*v) && *v < least)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "input %u is %lld, expected %lld at least", in,
                               (long long)*v, (long long)least);
    *out = *v;
    return ORTC_OK;
}

static ortc_dim half(ortc_infer *c, ortc_dim n) { return ortc_dim_add(c, ortc_dim_div(c, n, 2), 1); }

static ortc_status check_parts(ortc_infer *c, ortc_dim last)
{
    return last < 0 || last == 1 || last == 2
               ? ORTC_OK
               : ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                                 "the last dim is %lld, expected 1 (real) or 2 (complex)", (long long)last);
}

static ortc_status infer_dft(ortc_infer *c)
{
    const ortc_node *node = ortc_infer_node(c);
    const ortc_port x = ortc_infer_in(c, 0), length = ortc_infer_in(c, 1), where = ortc_infer_in(c, 2);
    const bool onesided = ortc_node_int(node, "onesided", 0) != 0,
               inverse = ortc_node_int(node, "inverse", 0) != 0;
    ortc_dim n, axis = -2, dims[ORTC_RANK_LIMIT];
    int32_t at = 0;
    ORTC_TRY(infer_scalar(c, 1, 1, &n));
    if (where.type) ORTC_TRY(infer_scalar(c, 2, -ORTC_RANK_LIMIT, &axis));
    if (x.rank < 0) return ortc_infer_out(c, 0, x.dtype, -1, NULL);
    if (x.rank < 2)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the input has rank %d, expected 2 at least", x.rank);
    ORTC_TRY(check_parts(c, x.dims[x.rank - 1]));
    for (int32_t d = 0; d < x.rank; d++) dims[d] = x.dims[d];
    dims[x.rank - 1] = onesided && inverse ? 1 : 2;
    if (!ortc_dim_is_number(axis)) {
        for (int32_t d = 0; d < x.rank - 1; d++) dims[d] = ORTC_DIM_UNKNOWN;
        return ortc_infer_out(c, 0, x.dtype, x.rank, dims);
    }
    ORTC_TRY(ortc_infer_axis(c, axis, x.rank, &at));
    if (at == x.rank - 1)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "axis %lld is that of real and imaginary parts",
                               (long long)axis);
    if (!length.type)
        n = onesided && inverse ? ortc_dim_max(c, ortc_dim_mul(c, ortc_dim_sub(c, x.dims[at], 1), 2), 0)
                                : x.dims[at];
    dims[at] = onesided && !inverse ? half(c, n) : n;
    return ortc_infer_out(c, 0, x.dtype, x.rank, dims);
}

/* The axis was an attribute, 1 where it was left out. */
static ortc_status lift_dft(ortc_lift *l)
{
    const ortc_attr a = ortc_node_attr(ortc_lift_node(l), "axis");
    const int64_t axis = a.kind == ORTC_ATTR_INT ? a.i : 1;
    ortc_lift_drop_attr(l, "axis");
    return ortc_lift_const_in(l, 2, ORTC_I64, 0, NULL, &axis);
}

static ortc_status infer_stft(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), window = ortc_infer_in(c, 2), length = ortc_infer_in(c, 3);
    const bool onesided = ortc_node_int(ortc_infer_node(c), "onesided", 1) != 0;
    ortc_dim step, n, frames = ORTC_DIM_UNKNOWN, batch = ORTC_DIM_UNKNOWN;
    if ((x.rank >= 0 && x.rank != 3) || (window.rank >= 0 && window.rank != 1))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                               "signal and window have ranks %d and %d, expected 3 and 1", x.rank,
                               window.rank);
    ORTC_TRY(infer_scalar(c, 1, 1, &step));
    ORTC_TRY(infer_scalar(c, 3, 1, &n));
    if (window.rank == 1 && n != ORTC_DIM_UNKNOWN)
        ORTC_TRY(ortc_infer_same(c, "window and frame_length", n, window.dims[0], &n));
    else if (window.rank == 1)
        n = window.dims[0];
    else if (!window.type && !length.type && x.rank == 3)
        n = x.dims[1];
    if (x.rank == 3) {
        ORTC_TRY(check_parts(c, x.dims[2]));
        batch = x.dims[0];
        if (x.dims[1] >= 0 && n >= 0 && x.dims[1] < n)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "a frame has %lld elements, the signal %lld",
                                   (long long)n, (long long)x.dims[1]);
        if (n == 0) return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "a frame has no elements");
        if (ortc_dim_is_number(step))
            frames = ortc_dim_add(c, ortc_dim_div(c, ortc_dim_sub(c, x.dims[1], n), step), 1);
    }
    const ortc_dim dims[4] = {batch, frames, onesided ? half(c, n) : n, 2};
    return ortc_infer_out(c, 0, x.dtype, 4, dims);
}

static ortc_status out_type(ortc_infer *c, ortc_dtype *out)
{
    const int64_t t = ortc_node_int(ortc_infer_node(c), "output_datatype", ORTC_F32);
    if (t <= 0 || t >= ORTC_DTYPE_COUNT)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL,
                               "attribute output_datatype is %lld, which is no element type", (long long)t);
    *out = (ortc_dtype)t;
    return ORTC_OK;
}

static ortc_status infer_window(ortc_infer *c)
{
    ortc_dtype t = ORTC_ABSENT;
    ortc_dim n;
    ORTC_TRY(out_type(c, &t));
    ORTC_TRY(infer_scalar(c, 0, 0, &n));
    return ortc_infer_out(c, 0, t, 1, &n);
}

static ortc_status infer_mel(ortc_infer *c)
{
    ortc_dtype t = ORTC_ABSENT;
    ortc_dim bins, length, rate;
    ORTC_TRY(out_type(c, &t));
    ORTC_TRY(infer_scalar(c, 0, 0, &bins));
    ORTC_TRY(infer_scalar(c, 1, 0, &length));
    ORTC_TRY(infer_scalar(c, 2, 1, &rate));
    for (uint32_t i = 3; i < 5; i++)
        if (ortc_infer_in(c, i).rank > 1)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "input %u is not one number", i);
    const ortc_dim dims[2] = {half(c, length), bins};
    return ortc_infer_out(c, 0, t, 2, dims);
}

#define WINDOW(name) \
    ORTC_OP("", name, 17, 17, "", "size:T1!", "output:T2", "output_datatype:i=1 periodic:i=1", \
            "T1=i32,i64 T2=num", infer_window, NULL, 0)
static const ortc_op ops[] = {
    ORTC_OP("", "DFT", 20, 20, "17", "input:T1 dft_length:T2?! axis:i64?!", "output:T1",
            "inverse:i=0 onesided:i=0", "T1=float T2=i32,i64", infer_dft, lift_dft, 0),
    ORTC_OP("", "STFT", 17, 17, "", "signal:T1 frame_step:T2! window:T1? frame_length:T2?!", "output:T1",
            "onesided:i=1", "T1=float T2=i32,i64", infer_stft, NULL, 0),
    WINDOW("HannWindow"),
    WINDOW("HammingWindow"),
    WINDOW("BlackmanWindow"),
    ORTC_OP("", "MelWeightMatrix", 17, 17, "",
            "num_mel_bins:T1! dft_length:T1! sample_rate:T1 lower_edge_hertz:T2 upper_edge_hertz:T2",
            "output:T3", "output_datatype:i=1", "T1=i32,i64 T2=float T3=num", infer_mel, NULL, 0),
};
ORTC_FAMILY(signal, ops, &ortc_kernels_ref_signal, &ortc_kernels_cpu_signal);
