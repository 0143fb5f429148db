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
 * Sums leave as 16 x 64 elements a warp: through swizzled shared memory, whence the copy engine stores them
 * while the next are made. What this cannot (odd pitches, C, f32 out of 16-bit operands) goes element by
 * element.
 *
 * A and B may each have K dense (K-major) or M, N dense (MN-major). What lies beyond M, N and K reads as
 * zeros. Few rows: A's buffer has A_ROWS rows, what the products read beyond it is whatever lies there and
 * ends in rows that are not stored.
 */
#ifndef ORTC_KERNELS_GEMM_WGMMA_TILES_CUH
#define ORTC_KERNELS_GEMM_WGMMA_TILES_CUH

#include "kernels/gemm/gemm_tile.cuh"
#include "kernels/gemm/mma.cuh"
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
    static constexpr int split_pitch = N + 4; /* floats */
    static constexpr int ring = STAGES * stage, split = (tile_m + 8) * split_pitch * 4;
    /* from what aligns the ring on */
    static constexpr int begin = ((ring > split || !split_k ? ring : split) + 1023) / 1024 * 1024;
    /* of the epilogue: a warp's buffers, two where they fit: 16 x 64 elements of 16 bits or 16 x 32 floats */
    static constexpr int buffer = 2048, buffers_of_all = WGS * 4 * buffer, chunk_pitch = 32;
    static constexpr int buffers = (1024 + begin + 2 * buffers_of_all + 1280) * BLOCKS <= 233472 ? 2 : 1;
    static constexpr int shared = 1024 + begin + buffers * buffers_of_all;
    static constexpr int arrivals = (TURNS ? 4 : 4 * WGS) * PAIR; /* warps that give a buffer back */
    static_assert((shared + 1280) * BLOCKS <= 233472, "what a multiprocessor has");
};

struct Maps {
    CUtensorMap a, b, y;
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

/* Two sums as elements of T, side by side. */
template <typename T> __device__ __forceinline__ uint32_t pair_of(float x, float y)
{
    const T pair[2] = {from_float<T>(x), from_float<T>(y)};
    uint32_t both;
    memcpy(&both, pair, 4);
    return both;
}
template <typename T> __device__ __forceinline__ float2 floats_of(uint32_t both)
{
    T pair[2];
    memcpy(pair, &both, 4);
    return make_float2(to_float(pair[0]), to_float(pair[1]));
}

/* How a warp stores its 16 rows, 64 columns at a time, by the copy engine (the header of this file). */
template <class S, typename T> struct Copied {
    const ortc_cu_gemm &g;
    const CUtensorMap *map;
    uint32_t buffers;
    uint32_t room = 0; /* of one buffer a chunk, for the last tile: where the ring was */
    int used = 0;      /* buffers, so far */

    static constexpr int chunks = S::N / 64;
    __device__ __forceinline__ uint32_t buffer(int chunk) const
    {
        return room ? room + chunk * S::buffer : buffers + (used + chunk) % S::buffers * S::buffer;
    }
    /* The 16 bytes where this lane's row of a matrix begins: `eight` of 8 columns. */
    static __device__ __forceinline__ uint32_t at(uint32_t buffer, int row, int eight)
    {
        return buffer + row * 128 + (eight ^ (row & 7)) * 16;
    }
    /* The residual's chunk into the buffer it will leave from. */
    __device__ __forceinline__ void begin(const Tile &t, int row, int col, int chunk) const
    {
        const int lane = threadIdx.x % 32;
        if (!g.residual || chunk >= chunks) return;
        const T *from = (const T *)g.residual + t.y + (int64_t)row * g.y_row + col + chunk * 64;
#pragma unroll
        for (int i = lane; i < 128; i += 32) {
            const bool there = row + i / 8 < (int)g.m && col + chunk * 64 + i % 8 * 8 < (int)g.n;
            copy16(at(buffer(chunk), i / 8, i % 8),
                   there ? (const void *)(from + (int64_t)(i / 8) * g.y_row + i % 8 * 8) : g.residual,
                   there ? 16 : 0);
        }
        copies_commit();
    }
    /* Before the first chunk, as early as what is added may be read. */
    __device__ __forceinline__ void begin(const Tile &t, int row, int col) const
    {
        if (!g.residual) return;
        if (threadIdx.x % 32 == 0) tile_stores_read<0>();
        __syncwarp();
#pragma unroll
        for (int c = 0; c < S::buffers; c++) begin(t, row, col, c);
    }
    template <int R>
    __device__ __forceinline__ void store(const Tile &t, const Spot &s, int row, int col, const float (&d)[R])
    {
        const int lane = threadIdx.x % 32;
#pragma unroll 1
        for (int c = 0; c < chunks;
             c++) { /* in a loop: so much code in a row is fetched slower than it runs */
            const uint32_t to = buffer(c);
            float sums[32];
            each_number<0, chunks>([&](auto number) {
                if (c == decltype(number)::value)
#pragma unroll
                    for (int e = 0; e < 32; e++) sums[e] = d[decltype(number)::value * 32 + e];
            });
            uint32_t bias[8] = {};
            if (g.bias)
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    const int at = col + c * 64 + j * 8 + lane % 4 * 2;
                    if (at < (int)g.n) bias[j] = __ldg((const uint32_t *)((const T *)g.bias + at));
                }
            if (g.residual) {
                if (S::buffers > 1 && c + 1 < chunks)
                    copies_wait<1>();
                else
                    copies_wait<0>();
            } else if (!room && lane == 0)
                tile_stores_read<S::buffers - 1>();
            __syncwarp();
#pragma unroll
            for (int k = 0; k < 4; k++) { /* 16 columns */
                const uint32_t there = at(to, lane % 16, k * 2 + lane / 16);
                uint32_t r[4] = {};
                float x[8];
                if (g.residual) load_matrices(r, there);
#pragma unroll
                for (int e = 0; e < 4; e++) {
                    const float2 b = floats_of<T>(bias[k * 2 + e / 2]), more = floats_of<T>(r[e]);
                    const int from = k * 8 + e * 2;
                    x[e * 2] = sums[from] * g.alpha + b.x + more.x;
                    x[e * 2 + 1] = sums[from + 1] * g.alpha + b.y + more.y;
                }
                if (g.act) activate<true>(g, x);
#pragma unroll
                for (int e = 0; e < 4; e++) r[e] = pair_of<T>(x[e * 2], x[e * 2 + 1]);
                store_matrices(there, r);
            }
            tile_written();
            __syncwarp();
            if (lane == 0) {
                if (g.rank == 0)
                    tile_store(map, to, col + c * 64, row);
                else
                    tile_store(map, to, col + c * 64, row, s.at);
                tile_stores_commit();
            }
            if (g.residual && c + S::buffers < chunks) {
                if (lane == 0) tile_stores_read<0>();
                __syncwarp();
                begin(t, row, col, c + S::buffers);
            }
        }
        used += chunks;
    }
};

