/* The micro-kernels of convolutions on a unit of tiles (AMX), whose values lie in blocks of 16 channels:
 * their contract. Numbers are bf16 (as they are; or f32 rounded; or f32 as three pieces of bf16, of whose
 * products the six largest are added up, see kernels/gemm/product_amx.c) summed in f32, or bytes, u8 times
 * s8, summed in s32.
 *
 * What a tile reads was laid out before (tiled.h): 64 bytes of a pixel's channels, a group, lie together, 32
 * of bf16 or 64 bytes, and neighbouring pixels side by side, so that 16 of them are an operand as they lie,
 * whatever the tap. Weights are [two blocks of output][group][tap][block][piece][16][16 filters][4 bytes],
 * of bytes [block of output][group][tap].., the four bytes being channels that follow each other, or of
 * pieces those of two blocks in turn: read in order, and so asked for ahead. Of plain pieces they are f32,
 * [two blocks of output][group][tap][block][32 channels][16 filters], until the first tile that goes over
 * them splits them for itself and others. Of a plain image with up to 4 channels, a stem, the 64 bytes are
 * neighbouring pixels of 4 channels each, under a row of the window; those of the next pixel of the output
 * begin a stride behind them, and lie over them. Sums of 16 pixels are 16 pixels of a block of output. No
 * state but what `begin` and `end` say, no allocation. */
#ifndef ORTC_KERNELS_CONV_TILED_UK_H
#define ORTC_KERNELS_CONV_TILED_UK_H

#include <stddef.h>
#include <stdint.h>

enum { ORTC_TILE_ROW = 64, ORTC_TILE_HALF = 16, ORTC_TILE_PIXELS = 32, ORTC_TILE_BLOCKS = 2 };
enum { ORTC_TILED_AHEAD = 4096 };       /* bytes: how far a tile asks for its weights ahead */
enum { ORTC_TILED_TILE_BYTES = 1024 };  /* weights of a block, group, tap and piece */
enum { ORTC_TILED_PLAIN_BYTES = 2048 }; /* the same in f32, of all pieces */
enum {
    ORTC_TILED_BF16,
    ORTC_TILED_ROUNDED,
    ORTC_TILED_PIECES,
    ORTC_TILED_PLAIN, /* pieces, whose weights lie in f32 */
    ORTC_TILED_BYTES,
    ORTC_TILED_KINDS
};

typedef struct ortc_tiled_tile {
    const char *x;         /* the first pixel under tap 0's offset, first group and piece */
    size_t step;           /* bytes from a pixel to the next: 64, of a stem less */
    size_t half;           /* pixels, as `begin` was told */
    const int64_t *offset; /* words of 4 bytes, of each tap */
    int64_t group, piece;  /* bytes of x from one to the next */
    size_t groups, taps;
    const char *w;           /* of the first block */
    int64_t w_step, w_block; /* bytes from a tap to the next; to the second block's */
    const void *bias;        /* [block][16] of 4 bytes: what sums begin with; NULL: 0, which is quicker */
    const char *plain;       /* pieces: the same in f32, to be split into w first; NULL: w holds them */
    int64_t plain_step;      /* bytes from a tap to the next */
    int more;                /* sums go on, in place of bias */
    /* Weights to come, of which so many lines of 64 are asked for at a tap: of bytes, and as many w_block
     * behind for two blocks; of 16 bits to L2, in place of what is ahead of w; of pieces in f32, up to 72. */
    const char *next;
    size_t next_lines;
    void *sums;    /* [block][pixel][16] of 4 bytes, */
    int64_t block; /* so many bytes from a block to the next */
} ortc_tiled_tile;

typedef struct ortc_tiled_uk {
    /* Of a task on its thread: tile configuration, for halves of so many pixels, 1 to 16; release. */
    void (*begin)(int half);
    void (*end)(void);
    /* halves: 1 or 2 times `half` pixels, all of which are read and written; blocks 1 or 2. Of bytes 4 times
     * 16 pixels of a single block, too. */
    void (*run[ORTC_TILED_KINDS])(int halves, int blocks, const ortc_tiled_tile *t);
    /* n pixels of `blocks` blocks (fewer than a group has: the others are 0), `step` bytes from a pixel to
     * the next, `block` from a block to the next, to y, 64 bytes a pixel, pieces `piece` bytes apart. flip:
     * bytes are moved by 128. Returns whether there is something that pieces do not hold (see
     * gemm/product_uk.h). */
    int (*lay[ORTC_TILED_KINDS])(size_t n, const char *x, size_t step, size_t block, size_t blocks, int flip,
                                 char *y, size_t piece);
    /* As lay of pieces, of values times factor[block][16]. */
    int (*lay_scaled)(size_t n, const char *x, size_t step, size_t block, size_t blocks, const float *factor,
                      char *y, size_t piece);
    /* n pixels of a stem, whose channels lie `plane` bytes apart, to y, 4 channels of each; of pieces NULL.
     * Returns whether one is no finite number: beside its window it would make NaN of a weight of 0. */
    int (*lay_stem[ORTC_TILED_KINDS])(size_t n, const char *x, size_t plane, size_t channels, int flip,
                                      char *y);
    /* Winograd's: n points of a transformed patch of two blocks, [point][16] each, as pieces of their
     * channels in turn, 64 bytes a point and piece, `step` and `piece` bytes apart. Returns whether pieces do
     * not hold it: its largest number is other than 0 and below 2^-50, or 2^57 and larger, infinity or NaN.
     */
    int (*cut)(size_t n, const float *x, const float *other, char *y, size_t step, size_t piece);
    /* n sums, and a residual (NULL: none), clipped to lo .. hi (a NaN stays), to y. */
    void (*clip)(size_t n, const float *sums, const float *residual, float lo, float hi, float *y);
    /* The same of a residual and results of bf16, rounded once; denormal results become 0. */
    void (*clip_bf16)(size_t n, const float *sums, const void *residual, float lo, float hi, void *y);
} ortc_tiled_uk;

#endif
