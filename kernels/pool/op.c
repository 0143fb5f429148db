/* kernels/pool/op.c: MaxPool, AveragePool, LpPool, their global forms, and MaxUnpool: schemas and shapes.
 *
 * X [N, C, D1 ..], Y [N, C, O1 ..]. Older versions lacked attributes (Indices and storage_order until 8,
 * ceil_mode and dilations until 10 or 19) and mean the same without them. With ceil_mode the last window must
 * begin inside the input or its first pad: AveragePool-19 says so, and frameworks have always done so.
 */
#include <math.h>

#include "kernels/common/window.h"

extern const ortc_kernel_table ortc_kernels_ref_pool, ortc_kernels_cpu_pool;

static ortc_status infer_pool(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    ortc_dim dims[ORTC_RANK_LIMIT];
    ortc_window w;
    if (x.rank >= 0 && x.rank < 3)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "X has rank %d, expected [N, C, spatial ...]", x.rank);
    ORTC_TRY(ortc_infer_window(c, x.rank < 0 ? -1 : x.rank - 2, &w));
    if (!w.has_kernel) return ortc_infer_fail(c, ORTC_INVALID_MODEL, "attribute kernel_shape is missing");
    dims[0] = dims[1] = ORTC_DIM_UNKNOWN;
    if (x.rank >= 0) memcpy(dims, x.dims, 2 * sizeof *dims);
    for (int32_t i = 0; i < w.spatial; i++)
        ORTC_TRY(
            ortc_infer_window_out(c, &w, i, x.rank < 0 ? ORTC_DIM_UNKNOWN : x.dims[i + 2], &dims[i + 2]));
    ORTC_TRY(ortc_infer_out(c, 0, x.dtype, w.spatial + 2, dims));
    return ortc_node_n_out(ortc_infer_node(c)) > 1 ? ortc_infer_out(c, 1, ORTC_I64, w.spatial + 2, dims)
                                                   : ORTC_OK;
}

/* X and I [N, C, D1 ..]. What a MaxPool with this window would have pooled, or what output_shape says. */
static ortc_status infer_unpool(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), indices = ortc_infer_in(c, 1), shape = ortc_infer_in(c, 2);
    ortc_dim dims[ORTC_RANK_LIMIT], same;
    ortc_window w;
    int64_t n;
    const ortc_dim *given = ortc_infer_vector(c, 2, &n);
    if (x.rank >= 0 && x.rank < 3)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "X has rank %d, expected [N, C, spatial ...]", x.rank);
    if (x.rank >= 0 && indices.rank >= 0 && x.rank != indices.rank)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "X and I have ranks %d and %d", x.rank, indices.rank);
    for (int32_t d = 0; d < x.rank && indices.rank >= 0; d++)
        ORTC_TRY(ortc_infer_same(c, "X and I differ in shape", x.dims[d], indices.dims[d], &same));
    ORTC_TRY(ortc_infer_window(c, x.rank < 0 ? -1 : x.rank - 2, &w));
    if (!w.has_kernel) return ortc_infer_fail(c, ORTC_INVALID_MODEL, "attribute kernel_shape is missing");
    if (given && n != w.spatial + 2)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "output_shape has %lld elements, X has %d dims",
                               (long long)n, w.spatial + 2);
    for (int32_t d = 0; d < w.spatial + 2; d++) {
        const ortc_dim in = x.rank < 0 ? ORTC_DIM_UNKNOWN : x.dims[d];
        if (shape.type) {
            dims[d] = given ? given[d] : ORTC_DIM_UNKNOWN;
            if (ortc_dim_is_number(dims[d]) && dims[d] < 0)
                return ortc_infer_fail(c, ORTC_INVALID_MODEL, "output_shape has a negative element");
        } else if (d < 2) {
            dims[d] = in;
        } else {
            const int64_t pads = w.pad_begin[d - 2] + w.pad_end[d - 2];
            dims[d] = ortc_dim_add(c, ortc_dim_mul(c, ortc_dim_sub(c, in, 1), w.stride[d - 2]),
                                   w.kernel[d - 2] - pads);
            dims[d] = ortc_dim_max(c, dims[d], 0);
        }
    }
    return ortc_infer_out(c, 0, x.dtype, w.spatial + 2, dims);
}

