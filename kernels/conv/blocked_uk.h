/* The micro-kernels of convolutions whose values lie in blocks of 16 channels: their contract.
 *
 * A tile is some neighbouring pixels of one row of the output, for one or two blocks of its channels, with
 * all sums in registers. What it reads was laid out before (blocked.h), so that the body knows no padding, no
 * stride and no border: pixel p under tap t of group g is at x + g * plane + offset[t] + p * step, where a
 * group is a block of 16 input channels (step 16), or one channel of a plain image (stem: step 1). Weights
 * are [output block][group][tap][16 input channels][16 output channels], of a stem [output block][channel]
 * [tap][16], and are read once, in order. Sums are f32, added over groups, taps and channels in that order:
 * the same bits however pixels are dealt to tiles. No state, no allocation.
 *
 * Of bytes (ortc_blocked_bytes) the same with four of them, u8 times s8, where an f32 is above: a pixel of a
 * group is 16 channels in 4 words of x (step 4), of a stem one word with all its channels; a depth counts
 * words; weights are [output block][group][tap][word][16 output channels][4]; sums are s32, exact, and stay
 * so: no residual, no clip. Where an instruction adds two products in 16 bits, pairs of weights whose sum is
 * beyond 128 are halved, and the other halves are words of their own, at the end, for as many output channels
 * as a register has (ortc_blocked_more): words of x that are taken once more.
 *
 * Of pairs (ortc_blocked_pairs) the same with two bf16 where an f32 is above: a pixel of a group is 8 words
 * of x (step 8), of a stem two channels in one, a depth counts words, weights are [output block][group][tap]
 * [word][16 output channels][2].
 * A word adds the product of its second channel first, then that of its first; denormals count as 0.
 */
#ifndef ORTC_KERNELS_CONV_BLOCKED_UK_H
#define ORTC_KERNELS_CONV_BLOCKED_UK_H

#include "kernels/common/blocks.h"
#include "kernels/common/uk.h"
#include "kernels/common/window_runs.h"

enum { ORTC_BLOCKED_BLOCKS = 2 }; /* of a tile, at most */
enum { ORTC_BLOCKED_PARTS = 2 };  /* registers of a pixel's sums, of all blocks of a tile */
enum { ORTC_BLOCKED_LINE = 64 };  /* bytes, of a cache */

/* What is taken once more for a register. */
typedef struct ortc_blocked_more {
    size_t n;
    const int64_t *at; /* bytes from x to that of pixel 0 */
    const char *w;     /* [output channel][4] of each */
} ortc_blocked_more;

/* One tile. Addresses of any alignment. */
typedef struct ortc_blocked_tile {
    const float *x;
    const int64_t *offset; /* floats, of each tap */
    /* of `some`: bytes of weights from a tap to the next, and from the last to the next group's first */
    const int64_t *jump;
    int64_t plane; /* floats from a group to the next */
    int far;       /* of `some`: x is in no near cache: what the next pixels read is asked for */
    size_t groups, taps;
    size_t depth;      /* channels of the last group, 1..16; of the others all count */
    const void *w;     /* of the first output block */
    size_t w_block;    /* elements from an output block's weights to the next's */
    float *y;          /* [block][pixel][16] */
    size_t y_block;    /* elements from a block to the next, of the residual, too */
    const float *bias; /* [block][16]: what sums begin with; NULL: with those that stand in y, of pairs */
    const float *sums; /* in sums, which may be y, [block][pixel][16], */
    size_t sums_block; /* so many elements from a block to the next */
    int half;          /* of pairs: y and the residual are bf16 */
    /* What happens to finished sums, in this order; to those that are to be added to, nothing. */
    const float *residual; /* lies as y does, NULL: none; added */
    int clip;              /* then min(max(s, lo), hi); a NaN stays */
    float lo, hi;
    /* But of a stem: weights to come, of which so many lines are asked for at a tap of a group, and as many
     * next_block bytes behind for two blocks. */
    const char *next;
    size_t next_lines, next_block;
    /* Of weights of 16 bits: where the tile leaves what it read of them, for tiles of f32; NULL: nowhere; and
     * elements from a block of that to the next. */
    float *wide;
    size_t wide_block;
    const ortc_blocked_more *more; /* [ORTC_BLOCKED_PARTS], of bytes that are split */
} ortc_blocked_tile;

/* Pixels 1 .. most_pixels, blocks 1 .. most_blocks. */
typedef void ortc_blocked_tile_fn(size_t pixels, size_t blocks, const ortc_blocked_tile *t);

/* Rows of a depthwise convolution: y = bias + the sum over those taps of each pixel's window that lie in the
 * image, then as of a tile. A column says which pixels see it there. A pixel is one block, or several side by
 * side. */
typedef struct ortc_blocked_column {
    int64_t x;          /* bytes from a line to what pixel 0 would read */
    int64_t first, end; /* pixels that see it */
} ortc_blocked_column;
typedef struct ortc_blocked_windows {
    size_t lines, columns;   /* of a window */
    size_t each;             /* channels and filters of a group: 1, or of one block 2, 4, 8 (most_each) */
    const char *const *line; /* [row][line]: rows of the image, in f32; NULL: beside it */
    const float *w;          /* [block][line][column][channel of a group][16] */
    const ortc_blocked_column *column;
    int64_t first, end;    /* pixels that see all columns */
    int64_t step;          /* bytes of x from a pixel to the next, */
    int64_t stride, left;  /* pixels of x likewise; the one that column 0 of pixel 0 reads */
    int64_t from;          /* the first pixel */
    int64_t width;         /* pixels of a line */
    size_t blocks;         /* of a pixel */
    const float *bias;     /* [block][16] */
    float *y;              /* [row][pixel][block][16] */
    const float *residual; /* lies as y does, NULL: none */
    float lo, hi;          /* infinite where nothing is clipped */
    int half;              /* of ortc_blocked_halves: y and the residual are so, or else there is none */
} ortc_blocked_windows;
/* Of each row so many pixels, from t->from on, where y begins. */
typedef void ortc_blocked_windows_fn(int64_t rows, int64_t pixels, const ortc_blocked_windows *);

