/* Convolution of bytes over blocks of channels (blocked_uk.h) for AVX-512 VNNI: the tiles of blocked_vec.c,
 * 14 pixels x 2 blocks, in which vpdpbusd adds four products of u8 and s8 exactly. */
#include <assert.h>
#include <string.h>

#include "blocked_uk.h"
#include "kernels/common/vector/vec.h"

#define UNROLL _Pragma("GCC unroll 32")
enum { PIXELS = 14, BLOCKS = 2, WORDS = ORTC_BLOCK / 4, LINE = 64 };

VFN vi32 dot(vi32 sum, vi32 x, vi32 w)
{
    return (vi32)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x, (__m512i)w);
}

VFN void tile(const int stem, const int np, const int nb, const ortc_blocked_tile *t)
{
    const int step = stem ? 1 : WORDS;
    vi32 sum[BLOCKS][PIXELS];
    UNROLL for (int b = 0; b < nb; b++)
    {
        const int32_t *y = (const int32_t *)(const void *)t->y + (size_t)b * t->y_block;
        const int32_t *first = (const int32_t *)(const void *)t->bias + b * ORTC_BLOCK;
        if (t->bias) {
            const vi32 v = v_load_i32(first, V_LANES);
            UNROLL for (int p = 0; p < np; p++) sum[b][p] = v;
        } else {
            UNROLL for (int p = 0; p < np; p++) sum[b][p] = v_load_i32(y + p * ORTC_BLOCK, V_LANES);
        }
    }
    const int32_t *w = t->w;
    const char *x = (const char *)t->x, *next = t->next;
    const size_t lines = stem ? 0 : t->next_lines;
    /* There is at least one of each: what a loop that may not run needs, compilers keep in memory. */
    size_t g = t->groups;
    do {
        const size_t depth = stem ? 1 : g > 1 ? WORDS : t->depth;
        size_t tap = 0;
        do {
            const char *s = x + t->offset[tap] * 4;
            size_t i = depth;
            for (size_t k = 0; k < lines; k++, next += LINE)
                UNROLL for (int b = 0; b < nb; b++)
                    _mm_prefetch(next + (size_t)b * t->w_block * 4, _MM_HINT_T1);
            do {
                vi32 wv[BLOCKS];
                UNROLL for (int b = 0; b < nb; b++) wv[b] = v_load_i32(w + (size_t)b * t->w_block, V_LANES);
                UNROLL for (int p = 0; p < np; p++)
                {
                    int32_t word;
                    memcpy(&word, s + 4 * p * step, sizeof word);
                    const vi32 xv = v_set_i32(word);
                    UNROLL for (int b = 0; b < nb; b++) sum[b][p] = dot(sum[b][p], xv, wv[b]);
                }
                s += 4, w += ORTC_BLOCK;
            } while (--i);
            if (!stem) w += (WORDS - depth) * ORTC_BLOCK;
        } while (++tap < t->taps);
        x += t->plane * 4;
    } while (--g);
    UNROLL for (int b = 0; b < nb; b++)
    {
        int32_t *y = (int32_t *)(void *)t->y + (size_t)b * t->y_block;
        UNROLL for (int p = 0; p < np; p++) v_store_i32(y + p * ORTC_BLOCK, sum[b][p], V_LANES);
    }
}

/* clang-format off */
#define EACH(X, ...) \
    X(1, __VA_ARGS__) X(2, __VA_ARGS__) X(3, __VA_ARGS__) X(4, __VA_ARGS__) X(5, __VA_ARGS__) \
    X(6, __VA_ARGS__) X(7, __VA_ARGS__) X(8, __VA_ARGS__) X(9, __VA_ARGS__) X(10, __VA_ARGS__) \
    X(11, __VA_ARGS__) X(12, __VA_ARGS__) X(13, __VA_ARGS__) X(14, __VA_ARGS__)
/* clang-format on */
#define TILE(np, stem, nb) \
    static void tile_##stem##_##nb##_##np(const ortc_blocked_tile *t) { tile(stem, np, nb, t); }
#define ENTRY(np, stem, nb) tile_##stem##_##nb##_##np,
#define TILES(name, stem) \
    EACH(TILE, stem, 1) \
    EACH(TILE, stem, 2) \
    static void name(size_t pixels, size_t blocks, const ortc_blocked_tile *t) \
    { \
        static void (*const tiles[BLOCKS][PIXELS])(const ortc_blocked_tile *) = {{EACH(ENTRY, stem, 1)}, \
                                                                                 {EACH(ENTRY, stem, 2)}}; \
        assert(pixels >= 1 && pixels <= PIXELS && blocks >= 1 && blocks <= BLOCKS); \
        tiles[blocks - 1][pixels - 1](t); \
    }
TILES(dense, 0)
TILES(stem, 1)

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
