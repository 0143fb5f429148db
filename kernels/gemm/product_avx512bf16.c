/* Micro-kernel of f32 sums for AVX-512 BF16: vdpbf16ps adds the products of two pairs of bf16, each by a
 * fused multiply-add (the odd element's first); it flushes denormals. Twice the products of f32's FMA an
 * instruction, at its rate on Zen 4 and 5. The body is product_tile.inc, of which an element is a pair. */
#include "product_uk.h"

#include <assert.h>

#include "kernels/common/vector/tile.h"

static inline __attribute__((always_inline)) __m512 tile_b(const int type, const void *p)
{
    (void)type;
    return _mm512_loadu_ps(p);
}
static inline __attribute__((always_inline)) __m512 tile_b_first(const int type, const void *p, size_t n)
{
    (void)type;
    return _mm512_maskz_loadu_ps(V_MASK(n), p);
}

#define TILE_MR 14
#define TILE_NV 2
#define TILE_DOT(a, b, sum) \
    _mm512_dpbf16_ps(sum, (__m512bh)_mm512_castps_si512(a), (__m512bh)_mm512_castps_si512(b))
#include "product_tile.inc"

/* clang-format off */
#define ROWS(X, T, v) \
    X(T, 1, v) X(T, 2, v) X(T, 3, v) X(T, 4, v) X(T, 5, v) X(T, 6, v) X(T, 7, v) X(T, 8, v) X(T, 9, v) \
    X(T, 10, v) X(T, 11, v) X(T, 12, v) X(T, 13, v) X(T, 14, v)
/* clang-format on */
TILE_LINE(f32, ortc_uk_product_bf16_bf16_14x32_avx512bf16)
