/* Depthwise windows of bf16, where an instruction rounds to it. */
#define NAME ortc_blocked_halves_avx512bf16
#include <immintrin.h>

#include "blocked_uk.h"
#include "kernels/common/vector/vec.h"

#define UNROLL _Pragma("GCC unroll 32")
enum { BLOCK = ORTC_BLOCK, SLIDE = 14 };

/* A number is the upper half of its word: one permutation. */
VFN vf32 widened(const uint16_t *x)
{
    static const uint16_t places[2 * BLOCK] = {0, 0, 1, 1, 2,  2,  3,  3,  4,  4,  5,  5,  6,  6,  7,  7,
                                               8, 8, 9, 9, 10, 10, 11, 11, 12, 12, 13, 13, 14, 14, 15, 15};
    const __m512i v = _mm512_castsi256_si512(_mm256_loadu_si256((const __m256i *)(const void *)x));
    return (vf32)_mm512_maskz_permutexvar_epi16(0xaaaaaaaa, _mm512_loadu_si512(places), v);
}

VFN void store(uint16_t *y, vf32 a, vf32 b, int both)
{
    _mm512_mask_storeu_epi16(y, both ? 0xffffffff : 0xffff,
                             (__m512i)_mm512_cvtne2ps_pbh((__m512)b, (__m512)a));
}

#include "depthwise_halves.inc"
