/* What the cpu's kernels of normalisation share. */
#ifndef ORTC_KERNELS_NORM_CPU_H
#define ORTC_KERNELS_NORM_CPU_H

#include "ortc/op.h"

extern const ortc_kernel ortc_instance_blocks; /* cpu_instance.c */

#endif
