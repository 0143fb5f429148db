/* kernels/common/iterate.h: walking tensors of one shape together, by strides and numpy's broadcasting.
 *
 * A walk goes through the flat positions of a shape in row-major order and keeps, for each operand, the
 * element that belongs to it. Dims that are contiguous for every operand are merged, so that equal shapes
 * walk as one dim. A walk is set up once per call and copied by each chunk, which seeks to its first
 * position.
 */
#ifndef ORTC_KERNELS_ITERATE_H
#define ORTC_KERNELS_ITERATE_H

#include <stdbool.h>

#include "ortc/op.h"

#define ORTC_RANK_LIMIT 64 /* models with more dims are refused when they are loaded */
#define ORTC_WALK_OPERANDS 4

typedef struct ortc_walk {
    int32_t rank, operands;
    int64_t dims[ORTC_RANK_LIMIT], index[ORTC_RANK_LIMIT];
    int64_t step[ORTC_WALK_OPERANDS][ORTC_RANK_LIMIT]; /* elements; 0 where an operand is broadcast */
    int64_t at[ORTC_WALK_OPERANDS];                    /* the operands' elements at the current position */
} ortc_walk;

/* Row-major strides of dims, in elements. */
static inline void ortc_dense_strides(int32_t rank, const int64_t *dims, int64_t *strides)
{
    uint64_t n = 1; /* unsigned: shapes without elements may have products that do not fit */
    for (int32_t d = rank - 1; d >= 0; d--) {
        strides[d] = (int64_t)n;
        n *= (uint64_t)dims[d];
    }
}

static inline void ortc_walk_init(ortc_walk *w, int32_t rank, const int64_t *dims)
{
    w->rank = rank;
    w->operands = 0;
    for (int32_t d = 0; d < rank; d++) {
        w->dims[d] = dims[d];
        w->index[d] = 0;
    }
}

/* Adds an operand with a stride for each dim of the walk and its element at position 0. */
static inline void ortc_walk_strided(ortc_walk *w, const int64_t *strides, int64_t start)
{
    for (int32_t d = 0; d < w->rank; d++) w->step[w->operands][d] = strides[d];
    w->at[w->operands++] = start;
}

/* Adds a dense operand that is broadcast to the walk's shape. */
static inline void ortc_walk_add(ortc_walk *w, int32_t rank, const int64_t *dims)
{
    int64_t strides[ORTC_RANK_LIMIT];
    ortc_dense_strides(rank, dims, strides);
    for (int32_t d = 0; d < w->rank; d++) {
        int32_t own = d - (w->rank - rank);
        w->step[w->operands][d] = own >= 0 && dims[own] != 1 ? strides[own] : 0;
    }
    w->at[w->operands++] = 0;
}
static inline void ortc_walk_view(ortc_walk *w, const ortc_view *v) { ortc_walk_add(w, v->rank, v->dims); }

/* Merges dims; after all operands are there. */
static inline void ortc_walk_merge(ortc_walk *w)
{
    int32_t kept = 0;
    for (int32_t d = 0; d < w->rank; d++) {
        if (w->dims[d] == 1) continue;
        bool joins = kept > 0;
        for (int32_t k = 0; joins && k < w->operands; k++)
            joins = (uint64_t)w->step[k][kept - 1] == (uint64_t)w->step[k][d] * (uint64_t)w->dims[d];
        if (!joins) {
            w->dims[kept] = w->dims[d];
            kept++;
        } else {
            w->dims[kept - 1] = (int64_t)((uint64_t)w->dims[kept - 1] * (uint64_t)w->dims[d]);
        }
        for (int32_t k = 0; k < w->operands; k++) w->step[k][kept - 1] = w->step[k][d];
    }
    w->rank = kept;
}

/* Goes from position 0 to a flat position; the shape has elements. */
static inline void ortc_walk_seek(ortc_walk *w, int64_t position)
{
    for (int32_t d = w->rank - 1; d >= 0; d--) {
        w->index[d] = position % w->dims[d];
        position /= w->dims[d];
        for (int32_t k = 0; k < w->operands; k++) w->at[k] += w->index[d] * w->step[k][d];
    }
}

static inline void ortc_walk_next(ortc_walk *w)
{
    for (int32_t d = w->rank - 1; d >= 0; d--) {
        if (++w->index[d] < w->dims[d]) {
            for (int32_t k = 0; k < w->operands; k++) w->at[k] += w->step[k][d];
            return;
        }
        for (int32_t k = 0; k < w->operands; k++) w->at[k] -= (w->dims[d] - 1) * w->step[k][d];
        w->index[d] = 0;
    }
}

#endif
