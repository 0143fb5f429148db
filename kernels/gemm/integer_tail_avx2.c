/* Sums of s32 to 8 bits in fixed point, four pixels of 16 channels at a time (integer_tail_fixed.c), for
 * AVX2: channels in two halves. */
#include <immintrin.h>
#include <string.h>

#include "integer_tail_fixed.h"

#define INLINE static inline __attribute__((always_inline))
enum { LANES = 8, HALVES = ORTC_INT_BLOCK / LANES };

/* What does not change from pixel to pixel; too much for registers, which is read from L1. */
typedef struct steady {
    const ortc_int_block *b;
    __m256 lo, hi, residual;
    __m256i first, last, pixels, least, most, flip;
    int bounded; /* not just by u8, to which packing saturates */
} steady;

INLINE steady steady_of(const ortc_int_fixed *f, const ortc_int_block *b)
{
    const __m256i pixels = _mm256_broadcastsi128_si256(
        _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15));
    return (steady){.b = b,
                    .lo = _mm256_set1_ps(f->lo),
                    .hi = _mm256_set1_ps(f->hi),
                    .residual = _mm256_set1_ps(f->residual),
                    .first = _mm256_set1_epi32(b->near),
                    .last = _mm256_set1_epi32(f->back ? b->last : b->near),
                    .pixels = pixels,
                    .least = _mm256_set1_epi8((char)f->least),
                    .most = _mm256_set1_epi8((char)f->most),
                    .flip = _mm256_set1_epi8((char)f->flip),
                    .bounded = f->least > 0 || f->most < 255 || f->flip};
}

/* The lower half that is the smallest of four: above it nothing counts. */
INLINE __m256i nearest(const __m256i *v)
{
    return _mm256_min_epu16(_mm256_min_epu16(v[0], v[1]), _mm256_min_epu16(v[2], v[3]));
}

/* Lanes in which none of these bits is set. */
INLINE __m256i without(__m256i v, __m256i bits)
{
    return _mm256_cmpeq_epi32(_mm256_and_si256(v, bits), _mm256_setzero_si256());
}

/* Eight channels of four pixels: [4 channels][pixel][channel] in each half of *out; returns which have an
 * element near a half. */
INLINE uint32_t half(const int back, const int adds, const steady *k, size_t c, const int32_t *sums,
                     size_t ld, const uint8_t *residual, size_t y_ld, __m256i *out)
{
    const __m256 factor = _mm256_loadu_ps(k->b->factor + c), bias = _mm256_loadu_ps(k->b->bias + c);
    __m256i to[ORTC_INT_GROUP], first[ORTC_INT_GROUP];
#pragma GCC unroll 4
    for (int i = 0; i < ORTC_INT_GROUP; i++) {
        const int32_t *sum = sums + (size_t)i * ld + c;
        __m256 v = _mm256_cvtepi32_ps(_mm256_loadu_si256((const __m256i *)(const void *)sum));
        v = _mm256_fmadd_ps(v, factor, bias);
        if (back) {
            v = _mm256_min_ps(_mm256_max_ps(v, k->lo), k->hi);
            const __m256i q = _mm256_cvtps_epi32(v);
            first[i] = q;
            v = _mm256_cvtepi32_ps(_mm256_blend_epi16(_mm256_setzero_si256(), q, 0xaa)); /* upper halves */
            v = _mm256_fmadd_ps(v, _mm256_loadu_ps(k->b->next + c), _mm256_loadu_ps(k->b->last_bias + c));
        }
        if (adds) {
            const __m128i r = _mm_loadl_epi64(
                (const __m128i *)(const void *)(residual + (size_t)i * y_ld + c));
            v = _mm256_fmadd_ps(_mm256_cvtepi32_ps(adds == 1 ? _mm256_cvtepu8_epi32(r)
                                                             : _mm256_cvtepi8_epi32(r)),
                                k->residual, v);
        }
        to[i] = _mm256_cvtps_epi32(v);
    }
    __m256i near = without(nearest(to), k->last);
    if (back) near = _mm256_or_si256(near, without(nearest(first), k->first));
    /* upper halves, of two in turn */
    const __m256i ab = _mm256_blend_epi16(_mm256_srli_epi32(to[0], 16), to[1], 0xaa),
                  cd = _mm256_blend_epi16(_mm256_srli_epi32(to[2], 16), to[3], 0xaa);
    /* [4 channels][two pixels][channel][pixel] to [4 channels][pixel][channel] */
    *out = _mm256_shuffle_epi8(_mm256_packus_epi16(ab, cd), k->pixels);
    return (uint32_t)_mm256_movemask_ps(_mm256_castsi256_ps(near));
}

INLINE uint32_t four(const int back, const int adds, const steady *k, const int32_t *sums, size_t ld,
                     const uint8_t *residual, uint8_t *y, size_t y_ld)
{
    __m256i v[HALVES];
    uint32_t near = 0;
#pragma GCC unroll 2
    for (size_t h = 0; h < HALVES; h++)
        near |= half(back, adds, k, h * LANES, sums, ld, residual, y_ld, &v[h]) << h * LANES;
    /* words of 4 channels to pixels */
    const __m256i even = _mm256_permute2x128_si256(v[0], v[1], 0x20),
                  odd = _mm256_permute2x128_si256(v[0], v[1], 0x31),
                  two[] = {_mm256_unpacklo_epi32(even, odd), _mm256_unpackhi_epi32(even, odd)};
#pragma GCC unroll 2
    for (size_t i = 0; i < 2; i++) {
        __m256i bytes = _mm256_permute4x64_epi64(two[i], 0xd8);
        if (k->bounded)
            bytes = _mm256_xor_si256(_mm256_min_epu8(_mm256_max_epu8(bytes, k->least), k->most), k->flip);
        _mm_storeu_si128((__m128i *)(void *)(y + 2 * i * y_ld), _mm256_castsi256_si128(bytes));
        _mm_storeu_si128((__m128i *)(void *)(y + (2 * i + 1) * y_ld), _mm256_extracti128_si256(bytes, 1));
    }
    return 0xffff & ~near;
}

INLINE void dequantise(const ortc_int_fixed *f, size_t n, const uint8_t *bytes, float *y, size_t y_ld)
{
    const __m256 zero = _mm256_set1_ps(f->again_zero), scale = _mm256_set1_ps(f->again_scale);
    for (size_t i = 0; i < n * ORTC_INT_BLOCK; i += LANES) {
        const __m128i q = _mm_loadl_epi64((const __m128i *)(const void *)(bytes + i));
        const __m256 v = _mm256_cvtepi32_ps(f->flip ? _mm256_cvtepi8_epi32(q) : _mm256_cvtepu8_epi32(q));
        _mm256_storeu_ps(y + i / ORTC_INT_BLOCK * y_ld + i % ORTC_INT_BLOCK, (v - zero) * scale);
    }
}

INLINE void widen_row(int is_signed, const uint8_t *bytes, int32_t *sums)
{
    for (size_t c = 0; c < ORTC_INT_BLOCK; c += LANES) {
        const __m128i q = _mm_loadl_epi64((const __m128i *)(const void *)(bytes + c));
        _mm256_storeu_si256((__m256i *)(void *)(sums + c),
                            is_signed ? _mm256_cvtepi8_epi32(q) : _mm256_cvtepu8_epi32(q));
    }
}

#include "integer_tail_fixed.inc"

const ortc_int_blocks ortc_int_blocks_avx2 = {ortc_int_fixed_init, ortc_int_fixed_block, run, widen};
