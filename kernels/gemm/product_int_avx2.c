/* Micro-kernel of s32 sums for AVX2: bytes are packed as 16 bits, whose products vpmaddwd adds in pairs
 * exactly. vpmaddubsw, on bytes, saturates at 16 bits; the ways around that (signs moved by vpsignb, then
 * vpmaddwd with ones) take as many instructions for a product, and weights of -128 besides. */
#define TILE_MR 6
#define TILE_NV 2
#include "product_int_tile.inc"

#define ROWS(X, f, v) X(f, 1, v) X(f, 2, v) X(f, 3, v) X(f, 4, v) X(f, 5, v) X(f, 6, v)

static inline __attribute__((always_inline)) vi32 pairs(vi32 sum, vi32 a, vi32 b)
{
    return sum + (vi32)_mm256_madd_epi16((__m256i)a, (__m256i)b);
}
INT_LINE(ortc_uk_product_s16_s16_6x16_avx2, pairs)
