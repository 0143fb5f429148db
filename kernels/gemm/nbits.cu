/* kernels/gemm/nbits.cu: weights of 4 and 8 bits that are unpacked on their way to the multiplier
 * (cuda_nbits.h).
 *
 *   mma     a block owns 16 rows of weights, which are the rows of tensor cores' tiles, the rows of a their
 *           columns; its warps stride over K, a thread reads 16 bytes of each of two rows. A sum does not
 *           mind the order of K, so that elements go where they are cheapest to unpack to: of 8 in a word,
 *           k and k + 4 lie 16 bits apart. An integer q below 2^10 (2^7) in the low bits of 1024 (128) is an
 *           f16 (a bf16) that is q more. Sums of warps meet in shared memory, in order.
 *   rows    a warp owns a row of weights, its lanes stride over words; f32 all the way
 *   unpack  a thread writes what is in a word
 */
#include "kernels/gemm/cuda_nbits.h"
#include "kernels/gemm/gemm_tile.cuh"
#include "kernels/gemm/mma.cuh"
#include "kernels/gemm/nbits_pair.cuh"

namespace ortc_nbits {

using ortc_gemm::from_float;
using ortc_gemm::to_float;

/* ---- One weight at a time ------------------------------------------------------------------------------ */

template <typename T, int BITS>
__device__ __forceinline__ float zero_of(const ortc_cu_nbits &g, int64_t row, int64_t block)
{
    if (g.real) return to_float(((const T *)g.zeros)[row * g.blocks + block]);
    if (!g.zeros) return (float)(1 << (BITS - 1));
    const uint8_t *z = (const uint8_t *)g.zeros + row * g.zero_bytes;
    return (float)(BITS == 8 ? z[block] : z[block / 2] >> (block % 2 * 4) & 15);
}

__device__ __forceinline__ uint32_t word_at(const uint8_t *p)
{
    if ((uint64_t)(uintptr_t)p % 4 == 0) return *(const uint32_t *)(const void *)p;
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* q as f32 is the low bits of 2^23. */
__device__ __forceinline__ float whole(uint32_t q)
{
    return __int_as_float((int)(0x4b000000u | q)) - 8388608.0f;
}

template <typename T, int BITS>
__global__ void __launch_bounds__(128) rows(const __grid_constant__ ortc_cu_nbits g)
{
    constexpr int each = 32 / BITS, most = ORTC_CU_NBITS_ROWS;
    const int lane = threadIdx.x % 32;
    const int64_t row = (int64_t)blockIdx.x * 4 + threadIdx.x / 32, words = g.row_bytes / 4;
    if (row >= g.n) return; /* the whole warp */
    const uint8_t *w = g.b + row * g.row_bytes;
    const T *a = (const T *)g.a;
    float sum[most];
#pragma unroll
    for (int r = 0; r < most; r++) sum[r] = 0.0f;
    for (int64_t at = lane; at < words; at += 32) {
        const int64_t k = at * each, block = k / g.block;
        const uint32_t word = word_at(w + 4 * at);
        const float scale = to_float(((const T *)g.scales)[row * g.blocks + block]),
                    zero = zero_of<T, BITS>(g, row, block);
        float x[each];
#pragma unroll
        for (int i = 0; i < each; i++) x[i] = (whole(word >> (i * BITS) & ((1u << BITS) - 1)) - zero) * scale;
#pragma unroll
        for (int r = 0; r < most; r++)
            if (r < g.m)
#pragma unroll
                for (int i = 0; i < each; i++)
                    if (k + i < g.k) sum[r] = fmaf(to_float(a[r * g.k + k + i]), x[i], sum[r]);
    }
    __syncwarp();
#pragma unroll
    for (int r = 0; r < most; r++)
        if (r < g.m) {
#pragma unroll
            for (int s = 16; s; s /= 2) sum[r] += __shfl_xor_sync(~0u, sum[r], s);
            const float bias = g.bias ? to_float(((const T *)g.bias)[row]) : 0.0f;
            if (lane == r) ((T *)g.y)[r * g.n + row] = from_float<T>(sum[r] + bias);
        }
}

template <typename T, int BITS>
__global__ void __launch_bounds__(256)
    unpack(const __grid_constant__ ortc_cu_nbits g, int64_t first, int64_t count, T *to, int64_t pitch)
{
    constexpr int each = 32 / BITS;
    const int64_t words = g.row_bytes / 4, n = count * words;
    for (int64_t i = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; i < n;
         i += (int64_t)gridDim.x * blockDim.x) {
        const int64_t r = i / words, at = i - r * words, row = first + r, k = at * each, block = k / g.block;
        const uint32_t word = word_at(g.b + row * g.row_bytes + 4 * at);
        const float scale = to_float(((const T *)g.scales)[row * g.blocks + block]),
                    zero = zero_of<T, BITS>(g, row, block);
#pragma unroll
        for (int e = 0; e < each; e++)
            if (k + e < pitch)
                to[r * pitch + k + e] = from_float<T>(
                    k + e < g.k ? (whole(word >> (e * BITS) & ((1u << BITS) - 1)) - zero) * scale : 0.0f);
    }
}

/* ---- Two at a time, for tensor cores ------------------------------------------------------------------- */

template <typename T> __device__ __forceinline__ typename Pair<T>::type twice(T x)
{
    typename Pair<T>::type p;
    p.x = p.y = x;
    return p;
}

/* A block's zero point: an integer, or with REAL the bits of a T. */
template <typename T, int BITS, bool REAL>
__device__ __forceinline__ uint32_t zero_bits(const ortc_cu_nbits &g, int64_t row, int block)
{
    if (REAL) return ((const uint16_t *)g.zeros)[row * g.blocks + block];
    if (!g.zeros) return 1 << (BITS - 1);
    const uint8_t *z = (const uint8_t *)g.zeros + row * g.zero_bytes;
    return BITS == 8 ? z[block] : z[block / 2] >> (block % 2 * 4) & 15;
}

/* What turns q into weights: (q - zero) * scale. */
template <typename T> struct Steps {
    typedef typename Pair<T>::type pair;
    pair less, less16; /* base + zero, -(base / 16 + zero); with `real` zero is taken off apart */
    pair zero, scale;
};

template <typename T> __device__ __forceinline__ Steps<T> steps_of(T scale, uint32_t zero, bool real)
{
    const uint32_t both = real ? 0 : zero * 0x10001;
    T z = from_float<T>((float)zero);
    Steps<T> s;
    if (real) memcpy(&z, &zero, sizeof z);
    s.scale = twice<T>(scale);
    s.less = pair_of<T>(Pair<T>::magic + both);
    s.less16 = pair_of<T>(0xd400d400 + (both << 4)); /* of f16: -64 */
    s.zero = twice<T>(z);
    return s;
}

/* Eight of 4 bits: pair i is elements i and i + 4. Differences are exact; 0x2c00 is an f16, 1/16. */
template <typename T>
__device__ __forceinline__ void weights_of(uint32_t word, const Steps<T> &s, bool real, uint32_t (&to)[4])
{
    constexpr bool upper = Pair<T>::base >= 256; /* 4 bits at 16 times their value fit below it, too */
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const uint32_t w = word >> (upper ? i / 2 * 8 : i * 4), q = upper && i % 2
                                                                        ? (w & 0x00f000f0) | Pair<T>::magic
                                                                        : (w & 0x000f000f) | Pair<T>::magic;
        typename Pair<T>::type x = upper && i % 2 ? __hfma2(pair_of<T>(q), pair_of<T>(0x2c002c00), s.less16)
                                                  : __hsub2(pair_of<T>(q), s.less);
        if (real) x = __hsub2(x, s.zero);
        to[i] = bits_of<T>(__hmul2(x, s.scale));
    }
}

/* Four of 8 bits, two pairs. Those of bf16 go through f32: its 128 has no room for them. */
__device__ __forceinline__ void weights_of_bytes(uint32_t word, const Steps<__half> &s, bool real,
                                                 uint32_t (&to)[4])
{
#pragma unroll
    for (int i = 0; i < 2; i++) {
        const uint32_t two = word >> (16 * i);
        __half2 x = __hsub2(pair_of<__half>((two & 0xff) | (two & 0xff00) << 8 | Pair<__half>::magic),
                            s.less);
        if (real) x = __hsub2(x, s.zero);
        to[i] = bits_of<__half>(__hmul2(x, s.scale));
    }
}
__device__ __forceinline__ void weights_of_bytes(uint32_t word, const Steps<__nv_bfloat16> &s, bool,
                                                 uint32_t (&to)[4])
{
    const float zero = to_float(s.zero.x), scale = to_float(s.scale.x);
#pragma unroll
    for (int i = 0; i < 2; i++) {
        __nv_bfloat162 x;
        x.x = from_float<__nv_bfloat16>((whole(word >> (16 * i) & 0xff) - zero) * scale);
        x.y = from_float<__nv_bfloat16>((whole(word >> (16 * i + 8) & 0xff) - zero) * scale);
        to[i] = bits_of<__nv_bfloat16>(x);
    }
}

template <int N> struct Words;
template <> struct Words<4> {
    typedef uint4 type;
};
template <> struct Words<2> {
    typedef uint2 type;
};

/* N words of a row of a from element k on; zeros from `most` on, which is a multiple of 8. */
template <typename T, int N, bool FULL>
__device__ __forceinline__ void read_a(uint32_t (&x)[N], const T *row, int k, int most)
{
    typename Words<N>::type v = {};
    if (FULL || k < most) v = *(const typename Words<N>::type *)(const void *)(row + k);
    memcpy(x, &v, sizeof x);
}

/* A word of weights of 16 rows times what of a meets it: k and k + 4 are a pair, or k and k + 1. */
template <typename T>
__device__ __forceinline__ void multiply(float (&sum)[4], const uint32_t (&b)[2][4], const uint32_t (&x)[4])
{
#pragma unroll
    for (int p = 0; p < 2; p++)
        ortc_gemm::multiply<T>(sum, b[p], __byte_perm(x[p], x[p + 2], 0x5410),
                               __byte_perm(x[p], x[p + 2], 0x7632));
}
template <typename T>
__device__ __forceinline__ void multiply(float (&sum)[4], const uint32_t (&b)[2][4], const uint32_t (&x)[2])
{
    ortc_gemm::multiply<T>(sum, b[0], x[0], x[1]);
}

enum { OWN = 16 };

/* What a warp has at hand of its 16 rows. */
template <typename T, int TILES> struct Rows {
    const uint8_t *w[2];
    const T *a[TILES];
    int64_t row[2];
    float sum[TILES][4];
};

/* COUNT slabs of K, one behind the other. FULL: all of it is there. HALVES: 16 bytes of weights have two
 * scales, not one. */
template <typename T, int BITS, int TILES, bool HALVES, bool REAL, int COUNT, bool FULL>
__device__ __forceinline__ void slabs(const ortc_cu_nbits &g, Rows<T, TILES> &rows, int begin, int shift)
{
    constexpr int each = 128 / BITS, slab = 4 * each, groups = HALVES ? 2 : 1, words = BITS == 4 ? 4 : 2;
    const int k_end = (int)g.k, width = (int)g.blocks * g.block;
    uint4 q[COUNT][2];
    T scale[COUNT][2][groups];
    uint32_t zero[COUNT][2][groups];
#pragma unroll
    for (int u = 0; u < COUNT; u++)
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int k = begin + u * slab;
            q[u][i] = make_uint4(0, 0, 0, 0);
            if (FULL || k < width)
                q[u][i] = __ldcs((const uint4 *)(const void *)(rows.w[i] + k / (8 / BITS)));
#pragma unroll
            for (int h = 0; h < groups; h++) {
                const int at = k + h * 16, block = (FULL || at < width ? at : width - 1) >> shift;
                scale[u][i][h] = ((const T *)g.scales)[rows.row[i] * g.blocks + block];
                zero[u][i][h] = zero_bits<T, BITS, REAL>(g, rows.row[i], block);
            }
        }
    ortc_cu_previous(); /* weights of a model may come early, a may not */
#pragma unroll
    for (int u = 0; u < COUNT; u++) {
        Steps<T> steps[2];
        uint32_t x[TILES][4][words]; /* early, for they take as long as what is unpacked */
#pragma unroll
        for (int j = 0; j < TILES; j++)
#pragma unroll
            for (int c = 0; c < 4; c++)
                read_a<T, words, FULL>(x[j][c], rows.a[j], begin + u * slab + c * (each / 4), k_end);
#pragma unroll
        for (int c = 0; c < 4; c++) {
            uint32_t word, some[4], b[2][4]; /* b: of two products, BITS 4; of one, BITS 8 */
#pragma unroll
            for (int i = 0; i < 2; i++) {
                memcpy(&word, (const char *)&q[u][i] + 4 * c, 4);
                if (c * groups % 4 == 0)
                    steps[i] = steps_of<T>(scale[u][i][c * groups / 4], zero[u][i][c * groups / 4], REAL);
                if (BITS == 4)
                    weights_of<T>(word, steps[i], REAL, some);
                else
                    weights_of_bytes(word, steps[i], REAL, some);
#pragma unroll
                for (int p = 0; p < words; p++) b[p / 2][p % 2 * 2 + i] = some[p];
            }
#pragma unroll
            for (int j = 0; j < TILES; j++) multiply<T>(rows.sum[j], b, x[j][c]);
        }
    }
}

