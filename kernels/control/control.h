/* kernels/control/control.h: the family's kernels, for its table. */
#ifndef ORTC_KERNELS_CONTROL_H
#define ORTC_KERNELS_CONTROL_H

#include "kernels/common/shape.h"

extern const ortc_kernel ortc_ref_scan; /* ref_scan.c */

#endif
