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

#define ORTC_NBITS_ROWS 16 /* of x at most */

/* Rows of x whose elements are rounded to `scale` times a byte, scale being a block's largest / 127: what
 * accuracy_level 4 lets a kernel do. Words are of eight elements, as weights of 4 bits have them: their
 * elements 0, 2, 4, 6, of a group of words, and then their elements 1, 3, 5, 7. */
typedef struct ortc_nbits_rounded {
    const int8_t *bytes; /* rows `ldx` apart */
    const float *scale;  /* of every word, rows ldx / 8 apart */
    const int32_t *less; /* the same: -8 times the sum of its bytes */
    size_t ldx;
} ortc_nbits_rounded;

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
    /* As row4, of x that is rounded: sums of integers for each word, exact, and of f32 of those. */
    void (*row4_rounded)(size_t rows, size_t k, size_t block, const ortc_nbits_rounded *x, const uint8_t *w,
                         const uint8_t *next, const float *scale, float *sums);
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

#endif
