/* Convolution of values in blocks of 16 channels, [image][block][..positions][16], up to three spatial
 * dims: the loops around the micro-kernels of blocked_uk.h. Also the stem, whose image is plain, with few
 * channels. Of floats, and of bytes where the machine multiplies them by fours, or of bf16 by pairs: so
 * many channels lie in a word of 4 bytes then, which is what is counted below where it says floats. f32
 * may be rounded to bf16 as it is laid out.
 *
 * A task is some rows (a row is cut in segments where it is long) of some blocks of output channels. It
 * goes over the input channels in chunks whose weights for one tile stay in L2, and adds up in the output,
 * or in scratch. The rows that a chunk reads are laid out in scratch first, in f32, with the padding
 * around them and apart by their phase of the stride, so that everything behind sees neighbouring pixels
 * and no border: a copy for every 16 * taps * blocks multiplications. Groups of f32 that are no whole blocks
 * are laid out as such, too, and their results go from scratch to their lanes of y: what one group has never
 * meets another's, be it zeros or infinities. Taps that a whole row has beside the
 * image (far apart: a run of its pixels) are left out, of f32, of 16 bits where columns are far, and,
 * where they are many, of bytes. Where nothing is padded, strided or narrow, x is read where it lies, and
 * so is where all that is beside the image is left out (of 16 bits a chunk of it is widened as it lies);
 * windows of one pixel make one long row of an image.
 *
 * Decisions follow from extents, type and threads, but for the order of sums: results are the same bits on
 * any number of threads. Channels that only pad the last block are written as 0. Leaves to others:
 * operators, choosing.
 */
#ifndef ORTC_KERNELS_CONV_BLOCKED_H
#define ORTC_KERNELS_CONV_BLOCKED_H

#include "blocked_uk.h"
#include "columns_uk.h"
#include "geometry.h"
#include "kernels/common/vector/convert.h"
#include "kernels/gemm/epilogue.h"

enum { ORTC_STEM_CHANNELS = 4 };                           /* of a plain image, at most */
enum { ORTC_BLOCKED_STRIDE = 16, ORTC_BLOCKED_SEEN = 64 }; /* at most; taps, where some may be left out */
enum { ORTC_BLOCKED_BYTES = 3 }; /* a type beside ORTC_FLOAT_*: u8 or s8, W s8 or u8 moved by 128 */

typedef struct ortc_blocked_plan {
    const ortc_blocked_uk *uk;
    const ortc_columns_uk *columns;
    const ortc_convert *convert;
    const ortc_blocked_bytes *bytes; /* NULL: of floats */
    const ortc_blocked_pairs *pairs; /* NULL: not of pairs; the type is that of x and y */
    int32_t type;                    /* ORTC_FLOAT_*, ORTC_BLOCKED_BYTES */
    int flip;                        /* bytes are s8 */
    int stem, in_place;
    int uneven;                 /* of groups that are no whole blocks */
    int widened;                /* in place, but of 16 bits: all of an image's rows, as f32 in scratch */
    int far;                    /* tiles ask for what the next ones read where it lies */
    int leaves_out, by_columns; /* taps beside the image: those of whole rows; of runs of pixels, too */
    int flat;                   /* rows are laid out as one: windows of one pixel, whole rows */
    int64_t images, group;
    int64_t ins, depth;  /* of a group: blocks of input (of a stem: channels), floats of the last one */
    int64_t channels;    /* of a group */
    int64_t pixel;       /* bytes of a pixel of x, in a block or a plane */
    int64_t outs, lanes; /* of a group: blocks of output, channels of the last one */
    int64_t filters;     /* of a group */
    ortc_window_extents e;
    int64_t in_count, out_count, taps;
    int64_t chunk, chunks;       /* blocks of input that are added up at a time; how often */
    int64_t segment;             /* pixels of a row: all, or so many (the last of a row may have less) */
    int64_t segments;            /* of a row */
    int64_t rows, row_tasks;     /* of a task; tasks for the rows of a plane of output */
    int64_t blocks, block_tasks; /* of output, of a task; tasks for all of a group */
    /* As staged, floats: */
    int64_t step;                   /* from a pixel to the next: 16, of pairs 8, of bytes 4, of a stem 1 */
    int64_t pitch, row, plane, all; /* a phase of a row, all of them, a block of input, a chunk */
    int64_t rows_in;                /* rows of a block's plane */
    int64_t row_skip, row_step;     /* rows of input for one of these; of these for one of output */
    int64_t phases;                 /* of a row */
    int64_t grain;
    int64_t held; /* pixels whose sums may wait to be finished together */
    /* Where things are in scratch, in floats: results to be finished there, a row to be widened, the
     * places of what is taken once more, and weights of 16 bits as f32 (-1: too few tiles read them). */
    int64_t sums, line, places, wide;
    size_t scratch;  /* bytes for each worker */
    int64_t *offset; /* of each tap; owned */
} ortc_blocked_plan;

/* What is multiplied: channels of blocks, of a plain image, or, of f32 and bf16, pairs of a block's, or of
 * bf16 those of a plain image. */
enum { ORTC_BLOCKED_DENSE, ORTC_BLOCKED_STEM, ORTC_BLOCKED_PAIRS, ORTC_BLOCKED_STEM_PAIRS };

/* 0: this way is not for the convolution at hand; then nothing is owned. threads: that a run has at most, 0:
 * not known; few have few tasks. */
int ortc_blocked_plan_init(const ortc_conv_geometry *g, ortc_dtype type, int form, uint32_t threads,
                           ortc_blocked_plan *out);
void ortc_blocked_plan_deinit(ortc_blocked_plan *);

/* The share of a window's taps that are not left out. */
double ortc_blocked_seen(const ortc_blocked_plan *p);

