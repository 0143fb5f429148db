/* f32 GEMM micro-kernels for AVX2 with FMA: the 6x16 tile (12 sums, two vectors of B, one broadcast of A in
 * 16 registers), packing, and the dot product for matrix times vector. The body is product_tile.inc. Why 6x16
 * and not 4x24: from L1 0.990 and 0.998 of the peak (Zen 5, K = 256), but 4x24 reads B 1.5 times as fast from
 * L2, and 24 divides few of the usual widths. Masked stores are microcoded on AMD's cores, so only the last,
 * partial vector of a row uses one.
 */
#include "product_uk.h"

#include <assert.h>

#include "kernels/common/vector_avx2.h"

#define TILE_MR 6
#define TILE_NV 2
#include "product_tile.inc"

#define ROWS(X, v) X(1, v) X(2, v) X(3, v) X(4, v) X(5, v) X(6, v)
ROWS(TILE_CASE, 1)
ROWS(TILE_CASE, 2)

#define ENTRY(r, v) tile_##r##_##v,
static void (*const tiles[TILE_NV][TILE_MR])(TILE_PARAMS) = {{ROWS(ENTRY, 1)}, {ROWS(ENTRY, 2)}};

void ortc_uk_product_f32_6x16_avx2(size_t mr, size_t nr, size_t k, const float *a, const float *b, size_t ldb,
                                   float *c, size_t ldc, uint32_t flags, const ortc_uk_tail_f32 *tail)
{
    assert(mr >= 1 && mr <= TILE_MR && nr >= 1 && nr <= TILE_NV * LANES);
    tiles[(nr - 1) / LANES][mr - 1](nr, k, a, b, ldb, c, ldc, flags, tail);
}

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

/* 8x8 transpose in registers. */
static inline __attribute__((always_inline)) void transpose8(__m256 r[8])
{
    __m256 t[8];
    UNROLL for (int i = 0; i < 8; i += 2)
    {
        t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
    }
    UNROLL for (int i = 0; i < 8; i += 4)
    {
        r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
        r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
        r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
        r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
        t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
    }
    UNROLL for (int i = 0; i < 8; i++) r[i] = t[i];
}

/* A strip of `want` destination columns, at most 8. Rows of a narrow strip are stored whole: what spills over
 * lies in the next row, written after; the last rows of the matrix go column by column instead. */
static void transpose_strip(size_t have, size_t want, size_t k, const float *src, size_t ld, float *dst,
                            size_t dw, int may_spill)
{
    size_t kk = 0;
    const size_t keep = may_spill ? LANES : 0; /* steps left to the careful loop */
    for (; kk + LANES + keep <= k; kk += LANES) {
        __m256 r[8];
        UNROLL for (int i = 0; i < 8; i++) r[i] = (size_t)i < have ? _mm256_loadu_ps(src + i * ld + kk)
                                                                   : _mm256_setzero_ps();
        transpose8(r);
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

static inline __attribute__((always_inline)) float reduce(__m256 v)
{
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_shuffle_ps(s, s, 1)));
}

/* Eight rows share each load of x; 8 sums hide the FMA's latency, and eight streams feed the prefetcher. */
static inline __attribute__((always_inline)) void dot_rows(const int nr, size_t k, const float *x,
                                                           const float *w, size_t ldw, float *y)
{
    __m256 acc[8];
    UNROLL for (int j = 0; j < nr; j++) acc[j] = _mm256_setzero_ps();
    size_t kk = 0;
    for (; kk + LANES <= k; kk += LANES) {
        const __m256 xv = _mm256_loadu_ps(x + kk);
        UNROLL for (int j = 0; j < nr; j++)
            acc[j] = _mm256_fmadd_ps(xv, _mm256_loadu_ps(w + j * ldw + kk), acc[j]);
    }
    if (kk < k) {
        const __m256i m = V_MASK(k - kk);
        const __m256 xv = _mm256_maskload_ps(x + kk, m);
        UNROLL for (int j = 0; j < nr; j++)
            acc[j] = _mm256_fmadd_ps(xv, _mm256_maskload_ps(w + j * ldw + kk, m), acc[j]);
    }
    UNROLL for (int j = 0; j < nr; j++) y[j] = reduce(acc[j]);
}

void ortc_uk_dot_f32_avx2(size_t nr, size_t k, const float *x, const float *w, size_t ldw, float *y)
{
    assert(nr >= 1 && nr <= ORTC_DOT_ROWS);
    if (nr == ORTC_DOT_ROWS)
        dot_rows(8, k, x, w, ldw, y);
    else
        for (size_t j = 0; j < nr; j++) dot_rows(1, k, x, w + j * ldw, ldw, y + j);
}
