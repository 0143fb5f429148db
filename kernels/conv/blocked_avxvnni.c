/* Convolution of bytes over blocks of channels (blocked_uk.h) for AVX-VNNI: tiles of 6 pixels x 1 block, in
 * which vpdpbusd adds four products of u8 and s8 exactly. */
#include "blocked_uk.h"
#include "kernels/common/vector/vec.h"

#define UNROLL _Pragma("GCC unroll 32")
#define SPLITS 0

VFN vi32 dot(vi32 sum, vi32 x, vi32 w)
{
    return (vi32)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)x, (__m256i)w);
}

#include "blocked_bytes.inc"
TILES(some, 2)

const ortc_blocked_bytes ortc_blocked_bytes_avxvnni = {dense, some, stem, SPLITS, NULL, NULL, 1, move};
