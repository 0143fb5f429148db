/* Convolution of pairs of bf16 over blocks of channels (blocked_uk.h) for AVX-512 BF16: tiles of 14 pixels x
 * 2 blocks, in which vdpbf16ps adds the products of two channels to sums of f32: twice as many an instruction
 * as FMA, at its rate on Zen 4 and 5. */
#include <assert.h>
#include <string.h>

#include "blocked_uk.h"
#include "kernels/common/vector/vec.h"

#define UNROLL _Pragma("GCC unroll 32")
enum { PIXELS = 14, BLOCKS = 2, WORDS = ORTC_BLOCK / 2, LINE = 64 };

VFN vf32 dot(vf32 sum, vi32 x, vi32 w)
{
    return (vf32)_mm512_dpbf16_ps((__m512)sum, (__m512bh)x, (__m512bh)w);
}

VFN void store_one(uint16_t *y, vf32 v)
{
    _mm256_storeu_si256((__m256i *)(void *)y, (__m256i)_mm512_cvtneps_pbh((__m512)v));
}
VFN void store_two(uint16_t *y, vf32 a, vf32 b)
{
    _mm512_storeu_si512(y, (__m512i)_mm512_cvtne2ps_pbh((__m512)b, (__m512)a));
}

/* ---- Tiles --------------------------------------------------------------------------------------------- */

/* Finished sums of a block's pixels: as f32, or, two pixels at a time, as bf16. */
VFN void end_block(const int np, const ortc_blocked_tile *t, size_t at, vf32 *sum)
{
    const vf32 lo = v_set_f32(t->lo);
    const vf32 hi = v_set_f32(t->hi);
    if (t->residual && t->half) {
        const uint16_t *half = (const uint16_t *)(const void *)t->residual + at;
        UNROLL for (int p = 0; p < np; p++)
            sum[p] = v_add(sum[p], v_load_bf16(half + p * ORTC_BLOCK, V_LANES));
    } else if (t->residual) {
        UNROLL for (int p = 0; p < np; p++)
            sum[p] = v_add(sum[p], v_load_f32(t->residual + at + p * ORTC_BLOCK, V_LANES));
    }
    if (t->clip) {
        UNROLL for (int p = 0; p < np; p++) sum[p] = v_min(hi, v_max(lo, sum[p])); /* second: a NaN stays */
    }
    if (!t->half) {
        UNROLL for (int p = 0; p < np; p++) v_store_f32(t->y + at + p * ORTC_BLOCK, sum[p], V_LANES);
        return;
    }
    uint16_t *y = (uint16_t *)(void *)t->y + at;
    UNROLL for (int p = 0; p + 1 < np; p += 2) store_two(y + p * ORTC_BLOCK, sum[p], sum[p + 1]);
    if (np % 2) store_one(y + (np - 1) * ORTC_BLOCK, sum[np - 1]);
}

VFN void tile(const int stem, const int np, const int nb, const ortc_blocked_tile *t)
{
    const int step = stem ? 1 : WORDS;
    vf32 sum[BLOCKS][PIXELS];
    UNROLL for (int b = 0; b < nb; b++)
    {
        if (t->bias) {
            const vf32 v = v_load_f32(t->bias + b * ORTC_BLOCK, V_LANES);
            UNROLL for (int p = 0; p < np; p++) sum[b][p] = v;
        } else {
            const float *from = t->sums + (size_t)b * t->sums_block;
            UNROLL for (int p = 0; p < np; p++) sum[b][p] = v_load_f32(from + p * ORTC_BLOCK, V_LANES);
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
    UNROLL for (int b = 0; b < nb; b++) end_block(np, t, (size_t)b * t->y_block, sum[b]);
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

/* ---- Before and after ---------------------------------------------------------------------------------- */

static void lay_f32(size_t n, const void *from, size_t step, void *to)
{
    const char *x = from;
    uint16_t *y = to;
    size_t i = 0;
    for (; i + 1 < n; i += 2, x += 2 * step, y += 2 * ORTC_BLOCK)
        store_two(y, (vf32)_mm512_loadu_ps(x), (vf32)_mm512_loadu_ps(x + step));
    if (i < n) store_one(y, (vf32)_mm512_loadu_ps(x));
}

static void lay_bf16(size_t n, const void *from, size_t step, void *to)
{
    const char *x = from;
    __m256i *y = to;
    if (step == sizeof *y) {
        memcpy(to, from, n * sizeof *y);
        return;
    }
    for (size_t i = 0; i < n; i++, x += step)
        _mm256_storeu_si256(y + i, _mm256_loadu_si256((const __m256i *)(const void *)x));
}

static void spread(size_t n, const float *x, void *to, size_t step)
{
    char *y = to;
    for (; n > 0; n--, x += ORTC_BLOCK, y += step) store_one((uint16_t *)(void *)y, v_load_f32(x, V_LANES));
}

static void join(size_t n, const void *first, const void *second, void *to)
{
    const uint16_t *a = first, *b = second;
    uint32_t *y = to;
    for (size_t i = 0; i < n; i += V_LANES) {
        const __mmask16 some = n - i < V_LANES ? (__mmask16)((1u << (n - i)) - 1) : (__mmask16)0xffff;
        __m512i v = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, a + i));
        if (b)
            v = _mm512_or_si512(
                v, _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(some, b + i)), 16));
        _mm512_mask_storeu_epi32(y + i, some, v);
    }
}

static void clip_bf16(size_t n, const float *sums, const void *residual, float lo, float hi, void *to)
{
    const vf32 low = v_set_f32(lo);
    const vf32 high = v_set_f32(hi);
    const uint16_t *r = residual;
    uint16_t *y = to;
    for (size_t i = 0; i < n; i += ORTC_BLOCK) {
        vf32 v = v_load_f32(sums + i, V_LANES);
        if (r) v = v_add(v, v_load_bf16(r + i, V_LANES));
        store_one(y + i, v_min(high, v_max(low, v)));
    }
}

const ortc_blocked_pairs ortc_blocked_pairs_avx512bf16 = {dense,  stem, lay_f32,  lay_bf16,
                                                          spread, join, clip_bf16};
