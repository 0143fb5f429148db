/* kernels/quantize/op.c: QuantizeLinear, DequantizeLinear and their relatives: schemas and shapes.
 *
 * A scale is one number, one per index along an axis (a vector), or one per block (the input's rank, with the
 * blocked dim divided). Versions 10 to 28 only add: the axis at 13, eight-bit floats at 19, blocks and four
 * bits at 21, output_dtype and precision at 23. A vector of one element counts as one number, as exporters
 * write it.
 */
#include "kernels/quantize/expand.h"
#include "kernels/quantize/quantize.h"

extern const ortc_kernel_table ortc_kernels_ref_quantize, ortc_kernels_cpu_quantize;

/* One number, as a scalar or a vector; a symbol may turn out to be one. */
static bool may_be_one(const ortc_port *p)
{
    return p->rank == 0 || (p->rank == 1 && (p->dims[0] == 1 || p->dims[0] < 0));
}

/* The shape of the scale against the input's, and the zero point's against the scale's. */
static ortc_status check_scale(ortc_infer *c, const ortc_port *x, const ortc_port *scale,
                               const ortc_port *zero)
{
    const ortc_node *n = ortc_infer_node(c);
    const int64_t block = ortc_node_int(n, "block_size", 0);
    ortc_dim same;
    int32_t axis = 0;
    if (zero->type && zero->rank >= 0 && scale->rank >= 0 && !(may_be_one(zero) && may_be_one(scale))) {
        if (zero->rank != scale->rank)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the zero point has rank %d, the scale %d",
                                   zero->rank, scale->rank);
        for (int32_t d = 0; d < zero->rank; d++)
            ORTC_TRY(ortc_infer_same(c, "the zero point is not of the scale's shape", zero->dims[d],
                                     scale->dims[d], &same));
    }
    if (block < 0) return ortc_infer_fail(c, ORTC_INVALID_MODEL, "block_size is %lld", (long long)block);
    if (x->rank < 0 || scale->rank < 0 || (!block && may_be_one(scale))) return ORTC_OK;
    ORTC_TRY(ortc_infer_axis(c, ortc_node_int(n, "axis", 1), x->rank, &axis));
    if (!block) {
        if (scale->rank != 1)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                                   "the scale has rank %d, expected 0 or 1, or a block_size", scale->rank);
        return ortc_infer_same(c, "the scale is not as long as the axis", scale->dims[0], x->dims[axis],
                               &same);
    }
    if (scale->rank != x->rank)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the scale of blocks has rank %d, the input %d",
                               scale->rank, x->rank);
    for (int32_t d = 0; d < x->rank; d++) {
        const ortc_dim want = d == axis ? ortc_dim_ceil_div(c, x->dims[d], block) : x->dims[d];
        ORTC_TRY(
            ortc_infer_same(c, "the scale does not fit the input's blocks", scale->dims[d], want, &same));
    }
    return ORTC_OK;
}

static ortc_status infer_quantize(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), scale = ortc_infer_in(c, 1), zero = ortc_infer_in(c, 2);
    const int64_t asked = ortc_node_int(ortc_infer_node(c), "output_dtype", 0);
    if (asked && zero.dtype && asked != zero.dtype)
        return ortc_infer_fail(c, ORTC_TYPE_MISMATCH, "output_dtype is %s, the zero point is %s",
                               ortc_dtype_name((ortc_dtype)asked), ortc_dtype_name(zero.dtype));
    ORTC_TRY(check_scale(c, &x, &scale, &zero));
    return ortc_infer_out(c, 0, zero.type ? zero.dtype : asked ? (ortc_dtype)asked : ORTC_U8, x.rank, x.dims);
}

static ortc_status infer_dequantize(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), scale = ortc_infer_in(c, 1), zero = ortc_infer_in(c, 2);
    const int64_t asked = ortc_node_int(ortc_infer_node(c), "output_dtype", 0);
    if (!asked && scale.dtype == ORTC_F8E8M0)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL,
                               "a scale of powers of two needs the attribute output_dtype");
    ORTC_TRY(check_scale(c, &x, &scale, &zero));
    return ortc_infer_out(c, 0, asked ? (ortc_dtype)asked : scale.dtype, x.rank, x.dims);
}

static ortc_status infer_dynamic(ortc_infer *c)
{
    ORTC_TRY(ortc_infer_out(c, 0, ORTC_U8, ortc_infer_in(c, 0).rank, ortc_infer_in(c, 0).dims));
    ORTC_TRY(ortc_infer_out(c, 1, ORTC_F32, 0, NULL));
    return ortc_infer_out(c, 2, ORTC_U8, 0, NULL);
}

#define NARROW "i8,u8,i16,u16,f8,u4,i4,f4e2m1,u2,i2,f6e2m3,f6e3m2"
#define EIGHT "i8,u8,f8"
static const ortc_op ops[] = {
    ORTC_POINTWISE("", "QuantizeLinear", 28, 10, "25 24 23 21 19 13 10", "x:T1 y_scale:T2 y_zero_point:T3?",
                   "y:T3", "axis:i=1 block_size:i=0 output_dtype:i=0 precision:i=0 saturate:i=1",
                   "T1=f32,f16,bf16,i32 T2=f32,f16,bf16,i32,f8e8m0 T3=" NARROW, infer_quantize, NULL,
                   ortc_expand_quantize),
    ORTC_POINTWISE("", "DequantizeLinear", 28, 10, "25 24 23 21 19 13 10", "x:T1 x_scale:T2 x_zero_point:T1?",
                   "y:T3", "axis:i=1 block_size:i=0 output_dtype:i=0",
                   "T1=" NARROW ",i32 T2=f32,f16,bf16,f8e8m0 T3=f32,f16,bf16", infer_dequantize, NULL,
                   ortc_expand_dequantize),
    ORTC_OP("", "DynamicQuantizeLinear", 11, 11, "", "x:T1", "y:T2 y_scale:f32 y_zero_point:T2", "",
            "T1=f32 T2=u8", infer_dynamic, NULL, 0),
    ORTC_OP("", "MatMulInteger", 10, 10, "", "A:T1 B:T2 a_zero_point:T1? b_zero_point:T2?", "Y:T3", "",
            "T1=i8,u8 T2=i8,u8 T3=i32", ortc_infer_matmul_integer, NULL, ORTC_OP_HEAVY),
    /* what Gemm with transB becomes (specialise/integer_products.c): of matrices, B being [n][k] */
    ORTC_OP("ortc", "GemmInteger", 1, 1, "", "A:T1 B:T2 a_zero_point:T1? b_zero_point:T2?", "Y:T3", "",
            "T1=i8,u8 T2=i8,u8 T3=i32", ortc_infer_gemm_integer, NULL, ORTC_OP_HEAVY),
    ORTC_OP("", "QLinearMatMul", 21, 10, "10",
            "a:T1 a_scale:TS a_zero_point:T1 b:T2 b_scale:TS b_zero_point:T2 y_scale:TS y_zero_point:T3",
            "y:T3", "", "TS=f32,f16,bf16 T1=" EIGHT " T2=" EIGHT " T3=" EIGHT, ortc_infer_qlinear_matmul,
            NULL, ORTC_OP_HEAVY),
};
ORTC_FAMILY(quantize, ops, &ortc_kernels_ref_quantize, &ortc_kernels_cpu_quantize);
