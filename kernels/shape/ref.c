/* kernels/shape/ref.c: the table of the family's kernels on ref. */
#include "kernels/shape/shape_ops.h"

#define F8 \
    (ORTC_TYPE(ORTC_F8E4M3FN) | ORTC_TYPE(ORTC_F8E4M3FNUZ) | ORTC_TYPE(ORTC_F8E5M2) | \
     ORTC_TYPE(ORTC_F8E5M2FNUZ))
#define NEWER \
    (F8 | ORTC_TYPE(ORTC_U4) | ORTC_TYPE(ORTC_I4) | ORTC_TYPE(ORTC_F4E2M1) | ORTC_TYPE(ORTC_F8E8M0) | \
     ORTC_TYPE(ORTC_U2) | ORTC_TYPE(ORTC_I2))
#define PLAIN \
    (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_STRING) | ORTC_TYPE(ORTC_C64) | \
     ORTC_TYPE(ORTC_C128))
#define EVERY (PLAIN | NEWER)
#define FILLED (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | NEWER)
#define I64 ORTC_TYPE(ORTC_I64)

ORTC_KERNELS(ref, shape, ORTC_KERNEL("Identity", 25, ORTC_NEWEST, (EVERY), &ortc_ref_rename),
             ORTC_KERNEL("Identity", 25, ORTC_NEWEST, (ORTC_TYPES_ANY), &ortc_ref_same_value),
             ORTC_KERNEL("Reshape", 25, ORTC_NEWEST, (EVERY), &ortc_ref_rename),
             ORTC_KERNEL("Flatten", 25, ORTC_NEWEST, (EVERY), &ortc_ref_rename),
             ORTC_KERNEL("Squeeze", 25, ORTC_NEWEST, (EVERY), &ortc_ref_rename),
             ORTC_KERNEL("Unsqueeze", 25, ORTC_NEWEST, (EVERY), &ortc_ref_rename),
             ORTC_KERNEL("Shape", 25, ORTC_NEWEST, (EVERY, I64), &ortc_ref_shape),
             ORTC_KERNEL("Size", 25, ORTC_NEWEST, (EVERY, I64), &ortc_ref_size),
             ORTC_KERNEL("Transpose", 25, ORTC_NEWEST, (EVERY), &ortc_ref_transpose),
             ORTC_KERNEL("Concat", 13, ORTC_NEWEST, (PLAIN), &ortc_ref_concat),
             ORTC_KERNEL("Split", 18, ORTC_NEWEST, (PLAIN), &ortc_ref_split),
             ORTC_KERNEL("Slice", 13, ORTC_NEWEST, (PLAIN, ORTC_TYPE(ORTC_I32) | I64), &ortc_ref_slice),
             ORTC_KERNEL("Expand", 13, ORTC_NEWEST, (PLAIN), &ortc_ref_expand),
             ORTC_KERNEL("ConstantOfShape", 25, ORTC_NEWEST, (I64, FILLED), &ortc_ref_fill));
