/* kernels/quantize/cpu.h: the family's kernels on the cpu provider. */
#ifndef ORTC_KERNELS_QUANTIZE_CPU_H
#define ORTC_KERNELS_QUANTIZE_CPU_H

#include "kernels/common/uk.h"
#include "ortc/op.h"

/* dynamic_vec.c */
typedef struct ortc_dynamic_body {
    void (*range)(size_t n, const float *x, float *low, float *high); /* which have been something before */
    void (*quantise)(size_t n, const float *x, float scale, float zero, uint8_t *y);
} ortc_dynamic_body;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_dynamic_body)

extern const ortc_kernel ortc_cpu_dynamic_quantize; /* cpu_dynamic.c */
extern const ortc_kernel ortc_cpu_matmul_integer;   /* cpu_matmul.c */

#endif
