/* tests/cuda_host/cuda_runtime.h: enough of CUDA's runtime to run kernels on the host, for tests of their
 * arithmetic without a GPU.
 *
 * It stands in for the real header while emulate.py's copies of .cu files are compiled as C++. A block's
 * threads are fibers of one host thread, blocks run one after the other; a barrier, or an exchange within a
 * warp, goes round the fibers until all have arrived. What it cannot show: races between barriers (the
 * fibers' order is fixed), memory ordering, alignment faults of the device (those are checked here), speed.
 */
#ifndef ORTC_TESTS_CUDA_RUNTIME_H
#define ORTC_TESTS_CUDA_RUNTIME_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <functional>

#include <vector_types.h>
#include <vector_functions.h>
#include <driver_types.h>

#undef __global__
#undef __device__
#undef __host__
#undef __shared__
#undef __launch_bounds__
#undef __forceinline__
#undef __grid_constant__
#undef __align__
#define __global__
#define __device__
#define __host__
#define __shared__ static
#define __launch_bounds__(...)
#define __forceinline__ inline
#define __grid_constant__
#define __align__(n) __attribute__((aligned(n)))

struct emulated_index {
    unsigned x, y, z;
};
extern emulated_index threadIdx, blockIdx, blockDim, gridDim;
extern char emulated_shared[];

void emulate(unsigned blocks, unsigned threads, const std::function<void()> &thread);
static inline void emulate(dim3 blocks, dim3 threads, const std::function<void()> &thread)
{
    emulate(blocks.x, threads.x, thread);
}
void __syncthreads();
void __syncwarp(unsigned = ~0u);
/* Every lane of the warp gives 16 bytes; all may read all until the next exchange. */
const void *emulated_exchange(const void *mine, size_t bytes);
#define EMULATED_SLOT 64 /* bytes of a lane */

template <typename T> T __shfl_xor_sync(unsigned, T x, int mask)
{
    const char *all = (const char *)emulated_exchange(&x, sizeof x);
    T y;
    memcpy(&y, all + (threadIdx.x % 32 ^ mask) * EMULATED_SLOT, sizeof y);
    return y;
}
template <typename T> T __ldg(const T *p) { return *p; }
template <typename T> T __ldcs(const T *p) { return *p; }
static inline float __int_as_float(int x)
{
    float f;
    memcpy(&f, &x, sizeof f);
    return f;
}
static inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
static inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector)
{
    const uint64_t all = (uint64_t)y << 32 | x;
    unsigned to = 0;
    for (int i = 0; i < 4; i++) to |= (unsigned)(all >> (selector >> (4 * i) & 7) * 8 & 0xff) << (8 * i);
    return to;
}
static inline unsigned atomicOr(uint32_t *p, unsigned x)
{
    unsigned old = *p;
    *p |= x;
    return old;
}
static inline float __fdividef(float a, float b) { return a / b; }

static inline cudaError_t emulated_last_error() { return cudaSuccess; }
#define cudaGetLastError emulated_last_error
template <typename K> cudaError_t cudaFuncSetAttribute(K, cudaFuncAttribute, int) { return cudaSuccess; }

#endif
