/* kernels/shape/ref.c: the table of the family's kernels on ref. */
#include "kernels/shape/shape_ops.h"

/* Tensors of strings are blocks that a kernel cannot make yet. */
#define EVERY (ORTC_TYPES_ALL & ~ORTC_TYPE(ORTC_STRING))
#define I64 ORTC_TYPE(ORTC_I64)

ORTC_KERNELS(ref, shape, ORTC_KERNEL("Identity", 25, ORTC_NEWEST, (EVERY), &ortc_ref_rename),
             ORTC_KERNEL("Reshape", 25, ORTC_NEWEST, (EVERY), &ortc_ref_rename),
             ORTC_KERNEL("Flatten", 25, ORTC_NEWEST, (EVERY), &ortc_ref_rename),
             ORTC_KERNEL("Squeeze", 25, ORTC_NEWEST, (EVERY), &ortc_ref_rename),
             ORTC_KERNEL("Unsqueeze", 25, ORTC_NEWEST, (EVERY), &ortc_ref_rename),
             ORTC_KERNEL("Shape", 25, ORTC_NEWEST, (ORTC_TYPES_ALL, I64), &ortc_ref_shape),
             ORTC_KERNEL("Size", 25, ORTC_NEWEST, (ORTC_TYPES_ALL, I64), &ortc_ref_size));
