/* Products of u8 and s8 where an instruction adds two of them in 16 bits (vpmaddubsw: AVX2, and AVX-512
 * without VNNI): exact for weights of which no pair has a sum beyond 128, for 255 of both fits then. Others
 * are halved, and the other halves are weights of their own. Three instructions for four products a lane; of
 * bytes widened to 16 bits vpmaddwd takes two for two (Zen 4, AVX2: 80 and 50 products a nanosecond, where
 * fused multiply-adds make 45).
 */
#ifndef ORTC_KERNELS_VECTOR_HALVES_H
#define ORTC_KERNELS_VECTOR_HALVES_H

#include <string.h>

#include "kernels/common/vector/vec.h"

/* In this order, and the ones from memory: a tile's 12 sums, two weights, x and what is between are all
 * registers of AVX2, and compilers would take more. */
VFN vi32 v_dot_halves(vi32 sum, vi32 x, vi32 w)
{
    static const int16_t ones[32] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
                                     1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    vi32 pairs;
    __asm__ volatile("vpmaddubsw %3, %2, %1\n\t"
                     "vpmaddwd %4, %1, %1\n\t"
                     "vpaddd %1, %0, %0"
                     : "+v"(sum), "=&v"(pairs)
                     : "v"(x), "v"(w), "m"(ones));
    return sum;
}

/* Of pairs of 32 bytes, a bit for each byte of those that are halved. */
static inline uint32_t v_far_pairs(const int8_t *w)
{
    const __m256i v = _mm256_loadu_si256((const __m256i *)(const void *)w),
                  sums = _mm256_abs_epi16(_mm256_maddubs_epi16(_mm256_set1_epi8(1), v));
    return (uint32_t)_mm256_movemask_epi8(_mm256_cmpgt_epi16(sums, _mm256_set1_epi16(128)));
}

/* Of n registers of weights, `step` bytes apart, how many have pairs that are halved. */
static size_t v_count_halves(size_t n, const int8_t *w, size_t step)
{
    size_t far = 0;
    for (; n; n--, w += step) {
        uint32_t any = 0;
        for (int i = 0; i < V_LANES * 4; i += 32) any |= v_far_pairs(w + i);
        far += any != 0;
    }
    return far;
}

/* Whether a register of weights has some; if so they are halved, the other halves (0 of other pairs) going
 * to `more`. */
static int v_split_halves(int8_t *w, int8_t *more)
{
    if (!v_count_halves(1, w, 0)) return 0;
    for (int i = 0; i < V_LANES * 4; i += 32) {
        memset(more + i, 0, 32);
        for (uint32_t far = v_far_pairs(w + i); far; far &= far - 1) {
            const int k = i + __builtin_ctz(far);
            more[k] = w[k] / 2, w[k] -= more[k];
        }
    }
    return 1;
}

#endif
