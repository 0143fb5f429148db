/* Gathering image rows with AVX-512: padding costs nothing, because a masked load gives zeros where it does
 * not read. Stride 2 loads two vectors and takes every other element; strides up to PICKED load as many
 * vectors and pick from each, which takes a third of a gather's time (Zen 4); larger ones gather.
 */
#include "columns_uk.h"

#include <immintrin.h>

#include "kernels/common/vector/vec.h"

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

enum { PICKED = 8 };

/* Of 16 elements that lie `stride` apart those of lanes a .. b-1; what lies between them is read, too. */
static inline __m512 pick(const float *s, size_t stride, size_t a, size_t b, __m512i steps)
{
    const __m512i from = _mm512_srli_epi32(steps, 4); /* lanes are mod 16 by themselves */
    const size_t first = a * stride, end = b > a ? (b - 1) * stride + 1 : first;
    __m512 r = _mm512_setzero_ps();
    for (size_t v = 0; v < stride; v++) {
        const __m512 x = v_load_masked_f32(s + 16 * v, lanes(16 * v, first, end));
        r = _mm512_mask_permutexvar_ps(r, _mm512_cmpeq_epi32_mask(from, _mm512_set1_epi32((int)v)), steps, x);
    }
    return r;
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
                v_store_masked_f32(d, v_load_masked_f32(s, in), out);
        } else if (stride == 2) {
            const uint32_t both = spread(in);
            const __mmask16 m0 = (__mmask16)both, m1 = (__mmask16)(both >> 16);
            for (size_t r = 0; r < rows; r++, d += dst_step, s += src_step) {
                const __m512 x = v_load_masked_f32(s, m0), y = v_load_masked_f32(s + 16, m1);
                v_store_masked_f32(d, _mm512_permutex2var_ps(x, even, y), out);
            }
        } else if (stride <= PICKED) {
            const size_t a = left > at ? left - at : 0, b = left + count > at ? left + count - at : 0;
            const size_t last = b < 16 ? b : 16, begin = a < last ? a : last;
            for (size_t r = 0; r < rows; r++, d += dst_step, s += src_step)
                v_store_masked_f32(d, pick(s, stride, begin, last, steps), out);
        } else {
            for (size_t r = 0; r < rows; r++, d += dst_step, s += src_step)
                v_store_masked_f32(d, _mm512_mask_i32gather_ps(_mm512_setzero_ps(), in, steps, s, 4), out);
        }
    }
}

static void phases_of_2(size_t count, const float *src, float *dst, size_t dst_step)
{
    const __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    const __m512i odd = _mm512_add_epi32(even, _mm512_set1_epi32(1));
    for (size_t i = 0; i < count; i += 16, src += 32, dst += 16) {
        const size_t n = 2 * (count - i);
        const __m512 x = v_load_masked_f32(src, lanes(0, 0, n)),
                     y = v_load_masked_f32(src + 16, lanes(16, 0, n));
        const __mmask16 out = lanes(i, 0, count);
        v_store_masked_f32(dst, _mm512_permutex2var_ps(x, even, y), out);
        v_store_masked_f32(dst + dst_step, _mm512_permutex2var_ps(x, odd, y), out);
    }
}

/* Two vectors become eight elements of two phases each, and those of the same phases whole vectors. */
static void phases_of_4(size_t count, const float *src, float *dst, size_t dst_step)
{
    const __m512i first = _mm512_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28, 1, 5, 9, 13, 17, 21, 25, 29);
    const __m512i then = _mm512_add_epi32(first, _mm512_set1_epi32(2));
    for (size_t i = 0; i < count; i += 16, src += 64, dst += 16) {
        const size_t n = 4 * (count - i);
        const __m512 a = v_load_masked_f32(src, lanes(0, 0, n)),
                     b = v_load_masked_f32(src + 16, lanes(16, 0, n)),
                     c = v_load_masked_f32(src + 32, lanes(32, 0, n)),
                     d = v_load_masked_f32(src + 48, lanes(48, 0, n));
        const __m512 ab = _mm512_permutex2var_ps(a, first, b), cd = _mm512_permutex2var_ps(c, first, d),
                     ab2 = _mm512_permutex2var_ps(a, then, b), cd2 = _mm512_permutex2var_ps(c, then, d);
        const __mmask16 out = lanes(i, 0, count);
        v_store_masked_f32(dst, _mm512_shuffle_f32x4(ab, cd, 0x44), out);
        v_store_masked_f32(dst + dst_step, _mm512_shuffle_f32x4(ab, cd, 0xee), out);
        v_store_masked_f32(dst + 2 * dst_step, _mm512_shuffle_f32x4(ab2, cd2, 0x44), out);
        v_store_masked_f32(dst + 3 * dst_step, _mm512_shuffle_f32x4(ab2, cd2, 0xee), out);
    }
}

/* Squares of 16 by 16. */
static void phases_of_any(size_t count, size_t n, size_t stride, const float *src, float *dst,
                          size_t dst_step)
{
    for (size_t i = 0; i < count; i += 16)
        for (size_t q = 0; q < n; q += 16) {
            const size_t rows = n - q < 16 ? n - q : 16, have = count - i < 16 ? count - i : 16;
            const __mmask16 in = lanes(0, 0, rows), out = lanes(0, 0, have);
            const float *s = src + i * stride + q;
            float *d = dst + q * dst_step + i;
            __m512 r[16];
#pragma GCC unroll 16
            for (size_t k = 0; k < 16; k++)
                r[k] = k < have ? v_load_masked_f32(s + k * stride, in) : v_set_f32(0);
            v_turn(r);
#pragma GCC unroll 16
            for (size_t k = 0; k < 16; k++)
                if (k < rows) v_store_masked_f32(d + k * dst_step, r[k], out);
        }
}

void ortc_uk_phases_f32_avx512(size_t count, size_t n, size_t stride, const float *src, float *dst,
                               size_t dst_step)
{
    if (stride == 2 && n == 2)
        phases_of_2(count, src, dst, dst_step);
    else if (stride == 4 && n == 4)
        phases_of_4(count, src, dst, dst_step);
    else
        phases_of_any(count, n, stride, src, dst, dst_step);
}
