/* kernels/gemm/gemm_split.cu: products of f32 matrices by Hopper's tensor cores (sm_90a), at the accuracy of
 * f32 (split.cuh).
 *
 * A piece, 32 deep, comes as f32 by the copy engine (`full`, `empty`). Two warpgroups load, and split B into
 * three planes in shared memory (`made`, `used`), every other piece each; two multiply, 64 rows each, with A
 * split in registers: the next piece's while this one is multiplied. One that splits B was what all others
 * waited for (4096 cubed 1,532 us, with two 1,270).
 *
 * Where tiles are few, the blocks of a cluster share one as in gemm_wgmma.cuh, each a part of K.
 */
#include "kernels/gemm/launch_blocks.cuh"
#include "kernels/gemm/split.cuh"

namespace ortc_gemm {

struct Split {
    static constexpr int tile_m = 128, N = 128, K = 32, STAGES = 4, MADE = 2;
    static constexpr int operand = 128 * K * 4, stage = 2 * operand, plane = 128 * K * 2, chunk_pitch = 32;
    static constexpr int split_pitch = N + 8; /* floats */
    static constexpr int planes_at = STAGES * stage, sums_at = planes_at + MADE * 3 * plane,
                         shared = 1024 + sums_at + 8 * 16 * chunk_pitch * 4;
    static_assert(2 * tile_m * split_pitch * 4 <= sums_at,
                  "parts of K meet where the ring was, and the planes");
    static constexpr int threads = 512;
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

    if (group >= 2) { /* load and split B; pieces of all of the block's tiles in a row */
        registers_less<48>();
        const int all = (tiles - first_tile + step - 1) / step * pieces, ahead = S::STAGES - 2;
        auto load = [&](int i) {
            const Spot s = spot_of(g, columns, first_tile + i / pieces * step, S::tile_m, S::N);
            const int at = i % S::STAGES, k = (k_begin + i % pieces) * S::K;
            const uint32_t to = ring_at + at * S::stage;
            if (i >= S::STAGES) barrier_wait(empty + at * 8, (i / S::STAGES - 1) % 2);
            barrier_expect(full + at * 8, S::stage);
            load_split<A_MN, S::tile_m>(to, &maps.a, full + at * 8, s.row, k, g.rank, g.a_step, s.at);
            load_split<B_MN, S::N>(to + S::operand, &maps.b, full + at * 8, s.col, k, g.rank, g.b_step, s.at);
        };
        if (threadIdx.x == 256)
            for (int i = 0; i < ahead && i < all; i++) load(i);
#pragma unroll 1
        for (int i = group - 2; i < all; i += 2) {
            const int at = i % S::STAGES;
            if (threadIdx.x % 128 == 0 && i + ahead < all) load(i + ahead);
            __syncwarp();
            barrier_wait(full + at * 8, i / S::STAGES % 2);
            barrier_wait(used + i % S::MADE * 8, i / S::MADE % 2 ^ 1);
            const char *from = ring + at * S::stage + S::operand;
            char *to = ring + S::planes_at + i % S::MADE * 3 * S::plane;
#pragma unroll 1
            for (int item = 0; item < 4; item++) { /* eight elements; lanes such that no bank is met twice */
                const int n = B_MN ? (warp * 4 + lane / 8) * 8 : (item * 4 + warp) * 8 + lane % 8,
                          k = B_MN ? item * 8 + lane % 8 : lane / 8 * 8;
                uint4 p[3];
                split_eight<B_MN>(from, n, k, p);
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

    registers_more<208>();
    float *sums = (float *)(ring + S::sums_at) + (group * 4 + warp) * 16 * S::chunk_pitch;
    /* A's next piece as this warp's operand: of both 16 of K the three pieces */
    int place[4];
    split_places<A_MN>(group * 64 + warp * 16 + lane / 4, place);
    const uint32_t planes = planes_from<B_MN>(ring_at + S::planes_at);
    auto take = [&](int i, uint32_t(&a)[2][3][4]) {
        const int at = i % S::STAGES;
        barrier_wait(full + at * 8, i / S::STAGES % 2);
        split_operand<A_MN>(ring_at + at * S::stage, place, a);
        __syncwarp();
        if (lane == 0) barrier_arrive(empty + at * 8);
    };
    int i = 0; /* pieces so far */
    for (int tile = first_tile; tile < tiles; tile += step) {
        const Spot s = spot_of(g, columns, tile, S::tile_m, S::N);
        uint32_t a[2][2][3][4]; /* this piece's, the next one's */
        float d[64], total[64];
#pragma unroll
        for (int e = 0; e < 64; e++) total[e] = 0.0f;
        take(i, a[0]);
        auto multiply_piece = [&](int piece, uint32_t(&now)[2][3][4], uint32_t(&next)[2][3][4]) {
            const int at = i % S::MADE;
            barrier_wait(made + at * 8, i / S::MADE % 2);
            multiply_split<B_MN, S::plane>(d, now, planes + at * (3 * S::plane >> 4));
            if (piece + 1 < pieces) take(i + 1, next);
            products_wait<0>();
            settle(d);
            keep(now);
            __syncwarp();
            if (lane == 0) barrier_arrive(used + at * 8);
#pragma unroll
            for (int e = 0; e < 64; e++) total[e] += d[e];
            i++;
        };
#pragma unroll 1
        for (int piece = 0; piece < pieces; piece += 2) {
            multiply_piece(piece, a[0], a[1]);
            if (piece + 1 < pieces) multiply_piece(piece + 1, a[1], a[0]);
        }
        const Tile t = tile_at(g, s);
        auto repaired = [&](float(&x)[8], int row, int col) { repair(g, t, x, row, col); };
        if constexpr (!PARTS) {
            store_warp<S, float>(g, t, s.row + group * 64 + warp * 16, s.col, total, sums, vec, repaired);
        } else {
            const Band own = share_parts<S, 256>(g, s.row, part, parts, (float *)ring, parts_come, total);
            each_of_band<S, 256>(own, part, parts, (float *)ring, [&](float(&x)[8], int row, int col) {
                repair(g, t, x, s.row + row, s.col + col);
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
