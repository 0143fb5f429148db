/* Weights of few bits times rounded rows (nbits_bytes.inc) by vpdpbusd, on registers of 256 bits. */
#include "nbits.h"

#include "kernels/common/vector/vec.h"

static inline __attribute__((always_inline)) vi32 bytes_of(vi32 sum, vi32 w, vi32 x)
{
    return (vi32)_mm256_dpbusd_avx_epi32((__m256i)sum, (__m256i)w, (__m256i)x);
}
#define NBITS_NAME const ortc_nbits_bytes ortc_nbits_bytes_avxvnni
#define NBITS_BYTES bytes_of
#define NBITS_HALVES(sum, low, x, high, y) bytes_of(bytes_of(sum, low, x), high, y)
#include "nbits_bytes.inc"
