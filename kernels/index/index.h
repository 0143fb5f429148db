/* kernels/index/index.h: the family's kernels on ref, and what they share: indices that are checked, and
 * updates. */
#ifndef ORTC_KERNELS_INDEX_H
#define ORTC_KERNELS_INDEX_H

#include "kernels/common/shape.h"

extern const ortc_kernel ortc_ref_gather;                                     /* ref_gather.c */
extern const ortc_kernel ortc_ref_gather_elements, ortc_ref_scatter_elements; /* ref_elements.c */
extern const ortc_kernel ortc_ref_gather_nd, ortc_ref_scatter_nd;             /* ref_tuples.c */

enum { ORTC_UPDATE_SET = 0, ORTC_UPDATE_ADD, ORTC_UPDATE_MUL, ORTC_UPDATE_MIN, ORTC_UPDATE_MAX };

/* Attributes of all: axis (Gather, elements), batch_dims (GatherND), reduction (scatters). */
typedef struct ortc_index_state {
    int64_t axis, batch_dims;
    int update; /* ORTC_UPDATE_* */
} ortc_index_state;

/* ref.c */
ortc_status ortc_index_prepare(const ortc_node *, ortc_prep *, void **out);
ortc_status ortc_index_supports(const ortc_node *, const ortc_device *, ortc_why *);
/* y[i ..] (op)= u[k ..], n elements of type t. */
void ortc_index_update(int update, ortc_dtype t, void *y, int64_t i, const void *u, int64_t k, int64_t n);
/* Makes the output a copy of the data, where it is not in place. */
ortc_status ortc_index_copy(ortc_call *);

/* *at becomes 0 .. extent; false: outside. */
static inline bool ortc_index_wrap(int64_t *at, int64_t extent)
{
    if (*at < -extent || *at >= extent) return false;
    *at += *at < 0 ? extent : 0;
    return true;
}

#endif
