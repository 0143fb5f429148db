/* Depthwise convolution of values in blocks of 16 channels: each channel has one filter of its own, so that a
 * vector of channels is multiplied by a vector of weights, and nothing is broadcast or laid out: x is read
 * where it lies, and taps beside the image are left out. Or groups of 2, 4 or 8 channels have as many
 * filters, which lie in one block: then that vector is turned so often. Weights are f32, [block][tap][channel
 * of a group][16]. Rules of blocked.h. Or all blocks lie side by side in each pixel: [image][..positions]
 * [channels]. Bytes are f32 less their zero points, whose sums are exact: those of ORTC_DEPTHWISE_EXACT taps
 * stay below 2^24.
 */
#ifndef ORTC_KERNELS_CONV_BLOCKED_DEPTHWISE_H
#define ORTC_KERNELS_CONV_BLOCKED_DEPTHWISE_H

#include "blocked.h"

enum { ORTC_DEPTHWISE_EXACT = 256 };

typedef struct ortc_blocked_depthwise_plan {
    const ortc_blocked_uk *uk;
    ortc_window_extents extents;
    int32_t type;                      /* ORTC_FLOAT_*, ORTC_BLOCKED_BYTES */
    int32_t is_signed;                 /* of bytes */
    const ortc_blocked_halves *halves; /* of 16 bits, where the machine has it for these windows; NULL */
    ortc_blocked_words_fn *by_words; /* of bytes, where the machine has it and columns are neighbours; NULL */
    int64_t words;                   /* of a line of the window */
    int64_t size;                    /* bytes of an element of x */
    int64_t images, channels, blocks;
    int64_t each;        /* channels, and filters, of a group */
    int64_t wide, parts; /* blocks of a pixel: 1, or all; how many such parts an image has */
    int64_t in_count, out_count, taps;
    int64_t rows, row_tasks, grain;
    int by_rows;    /* tasks of the same rows are neighbours, not those of a block */
    int64_t some;   /* rows that are finished together, where registers do not finish them, */
    int64_t tile;   /* or pixels of one, of wide ones */
    int64_t held;   /* rows of x in f32, of each plane of a window; 0: x is read where it lies */
    int64_t width;  /* pixels of those, with the zeros beside the image */
    size_t at_held; /* bytes in scratch */
    size_t scratch; /* bytes for each worker: lines, columns, sums of `some` rows, and rows held */
} ortc_blocked_depthwise_plan;

/* 0: this way is not for the convolution at hand. threads: that a run has at most, 0: not known. */
int ortc_blocked_depthwise_plan_init(const ortc_conv_geometry *g, ortc_dtype type, uint32_t threads,
                                     ortc_blocked_depthwise_plan *out);
/* Of pixels with all blocks, which are whole; of floats. args->wide is the plan's. */
int ortc_blocked_depthwise_plan_rows(const ortc_conv_geometry *g, ortc_dtype type, uint32_t threads,
                                     ortc_blocked_depthwise_plan *out);
/* Bytes by words of four taps: W as [block][line][word][16][4] of s8, and behind it s32 sums of filters
 * [blocks * 16]. */
size_t ortc_blocked_depthwise_word_bytes(const ortc_blocked_depthwise_plan *p);
void ortc_blocked_depthwise_word_fill(const ortc_blocked_depthwise_plan *p, ortc_dtype type, const void *w,
                                      void *dst);
/* Bytes: W's zero points are 0, of u8 128. */
size_t ortc_blocked_depthwise_weight_bytes(const ortc_conv_geometry *g);
void ortc_blocked_depthwise_weight_fill(const ortc_conv_geometry *g, ortc_dtype type, const void *w,
                                        float *dst);
/* bias: [blocks * 16]; by words what s32 sums begin with, args->zero being u8, as x is then: moved by 128
 * where it is signed. */
int32_t ortc_blocked_depthwise_run(const ortc_blocked_depthwise_plan *p, const ortc_blocked_args *args,
                                   const ortc_product_threads *threads);
/* Of args->sums, for which there are so many floats: the mean of each channel, [image][block][16]. */
static inline int64_t ortc_blocked_depthwise_sums(const ortc_blocked_depthwise_plan *p)
{
    return p->images * p->blocks * p->extents.out[0] * p->extents.out[1] * ORTC_BLOCK;
}
void ortc_blocked_depthwise_mean(const ortc_blocked_depthwise_plan *p, const float *sums, void *y);

#endif
