/* Maxima and their places on vectors: the body's contract (places_vec.c). */
#ifndef ORTC_KERNELS_POOL_PLACES_H
#define ORTC_KERNELS_POOL_PLACES_H

#include "kernels/common/uk.h"
#include "ortc/op.h"

typedef struct ortc_pool_places {
    /* Of n elements of x, `stride` apart, at places first + i * step: what is larger than best[i], the
     * first NaN, or, where place[i] is -1, anything, becomes best[i]. (lanes - 1) * stride fits 31 bits. */
    void (*find)(size_t n, const float *x, size_t stride, int32_t first, int32_t step, float *best,
                 int32_t *place);
    void (*store)(size_t n, const int32_t *place, int64_t base, int64_t *to); /* base + place; -1 stays */
} ortc_pool_places;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_pool_places)

extern const ortc_kernel ortc_cpu_pool_places; /* places.c */

#endif
