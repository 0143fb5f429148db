/* kernels/reduce/reduce.h: which dims of a tensor a reduction keeps, for the kernels of the cpu.
 *
 * Dims of one kind, kept or reduced, that lie together are merged. If the last one is reduced, results are
 * made of rows; if it is kept, of lines that are folded onto each other.
 */
#ifndef ORTC_KERNELS_REDUCE_H
#define ORTC_KERNELS_REDUCE_H

#include "kernels/common/shape.h"

typedef struct ortc_reduced {
    bool by_lines;
    int64_t each;            /* elements of one result */
    int64_t width;           /* of the last merged dim */
    ortc_walk kept, reduced; /* all but the last dim */
} ortc_reduced;

/* Whether each dim is reduced. axes NULL or empty: all of them, or none where `noop`. false: an axis is
 * outside of the rank. */
static inline bool ortc_reduce_drop(const ortc_view *x, const ortc_view *axes, bool noop, bool *drop)
{
    const int64_t given = axes ? ortc_view_count(axes) : 0;
    for (int32_t d = 0; d < x->rank; d++) drop[d] = !given && !noop;
    for (int64_t i = 0; i < given; i++) {
        int32_t axis;
        if (!ortc_axis_of(ortc_load_i64(axes->data, ORTC_I64, i), x->rank, &axis)) return false;
        drop[axis] = true;
    }
    return true;
}

static inline void ortc_reduce_dims(const ortc_view *x, const bool *drop, ortc_reduced *r)
{
    int64_t strides[ORTC_RANK_LIMIT], dims[2][ORTC_RANK_LIMIT], steps[2][ORTC_RANK_LIMIT];
    int32_t rank[2] = {0, 0}; /* kept, reduced */
    ortc_dense_strides(x->rank, x->dims, strides);
    int last = 0;
    r->each = r->width = 1;
    for (int32_t d = 0; d < x->rank; d++) {
        const int kind = drop[d];
        r->each *= kind ? x->dims[d] : 1;
        if (x->dims[d] == 1) continue;
        if (rank[0] + rank[1] && kind == last) {
            dims[kind][rank[kind] - 1] *= x->dims[d];
            steps[kind][rank[kind] - 1] = strides[d];
        } else {
            dims[kind][rank[kind]] = x->dims[d];
            steps[kind][rank[kind]++] = strides[d];
        }
        last = kind;
    }
    r->by_lines = last == 0;
    if (rank[last]) r->width = dims[last][--rank[last]];
    ortc_walk *const walks[2] = {&r->kept, &r->reduced};
    for (int k = 0; k < 2; k++) {
        ortc_walk_init(walks[k], rank[k], dims[k]);
        ortc_walk_strided(walks[k], steps[k], 0);
    }
}

extern const ortc_kernel ortc_cpu_reduce_integers; /* cpu_integers.c */

#endif
