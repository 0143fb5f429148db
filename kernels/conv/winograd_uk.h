/* The transforms of Winograd's convolution of 3x3 windows, F(2x2,3x3) and F(4x4,3x3), over blocks of 16
 * channels: what bodies over vectors (winograd_vec.c) promise to their driver (winograd.h).
 *
 * With m = 2 or 4 pixels a side of a tile of the output, n = m + 2 of its patch of the input, and n * n
 * points:
 *   y = A' [ (G w G') . (B' x B) ] A,   the . being a product for each point, summed over input channels.
 * Points of m = 2 are 0, 1, -1 and infinity, of m = 4 0, 1, -1, 1/2, -2 and infinity (the error is least of
 * those in use: Barabasz et al. 1803.10986); A and B are exact in f32, G is applied in double. Point (i, j)
 * has number i * n + j. A block is 16 floats; addresses of any alignment. No state, no allocation. */
#ifndef ORTC_KERNELS_CONV_WINOGRAD_UK_H
#define ORTC_KERNELS_CONV_WINOGRAD_UK_H

#include <stdint.h>

#include "kernels/common/blocks.h"
#include "kernels/common/uk.h"

#define ORTC_WINOGRAD_SIDE 6 /* n, at most */

/* Where a tile of one block of the output goes, and what happens to it there, in this order. */
typedef struct ortc_winograd_end {
    const float *bias;        /* [16] */
    const float *residual;    /* lies as y does, NULL: none; added */
    float *y;                 /* [rows][pitch floats], a row: [cols][16] */
    size_t pitch, rows, cols; /* rows, cols: 1 .. m, of the tile, that exist */
    int clip;                 /* then min(max(s, lo), hi); a NaN stays */
    float lo, hi;
} ortc_winograd_end;

/* Of one m: */
typedef struct ortc_winograd_side {
    /* A patch of one block, `row` floats from a row to the next, to v + point * `step` floats. */
    void (*input)(const float *x, size_t row, float *v, size_t step);
    /* Sums at s + point * step to a tile. Not 0: some sum was not a finite number; then what is written is
     * not to be used. Every patch with a NaN or an infinity in it makes one, and so does overflow on the way.
     * */
    int (*output)(const float *s, size_t step, const ortc_winograd_end *end);
    /* w [9][16 filters] to u + point * step */
    void (*weights)(const float *w, float *u, size_t step);
} ortc_winograd_side;

typedef struct ortc_winograd_uk {
    ortc_winograd_side of[2]; /* m = 2, 4 */
} ortc_winograd_uk;

#endif
