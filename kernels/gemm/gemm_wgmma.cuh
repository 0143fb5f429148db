/* kernels/gemm/gemm_wgmma.cuh: products of f16 or bf16 matrices by Hopper's tensor cores (wgmma) and copy
 * engine (TMA): sm_90a only.
 *
 * A block is one warp that loads and WGS warpgroups that multiply. Pieces of A and B, 64 of K deep, come
 * through a ring of STAGES buffers; `full` and `empty` barriers of each hand it over and back. Blocks stay
 * and take tile after tile, so that the pieces of the next tile arrive while this one is stored. Two
 * warpgroups either share a tile (each half of its rows), or take turns (TURNS): one multiplies while the
 * other stores.
 *
 * Where tiles are few, the blocks of a cluster share one, each a part of K; sums then meet in shared memory,
 * every block finishing its share of the rows, parts of K in order: no workspace, and always the same bits.
 *
 * Where they are many, two blocks can work one above the other: each copies half of B's pieces, which they
 * share, to both.
 *
 * A and B may each have K dense (K-major) or M, N dense (MN-major). What lies beyond M, N and K reads as
 * zeros. Few rows: A's buffer has A_ROWS rows, what the products read beyond it is whatever lies there and
 * ends in rows that are not stored.
 */
#ifndef ORTC_KERNELS_GEMM_WGMMA_TILES_CUH
#define ORTC_KERNELS_GEMM_WGMMA_TILES_CUH

#include "kernels/gemm/gemm_tile.cuh"
#include "kernels/gemm/wgmma_map.cuh"

namespace ortc_gemm {

using namespace ortc_hopper;

/* M: rows of a warpgroup, 64 or 128. BLOCKS: on a multiprocessor at once. PAIR: blocks in a cluster, 1 or
 * 2. */
template <int M_, int A_ROWS_, int N_, int WGS_, bool TURNS_, int STAGES_, int BLOCKS_, int PAIR_ = 1>
struct Shape {
    static constexpr int M = M_, N = N_, WGS = WGS_, STAGES = STAGES_, BLOCKS = BLOCKS_, PAIR = PAIR_;
    static constexpr bool TURNS = TURNS_, split_k = !TURNS && PAIR == 1;
    static constexpr int tile_m = TURNS ? M : M * WGS, a_rows = A_ROWS_ ? A_ROWS_ : tile_m;
    static constexpr int a_bytes = a_rows * 128, b_bytes = N * 128, stage = a_bytes + b_bytes;
    /* registers go from the loading warpgroup to the others */
    static constexpr bool regroup = WGS > 1 && BLOCKS == 1;
    static constexpr int threads = WGS * 128 + (regroup ? 128 : 32);
    /* of the epilogue */
    static constexpr int chunk = 32, chunk_pitch = chunk + 8, warp_sums = 16 * chunk_pitch * 4;
    static constexpr int split_pitch = N + 4; /* floats */
    static constexpr int ring = STAGES * stage, split = (tile_m + 8) * split_pitch * 4;
    /* after what aligns the ring */
    static constexpr int begin = (ring > split || !split_k ? ring : split) + 1024;
    static constexpr int shared = begin + WGS * 4 * warp_sums;
    static constexpr int arrivals = (TURNS ? 4 : 4 * WGS) * PAIR; /* warps that give a buffer back */
};

struct Maps {
    CUtensorMap a, b;
};

/* A tile: where it begins, its indices in the batch. */
struct Spot {
    int row, col, at[3];
};

__device__ __forceinline__ Spot spot_of(const ortc_cu_gemm &g, int tile, int tile_m, int tile_n)
{
    const int rows = ((int)g.m + tile_m - 1) / tile_m, cols = ((int)g.n + tile_n - 1) / tile_n,
              per_matrix = rows * cols;
    int matrix = tile / per_matrix;
    const int within = tile - matrix * per_matrix, band = 8;
    const int top = within / (band * cols) * band, height = rows - top < band ? rows - top : band,
              in_band = within - top * cols;
    Spot s;
    s.col = in_band / height;
    s.row = (top + in_band - s.col * height) * tile_m;
    s.col *= tile_n;
#pragma unroll
    for (int d = 2; d >= 0; d--) {
        s.at[d] = 0;
        if (d < g.rank) {
            const int next = matrix / (int)g.dims[d];
            s.at[d] = matrix - next * (int)g.dims[d];
            matrix = next;
        }
    }
    return s;
}

#ifdef ORTC_HOPPER

/* One piece of an operand, `ROWS` of M or N, of which this block copies the `share`-th part of SHARES, to as
 * many blocks. step: the batch's, 0 where all its matrices are one. */
template <bool MN_MAJOR, int ROWS, int SHARES>
__device__ __forceinline__ void load_piece(uint32_t to, const CUtensorMap *map, uint32_t barrier, int row,
                                           int k, int share, int rank, const int64_t *step,
                                           const int (&spot)[3])
{
    constexpr int copies = MN_MAJOR ? ROWS / 64 : 1;
    to += share * (MN_MAJOR ? SLAB : ROWS * 128) / SHARES;
    const int x = MN_MAJOR ? row : k,
              y = MN_MAJOR ? k + share * (64 / SHARES) : row + share * (ROWS / SHARES);
    if (rank == 0) {
#pragma unroll
        for (int i = 0; i < copies; i++)
            tile_load(to + i * SLAB, map, barrier, x + i * 64, y, SHARES > 1 ? (1 << SHARES) - 1 : 0);
    } else {
        const int at[3] = {step[0] ? spot[0] : 0, rank > 1 && step[1] ? spot[1] : 0,
                           rank > 2 && step[2] ? spot[2] : 0};
#pragma unroll
        for (int i = 0; i < copies; i++)
            tile_load(to + i * SLAB, map, barrier, x + i * 64, y, at, SHARES > 1 ? (1 << SHARES) - 1 : 0);
    }
}

template <int N> struct Number {
    static constexpr int value = N;
};
/* f(Number<I>) for I from BEGIN to END. */
template <int BEGIN, int END, typename F> __device__ __forceinline__ void each_number(F f)
{
    if constexpr (BEGIN < END) {
        f(Number<BEGIN>());
        each_number<BEGIN + 1, END>(f);
    }
}

/* 32 columns of a warp's 16 rows, whose sums are d, into shared memory. */
template <int CHUNK, int R>
__device__ __forceinline__ void put_chunk(float *sums, int pitch, const float (&d)[R])
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int j = 0; j < 4; j++) {
        float *to = sums + lane / 4 * pitch + j * 8 + lane % 4 * 2;
        *(float2 *)to = make_float2(d[CHUNK * 16 + j * 4], d[CHUNK * 16 + j * 4 + 1]);
        *(float2 *)(to + 8 * pitch) = make_float2(d[CHUNK * 16 + j * 4 + 2], d[CHUNK * 16 + j * 4 + 3]);
    }
}

