/* Depthwise windows of f16. */
#define NAME ortc_blocked_halves_avx512
#include <immintrin.h>

#include "blocked_uk.h"
#include "kernels/common/vector/vec.h"

#define UNROLL _Pragma("GCC unroll 32")
enum { BLOCK = ORTC_BLOCK, SLIDE = 14 };

VFN vf32 widened(const uint16_t *x) { return v_load_f16(x, V_LANES); }

VFN void store(uint16_t *y, vf32 a, vf32 b, int both)
{
    v_store_f16(y, a, V_LANES);
    if (both) v_store_f16(y + BLOCK, b, V_LANES);
}

#include "depthwise_halves.inc"
