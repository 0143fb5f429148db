/* kernels/conv/winograd_batch.h: how a batch of tiles lies, and its weights: what winograd_plan.c,
 * winograd_weights.c and winograd.c share.
 */
#ifndef ORTC_KERNELS_CONV_WINOGRAD_BATCH_H
#define ORTC_KERNELS_CONV_WINOGRAD_BATCH_H

#include "blocked_weights.h"
#include "kernels/common/counts.h"
#include "tiled.h"
#include "winograd.h"

#define BLOCK ORTC_BLOCK
#define MOST_PLANES 3
#define PIECES_BYTES 2e6 /* more of them come from behind L2 for every batch: weights stay f32 */
enum { PIECES = 3, PAIR = ORTC_TILE_BLOCKS, WEIGHTS = PIECES * ORTC_TILED_TILE_BYTES };

const ortc_winograd_side *ortc_winograd_side_of(int m);

/* Planes of a window. */
static inline int64_t planes_of(const ortc_conv_geometry *g) { return g->kernel_count / 9; }

static inline int is_plain(const ortc_conv_geometry *g, int m)
{
    return (double)((m + 2) * (m + 2)) * (double)(planes_of(g) * ceil_div(g->channels, 2 * BLOCK)) *
               (double)ceil_div(g->filters, BLOCK) * WEIGHTS >
           PIECES_BYTES;
}

static inline int64_t tile_bytes(const ortc_conv_geometry *g, int m)
{
    return is_plain(g, m) ? ORTC_TILED_PLAIN_BYTES : WEIGHTS;
}

static inline int64_t weight_bytes(const ortc_conv_geometry *g, int m, int form) /* of a block of output */
{
    const int64_t points = (m + 2) * (m + 2) * planes_of(g);
    return form == ORTC_WINOGRAD_PIECES ? points * ceil_div(g->channels, 2 * BLOCK) * tile_bytes(g, m)
                                        : points * ceil_div(g->channels, BLOCK) * BLOCK * BLOCK *
                                              (form == ORTC_WINOGRAD_PAIRS ? 2 : 4);
}

/* As products read them. */
static inline int64_t rows_of(const ortc_winograd_plan *p, int64_t tiles)
{
    return p->tiles ? ceil_div(tiles, ORTC_TILE_HALF) * ORTC_TILE_HALF : tiles;
}
/* Floats from a point to the next, of patches and of sums. A line more than they are: with strides of whole
 * pages all points of a tile have one place in L1. */
static inline int64_t patch_step(const ortc_winograd_plan *p, int64_t tiles)
{
    return (p->tiles ? p->groups * PIECES : p->all) * rows_of(p, tiles) * p->vector + BLOCK;
}
static inline int64_t sum_step(const ortc_winograd_plan *p, int64_t tiles)
{
    return (p->wide * rows_of(p, tiles) + 1) * BLOCK;
}
/* Tiles that are dealt together: an operand of products in pieces. */
static inline int64_t unit_of(const ortc_winograd_plan *p) { return p->tiles ? ORTC_TILE_HALF : 1; }
/* The first tile of batch i. */
static inline int64_t batch_at(const ortc_winograd_plan *p, int64_t i)
{
    return min64(dealt(ceil_div(p->count, unit_of(p)), p->batches, i) * unit_of(p), p->count);
}

/* Floats of so many tiles' patches, transformed; in pieces with a byte for each tile and group behind. */
static inline int64_t patches_of(const ortc_winograd_plan *p, int64_t tiles)
{
    return p->points * patch_step(p, tiles) + (p->tiles ? ceil_div(p->groups * tiles, BLOCK * 4) * BLOCK : 0);
}

static inline ortc_dtype type_of(const ortc_winograd_plan *p)
{
    static const ortc_dtype types[] = {ORTC_F32, ORTC_F16, ORTC_BF16}; /* by ORTC_FLOAT_* */
    return types[p->type];
}
static inline int form_of(const ortc_winograd_plan *p) /* where products are not in pieces */
{
    return p->pairs ? ORTC_WINOGRAD_PAIRS : ORTC_WINOGRAD_FLOATS;
}

static inline size_t shared_patches(const ortc_winograd_plan *p)
{
    return ortc_blocked_to_line((size_t)(p->batches * patches_of(p, p->batch)) * sizeof(float));
}

#endif
