/* Convolution of bytes over blocks of channels (blocked_uk.h) for AVX-512 VNNI: the tiles of blocked_vec.c,
 * 14 pixels x 2 blocks, in which vpdpbusd adds four products of u8 and s8 exactly. */
#include "blocked_uk.h"
#include "kernels/common/vector/vec.h"

#define UNROLL _Pragma("GCC unroll 32")
#define SPLITS 0

VFN vi32 dot(vi32 sum, vi32 x, vi32 w)
{
    return (vi32)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)x, (__m512i)w);
}

#include "blocked_bytes.inc"
TILES(some, 2)

const ortc_blocked_bytes ortc_blocked_bytes_avx512vnni = {dense, some, stem, SPLITS, NULL, NULL, 1, move};
