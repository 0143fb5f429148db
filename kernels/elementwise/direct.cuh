/* kernels/elementwise/direct.cuh: the few programs that models are full of, compiled: one function of a
 * tensor, or of a tensor and another of its shape, a repeated row or a number. f32, f16 and bf16 at good
 * addresses, all of one type.
 *
 * Nothing is decided per element: a thread takes its packs of 16 bytes, all loads before the first store, and
 * is done.
 */
#ifndef ORTC_KERNELS_ELEMENTWISE_DIRECT_CUH
#define ORTC_KERNELS_ELEMENTWISE_DIRECT_CUH

#include "kernels/common/approximate.cuh"
#include "kernels/common/rows.cuh"
#include "kernels/elementwise/direct_cuda.h"
#include "kernels/elementwise/interpret.cuh"

namespace {

constexpr int PACKS = 2; /* of each input, for a thread */

enum { NOTHING, NUMBER, SAME, ROW };

/* What is bound by instructions, not by memory, with all digits of f32; 16 bits need fewer. */
template <int OP> __device__ inline float for_16_bits(float x)
{
    switch (OP) {
    case ORTC_CU_GELU: return x * fast_normal(x);
    case ORTC_CU_GELU_TANH: return fast_gelu_tanh(x);
    case ORTC_CU_SIGMOID: return fast_sigmoid(x);
    case ORTC_CU_TANH: return fast_tanh(x);
    default: return x * fast_sigmoid(x); /* ORTC_CU_SWISH */
    }
}
template <int OP>
constexpr bool has_16_bits = OP == ORTC_CU_GELU || OP == ORTC_CU_GELU_TANH || OP == ORTC_CU_SIGMOID ||
                             OP == ORTC_CU_TANH || OP == ORTC_CU_SWISH;

template <typename E, int OP, int KIND>
__global__ void __launch_bounds__(256) direct(const __grid_constant__ ortc_cu_direct d)
{
    constexpr int W = ortc_cu_pack<E>::WIDTH;
    const int64_t first = (int64_t)blockIdx.x * (256 * PACKS) + threadIdx.x;
    ortc_cu_pack<E> x[PACKS], a[PACKS];
#pragma unroll
    for (int u = 0; u < PACKS; u++) {
        const int64_t at = first + u * 256;
        if (at >= d.packs) continue;
        x[u] = ortc_cu_pack<E>::load((const E *)d.x + at * W);
        if (KIND == SAME) a[u] = ortc_cu_pack<E>::load((const E *)d.a + at * W);
        if (KIND == ROW) {
            const uint32_t i = (uint32_t)at, row = (__umulhi(i, d.row.multiplier) + i) >> d.row.shift;
            a[u] = ortc_cu_pack<E>::load((const E *)d.a + (int64_t)(i - row * d.row.divisor) * W);
        }
    }
#pragma unroll
    for (int u = 0; u < PACKS; u++) {
        const int64_t at = first + u * 256;
        float v[W], b[W];
        uint32_t mask = 0;
        if (at >= d.packs) continue;
#pragma unroll
        for (int k = 0; k < W; k++) {
            v[k] = ortc_cu_f32(x[u].at[k]);
            b[k] = KIND == SAME || KIND == ROW ? ortc_cu_f32(a[u].at[k]) : d.number;
        }
        if constexpr (sizeof(E) == 2 && has_16_bits<OP>) {
#pragma unroll
            for (int k = 0; k < W; k++) v[k] = for_16_bits<OP>(v[k]);
        } else {
            step(OP, v, b, mask);
        }
#pragma unroll
        for (int k = 0; k < W; k++) x[u].at[k] = ortc_cu_of_f32<E>(v[k]);
        x[u].store((E *)d.y + at * W);
    }
}

template <typename E, int OP, int KIND> int go(const ortc_cu_direct *d, cudaStream_t stream)
{
    direct<E, OP, KIND><<<(unsigned)((d->packs + 256 * PACKS - 1) / (256 * PACKS)), 256, 0, stream>>>(*d);
    return cudaGetLastError();
}

} // namespace

#endif
