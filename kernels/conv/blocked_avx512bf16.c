/* Convolution of pairs of bf16 over blocks of channels (blocked_uk.h) for AVX-512 BF16: tiles of 14 pixels x
 * 2 blocks, in which vdpbf16ps adds the products of two channels to sums of f32: twice as many an instruction
 * as FMA, at its rate on Zen 4 and 5. */
#include "blocked_uk.h"
#include "kernels/common/vector/vec.h"

#define UNROLL _Pragma("GCC unroll 32")
#define SPLITS 0
enum { PIXELS = 14, BLOCKS = 2, WORDS = ORTC_BLOCK / 2, VECTORS = 1 };
typedef vf32 reg;

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

VFN void begin_block(const int np, const ortc_blocked_tile *t, size_t b, vf32 (*sum)[VECTORS])
{
    if (t->bias) {
        const vf32 v = v_load_f32(t->bias + b * ORTC_BLOCK, V_LANES);
        UNROLL for (int p = 0; p < np; p++) sum[p][0] = v;
    } else {
        const float *from = t->sums + b * t->sums_block;
        UNROLL for (int p = 0; p < np; p++) sum[p][0] = v_load_f32(from + p * ORTC_BLOCK, V_LANES);
    }
}

/* Finished sums of a block's pixels: as f32, or, two pixels at a time, as bf16. */
VFN void end_block(const int np, const ortc_blocked_tile *t, size_t b, vf32 (*sum)[VECTORS])
{
    const size_t at = b * t->y_block;
    const vf32 lo = v_set_f32(t->lo);
    const vf32 hi = v_set_f32(t->hi);
    if (t->residual && t->half) {
        const uint16_t *half = (const uint16_t *)(const void *)t->residual + at;
        UNROLL for (int p = 0; p < np; p++)
            sum[p][0] = v_add(sum[p][0], v_load_bf16(half + p * ORTC_BLOCK, V_LANES));
    } else if (t->residual) {
        UNROLL for (int p = 0; p < np; p++)
            sum[p][0] = v_add(sum[p][0], v_load_f32(t->residual + at + p * ORTC_BLOCK, V_LANES));
    }
    if (t->clip) {
        UNROLL for (int p = 0; p < np; p++)
            sum[p][0] = v_min(hi, v_max(lo, sum[p][0])); /* second: a NaN stays */
    }
    if (!t->half) {
        UNROLL for (int p = 0; p < np; p++) v_store_f32(t->y + at + p * ORTC_BLOCK, sum[p][0], V_LANES);
        return;
    }
    uint16_t *y = (uint16_t *)(void *)t->y + at;
    UNROLL for (int p = 0; p + 1 < np; p += 2) store_two(y + p * ORTC_BLOCK, sum[p][0], sum[p + 1][0]);
    if (np % 2) store_one(y + (np - 1) * ORTC_BLOCK, sum[np - 1][0]);
}

#include "blocked_words.inc"

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
    V_FOR(i, some, n, {
        vi32 v = v_load_u16(a + i, some);
        if (b) v = v_or(v, v_shl(v_load_u16(b + i, some), 16));
        v_store_i32((int32_t *)(void *)(y + i), v, some);
    });
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
