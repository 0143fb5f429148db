/* kernels/shape/op.c: operators that move elements or only rename their dims: the table of their schemas.
 *
 * Shape functions and liftings are in op_rename.c, op_move.c and op_slice.c. Newer versions only allow more
 * element types, but where a lifting is named: attributes that became inputs.
 */
#include "kernels/shape/shape_ops.h"

extern const ortc_kernel_table ortc_kernels_ref_shape;

#define PLAIN "num,bool,string,c64,c128"
#define EVERY PLAIN ",f8,u4,i4,f4e2m1,f8e8m0,u2,i2"
#define T_PLAIN "T=" PLAIN
#define T_EVERY "T=" EVERY

static const ortc_op ops[] = {
    ORTC_OP("", "Identity", 25, 1, "24 23 21 19 16 14 13 1", "input:V", "output:V", "", "V=" EVERY ",seq,opt",
            ortc_infer_identity, NULL, 0),
    ORTC_OP("", "Reshape", 25, 5, "24 23 21 19 14 13 5 1", "data:T shape:i64!", "reshaped:T", "allowzero:i=0",
            T_EVERY, ortc_infer_reshape, ortc_lift_reshape, 0),
    ORTC_OP("", "Flatten", 25, 1, "24 23 21 13 11 9 1", "input:T", "output:T", "axis:i=1", T_EVERY,
            ortc_infer_flatten, NULL, 0),
    ORTC_OP("", "Squeeze", 25, 13, "24 23 21 13 11 1", "data:T axes:i64?!", "squeezed:T", "", T_EVERY,
            ortc_infer_squeeze, ortc_lift_axes, 0),
    ORTC_OP("", "Unsqueeze", 25, 13, "24 23 21 13 11 1", "data:T axes:i64!", "expanded:T", "", T_EVERY,
            ortc_infer_unsqueeze, ortc_lift_axes, 0),
    ORTC_OP("", "Shape", 25, 1, "24 23 21 19 15 13 1", "data:T", "shape:T1", "end:i? start:i=0",
            T_EVERY " T1=i64", ortc_infer_shape, NULL, 0),
    ORTC_OP("", "Size", 25, 1, "24 23 21 19 13 1", "data:T", "size:T1", "", T_EVERY " T1=i64",
            ortc_infer_size, NULL, 0),
    ORTC_OP("", "Transpose", 25, 1, "24 23 21 13 1", "data:T", "transposed:T", "perm:is?", T_EVERY,
            ortc_infer_transpose, NULL, 0),
    ORTC_OP("", "Concat", 13, 4, "11 4 1", "inputs:T+", "concat_result:T", "axis:i!", T_PLAIN,
            ortc_infer_concat, ortc_lift_concat, 0),
    ORTC_OP("", "Split", 18, 13, "13 11 2 1", "input:T split:i64?!", "outputs:T+", "axis:i=0 num_outputs:i?",
            T_PLAIN, ortc_infer_split, ortc_lift_split, 0),
    ORTC_OP("", "Slice", 13, 10, "11 10 1", "data:T starts:Tind! ends:Tind! axes:Tind?! steps:Tind?!",
            "output:T", "", T_PLAIN " Tind=i32,i64", ortc_infer_slice, ortc_lift_slice, 0),
    ORTC_OP("", "Expand", 13, 8, "8", "input:T shape:i64!", "output:T", "", T_PLAIN, ortc_infer_expand, NULL,
            0),
    ORTC_OP("", "ConstantOfShape", 25, 9, "24 23 21 20 9", "input:T1!", "output:T2", "value:t?",
            "T1=i64 T2=num,bool,f8,u4,i4,f4e2m1,f8e8m0,u2,i2", ortc_infer_constant_of_shape, NULL, 0),
};
ORTC_FAMILY(shape, ops, &ortc_kernels_ref_shape);