/* The norm's sum is that of p = 1 over |x|^p, which in f16 would soon be infinite. */
static ortc_status lift_fractional(ortc_lift *l, double p)
{
    const bool half = ortc_node_in(ortc_lift_node(l), 0).dtype == ORTC_F16;
    const char *x = half ? "wide" : "X";
    if (half) ORTC_TRY(ortc_lift_write(l, "wide = Cast(X) to=1"));
    ORTC_TRY(ortc_lift_write(l, "size = Abs(%s)\npower = Pow(size, %.9g:%s)", x, p, x));
    ORTC_TRY(strstr(ortc_node_op(ortc_lift_node(l)), "Global")
                 ? ortc_lift_write(l, "sum = GlobalLpPool(power) p=1")
                 : ortc_lift_write(l, "sum = LpPool(power) p=1 &auto_pad &kernel_shape &pads &strides"));
    return half ? ortc_lift_write(l, "root = Pow(sum, %.17g:sum)\nY = Cast(root) to=10", 1 / p)
                : ortc_lift_write(l, "Y = Pow(sum, %.17g:sum)", 1 / p);
}

/* LpPool-1 and GlobalLpPool-1 had p as a float. */
static ortc_status lift_lp(ortc_lift *l)
{
    const ortc_attr p = ortc_node_attr(ortc_lift_node(l), "p");
    if (p.kind != ORTC_ATTR_FLOAT) return ORTC_OK;
    if (!(p.f > 0 && p.f < INFINITY))
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "p is %g, expected a number above 0", (double)p.f);
    if (p.f >= 1000 || p.f != (float)(int64_t)p.f) return lift_fractional(l, (double)p.f);
    return ortc_lift_set_int(l, "p", (int64_t)p.f);
}

static ortc_status infer_global(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    ortc_dim dims[ORTC_RANK_LIMIT];
    if (x.rank >= 0 && x.rank < 2)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "X has rank %d, expected [N, C, spatial ...]", x.rank);
    for (int32_t d = 0; d < x.rank; d++) dims[d] = d < 2 ? x.dims[d] : 1;
    return ortc_infer_out(c, 0, x.dtype, x.rank, dims);
}

#define WINDOW "auto_pad:s=NOTSET ceil_mode:i=0 dilations:is? kernel_shape:is! pads:is? strides:is? "
static const ortc_op ops[] = {
    ORTC_OP("", "MaxPool", 22, 1, "12 11 10 8 1", "X:T", "Y:T Indices:I?", WINDOW "storage_order:i=0",
            "T=float,i8,u8 I=i64", infer_pool, NULL, 0),
    ORTC_OP("", "AveragePool", 22, 1, "19 11 10 7 1", "X:T", "Y:T", WINDOW "count_include_pad:i=0", "T=float",
            infer_pool, NULL, 0),
    ORTC_OP("", "GlobalMaxPool", 22, 1, "1", "X:T", "Y:T", "", "T=float", infer_global, NULL, 0),
    ORTC_OP("", "GlobalAveragePool", 22, 1, "1", "X:T", "Y:T", "", "T=float", infer_global, NULL, 0),
    ORTC_OP("", "LpPool", 22, 2, "18 11 2 1", "X:T", "Y:T", WINDOW "p:i=2", "T=float", infer_pool, lift_lp,
            0),
    ORTC_OP("", "GlobalLpPool", 22, 2, "2 1", "X:T", "Y:T", "p:i=2", "T=float", infer_global, lift_lp, 0),
    ORTC_OP("", "MaxUnpool", 22, 9, "11 9", "X:T1 I:T2 output_shape:T2?!", "output:T1",
            "kernel_shape:is! pads:is? strides:is?", "T1=float T2=i64", infer_unpool, NULL, 0),
};
ORTC_FAMILY(pool, ops, &ortc_kernels_ref_pool, &ortc_kernels_cpu_pool);
