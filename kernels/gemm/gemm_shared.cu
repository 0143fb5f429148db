/* kernels/gemm/gemm_shared.cu: small products of f16 or bf16 matrices by pairs of blocks that share what they
 * read: gemm_wgmma.cuh's tiles of one warpgroup, by Hopper's tensor cores and copy engine, sm_90a only.
 *
 * A cluster is DOWN x ACROSS tiles, a block each. Blocks side by side need the same pieces of A, blocks one
 * above another the same of B: each asks for its share of a piece, and the copy engine puts it into the shared
 * memory of all that need it, where each block's own barrier counts it. A buffer is empty when all blocks
 * that this one's shares go to have read theirs. A block takes one tile, without a batch: where its index in
 * a batch, its part of K and its next tile are no question, it is also done sooner.
 */
#include "ortc/types.h"

#include "kernels/gemm/gemm_wgmma.cuh"

namespace ortc_gemm {

/* A block's place in its cluster, and who shares what with it. */
template <int DOWN, int ACROSS> struct Place {
    static constexpr int together = DOWN * ACROSS, peers = DOWN + ACROSS - 1;
    int down, across;

    /* Blocks as bits: those side by side with this one, those above and below. */
    __device__ __forceinline__ uint16_t row() const { return ((1 << ACROSS) - 1) << down * ACROSS; }
    __device__ __forceinline__ uint16_t column() const
    {
        int blocks = 0;
#pragma unroll
        for (int d = 0; d < DOWN; d++) blocks |= 1 << d * ACROSS;
        return (uint16_t)(blocks << across);
    }
    /* Each of them once, itself too: i from 0 to peers - 1. */
    __device__ __forceinline__ int peer(int i) const
    {
        const int other = i - ACROSS + (i - ACROSS >= down);
        return i < ACROSS ? down * ACROSS + i : other * ACROSS + across;
    }
};

/* columns: of clusters. pieces: of K, two at least; so many of B, `ahead`, are asked for before the kernel
 * before has ended. */
template <class S, int DOWN, int ACROSS, typename T, bool B_MN>
__global__ void __launch_bounds__(S::threads, 1)
    shared_tiles(const __grid_constant__ ortc_cu_gemm g, const __grid_constant__ Maps<1> maps, int columns,
                 int pieces, int ahead, bool vec, bool copied)
{
#ifdef ORTC_HOPPER
    using Where = Place<DOWN, ACROSS>;
    constexpr int a_rows = S::tile_m / ACROSS, b_rows = (B_MN ? 64 : S::N) / DOWN;
    extern __shared__ char shared_tile[];
    __shared__ __align__(8) uint64_t barriers[2 * S::STAGES];
    const uint32_t begun = (uint32_t)__cvta_generic_to_shared(shared_tile),
                   ring = (begun + 1023) / 1024 * 1024;
    const uint32_t full = (uint32_t)__cvta_generic_to_shared(barriers), empty = full + S::STAGES * 8;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, rank = cluster_rank();
    const Where where = {rank / ACROSS, rank % ACROSS};
    Spot s = spot_of(g, columns, (int)blockIdx.x / Where::together, S::tile_m * DOWN, S::N * ACROSS);
    s.row += where.down * S::tile_m, s.col += where.across * S::N;

    if (threadIdx.x == 128) {
        for (int i = 0; i < S::STAGES; i++) barrier_init(full + i * 8, 1);
        barriers_made();
    } else if (lane == 0 && warp < 4) {
        for (int i = warp; i < S::STAGES; i += 4) barrier_init(empty + i * 8, 4 * Where::peers);
        barriers_made();
    } else if (threadIdx.x == 33) {
        map_prefetch(&maps.a);
        map_prefetch(maps.b);
        if (copied) map_prefetch(maps.y);
    }
    __syncwarp();
    cluster_sync(); /* the others' barriers are made, too */
    next_may_start();

    if (warp == 4) { /* one thread asks */
        auto load = [&](uint32_t to, const CUtensorMap *map, int at, int x, int y, bool alone, uint16_t all) {
            if (alone)
                tile_load(to, map, full + at * 8, x, y);
            else
                tile_load_to_all(to, map, full + at * 8, x, y, all);
        };
        auto load_a = [&](int k, int at) {
            const int row = where.across * a_rows;
            load(ring + at * S::stage + row * 128, &maps.a, at, k * 64, s.row + row, ACROSS == 1,
                 where.row());
        };
        auto load_b = [&](int k, int at) {
            const int row = where.down * b_rows;
            const uint32_t to = ring + at * S::stage + S::a_bytes + row * 128;
#pragma unroll
            for (int i = 0; i < (B_MN ? S::N / 64 : 1); i++)
                load(to + i * SLAB, maps.b, at, B_MN ? s.col + i * 64 : k * 64, (B_MN ? k * 64 : s.col) + row,
                     DOWN == 1, where.column());
        };
        if (lane == 0) {
            const int first = ahead < pieces ? ahead : pieces;
            for (int k = 0; k < first; k++) {
                barrier_expect(full + k * 8, S::stage);
                load_b(k, k);
            }
            previous_wait();
            for (int k = 0; k < first; k++) load_a(k, k);
            int at = first % S::STAGES, parity = first < S::STAGES;
            for (int k = first; k < pieces; k++) {
                barrier_wait(empty + at * 8, parity);
                barrier_expect(full + at * 8, S::stage);
                load_a(k, at);
                load_b(k, at);
                if (++at == S::STAGES) {
                    at = 0;
                    parity ^= 1;
                }
            }
        }
        __syncwarp();
        cluster_arrive();
        cluster_wait();
        return;
    }

    const uint32_t empty_there = address_in(empty, where.peer(lane < Where::peers ? lane : 0));
    const int buffers = S::begin + warp * S::buffers * S::buffer; /* from the ring on */
    Copied<S, T> copies = {g, ring + buffers};
    copies.map = maps.y, copies.n = (int)g.n, copies.bias = (const T *)g.bias;
    touch<S>(g, g.bias, (int)g.n, s.col, vec, copied);
    previous_wait();
    const Tile t = tile_at(g, s);
    const int own_row = s.row + warp * 16;
    float d[S::N / 2];
#pragma unroll
    for (int e = 0; e < S::N / 2; e++) d[e] = 0;
    if (copied) copies.first(t, own_row, s.col, d);
    int at = 0, parity = 0, last = 0;
    auto multiply_piece = [&]() {
        barrier_wait(full + at * 8, parity);
        const uint64_t a = operand(ring + at * S::stage, false),
                       b = operand(ring + at * S::stage + S::a_bytes, B_MN);
        settle(d);
        products_begin();
#pragma unroll
        for (int part = 0; part < 4; part++)
            ortc_hopper::multiply<T, 0, B_MN>(d, a + part * next_16(false), b + part * next_16(B_MN), 1);
        products_commit();
        settle(d);
        last = at;
        if (++at == S::STAGES) {
            at = 0;
            parity ^= 1;
        }
    };
    multiply_piece();
#pragma unroll 1
    for (int k = 1; k < pieces; k++) {
        const int before = last;
        multiply_piece();
        products_wait<1>();
        /* To all that write there, while they are there: for the last pieces nobody waits. */
        if (lane < Where::peers && k - 1 + S::STAGES < pieces) barrier_arrive_there(empty_there + before * 8);
    }
    products_wait<0>();
    settle(d);
    cluster_arrive();
    if (__builtin_expect(!copied, 0)) {
        float *const sums = (float *)(void *)(shared_tile + (ring - begun) + buffers);
        store_warp<S, T>(g, t, own_row, s.col, d, sums, vec, [](float(&)[8], int, int) {});
    } else {
        warps_sync(1, 128); /* all that was to come has been read: results leave from where A was */
        copies.room = ring + warp * S::stage;
        if (own_row < (int)g.m) copies.store(t, s, own_row, s.col, d);
    }
    if (lane == 0) tile_stores_read<0>();
    __syncwarp();
    cluster_wait(); /* nobody goes while others may write to it */
#endif
}

template <class S, int DOWN, int ACROSS, typename T, bool B_MN>
static int launch_shared(const ortc_cu_gemm &g, void *queue)
{
    constexpr int together = DOWN * ACROSS;
    const auto kernel = shared_tiles<S, DOWN, ACROSS, T, B_MN>;
    const bool vec = vectors_fit(g), copied = vec && !g.c && g.out_type == g.type && g.n % 8 == 0 &&
                                              (g.alpha == 1.0f || (!g.bias && !g.residual));
    const int64_t clusters = tiles_of(g, S::tile_m * DOWN, S::N * ACROSS), blocks = clusters * together;
    Maps<1> maps = {};
    ortc_cu_gemm result = g; /* as map_of takes one: N along its K */
    result.k = g.n;
    if (g.rank || g.k <= 64 || (g.a_col != 1 && g.m > 1) || blocks > INT32_MAX ||
        !map_of(&maps.a, g, g.a, g.m, g.a_row, 1, g.a_step, false, S::tile_m / ACROSS) ||
        !map_of(maps.b, g, g.b, g.n, g.b_col, g.b_row, g.b_step, B_MN, (B_MN ? 64 : S::N) / DOWN) ||
        (copied && !map_of(maps.y, result, g.y, g.m, g.y_row, 1, g.y_step, false, 16)))
        return cudaErrorInvalidValue;
    const int ahead = !g.b_constant ? 0 : blocks * 2 <= g.processors ? S::STAGES : S::STAGES / 2;
    return launch_blocks(kernel, dim3((unsigned)blocks), together, S::threads, S::shared, queue, g, maps,
                         (int)((g.n + S::N * ACROSS - 1) / (S::N * ACROSS)), (int)((g.k + 63) / 64), ahead,
                         vec, copied);
}

template <typename T, bool B_MN> static int launch_shared(const ortc_cu_gemm &g, void *queue)
{
    switch (g.kernel) {
    case ORTC_CU_GEMM_SHARED_64X64: return launch_shared<Deep64x64, 1, 2, T, B_MN>(g, queue);
    case ORTC_CU_GEMM_SHARED_64X128: return launch_shared<Tile64x128, 2, 1, T, B_MN>(g, queue);
    case ORTC_CU_GEMM_SHARED_64X192: return launch_shared<Tile64x192, 2, 1, T, B_MN>(g, queue);
    default: return cudaErrorInvalidValue;
    }
}

} // namespace ortc_gemm

extern "C" int ortc_cu_gemm_shared(const ortc_cu_gemm *g, void *queue)
{
    using namespace ortc_gemm;
    if (g->type == ORTC_F16)
        return (g->b_col == 1 ? launch_shared<__half, true> : launch_shared<__half, false>)(*g, queue);
    return (g->b_col == 1 ? launch_shared<__nv_bfloat16, true> : launch_shared<__nv_bfloat16, false>)(*g,
                                                                                                      queue);
}
