/* Convolution of 3x3 windows without strides, dilated or not, by Winograd's transforms (winograd_uk.h), of
 * values in blocks of 16 channels: F(2x2,3x3), 2.25 times fewer multiplications, and F(4x4,3x3), 4 times
 * fewer. f32, f16 and bf16, computed in f32. Of three dims the last two are transformed, and the planes of a
 * window (one to three, of any stride) are like more channels; those beside the image are left out where all
 * of a batch has them there.
 *
 * A dilated window sees every so many pixels: what begins at each of the first so many pixels of a row and of
 * a column is an image of its own, with windows that are not dilated (a part of the image).
 *
 * Tiles of the output are numbered over all images, their parts, rows and columns, and go in batches. Patches
 * of all input channels under a batch are transformed; each point is then a product, for which the tile of
 * blocked_uk.h serves (pixels are patches); sums of one or two blocks of output at all points are transformed
 * back, finished and stored. Many batches: each is one task, and what it transforms stays in its L2. Few:
 * everything is transformed first, then tasks are batches and blocks of output.
 *
 * What the transforms do to an infinity or a NaN would reach a whole tile; so would overflow on the way.
 * Tiles with sums that are not finite are therefore computed again as blocked.h does it, from W as the model
 * has it: results are those of the definition everywhere, at the price of time where such numbers are.
 *
 * On a unit of tiles (AMX) products go in pieces (tiled_uk.h): patches are cut as they are transformed,
 * weights are packed so, or, where they are many, cut by the first product of a batch that reads them. Tiles
 * whose patches pieces do not hold, and blocks of filters with such weights, are computed by definition too.
 *
 * Products of F(2x2,3x3) may go by pairs of bf16 (blocked_uk.h): patches and weights are rounded once they
 * are transformed, sums are f32. F(4x4,3x3) makes too much of such errors.
 *
 * No sum depends on batches, whose size may follow from the number of threads: the same bits on any number.
 */
#ifndef ORTC_KERNELS_CONV_WINOGRAD_H
#define ORTC_KERNELS_CONV_WINOGRAD_H

#include "blocked.h"
#include "tiled_uk.h"
#include "winograd_uk.h"

/* Of three dims, about the first: planes. */
typedef struct ortc_winograd_depth {
    int64_t in, out, kernel, stride, dilation, pad;
} ortc_winograd_depth;

typedef struct ortc_winograd_plan {
    const ortc_winograd_side *side;
    const ortc_blocked_uk *uk;
    const ortc_tiled_uk *tiles;      /* products go in pieces; NULL: as fused multiply-adds, */
    const ortc_blocked_pairs *pairs; /* or by pairs, NULL: not */
    ortc_conv_geometry g;            /* of planes of the output */
    ortc_winograd_depth window;
    int32_t type;         /* ORTC_FLOAT_* */
    int64_t m, n, points; /* pixels a side of a tile, of a patch; n * n */
    int64_t ins, depth;   /* blocks of input, channels of the last one */
    int64_t all;          /* blocks under a window: of all its planes */
    int64_t vector;       /* of a block of a transformed patch, words of 4 bytes: 16, of pairs 8 */
    int64_t groups;       /* in pieces: pairs of blocks of input, of all planes */
    int plain;            /* in pieces: weights lie in f32 and are cut as they are read */
    int64_t outs, lanes;  /* blocks of output, channels of the last one */
    int64_t dilation[2], phases[2], extent[2]; /* parts of an image along rows and columns, pixels of one */
    int64_t down, across, count;               /* tiles of a column, of a row of a part, of all images */
    int64_t batch, batches;                    /* tiles of a batch: so many, or fewer by one dealing */
    int64_t wide;                              /* blocks of output at a time */
    int64_t parts;                             /* of the filters, each of which transforms all patches */
    int together;           /* everything is transformed first, into `shared` bytes of workspace */
    int64_t chunk;          /* blocks of output whose weights are packed at a time, behind patches in
                                    `shared`; 0: all were */
    size_t shared, scratch; /* bytes; scratch: for each worker */
    int64_t at_sums, at_rows, at_patch, at_weights, at_cut; /* in scratch, floats */
} ortc_winograd_plan;

/* What products go by in pieces; NULL: there is none, or channels are too few. Thread: any. */
const ortc_tiled_uk *ortc_winograd_tiles(const ortc_conv_geometry *g);

/* How products go; of weights which form. */
enum { ORTC_WINOGRAD_FLOATS, ORTC_WINOGRAD_PIECES, ORTC_WINOGRAD_PAIRS };

/* m: 2 or 4; tiles: NULL, or what products go by in pieces; pairs: NULL, or what they go by as pairs, of m =
 * 2; threads: that a run has at most, 0: not known. 0: not for the convolution at hand. */
int ortc_winograd_plan_init(const ortc_conv_geometry *g, ortc_dtype type, int m, const ortc_tiled_uk *tiles,
                            const ortc_blocked_pairs *pairs, uint32_t threads, ortc_winograd_plan *out);

/* W transformed, in f32, for pairs, or for pieces, with an s32 behind for each block of output whether they
 * do not hold it: cut, where that is little memory, or as tiles of f32. Its bytes (0: do not fit), and the
 * filling of n blocks of output from the first on (even), w being all of W, of any alignment. */
size_t ortc_winograd_weight_bytes(const ortc_conv_geometry *g, int m, int form);
int32_t ortc_winograd_weight_fill(const ortc_conv_geometry *g, ortc_dtype type, int m, int form,
                                  const void *w, int64_t first, int64_t n, void *dst,
                                  const ortc_product_threads *threads);

/* Of a run whose weights nobody packed (args->w is NULL) and nobody keeps: they are where they are read, a
 * chunk of blocks of output after the other, in memory of one, of about so many bytes. 0, and nothing
 * changed: they are no more than that, would be packed again for every batch, or are for pieces (whose passes
 * over patches chunks make narrower, which is slower: docs/performance.md). */
int ortc_winograd_plan_chunks(ortc_winograd_plan *p, uint32_t threads, int64_t bytes);

/* As ortc_blocked_run; plain: W in the model; space: the plan's `shared` bytes. */
int32_t ortc_winograd_run(const ortc_winograd_plan *p, const ortc_blocked_args *args, const void *plain,
                          float *space, const ortc_product_threads *threads);

#endif
