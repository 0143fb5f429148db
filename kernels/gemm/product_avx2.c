/* Micro-kernels of f32 sums for AVX2 with FMA and F16C, B of f32, f16 or bf16: the 6x16 tile (12 sums, two
 * vectors of B, one broadcast of A in 16 registers); and packing. The body is product_tile.inc. Why 6x16 and
 * not 4x24: from L1 0.990 and 0.998 of the peak (Zen 5, K = 256), but 4x24 reads B 1.5 times as fast from L2,
 * and 24 divides few of the usual widths. Masked stores are microcoded on AMD's cores, so only the last,
 * partial vector of a row uses one.
 */
#include "product_uk.h"

#include <assert.h>

#include "kernels/common/vector/tile.h"

static inline __attribute__((always_inline)) __m256 widen(const int type, __m128i h)
{
    if (type == ORTC_F16) return _mm256_cvtph_ps(h);
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(h), 16));
}
static inline __attribute__((always_inline)) __m256 tile_b(const int type, const void *p)
{
    return type == ORTC_F32 ? _mm256_loadu_ps(p) : widen(type, _mm_loadu_si128(p));
}
static inline __attribute__((always_inline)) __m256 tile_b_first(const int type, const void *p, size_t n)
{
    uint16_t part[8] = {0};
    if (type == ORTC_F32) return _mm256_maskload_ps(p, (__m256i)V_MASK(n));
    memcpy(part, p, n * sizeof *part);
    return widen(type, _mm_loadu_si128((const __m128i *)part));
}

#define TILE_MR 6
#define TILE_NV 2
#define TILE_STEPS(type, mr, nv) ((type) == ORTC_F32 && (mr) >= 5 && (nv) == 2 ? 4 : 1)
#include "product_tile.inc"

#define ROWS(X, T, v) X(T, 1, v) X(T, 2, v) X(T, 3, v) X(T, 4, v) X(T, 5, v) X(T, 6, v)
TILE_LINE_PLAIN(f32, ortc_uk_product_f32_f32_6x16_avx2)
TILE_LINE(f16, ortc_uk_product_f32_f16_6x16_avx2)
TILE_LINE(bf16, ortc_uk_product_f32_bf16_6x16_avx2)

ortc_uk_pack_f32 ortc_uk_pack_rows_f32_avx2, ortc_uk_pack_transpose_f32_avx2;
void ortc_uk_pack_rows_f32_avx2(size_t w, size_t k, const float *src, size_t ld, float *dst, size_t dw)
{
    assert(dw >= w);
    size_t j = 0;
    for (; j + LANES <= w; j += LANES)
        for (size_t i = 0; i < k; i++) _mm256_storeu_ps(dst + i * dw + j, _mm256_loadu_ps(src + i * ld + j));
    if (j == dw) return;
    for (size_t i = 0; i < k; i++)
        for (size_t jj = j; jj < dw; jj++)
            dst[i * dw + jj] = jj < w ? ortc_uk_load_f32(src + i * ld + jj) : 0.0f;
}

/* A strip of `want` destination columns, at most 8. Rows of a narrow strip are stored whole: what spills over
 * lies in the next row, written after; the last rows of the matrix go column by column instead. The next
 * strip's rows are asked for: they are too many streams for the hardware to see. */
static void transpose_strip(size_t have, size_t want, size_t k, const float *src, size_t ld, float *dst,
                            size_t dw, int may_spill)
{
    size_t kk = 0;
    const size_t keep = may_spill ? LANES : 0; /* steps left to the careful loop */
    for (; kk + LANES + keep <= k; kk += LANES) {
        __m256 r[8];
        UNROLL for (int i = 0; i < 8; i++) r[i] = (size_t)i < have ? _mm256_loadu_ps(src + i * ld + kk)
                                                                   : _mm256_setzero_ps();
        UNROLL for (int i = 0; i < 8; i++) if ((size_t)i < have)
            __builtin_prefetch(src + ((size_t)i + have) * ld + kk, 0, 2);
        v_turn(r);
        UNROLL for (int i = 0; i < 8; i++) _mm256_storeu_ps(dst + (kk + i) * dw, r[i]);
    }
    for (; kk < k; kk++)
        for (size_t j = 0; j < want; j++)
            dst[kk * dw + j] = j < have ? ortc_uk_load_f32(src + j * ld + kk) : 0.0f;
}

void ortc_uk_pack_transpose_f32_avx2(size_t w, size_t k, const float *src, size_t ld, float *dst, size_t dw)
{
    assert(dw >= w);
    for (size_t j = 0; j < dw; j += LANES) {
        const size_t want = dw - j < LANES ? dw - j : LANES;
        const size_t have = w > j ? (w - j < want ? w - j : want) : 0;
        const float *s = have ? src + j * ld : src;
        /* Storing whole vectors over the next row is right only if that row is written afterwards, all of
         * it. */
        if (want == LANES || dw < LANES)
            transpose_strip(have, want, k, s, ld, dst + j, dw, want < LANES);
        else
            for (size_t kk = 0; kk < k; kk++)
                for (size_t i = 0; i < want; i++)
                    dst[kk * dw + j + i] = i < have ? ortc_uk_load_f32(s + i * ld + kk) : 0.0f;
    }
}
