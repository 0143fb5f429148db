/* What the loops of tiled.h share: tiled.c (plan, laying out, tiles, tasks), tiled_weights.c (packing),
 * tiled_finish.c (what becomes of sums), tiled_again.c (what tiles do not multiply). */
#ifndef ORTC_KERNELS_CONV_TILED_LOOPS_H
#define ORTC_KERNELS_CONV_TILED_LOOPS_H

#include <stdatomic.h>

#include "kernels/gemm/integer_tail.h"
#include "tiled.h"

enum {
    ORTC_TILED_UNIT = 128,         /* pixels that are finished together: their sums stay in L1 */
    ORTC_TILED_WEIGHT_TILE = 1024, /* bytes: 16 filters, a group, a tap, a piece */
};

static inline int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
static inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

/* ---- Weights (tiled_weights.c) ------------------------------------------------------------------------- */

static inline int64_t ortc_tiled_blocks_of_group(int kind) { return kind == ORTC_TILED_BYTES ? 4 : 2; }
static inline int64_t ortc_tiled_pieces(int kind) { return kind == ORTC_TILED_PIECES ? 3 : 1; }
static inline int64_t ortc_tiled_stem_pixel(int kind) /* bytes */
{
    return ORTC_STEM_CHANNELS * (kind == ORTC_TILED_BYTES ? 1 : 2);
}
/* Tiles of weights of a block, and of a group's taps. */
int64_t ortc_tiled_taps(const ortc_conv_geometry *g, int kind);
/* Where, in bytes, block k of a group with `outs` begins, whose own bytes are `each`; *step: from a tap to
 * the next; *next: from the block to the one that is multiplied with it. */
int64_t ortc_tiled_block_at(int kind, int64_t k, int64_t outs, int64_t each, int64_t *step, int64_t *next);

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

/* Pixels of unit u of a band, from what is returned to *to - 1, as tiles count them. */
int64_t ortc_tiled_unit(const ortc_tiled_band *b, int64_t u, int64_t *to);
/* Whether a block of output, of all, has weights that pieces do not hold. */
int ortc_tiled_is_odd(const ortc_tiled_job *j, int64_t block);

/* Sums of `blocks` blocks of output from `block` on (of all), of pixels from .. to-1 of a band as tiles count
 * them, [block][UNIT][16], to where they belong. fixed: in fixed point, sums having begun as 0. */
void ortc_tiled_finish(const ortc_tiled_band *b, int fixed, float *sums, int64_t block, int64_t blocks,
                       int64_t from, int64_t to);

/* What tiles do not multiply, of units u0 .. u1-1 and blocks b0 .. b1-1 of a band's group: all, or blocks
 * whose weights are odd. weights: scratch for those of a block in f32. */
void ortc_tiled_again(const ortc_tiled_band *b, int all, int64_t b0, int64_t b1, int64_t u0, int64_t u1,
                      float *sums, float *weights);

#endif
