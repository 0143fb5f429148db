/* Gathering image rows with AVX-512: padding costs nothing, because a masked load gives zeros where it does
 * not read. Stride 2 loads two vectors and takes every other element; larger strides gather.
 */
#include "columns_uk.h"

#include <immintrin.h>

/* Lanes lo .. hi-1 of the 16 that begin at element `at`. */
static inline __mmask16 lanes(size_t at, size_t lo, size_t hi)
{
    const size_t a = lo > at ? lo - at : 0, b = hi > at ? hi - at : 0;
    const uint32_t below_b = b >= 16 ? 0xffffu : (1u << b) - 1, below_a = a >= 16 ? 0xffffu : (1u << a) - 1;
    return (__mmask16)(below_b & ~below_a);
}

/* Every other lane of m, spread to the elements it stands for: m's lane i is element 2i of 32. */
static inline uint32_t spread(__mmask16 m)
{
    uint32_t x = m;
    x = (x | x << 8) & 0x00ff00ffu;
    x = (x | x << 4) & 0x0f0f0f0fu;
    x = (x | x << 2) & 0x33333333u;
    return (x | x << 1) & 0x55555555u;
}

void ortc_uk_columns_f32_avx512(size_t rows, float *dst, size_t dst_step, const float *src, size_t src_step,
                                size_t stride, size_t left, size_t count, size_t right)
{
    const size_t total = left + count + right;
    if (stride > 1u << 24) { /* indices of a gather are 32 bits */
        ortc_uk_columns_f32_scalar(rows, dst, dst_step, src, src_step, stride, left, count, right);
        return;
    }
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i steps = _mm512_mullo_epi32(_mm512_set1_epi32((int)stride),
                                             _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13,
                                                               14, 15));
    for (size_t at = 0; at < total; at += 16) {
        const __mmask16 in = lanes(at, left, left + count), out = lanes(at, 0, total);
        /* May point before src: masked lanes are not read. */
        const float *s = (const float *)((uintptr_t)src + (at - left) * stride * sizeof *src);
        float *d = dst + at;
        if (stride == 1) {
            for (size_t r = 0; r < rows; r++, d += dst_step, s += src_step)
                _mm512_mask_storeu_ps(d, out, _mm512_maskz_loadu_ps(in, s));
        } else if (stride == 2) {
            const uint32_t both = spread(in);
            const __mmask16 m0 = (__mmask16)both, m1 = (__mmask16)(both >> 16);
            for (size_t r = 0; r < rows; r++, d += dst_step, s += src_step) {
                const __m512 x = _mm512_maskz_loadu_ps(m0, s), y = _mm512_maskz_loadu_ps(m1, s + 16);
                _mm512_mask_storeu_ps(d, out, _mm512_permutex2var_ps(x, even, y));
            }
        } else {
            for (size_t r = 0; r < rows; r++, d += dst_step, s += src_step)
                _mm512_mask_storeu_ps(d, out, _mm512_mask_i32gather_ps(_mm512_setzero_ps(), in, steps, s, 4));
        }
    }
}
