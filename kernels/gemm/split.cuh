/* kernels/gemm/split.cuh: f32 at its accuracy by Hopper's tensor cores, which gemm_split.cu and
 * gemm_split_few.cu are made of.
 *
 * A float is the sum of three of bf16, exactly: it rounded, what is left rounded, and what is left then. Of
 * the nine products of pieces the six largest are taken, what is dropped is under 2^-24 of a product. Tensor
 * cores cut their sums where f32 would round, so no more than 32 of K are summed there, the smallest pieces
 * first; these sums are added as f32.
 *
 * The copy engine brings 32 of K of an operand as f32. One operand of a product is split in registers, the
 * other into three planes of bf16 in shared memory.
 *
 * An infinite element, or the product of one with a piece that is 0, makes NaN of its sums. So a sum that is
 * NaN is taken again, element by element, as f32.
 */
#ifndef ORTC_KERNELS_GEMM_SPLIT_CUH
#define ORTC_KERNELS_GEMM_SPLIT_CUH

#include "kernels/gemm/wgmma_map.cuh"
#include "kernels/gemm/wgmma_store.cuh"

namespace ortc_gemm {

struct SplitMaps {
    CUtensorMap a, b;
};

#ifdef ORTC_HOPPER

/* One piece of an operand, `ROWS` of M or N. step: the batch's, 0 where all its matrices are one. */
template <bool MN_MAJOR, int ROWS>
__device__ __forceinline__ void load_split(uint32_t to, const CUtensorMap *map, uint32_t barrier, int row,
                                           int k, int rank, const int64_t *step, const int (&spot)[3])
{
    constexpr int copies = MN_MAJOR ? ROWS / 32 : 1;
    const int x = MN_MAJOR ? row : k, y = MN_MAJOR ? k : row;
    const int at[3] = {step[0] ? spot[0] : 0, step[1] ? spot[1] : 0, step[2] ? spot[2] : 0};
#pragma unroll
    for (int i = 0; i < copies; i++)
        if (rank == 0)
            tile_load(to + i * 4096, map, barrier, x + i * 32, y);
        else
            tile_load(to + i * 4096, map, barrier, x + i * 32, y, at);
}

/* The bytes of (mn, k) in an operand's piece: rows of 32 floats as the 128-byte swizzle lays them, along K,
 * or along M or N in slabs of 32. */
template <bool MN_MAJOR> __device__ __forceinline__ int float_at(int mn, int k)
{
    const int row = MN_MAJOR ? k : mn, col = MN_MAJOR ? mn % 32 : k;
    return (MN_MAJOR ? mn / 32 * 4096 : 0) + row * 128 + ((col / 4 ^ (row & 7)) * 4 + col % 4) * 4;
}
/* The bytes of eight elements from (n, k) on in a plane: rows of 32 along K, 64-byte swizzle, or of 64 along
 * N in slabs of 4 KB, 128-byte swizzle. */
template <bool MN_MAJOR> __device__ __forceinline__ int plane_at(int n, int k)
{
    return MN_MAJOR ? n / 64 * 4096 + k * 128 + (n % 64 / 8 ^ (k & 7)) * 16
                    : n * 64 + (k / 8 ^ (n >> 1 & 3)) * 16;
}
/* Where wgmma finds such planes: the half of an operand that says so, to which 16 bytes are 1; the other
 * half says how they lie. */
template <bool MN_MAJOR> __device__ __forceinline__ uint32_t planes_from(uint32_t planes)
{
    return (planes >> 4 & 0x3fff) | (uint32_t)(MN_MAJOR ? 4096 >> 4 : 1) << 16;
}
template <bool MN_MAJOR> __device__ __forceinline__ uint64_t plane_operand(uint32_t from)
{
    const uint64_t next_8_rows = (MN_MAJOR ? 1024 : 512) >> 4, swizzled = MN_MAJOR ? 1 : 2;
    return (uint64_t)from | next_8_rows << 32 | swizzled << 62;
}

__device__ __forceinline__ float float_in(uint32_t address)
{
    float x;
    asm volatile("ld.shared.f32 %0, [%1];\n" : "=f"(x) : "r"(address));
    return x;
}
__device__ __forceinline__ float2 pair_in(uint32_t address)
{
    float2 x;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];\n" : "=f"(x.x), "=f"(x.y) : "r"(address));
    return x;
}

/* Two floats as three pairs of bf16, the largest first, each rounded: what is dropped has no sign of its
 * own. */
__device__ __forceinline__ uint32_t upper(float &x, float &y)
{
    const __nv_bfloat162 pair = __floats2bfloat162_rn(x, y);
    uint32_t both;
    memcpy(&both, &pair, 4);
    x -= __uint_as_float(both << 16);
    y -= __uint_as_float(both & 0xffff0000);
    return both;
}
__device__ __forceinline__ void split(float x, float y, uint32_t &a, uint32_t &b, uint32_t &c)
{
    a = upper(x, y);
    b = upper(x, y);
    c = upper(x, y);
}