template <typename T, int BITS, int TILES, int WARPS, bool HALVES, bool REAL>
__global__ void __launch_bounds__(32 * WARPS, TILES == 1 ? 32 / WARPS : 1)
    mma(const __grid_constant__ ortc_cu_nbits g)
{
    constexpr int each = 128 / BITS, slab = 4 * each, ahead = TILES < 4 ? 2 : 1;
    __shared__ float partial[WARPS][OWN][8 * TILES];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, of = lane / 4, turn = lane % 4;
    const int64_t first = (int64_t)blockIdx.x * OWN;
    const int full = (int)g.k / slab * slab, width = (int)g.blocks * g.block, shift = 31 - __clz(g.block);
    Rows<T, TILES> rows;
#pragma unroll
    for (int i = 0; i < 2; i++) { /* what is too much comes of other rows, and is dropped */
        rows.row[i] = first + of + 8 * i < g.n ? first + of + 8 * i : g.n - 1;
        rows.w[i] = g.b + rows.row[i] * g.row_bytes;
    }
#pragma unroll
    for (int j = 0; j < TILES; j++) {
        rows.a[j] = (const T *)g.a + (8 * j + of < g.m ? 8 * j + of : g.m - 1) * g.k;
#pragma unroll
        for (int i = 0; i < 4; i++) rows.sum[j][i] = 0.0f;
    }
    if (!g.constant) ortc_cu_previous();
    int at = warp * ahead * slab;
#pragma unroll 1
    for (; at + ahead * slab <= full; at += ahead * WARPS * slab)
        slabs<T, BITS, TILES, HALVES, REAL, ahead, true>(g, rows, at + turn * each, shift);
    for (const int end = at + ahead * slab; at < width && at < end; at += slab)
        slabs<T, BITS, TILES, HALVES, REAL, 1, false>(g, rows, at + turn * each, shift);
    ortc_cu_previous();
#pragma unroll
    for (int j = 0; j < TILES; j++)
#pragma unroll
        for (int i = 0; i < 4; i++) partial[warp][of + i / 2 * 8][j * 8 + turn * 2 + i % 2] = rows.sum[j][i];
    __syncthreads();
    for (int i = threadIdx.x; i < OWN * 8 * TILES; i += 32 * WARPS) {
        const int64_t n = first + i % OWN, r = i / OWN;
        if (n >= g.n || r >= g.m) continue;
        float x = 0.0f;
#pragma unroll
        for (int v = 0; v < WARPS; v++) x += partial[v][i % OWN][r];
        if (g.bias) x += to_float(((const T *)g.bias)[n]);
        ((T *)g.y)[r * g.n + n] = from_float<T>(x);
    }
}

