/* kernels/attention/rotate.h: pairs of f32 turned by angles: bodies' contract (rotate_vec.c). */
#ifndef ORTC_KERNELS_ROTATE_H
#define ORTC_KERNELS_ROTATE_H

#include "kernels/common/uk.h"

typedef struct ortc_rotate_vec {
    /* y1 = x1 cos - x2 sin, y2 = x1 sin + x2 cos of `half` pairs: x's halves, or its even and odd elements. y
     * may be x. */
    void (*halves)(size_t half, const float *x, const float *cos, const float *sin, float *y);
    void (*pairs)(size_t half, const float *x, const float *cos, const float *sin, float *y);
} ortc_rotate_vec;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_rotate_vec)

#endif