/* The same, chosen while running; the sums stay in registers. */
template <int CHUNK, int R>
__device__ __forceinline__ void put_chunk_of(int chunk, float *sums, int pitch, const float (&d)[R])
{
    if constexpr (CHUNK < R / 16) {
        if (chunk == CHUNK)
            put_chunk<CHUNK>(sums, pitch, d);
        else
            put_chunk_of<CHUNK + 1>(chunk, sums, pitch, d);
    }
}

/* A warp's 16 rows from `row` on, 32 columns at a time: through shared memory, so that whole sectors are
 * stored. plain: nothing is done to the sums. */
template <class S, typename T, int R>
__device__ __forceinline__ void store_warp(const ortc_cu_gemm &g, const Tile &t, int row, int col,
                                           const float (&d)[R], float *sums, bool plain, bool vec)
{
    constexpr int pitch = S::chunk_pitch, chunks = S::N / 32;
    const int lane = threadIdx.x % 32, within = lane % 4 * 8;
    const float *from = sums + lane / 4 * pitch + within;
    if (row >= (int)g.m) return;
    if (plain) {
        const int left = (int)g.n - col - within, rows_left = (int)g.m - row - lane / 4;
        T *y = (T *)g.y + t.y + (int64_t)(row + lane / 4) * g.y_row + col + within;
        T *y8 = y + 8 * g.y_row;
        each_number<0, chunks>([&](auto chunk) {
            constexpr int c = decltype(chunk)::value;
            __syncwarp();
            put_chunk<c>(sums, pitch, d);
            __syncwarp();
#pragma unroll
            for (int p = 0; p < 2; p++) {
                const float4 lo = *(const float4 *)(from + p * 8 * pitch),
                             hi = *(const float4 *)(from + p * 8 * pitch + 4);
                const float x[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w};
                if (rows_left > p * 8 && left > c * 32)
                    store<T, 8>((p ? y8 : y) + c * 32, x, left - c * 32 < 8 ? left - c * 32 : 8, true);
            }
        });
        return;
    }
    if (vec && !g.c && g.out_type != ORTC_F32 &&
        g.n % 8 == 0) { /* pieces are whole: both rows at once, what is added on its way early */
        const int left = (int)g.n - col - within;
        const bool here[2] = {row + lane / 4 < (int)g.m, row + 8 + lane / 4 < (int)g.m};
        const int64_t at = t.y + (int64_t)(row + lane / 4) * g.y_row + col + within;
        const T *bias = (const T *)g.bias + col + within;
#pragma unroll 1
        for (int chunk = 0; chunk < chunks && col + chunk * 32 < (int)g.n; chunk++) {
            const bool inside = left > chunk * 32;
            Vector<T, 8> b = {}, r[2] = {};
            if (g.bias && inside) b = *(const Vector<T, 8> *)(const void *)(bias + chunk * 32);
#pragma unroll
            for (int p = 0; p < 2; p++)
                if (g.residual && inside && here[p])
                    r[p] = *(const Vector<T, 8> *)(const void *)((const T *)g.residual + at +
                                                                 p * 8 * g.y_row + chunk * 32);
            __syncwarp();
            put_chunk_of<0>(chunk, sums, pitch, d);
            __syncwarp();
            float x[16];
#pragma unroll
            for (int p = 0; p < 2; p++)
#pragma unroll
                for (int i = 0; i < 8; i += 4) {
                    const float4 v = *(const float4 *)(from + p * 8 * pitch + i);
                    x[p * 8 + i] = v.x, x[p * 8 + i + 1] = v.y, x[p * 8 + i + 2] = v.z,
                              x[p * 8 + i + 3] = v.w;
                }
#pragma unroll
            for (int i = 0; i < 16; i++)
                x[i] = x[i] * g.alpha + to_float(b.v[i % 8]) + to_float(r[i / 8].v[i % 8]);
            activate<true>(g, x);
#pragma unroll
            for (int p = 0; p < 2; p++) {
                const float y[8] = {x[p * 8],     x[p * 8 + 1], x[p * 8 + 2], x[p * 8 + 3],
                                    x[p * 8 + 4], x[p * 8 + 5], x[p * 8 + 6], x[p * 8 + 7]};
                if (inside && here[p]) store<T, 8>((T *)g.y + at + p * 8 * g.y_row + chunk * 32, y, 8, true);
            }
        }
        return;
    }
#pragma unroll 1
    for (int chunk = 0; chunk < chunks && col + chunk * 32 < (int)g.n; chunk++) {
        __syncwarp();
        put_chunk_of<0>(chunk, sums, pitch, d);
        __syncwarp();
#pragma unroll 1
        for (int p = 0; p < 2; p++) {
            const float4 lo = *(const float4 *)(from + p * 8 * pitch),
                         hi = *(const float4 *)(from + p * 8 * pitch + 4);
            float x[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w};
            finish<T, 8>(g, t, x, row + p * 8 + lane / 4, col + chunk * 32 + within, vec);
        }
    }
}

