/* kernels/common/approximate.cuh: functions of f32 for results of 16 bits, on a GPU: within some units of
 * f32's last place, more than such a result shows; no slow paths, no branches. What is smaller than f32's
 * normal numbers is 0.
 */
#ifndef ORTC_KERNELS_APPROXIMATE_CUH
#define ORTC_KERNELS_APPROXIMATE_CUH

#include <cuda_runtime.h>
#include <math.h>

__device__ __forceinline__ float fast_exp2(float x)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return exp2f(x);
#endif
}
__device__ __forceinline__ float fast_inverse(float x)
{
#ifdef __CUDA_ARCH__
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
#else
    return 1.0f / x;
#endif
}
__device__ __forceinline__ float fast_sigmoid(float x)
{
    return fast_inverse(1.0f + fast_exp2(-1.44269504f * x));
}
__device__ __forceinline__ float fast_tanh(float x)
{
    const float square = x * x, small = x * (1.0f - square * (0.33333333f - square * 0.13333333f));
    return fabsf(x) < 0.1f ? small : 1.0f - 2.0f * fast_sigmoid(-2.0f * x);
}
/* The normal distribution's function, below 0 as a power of 2 whose exponent is a polynomial (fitted by
 * linear programming from -6 to 0): of x times it, no result is off by more than 1e-4 of itself and 2e-9, a
 * quarter of what rounding to f16 does. One exponential and no inverse: a product's end is bound by
 * instructions, and so is Gelu by itself. */
__device__ __forceinline__ float fast_normal(float x)
{
    const float z = fabsf(x);
    float p = -3.048561545e-4f;
    p = fmaf(p, z, 5.672623788e-3f);
    p = fmaf(p, z, -4.770869859e-2f);
    p = fmaf(p, z, -4.648470914e-1f);
    p = fmaf(p, z, -1.148833562f);
    p = fmaf(p, z, -1.000145853f);
    const float below = fast_exp2(p);
    return x < 0.0f ? below : 1.0f - below;
}
/* x times the sigmoid of twice what Gelu's other form takes tanh of. */
__device__ __forceinline__ float fast_gelu_tanh(float x)
{
    return x * fast_sigmoid(1.59576912f * (x + 0.044715f * x * x * x));
}

#endif
