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
#include "kernels/gemm/mma.cuh"
#include "kernels/gemm/wgmma_map.cuh"

namespace ortc_gemm {

using namespace ortc_hopper;

/* M: rows of a warpgroup, 64 or 128. BLOCKS: on a multiprocessor at once. PAIR: blocks one above the other in
 * a cluster, 1 or 2. PARTS: K can be taken in parts. */
template <int M_, int A_ROWS_, int N_, int WGS_, bool TURNS_, int STAGES_, int BLOCKS_, int PAIR_ = 1,
          bool PARTS_ = false>
struct Shape {
    static constexpr int M = M_, N = N_, WGS = WGS_, STAGES = STAGES_, BLOCKS = BLOCKS_, PAIR = PAIR_;
    static constexpr bool TURNS = TURNS_, PARTS = PARTS_;
    static_assert(!PARTS || (!TURNS && PAIR == 1), "a cluster is one or the other");
    /* One warpgroup has time while the first pieces come: its sums begin with what is added. */
    static constexpr bool early = WGS == 1;
    static constexpr int tile_m = TURNS ? M : M * WGS, a_rows = A_ROWS_ ? A_ROWS_ : tile_m;
    static constexpr int a_bytes = a_rows * 128, b_bytes = N * 128, stage = a_bytes + b_bytes;
    /* registers go from the loading warpgroup to the others */
    static constexpr bool regroup = WGS > 1 && BLOCKS == 1;
    static constexpr int threads = WGS * 128 + (regroup ? 128 : 32);
    static constexpr int split_pitch = N + 8; /* floats; no bank is met twice */
    static constexpr int ring = STAGES * stage, split = 2 * tile_m * split_pitch * 4;
    /* from what aligns the ring on */
    static constexpr int begin = ((ring > split || !PARTS ? ring : split) + 1023) / 1024 * 1024;
    /* of the epilogue: a warp's buffers, two where they fit: 16 x 64 elements of 16 bits or 16 x 32 floats */
    static constexpr int buffer = 2048, buffers_of_all = WGS * 4 * buffer, chunk_pitch = 32;
    static constexpr int buffers = (1024 + begin + 2 * buffers_of_all + 1280) * BLOCKS <= 233472 ? 2 : 1;
    static constexpr int shared = 1024 + begin + buffers * buffers_of_all;
    static constexpr int arrivals = (TURNS ? 4 : 4 * WGS) * PAIR; /* warps that give a buffer back */
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

/* A tile: where it begins, its indices in the batch; at[0] of products side by side: in which it is. */
struct Spot {
    int row, col, at[3];
};

/* cols: of tiles. */
__device__ __forceinline__ Spot spot_of(const ortc_cu_gemm &g, int cols, int tile, int tile_m, int tile_n)
{
    const int rows = ((int)g.m + tile_m - 1) / tile_m, per_matrix = rows * cols;
    int matrix = g.rank ? tile / per_matrix : 0;
    const int within = tile - matrix * per_matrix, band = 8;
    const int top = rows > band ? within / (band * cols) * band : 0,
              height = rows - top < band ? rows - top : band, in_band = within - top * cols;
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

/* Which of the products side by side it is in, and where. */
template <int P> __device__ __forceinline__ void find_product(const Together<P> &all, int tile_n, Spot &s)
{
    for (int width; s.at[0] + 1 < all.count; s.at[0]++, s.col -= width) {
        width = (all.n[s.at[0]] + tile_n - 1) / tile_n * tile_n;
        if (s.col < width) return;
    }
}

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
    uint32_t buffers;
    const CUtensorMap *map = NULL; /* of the tile's product, as n and bias */
    int n = 0;
    const T *bias = NULL;
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
    /* The residual's chunk into the buffer it will leave from (where products stand side by side, none has
     * one). */
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
    /* Bias and residual to sums that begin as zeros; early tiles, alpha 1. */
    template <int R>
    __device__ __forceinline__ void first(const Tile &t, int row, int col, float (&d)[R]) const
    {
        const int lane = threadIdx.x % 32, top = row + lane / 4;
        if (!bias && !g.residual) return;
#pragma unroll
        for (int j = 0; j < S::N / 8; j++) {
            const int at = col + j * 8 + lane % 4 * 2;
            const bool there = at < n;
            float2 b = make_float2(0, 0);
            if (bias && there) b = floats_of<T>(__ldg((const uint32_t *)(bias + at)));
#pragma unroll
            for (int e = 0; e < 2; e++) {
                float2 more = make_float2(0, 0);
                if (g.residual && there && top + e * 8 < (int)g.m)
                    more = floats_of<T>(*(const uint32_t *)((const T *)g.residual + t.y +
                                                            (int64_t)(top + e * 8) * g.y_row + at));
                d[j * 4 + e * 2] = b.x + more.x;
                d[j * 4 + e * 2 + 1] = b.y + more.y;
            }
        }
    }
    /* 64 columns of sums, by alpha and the activation, from the buffer. */
    __device__ __forceinline__ void leave(const Spot &s, int row, int col, uint32_t to,
                                          float (&sums)[32]) const
    {
        const int lane = threadIdx.x % 32;
        if (__builtin_expect(g.act, 0)) activate<true>(g, sums); /* so much code stands out of the way */
#pragma unroll
        for (int k = 0; k < 4; k++) { /* 16 columns */
            const float *x = sums + k * 8;
            const uint32_t r[4] = {pair_of<T>(x[0], x[1]), pair_of<T>(x[2], x[3]), pair_of<T>(x[4], x[5]),
                                   pair_of<T>(x[6], x[7])};
            store_matrices(at(to, lane % 16, k * 2 + lane / 16), r);
        }
        tile_written();
        __syncwarp();
        if (lane == 0) {
            if (g.rank == 0)
                tile_store(map, to, col, row);
            else
                tile_store(map, to, col, row, s.at);
            tile_stores_commit();
        }
    }
    template <int R>
    __device__ __forceinline__ void store(const Tile &t, const Spot &s, int row, int col, const float (&d)[R])
    {
        const int lane = threadIdx.x % 32;
        constexpr int in_a_row = S::early ? chunks : 1;
#pragma unroll in_a_row
        for (int c = 0; c < chunks;
             c++) { /* in a loop: so much code in a row is fetched slower than it runs */
            const uint32_t to = buffer(c);
            float sums[32];
            each_number<0, chunks>([&](auto number) {
                if (c == decltype(number)::value)
#pragma unroll
                    for (int e = 0; e < 32; e++) sums[e] = d[decltype(number)::value * 32 + e];
            });
            if (g.alpha != 1.0f)
#pragma unroll
                for (int e = 0; e < 32; e++) sums[e] *= g.alpha;
            if (!S::early && bias)
#pragma unroll
                for (int j = 0; j < 8; j++) {
                    const int at = col + c * 64 + j * 8 + lane % 4 * 2;
                    float2 b = make_float2(0, 0);
                    if (at < n) b = floats_of<T>(__ldg((const uint32_t *)(bias + at)));
                    sums[j * 4] += b.x, sums[j * 4 + 1] += b.y, sums[j * 4 + 2] += b.x,
                        sums[j * 4 + 3] += b.y;
                }
            if (!S::early && g.residual) {
                if (S::buffers > 1 && c + 1 < chunks)
                    copies_wait<1>();
                else
                    copies_wait<0>();
                __syncwarp();
#pragma unroll
                for (int k = 0; k < 4; k++) {
                    uint32_t r[4];
                    load_matrices(r, at(to, lane % 16, k * 2 + lane / 16));
#pragma unroll
                    for (int e = 0; e < 4; e++) {
                        const float2 more = floats_of<T>(r[e]);
                        sums[k * 8 + e * 2] += more.x, sums[k * 8 + e * 2 + 1] += more.y;
                    }
                }
            } else if (!room) {
                if (lane == 0) tile_stores_read<S::buffers - 1>();
                __syncwarp();
            }
            leave(s, row, col + c * 64, to, sums);
            if (!S::early && g.residual && c + S::buffers < chunks) {
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
 * all put their sums where the ring was, which all have read, whence the copy engine takes each band to its
 * owner, behind the owner's own. Clusters are parts x 1 of a grid of parts x tiles. */
struct Band {
    int begin, rows, pitch; /* in the tile; what there is; rows of a part */
};
/* Called by the warpgroups that multiply, one block of 64 rows each; the others call meet_parts. sums: the
 * ring. parts_come: a barrier of one arrival, used nowhere else. */
template <class S, int THREADS, int R>
__device__ __forceinline__ Band share_parts(const ortc_cu_gemm &g, int first_row, int part, int parts,
                                            float *sums, uint32_t parts_come, const float (&d)[R])
{
    const int rows = (int)g.m - first_row < S::tile_m ? (int)g.m - first_row : S::tile_m,
              band = (rows + parts - 1) / parts;
    auto rows_of = [&](int p) {
        const int left = rows - p * band;
        return left < 0 ? 0 : left < band ? left : band;
    };
    const Band own = {part * band, rows_of(part), band};
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, col = threadIdx.x % 4 * 2;
    if (threadIdx.x == 0) barrier_expect(parts_come, own.rows * (parts - 1) * S::split_pitch * 4);
    warps_sync(1, THREADS);
    cluster_arrive();
#pragma unroll
    for (int e = 0; e < 2; e++) {
        float *to = sums + (row + e * 8) * S::split_pitch + col;
#pragma unroll
        for (int j = 0; j < S::N / 8 && row + e * 8 < rows; j++)
            *(float2 *)(to + j * 8) = make_float2(d[j * 4 + e * 2], d[j * 4 + e * 2 + 1]);
    }
    tile_written();
    cluster_wait();
    warps_sync(1, THREADS);
    const int to = (int)threadIdx.x, slot = part - (part > to);
    if (to < parts && to != part && rows_of(to) > 0) {
        const uint32_t ring = (uint32_t)__cvta_generic_to_shared(sums);
        push(address_in(ring + (S::tile_m + slot * band) * S::split_pitch * 4, to),
             ring + to * band * S::split_pitch * 4, rows_of(to) * S::split_pitch * 4,
             address_in(parts_come, to));
    }
    barrier_wait(parts_come, 0);
    return own;
}
/* f(eight sums, row, column of the tile) for this block's band, parts of K in order. */
template <class S, int THREADS, typename F>
__device__ __forceinline__ void each_of_band(const Band &own, int part, int parts, const float *sums, F f)
{
    constexpr int columns = S::N / 8;
#pragma unroll 1
    for (int p = (int)threadIdx.x; p < own.rows * columns; p += THREADS) {
        const int row = p / columns, col = p % columns * 8;
        float x[8] = {0, 0, 0, 0, 0, 0, 0, 0};
#pragma unroll 1
        for (int b = 0; b < parts; b++) {
            const int at = b == part ? own.begin : S::tile_m + (b - (b > part)) * own.pitch;
            const float *from = sums + (at + row) * S::split_pitch + col;
            const float4 lo = *(const float4 *)from, hi = *(const float4 *)(from + 4);
            x[0] += lo.x, x[1] += lo.y, x[2] += lo.z, x[3] += lo.w, x[4] += hi.x, x[5] += hi.y, x[6] += hi.z,
                x[7] += hi.w;
        }
        f(x, own.begin + row, col);
    }
    cluster_sync(); /* what was pushed from here has come */
}
/* Of the warps that only load. */
__device__ __forceinline__ void meet_parts()
{
    cluster_sync();
    cluster_sync();
}

/* What the epilogue will ask for, long before: parameters come from memory a line at a time when they are
 * first read, the bias from further away. */
template <class S>
__device__ __forceinline__ void touch(const ortc_cu_gemm &g, const void *bias, int n, int col, bool vec,
                                      bool copied)
{
    const int at = col + threadIdx.x % 32 * 64;
    asm volatile("" ::"l"(g.y), "l"(g.residual), "r"(g.act), "f"(g.alpha), "r"(g.rank), "r"((int)vec),
                 "r"((int)copied));
    if (bias && threadIdx.x % 32 < S::N / 64 && at < n)
        asm volatile("prefetch.global.L2 [%0];\n" ::"l"((const char *)bias + at * 2));
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
    const int part = parts > 1 ? (int)blockIdx.x : 0, rank = S::PAIR > 1 ? (int)blockIdx.x % S::PAIR : 0;
    const int k_begin = part * pieces + (part < longer ? part : longer), k_count = pieces + (part < longer);
    /* tiles of the whole cluster */
    const int step = parts > 1 ? tiles : (int)gridDim.x / S::PAIR,
              first_tile = parts > 1 ? (int)blockIdx.y : (int)blockIdx.x / S::PAIR;
    auto place = [&](int tile) {
        Spot s = spot_of(g, P > 1 ? columns : ((int)g.n + S::N - 1) / S::N, tile, S::tile_m * S::PAIR, S::N);
        if constexpr (P > 1) find_product(all, S::N, s);
        s.row += rank * S::tile_m;
        return s;
    };

    auto product_of = [&](const Spot &s) { return P > 1 ? s.at[0] : 0; };
    auto n_of = [&](const Spot &s) { return P > 1 ? all.n[s.at[0]] : (int)g.n; };
    auto bias_of = [&](const Spot &s) { return P > 1 ? all.bias[s.at[0]] : g.bias; };

    const bool loads = threadIdx.x == S::WGS * 128; /* one thread of the last warpgroup */
    auto load_a = [&](const Spot &s, int k, int at) {
        load_piece<A_MN, S::a_rows, 1>(ring + at * S::stage, &maps.a, full + at * 8, s.row, k * 64, 0, g.rank,
                                       g.a_step, s.at);
    };
    auto load_b = [&](const Spot &s, int k, int at) {
        load_piece<B_MN, S::N, S::PAIR>(ring + at * S::stage + S::a_bytes, &maps.b[product_of(s)],
                                        full + at * 8, s.col, k * 64, rank, g.rank, g.b_step, s.at);
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
        if (S::PAIR == 1) load_ahead();
    } else if (lane == 0 && group < S::WGS) {
        for (int i = threadIdx.x / 32; i < S::STAGES + 1; i += S::WGS * 4)
            barrier_init(empty + i * 8, i < S::STAGES ? S::arrivals : 1);
        barriers_made();
    } else if (threadIdx.x == 33) {
        map_prefetch(&maps.a);
        if (copied) map_prefetch(&maps.y[product_of(s)]);
    }
    if (S::PAIR > 1)
        cluster_sync();
    else
        __syncthreads();
    next_may_start();

    if (group == S::WGS) {
        if constexpr (S::regroup) registers_less<56>();
        if (loads) {
            if (S::PAIR > 1) load_ahead();
            previous_wait();
            const int begun = ahead < k_count ? ahead : k_count;
            for (int k = 0; k < begun; k++) load_a(s, k_begin + k, k);
            int at = begun % S::STAGES, parity = begun < S::STAGES, k = k_begin + begun;
            for (int tile = first_tile; tile < tiles;) {
                for (; k < k_begin + k_count; k++) {
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
        if (S::PAIR > 1) cluster_sync();
        if (parts > 1) meet_parts();
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
    const uint32_t give_back = address_in(empty, lane % S::PAIR);
    /* Gives a buffer back to those that copy into it. */
    auto release = [&](int at) {
        if (S::PAIR == 1) {
            if (lane == 0) barrier_arrive(empty + at * 8);
        } else if (lane < S::PAIR)
            barrier_arrive_there(give_back + at * 8);
    };
    touch<S>(g, bias_of(s), n_of(s), s.col, vec, copied);
    previous_wait();
    for (int tile = first_tile, turn = 0; tile < tiles; tile += step, turn++, count += k_count) {
        if (S::TURNS && turn % S::WGS != group) continue;
        if (!S::early || turn > 0) s = place(tile);
        Tile t = {s.row, s.col, 0, 0, 0};
#pragma unroll
        for (int i = 0; i < 3; i++) t.y += i < g.rank ? s.at[i] * g.y_step[i] : 0;
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
            if (copied) copies.first(t, own_row, s.col, d[0]);
        } else if (copied && own_row < (int)g.m)
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
            float *const all = (float *)(shared_wgmma +
                                         (ring - (uint32_t)__cvta_generic_to_shared(shared_wgmma)));
            const Band own = share_parts<S, S::WGS * 128>(g, s.row, part, parts, all, parts_come, d[0]);
            each_of_band<S, S::WGS * 128>(own, part, parts, all, [&](float(&x)[8], int row, int col) {
                finish<T, 8>(g, t, x, s.row + row, s.col + col, vec);
            });
        }
    }
    if (lane == 0) tile_stores_read<0>();
    if (S::PAIR > 1) cluster_sync(); /* others may still copy, or give back, to here */
#endif
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

/* So many blocks, in a row or in columns, `together` in a cluster, which may start while the kernel before
 * ends. */
template <typename K, typename... More>
static int launch_blocks(K kernel, const ortc_cu_gemm &g, dim3 blocks, int together, int threads, int shared,
                         void *queue, More... more)
{
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (e != cudaSuccess) return e;
    cudaLaunchAttribute with[2] = {};
    cudaLaunchConfig_t launch = {};
    launch.gridDim = blocks;
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

/* `count` products of one A, whose kernel is the first one's: more than one where ortc_cu_gemm_plan_together
 * has planned them. */
template <class S, typename T, bool A_MN, bool B_MN, int P>
static int launch_wgmma(const ortc_cu_gemm *products, int count, void *queue)
{
    const auto kernel = wgmma_tiles<S, T, A_MN, B_MN, P>;
    const ortc_cu_gemm &g = products[0];
    Maps<P> maps = {};
    Together<P> all = {count, {}, {}};
    int64_t tiles = 0; /* of a cluster */
    bool vec = true, copied = true;
    for (int i = 0; i < count; i++) {
        const ortc_cu_gemm &p = products[i];
        tiles += tiles_of(p, S::tile_m * S::PAIR, S::N);
        vec &= vectors_fit(p);
        copied &= vec && !p.c && p.out_type == p.type && p.n % 8 == 0 &&
                  (!S::early || p.alpha == 1.0f || (!p.bias && !p.residual));
        all.n[i] = (int)p.n;
        all.bias[i] = p.bias;
    }
    const int parts = !S::PARTS || g.parts < 1 || tiles > 65535 || P > 1 ? 1 : g.parts,
              pieces = (int)((g.k + 63) / 64);
    copied &= parts == 1;
    if (count > P || (P > 1 && !copied)) return cudaErrorInvalidValue;
    if (!map_of(&maps.a, g, g.a, g.m, g.a_row, g.a_col, g.a_step, A_MN, A_MN ? 64 : S::a_rows))
        return cudaErrorInvalidValue;
    for (int i = 0; i < count; i++) {
        const ortc_cu_gemm &p = products[i];
        ortc_cu_gemm result = p; /* as map_of takes one: N along its K */
        result.k = p.n;
        if (!map_of(&maps.b[i], p, p.b, p.n, p.b_col, p.b_row, p.b_step, B_MN,
                    (B_MN ? 64 : S::N) / S::PAIR) ||
            (copied && !map_of(&maps.y[i], result, p.y, p.m, p.y_row, 1, p.y_step, false, 16)))
            return cudaErrorInvalidValue;
    }
    int64_t matrices = (g.m + S::tile_m * S::PAIR - 1) / (S::tile_m * S::PAIR);
    for (int d = 0; d < g.rank; d++) matrices *= g.dims[d];
    /* Where the kernel before leaves no room for this one, its end is near when this one begins: A's first
     * piece does not queue behind all of B. What has few rows is all B: most of the ring (measured). */
    const int64_t blocks_of_all = tiles * parts * S::PAIR, most = (int64_t)S::BLOCKS * g.processors / S::PAIR;
    const int ahead = !g.b_constant                       ? 0
                      : blocks_of_all * 2 <= g.processors ? S::STAGES
                      : S::a_rows < 64                    ? S::STAGES * 4 / 5
                                                          : S::STAGES / 2;
    const dim3 blocks = parts > 1 ? dim3((unsigned)parts, (unsigned)tiles)
                                  : dim3((unsigned)(tiles < most ? tiles : most) * S::PAIR);
    return launch_blocks(kernel, g, blocks, parts > 1 ? parts : S::PAIR, S::threads, S::shared, queue, maps,
                         all, (int)(tiles / matrices), (int)tiles, parts, pieces / parts, pieces % parts,
                         ahead, vec, copied);
}

/* clang-format off */
/*                     rows, of A, N, warpgroups, in turns, stages, blocks, pair, parts */
using Pair128x256 = Shape<64,   0, 256, 2, false,  4, 1, 2>;
using Pair128x192 = Shape<64,   0, 192, 2, false,  5, 1, 2>;
using Tile128x256 = Shape<64,   0, 256, 2, false,  4, 1>;
using Tile128x192 = Shape<64,   0, 192, 2, false,  5, 1>;
using Tile128x128 = Shape<64,   0, 128, 2, false,  6, 1>;
using Turn128x128 = Shape<128,  0, 128, 2, true,   6, 1>;
using Tile64x192  = Shape<64,   0, 192, 1, false,  6, 1>;
using Tile64x128  = Shape<64,   0, 128, 1, false,  8, 1>;
using Tile64x64   = Shape<64,   0,  64, 1, false,  6, 2>;
using Part64x192  = Shape<64,   0, 192, 1, false,  6, 1, 1, true>;
using Part64x128  = Shape<64,   0, 128, 1, false,  8, 1, 1, true>;
using Part64x64   = Shape<64,   0,  64, 1, false, 12, 1, 1, true>;
using Part16x128  = Shape<64,  16, 128, 1, false,  5, 2, 1, true>;
using Part16x64   = Shape<64,  16,  64, 1, false,  9, 2, 1, true>;
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
            ORTC_CASE(64X64_PARTS, Part64x64, false, ORTC_CU_GEMM_TOGETHER);
        default: return cudaErrorInvalidValue;
        }
    }
    switch (g->kernel) {
        ORTC_CASE(128X256_PAIR, Pair128x256, false, 1);
        ORTC_CASE(128X192_PAIR, Pair128x192, false, 1);
        ORTC_CASE(128X256, Tile128x256, false, 1);
        ORTC_CASE(128X192, Tile128x192, false, 1);
        ORTC_CASE(128X128, Tile128x128, false, 1);
        ORTC_CASE(128X128_TURNS, Turn128x128, false, 1);
        ORTC_CASE(64X192, Tile64x192, false, 1);
        ORTC_CASE(64X128, Tile64x128, false, 1);
        ORTC_CASE(64X64, Tile64x64, false, 1);
        ORTC_CASE(64X192_PARTS, Part64x192, false, 1);
        ORTC_CASE(64X128_PARTS, Part64x128, false, 1);
        ORTC_CASE(64X64_PARTS, Part64x64, false, 1);
        ORTC_CASE(16X128_PARTS, Part16x128, false, 1);
        ORTC_CASE(16X64_PARTS, Part16x64, false, 1);
    default: return cudaErrorInvalidValue;
    }
#undef ORTC_CASE
}

} // namespace ortc_gemm

#endif
