/* kernels/index/index.h: the family's kernels on ref, and what they share: indices that are checked, and
 * updates. */
#ifndef ORTC_KERNELS_INDEX_H
#define ORTC_KERNELS_INDEX_H

#include "kernels/common/shape.h"
#include "kernels/index/bodies.h"

extern const ortc_kernel ortc_ref_gather;                                     /* ref_gather.c */
extern const ortc_kernel ortc_ref_gather_elements, ortc_ref_scatter_elements; /* ref_elements.c */
extern const ortc_kernel ortc_ref_gather_nd, ortc_ref_scatter_nd;             /* ref_tuples.c */

extern const ortc_kernel ortc_cpu_gather_elements, ortc_cpu_scatter_elements; /* cpu_elements.c */
extern const ortc_kernel ortc_cpu_gather_nd, ortc_cpu_scatter_nd;             /* cpu_tuples.c */

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

/* Tuples of indices, each of which names a slice of the data. */
typedef struct ortc_tuples {
    const int64_t *dims;    /* of the data, from the first one that is indexed */
    const int64_t *at;      /* the tuples, checked */
    int64_t length, tuples; /* indices in a tuple; tuples in all */
    int64_t each;           /* tuples of one batch element */
    int64_t slice, rows;    /* elements that a tuple names; slices in a batch element of the data */
} ortc_tuples;

/* ref_tuples.c: inputs 0 and 1, `batch` leading dims of which are shared; fails where a tuple is outside. */
ortc_status ortc_tuples_init(int64_t batch, ortc_call *, ortc_tuples *);
/* The slice that a tuple names. */
static inline int64_t ortc_tuple_slice(const ortc_tuples *t, int64_t tuple)
{
    int64_t at = 0;
    for (int64_t k = 0; k < t->length; k++) {
        int64_t index = t->at[tuple * t->length + k];
        index += index < 0 ? t->dims[k] : 0;
        at = at * t->dims[k] + index;
    }
    return tuple / t->each * t->rows + at;
}

/* cpu.c: indices begin .. end: which is the first outside of an axis; -1: none. Fails for one that is not -1,
 * and says which it is. Both for all of them. */
int64_t ortc_index_first_wrong(const ortc_index_bodies *, const ortc_view *at, int64_t begin, int64_t end,
                               int64_t extent);
ortc_status ortc_index_refuse(ortc_call *, const ortc_view *at, int64_t wrong, int64_t extent, int32_t axis);
ortc_status ortc_index_check(ortc_call *, const ortc_view *at, int64_t extent, int32_t axis);
const ortc_index_bodies *ortc_index_bodies_get(void); /* the best on this machine */

/* cpu.c: results cost what they read and write; scattering may be in place of the data */
ortc_status ortc_index_gather_plan(const void *state, ortc_plan *, void **pstate);
ortc_status ortc_index_scatter_plan(const void *state, ortc_plan *, void **pstate);

#endif
