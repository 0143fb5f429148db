/* kernels/gemm/gemm_split.cu: products of f32 matrices by Hopper's tensor cores (sm_90a), at the accuracy of
 * f32.
 *
 * A float is the sum of three of bf16, exactly: it rounded, what is left rounded, and what is left then. Of
 * the nine products of pieces the six largest are taken, what is dropped is under 2^-24 of a product. Tensor
 * cores cut their sums where f32 would round, so no more than 32 of K are summed there, the smallest pieces
 * first; these sums are added as f32.
 *
 * A piece, 32 deep, comes as f32 by the copy engine (`full`, `empty`). One warpgroup loads, and splits B into
 * three planes in shared memory (`made`, `used`); two multiply, 64 rows each, with A split in registers: the
 * next piece's while this one is multiplied.
 *
 * Where tiles are few, the blocks of a cluster share one as in gemm_wgmma.cuh, each a part of K.
 *
 * An infinite element, or the product of one with a piece that is 0, makes NaN of its sums. So a sum that is
 * NaN is taken again, element by element, as f32.
 */
#include "kernels/gemm/launch_blocks.cuh"
#include "kernels/gemm/wgmma_map.cuh"
#include "kernels/gemm/wgmma_store.cuh"

namespace ortc_gemm {

struct Split {
    static constexpr int tile_m = 128, N = 128, K = 32, STAGES = 4, MADE = 2;
    static constexpr int operand = 128 * K * 4, stage = 2 * operand, plane = 128 * K * 2, chunk_pitch = 32;
    static constexpr int split_pitch = N + 8; /* floats */
    static constexpr int planes_at = STAGES * stage, sums_at = planes_at + MADE * 3 * plane,
                         shared = 1024 + sums_at + 8 * 16 * chunk_pitch * 4;
    static_assert(2 * tile_m * split_pitch * 4 <= sums_at,
                  "parts of K meet where the ring was, and the planes");
    static constexpr int threads = 384;
};

#ifdef ORTC_HOPPER

/* The bytes of (mn, k) in an operand's piece: rows of 32 floats as the 128-byte swizzle lays them, along K,
 * or along M or N in slabs of 32. */
template <bool MN_MAJOR> __device__ __forceinline__ int float_at(int mn, int k)
{
    const int row = MN_MAJOR ? k : mn, col = MN_MAJOR ? mn % 32 : k;
    return (MN_MAJOR ? mn / 32 * 4096 : 0) + row * 128 + ((col / 4 ^ (row & 7)) * 4 + col % 4) * 4;
}
/* The bytes of eight elements from (n, k) on in a plane of B: rows of 32 along K, 64-byte swizzle, or of 64
 * along N in slabs of 4 KB, 128-byte swizzle. */
template <bool MN_MAJOR> __device__ __forceinline__ int plane_at(int n, int k)
{
    return MN_MAJOR ? n / 64 * 4096 + k * 128 + (n % 64 / 8 ^ (k & 7)) * 16
                    : n * 64 + (k / 8 ^ (n >> 1 & 3)) * 16;
}
/* Where wgmma finds 16 of K, the part-th, of such a plane. */
template <bool MN_MAJOR> __device__ __forceinline__ uint64_t plane_operand(uint32_t plane, int part)
{
    if (MN_MAJOR)
        return (uint64_t)((plane + part * 2048) >> 4 & 0x3fff) | (uint64_t)(4096 >> 4) << 16 |
               (uint64_t)(1024 >> 4) << 32 | UINT64_C(1) << 62;
    return (uint64_t)((plane + part * 32) >> 4 & 0x3fff) | UINT64_C(1) << 16 | (uint64_t)(512 >> 4) << 32 |
           UINT64_C(2) << 62;
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

/* Products read A's registers until they are done: the compiler gives them to nothing else before. */
__device__ __forceinline__ void keep(uint32_t (&a)[2][3][4])
{
#pragma unroll
    for (int e = 0; e < 24; e++) asm volatile("" : "+r"(a[e / 12][e / 4 % 3][e % 4])::"memory");
}

/* One element's sum as f32. */
__device__ __forceinline__ float sum_of(const ortc_cu_gemm &g, int64_t a, int64_t b, int row, int col)
{
    const float *x = (const float *)g.a + a + (int64_t)row * g.a_row,
                *y = (const float *)g.b + b + (int64_t)col * g.b_col;
    float sum = 0.0f;
#pragma unroll 1
    for (int64_t k = 0; k < g.k; k++) sum = fmaf(x[k * g.a_col], y[k * g.b_row], sum);
    return sum;
}

#endif

struct SplitMaps {
    CUtensorMap a, b;
};

template <bool A_MN, bool B_MN, bool PARTS>
__global__ void __launch_bounds__(Split::threads, 1)
    split_tiles(const __grid_constant__ ortc_cu_gemm g, const __grid_constant__ SplitMaps maps, int tiles,
                int in_parts, bool vec)
{
#ifdef ORTC_HOPPER
    using S = Split;
    extern __shared__ char shared_wgmma[];
    __shared__ __align__(8) uint64_t barriers[2 * S::STAGES + 2 * S::MADE + 1];
    const int skew = (1024 - (int)((uint32_t)__cvta_generic_to_shared(shared_wgmma) % 1024)) % 1024;
    char *const ring = shared_wgmma + skew;
    const uint32_t ring_at = (uint32_t)__cvta_generic_to_shared(ring),
                   full = (uint32_t)__cvta_generic_to_shared(barriers), empty = full + S::STAGES * 8,
                   made = empty + S::STAGES * 8, used = made + S::MADE * 8, parts_come = used + S::MADE * 8;
    const int group = threadIdx.x / 128, warp = threadIdx.x / 32 % 4, lane = threadIdx.x % 32;
    const int parts = PARTS ? in_parts : 1;
    const int all_pieces = (int)((g.k + S::K - 1) / S::K), part = PARTS ? (int)blockIdx.x : 0;
    const int k_begin = all_pieces * part / parts, pieces = all_pieces * (part + 1) / parts - k_begin;
    const int columns = ((int)g.n + S::N - 1) / S::N;
    const int step = PARTS ? tiles : (int)gridDim.x, first_tile = PARTS ? (int)blockIdx.y : (int)blockIdx.x;
    if (threadIdx.x == 0) {
        for (int i = 0; i < S::STAGES; i++) {
            barrier_init(full + i * 8, 1);
            barrier_init(empty + i * 8, 12);
        }
        for (int i = 0; i < S::MADE; i++) {
            barrier_init(made + i * 8, 4);
            barrier_init(used + i * 8, 8);
        }
        barrier_init(parts_come, 1);
        barriers_made();
        map_prefetch(&maps.a);
        map_prefetch(&maps.b);
    }
    __syncthreads();
    next_may_start();
    previous_wait();

    if (group == 2) { /* loads and splits B; pieces of all of the block's tiles in a row */
        registers_less<72>();
        const int all = (tiles - first_tile + step - 1) / step * pieces, ahead = S::STAGES - 2;
        auto load = [&](int i) {
            const Spot s = spot_of(g, columns, first_tile + i / pieces * step, S::tile_m, S::N);
            const int at = i % S::STAGES, k = (k_begin + i % pieces) * S::K;
            const uint32_t to = ring_at + at * S::stage;
            const int a_at[3] = {g.a_step[0] ? s.at[0] : 0, g.a_step[1] ? s.at[1] : 0,
                                 g.a_step[2] ? s.at[2] : 0},
                      b_at[3] = {g.b_step[0] ? s.at[0] : 0, g.b_step[1] ? s.at[1] : 0,
                                 g.b_step[2] ? s.at[2] : 0};
            if (i >= S::STAGES) barrier_wait(empty + at * 8, (i / S::STAGES - 1) % 2);
            barrier_expect(full + at * 8, S::stage);
#pragma unroll
            for (int slab = 0; slab < (A_MN ? 4 : 1); slab++)
                if (g.rank == 0)
                    tile_load(to + slab * 4096, &maps.a, full + at * 8, A_MN ? s.row + slab * 32 : k,
                              A_MN ? k : s.row);
                else
                    tile_load(to + slab * 4096, &maps.a, full + at * 8, A_MN ? s.row + slab * 32 : k,
                              A_MN ? k : s.row, a_at);
#pragma unroll
            for (int slab = 0; slab < (B_MN ? 4 : 1); slab++)
                if (g.rank == 0)
                    tile_load(to + S::operand + slab * 4096, &maps.b, full + at * 8,
                              B_MN ? s.col + slab * 32 : k, B_MN ? k : s.col);
                else
                    tile_load(to + S::operand + slab * 4096, &maps.b, full + at * 8,
                              B_MN ? s.col + slab * 32 : k, B_MN ? k : s.col, b_at);
        };
        if (threadIdx.x == 256)
            for (int i = 0; i < ahead && i < all; i++) load(i);
#pragma unroll 1
        for (int i = 0; i < all; i++) {
            const int at = i % S::STAGES;
            if (threadIdx.x == 256 && i + ahead < all) load(i + ahead);
            __syncwarp();
            barrier_wait(full + at * 8, i / S::STAGES % 2);
            barrier_wait(used + i % S::MADE * 8, i / S::MADE % 2 ^ 1);
            const char *from = ring + at * S::stage + S::operand;
            char *to = ring + S::planes_at + i % S::MADE * 3 * S::plane;
#pragma unroll
            for (int item = 0; item < 4; item++) { /* eight elements; lanes such that no bank is met twice */
                const int n = B_MN ? (warp * 4 + lane / 8) * 8 : (item * 4 + warp) * 8 + lane % 8,
                          k = B_MN ? item * 8 + lane % 8 : lane / 8 * 8;
                const float4 lo = *(const float4 *)(from + float_at<B_MN>(n, k)),
                             hi = *(const float4 *)(from +
                                                    float_at<B_MN>(n + (B_MN ? 4 : 0), k + (B_MN ? 0 : 4)));
                uint4 p[3];
                split(lo.x, lo.y, p[0].x, p[1].x, p[2].x);
                split(lo.z, lo.w, p[0].y, p[1].y, p[2].y);
                split(hi.x, hi.y, p[0].z, p[1].z, p[2].z);
                split(hi.z, hi.w, p[0].w, p[1].w, p[2].w);
#pragma unroll
                for (int e = 0; e < 3; e++) *(uint4 *)(to + e * S::plane + plane_at<B_MN>(n, k)) = p[e];
            }
            tile_written();
            __syncwarp();
            if (lane == 0) {
                barrier_arrive(made + i % S::MADE * 8);
                barrier_arrive(empty + at * 8);
            }
        }
        if (PARTS) meet_parts();
        return;
    }

    registers_more<216>();
    float *sums = (float *)(ring + S::sums_at) + (group * 4 + warp) * 16 * S::chunk_pitch;
    /* A's next piece as this warp's operand: of both 16 of K the three pieces */
    auto take = [&](int i, uint32_t(&a)[2][3][4]) {
        const int at = i % S::STAGES, row = group * 64 + warp * 16 + lane / 4, col = lane % 4 * 2;
        const char *from = ring + at * S::stage;
        barrier_wait(full + at * 8, i / S::STAGES % 2);
#pragma unroll
        for (int part = 0; part < 2; part++)
#pragma unroll
            for (int e = 0; e < 4; e++) {
                const int m = row + e % 2 * 8, k = part * 16 + col + e / 2 * 8;
                float2 x;
                if (A_MN)
                    x = make_float2(*(const float *)(from + float_at<true>(m, k)),
                                    *(const float *)(from + float_at<true>(m, k + 1)));
                else
                    x = *(const float2 *)(from + float_at<false>(m, k));
                split(x.x, x.y, a[part][0][e], a[part][1][e], a[part][2][e]);
            }
        __syncwarp();
        if (lane == 0) barrier_arrive(empty + at * 8);
    };
    int i = 0; /* pieces so far */
    for (int tile = first_tile; tile < tiles; tile += step) {
        const Spot s = spot_of(g, columns, tile, S::tile_m, S::N);
        uint32_t a[2][3][4], next[2][3][4];
        float d[64], total[64];
#pragma unroll
        for (int e = 0; e < 64; e++) total[e] = 0.0f;
        take(i, next);
#pragma unroll 1
        for (int piece = 0; piece < pieces; piece++, i++) {
            const uint32_t planes = ring_at + S::planes_at + i % S::MADE * 3 * S::plane;
#pragma unroll
            for (int e = 0; e < 24; e++) a[e / 12][e / 4 % 3][e % 4] = next[e / 12][e / 4 % 3][e % 4];
            barrier_wait(made + i % S::MADE * 8, i / S::MADE % 2);
            settle(d);
            products_begin();
            constexpr int of_a[] = {2, 0, 1, 1, 0, 0}, of_b[] = {0, 2, 1, 0, 1, 0};
#pragma unroll
            for (int p = 0; p < 6; p++)
#pragma unroll
                for (int part = 0; part < 2; part++)
                    ortc_hopper::multiply<__nv_bfloat16, B_MN>(
                        d, a[part][of_a[p]], plane_operand<B_MN>(planes + of_b[p] * S::plane, part),
                        p | part);
            products_commit();
            settle(d);
            if (piece + 1 < pieces) take(i + 1, next);
            products_wait<0>();
            settle(d);
            keep(a);
            __syncwarp();
            if (lane == 0) barrier_arrive(used + i % S::MADE * 8);
#pragma unroll
            for (int e = 0; e < 64; e++) total[e] += d[e];
        }
        Tile t = {s.row, s.col, 0, 0, 0};
#pragma unroll
        for (int r = 0; r < 3; r++)
            if (r < g.rank) {
                t.a += s.at[r] * g.a_step[r];
                t.b += s.at[r] * g.b_step[r];
                t.y += s.at[r] * g.y_step[r];
            }
        auto repair = [&](float(&x)[8], int row, int col) {
#pragma unroll
            for (int e = 0; e < 8; e++)
                if (x[e] != x[e] && row < (int)g.m && col + e < (int)g.n)
                    x[e] = sum_of(g, t.a, t.b, row, col + e);
        };
        if constexpr (!PARTS) {
            store_warp<S, float>(g, t, s.row + group * 64 + warp * 16, s.col, total, sums, vec, repair);
        } else {
            const Band own = share_parts<S, 256>(g, s.row, part, parts, (float *)ring, parts_come, total);
            each_of_band<S, 256>(own, part, parts, (float *)ring, [&](float(&x)[8], int row, int col) {
                repair(x, s.row + row, s.col + col);
                finish<float, 8>(g, t, x, s.row + row, s.col + col, vec);
            });
            cluster_wait();
        }
    }
#endif
}

template <bool A_MN, bool B_MN, bool PARTS> static int launch_split(const ortc_cu_gemm &g, void *queue)
{
    using S = Split;
    const auto kernel = split_tiles<A_MN, B_MN, PARTS>;
    const int64_t tiles = tiles_of(g, S::tile_m, S::N);
    const int parts = PARTS ? g.parts : 1;
    SplitMaps maps = {};
    if (!map_of(&maps.a, g, g.a, g.m, g.a_row, g.a_col, g.a_step, A_MN, A_MN ? S::K : S::tile_m) ||
        !map_of(&maps.b, g, g.b, g.n, g.b_col, g.b_row, g.b_step, B_MN, B_MN ? S::K : S::N))
        return cudaErrorInvalidValue;
    const dim3 blocks = PARTS ? dim3((unsigned)parts, (unsigned)tiles)
                              : dim3((unsigned)(tiles < g.processors ? tiles : g.processors));
    return launch_blocks(kernel, blocks, parts, S::threads, S::shared, queue, g, maps, (int)tiles, parts,
                         vectors_fit(g));
}

template <bool A_MN, bool B_MN> static int launch_split(const ortc_cu_gemm &g, void *queue)
{
    return g.parts > 1 && tiles_of(g, 128, 128) <= 65535 ? launch_split<A_MN, B_MN, true>(g, queue)
                                                         : launch_split<A_MN, B_MN, false>(g, queue);
}

} // namespace ortc_gemm

extern "C" int ortc_cu_gemm_split(const ortc_cu_gemm *g, void *queue)
{
    using namespace ortc_gemm;
    if (g->a_col != 1 && g->m > 1)
        return g->b_col == 1 ? launch_split<true, true>(*g, queue) : launch_split<true, false>(*g, queue);
    return g->b_col == 1 ? launch_split<false, true>(*g, queue) : launch_split<false, false>(*g, queue);
}
