/* Indices on vectors: the bodies' contract (bodies_vec.c), by type of the indices, ORTC_INDEX_*. */
#ifndef ORTC_KERNELS_INDEX_BODIES_H
#define ORTC_KERNELS_INDEX_BODIES_H

#include "kernels/common/uk.h"

enum { ORTC_INDEX_I32, ORTC_INDEX_I64, ORTC_INDEX_TYPES };

typedef struct ortc_index_bodies {
    /* Whether all n indices are within -extent .. extent - 1. */
    int (*within[ORTC_INDEX_TYPES])(size_t n, const void *at, int64_t extent);
} ortc_index_bodies;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_index_bodies)

#endif