/* 32 columns of a warp's 16 rows, whose sums are d, into shared memory: pairs, swapped so that no bank is met
 * twice. */
template <int CHUNK, int R>
__device__ __forceinline__ void put_chunk(float *sums, int pitch, const float (&d)[R])
{
    const int lane = threadIdx.x % 32;
    __syncwarp();
#pragma unroll
    for (int j = 0; j < 4; j++) {
        float *to = sums + lane / 4 * pitch + (j * 8 + lane % 4 * 2 ^ (lane / 4 & 3) * 8);
        *(float2 *)to = make_float2(d[CHUNK * 16 + j * 4], d[CHUNK * 16 + j * 4 + 1]);
        *(float2 *)(to + 8 * pitch) = make_float2(d[CHUNK * 16 + j * 4 + 2], d[CHUNK * 16 + j * 4 + 3]);
    }
    __syncwarp();
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

/* A warp's 16 rows from `row` on, 32 columns at a time, by any epilogue. repair(x, row, col) may change eight
 * sums before. */
template <class S, typename T, int R, typename F>
__device__ __forceinline__ void store_warp(const ortc_cu_gemm &g, const Tile &t, int row, int col,
                                           const float (&d)[R], float *sums, bool vec, F repair)
{
    constexpr int pitch = S::chunk_pitch, chunks = S::N / 32;
    const int lane = threadIdx.x % 32, within = lane % 4 * 8;
    const float *from = sums + lane / 4 * pitch + (within ^ (lane / 4 & 3) * 8);
    if (row >= (int)g.m) return;
#pragma unroll 1
    for (int chunk = 0; chunk < chunks && col + chunk * 32 < (int)g.n; chunk++) {
        put_chunk_of<0>(chunk, sums, pitch, d);
#pragma unroll 1
        for (int p = 0; p < 2; p++) {
            const float4 lo = *(const float4 *)(from + p * 8 * pitch),
                         hi = *(const float4 *)(from + p * 8 * pitch + 4);
            float x[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w};
            repair(x, row + p * 8 + lane / 4, col + chunk * 32 + within);
            finish<T, 8>(g, t, x, row + p * 8 + lane / 4, col + chunk * 32 + within, vec);
        }
    }
}

/* Blocks of a cluster that each have sums over a part of K. Every block finishes a band of the tile's rows:
 * all push their sums of it to where the ring was, which all have read. */
struct Band {
    int begin, rows, pitch; /* in the tile; what there is; rows of a part */
};
/* Called by the warpgroups that multiply, one block of 64 rows each; the others meet them in a
 * cluster_sync. */
template <class S, int R>
__device__ __forceinline__ Band share_parts(const ortc_cu_gemm &g, int first_row, int part, int parts,
                                            uint32_t ring, uint32_t parts_come, const float (&d)[R])
{
    const int rows = (int)g.m - first_row < S::tile_m ? (int)g.m - first_row : S::tile_m,
              band = (rows + parts - 1) / parts, begin = part * band, left = rows - begin,
              own = left < 0      ? 0
                    : left < band ? left
                                  : band;
    const int lane = threadIdx.x % 32;
    if (threadIdx.x == 0) barrier_expect(parts_come, own * parts * S::N * 4);
    cluster_sync();
#pragma unroll
    for (int e = 0; e < 2; e++) {
        const int row = threadIdx.x / 32 * 16 + lane / 4 + e * 8, owner = row < rows ? row / band : 0;
        const uint32_t to =
            address_in(ring + ((part * band + row - owner * band) * S::split_pitch + lane % 4 * 2) * 4,
                       owner);
        const uint32_t barrier = address_in(parts_come, owner);
#pragma unroll
        for (int j = 0; j < S::N / 8 && row < rows; j++)
            push(to + j * 32, d[j * 4 + e * 2], d[j * 4 + e * 2 + 1], barrier);
    }
    barrier_wait(parts_come, 0);
    return {begin, own, band};
}
/* f(eight sums, row, column of the tile) for this block's band, parts of K in order. */
template <class S, int THREADS, typename F>
__device__ __forceinline__ void each_of_band(const Band &own, int parts, const float *all, F f)
{
    constexpr int columns = S::N / 8;
#pragma unroll 1
    for (int p = (int)threadIdx.x; p < own.rows * columns; p += THREADS) {
        const int row = p / columns, col = p % columns * 8;
        const float *from = all + row * S::split_pitch + col;
        float x[8] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll 4
        for (int b = 0; b < parts; b++) {
            const float4 lo = *(const float4 *)(from + b * own.pitch * S::split_pitch),
                         hi = *(const float4 *)(from + b * own.pitch * S::split_pitch + 4);
            x[0] += lo.x, x[1] += lo.y, x[2] += lo.z, x[3] += lo.w, x[4] += hi.x, x[5] += hi.y, x[6] += hi.z,
                x[7] += hi.w;
        }
        f(x, own.begin + row, col);
    }
}

#endif

template <class S, typename T, bool A_MN, bool B_MN>
__global__ void __launch_bounds__(S::threads, S::BLOCKS)
    wgmma_tiles(const __grid_constant__ ortc_cu_gemm g, const __grid_constant__ Maps maps, int tiles,
                int parts, bool vec, bool copied)
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
        if (copied) map_prefetch(&maps.y);
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
    const int buffers = S::begin + (group * 4 + warp) * S::buffers * S::buffer; /* from the ring on */
    float *sums = (float *)(shared_wgmma + (ring - (uint32_t)__cvta_generic_to_shared(shared_wgmma)) +
                            buffers);
    Copied<S, T> copies = {g, &maps.y, ring + buffers};
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
        Tile t = {s.row, s.col, 0, 0, 0};
#pragma unroll
        for (int i = 0; i < 3; i++) t.y += i < g.rank ? s.at[i] * g.y_step[i] : 0;
        const int own_row = s.row + (S::TURNS ? 0 : group * S::M) + warp * 16;
        if (copied && own_row < (int)g.m) copies.begin(t, own_row, s.col);
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
                    ortc_hopper::multiply<T, A_MN, B_MN>(d[i], a + (i * SLAB >> 4) + part_k * next_16(A_MN),
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
        if (!S::split_k || parts == 1) {
            if (!S::TURNS && copied && !g.residual && tile + step >= tiles) {
                /* The last tile: this warpgroup's part of A's buffers, from which its warps have read. */
                warps_sync(4 + group, 128);
                copies.room = ring + warp * S::stage + group * (S::M * 128);
            }
#pragma unroll
            for (int i = 0; i < blocks_m; i++) {
                if (!copied)
                    store_warp<S, T>(g, t, own_row + i * 64, s.col, d[i], sums, vec,
                                     [](float(&)[8], int, int) {});
                else if (own_row + i * 64 < (int)g.m) {
                    if (i > 0) copies.begin(t, own_row + i * 64, s.col);
                    copies.store(t, s, own_row + i * 64, s.col, d[i]);
                }
            }
            continue;
        }
        if constexpr (S::split_k) {
            const Band own = share_parts<S>(g, s.row, part, parts, ring, parts_come, d[0]);
            each_of_band<S, S::WGS * 128>(
                own, parts,
                (const float *)(shared_wgmma + (ring - (uint32_t)__cvta_generic_to_shared(shared_wgmma))),
                [&](float(&x)[8], int row, int col) {
                    finish<T, 8>(g, t, x, s.row + row, s.col + col, vec);
                });
        }
    }
    if (lane == 0) tile_stores_read<0>();
    if (S::PAIR > 1) cluster_sync(); /* others may still copy, or give back, to here */
#endif
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

/* So many blocks, `together` in a cluster, which may start while the kernel before ends. */
template <typename K, typename... More>
static int launch_blocks(K kernel, const ortc_cu_gemm &g, int64_t blocks, int together, int threads,
                         int shared, void *queue, More... more)
{
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (e != cudaSuccess) return e;
    cudaLaunchAttribute with[2] = {};
    cudaLaunchConfig_t launch = {};
    launch.gridDim = dim3((unsigned)blocks);
    launch.blockDim = dim3((unsigned)threads);
    launch.dynamicSmemBytes = (size_t)shared;
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
    e = cudaLaunchKernelEx(&launch, kernel, g, more...);
    return e != cudaSuccess ? e : cudaGetLastError();
}

template <class S, typename T, bool A_MN, bool B_MN>
static int launch_wgmma(const ortc_cu_gemm &g, void *queue)
{
    const auto kernel = wgmma_tiles<S, T, A_MN, B_MN>;
    const int64_t tiles = tiles_of(g, S::tile_m * S::PAIR, S::N); /* of a cluster */
    const int parts = S::PAIR > 1 || g.parts < 1 ? 1 : g.parts, together = S::PAIR > 1 ? S::PAIR : parts;
    const int64_t most = (int64_t)S::BLOCKS * g.processors / S::PAIR;
    const bool vec = vectors_fit(g),
               copied = vec && !g.c && g.out_type == g.type && g.n % 8 == 0 && (parts == 1);
    Maps maps = {};
    ortc_cu_gemm result = g; /* as map_of takes one: N along its K */
    result.k = g.n;
    if (!map_of(&maps.a, g, g.a, g.m, g.a_row, g.a_col, g.a_step, A_MN, A_MN ? 64 : S::a_rows) ||
        !map_of(&maps.b, g, g.b, g.n, g.b_col, g.b_row, g.b_step, B_MN, (B_MN ? 64 : S::N) / S::PAIR) ||
        (copied && !map_of(&maps.y, result, g.y, g.m, g.y_row, 1, g.y_step, false, 16)))
        return cudaErrorInvalidValue;
    return launch_blocks(kernel, g, (parts > 1 || tiles < most ? tiles : most) * together, together,
                         S::threads, S::shared, queue, maps, (int)tiles, parts, vec, copied);
}

/* clang-format off */
/*                     rows, of A, N, warpgroups, in turns, stages, blocks, pair */
using Pair128x256 = Shape<64,  0, 256, 2, false, 4, 1, 2>;
using Pair128x192 = Shape<64,  0, 192, 2, false, 5, 1, 2>;
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
#define ORTC_CASE(NAME, SHAPE) \
    case ORTC_CU_GEMM_WGMMA_##NAME: return launch_wgmma<SHAPE, T, false, B_MN>(g, queue)
    switch (g.kernel) {
        ORTC_CASE(128X256_PAIR, Pair128x256);
        ORTC_CASE(128X256, Tile128x256);
        ORTC_CASE(128X192, Tile128x192);
        ORTC_CASE(128X128, Tile128x128);
        ORTC_CASE(128X128_TURNS, Turn128x128);
        ORTC_CASE(128X64, Tile128x64);
        ORTC_CASE(64X128, Tile64x128);
        ORTC_CASE(64X64, Tile64x64);
        ORTC_CASE(64X64_DEEP, Deep64x64);
        ORTC_CASE(16X128, Tile16x128);
        ORTC_CASE(16X64, Tile16x64);
        ORTC_CASE(128X192_PAIR, Pair128x192);
    default: return cudaErrorInvalidValue;
    }
#undef ORTC_CASE
}

} // namespace ortc_gemm

#endif
