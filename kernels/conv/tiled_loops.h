/* What the loops of tiled.h share: tiled.c (plan, laying out, tiles, tasks), tiled_plain.c (weights that
 * stay f32), tiled_weights.c (packing), tiled_finish.c (what becomes of sums), tiled_again.c (what tiles do
 * not multiply). */
#ifndef ORTC_KERNELS_CONV_TILED_LOOPS_H
#define ORTC_KERNELS_CONV_TILED_LOOPS_H

#include <stdatomic.h>

#include "kernels/common/counts.h"
#include "kernels/gemm/integer_tail.h"
#include "tiled.h"

enum {
    ORTC_TILED_UNIT = 128, /* pixels that are finished together: their sums stay in L1 */
    ORTC_TILED_UNITS = 4,  /* of pieces: so many go over a chunk of weights */
};

/* ---- Weights (tiled_weights.c) ------------------------------------------------------------------------- */

static inline int64_t ortc_tiled_blocks_of_group(int kind) { return kind == ORTC_TILED_BYTES ? 4 : 2; }
static inline int ortc_tiled_in_pieces(int kind)
{
    return kind == ORTC_TILED_PIECES || kind == ORTC_TILED_PLAIN;
}
static inline int ortc_tiled_in_16_bits(int kind)
{
    return kind == ORTC_TILED_BF16 || kind == ORTC_TILED_ROUNDED;
}
static inline int64_t ortc_tiled_pieces(int kind) { return ortc_tiled_in_pieces(kind) ? 3 : 1; }
/* Bytes of weights of a block, group and tap, as they are packed. */
static inline int64_t ortc_tiled_weight_tile(int kind)
{
    return kind == ORTC_TILED_PLAIN ? ORTC_TILED_PLAIN_BYTES
                                    : ortc_tiled_pieces(kind) * ORTC_TILED_TILE_BYTES;
}
static inline int64_t ortc_tiled_stem_pixel(int kind) /* bytes */
{
    return ORTC_STEM_CHANNELS * (kind == ORTC_TILED_BYTES ? 1 : 2);
}
/* Tiles of weights of a block, and of a group's taps. */
int64_t ortc_tiled_taps(const ortc_conv_geometry *g, int kind);
/* Where, in bytes, block k of a group with `outs` begins, whose own bytes are `each`; *step: from a tap to
 * the next; *next: from the block to the one that is multiplied with it. */
int64_t ortc_tiled_block_at(int kind, int64_t k, int64_t outs, int64_t each, int64_t *step, int64_t *next);

/* How many groups tiles of a unit go over before the next ones. Of points in pieces the weights of 6 to 10
 * groups are just too many for L1, beside pixels: those of 4 stay there, and all tiles but the first find
 * them (6 groups 295 and 340 GFLOP/s, 8 320 and 355; 5, 12 and more are not slower at once). In 16 bits a
 * tile of 3x3 over 64 channels would read 36 KB of weights in the time in which L2 gives as many; points,
 * beside whose weights as many pixels are read, go over 16 KB of them (28 KB: 0.9). */
enum { ORTC_TILED_NEAR_WINDOWS = 28 * 1024, ORTC_TILED_NEAR_POINTS = 16 * 1024 };
static inline int64_t ortc_tiled_groups_at_once(int kind, int64_t groups, int64_t taps)
{
    const int64_t near = (taps == 1 ? ORTC_TILED_NEAR_POINTS : ORTC_TILED_NEAR_WINDOWS) /
                         (ORTC_TILE_BLOCKS * ORTC_TILED_TILE_BYTES * taps);
    if (ortc_tiled_in_16_bits(kind)) {
        const int64_t most = near + !near, parts = (groups + most - 1) / most;
        return parts ? (groups + parts - 1) / parts : 1; /* evenly */
    }
    return ortc_tiled_in_pieces(kind) && taps == 1 && groups >= 6 && groups <= 10 ? 4 : groups;
}

/* ---- Loops --------------------------------------------------------------------------------------------- */

typedef struct ortc_tiled_job {
    const ortc_tiled_plan *p;
    const ortc_blocked_args *a;
    const char *plain;
    char *shared;
    atomic_int *odd; /* bands that pieces do not hold: of shared ones */
    ortc_blocked_end end;
    int straight;           /* f32 whose end is a residual and a clip */
    int weights_odd, again; /* again: what pieces do not hold */
} ortc_tiled_job;

typedef struct ortc_tiled_band {
    const ortc_tiled_job *j;
    int64_t image, group, plane, row, rows, column, pixels; /* of output */
    char *laid;
} ortc_tiled_band;

/* Band i, numbered [image][group][plane][rows][segment]. */
ortc_tiled_band ortc_tiled_band_of(const ortc_tiled_job *j, int64_t i, char *laid);
/* Pixels of unit u of a band, from what is returned to *to - 1, as tiles count them. */
int64_t ortc_tiled_unit(const ortc_tiled_band *b, int64_t u, int64_t *to);
/* Whether a block of output, of all, has weights that pieces do not hold. */
int ortc_tiled_is_odd(const ortc_tiled_job *j, int64_t block);

/* What tiles of a plan have alike. */
ortc_tiled_tile ortc_tiled_tile_of(const ortc_tiled_job *j);
/* Weights of a block, of all; *step, *next as of ortc_tiled_block_at. */
const char *ortc_tiled_weights_at(const ortc_tiled_job *j, int64_t block, int64_t *step, int64_t *next);
/* How many blocks, 1 or 2, tiles go over together from block k of a group on, before `end`, the group's own
 * beginning with `first` of all; 0: block k is odd. */
int64_t ortc_tiled_run_of_blocks(const ortc_tiled_job *j, int64_t first, int64_t k, int64_t end);

/* Pieces of weights that lie in f32 (tiled_plain.c): blocks b0 .. b1-1 of a band's group; tasks
 * [group][blocks][units of all bands], which are laid out. */
void ortc_tiled_plain_band(const ortc_tiled_band *b, int64_t b0, int64_t b1, void *scratch);
void ortc_tiled_plain_tasks(void *job, int64_t begin, int64_t end, void *scratch);

/* Sums of `blocks` blocks of output from `block` on (of all), of pixels from .. to-1 of a band as tiles count
 * them, [block][UNIT][16], to where they belong. fixed: in fixed point, sums having begun as 0. */
void ortc_tiled_finish(const ortc_tiled_band *b, int fixed, float *sums, int64_t block, int64_t blocks,
                       int64_t from, int64_t to);

/* What tiles do not multiply, of units u0 .. u1-1 and blocks b0 .. b1-1 of a band's group: all, or blocks
 * whose weights are odd. weights: scratch for those of a block in f32. */
void ortc_tiled_again(const ortc_tiled_band *b, int all, int64_t b0, int64_t b1, int64_t u0, int64_t u1,
                      float *sums, float *weights);

#endif