/* ---- Launches ------------------------------------------------------------------------------------------ */

template <typename T, int BITS, int TILES, int WARPS, bool REAL>
static int launch_tiles(const ortc_cu_nbits &g, cudaStream_t stream)
{
    const unsigned blocks = (unsigned)((g.n + OWN - 1) / OWN);
    return BITS == 4 && g.block == 16
               ? ortc_cu_launch(mma<T, BITS, TILES, WARPS, BITS == 4, REAL>, blocks, 32 * WARPS, stream, g)
               : ortc_cu_launch(mma<T, BITS, TILES, WARPS, false, REAL>, blocks, 32 * WARPS, stream, g);
}

/* More warps where there are few blocks to fill the device with. */
template <typename T, int BITS, bool REAL>
static int launch_rows_of(const ortc_cu_nbits &g, cudaStream_t stream)
{
    if (g.m > 16) return launch_tiles<T, BITS, 4, 8, REAL>(g, stream);
    if (g.m > 8) return launch_tiles<T, BITS, 2, 8, REAL>(g, stream);
    return g.n < OWN * 400 && g.k >= 2048 ? launch_tiles<T, BITS, 1, 16, REAL>(g, stream)
                                          : launch_tiles<T, BITS, 1, 8, REAL>(g, stream);
}

