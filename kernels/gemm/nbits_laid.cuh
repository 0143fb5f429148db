/* kernels/gemm/nbits_laid.cuh: what products of one row with weights of 4 bits share (nbits_row.cu, which
 * says how they go; nbits_ring.cu). */
#ifndef ORTC_KERNELS_GEMM_NBITS_LAID_CUH
#define ORTC_KERNELS_GEMM_NBITS_LAID_CUH

#include "kernels/gemm/cuda_nbits.h"
#include "kernels/gemm/gemm_tile.cuh"
#include "kernels/gemm/mma.cuh"
#include "kernels/gemm/nbits_pair.cuh"

namespace ortc_nbits {

enum { PIECE = 32, STEP = 8 * PIECE, ROWS_OF_TILE = 16 };

/* The eight integers of a word, less the zero point: pairs k and k + 4. Those of f16 that lie in upper halves
 * of bytes stay 16 times as much: pairs 1 and 3. `less` is what to take off, in both halves. */
template <typename T>
__device__ __forceinline__ void integers_of(uint32_t word, uint32_t less, uint32_t less16, uint32_t (&to)[4])
{
    constexpr bool upper = Pair<T>::base >= 256;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const bool high = upper && i % 2;
        const uint32_t w = word >> (upper ? i / 2 * 8 : i * 4),
                       q = ortc_gemm::masked(w, high ? 0x00f000f0 : 0x000f000f, Pair<T>::magic);
        to[i] = bits_of<T>(__hsub2(pair_of<T>(q), pair_of<T>(high ? less16 : less)));
    }
}

/* Pieces of two rows times the 32 elements of a at `laid`, to the sums of what lies in lower and in upper
 * halves of bytes. */
template <typename T>
__device__ __forceinline__ void multiply_pieces(const uint4 (&q)[2], const uint32_t (&less)[2],
                                                const uint32_t (&less16)[2], const uint4 *laid,
                                                float (&low)[4], float (&high)[4])
{
#pragma unroll
    for (int w = 0; w < 4; w++) {
        const uint4 b = laid[w];
        uint32_t x[2][4];
#pragma unroll
        for (int i = 0; i < 2; i++)
            integers_of<T>(w == 0   ? q[i].x
                           : w == 1 ? q[i].y
                           : w == 2 ? q[i].z
                                    : q[i].w,
                           less[i], less16[i], x[i]);
        const uint32_t a[2][4] = {{x[0][0], x[1][0], x[0][2], x[1][2]}, {x[0][1], x[1][1], x[0][3], x[1][3]}};
        ortc_gemm::multiply<T>(low, a[0], b.x, b.y);
        ortc_gemm::multiply<T>(high, a[1], b.z, b.w);
    }
}

/* a's row, `count` times eight elements, in the order in which they are multiplied; zeros behind k. */
template <int THREADS> __device__ __forceinline__ void lay_out(const ortc_cu_nbits &g, uint4 *laid, int count)
{
    constexpr int AT_ONCE = 4;
    for (int begin = (int)threadIdx.x; begin < count; begin += AT_ONCE * THREADS) {
        uint4 x[AT_ONCE];
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int i = begin + u * THREADS;
            x[u] = make_uint4(0, 0, 0, 0);
            if (i * 8 < (int)g.k) x[u] = ((const uint4 *)g.a)[i];
        }
#pragma unroll
        for (int u = 0; u < AT_ONCE; u++) {
            const int i = begin + u * THREADS;
            if (i < count)
                laid[i] = make_uint4(__byte_perm(x[u].x, x[u].z, 0x5410), __byte_perm(x[u].y, x[u].w, 0x5410),
                                     __byte_perm(x[u].x, x[u].z, 0x7632),
                                     __byte_perm(x[u].y, x[u].w, 0x7632));
        }
    }
}

/* Rows of a tile, from what each warp has of them: added up in one order. */
template <typename T, int WARPS>
__device__ __forceinline__ void finish_rows(const ortc_cu_nbits &g, int tile,
                                            const float (&partial)[WARPS][ROWS_OF_TILE])
{
    const int64_t n = (int64_t)tile * ROWS_OF_TILE + threadIdx.x;
    if (threadIdx.x >= ROWS_OF_TILE || n >= g.n) return;
    float x = 0.0f;
#pragma unroll
    for (int v = 0; v < WARPS; v++) x += partial[v][threadIdx.x];
    if (g.bias) x += ortc_gemm::to_float(((const T *)g.bias)[n]);
    ((T *)g.y)[n] = ortc_gemm::from_float<T>(x);
}

} // namespace ortc_nbits

#endif
