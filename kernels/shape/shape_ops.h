/* kernels/shape/shape_ops.h: the family's parts, for its two tables: shape functions and liftings for op.c, kernels
 * for ref.c.
 */
#ifndef ORTC_KERNELS_SHAPE_OPS_H
#define ORTC_KERNELS_SHAPE_OPS_H

#include "kernels/common/shape.h"

/* op_rename.c: what changes dims and leaves elements where they are */
ortc_status ortc_infer_identity(ortc_infer *);
ortc_status ortc_infer_reshape(ortc_infer *);
ortc_status ortc_lift_reshape(ortc_lift *);
ortc_status ortc_infer_flatten(ortc_infer *);
ortc_status ortc_infer_squeeze(ortc_infer *);
ortc_status ortc_infer_unsqueeze(ortc_infer *);
ortc_status ortc_lift_axes(ortc_lift *); /* attribute axes becomes input 1 */
ortc_status ortc_infer_shape(ortc_infer *);
ortc_status ortc_infer_size(ortc_infer *);

extern const ortc_kernel ortc_ref_rename;  /* ref_rename.c: Identity, Reshape, Flatten, Squeeze, Unsqueeze */
extern const ortc_kernel ortc_ref_shape;   /* ref_rename.c */
extern const ortc_kernel ortc_ref_size;    /* ref_rename.c */

#endif