/* The same of rows of 16 bits, read where they lie, for windows of so many neighbouring columns, so many
 * pixels apart, whose middle column is in the image. */
typedef struct ortc_blocked_halves {
    int (*takes)(size_t columns, int64_t step);
    ortc_blocked_windows_fn *run;
} ortc_blocked_halves;
extern const ortc_blocked_halves ortc_blocked_halves_avx512, ortc_blocked_halves_avx512bf16; /* f16, bf16 */

/* The same of bytes, exact: y = first + sums, of rows that are whole with what is beside the image, which may
 * be read 3 pixels beyond a window. */
typedef struct ortc_blocked_words {
    size_t lines, columns;      /* of a window */
    size_t words;               /* of a line: four columns each, weights of those behind it 0 */
    const uint8_t *const *line; /* [row][line] */
    const int8_t *w;            /* [line][word][16][4] */
    const int32_t *first;       /* [16] */
    size_t step;                /* bytes of x from a pixel to the next */
    int32_t *y;                 /* [row][pixel][16] */
} ortc_blocked_words;
typedef void ortc_blocked_words_fn(int64_t rows, int64_t pixels, const ortc_blocked_words *);
#ifdef ORTC_TILES_avx512vbmi
ortc_blocked_words_fn ortc_uk_depthwise_words_avx512vbmi;
#endif

typedef struct ortc_blocked_bytes {
    ortc_blocked_tile_fn *dense, *some, *stem; /* as of ortc_blocked_uk; some: NULL where weights are split */
    /* Not 0: two products are added in 16 bits, weights are halved for it, for so many output channels */
    int splits;
    size_t (*far)(size_t n, const int8_t *w, size_t step); /* as of gemm/halved.h */
    int (*split)(int8_t *w, int8_t *more);
    double pace; /* over that of the machine's products of bytes (ortc_product_integers) */
    /* n pixels of 16 bytes, `step` bytes apart, side by side; flip: moved by 128. */
    void (*move)(size_t n, const void *x, size_t step, int flip, void *y);
} ortc_blocked_bytes;

/* n sums, a multiple of 16, and a residual as y is (NULL: none), clipped to lo .. hi (a NaN stays), to y. */
typedef void ortc_blocked_clip_fn(size_t n, const float *sums, const void *residual, float lo, float hi,
                                  void *y);

typedef struct ortc_blocked_pairs {
    ortc_blocked_tile_fn *dense, *stem; /* as many pixels and blocks as ortc_blocked_uk says */
    /* n pixels of 16 channels, `step` bytes apart, to bf16, side by side: of f32, rounded, and of bf16. */
    void (*lay_f32)(size_t n, const void *x, size_t step, void *y);
    void (*lay_bf16)(size_t n, const void *x, size_t step, void *y);
    /* n pixels side by side of f32, rounded, to y, `step` bytes apart. */
    void (*spread)(size_t n, const float *x, void *y, size_t step);
    /* n words, of the elements of two channels of a plain image of bf16; second NULL: zeros. */
    void (*join)(size_t n, const void *first, const void *second, void *y);
    ortc_blocked_clip_fn *clip_bf16; /* rounded once; denormal results become 0 */
} ortc_blocked_pairs;

typedef struct ortc_blocked_uk {
    size_t most_pixels, most_blocks;
    ortc_blocked_tile_fn *dense[3]; /* by the type of weights, ORTC_FLOAT_* (convert.h) */
    ortc_blocked_tile_fn *some[3];  /* those taps that are given, with jumps */
    ortc_blocked_tile_fn *stem;     /* f32 weights */
    /* Of one block of f32 of which the first 8 channels are, the others become 0: more pixels,
     * 1 .. half_pixels. 0: there are none, where a register has 16. */
    size_t half_pixels;
    ortc_blocked_tile_fn *half_dense, *half_stem;
    ortc_blocked_windows_fn *depthwise; /* of f32 */
    int64_t most_each;                  /* of its groups */
    /* n pixels of 16 channels, `step` elements apart, to f32, side by side. By ORTC_FLOAT_*. */
    void (*widen[3])(size_t n, const void *x, size_t step, float *y);
    /* n elements of u8, or s8, less `zero`, to f32. */
    void (*widen_bytes)(size_t n, const void *x, int is_signed, int32_t zero, float *y);
    /* n sums that are integers, below 2^24, to s32, in their place. */
    void (*to_integers)(size_t n, float *sums);
    /* What registers do not do to n sums: those of y become act(y + residual), the residual by type or NULL,
     * act being ORTC_UK_ACT_* of kernels/gemm/product_uk.h. */
    void (*finish[3])(size_t n, const void *residual, int32_t act, float lo, float hi, float *y);
    /* The same of clips, to memory by type, rounded once. */
    ortc_blocked_clip_fn *clip[3];
    /* Sums of each row of n pixels of 16 channels: [row][16]. */
    void (*sum[3])(int64_t rows, int64_t n, const void *x, float *sums);
    /* Rows of 16 elements, each times a factor of its own, to f32. */
    void (*scale[3])(size_t rows, const void *x, const float *factor, float *y);
    /* n pixels of 16 channels to memory by type, rounded once; the channels from `lanes` on become 0. */
    void (*narrow[3])(size_t n, const float *x, size_t lanes, void *y);
} ortc_blocked_uk;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_blocked_uk)

#endif
