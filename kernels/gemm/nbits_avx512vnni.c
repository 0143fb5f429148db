/* Tiles of weights of few bits times rounded rows (nbits_tile.inc) by vpdpbusd. */
#include "nbits.h"

#include "kernels/common/vector/vec.h"

static inline __attribute__((always_inline)) vi32 bytes_of(vi32 sum, vi32 w, vi32 x)
{
    return (vi32)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, (__m512i)x);
}
#define NBITS_TILE void ortc_nbits_tile_avx512vnni
#define NBITS_BYTES bytes_of
#define NBITS_HALVES(sum, low, x, high, y) bytes_of(bytes_of(sum, low, x), high, y)
#include "nbits_tile.inc"
