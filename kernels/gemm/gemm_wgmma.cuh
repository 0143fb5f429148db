/* kernels/gemm/gemm_wgmma.cuh: products of f16 or bf16 matrices by Hopper's tensor cores (wgmma) and copy
 * engine (TMA): sm_90a only.
 *
 * A block is one warp that loads and WGS warpgroups that multiply. Pieces of A and B, 64 of K deep, come
 * through a ring of STAGES buffers; `full` and `empty` barriers of each hand it over and back. Blocks stay
 * and take tile after tile, so that the pieces of the next tile arrive while this one is stored. Two
 * warpgroups either share a tile (each half of its rows), or take turns (TURNS): one multiplies while the
 * other stores.
 *
 * Where tiles are few, the blocks of a cluster share one, each a part of K; sums then meet in shared memory
 * (wgmma_store.cuh): no workspace, and always the same bits.
 *
 * What is small is bound by latencies: one warpgroup multiplies 64 rows (its sums begin with bias and
 * residual, read while the first pieces come); pieces of a constant B are asked for before the kernel before
 * has ended; code that is rarely run stands out of the way, and what splits K is a kernel of its own.
 *
 * A and B may each have K dense (K-major) or M, N dense (MN-major). What lies beyond M, N and K reads as
 * zeros. Few rows: A's buffer has A_ROWS rows, what the products read beyond it is whatever lies there and
 * ends in rows that are not stored.
 */
#ifndef ORTC_KERNELS_GEMM_WGMMA_TILES_CUH
#define ORTC_KERNELS_GEMM_WGMMA_TILES_CUH

#include "kernels/gemm/gemm_tile.cuh"
#include "kernels/gemm/launch_blocks.cuh"
#include "kernels/gemm/mma.cuh"
#include "kernels/gemm/wgmma_map.cuh"
#include "kernels/gemm/wgmma_store.cuh"

