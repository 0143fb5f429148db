/* Micro-kernels of s32 sums for AVX-VNNI, the 256-bit form of vpdpbusd of processors without AVX-512. */
#define TILE_MR 6
#define TILE_NV 2
#include "product_int_tile.inc"

#define ROWS(X, f, v) X(f, 1, v) X(f, 2, v) X(f, 3, v) X(f, 4, v) X(f, 5, v) X(f, 6, v)

static inline __attribute__((always_inline)) vi32 u8_s8(vi32 sum, vi32 a, vi32 b)
{
    return (vi32)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)a, (__m256i)b);
}
static inline __attribute__((always_inline)) vi32 s8_u8(vi32 sum, vi32 a, vi32 b)
{
    return (vi32)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)b, (__m256i)a);
}
INT_LINE_PLAIN(ortc_uk_product_u8_s8_6x16_avxvnni, u8_s8)
INT_LINE_PLAIN(ortc_uk_product_s8_u8_6x16_avxvnni, s8_u8)
