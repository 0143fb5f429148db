/* kernels/gemm/nbits.h: rows of weights of 4 or 8 bits in blocks with a scale each, times few rows of f32: a
 * body for every instruction set (nbits_vec.c), and such weights as panels of f32 or bf16. Memory of any
 * alignment.
 *
 * Bytes are those of MatMulNBits (com.microsoft): a row holds whole blocks, of 16 elements or a larger power
 * of two; of 4 bits the lower half of a byte comes first. k counts with what fills up the last block, under
 * which x is 0.
 */
#ifndef ORTC_KERNELS_NBITS_H
#define ORTC_KERNELS_NBITS_H

#include "kernels/common/uk.h"

#define ORTC_NBITS_ROWS 8     /* of x at most, for row4 */
#define ORTC_NBITS_COLUMNS 32 /* rows of weights side by side, a panel */
/* Bytes of weights, read as they lie, that are asked for before they are read, also behind the last row:
 * hardware foresees less (a Zen 5's core, GB/s of one row of x: none 29, 2 KB 26, 4 KB 30, 8 KB 45) */
#define ORTC_NBITS_AHEAD 8192

/* Rows of x whose elements are rounded to `scale` times a byte, scale being a block's largest / 127: what
 * accuracy_level 4 lets a kernel do. Words are those of weights: of 8 bits four elements, of 4 bits eight,
 * whose elements 0, 2, 4, 6 of a group of words come before their elements 1, 3, 5, 7, as the halves of bytes
 * do. For tiles a word is a group, and scale and less are of blocks. For a row of weights a group is the
 * lanes of a register, and scale and less are of words, 0 behind the last. */
typedef struct ortc_nbits_rounded {
    const int8_t *bytes; /* rows `ldx` apart, whole groups */
    const float *scale;  /* rows `blocks` apart */
    const int32_t *less; /* the same: the sum of the bytes times what is in the middle of weights, negated */
    size_t ldx, blocks;
} ortc_nbits_rounded;

/* sums[r][c] += the sum over blocks b of x.scale[r][b] scale[b][c] (the sum over their elements of bytes (w -
 * the middle) - zero[b][c] the sum of bytes), rows of sums, scale and zero ORTC_NBITS_COLUMNS apart. Sums of
 * a block are integers, exact. w: [words][ORTC_NBITS_COLUMNS], `words` of a block, of 4 or 8 bits; zero:
 * above the middle, NULL: none */
typedef void ortc_nbits_tile(size_t rows, size_t blocks, size_t words, int bits, const ortc_nbits_rounded *x,
                             const uint32_t *w, const float *scale, const float *zero, float *sums);
/* One row of x: the same sum over all blocks, without zero, of each of some rows of weights as they lie.
 * words: of a row; per: of a block */
typedef void ortc_nbits_rows(size_t rows, size_t words, size_t per, int bits, const ortc_nbits_rounded *x,
                             const uint8_t *w, const float *scale, float *sums);
typedef struct ortc_nbits_bytes { /* of an instruction set */
    ortc_nbits_tile *tile;
    ortc_nbits_rows *rows;
    size_t lanes;
} ortc_nbits_bytes;

typedef struct ortc_nbits_vec {
    size_t group; /* elements that row4 takes at a time: a row of its x is whole groups */
    /* x of `groups` groups, spread as row4 reads it. */
    void (*spread)(size_t groups, const float *x, float *to);
    /* sums[r] += by lanes, of which there are group / 8, x[r][k] (w[k] - 8) scale[k / block]; x spread, rows
     * ldx apart. A part of K begins with a block and a group */
    void (*row4)(size_t rows, size_t k, size_t block, const float *x, size_t ldx, const uint8_t *w,
                 const float *scale, float *sums);
    /* Blocks of x to bytes in their order, and their scales. x: finite; its memory may be that of `to` */
    void (*round)(size_t blocks, size_t block, const float *x, int8_t *to, float *scale);
    const ortc_nbits_bytes *bytes;
    /* y[r] = the lanes of sums[r] added up */
    void (*fold)(size_t rows, const float *sums, float *y);
    /* The sum over blocks of scale * (zero - middle) * sum of x: which row4 has not taken off. */
    float (*offset)(size_t blocks, const float *scale, const float *zero, float middle, const float *sums);
    /* y[r] = the sum over k of x[r][k] (w[k] - zero[k / block]) scale[k / block], x as it is, a byte each */
    void (*row8)(size_t rows, size_t k, size_t block, const float *x, size_t ldx, const uint8_t *w,
                 const float *scale, const float *zero, float *y);
    /* Numbers of 4 bits to a byte each. */
    void (*halves)(size_t count, const uint8_t *w, uint8_t *to);
    /* Words of 32 bits, [words][ldw], a column each, become [k][ld]: numbers of 4 or 8 bits, the low ones
     * first, less 8 or 128 and `less`, times the column's scale. Columns: whole registers. */
    void (*words4)(size_t k, size_t columns, const uint32_t *w, size_t ldw, const float *scale,
                   const float *less, float *to, size_t ld);
    void (*words8)(size_t k, size_t columns, const uint32_t *w, size_t ldw, const float *scale,
                   const float *less, float *to, size_t ld);
    /* to[i] = (w[i] - zero) scale */
    void (*unpack)(size_t count, const uint8_t *w, float scale, float zero, float *to);
} ortc_nbits_vec;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_nbits_vec)

/* As words4 and words8, to pairs of bf16, [(k + 1) / 2][ld][2], rounded once. less: NULL: all are 0; k ends
 * with a whole word, or is the last of a row, whose word is whole in memory */
typedef void ortc_nbits_pairs(size_t k, size_t columns, int bits, const uint32_t *w, size_t ldw,
                              const float *scale, const float *less, uint16_t *to, size_t ld);
ortc_nbits_pairs ortc_nbits_pairs_avx512bf16;

extern const ortc_nbits_bytes ortc_nbits_bytes_avx512vnni, ortc_nbits_bytes_avxvnni;

#endif
