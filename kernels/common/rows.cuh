/* kernels/common/rows.cuh: what kernels over rows share on a GPU: elements in f32, neighbours at once, and
 * reductions in a warp and in a block whose order is always the same.
 */
#ifndef ORTC_KERNELS_ROWS_CUH
#define ORTC_KERNELS_ROWS_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <string.h>

#include "kernels/common/cuda.cuh"

__device__ inline float ortc_cu_f32(float v) { return v; }
__device__ inline float ortc_cu_f32(__half v) { return __half2float(v); }
__device__ inline float ortc_cu_f32(__nv_bfloat16 v) { return __bfloat162float(v); }
template <typename E> __device__ inline E ortc_cu_of_f32(float v);
template <> __device__ inline float ortc_cu_of_f32<float>(float v) { return v; }
template <> __device__ inline __half ortc_cu_of_f32<__half>(float v) { return __float2half_rn(v); }
template <> __device__ inline __nv_bfloat16 ortc_cu_of_f32<__nv_bfloat16>(float v)
{
    return __float2bfloat16_rn(v);
}

/* Neighbours in 16 bytes. */
template <typename E> struct ortc_cu_pack {
    static constexpr int WIDTH = 16 / (int)sizeof(E);
    E at[WIDTH];
    static __device__ inline ortc_cu_pack load(const E *from)
    {
        ortc_cu_pack p;
        const uint4 w = *(const uint4 *)from;
        memcpy(&p, &w, 16);
        return p;
    }
    /* What nobody reads again. */
    static __device__ inline ortc_cu_pack load_once(const E *from)
    {
        ortc_cu_pack p;
#ifdef __CUDA_ARCH__
        const uint4 w = __ldcs((const uint4 *)from);
#else
        const uint4 w = *(const uint4 *)from;
#endif
        memcpy(&p, &w, 16);
        return p;
    }
    __device__ inline void store(E *to) const
    {
        uint4 w;
        memcpy(&w, this, 16);
        *(uint4 *)to = w;
    }
};

/* e to the power of x <= 0, for sums whose result is of E: of f32 within 2 units in the last place, for 16
 * bits within 2^-16 of it. */
template <typename E> __device__ inline float ortc_cu_exp(float x)
{
#if defined(__CUDA_ARCH__)
    if constexpr (sizeof(E) == 2) {
        float y;
        asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * 1.44269504f));
        return y;
    }
#endif
    return expf(x);
}

struct ortc_cu_sum {
    static __device__ inline float join(float a, float b) { return a + b; }
};
/* A NaN stays. */
struct ortc_cu_max {
    static __device__ inline float join(float a, float b) { return a > b || a != a ? a : b; }
};
struct ortc_cu_min {
    static __device__ inline float join(float a, float b) { return a < b || a != a ? a : b; }
};

template <typename How> __device__ inline float ortc_cu_warp(float v)
{
#pragma unroll
    for (int m = 16; m > 0; m >>= 1) v = How::join(v, __shfl_xor_sync(0xffffffffu, v, m));
    return v;
}

/* Of all threads of a block of whole warps, to all of them; `neutral` is what changes nothing. */
template <typename How> __device__ inline float ortc_cu_block(float v, float neutral, float *shared /* 32 */)
{
    const int warp = threadIdx.x / 32, lane = threadIdx.x % 32, warps = blockDim.x / 32;
    v = ortc_cu_warp<How>(v);
    if (warps == 1) return v;
    __syncthreads(); /* what was read of an earlier turn */
    if (lane == 0) shared[warp] = v;
    __syncthreads();
    return ortc_cu_warp<How>(lane < warps ? shared[lane] : neutral);
}

#endif