/* Eight in a row, as three pieces each. */
__device__ __forceinline__ void split(const float4 &lo, const float4 &hi, uint4 (&p)[3])
{
    split(lo.x, lo.y, p[0].x, p[1].x, p[2].x);
    split(lo.z, lo.w, p[0].y, p[1].y, p[2].y);
    split(hi.x, hi.y, p[0].z, p[1].z, p[2].z);
    split(hi.z, hi.w, p[0].w, p[1].w, p[2].w);
}

/* Eight elements of a piece for its planes. */
template <bool MN_MAJOR>
__device__ __forceinline__ void split_eight(const char *from, int n, int k, uint4 (&p)[3])
{
    const float4 lo = *(const float4 *)(from + float_at<MN_MAJOR>(n, k)),
                 hi = *(const float4 *)(from +
                                        float_at<MN_MAJOR>(n + (MN_MAJOR ? 4 : 0), k + (MN_MAJOR ? 0 : 4)));
    split(lo, hi, p);
}

/* Where a lane has its elements of a warp's operand in a piece; row: lane / 4 of the warp's 16. Kept, for
 * what is worked out again for each piece takes as long as splitting it. */
template <bool MN_MAJOR> __device__ __forceinline__ void split_places(int row, int (&place)[4])
{
    const int col = threadIdx.x % 4 * 2;
#pragma unroll
    for (int p = 0; p < 4; p++) {
        place[p] = MN_MAJOR ? float_at<true>(row + p / 2 * 8, col + p % 2)
                            : float_at<false>(row, p * 8 + col);
        asm volatile("" : "+r"(place[p]));
    }
}
/* A piece as a warp's operand: of both 16 of K the three pieces of bf16. */
template <bool MN_MAJOR>
__device__ __forceinline__ void split_operand(uint32_t from, const int (&place)[4], uint32_t (&a)[2][3][4])
{
#pragma unroll
    for (int part = 0; part < 2; part++)
#pragma unroll
        for (int e = 0; e < 4; e++) {
            const int down = e % 2, right = e / 2; /* 8 rows, 8 of K */
            float2 x;
            if (MN_MAJOR)
                x = make_float2(float_in(from + place[down * 2] + right * 1024 + part * 2048),
                                float_in(from + place[down * 2 + 1] + right * 1024 + part * 2048));
            else
                x = pair_in(from + place[part * 2 + right] + down * 1024);
            split(x.x, x.y, a[part][0][e], a[part][1][e], a[part][2][e]);
        }
}

/* d = the product of a piece, underway. from: of its planes; MN_MAJOR, PLANE: of them, bytes of each. */
template <bool MN_MAJOR, int PLANE, int R>
__device__ __forceinline__ void multiply_split(float (&d)[R], const uint32_t (&a)[2][3][4], uint32_t from)
{
    constexpr int of_a[] = {2, 0, 1, 1, 0, 0}, of_b[] = {0, 2, 1, 0, 1, 0}, next = MN_MAJOR ? 2048 : 32;
    settle(d);
    products_begin();
#pragma unroll
    for (int p = 0; p < 6; p++)
#pragma unroll
        for (int part = 0; part < 2; part++)
            ortc_hopper::multiply<__nv_bfloat16, MN_MAJOR>(d, a[part][of_a[p]],
                                                           plane_operand<MN_MAJOR>(
                                                               from + ((of_b[p] * PLANE + part * next) >> 4)),
                                                           p | part);
    products_commit();
    settle(d);
}
/* Products read an operand's registers until they are done: the compiler gives them to nothing else
 * before. */
__device__ __forceinline__ void keep(uint32_t (&a)[2][3][4])
{
#pragma unroll
    for (int e = 0; e < 24; e++) asm volatile("" : "+r"(a[e / 12][e / 4 % 3][e % 4])::"memory");
}

/* Sums that are NaN again, as f32. */
__device__ __forceinline__ void repair(const ortc_cu_gemm &g, const Tile &t, float (&sums)[8], int row,
                                       int col)
{
#pragma unroll
    for (int e = 0; e < 8; e++)
        if (sums[e] != sums[e] && row < (int)g.m && col + e < (int)g.n) {
            const float *x = (const float *)g.a + t.a + (int64_t)row * g.a_row,
                        *y = (const float *)g.b + t.b + (int64_t)(col + e) * g.b_col;
            float sum = 0.0f;
#pragma unroll 1
            for (int64_t k = 0; k < g.k; k++) sum = fmaf(x[k * g.a_col], y[k * g.b_row], sum);
            sums[e] = sum;
        }
}

#endif

} // namespace ortc_gemm

#endif
