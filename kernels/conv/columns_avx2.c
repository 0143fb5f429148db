/* Gathering image rows with AVX2. Masked loads give zeros where they do not read; masked stores are
 * microcoded on AMD's cores, so what is left of a row after whole vectors is stored in halves and single
 * elements.
 */
#include "columns_uk.h"

#include <immintrin.h>
#include <string.h>

#include "kernels/common/vector/vec.h"

/* All ones in lanes lo .. hi-1 of the 8 that begin at element `at`. */
static inline __m256i lanes(size_t at, size_t lo, size_t hi)
{
    const int a = lo > at ? (int)(lo - at < 8 ? lo - at : 8) : 0,
              b = hi > at ? (int)(hi - at < 8 ? hi - at : 8) : 0;
    const __m256i i = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_andnot_si256(_mm256_cmpgt_epi32(_mm256_set1_epi32(a), i),
                               _mm256_cmpgt_epi32(_mm256_set1_epi32(b), i));
}

static inline void store(float *d, __m256 v, size_t n)
{
    if (n >= 8) {
        _mm256_storeu_ps(d, v);
        return;
    }
    __m128 x = _mm256_castps256_ps128(v);
    if (n & 4) {
        _mm_storeu_ps(d, x);
        x = _mm256_extractf128_ps(v, 1);
        d += 4;
    }
    if (n & 2) {
        _mm_storel_pi((__m64 *)(void *)d, x);
        x = _mm_movehl_ps(x, x);
        d += 2;
    }
    if (n & 1) _mm_store_ss(d, x);
}

void ortc_uk_columns_f32_avx2(size_t rows, float *dst, size_t dst_step, const float *src, size_t src_step,
                              size_t stride, size_t left, size_t count, size_t right)
{
    const size_t total = left + count + right;
    for (size_t at = 0; at < total; at += 8) {
        const __m256i in = lanes(at, left, left + count);
        const size_t n = total - at;
        /* May point before src: masked lanes are not read. */
        const float *s = (const float *)((uintptr_t)src + (at - left) * stride * sizeof *src);
        float *d = dst + at;
        if (stride == 1) {
            for (size_t r = 0; r < rows; r++, d += dst_step, s += src_step)
                store(d, _mm256_maskload_ps(s, in), n);
        } else if (stride == 2) {
            /* Lanes 0..3 stand for elements 0, 2, 4, 6 of the first vector, 4..7 for those of the second. */
            const __m128i z = _mm_setzero_si128(), i0 = _mm256_castsi256_si128(in),
                          i1 = _mm256_extracti128_si256(in, 1);
            const __m256i m0 = _mm256_set_m128i(_mm_unpackhi_epi32(i0, z), _mm_unpacklo_epi32(i0, z));
            const __m256i m1 = _mm256_set_m128i(_mm_unpackhi_epi32(i1, z), _mm_unpacklo_epi32(i1, z));
            for (size_t r = 0; r < rows; r++, d += dst_step, s += src_step) {
                const __m256 x = _mm256_maskload_ps(s, m0), y = _mm256_maskload_ps(s + 8, m1);
                const __m256d p = _mm256_castps_pd(_mm256_shuffle_ps(x, y, 0x88));
                store(d, _mm256_castpd_ps(_mm256_permute4x64_pd(p, 0xd8)), n);
            }
        } else {
            float mask[8];
            _mm256_storeu_ps(mask, _mm256_castsi256_ps(in));
            for (size_t r = 0; r < rows; r++, d += dst_step, s += src_step)
                for (size_t i = 0; i < 8 && i < n; i++) {
                    uint32_t on;
                    memcpy(&on, &mask[i], sizeof on);
                    if (on)
                        memcpy(d + i, s + i * stride, sizeof *d);
                    else
                        d[i] = 0;
                }
        }
    }
}

static void one_by_one(size_t count, size_t n, size_t stride, const float *src, float *dst, size_t dst_step)
{
    for (size_t i = 0; i < count; i++, src += stride)
        for (size_t q = 0; q < n; q++) memcpy(dst + q * dst_step + i, src + q, sizeof *dst);
}

static size_t phases_of_2(size_t count, const float *src, float *dst, size_t dst_step)
{
    size_t i = 0;
    for (; count - i >= 8; i += 8, src += 16, dst += 8) {
        const __m256 x = _mm256_loadu_ps(src), y = _mm256_loadu_ps(src + 8);
        const __m256d even = _mm256_castps_pd(_mm256_shuffle_ps(x, y, 0x88)),
                      odd = _mm256_castps_pd(_mm256_shuffle_ps(x, y, 0xdd));
        _mm256_storeu_ps(dst, _mm256_castpd_ps(_mm256_permute4x64_pd(even, 0xd8)));
        _mm256_storeu_ps(dst + dst_step, _mm256_castpd_ps(_mm256_permute4x64_pd(odd, 0xd8)));
    }
    return i;
}

/* Two squares of four by four side by side. */
static size_t phases_of_4(size_t count, const float *src, float *dst, size_t dst_step)
{
    size_t i = 0;
    for (; count - i >= 8; i += 8, src += 32, dst += 8) {
        __m256 r[4];
#pragma GCC unroll 4
        for (int k = 0; k < 4; k++)
            r[k] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(src + 4 * k)),
                                        _mm_loadu_ps(src + 16 + 4 * k), 1);
        const __m256 a = _mm256_unpacklo_ps(r[0], r[1]), b = _mm256_unpackhi_ps(r[0], r[1]),
                     c = _mm256_unpacklo_ps(r[2], r[3]), d = _mm256_unpackhi_ps(r[2], r[3]);
        _mm256_storeu_ps(dst, _mm256_shuffle_ps(a, c, 0x44));
        _mm256_storeu_ps(dst + dst_step, _mm256_shuffle_ps(a, c, 0xee));
        _mm256_storeu_ps(dst + 2 * dst_step, _mm256_shuffle_ps(b, d, 0x44));
        _mm256_storeu_ps(dst + 3 * dst_step, _mm256_shuffle_ps(b, d, 0xee));
    }
    return i;
}

/* Squares of eight by eight, and one by one what is left. */
static void phases_of_any(size_t count, size_t n, size_t stride, const float *src, float *dst,
                          size_t dst_step)
{
    const size_t whole = count / 8 * 8, squares = n / 8 * 8;
    for (size_t i = 0; i < whole; i += 8)
        for (size_t q = 0; q < squares; q += 8) {
            const float *s = src + i * stride + q;
            float *d = dst + q * dst_step + i;
            __m256 r[8];
#pragma GCC unroll 8
            for (size_t k = 0; k < 8; k++) r[k] = _mm256_loadu_ps(s + k * stride);
            v_turn(r);
#pragma GCC unroll 8
            for (size_t k = 0; k < 8; k++) _mm256_storeu_ps(d + k * dst_step, r[k]);
        }
    one_by_one(whole, n - squares, stride, src + squares, dst + squares * dst_step, dst_step);
    one_by_one(count - whole, n, stride, src + whole * stride, dst + whole, dst_step);
}

void ortc_uk_phases_f32_avx2(size_t count, size_t n, size_t stride, const float *src, float *dst,
                             size_t dst_step)
{
    size_t done = 0;
    if (stride == 2 && n == 2)
        done = phases_of_2(count, src, dst, dst_step);
    else if (stride == 4 && n == 4)
        done = phases_of_4(count, src, dst, dst_step);
    else
        phases_of_any(count, n, stride, src, dst, dst_step), done = count;
    one_by_one(count - done, n, stride, src + done * stride, dst + done, dst_step);
}
