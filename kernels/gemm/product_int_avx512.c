/* Micro-kernel of s32 sums for AVX-512 without VNNI: bytes are packed as 16 bits, whose products vpmaddwd
 * adds in pairs exactly. (vpmaddubsw, on bytes, saturates at 16 bits.) */
#define TILE_MR 14
#define TILE_NV 2
#include "product_int_tile.inc"

/* clang-format off */
#define ROWS(X, f, v) \
    X(f, 1, v) X(f, 2, v) X(f, 3, v) X(f, 4, v) X(f, 5, v) X(f, 6, v) X(f, 7, v) X(f, 8, v) X(f, 9, v) \
    X(f, 10, v) X(f, 11, v) X(f, 12, v) X(f, 13, v) X(f, 14, v)
/* clang-format on */

static inline __attribute__((always_inline)) vi32 pairs(vi32 sum, vi32 a, vi32 b)
{
    return sum + (vi32)_mm512_madd_epi16((__m512i)a, (__m512i)b);
}
INT_LINE(ortc_uk_product_s16_s16_14x32_avx512, pairs)
