/* A constant operand's floats into pieces of bf16 while a unit of tiles multiplies: two rows of k at a time,
 * whose pieces are the pairs that a tile of B reads. A piece is cut off, not rounded: the upper half of the
 * bits, so that no lane moves, and what is left has 8 bits less; of three pieces nothing is left. What their
 * products leave out (amx_pieces.h) is below 2^-21 of a product and of its sign: of sums 2^-24.6 on the
 * average, measured.
 *
 * What pieces do not hold (ORTC_PIECES_*, product_uk.h) is found on the way, in the first pieces: a number
 * other than 0 and below 2^-103 (below 2^-133 it counts as 0), 2^57 and larger, infinity, NaN, and columns
 * that have nothing but 0 and numbers below 2^-50. */
#ifndef ORTC_KERNELS_GEMM_AMX_SPLIT_H
#define ORTC_KERNELS_GEMM_AMX_SPLIT_H

#include "pieces_seen.h"

/* What first pieces of each column were so far, of even and of odd rows (pieces_seen.h). */
typedef struct amx_seen {
    int32_t most[32], least[32];
} amx_seen;

/* x over y, a register of columns each, as `planes` rows of pairs, `step` lanes apart. `most` and `least` of
 * these columns go on. */
VFN void amx_split(vf32 x, vf32 y, const size_t planes, int32_t *to, size_t step, vi32 *most, vi32 *least)
{
    const vi32 upper = v_set_i32((int32_t)0xffff0000);
    for (size_t p = 0; p < planes; p++) {
        const vi32 high_x = v_bits_f32(x) & upper;
        const vi32 high_y = v_bits_f32(y) & upper;
        const vi32 pair = high_y | (vi32)((vu32)v_bits_f32(x) >> 16);
        v_store_i32(to + p * step, pair, v_lanes());
        if (p == 0) pieces_see(pair, most, least);
        x = v_sub(x, v_f32_bits(high_x)), y = v_sub(y, v_f32_bits(high_y));
    }
}

/* Whether pieces do not do for what was seen in so many columns. */
static inline int amx_is_odd(const amx_seen *s, size_t columns)
{
    int odd = 0;
    for (size_t j = 0; j < columns; j++) {
        const uint32_t most = (uint32_t)s->most[j], least = (uint32_t)s->least[j];
        const uint32_t largest = most >> 16 > (most & 0xffff) ? most >> 16 : most & 0xffff,
                       smallest = least >> 16 < (least & 0xffff) ? least >> 16 : least & 0xffff;
        odd |= largest >= ORTC_PIECES_BEYOND >> 16;
        odd |= smallest < (ORTC_PIECES_LEAST >> 16) - 1;
        odd |= largest && largest < ORTC_PIECES_LARGEST >> 16;
    }
    return odd;
}

#endif
