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

typedef struct ortc_nbits_vec {
    size_t group; /* elements that row4 takes at a time: a row of its x is whole groups */
    /* x of `groups` groups, spread as row4 reads it. */
    void (*spread)(size_t groups, const float *x, float *to);
    /* sums[r] += by lanes, of which there are group / 8, x[r][k] (w[k] - 8) scale[k / block]; x spread, rows
     * ldx apart. A part of K begins with a block and a group. next: what will be read soon, ordered from
     * memory */
    void (*row4)(size_t rows, size_t k, size_t block, const float *x, size_t ldx, const uint8_t *w,
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