/* Whether the last block of output goes by tiles of half of a block. */
static inline int ortc_blocked_has_half(const ortc_blocked_plan *p)
{
    return p->uk->half_pixels > 0 && p->type == ORTC_FLOAT_F32 && !p->pairs && p->lanes <= ORTC_BLOCK / 2;
}

/* W [group * filters][channels][kernel] as the micro-kernels read it: its bytes (0: do not fit), and the
 * filling, w of any alignment. A stem's is f32; of pairs f32 is rounded. Behind weights of bytes there are
 * their sums for each filter, s32 [group * outs * 16], and behind these, where bytes are split, what is taken
 * once more, whose size w decides; w NULL: without it. */
size_t ortc_blocked_weight_bytes(const ortc_conv_geometry *g, ortc_dtype type, int form, const void *w);
int32_t ortc_blocked_weight_fill(const ortc_conv_geometry *g, ortc_dtype type, int form, const void *w,
                                 void *dst, const ortc_product_threads *threads);

/* x, y and residual (NULL: none) are of the plan's type; bias is [group * outs * 16] in f32, padded with 0.
 * Of uneven groups there is no residual, nor a tail that reads what lies as y, and bias has 16 more.
 * residual may be y where a plan has one chunk (of Winograd's: where ends are not straight). Thread: any.
 * Returns 0 or what `parallel` returned. */
typedef struct ortc_blocked_args {
    const void *x, *w, *residual;
    const float *bias;
    void *y;
    const ortc_tail_spec *tail; /* whose alpha is 1 */
    const ortc_view *in;        /* the node's, for the tail: those of the output's shape in blocks, too */
    int64_t w_image;            /* bytes from an image's weights to the next's, of windows of one pixel: 0 */
    int32_t floats;             /* w is f32 whatever the type, of windows of one pixel */
    /* of points on tiles, f32: what x's channels are multiplied by, [image][ins * 16]; NULL: nothing */
    const float *factor;
    int64_t wide; /* blocks of a pixel, of depthwise windows; 0: one */
    float *sums;  /* of depthwise windows of floats: those of each row of results, [image][block][row][16] */
    /* Of bytes: bias has what s32 sums begin with, y the tail's type. */
    const int32_t
        *first; /* where taps are left out: each one's share of that, [group * outs][taps][16]; NULL: 0 */
    const struct ortc_int_tail *int_tail;
    const struct ortc_int_ends *int_ends; /* of tiles: sums that begin as 0; NULL: none */
    uint8_t zero;                         /* what is read beside the image, moved as x is */
} ortc_blocked_args;
int32_t ortc_blocked_run(const ortc_blocked_plan *p, const ortc_blocked_args *args,
                         const ortc_product_threads *threads);

/* Of bytes: what sums begin with for what is beside the image, `zero`, which is in args->zero as it is read:
 * minus it, times the sums of filters, which are behind the weights, and where the plan leaves out taps, of
 * each tap. Fills args->bias and args->first, in so many bytes of `space`. */
size_t ortc_blocked_first_bytes(const ortc_blocked_plan *p);
void ortc_blocked_first(const ortc_blocked_plan *p, int32_t zero, const int32_t *tap_sums, void *space,
                        ortc_blocked_args *args);
/* Sums of W's filters, u8 moved by 128, at each tap: s32 [group * outs][taps][16]. Of joined groups W is as
 * it was before. */
size_t ortc_blocked_tap_sums_bytes(const ortc_conv_geometry *g);
int32_t ortc_blocked_tap_sums(const ortc_conv_geometry *g, ortc_dtype type, const void *w, int32_t *sums,
                              const ortc_product_threads *threads);

/* ---- What the ways over blocks share ------------------------------------------------------------------- */

const ortc_blocked_uk *ortc_blocked_uk_get(void);
const ortc_blocked_bytes *ortc_blocked_bytes_get(void); /* NULL: the machine has none, or something better */
const ortc_blocked_pairs *ortc_blocked_pairs_get(void); /* likewise */

/* Extents as three, the missing ones 1; 0: more than three, or some out of bounds. */
int ortc_conv_extents(const ortc_conv_geometry *g, ortc_window_extents *out);
/* A window of one pixel sees one long row: then extents become that. */
void ortc_conv_make_long(const ortc_conv_geometry *g, ortc_window_extents *e);

/* How results end. */
typedef struct ortc_blocked_end {
    const ortc_blocked_uk *uk;
    const ortc_blocked_args *a;
    int32_t type; /* of y, and of a residual */
    int straight; /* registers do all of it and store where results belong; else sums come here in f32 */
} ortc_blocked_end;
/* Sums of s32, of n pixels of a block that goes by args->int_ends, to y: element `at` of it, and of a
 * residual. */
void ortc_blocked_fixed(const ortc_blocked_args *args, int64_t block, const int32_t *sums, int64_t n,
                        int64_t at);
ortc_blocked_end ortc_blocked_end_of(const ortc_blocked_uk *uk, int32_t type, const ortc_blocked_args *a);
/* Whether a residual and a clip are all. */
int ortc_blocked_end_clips(const ortc_blocked_end *e);
/* The same as below of such sums whose ends, in blocks that are among args->int_ends, are in fixed point. */
void ortc_blocked_finish_bytes(const ortc_blocked_end *e, int32_t *sums, int64_t n, int64_t channel,
                               size_t lanes, int64_t at);
/* What registers have not done to n finished pixels of a block of output (of args->wide), from `channel` on,
 * of which `lanes` exist; they begin `at` elements into the output. The one place that knows epilogues. */
void ortc_blocked_finish(const ortc_blocked_end *e, float *sums, int64_t n, int64_t channel, size_t lanes,
                         int64_t at);

#endif
