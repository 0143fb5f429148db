/* kernels/reorder/reorder.h: what Reorder moves. */
#ifndef ORTC_KERNELS_REORDER_H
#define ORTC_KERNELS_REORDER_H

#include "ortc/op.h"

/* Elements below a byte, and strings, have the plain layout only. */
#define WHOLE_BYTES \
    (ORTC_TYPES_ALL & \
     ~(ORTC_TYPE(ORTC_STRING) | ORTC_TYPE(ORTC_U4) | ORTC_TYPE(ORTC_I4) | ORTC_TYPE(ORTC_F4E2M1) | \
       ORTC_TYPE(ORTC_U2) | ORTC_TYPE(ORTC_I2) | ORTC_TYPE(ORTC_F6E2M3) | ORTC_TYPE(ORTC_F6E3M2)))

#endif
