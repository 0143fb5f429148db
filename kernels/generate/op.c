/* kernels/generate/op.c: operators that make tensors from little: Range, EyeLike, OneHot: schemas and shapes.
 *
 * How long the results of Range and OneHot are is said by values. Where those are integers of 32 or 64 bits
 * they are known when a plan is made; other types are only read when the kernel runs, which then says how
 * long its result is.
 */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_generate, ortc_kernels_cpu_generate;

/* ceil((limit - start) / delta), at least 0. */
static ortc_dim range_count(ortc_infer *c, ortc_dim start, ortc_dim limit, ortc_dim delta)
{
    if (!ortc_dim_is_number(delta) || delta == 0) return ORTC_DIM_UNKNOWN;
    const ortc_dim length = delta > 0 ? ortc_dim_sub(c, limit, start) : ortc_dim_sub(c, start, limit);
    return ortc_dim_max(c, ortc_dim_ceil_div(c, length, delta > 0 ? delta : -delta), 0);
}

static ortc_status infer_range(ortc_infer *c)
{
    const ortc_dtype t = ortc_infer_in(c, 0).dtype;
    ortc_dim count = ORTC_DIM_UNKNOWN, values[ORTC_VALUES_LIMIT];
    const ortc_dim *v[3];
    int64_t n = 0;
    for (uint32_t i = 0; i < 3; i++) {
        const ortc_port p = ortc_infer_in(c, i);
        if (p.rank > 1 || (p.rank == 1 && p.dims[0] >= 0 && p.dims[0] != 1))
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "input %u is not one number", i);
        v[i] = ortc_infer_vector(c, i, &n);
        v[i] = n == 1 ? v[i] : NULL;
    }
    if (v[2] && *v[2] == 0) return ortc_infer_fail(c, ORTC_INVALID_MODEL, "delta is 0");
    if (v[0] && v[1] && v[2]) count = range_count(c, *v[0], *v[1], *v[2]);
    ORTC_TRY(ortc_infer_out(c, 0, t, 1, &count));
    if (!ortc_dim_is_number(count) || count > ORTC_VALUES_LIMIT) return ORTC_OK;
    for (int64_t i = 0; i < count; i++) values[i] = ortc_element_add(c, *v[0], ortc_element_mul(c, i, *v[2]));
    return ortc_infer_out_values(c, 0, count, values);
}

static ortc_status infer_eye(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    const int64_t t = ortc_node_int(ortc_infer_node(c), "dtype", x.dtype);
    if (x.rank >= 0 && x.rank != 2)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the input has rank %d, expected 2", x.rank);
    if (t < 0 || t >= ORTC_DTYPE_COUNT)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "attribute dtype is %lld, which is no element type",
                               (long long)t);
    return ortc_infer_out(c, 0, (ortc_dtype)t, x.rank, x.dims);
}

static ortc_status infer_one_hot(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), depth = ortc_infer_in(c, 1), values = ortc_infer_in(c, 2);
    ortc_dim dims[ORTC_RANK_LIMIT + 1];
    int64_t n;
    int32_t axis = 0;
    const ortc_dim *v = ortc_infer_vector(c, 1, &n);
    if (depth.rank > 1 || (depth.rank == 1 && depth.dims[0] >= 0 && depth.dims[0] != 1))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "depth is not one number");
    if (values.rank >= 0 && (values.rank != 1 || (values.dims[0] >= 0 && values.dims[0] != 2)))
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "values must be a vector of two elements");
    if (v && n == 1 && ortc_dim_is_number(*v) && *v < 0)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "depth is %lld", (long long)*v);
    if (x.rank < 0) return ortc_infer_out(c, 0, values.dtype, -1, NULL);
    ORTC_TRY(ortc_infer_axis(c, ortc_node_int(ortc_infer_node(c), "axis", -1), x.rank + 1, &axis));
    if (x.rank == ORTC_RANK_LIMIT)
        return ortc_infer_fail(c, ORTC_LIMIT, "the result would have %d dims", x.rank + 1);
    for (int32_t d = 0; d <= x.rank; d++)
        dims[d] = d == axis ? (v && n == 1 ? *v : ORTC_DIM_UNKNOWN) : x.dims[d > axis ? d - 1 : d];
    return ortc_infer_out(c, 0, values.dtype, x.rank + 1, dims);
}

#define PLAIN "num,bool"
static const ortc_op ops[] = {
    ORTC_OP("", "Range", 27, 11, "11", "start:T! limit:T! delta:T!", "output:T", "stash_type:i=1",
            "T=f32,f64,i16,i32,i64,f16,bf16", infer_range, NULL, 0),
    ORTC_OP("", "EyeLike", 22, 9, "9", "input:T1", "output:T2", "dtype:i? k:i=0", "T1=" PLAIN " T2=" PLAIN,
            infer_eye, NULL, 0),
    ORTC_OP("", "OneHot", 28, 9, "11 9", "indices:T1 depth:T2! values:T3", "output:T3", "axis:i=-1",
            "T1=int,uint,f16,f32,f64 T2=int,uint,f16,f32,f64 T3=" PLAIN ",string,c64,c128", infer_one_hot,
            NULL, 0),
};
ORTC_FAMILY(generate, ops, &ortc_kernels_ref_generate, &ortc_kernels_cpu_generate);
