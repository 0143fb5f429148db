/* Sums of s32 to 8 bits in fixed point, four pixels of 16 channels at a time (integer_tail_fixed.c), for
 * AVX-512. */
#include <immintrin.h>
#include <string.h>

#include "integer_tail_fixed.h"

#define INLINE static inline __attribute__((always_inline))

/* What registers hold. */
typedef struct steady {
    __m512 factor, bias, lo, hi, next, last_bias, residual;
    __m512i first, last, integer, pixels, order, least, most, flip;
    int moved;   /* lo is -hi */
    int bounded; /* not just by u8, to which packing saturates */
} steady;

INLINE steady steady_of(const ortc_int_fixed *f, const ortc_int_block *b)
{
    const __m128i pixels = _mm_setr_epi8(0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15);
    return (steady){.factor = _mm512_loadu_ps(b->factor),
                    .bias = _mm512_loadu_ps(b->bias),
                    .lo = _mm512_set1_ps(f->lo),
                    .hi = _mm512_set1_ps(f->hi),
                    .next = _mm512_loadu_ps(b->next),
                    .last_bias = _mm512_loadu_ps(b->last_bias),
                    .residual = _mm512_set1_ps(f->residual),
                    .first = _mm512_set1_epi32(b->near),
                    .last = _mm512_set1_epi32(f->back ? b->last : b->near),
                    .integer = _mm512_set1_epi32(-65536),
                    .pixels = _mm512_broadcast_i32x4(pixels),
                    .order = _mm512_setr_epi32(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15),
                    .least = _mm512_set1_epi8((char)f->least),
                    .most = _mm512_set1_epi8((char)f->most),
                    .flip = _mm512_set1_epi8((char)f->flip),
                    .moved = f->moved,
                    .bounded = f->least > 0 || f->most < 255 || f->flip};
}

/* The lower half that is the smallest of four: above it nothing counts. */
INLINE __m512i nearest(const __m512i *v)
{
    return _mm512_min_epu16(_mm512_min_epu16(v[0], v[1]), _mm512_min_epu16(v[2], v[3]));
}

INLINE __mmask16 four(const int back, const int adds, const steady *k, const int32_t *sums, size_t ld,
                      const uint8_t *residual, uint8_t *y, size_t y_ld)
{
    __m512i to[ORTC_INT_GROUP], first[ORTC_INT_GROUP];
#pragma GCC unroll 4
    for (int i = 0; i < ORTC_INT_GROUP; i++) {
        __m512 v = _mm512_cvtepi32_ps(_mm512_loadu_si512(sums + i * ld));
        v = _mm512_fmadd_ps(v, k->factor, k->bias);
        if (back) {
            v = k->moved ? _mm512_range_ps(v, k->hi, 2 /* the smaller of |v| and hi, with v's sign */)
                         : _mm512_min_ps(_mm512_max_ps(v, k->lo), k->hi);
            const __m512i q = _mm512_cvtps_epi32(v);
            first[i] = q;
            v = _mm512_cvtepi32_ps(_mm512_and_si512(q, k->integer));
            v = _mm512_fmadd_ps(v, k->next, k->last_bias);
        }
        if (adds) {
            const __m128i r = _mm_loadu_si128((const __m128i *)(const void *)(residual + i * y_ld));
            v = _mm512_fmadd_ps(_mm512_cvtepi32_ps(adds == 1 ? _mm512_cvtepu8_epi32(r)
                                                             : _mm512_cvtepi8_epi32(r)),
                                k->residual, v);
        }
        to[i] = _mm512_cvtps_epi32(v);
    }
    __mmask16 sure = _mm512_test_epi32_mask(nearest(to), k->last);
    if (back) sure = _mm512_mask_test_epi32_mask(sure, nearest(first), k->first);
    /* upper halves, of two in turn */
    const __m512i ab = _mm512_ternarylogic_epi32(k->integer, to[1], _mm512_srli_epi32(to[0], 16), 0xca),
                  cd = _mm512_ternarylogic_epi32(k->integer, to[3], _mm512_srli_epi32(to[2], 16), 0xca);
    /* [4 channels][two pixels][channel][pixel] to [4 channels][pixel][channel], and these words to pixels */
    __m512i bytes = _mm512_shuffle_epi8(_mm512_packus_epi16(ab, cd), k->pixels);
    bytes = _mm512_permutexvar_epi32(k->order, bytes);
    if (k->bounded)
        bytes = _mm512_xor_si512(_mm512_min_epu8(_mm512_max_epu8(bytes, k->least), k->most), k->flip);
    if (y_ld == ORTC_INT_BLOCK) {
        _mm512_storeu_si512(y, bytes);
    } else {
        _mm_storeu_si128((__m128i *)(void *)y, _mm512_castsi512_si128(bytes));
        _mm_storeu_si128((__m128i *)(void *)(y + y_ld), _mm512_extracti32x4_epi32(bytes, 1));
        _mm_storeu_si128((__m128i *)(void *)(y + 2 * y_ld), _mm512_extracti32x4_epi32(bytes, 2));
        _mm_storeu_si128((__m128i *)(void *)(y + 3 * y_ld), _mm512_extracti32x4_epi32(bytes, 3));
    }
    return sure;
}

INLINE void dequantise(const ortc_int_fixed *f, size_t n, const uint8_t *bytes, float *y, size_t y_ld)
{
    const __m512 zero = _mm512_set1_ps(f->again_zero), scale = _mm512_set1_ps(f->again_scale);
    for (size_t i = 0; i < n; i++) {
        const __m128i q = _mm_loadu_si128((const __m128i *)(const void *)(bytes + i * ORTC_INT_BLOCK));
        const __m512 v = _mm512_cvtepi32_ps(f->flip ? _mm512_cvtepi8_epi32(q) : _mm512_cvtepu8_epi32(q));
        _mm512_storeu_ps(y + i * y_ld, (v - zero) * scale);
    }
}

INLINE void widen_row(int is_signed, const uint8_t *bytes, int32_t *sums)
{
    const __m128i q = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    _mm512_storeu_si512(sums, is_signed ? _mm512_cvtepi8_epi32(q) : _mm512_cvtepu8_epi32(q));
}

#include "integer_tail_fixed.inc"

const ortc_int_blocks ortc_int_blocks_avx512 = {ortc_int_fixed_init, ortc_int_fixed_block, run, widen};
