/* kernels/bits/op.c: operators on the bits of numbers: BitwiseAnd, BitwiseOr, BitwiseXor, BitwiseNot,
 * BitShift, BitCast. */
#include "kernels/common/shape.h"
#include "kernels/elementwise/elementwise.h"

extern const ortc_kernel_table ortc_kernels_ref_bits;

static ortc_status infer_two(ortc_infer *c)
{
    return ortc_infer_out_broadcast(c, 0, ortc_infer_in(c, 0).dtype, 0, 2);
}
static ortc_status infer_one(ortc_infer *c) { return ortc_infer_like(c, 0, 0); }

static ortc_status infer_bit_cast(ortc_infer *c)
{
    const int64_t to = ortc_node_int(ortc_infer_node(c), "to", 0);
    const ortc_port x = ortc_infer_in(c, 0);
    const uint32_t have = ortc_dtype_bits(x.dtype),
                   want = to > 0 && to < ORTC_DTYPE_COUNT ? ortc_dtype_bits((ortc_dtype)to) : 0;
    if (!want || (x.dtype && have != want))
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "attribute to is %lld (%s), which is not as wide as %s",
                               (long long)to, ortc_dtype_name((ortc_dtype)(want ? to : -1)),
                               ortc_dtype_name(x.dtype));
    return ortc_infer_out(c, 0, (ortc_dtype)to, x.rank, x.dims);
}

#define WHOLE "T=int,uint"
#define EVERY "num,bool,c64,c128,f8,u4,i4,f4e2m1,f8e8m0,u2,i2"
#define BINARY(name, expand) \
    ORTC_POINTWISE("", name, 18, 18, "", "A:T B:T", "C:T", "", WHOLE, infer_two, NULL, expand)
static const ortc_op ops[] = {
    BINARY("BitwiseAnd", ortc_expand_and),
    BINARY("BitwiseOr", ortc_expand_or),
    BINARY("BitwiseXor", ortc_expand_xor),
    ORTC_POINTWISE("", "BitwiseNot", 18, 18, "", "X:T", "Y:T", "", WHOLE, infer_one, NULL, ortc_expand_not),
    ORTC_POINTWISE("", "BitShift", 28, 11, "11", "X:T Y:T", "Z:T", "direction:s!", WHOLE, infer_two, NULL,
                   ortc_expand_shift),
    ORTC_OP("", "BitCast", 26, 26, "", "input:T1", "output:T2", "to:i!", "T1=" EVERY " T2=" EVERY,
            infer_bit_cast, NULL, 0),
};
ORTC_FAMILY(bits, ops, &ortc_kernels_ref_bits);
