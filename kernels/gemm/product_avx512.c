/* Micro-kernels of f32 sums for AVX-512 (F, BW, DQ, VL), B of f32, f16 or bf16: the 14x32 tile, 28 sums in
 * registers, two loads of B and 14 broadcasts of A for 28 FMAs; and packing. Why 14x32: 28 + 2 + 1 of 32
 * registers, and the fewest loads for an FMA. Zen 5, K = 256 from L1: 0.94 to 0.98 of the peak. The body is
 * product_tile.inc.
 */
#include "product_uk.h"

#include <assert.h>

#include "kernels/common/vector/tile.h"

static inline __attribute__((always_inline)) __m512 tile_b(const int type, const void *p)
{
    if (type == ORTC_F16) return _mm512_cvtph_ps(_mm256_loadu_si256(p));
    if (type == ORTC_BF16)
        return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(p)), 16));
    return _mm512_loadu_ps(p);
}
static inline __attribute__((always_inline)) __m512 tile_b_first(const int type, const void *p, size_t n)
{
    const __mmask16 m = V_MASK(n);
    if (type == ORTC_F16) return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(m, p));
    if (type == ORTC_BF16)
        return _mm512_castsi512_ps(
            _mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(m, p)), 16));
    return _mm512_maskz_loadu_ps(m, p);
}

#define TILE_MR 14
#define TILE_NV 2
#define TILE_STEPS(type, mr, nv) ((type) == ORTC_F32 && (mr) >= 13 && (nv) == 2 ? 2 : 1)
#include "product_tile.inc"

/* clang-format off */
#define ROWS(X, T, v) \
    X(T, 1, v) X(T, 2, v) X(T, 3, v) X(T, 4, v) X(T, 5, v) X(T, 6, v) X(T, 7, v) X(T, 8, v) X(T, 9, v) \
    X(T, 10, v) X(T, 11, v) X(T, 12, v) X(T, 13, v) X(T, 14, v)
/* clang-format on */
TILE_LINE_PLAIN(f32, ortc_uk_product_f32_f32_14x32_avx512)
TILE_LINE_ROW(f16, ortc_uk_product_f32_f16_14x32_avx512)
TILE_LINE(bf16, ortc_uk_product_f32_bf16_14x32_avx512)

ortc_uk_pack_f32 ortc_uk_pack_rows_f32_avx512, ortc_uk_pack_transpose_f32_avx512;
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

/* One strip of at most 16 destination columns, 16 steps of k at a time. So many rows are more than the
 * hardware looks ahead in: those of the next strip are asked for. */
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
        UNROLL for (int i = 0; i < 16; i++) if ((size_t)i < have)
            __builtin_prefetch(src + ((size_t)i + have) * ld + kk, 0, 2);
        v_turn(r);
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
