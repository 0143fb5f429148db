/* Weights of few bits times rounded rows (nbits_bytes.inc) by vpdpbusd. */
#include "nbits.h"

#include "kernels/common/vector/vec.h"

static inline __attribute__((always_inline)) vi32 bytes_of(vi32 sum, vi32 w, vi32 x)
{
    return (vi32)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, (__m512i)x);
}
#define NBITS_NAME const ortc_nbits_bytes ortc_nbits_bytes_avx512vnni
#define NBITS_BYTES bytes_of
#define NBITS_HALVES(sum, low, x, high, y) bytes_of(bytes_of(sum, low, x), high, y)
#include "nbits_bytes.inc"
