/* f32 GEMM micro-kernels for AVX-512 (F, BW, DQ, VL): the 14x32 tile, 28 sums in registers, two loads of B
 * and 14 broadcasts of A for 28 FMAs; packing; and the dot product for matrix times vector. Why 14x32: 28 + 2
 * + 1 of 32 registers, and the fewest loads for an FMA. Zen 5, K = 256 from L1: 0.94 to 0.98 of the peak. The
 * body is product_tile.inc.
 */
#include "product_uk.h"

#include <assert.h>

#include "kernels/common/vector_avx512.h"

#define TILE_MR 14
#define TILE_NV 2
#include "product_tile.inc"

/* clang-format off */
#define ROWS(X, v) \
    X(1, v) X(2, v) X(3, v) X(4, v) X(5, v) X(6, v) X(7, v) X(8, v) X(9, v) X(10, v) X(11, v) X(12, v) \
    X(13, v) X(14, v)
/* clang-format on */
ROWS(TILE_CASE, 1)
ROWS(TILE_CASE, 2)

#define ENTRY(r, v) tile_##r##_##v,
static void (*const tiles[TILE_NV][TILE_MR])(TILE_PARAMS) = {{ROWS(ENTRY, 1)}, {ROWS(ENTRY, 2)}};

void ortc_uk_product_f32_14x32_avx512(size_t mr, size_t nr, size_t k, const float *a, const float *b,
                                      size_t ldb, float *c, size_t ldc, uint32_t flags,
                                      const ortc_uk_tail_f32 *tail)
{
    assert(mr >= 1 && mr <= TILE_MR && nr >= 1 && nr <= TILE_NV * LANES);
    tiles[(nr - 1) / LANES][mr - 1](nr, k, a, b, ldb, c, ldc, flags, tail);
}

void ortc_uk_pack_rows_f32_avx512(size_t w, size_t k, const float *src, size_t ld, float *dst, size_t dw)
{
    assert(dw >= w);
    for (size_t j = 0; j < dw; j += LANES) {
        const size_t have = w > j ? w - j : 0;
        const __mmask16 in = have >= LANES ? 0xffff : V_MASK(have);
        const __mmask16 out = dw - j >= LANES ? 0xffff : V_MASK(dw - j);
        const float *s = src + (have ? j : 0); /* masked lanes are not read, yet keep the pointer inside */
        for (size_t i = 0; i < k; i++)
            _mm512_mask_storeu_ps(dst + i * dw + j, out, _mm512_maskz_loadu_ps(in, s + i * ld));
    }
}

/* 16x16 transpose in registers: four rounds of 16 shuffles. */
static inline __attribute__((always_inline)) void transpose16(__m512 r[16])
{
    __m512 t[16];
    UNROLL for (int i = 0; i < 16; i += 2)
    {
        t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
        t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
    }
    UNROLL for (int i = 0; i < 16; i += 4)
    {
        r[i] = _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(t[i]), _mm512_castps_pd(t[i + 2])));
        r[i + 1] = _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(t[i]), _mm512_castps_pd(t[i + 2])));
        r[i + 2] = _mm512_castpd_ps(
            _mm512_unpacklo_pd(_mm512_castps_pd(t[i + 1]), _mm512_castps_pd(t[i + 3])));
        r[i + 3] = _mm512_castpd_ps(
            _mm512_unpackhi_pd(_mm512_castps_pd(t[i + 1]), _mm512_castps_pd(t[i + 3])));
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
        t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xdd);
        t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
        t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xdd);
    }
    UNROLL for (int i = 0; i < 4; i++)
    {
        r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
        r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xdd);
        r[i + 4] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0x88);
        r[i + 12] = _mm512_shuffle_f32x4(t[i + 4], t[i + 12], 0xdd);
    }
}

/* One strip of at most 16 destination columns, 16 steps of k at a time. */
static void transpose_strip(size_t have, size_t want, size_t k, const float *src, size_t ld, float *dst,
                            size_t dw)
{
    const __mmask16 out = want >= LANES ? 0xffff : V_MASK(want);
    for (size_t kk = 0; kk < k; kk += LANES) {
        const size_t n = k - kk < LANES ? k - kk : LANES;
        const __mmask16 in = V_MASK(n);
        __m512 r[16];
        UNROLL for (int i = 0; i < 16; i++)
            r[i] = (size_t)i < have ? _mm512_maskz_loadu_ps(in, src + i * ld + kk) : _mm512_setzero_ps();
        transpose16(r);
        float *d = dst + kk * dw;
        if (n == LANES) {
            UNROLL for (int i = 0; i < 16; i++) _mm512_mask_storeu_ps(d + i * dw, out, r[i]);
        } else {
            UNROLL for (int i = 0; i < 16; i++) if ((size_t)i < n)
                _mm512_mask_storeu_ps(d + i * dw, out, r[i]);
        }
    }
}

void ortc_uk_pack_transpose_f32_avx512(size_t w, size_t k, const float *src, size_t ld, float *dst, size_t dw)
{
    assert(dw >= w);
    for (size_t j = 0; j < dw; j += LANES) {
        const size_t have = w > j ? (w - j < LANES ? w - j : LANES) : 0;
        transpose_strip(have, dw - j, k, have ? src + j * ld : src, ld, dst + j, dw);
    }
}

/* Eight rows share each load of x; 8 sums hide the FMA's latency, and eight streams feed the prefetcher. */
static inline __attribute__((always_inline)) void dot_rows(const int nr, size_t k, const float *x,
                                                           const float *w, size_t ldw, float *y)
{
    __m512 acc[8];
    UNROLL for (int j = 0; j < nr; j++) acc[j] = _mm512_setzero_ps();
    size_t kk = 0;
    for (; kk + LANES <= k; kk += LANES) {
        const __m512 xv = _mm512_loadu_ps(x + kk);
        UNROLL for (int j = 0; j < nr; j++)
            acc[j] = _mm512_fmadd_ps(xv, _mm512_loadu_ps(w + j * ldw + kk), acc[j]);
    }
    if (kk < k) {
        const __mmask16 m = V_MASK(k - kk);
        const __m512 xv = _mm512_maskz_loadu_ps(m, x + kk);
        UNROLL for (int j = 0; j < nr; j++)
            acc[j] = _mm512_fmadd_ps(xv, _mm512_maskz_loadu_ps(m, w + j * ldw + kk), acc[j]);
    }
    UNROLL for (int j = 0; j < nr; j++) y[j] = _mm512_reduce_add_ps(acc[j]);
}

void ortc_uk_dot_f32_avx512(size_t nr, size_t k, const float *x, const float *w, size_t ldw, float *y)
{
    assert(nr >= 1 && nr <= ORTC_DOT_ROWS);
    if (nr == ORTC_DOT_ROWS)
        dot_rows(8, k, x, w, ldw, y);
    else
        for (size_t j = 0; j < nr; j++) dot_rows(1, k, x, w + j * ldw, ldw, y + j);
}