#endif

template <class S, typename T, bool A_MN, bool B_MN>
__global__ void __launch_bounds__(S::threads, S::BLOCKS)
    wgmma_tiles(const __grid_constant__ ortc_cu_gemm g, const __grid_constant__ Maps maps, int tiles,
                int parts, bool vec)
{
#ifdef ORTC_HOPPER
    constexpr int blocks_m = S::M / 64, sums_n = S::N / 2;
    extern __shared__ char shared_wgmma[];
    __shared__ __align__(8) uint64_t barriers[2 * S::STAGES + 1];
    const uint32_t ring = ((uint32_t)__cvta_generic_to_shared(shared_wgmma) + 1023) / 1024 * 1024;
    const uint32_t full = (uint32_t)__cvta_generic_to_shared(barriers), empty = full + S::STAGES * 8,
                   parts_come = empty + S::STAGES * 8;
    const int group = threadIdx.x / 128, lane = threadIdx.x % 32;
    const int together = S::PAIR > 1 ? S::PAIR : parts; /* blocks of a cluster */
    const int pieces = (int)((g.k + 63) / 64), part = S::PAIR > 1 ? 0 : (int)blockIdx.x % parts;
    const int k_begin = S::PAIR > 1 ? 0 : pieces * part / parts,
              k_count = S::PAIR > 1 ? pieces : pieces * (part + 1) / parts - k_begin;
    /* tiles of the whole cluster */
    const int step = (int)gridDim.x / together, first_tile = (int)blockIdx.x / together;
    const int rank = S::PAIR > 1 ? cluster_rank() : 0;
    auto place = [&](int tile) {
        Spot s = spot_of(g, tile, S::tile_m * S::PAIR, S::N);
        s.row += rank * S::tile_m;
        return s;
    };

    if (threadIdx.x == 0) {
        for (int i = 0; i < S::STAGES; i++) {
            barrier_init(full + i * 8, 1);
            barrier_init(empty + i * 8, S::arrivals);
        }
        barrier_init(parts_come, 1);
        barriers_made();
        map_prefetch(&maps.a);
        map_prefetch(&maps.b);
    }
    if (S::PAIR > 1)
        cluster_sync();
    else
        __syncthreads();
    next_may_start();

    if (group == S::WGS) { /* loads, one thread of it */
        if constexpr (S::regroup) registers_less<56>();
        if (threadIdx.x == S::WGS * 128) {
            auto load_a = [&](const Spot &s, int k, int at) {
                load_piece<A_MN, S::a_rows, 1>(ring + at * S::stage, &maps.a, full + at * 8, s.row, k * 64, 0,
                                               g.rank, g.a_step, s.at);
            };
            auto load_b = [&](const Spot &s, int k, int at) {
                load_piece<B_MN, S::N, S::PAIR>(ring + at * S::stage + S::a_bytes, &maps.b, full + at * 8,
                                                s.col, k * 64, rank, g.rank, g.b_step, s.at);
            };
            /* A constant is there already, whatever the kernel before does. */
            const int ahead = !g.b_constant ? 0 : k_count < S::STAGES ? k_count : S::STAGES;
            if (ahead) {
                const Spot s = place(first_tile);
                for (int k = 0; k < ahead; k++) {
                    barrier_expect(full + k * 8, S::stage);
                    load_b(s, k_begin + k, k);
                }
            }
            previous_wait();
            int at = 0, parity = 1, count = 0;
            for (int tile = first_tile; tile < tiles; tile += step) {
                const Spot s = place(tile);
                for (int k = k_begin; k < k_begin + k_count; k++, count++) {
                    if (count >= ahead) {
                        barrier_wait(empty + at * 8, parity);
                        barrier_expect(full + at * 8, S::stage);
                        load_b(s, k, at);
                    }
                    load_a(s, k, at);
                    if (++at == S::STAGES) {
                        at = 0;
                        parity ^= 1;
                    }
                }
            }
        }
        __syncwarp();
        if (together > 1) cluster_sync();
        return;
    }

    previous_wait();
    if constexpr (S::regroup) registers_more<224>();
    const int warp = threadIdx.x / 32 % 4;
    float *sums = (float *)(shared_wgmma + S::begin + (group * 4 + warp) * S::warp_sums);
    const bool plain = vec && g.alpha == 1.0f && !g.c && !g.bias && !g.residual && !g.act &&
                       g.out_type != ORTC_F32;
    int count = 0;             /* pieces so far */
    if (S::TURNS && group > 0) /* the first turn is group 0's */
        warps_arrive(2, 256);
    const uint32_t give_back = address_in(empty, lane % S::PAIR);
    /* Gives a buffer back to those that copy into it. */
    auto release = [&](int at) {
        if (S::PAIR == 1) {
            if (lane == 0) barrier_arrive(empty + at * 8);
        } else if (lane < S::PAIR)
            barrier_arrive_there(give_back + at * 8);
    };
    for (int tile = first_tile, turn = 0; tile < tiles; tile += step, turn++, count += k_count) {
        if (S::TURNS && turn % S::WGS != group) continue;
        const Spot s = place(tile);
        float d[blocks_m][sums_n];
        int at = count % S::STAGES, parity = count / S::STAGES % 2, last = 0;
        const uint32_t a_first = ring + (S::TURNS ? 0 : group * (S::M * 128));
        if (S::TURNS) /* a wait tells one lap of the ring from the next only: nobody waits further ahead */
            warps_sync(2 + group, 256);
#pragma unroll 1
        for (int k = 0; k < k_count; k++) {
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
                    multiply<T, A_MN, B_MN>(d[i], a + (i * SLAB >> 4) + part_k * next_16(A_MN),
                                            b + part_k * next_16(B_MN), k | part_k);
            products_commit();
#pragma unroll
            for (int i = 0; i < blocks_m; i++) settle(d[i]);
            if (k > 0) { /* the piece before this one has been read */
                products_wait<1>();
                release(last);
            }
            last = at;
            if (++at == S::STAGES) {
                at = 0;
                parity ^= 1;
            }
        }
        if (S::TURNS) warps_arrive(2 + (group ^ 1), 256);
        products_wait<0>();
#pragma unroll
        for (int i = 0; i < blocks_m; i++) settle(d[i]);
        release(last);

        Tile t = {s.row, s.col, 0, 0, 0};
#pragma unroll
        for (int i = 0; i < 3; i++) t.y += i < g.rank ? s.at[i] * g.y_step[i] : 0;
        if (!S::split_k || parts == 1) {
#pragma unroll
            for (int i = 0; i < blocks_m; i++)
                store_warp<S, T>(g, t, s.row + (S::TURNS ? 0 : group * S::M) + i * 64 + warp * 16, s.col,
                                 d[i], sums, plain, vec);
            continue;
        }
        if constexpr (S::split_k) {
            /* A part of K only. Every block finishes a band of the rows: all push their sums of it to where
             * the ring was, which all have read. */
            const int rows = (int)g.m - s.row < S::tile_m ? (int)g.m - s.row : S::tile_m,
                      band = (rows + parts - 1) / parts;
            const int own_begin = part * band, own = rows - own_begin < 0      ? 0
                                                     : rows - own_begin < band ? rows - own_begin
                                                                               : band;
            if (threadIdx.x == 0) barrier_expect(parts_come, own * parts * S::N * 4);
            cluster_sync();
#pragma unroll
            for (int i = 0; i < blocks_m; i++)
#pragma unroll
                for (int e = 0; e < 2; e++) {
                    const int row = group * S::M + i * 64 + warp * 16 + lane / 4 + e * 8,
                              owner = row < rows ? row / band : 0;
                    const uint32_t to = address_in(
                        ring + ((part * band + row - owner * band) * S::split_pitch + lane % 4 * 2) * 4,
                        owner);
                    const uint32_t barrier = address_in(parts_come, owner);
#pragma unroll
                    for (int j = 0; j < S::N / 8 && row < rows; j++)
                        push(to + j * 32, d[i][j * 4 + e * 2], d[i][j * 4 + e * 2 + 1], barrier);
                }
            barrier_wait(parts_come, 0);
            const float *all = (const float *)(shared_wgmma +
                                               (ring - (uint32_t)__cvta_generic_to_shared(shared_wgmma)));
            constexpr int columns = S::N / 8;
#pragma unroll 1
            for (int p = (int)threadIdx.x; p < own * columns; p += S::WGS * 128) {
                const int row = p / columns, col = p % columns * 8;
                const float *from = all + row * S::split_pitch + col;
                float x[8] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll 4
                for (int b = 0; b < parts; b++) {
                    const float4 lo = *(const float4 *)(from + b * band * S::split_pitch),
                                 hi = *(const float4 *)(from + b * band * S::split_pitch + 4);
                    x[0] += lo.x, x[1] += lo.y, x[2] += lo.z, x[3] += lo.w, x[4] += hi.x, x[5] += hi.y,
                        x[6] += hi.z, x[7] += hi.w;
                }
                finish<T, 8>(g, t, x, s.row + own_begin + row, s.col + col, vec);
            }
        }
    }
    if (S::PAIR > 1) cluster_sync(); /* others may still copy, or give back, to here */
#endif
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

template <class S, typename T, bool A_MN, bool B_MN>
static int launch_wgmma(const ortc_cu_gemm &g, void *queue)
{
    const auto kernel = wgmma_tiles<S, T, A_MN, B_MN>;
    const int64_t tiles = tiles_of(g, S::tile_m * S::PAIR, S::N); /* of a cluster */
    const int parts = S::PAIR > 1 || g.parts < 1 ? 1 : g.parts, together = S::PAIR > 1 ? S::PAIR : parts;
    const int64_t most = (int64_t)S::BLOCKS * g.processors / S::PAIR;
    Maps maps;
    if (!map_of(&maps.a, g, g.a, g.m, g.a_row, g.a_col, g.a_step, A_MN, A_MN ? 64 : S::a_rows) ||
        !map_of(&maps.b, g, g.b, g.n, g.b_col, g.b_row, g.b_step, B_MN, B_MN ? 64 / S::PAIR : S::N / S::PAIR))
        return cudaErrorInvalidValue;
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, S::shared);
    if (e != cudaSuccess) return e;
    cudaLaunchAttribute with[2] = {};
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3((unsigned)((parts > 1 || tiles < most ? tiles : most) * together));
    launch.blockDim = dim3(S::threads);
    launch.dynamicSmemBytes = S::shared;
    launch.stream = (cudaStream_t)queue;
    launch.attrs = with;
    with[launch.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    with[launch.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    if (together > 1) {
        with[launch.numAttrs].id = cudaLaunchAttributeClusterDimension;
        with[launch.numAttrs].val.clusterDim.x = (unsigned)together;
        with[launch.numAttrs].val.clusterDim.y = with[launch.numAttrs].val.clusterDim.z = 1;
        launch.numAttrs++;
    }
    e = cudaLaunchKernelEx(&launch, kernel, g, maps, (int)tiles, parts, vectors_fit(g));
    return e != cudaSuccess ? e : cudaGetLastError();
}

/* clang-format off */
/*                     rows, of A, N, warpgroups, in turns, stages, blocks, pair */
using Pair128x256 = Shape<64,  0, 256, 2, false, 4, 1, 2>;
using Tile128x256 = Shape<64,  0, 256, 2, false, 4, 1>;
using Tile128x192 = Shape<64,  0, 192, 2, false, 5, 1>;
using Tile128x128 = Shape<64,  0, 128, 2, false, 6, 1>;
using Turn128x128 = Shape<128, 0, 128, 2, true,  6, 1>;
using Tile128x64  = Shape<64,  0,  64, 2, false, 8, 1>;
using Tile64x128  = Shape<64,  0, 128, 1, false, 4, 2>;
using Tile64x64   = Shape<64,  0,  64, 1, false, 6, 2>;
using Deep64x64   = Shape<64,  0,  64, 1, false, 12, 1>;
using Tile16x128  = Shape<64, 16, 128, 1, false, 5, 2>;
using Tile16x64   = Shape<64, 16,  64, 1, false, 9, 2>;
/* clang-format on */

template <typename T, bool B_MN> static int launch_wgmma(const ortc_cu_gemm &g, void *queue)
{
    if (g.a_col != 1 && g.m > 1) /* A is transposed */
        return g.kernel == ORTC_CU_GEMM_WGMMA_64X64 ? launch_wgmma<Tile64x64, T, true, B_MN>(g, queue)
                                                    : launch_wgmma<Turn128x128, T, true, B_MN>(g, queue);
    switch (g.kernel) {
    case ORTC_CU_GEMM_WGMMA_128X256_PAIR: return launch_wgmma<Pair128x256, T, false, B_MN>(g, queue);
    case ORTC_CU_GEMM_WGMMA_128X256: return launch_wgmma<Tile128x256, T, false, B_MN>(g, queue);
    case ORTC_CU_GEMM_WGMMA_128X192: return launch_wgmma<Tile128x192, T, false, B_MN>(g, queue);
    case ORTC_CU_GEMM_WGMMA_128X128: return launch_wgmma<Tile128x128, T, false, B_MN>(g, queue);
    case ORTC_CU_GEMM_WGMMA_128X128_TURNS: return launch_wgmma<Turn128x128, T, false, B_MN>(g, queue);
    case ORTC_CU_GEMM_WGMMA_128X64: return launch_wgmma<Tile128x64, T, false, B_MN>(g, queue);
    case ORTC_CU_GEMM_WGMMA_64X128: return launch_wgmma<Tile64x128, T, false, B_MN>(g, queue);
    case ORTC_CU_GEMM_WGMMA_64X64: return launch_wgmma<Tile64x64, T, false, B_MN>(g, queue);
    case ORTC_CU_GEMM_WGMMA_64X64_DEEP: return launch_wgmma<Deep64x64, T, false, B_MN>(g, queue);
    case ORTC_CU_GEMM_WGMMA_16X128: return launch_wgmma<Tile16x128, T, false, B_MN>(g, queue);
    default: return launch_wgmma<Tile16x64, T, false, B_MN>(g, queue);
    }
}

} // namespace ortc_gemm

#endif
