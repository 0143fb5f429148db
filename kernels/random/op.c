/* kernels/random/op.c: operators that draw numbers: schemas and shapes. None is ever folded or shared between
 * equal nodes.
 *
 * The element type is the attribute dtype, or the input's where that is left out. Version 22 only added
 * bfloat16.
 */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_random;

static ortc_status dtype_of(ortc_infer *c, ortc_dtype otherwise, ortc_dtype *out)
{
    const int64_t t = ortc_node_int(ortc_infer_node(c), "dtype", otherwise);
    if (t < 0 || t >= ORTC_DTYPE_COUNT)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "attribute dtype is %lld, which is no element type",
                               (long long)t);
    *out = (ortc_dtype)t;
    return ORTC_OK;
}

/* RandomNormal, RandomUniform: the shape is an attribute. */
static ortc_status infer_shaped(ortc_infer *c)
{
    size_t rank;
    ortc_dtype t = ORTC_F32;
    const int64_t *dims = ortc_node_ints(ortc_infer_node(c), "shape", &rank);
    ORTC_TRY(dtype_of(c, ORTC_F32, &t));
    if (rank > ORTC_RANK_LIMIT) return ortc_infer_fail(c, ORTC_LIMIT, "shape has %zu dims", rank);
    for (size_t d = 0; d < rank; d++)
        if (dims[d] < 0)
            return ortc_infer_fail(c, ORTC_INVALID_MODEL, "shape[%zu] is %lld", d, (long long)dims[d]);
    return ortc_infer_out(c, 0, t, (int32_t)rank, dims);
}

static ortc_status infer_like(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    ortc_dtype t = ORTC_F32;
    ORTC_TRY(dtype_of(c, x.dtype, &t));
    return ortc_infer_out(c, 0, t, x.rank, x.dims);
}

static ortc_status infer_multinomial(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    const int64_t samples = ortc_node_int(ortc_infer_node(c), "sample_size", 1);
    ortc_dtype t = ORTC_F32;
    ORTC_TRY(dtype_of(c, ORTC_I32, &t));
    if (x.rank >= 0 && x.rank != 2)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "the input has rank %d, expected 2", x.rank);
    if (samples < 0) return ortc_infer_fail(c, ORTC_INVALID_MODEL, "sample_size is %lld", (long long)samples);
    const ortc_dim dims[2] = {x.rank < 0 ? ORTC_DIM_UNKNOWN : x.dims[0], samples};
    return ortc_infer_out(c, 0, t, 2, dims);
}

static ortc_status infer_dropout(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0);
    ORTC_TRY(ortc_infer_like(c, 0, 0));
    return ortc_node_n_out(ortc_infer_node(c)) > 1 ? ortc_infer_out(c, 1, ORTC_BOOL, x.rank, x.dims)
                                                   : ORTC_OK;
}

/* Below 12 the ratio was an attribute and dropping was for training alone, as it still is where nothing says
 * otherwise. */
static ortc_status lift_dropout(ortc_lift *l)
{
    if (ortc_lift_version(l) < 10 && ortc_node_n_out(ortc_lift_node(l)) > 1) /* the mask was no bool then */
        return ortc_lift_write(l, "output = Identity(data)\n"
                                  "shape = Shape(data)\n"
                                  "one = Cast(1) to=@data\n"
                                  "mask = Expand(one, shape)");
    ortc_lift_drop_attr(l, "ratio");
    ortc_lift_drop_attr(l, "is_test");
    ortc_lift_drop_attr(l, "consumed_inputs");
    return ORTC_OK;
}

#define RANDOM(name, since, form, older, inputs, attributes, types, infer) \
    ORTC_OP("", name, since, form, older, inputs, "output:T2", attributes, types, infer, NULL, ORTC_OP_RANDOM)
#define ANY "T1=num,bool,string,c64,c128 T2=float"
static const ortc_op ops[] = {
    ORTC_OP("", "RandomNormal", 22, 1, "1", "", "output:T", "dtype:i=1 mean:f=0 scale:f=1 seed:f? shape:is!",
            "T=float", infer_shaped, NULL, ORTC_OP_RANDOM),
    ORTC_OP("", "RandomUniform", 22, 1, "1", "", "output:T", "dtype:i=1 low:f=0 high:f=1 seed:f? shape:is!",
            "T=float", infer_shaped, NULL, ORTC_OP_RANDOM),
    RANDOM("RandomNormalLike", 22, 1, "1", "input:T1", "dtype:i? mean:f=0 scale:f=1 seed:f?", ANY,
           infer_like),
    RANDOM("RandomUniformLike", 22, 1, "1", "input:T1", "dtype:i? low:f=0 high:f=1 seed:f?", ANY, infer_like),
    RANDOM("Bernoulli", 22, 15, "15", "input:T1", "dtype:i? seed:f?", "T1=float T2=num,bool", infer_like),
    RANDOM("Multinomial", 22, 7, "7", "input:T1", "dtype:i=6 sample_size:i=1 seed:f?", "T1=float T2=i32,i64",
           infer_multinomial),
    ORTC_OP("", "Dropout", 22, 12, "13 12 10 7 6 1", "data:T ratio:T1? training_mode:T2?",
            "output:T mask:T2?", "seed:i?", "T=float,f8 T1=float,f8 T2=bool", infer_dropout, lift_dropout,
            ORTC_OP_RANDOM),
};
ORTC_FAMILY(random, ops, &ortc_kernels_ref_random);
