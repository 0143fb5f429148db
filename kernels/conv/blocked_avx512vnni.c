/* Convolution of bytes over blocks of channels (blocked_uk.h) for AVX-512 VNNI: the tiles of blocked_vec.c,
 * 14 pixels x 2 blocks, in which vpdpbusd adds four products of u8 and s8 exactly. */
#include "blocked_uk.h"
#include "kernels/common/vector/vec.h"

#define UNROLL _Pragma("GCC unroll 32")
enum { PIXELS = 14, BLOCKS = 2, WORDS = ORTC_BLOCK / 4 };
typedef vi32 reg;

VFN vi32 dot(vi32 sum, vi32 x, vi32 w)
{
    return (vi32)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x, (__m512i)w);
}

VFN void begin_block(const int np, const ortc_blocked_tile *t, size_t b, vi32 *sum)
{
    const int32_t *y = (const int32_t *)(const void *)t->y + b * t->y_block;
    const int32_t *first = (const int32_t *)(const void *)t->bias + b * ORTC_BLOCK;
    if (t->bias) {
        const vi32 v = v_load_i32(first, V_LANES);
        UNROLL for (int p = 0; p < np; p++) sum[p] = v;
    } else {
        UNROLL for (int p = 0; p < np; p++) sum[p] = v_load_i32(y + p * ORTC_BLOCK, V_LANES);
    }
}
VFN void end_block(const int np, const ortc_blocked_tile *t, size_t b, vi32 *sum)
{
    int32_t *y = (int32_t *)(void *)t->y + b * t->y_block;
    UNROLL for (int p = 0; p < np; p++) v_store_i32(y + p * ORTC_BLOCK, sum[p], V_LANES);
}

#include "blocked_words.inc"

static void move(size_t n, const void *from, size_t step, int flip, void *to)
{
    const char *x = from;
    if (step == ORTC_BLOCK) {
        const __m512i signs = _mm512_set1_epi8(flip ? (char)0x80 : 0);
        const size_t all = n * ORTC_BLOCK;
        for (size_t i = 0; i < all; i += sizeof signs) {
            const __mmask64 some = all - i < 64 ? ((__mmask64)1 << (all - i)) - 1 : ~(__mmask64)0;
            _mm512_mask_storeu_epi8((char *)to + i, some,
                                    _mm512_xor_si512(_mm512_maskz_loadu_epi8(some, x + i), signs));
        }
        return;
    }
    const __m128i sign = _mm_set1_epi8(flip ? (char)0x80 : 0);
    for (size_t i = 0; i < n; i++, x += step)
        _mm_storeu_si128((__m128i *)to + i,
                         _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)x), sign));
}

const ortc_blocked_bytes ortc_blocked_bytes_avx512vnni = {dense, stem, move};
