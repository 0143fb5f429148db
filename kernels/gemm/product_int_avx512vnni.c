/* Micro-kernels of s32 sums for AVX-512 VNNI: vpdpbusd adds four products of u8 and s8 exactly (the form that
 * saturates, vpdpbusds, is not used). Whichever of the two types A has is broadcast. */
#define TILE_MR 14
#define TILE_NV 2
#include "product_int_tile.inc"

/* clang-format off */
#define ROWS(X, f, v) \
    X(f, 1, v) X(f, 2, v) X(f, 3, v) X(f, 4, v) X(f, 5, v) X(f, 6, v) X(f, 7, v) X(f, 8, v) X(f, 9, v) \
    X(f, 10, v) X(f, 11, v) X(f, 12, v) X(f, 13, v) X(f, 14, v)
/* clang-format on */

static inline __attribute__((always_inline)) vi32 u8_s8(vi32 sum, vi32 a, vi32 b)
{
    return (vi32)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)a, (__m512i)b);
}
static inline __attribute__((always_inline)) vi32 s8_u8(vi32 sum, vi32 a, vi32 b)
{
    return (vi32)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)b, (__m512i)a);
}
INT_LINE_PLAIN(ortc_uk_product_u8_s8_14x32_avx512vnni, u8_s8)
INT_LINE_PLAIN(ortc_uk_product_s8_u8_14x32_avx512vnni, s8_u8)
