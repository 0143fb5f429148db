/* tests/emulated/emulated.h: what a .cu file of ours sees where the host plays the GPU (translate.py puts it
 * first).
 *
 * Threads of a block are fibers on one thread of the host: they run until they meet a barrier. Shared memory
 * is one block's, for blocks come one after the other. Types, vectors and half floats are those of CUDA's own
 * headers, which any C++ compiler reads. mma.cuh has what tensor cores do. What this cannot show: races
 * between barriers (the fibers' order is fixed), memory ordering, alignment of the device's own, speed.
 */
#ifndef ORTC_TESTS_EMULATED_H
#define ORTC_TESTS_EMULATED_H

#include <cuda_runtime.h>
#include <functional>
#include <math.h>
#include <stdint.h>
#include <string.h>

#ifndef __grid_constant__
#define __grid_constant__
#endif
#ifndef __launch_bounds__
#define __launch_bounds__(...)
#endif

struct emulated_index {
    unsigned x, y, z;
};
extern emulated_index emulated_thread, emulated_block, emulated_threads, emulated_blocks;
#define threadIdx emulated_thread
#define blockIdx emulated_block
#define blockDim emulated_threads
#define gridDim emulated_blocks

/* kernel<<<grid, block, shared, stream>>>(...) becomes emulated_launch(grid, block, shared, [=] {
 * kernel(...); }). */
void emulated_launch(dim3 grid, dim3 block, size_t shared, const std::function<void()> &kernel);
extern unsigned char emulated_shared[]; /* the dynamic part */

void __syncthreads();
void __syncwarp(unsigned mask = ~0u);
int emulated_lane();
/* Every lane of a warp lays `bytes`, 32 at most, into a box: the first lane's, the others' follow. They are
 * there until the next __syncwarp, which must come before the next gathering. */
const char *emulated_gather(const void *mine, size_t bytes);
enum { EMULATED_BOX = 32 };

template <typename T> inline T emulated_exchange(T v, int from)
{
    memcpy(&v, emulated_gather(&v, sizeof v) + (from & 31) * EMULATED_BOX, sizeof v);
    __syncwarp();
    return v;
}
template <typename T> inline T __shfl_xor_sync(unsigned, T v, int mask)
{
    return emulated_exchange(v, emulated_lane() ^ mask);
}
template <typename T> inline T __shfl_sync(unsigned, T v, int lane) { return emulated_exchange(v, lane); }
template <typename T> inline T __shfl_down_sync(unsigned, T v, int by)
{
    const int lane = emulated_lane();
    return emulated_exchange(v, lane + by < 32 ? lane + by : lane);
}
template <typename T> inline T __shfl_up_sync(unsigned, T v, int by)
{
    const int lane = emulated_lane();
    return emulated_exchange(v, lane - by >= 0 ? lane - by : lane);
}

inline uint32_t __umulhi(uint32_t a, uint32_t b) { return (uint32_t)((uint64_t)a * b >> 32); }
inline uint32_t atomicOr(uint32_t *p, uint32_t v)
{
    const uint32_t old = *p;
    *p |= v;
    return old;
}
inline float rsqrtf(float x) { return 1 / sqrtf(x); }
inline float __fdividef(float a, float b) { return a / b; }
inline float __int_as_float(int x)
{
    float f;
    memcpy(&f, &x, sizeof f);
    return f;
}
inline int __clz(int x) { return x ? __builtin_clz((unsigned)x) : 32; }
inline unsigned __byte_perm(unsigned x, unsigned y, unsigned selector)
{
    const uint64_t all = (uint64_t)y << 32 | x;
    unsigned to = 0;
    for (int i = 0; i < 4; i++) to |= (unsigned)(all >> (selector >> (4 * i) & 7) * 8 & 0xff) << (8 * i);
    return to;
}
template <typename T> inline T __ldg(const T *p) { return *p; }
template <typename T> inline T __ldcs(const T *p) { return *p; }

template <typename... P> inline cudaError_t cudaFuncSetAttribute(void (*)(P...), cudaFuncAttribute, int)
{
    return cudaSuccess;
}

#endif
