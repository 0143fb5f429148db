/* Weights of few bits as pairs of bf16, which tiles of AMX and AVX-512 BF16 multiply (every AMX comes with
 * the instruction that rounds). A register has two numbers of each of eight columns, so that two are stored
 * as they lie: each word is there twice, its copies shifted by one number more. */
#include "nbits.h"

#include <immintrin.h>

enum { COLUMNS = 16 };

/* p[0], p[0], p[1], p[1], ..; of the upper half of 16 */
static inline __attribute__((always_inline)) __m512i twice(__m512i v, int upper)
{
    const int at = upper ? 8 : 0;
    return _mm512_permutexvar_epi32(_mm512_set_epi32(at + 7, at + 7, at + 6, at + 6, at + 5, at + 5, at + 4,
                                                     at + 4, at + 3, at + 3, at + 2, at + 2, at + 1, at + 1,
                                                     at, at),
                                    v);
}

static inline __attribute__((always_inline)) __m512 floats_twice(const float *p, int upper)
{
    return _mm512_castsi512_ps(twice(_mm512_loadu_si512(p), upper));
}

/* What the bits at the bottom say, less the middle. */
static inline __attribute__((always_inline)) __m512 number(__m512i v, const int bits)
{
    if (bits == 4) /* the upper bits of an index are not looked at */
        return _mm512_permutexvar_ps(v,
                                     _mm512_setr_ps(-8, -7, -6, -5, -4, -3, -2, -1, 0, 1, 2, 3, 4, 5, 6, 7));
    const __m512i low = _mm512_and_si512(v, _mm512_set1_epi32(255));
    return _mm512_cvtepi32_ps(_mm512_sub_epi32(low, _mm512_set1_epi32(128)));
}

static inline __attribute__((always_inline)) void columns16(size_t k, const int bits, const uint32_t *w,
                                                            size_t ldw, const float *scale, const float *less,
                                                            uint16_t *to, size_t ld)
{
    const int pairs = 16 / bits; /* of a word */
    const __m512 s0 = floats_twice(scale, 0), s1 = floats_twice(scale, 1);
    const __m512 l0 = less ? floats_twice(less, 0) : _mm512_setzero_ps(),
                 l1 = less ? floats_twice(less, 1) : _mm512_setzero_ps();
    for (size_t at = 0; at < k; at += 2 * (size_t)pairs, w += ldw) {
        const __m512i q = _mm512_loadu_si512(w), q0 = twice(q, 0), q1 = twice(q, 1);
        for (int i = 0; i < pairs && at + 2 * (size_t)i < k; i++, to += 2 * ld) {
            const __m512i by = _mm512_set1_epi64((int64_t)(2 * i + 1) * bits << 32 | 2 * i * bits);
            __m512 v0 = number(_mm512_srlv_epi32(q0, by), bits), v1 = number(_mm512_srlv_epi32(q1, by), bits);
            if (less) v0 = _mm512_sub_ps(v0, l0), v1 = _mm512_sub_ps(v1, l1);
            _mm512_storeu_si512(to,
                                (__m512i)_mm512_cvtne2ps_pbh(_mm512_mul_ps(v1, s1), _mm512_mul_ps(v0, s0)));
        }
    }
}

void ortc_nbits_pairs_avx512bf16(size_t k, size_t columns, int bits, const uint32_t *w, size_t ldw,
                                 const float *scale, const float *less, uint16_t *to, size_t ld)
{
    for (size_t c = 0; c < columns; c += COLUMNS) {
        const float *s = scale + c, *l = less ? less + c : NULL;
        if (bits == 4 && !l)
            columns16(k, 4, w + c, ldw, s, NULL, to + 2 * c, ld);
        else if (bits == 4)
            columns16(k, 4, w + c, ldw, s, l, to + 2 * c, ld);
        else
            columns16(k, 8, w + c, ldw, s, l, to + 2 * c, ld);
    }
}
