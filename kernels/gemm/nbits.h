/* kernels/gemm/nbits.h: rows of weights of 4 or 8 bits in blocks with a scale each, times few rows of f32: a
 * body for every instruction set (nbits_vec.c). Memory of any alignment.
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

/* Rows of x whose elements are rounded to `scale` times a byte, scale being a block's largest / 127: what
 * accuracy_level 4 lets a kernel do. Under weights of 4 bits, eight elements are in the order 0, 2, 4, 6, 1,
 * 3, 5, 7, as a word of those has its lower and its upper halves of bytes. */
typedef struct ortc_nbits_rounded {
    const int8_t *bytes; /* rows `ldx` apart, a multiple of 4 */
    const float *scale;  /* of every block, rows `blocks` apart */
    const int32_t *less; /* the same: the sum of its bytes times what is in the middle of weights, negated */
    size_t ldx, blocks;
} ortc_nbits_rounded;

/* sums[r][c] += the sum over blocks b of x.scale[r][b] scale[b][c] (the sum over their elements of bytes (w -
 * the middle) - zero[b][c] the sum of bytes), rows of sums, scale and zero ORTC_NBITS_COLUMNS apart. Sums of
 * a block are integers, exact. w: [words][ORTC_NBITS_COLUMNS], `words` of a block, of 4 or 8 bits; zero:
 * above the middle, NULL: none */
typedef void ortc_nbits_tile(size_t rows, size_t blocks, size_t words, int bits, const ortc_nbits_rounded *x,
                             const uint32_t *w, const float *scale, const float *zero, float *sums);

typedef struct ortc_nbits_vec {
    size_t group; /* elements that row4 takes at a time: a row of its x is whole groups */
    /* x of `groups` groups, spread as row4 reads it. */
    void (*spread)(size_t groups, const float *x, float *to);
    /* sums[r] += by lanes, of which there are group / 8, x[r][k] (w[k] - 8) scale[k / block]; x spread, rows
     * ldx apart. A part of K begins with a block and a group. next: what will be read soon, ordered from
     * memory */
    void (*row4)(size_t rows, size_t k, size_t block, const float *x, size_t ldx, const uint8_t *w,
                 const uint8_t *next, const float *scale, float *sums);
    /* Blocks of x to bytes in their order, and their scales. x: finite; its memory may be that of `to` */
    void (*round)(size_t blocks, size_t block, const float *x, int8_t *to, float *scale);
    ortc_nbits_tile *tile;
    /* y[r] = the lanes of sums[r] added up */
    void (*fold)(size_t rows, const float *sums, float *y);
    /* The sum over blocks of scale * (zero - 8) * sum of x: which row4 has not taken off. */
    float (*offset)(size_t blocks, const float *scale, const float *zero, const float *sums);
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
ortc_nbits_tile ortc_nbits_tile_avx512vnni, ortc_nbits_tile_avxvnni;

#endif