template <typename T, int BITS> static int launch_mma(const ortc_cu_nbits &g, void *queue)
{
    return g.real ? launch_rows_of<T, BITS, true>(g, (cudaStream_t)queue)
                  : launch_rows_of<T, BITS, false>(g, (cudaStream_t)queue);
}

template <typename T> static int launch_rows(const ortc_cu_nbits &g, void *queue)
{
    const unsigned blocks = (unsigned)((g.n + 3) / 4);
    if (g.bits == 4)
        rows<T, 4><<<blocks, 128, 0, (cudaStream_t)queue>>>(g);
    else
        rows<T, 8><<<blocks, 128, 0, (cudaStream_t)queue>>>(g);
    return cudaGetLastError();
}

template <typename T>
static int launch_unpack(const ortc_cu_nbits &g, int64_t first, int64_t count, void *to, int64_t pitch,
                         void *queue)
{
    const unsigned blocks = ortc_cu_blocks(count * (g.row_bytes / 4), 256);
    if (g.bits == 4)
        unpack<T, 4><<<blocks, 256, 0, (cudaStream_t)queue>>>(g, first, count, (T *)to, pitch);
    else
        unpack<T, 8><<<blocks, 256, 0, (cudaStream_t)queue>>>(g, first, count, (T *)to, pitch);
    return cudaGetLastError();
}

} // namespace ortc_nbits

