/* kernels/rearrange/rearrange.h: what the family's files share. */
#ifndef ORTC_KERNELS_REARRANGE_H
#define ORTC_KERNELS_REARRANGE_H

#include "kernels/common/move.h"
#include "kernels/common/shape.h"
#include "kernels/common/strings.h"

/* op_pad.c */
ortc_status ortc_infer_pad(ortc_infer *);
ortc_status ortc_lift_pad(ortc_lift *);
ortc_status ortc_infer_center(ortc_infer *);

extern const ortc_kernel ortc_ref_pad, ortc_ref_center;                    /* ref_pad.c */
extern const ortc_kernel ortc_ref_depth_to_space, ortc_ref_space_to_depth; /* ref_depth.c */

#endif
