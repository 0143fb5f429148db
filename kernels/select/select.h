/* kernels/select/select.h: the family's kernels on ref, for its table (ref.c). */
#ifndef ORTC_KERNELS_SELECT_H
#define ORTC_KERNELS_SELECT_H

#include "kernels/common/shape.h"

extern const ortc_kernel ortc_cpu_nms; /* cpu_nms.c */
extern const ortc_kernel ortc_ref_compress, ortc_ref_nms, ortc_ref_unique;

/* The optional attribute axis of Compress and Unique: without it the input counts as flat. */
typedef struct ortc_slices {
    bool flat;
    int64_t axis, sorted;
} ortc_slices;

/* ref_nms.c. The attribute center_point_box: a bool. */
ortc_status ortc_nms_prepare(const ortc_node *, ortc_prep *, void **out);

ortc_status ortc_slices_prepare(const ortc_node *, ortc_prep *, void **out); /* ref_compress.c */

/* The input as `outer` blocks of `n` slices of `inner` elements. */
static inline void ortc_slices_of(const ortc_slices *s, const ortc_view *x, int64_t *outer, int64_t *n,
                                  int64_t *inner, int32_t *axis)
{
    uint64_t around[2] = {1, 1}; /* unsigned: of shapes without elements some products do not fit */
    *outer = *inner = 1;
    *axis = 0;
    *n = s->flat ? ortc_view_count(x) : 0;
    if (s->flat || !ortc_axis_of(s->axis, x->rank, axis)) return;
    for (int32_t d = 0; d < x->rank; d++) around[d > *axis] *= d == *axis ? 1 : (uint64_t)x->dims[d];
    *outer = (int64_t)around[0];
    *inner = (int64_t)around[1];
    *n = x->dims[*axis];
}

/* The shape of a result with `n` slices. */
static inline int32_t ortc_slices_dims(const ortc_slices *s, const ortc_view *x, int32_t axis, int64_t n,
                                       int64_t *dims)
{
    for (int32_t d = 0; !s->flat && d < x->rank; d++) dims[d] = x->dims[d];
    dims[s->flat ? 0 : axis] = n;
    return s->flat ? 1 : x->rank;
}

#endif
