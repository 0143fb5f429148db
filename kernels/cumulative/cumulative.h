/* kernels/cumulative/cumulative.h: what CumSum and CumProd are told, for the kernels of all providers. */
#ifndef ORTC_KERNELS_CUMULATIVE_H
#define ORTC_KERNELS_CUMULATIVE_H

#include "kernels/common/shape.h"

typedef struct ortc_cumulative_state {
    bool product, exclusive, reverse;
} ortc_cumulative_state;

/* The input as count / length / inner blocks of `length` lines of `inner` elements. */
typedef struct ortc_cumulative_shape {
    int64_t count, length, inner;
} ortc_cumulative_shape;

/* ref.c */
ortc_status ortc_cumulative_prepare(const ortc_node *, ortc_prep *, void **out);
ortc_status ortc_cumulative_shape_of(ortc_call *, ortc_cumulative_shape *out); /* by the input `axis` */

#endif