extern "C" int ortc_cu_nbits_mma(const ortc_cu_nbits *g, void *queue)
{
    using namespace ortc_nbits;
    if (g->type == ORTC_F16)
        return g->bits == 4 ? launch_mma<__half, 4>(*g, queue) : launch_mma<__half, 8>(*g, queue);
    return g->bits == 4 ? launch_mma<__nv_bfloat16, 4>(*g, queue) : launch_mma<__nv_bfloat16, 8>(*g, queue);
}

extern "C" int ortc_cu_nbits_rows(const ortc_cu_nbits *g, void *queue)
{
    using namespace ortc_nbits;
    return g->type == ORTC_F32   ? launch_rows<float>(*g, queue)
           : g->type == ORTC_F16 ? launch_rows<__half>(*g, queue)
                                 : launch_rows<__nv_bfloat16>(*g, queue);
}

extern "C" int ortc_cu_nbits_unpack(const ortc_cu_nbits *g, int64_t first, int64_t count, void *to,
                                    int64_t pitch, void *queue)
{
    using namespace ortc_nbits;
    return g->type == ORTC_F32   ? launch_unpack<float>(*g, first, count, to, pitch, queue)
           : g->type == ORTC_F16 ? launch_unpack<__half>(*g, first, count, to, pitch, queue)
                                 : launch_unpack<__nv_bfloat16>(*g, first, count, to, pitch, queue);
}
