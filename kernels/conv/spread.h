/* Lines that ConvTranspose spreads (cpu_transpose.c, cpu_transpose_lines.c): the body's contract
 * (spread_vec.c). */
#ifndef ORTC_KERNELS_CONV_SPREAD_H
#define ORTC_KERNELS_CONV_SPREAD_H

#include "kernels/common/uk.h"

typedef struct ortc_spread {
    void (*add)(size_t n, const float *x, float *y);                 /* y += x */
    void (*add_times)(size_t n, const float *x, float by, float *y); /* y += x * by */
    void (*add_one)(size_t n, const float *x, float one, float *y);  /* y = x + one */
} ortc_spread;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_spread)

#endif