namespace ortc_gemm {

using namespace ortc_hopper;

/* M: rows of a warpgroup, 64 or 128. BLOCKS: on a multiprocessor at once. PARTS: K can be taken in parts. */
template <int M_, int A_ROWS_, int N_, int WGS_, bool TURNS_, int STAGES_, int BLOCKS_, bool PARTS_ = false>
struct Shape {
    static constexpr int M = M_, N = N_, WGS = WGS_, STAGES = STAGES_, BLOCKS = BLOCKS_;
    static constexpr bool TURNS = TURNS_, PARTS = PARTS_;
    static_assert(!PARTS || !TURNS, "who takes turns has tiles of its own");
    /* Few rows: the next kernel's blocks, for which there is room, ask for weights when this one has `late`
     * pieces of its own to ask for, and so keep memory busy while its sums meet; one, where K is in one part
     * and nothing meets (measured). */
    static constexpr int late = A_ROWS_ > 0 ? 3 : 0;
    /* One warpgroup has time while the first pieces come: its sums begin with what is added. */
    static constexpr bool early = WGS == 1;
    static constexpr int tile_m = TURNS ? M : M * WGS, a_rows = A_ROWS_ ? A_ROWS_ : tile_m;
    static constexpr int a_bytes = a_rows * 128, b_bytes = N * 128, stage = a_bytes + b_bytes;
    /* registers go from the loading warpgroup to the others */
    static constexpr bool regroup = WGS > 1 && BLOCKS == 1;
    static constexpr int threads = WGS * 128 + (regroup ? 128 : 32);
    static constexpr int split_pitch = N + 8; /* floats; no bank is met twice */
    static constexpr int ring = STAGES * stage, split = 2 * tile_m * split_pitch * 4;
    /* where sums of parts come, of which there are two or four (exchange_parts) */
    static constexpr bool exchanges = PARTS && a_rows >= 64;
    /* likewise, of few rows (exchange_columns); there is no room for seven */
    static constexpr bool by_columns = PARTS && a_rows < 64;
    static constexpr int exchange = exchanges ? WGS * N * 192 : by_columns ? a_rows * N * 5 : 0;
    /* from what aligns the ring on */
    static constexpr int room = ((ring > split || !PARTS ? ring : split) + 1023) / 1024 * 1024,
                         begin = room + exchange;
    /* of the epilogue: a warp's buffers, two where they fit: 16 x 64 elements of 16 bits or 16 x 32 floats */
    static constexpr int buffer = 2048, chunk_pitch = 32, storing = a_rows < 64 ? a_rows / 16 : WGS * 4,
                         buffers_of_all = storing * buffer;
    static constexpr int buffers = (1024 + begin + 2 * buffers_of_all + 1280) * BLOCKS <= 233472 ? 2 : 1;
    static constexpr int shared = 1024 + begin + buffers * buffers_of_all;
    static constexpr int arrivals = TURNS ? 4 : 4 * WGS; /* warps that give a buffer back */
    static_assert((shared + 1280) * BLOCKS <= 233472, "what a multiprocessor has");
};

/* Products of one A, whose tiles stand side by side: P at most. One alone has kernels of its own, which know
 * it. */
template <int P> struct Maps {
    CUtensorMap a, b[P], y[P];
};
template <int P> struct Together {
    int count, n[P];
    const void *bias[P];
};

#ifdef ORTC_HOPPER

/* Which of the products side by side it is in, and where. */
template <int P> __device__ __forceinline__ void find_product(const Together<P> &all, int tile_n, Spot &s)
{
    for (int width; s.at[0] + 1 < all.count; s.at[0]++, s.col -= width) {
        width = (all.n[s.at[0]] + tile_n - 1) / tile_n * tile_n;
        if (s.col < width) return;
    }
}

/* One piece of an operand, `ROWS` of M or N. step: the batch's, 0 where all its matrices are one. */
template <bool MN_MAJOR, int ROWS>
__device__ __forceinline__ void load_piece(uint32_t to, const CUtensorMap *map, uint32_t barrier, int row,
                                           int k, int rank, const int64_t *step, const int (&spot)[3])
{
    constexpr int copies = MN_MAJOR ? ROWS / 64 : 1;
    const int x = MN_MAJOR ? row : k, y = MN_MAJOR ? k : row;
    if (rank == 0) {
#pragma unroll
        for (int i = 0; i < copies; i++) tile_load(to + i * SLAB, map, barrier, x + i * 64, y);
    } else {
        const int at[3] = {step[0] ? spot[0] : 0, rank > 1 && step[1] ? spot[1] : 0,
                           rank > 2 && step[2] ? spot[2] : 0};
#pragma unroll
        for (int i = 0; i < copies; i++) tile_load(to + i * SLAB, map, barrier, x + i * 64, y, at);
    }
}

#endif

/* Each part of K has so many pieces, the first `longer` one more. ahead: how many of B are asked for before
 * the kernel before has ended, at most STAGES. */
template <class S, typename T, bool A_MN, bool B_MN, int P>
__global__ void __launch_bounds__(S::threads, S::BLOCKS)
    wgmma_tiles(const __grid_constant__ ortc_cu_gemm g, const __grid_constant__ Maps<P> maps,
                const __grid_constant__ Together<P> all, int columns, int tiles, int parts, int pieces,
                int longer, int ahead, bool vec, bool copied)
{
#ifdef ORTC_HOPPER
    constexpr int blocks_m = S::M / 64, sums_n = S::N / 2;
    extern __shared__ char shared_wgmma[];
    __shared__ __align__(8) uint64_t barriers[2 * S::STAGES + 1];
    const uint32_t ring = ((uint32_t)__cvta_generic_to_shared(shared_wgmma) + 1023) / 1024 * 1024;
    const uint32_t full = (uint32_t)__cvta_generic_to_shared(barriers), empty = full + S::STAGES * 8,
                   parts_come = empty + S::STAGES * 8;
    const int group = threadIdx.x / 128, lane = threadIdx.x % 32;
    const int part = parts > 1 ? (int)blockIdx.x : 0;
    const int k_begin = part * pieces + (part < longer ? part : longer), k_count = pieces + (part < longer);
    /* tiles of the whole cluster */
    const int step = parts > 1 ? tiles : (int)gridDim.x,
              first_tile = parts > 1 ? (int)blockIdx.y : (int)blockIdx.x;
    auto place = [&](int tile) {
        Spot s = spot_of(g, P > 1 ? columns : ((int)g.n + S::N - 1) / S::N, tile, S::tile_m, S::N);
        if constexpr (P > 1) find_product(all, S::N, s);
        return s;
    };

    auto product_of = [&](const Spot &s) { return P > 1 ? s.at[0] : 0; };
    auto n_of = [&](const Spot &s) { return P > 1 ? all.n[s.at[0]] : (int)g.n; };
    auto bias_of = [&](const Spot &s) { return P > 1 ? all.bias[s.at[0]] : g.bias; };

    const bool exchanged = copied &&
                           (S::by_columns ? parts != 7 : S::exchanges && (parts == 2 || parts == 4));
    const bool loads = threadIdx.x == S::WGS * 128; /* one thread of the last warpgroup */
    auto load_a = [&](const Spot &s, int k, int at) {
        load_piece<A_MN, S::a_rows>(ring + at * S::stage, &maps.a, full + at * 8, s.row, k * 64, g.rank,
                                    g.a_step, s.at);
    };
    auto load_b = [&](const Spot &s, int k, int at) {
        load_piece<B_MN, S::N>(ring + at * S::stage + S::a_bytes, &maps.b[product_of(s)], full + at * 8,
                               s.col, k * 64, g.rank, g.b_step, s.at);
    };
    Spot s = place(first_tile);
    /* A constant is there already, whatever the kernel before does. */
    auto load_ahead = [&]() {
        for (int k = 0; k < ahead && k < k_count; k++) {
            barrier_expect(full + k * 8, S::stage);
            load_b(s, k_begin + k, k);
        }
    };

    if (loads) {
        for (int i = 0; i < S::STAGES; i++) barrier_init(full + i * 8, 1);
        barriers_made();
        load_ahead();
    } else if (lane == 0 && group < S::WGS) {
        for (int i = threadIdx.x / 32; i < S::STAGES + 1; i += S::WGS * 4)
            barrier_init(empty + i * 8, i < S::STAGES ? S::arrivals : 1);
        barriers_made();
    } else if (threadIdx.x == 33) {
        map_prefetch(&maps.a);
        if (copied) map_prefetch(&maps.y[product_of(s)]);
    }
    __syncthreads();
    if (S::PARTS && parts > 1) cluster_arrive();
    if (!S::late) next_may_start();

    if (group == S::WGS) {
        if constexpr (S::regroup) registers_less<56>();
        if (loads) {
            previous_wait();
            const int begun = ahead < k_count ? ahead : k_count;
            for (int k = 0; k < begun; k++) load_a(s, k_begin + k, k);
            int at = begun % S::STAGES, parity = begun < S::STAGES, k = k_begin + begun;
            const int late = parts > 1 ? S::late : S::late > 0;
            int left = late ? (tiles - first_tile + step - 1) / step * k_count - begun : 0;
            if (late && left < late) next_may_start();
            for (int tile = first_tile; tile < tiles;) {
                for (; k < k_begin + k_count; k++) {
                    if (late && left-- == late) next_may_start();
                    barrier_wait(empty + at * 8, parity);
                    barrier_expect(full + at * 8, S::stage);
                    load_a(s, k, at);
                    load_b(s, k, at);
                    if (++at == S::STAGES) {
                        at = 0;
                        parity ^= 1;
                    }
                }
                tile += step;
                k = k_begin;
                if (tile < tiles) s = place(tile);
            }
        }
        __syncwarp();
        if (parts > 1) {
            cluster_wait();
            if (!exchanged) meet_parts();
        }
        return;
    }

    if constexpr (S::regroup) registers_more<224>();
    const int warp = threadIdx.x / 32 % 4;
    const int buffers = S::begin + (group * 4 + warp) * S::buffers * S::buffer; /* from the ring on */
    float *sums = (float *)(shared_wgmma + (ring - (uint32_t)__cvta_generic_to_shared(shared_wgmma)) +
                            buffers);
    Copied<S, T> copies = {g, ring + buffers};
    int count = 0;             /* pieces so far */
    if (S::TURNS && group > 0) /* the first turn is group 0's */
        warps_arrive(2, 256);
    /* Gives a buffer back to the thread that loads. */
    auto release = [&](int at) {
        if (lane == 0) barrier_arrive(empty + at * 8);
    };
    touch<S>(g, bias_of(s), n_of(s), s.col, vec, copied);
    previous_wait();
    for (int tile = first_tile, turn = 0; tile < tiles; tile += step, turn++, count += k_count) {
        if (S::TURNS && turn % S::WGS != group) continue;
        if (!S::early || turn > 0) s = place(tile);
        const Tile t = tile_at(g, s);
        const int own_row = s.row + (S::TURNS ? 0 : group * S::M) + warp * 16;
        auto begin_product = [&]() {
            copies.map = &maps.y[product_of(s)];
            copies.n = n_of(s);
            copies.bias = (const T *)bias_of(s);
        };
        float d[blocks_m][sums_n];
        if constexpr (S::early) {
            begin_product();
#pragma unroll
            for (int e = 0; e < sums_n; e++) d[0][e] = 0;
            if (copied && part == 0) copies.first(t, own_row, s.col, d[0]);
        } else if (copied && (!S::PARTS || parts == 1) && own_row < (int)g.m)
            copies.begin(t, own_row, s.col);
        int at = count % S::STAGES, parity = count / S::STAGES % 2, last = 0;
        const uint32_t a_first = ring + (S::TURNS ? 0 : group * (S::M * 128));
        if (S::TURNS) /* a wait tells one lap of the ring from the next only: nobody waits further ahead */
            warps_sync(2 + group, 256);
        auto multiply_piece = [&](int add) {
            barrier_wait(full + at * 8, parity);
            const uint64_t a = operand(a_first + at * S::stage, A_MN),
                           b = operand(ring + at * S::stage + S::a_bytes, B_MN);
#pragma unroll
            for (int i = 0; i < blocks_m; i++) settle(d[i]);
            products_begin();
#pragma unroll
            for (int part_k = 0; part_k < 4; part_k++)
#pragma unroll
                for (int i = 0; i < blocks_m; i++)
                    ortc_hopper::multiply<T, A_MN, B_MN>(d[i], a + (i * SLAB >> 4) + part_k * next_16(A_MN),
                                                         b + part_k * next_16(B_MN), add | part_k);
            products_commit();
#pragma unroll
            for (int i = 0; i < blocks_m; i++) settle(d[i]);
            last = at;
            if (++at == S::STAGES) {
                at = 0;
                parity ^= 1;
            }
        };
        if constexpr (S::early) multiply_piece(1);
#pragma unroll 1
        for (int k = S::early; k < k_count; k++) {
            const int before = last;
            multiply_piece(S::early ? 1 : k);
            if (S::early || k > 0) { /* the piece before has been read */
                products_wait<1>();
                release(before);
            }
        }
        if (S::TURNS) warps_arrive(2 + (group ^ 1), 256);
        products_wait<0>();
#pragma unroll
        for (int i = 0; i < blocks_m; i++) settle(d[i]);
        release(last);
        if (!S::PARTS || parts == 1) {
            if (!S::early) begin_product();
            if (!S::TURNS && copied && (S::early || !g.residual) && tile + step >= tiles) {
                /* The last tile: this warpgroup's part of A's buffers, from which its warps have read. */
                warps_sync(4 + group, 128);
                copies.room = ring + warp * S::stage + group * (S::M * 128);
            }
#pragma unroll
            for (int i = 0; i < blocks_m; i++) {
                if (__builtin_expect(!copied, 0))
                    store_warp<S, T>(g, t, own_row + i * 64, s.col, d[i], sums, vec,
                                     [](float(&)[8], int, int) {});
                else if (own_row + i * 64 < (int)g.m) {
                    if (i > 0) copies.begin(t, own_row + i * 64, s.col);
                    copies.store(t, s, own_row + i * 64, s.col, d[i]);
                }
            }
            continue;
        }
        if constexpr (S::PARTS) {
            cluster_wait(); /* the others' barriers are made */
            if (exchanged) {
                if constexpr (S::by_columns) {
                    exchange_columns<S, T>(g, t, own_row, s.col, part, parts, ring + S::room, parts_come,
                                           d[0]);
                    continue;
                }
                if (!S::early) begin_product();
                const bool owned = (group * 4 + warp) / (S::WGS * 4 / parts) == part && own_row < (int)g.m;
                if (!S::early && owned) copies.begin(t, own_row, s.col);
                if (exchange_parts<S>(g, own_row, part, parts, ring + S::room, parts_come, d[0]))
                    copies.store(t, s, own_row, s.col, d[0]);
                continue;
            }
            float *const all = (float *)(shared_wgmma +
                                         (ring - (uint32_t)__cvta_generic_to_shared(shared_wgmma)));
            const Band own = share_parts<S, S::WGS * 128>(g, s.row, part, parts, all, parts_come, d[0]);
            const Tile whole = {s.row, s.col, 0, 0, t.y};
            if (copied)
                finish_band<S, S::WGS * 128, T, S::early>(g, whole, own, part, parts, all);
            else
                each_of_band<S, S::WGS * 128>(own, part, parts, all, [&](float(&x)[8], int row, int col) {
                    finish<T, 8>(g, t, x, s.row + row, s.col + col, vec);
                });
            cluster_wait();
        }
    }
    if (lane == 0) tile_stores_read<0>();
#endif
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

/* `count` products of one A, whose kernel is the first one's: more than one where ortc_cu_gemm_plan_together
 * has planned them. */
template <class S, typename T, bool A_MN, bool B_MN, int P>
static int launch_wgmma(const ortc_cu_gemm *products, int count, void *queue)
{
    const auto kernel = wgmma_tiles<S, T, A_MN, B_MN, P>;
    const ortc_cu_gemm &g = products[0];
    Maps<P> maps = {};
    Together<P> all = {count, {}, {}};
    int64_t tiles = 0;
    bool vec = true, copied = true;
    for (int i = 0; i < count; i++) {
        const ortc_cu_gemm &p = products[i];
        tiles += tiles_of(p, S::tile_m, S::N);
        vec &= vectors_fit(p);
        copied &= vec && !p.c && p.out_type == p.type && p.n % 8 == 0 &&
                  (!S::early || p.alpha == 1.0f || (!p.bias && !p.residual));
        all.n[i] = (int)p.n;
        all.bias[i] = p.bias;
    }
    const int parts = !S::PARTS || g.parts < 1 || tiles > 65535 || P > 1 ? 1 : g.parts,
              pieces = (int)((g.k + 63) / 64);
    if (count > P || (P > 1 && !copied)) return cudaErrorInvalidValue;
    if (!map_of(&maps.a, g, g.a, g.m, g.a_row, g.a_col, g.a_step, A_MN, A_MN ? 64 : S::a_rows))
        return cudaErrorInvalidValue;
    for (int i = 0; i < count; i++) {
        const ortc_cu_gemm &p = products[i];
        ortc_cu_gemm result = p; /* as map_of takes one: N along its K */
        result.k = p.n;
        if (!map_of(&maps.b[i], p, p.b, p.n, p.b_col, p.b_row, p.b_step, B_MN, B_MN ? 64 : S::N) ||
            (copied && !map_of(&maps.y[i], result, p.y, p.m, p.y_row, 1, p.y_step, false, 16)))
            return cudaErrorInvalidValue;
    }
    int64_t matrices = (g.m + S::tile_m - 1) / S::tile_m;
    for (int d = 0; d < g.rank; d++) matrices *= g.dims[d];
    /* Where the kernel before leaves no room for this one, its end is near when this one begins: A's first
     * piece does not queue behind all of B. What has few rows is all B: most of the ring (measured). */
    const int64_t blocks_of_all = tiles * parts, most = (int64_t)S::BLOCKS * g.processors;
    const int ahead = !g.b_constant                       ? 0
                      : blocks_of_all * 2 <= g.processors ? S::STAGES
                      : S::late                           ? S::STAGES * 4 / 5
                                                          : S::STAGES / 2;
    const dim3 blocks = parts > 1 ? dim3((unsigned)parts, (unsigned)tiles)
                                  : dim3((unsigned)(tiles < most ? tiles : most));
    return launch_blocks(kernel, blocks, parts, S::threads, S::shared, queue, g, maps, all,
                         (int)(tiles / matrices), (int)tiles, parts, pieces / parts, pieces % parts, ahead,
                         vec, copied);
}

/* clang-format off */
/*                     rows, of A, N, warpgroups, in turns, stages, blocks, parts */
using Tile128x256 = Shape<64,   0, 256, 2, false,  4, 1>;
using Tile128x192 = Shape<64,   0, 192, 2, false,  5, 1>;
using Tile128x128 = Shape<64,   0, 128, 2, false,  6, 1>;
using Turn128x128 = Shape<128,  0, 128, 2, true,   6, 1>;
using Tile64x192  = Shape<64,   0, 192, 1, false,  6, 1>;
using Tile64x128  = Shape<64,   0, 128, 1, false,  8, 1>;
using Tile64x64   = Shape<64,   0,  64, 1, false,  6, 2>;
using Deep64x64   = Shape<64,   0,  64, 1, false, 12, 1>;
using Part128x128 = Shape<64,   0, 128, 2, false,  5, 1, true>;
using Part64x192  = Shape<64,   0, 192, 1, false,  5, 1, true>;
using Part64x128  = Shape<64,   0, 128, 1, false,  7, 1, true>;
using Part64x64   = Shape<64,   0,  64, 1, false, 11, 1, true>;
using Part32x64   = Shape<64,  32,  64, 1, false,  8, 2, true>;
using Part16x64   = Shape<64,  16,  64, 1, false, 10, 2, true>;
/* clang-format on */

template <typename T, bool B_MN> static int launch_wgmma(const ortc_cu_gemm *g, int count, void *queue)
{
#define ORTC_CASE(NAME, SHAPE, A_MN, P) \
    case ORTC_CU_GEMM_WGMMA_##NAME: return launch_wgmma<SHAPE, T, A_MN, B_MN, P>(g, count, queue)
    if (g->a_col != 1 && g->m > 1) { /* A is transposed */
        switch (g->kernel) {
            ORTC_CASE(64X64, Tile64x64, true, 1);
        default: return launch_wgmma<Turn128x128, T, true, B_MN, 1>(g, count, queue);
        }
    }
    if (count > 1) { /* those that the table of cuda_gemm.c says go together */
        switch (g->kernel) {
            ORTC_CASE(128X256, Tile128x256, false, ORTC_CU_GEMM_TOGETHER);
            ORTC_CASE(128X192, Tile128x192, false, ORTC_CU_GEMM_TOGETHER);
            ORTC_CASE(128X128_TURNS, Turn128x128, false, ORTC_CU_GEMM_TOGETHER);
            ORTC_CASE(64X192, Tile64x192, false, ORTC_CU_GEMM_TOGETHER);
            ORTC_CASE(64X128, Tile64x128, false, ORTC_CU_GEMM_TOGETHER);
            ORTC_CASE(64X64_PARTS, Deep64x64, false, ORTC_CU_GEMM_TOGETHER);
        default: return cudaErrorInvalidValue;
        }
    }
    /* K in one part: by what does not know of parts */
    if (g->kernel == ORTC_CU_GEMM_WGMMA_64X64_PARTS && g->parts <= 1)
        return launch_wgmma<Deep64x64, T, false, B_MN, 1>(g, count, queue);
    switch (g->kernel) {
        ORTC_CASE(128X256, Tile128x256, false, 1);
        ORTC_CASE(128X192, Tile128x192, false, 1);
        ORTC_CASE(128X128, Tile128x128, false, 1);
        ORTC_CASE(128X128_TURNS, Turn128x128, false, 1);
        ORTC_CASE(64X192, Tile64x192, false, 1);
        ORTC_CASE(64X128, Tile64x128, false, 1);
        ORTC_CASE(64X64, Tile64x64, false, 1);
        ORTC_CASE(128X128_PARTS, Part128x128, false, 1);
        ORTC_CASE(64X192_PARTS, Part64x192, false, 1);
        ORTC_CASE(64X128_PARTS, Part64x128, false, 1);
        ORTC_CASE(64X64_PARTS, Part64x64, false, 1);
        ORTC_CASE(32X64_PARTS, Part32x64, false, 1);
        ORTC_CASE(16X64_PARTS, Part16x64, false, 1);
    default: return cudaErrorInvalidValue;
    }
#undef ORTC_CASE
}

} // namespace ortc_gemm

#endif
