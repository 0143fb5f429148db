/* f32 to bf16 by the instruction that every AMX comes with: rounded to the nearest, denormals become 0. For
 * bodies over vectors (kernels/common/vector/vec.h); without AVX-512, in tests, as the vector layer does. */
#ifndef ORTC_KERNELS_GEMM_AMX_BF16_H
#define ORTC_KERNELS_GEMM_AMX_BF16_H

#include "kernels/common/vector/vec.h"

VFN void amx_store_bf16(uint16_t *y, vf32 v, size_t n)
{
#ifdef __AVX512F__
    if (n == 16) {
        __m256i half;
        __asm__("vcvtneps2bf16 %1, %0" : "=v"(half) : "v"(v));
        _mm256_storeu_si256((__m256i *)(void *)y, half);
        return;
    }
#endif
    v_store_bf16(y, v, n);
}

/* Two vectors, one behind the other. */
VFN void amx_store_two_bf16(uint16_t *y, vf32 low, vf32 high)
{
#ifdef __AVX512F__
    __m512i both;
    __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(both) : "v"(high), "v"(low));
    _mm512_storeu_si512(y, both);
#else
    v_store_bf16(y, low, V_LANES);
    v_store_bf16(y + V_LANES, high, V_LANES);
#endif
}

#endif
