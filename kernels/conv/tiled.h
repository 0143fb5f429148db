/* Convolution of values in blocks of 16 channels on a unit of tiles (AMX): the loops around the micro-kernels
 * of tiled_uk.h, for up to three spatial dims. Of bf16; of f32 rounded to it; of f32 as pieces; of bytes.
 *
 * What rows of the output read, a band, is laid out with its padding as [group][piece][plane of the
 * window][row's phase of the stride][pixel's phase][row][pixel][64 bytes]. So neighbours in a row are
 * neighbours there whatever the stride, and, since rows follow each other, tiles go on from one to the next:
 * what lies between them, the window's width less one, is multiplied as well and not used, where that is less
 * than what tiles of their own would leave empty. Small images are laid out once for all in shared memory,
 * others band by band.
 *
 * Of floats a band leaves out planes of the window that lie beside the image, or, of one plane, its rows.
 *
 * A plain image of up to 4 channels (a stem; not of pieces) is laid out as [row's phase][row][pixel][4
 * channels].
 *
 * Of pieces: bands with an element that they do not hold, and blocks of filters with such a weight, are
 * multiplied by the tiles of f32 (blocked_uk.h), from the same places; of a stem bands with a NaN or an
 * infinity are computed by definition. Decisions follow from extents and type alone, bits from these and
 * values; threads do not count. Leaves to others: operators, choosing, ends (ortc_blocked_finish). */
#ifndef ORTC_KERNELS_CONV_TILED_H
#define ORTC_KERNELS_CONV_TILED_H

#include "blocked.h"
#include "tiled_uk.h"

typedef struct ortc_tiled_plan {
    const ortc_tiled_uk *uk;
    const ortc_blocked_uk *floats;
    int kind;     /* ORTC_TILED_* */
    int32_t type; /* of x: ORTC_FLOAT_*, ORTC_BLOCKED_BYTES */
    int flip;     /* bytes are s8 */
    int stem;     /* x is plain */
    int together; /* all bands are laid out first */
    int flat;     /* tiles go on from row to row */
    int half;     /* pixels of half a tile: fewer than 16 where a band's are as few tiles then */
    ortc_window_extents e;
    int64_t images, group, channels, filters; /* the last two of a group */
    int64_t ins, outs, lanes;                 /* blocks of a group; channels of the last one of output */
    int64_t per, groups, pieces; /* blocks of input in a group of tiles; such groups; pieces of an element */
    int64_t in_count, out_count, taps, pixel;   /* pixel: bytes of x */
    int64_t rows, row_bands, segment, segments; /* of a band; bands of a plane of output, of a row */
    int64_t bands;
    int64_t beside;                             /* images of a task, whose bands are small, */
    int64_t side;                               /* and of those whose tiles read the same weights from L1 */
    int64_t rows_in, pitch, row_phases, phases; /* as laid out, in pixels of the output */
    int64_t step;                               /* bytes of one of them */
    int64_t plane, band;                        /* bytes of a piece of a group, and of all */
    size_t ahead; /* lines of weights that a tile asks for at a tap, for those behind it */
    int64_t unit; /* pixels of a run that are finished together */
    int64_t units, unit_parts, blocks,
        block_parts; /* of a band, of a task: runs of pixels, blocks of output */
    int64_t grain;
    int64_t chunk; /* groups whose weights are split together; 0: none are */
    size_t at_laid, at_split, at_weights, scratch, shared; /* bytes; shared: of all */
    int64_t *offset;                                       /* of each tap, words; owned */
} ortc_tiled_plan;

/* Whether x is to be plain: by channels, groups, and the last dim's kernel and dilation. */
int ortc_tiled_is_stem(const ortc_conv_geometry *g, int kind);

/* The kind that is best for what `kind` says: pieces whose weights would wait for memory stay f32. */
int ortc_tiled_kind(const ortc_conv_geometry *g, int kind);

/* NULL: the machine has none for this kind. Thread: any. */
const ortc_tiled_uk *ortc_tiled_uk_get(int kind);

/* 0: this way is not for the convolution at hand; then nothing is owned. uk: what ortc_tiled_uk_get says.
 * threads: that a run has at most, 0: not known; of bytes, whose sums are exact, one thread has few tasks. */
int ortc_tiled_plan_init(const ortc_tiled_uk *uk, const ortc_conv_geometry *g, ortc_dtype type, int kind,
                         uint32_t threads, ortc_tiled_plan *out);
void ortc_tiled_plan_deinit(ortc_tiled_plan *);
/* Clocks of one core, in the measure of cpu.c. */
double ortc_tiled_clocks(const ortc_tiled_plan *p);

/* W [group * filters][channels][kernel] as the micro-kernels read it: its bytes (0: do not fit), and the
 * filling, w of any alignment. Behind it, s32 for each block of output: of pieces whether it is none, of
 * bytes 16 sums. */
size_t ortc_tiled_weight_bytes(const ortc_conv_geometry *g, int kind);
int32_t ortc_tiled_weight_fill(const ortc_conv_geometry *g, ortc_dtype type, int kind, const void *w,
                               void *dst, const ortc_product_threads *threads);

/* args as of ortc_blocked_run; plain: W as it was given; not of bytes. space: `shared` bytes, 64-byte
 * aligned. Thread: any. Returns 0 or what `parallel` returned. */
int32_t ortc_tiled_run(const ortc_tiled_plan *p, const ortc_blocked_args *args, const void *plain,
                       void *space, const ortc_product_threads *threads);

#endif
