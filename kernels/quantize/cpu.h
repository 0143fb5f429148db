/* kernels/quantize/cpu.h: the family's kernels on the cpu provider. */
#ifndef ORTC_KERNELS_QUANTIZE_CPU_H
#define ORTC_KERNELS_QUANTIZE_CPU_H

#include "ortc/op.h"

extern const ortc_kernel ortc_cpu_matmul_integer; /* cpu_matmul.c */

#endif
