/* Indices over lines of elements: the bodies' contract (bodies_vec.c), by type of the indices, ORTC_INDEX_*.
 * An index below 0 counts from the end. */
#ifndef ORTC_KERNELS_INDEX_BODIES_H
#define ORTC_KERNELS_INDEX_BODIES_H

#include "kernels/common/uk.h"

enum { ORTC_INDEX_I32, ORTC_INDEX_I64, ORTC_INDEX_TYPES };

typedef struct ortc_index_bodies {
    /* Whether all n indices are within -extent .. extent - 1. */
    int (*within[ORTC_INDEX_TYPES])(size_t n, const void *at, int64_t extent);
    /* y[k] = x[at[k]], and y[k] = x[k + at[k] * stride], for elements of 1, 2, 4, 8 and 16 bytes. */
    void (*row[ORTC_INDEX_TYPES][5])(size_t n, const void *at, int64_t extent, const void *x, void *y);
    void (*columns[ORTC_INDEX_TYPES][5])(size_t n, const void *at, int64_t extent, int64_t stride,
                                         const void *x, void *y);
} ortc_index_bodies;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_index_bodies)

#endif
