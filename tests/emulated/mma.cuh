/* tests/emulated/mma.cuh: kernels/gemm/mma.cuh in plain C++: what the instructions do, by the tables of the
 * PTX manual. */
#ifndef ORTC_KERNELS_GEMM_MMA_INSTRUCTIONS_CUH
#define ORTC_KERNELS_GEMM_MMA_INSTRUCTIONS_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdio.h>
#include <stdlib.h>

static inline __half2 __hfma2(__half2 a, __half2 b, __half2 c)
{
    const float2 x = __half22float2(a), y = __half22float2(b), z = __half22float2(c);
    return __floats2half2_rn(fmaf(x.x, y.x, z.x), fmaf(x.y, y.y, z.y)); /* right where the sum fits an f32 */
}
static inline __nv_bfloat162 __hfma2(__nv_bfloat162, __nv_bfloat162, __nv_bfloat162) { abort(); }

namespace ortc_gemm {

static inline uint32_t shared_address(const void *p)
{
    return (uint32_t)((const unsigned char *)p - emulated_shared);
}
static inline unsigned char *emulated_address(uint32_t a)
{
    if (a % 16) {
        fprintf(stderr, "address %u in shared memory is not aligned\n", a);
        abort();
    }
    return emulated_shared + (int32_t)a;
}

static inline void copy16(uint32_t to, const void *from, int bytes)
{
    if (bytes < 0 || bytes > 16 || (uintptr_t)from % 16) abort();
    memset(emulated_address(to), 0, 16);
    memcpy(emulated_address(to), from, (size_t)bytes);
}
static inline void copies_commit() {}
static inline uint32_t masked(uint32_t x, uint32_t mask, uint32_t bits) { return (x & mask) | bits; }
template <int N> static inline void copies_wait() {}

static inline void emulated_load(uint32_t (&r)[4], uint32_t address, bool transposed)
{
    const char *all = emulated_gather(&address, sizeof address);
    const unsigned lane = threadIdx.x % 32;
    uint32_t rows[32];
    for (int i = 0; i < 32; i++) memcpy(&rows[i], all + i * EMULATED_BOX, sizeof rows[i]);
    for (int m = 0; m < 4; m++) {
        uint16_t e[2];
        for (int i = 0; i < 2; i++) {
            const unsigned row = transposed ? lane % 4 * 2 + i : lane / 4,
                           col = transposed ? lane / 4 : lane % 4 * 2 + i;
            memcpy(&e[i], emulated_address(rows[m * 8 + row]) + col * 2, 2);
        }
        r[m] = e[0] | (uint32_t)e[1] << 16;
    }
    __syncwarp();
}
static inline void load_matrices(uint32_t (&r)[4], uint32_t address) { emulated_load(r, address, false); }
static inline void load_matrices_transposed(uint32_t (&r)[4], uint32_t address)
{
    emulated_load(r, address, true);
}

static inline float emulated_float(__half x) { return __half2float(x); }
static inline float emulated_float(__nv_bfloat16 x) { return __bfloat162float(x); }

template <typename T>
static inline void multiply(float (&d)[4], const uint32_t (&a)[4], uint32_t b0, uint32_t b1)
{
    const uint32_t mine[6] = {a[0], a[1], a[2], a[3], b0, b1};
    const char *all = emulated_gather(mine, sizeof mine);
    const unsigned lane = threadIdx.x % 32;
    auto element = [&](unsigned l, unsigned reg, unsigned half) {
        T x;
        memcpy(&x, all + l * EMULATED_BOX + reg * 4 + half * 2, 2);
        return emulated_float(x);
    };
    for (int i = 0; i < 4; i++) {
        const unsigned row = lane / 4 + (i >= 2 ? 8 : 0), col = lane % 4 * 2 + i % 2;
        float sum = d[i];
        for (unsigned k = 0; k < 16; k++)
            sum += element(row % 8 * 4 + k % 8 / 2, (row >= 8) + k / 8 * 2, k % 2) *
                   element(col * 4 + k % 8 / 2, 4 + k / 8, k % 2);
        d[i] = sum;
    }
    __syncwarp();
}

static inline float power_of_2(float x) { return exp2f(x); }

} // namespace ortc_gemm

#endif
