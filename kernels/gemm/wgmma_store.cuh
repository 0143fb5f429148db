/* kernels/gemm/wgmma_store.cuh: what becomes of the sums of a warpgroup: which tile they are, how parts of K
 * meet, how results leave.
 *
 * Sums leave as 16 x 64 elements a warp: through swizzled shared memory, whence the copy engine stores them
 * while the next are made. What this cannot (odd pitches, C, f32 out of 16-bit operands) goes element by
 * element. Blocks of a cluster that have parts of K finish a share of the tile's rows each, in one order, or,
 * where rows are few, of its columns, which leave from registers.
 * S is the shape of a kernel's tile (Shape in gemm_wgmma.cuh, Split in gemm_split.cu).
 */
#ifndef ORTC_KERNELS_GEMM_WGMMA_STORE_CUH
#define ORTC_KERNELS_GEMM_WGMMA_STORE_CUH

#include "kernels/gemm/gemm_tile.cuh"
#include "kernels/gemm/mma.cuh"
#include "kernels/gemm/wgmma.cuh"

namespace ortc_gemm {

using namespace ortc_hopper;

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
/* The same as the epilogue takes it: where the tile begins, and the elements to its matrices. */
__device__ __forceinline__ Tile tile_at(const ortc_cu_gemm &g, const Spot &s)
{
    Tile t = {s.row, s.col, 0, 0, 0};
#pragma unroll
    for (int d = 0; d < 3; d++)
        if (d < g.rank) {
            t.a += s.at[d] * g.a_step[d];
            t.b += s.at[d] * g.b_step[d];
            t.y += s.at[d] * g.y_step[d];
        }
    return t;
}

#ifdef ORTC_HOPPER

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

/* How a warp stores its 16 rows, 64 columns at a time, by the copy engine (the header of
 * this file). */
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
/* Called by the warpgroups that multiply; the others call meet_parts. sums: the ring. parts_come: a barrier
 * of one arrival, used nowhere else. lay_out(rows) puts this thread's sums there, of which so many rows
 * count. */
template <class S, int THREADS, typename F>
__device__ __forceinline__ Band share_laid(const ortc_cu_gemm &g, int first_row, int part, int parts,
                                           float *sums, uint32_t parts_come, F lay_out)
{
    const int rows = (int)g.m - first_row < S::tile_m ? (int)g.m - first_row : S::tile_m,
              band = (rows + parts - 1) / parts;
    auto rows_of = [&](int p) {
        const int left = rows - p * band;
        return left < 0 ? 0 : left < band ? left : band;
    };
    const Band own = {part * band, rows_of(part), band};
    if (threadIdx.x == 0) barrier_expect(parts_come, own.rows * (parts - 1) * S::split_pitch * 4);
    warps_sync(1, THREADS);
    cluster_arrive();
    lay_out(rows);
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
    cluster_arrive(); /* what is pushed here has come; the caller waits for what is pushed from here */
    return own;
}
/* The same of sums as wgmma has them, one block of 64 rows for each warpgroup. */
template <class S, int THREADS, int R>
__device__ __forceinline__ Band share_parts(const ortc_cu_gemm &g, int first_row, int part, int parts,
                                            float *sums, uint32_t parts_come, const float (&d)[R])
{
    const int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4, col = threadIdx.x % 4 * 2;
    return share_laid<S, THREADS>(g, first_row, part, parts, sums, parts_come, [&](int rows) {
#pragma unroll
        for (int e = 0; e < 2; e++) {
            float *to = sums + (row + e * 8) * S::split_pitch + col;
#pragma unroll
            for (int j = 0; j < S::N / 8 && row + e * 8 < rows; j++)
                *(float2 *)(to + j * 8) = make_float2(d[j * 4 + e * 2], d[j * 4 + e * 2 + 1]);
        }
    });
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
}

/* Two or four parts: each block finishes the rows of as many warps, which stay in their registers; the
 * others' sums come to a room of their own as those have them, 16 bytes a lane: nothing is laid out, and
 * nobody waits for a ring that others still read. A part's own sums come first, then the others' in order.
 * room: S::exchange bytes that nothing else uses; row: of this warp; come: as above. Whether this warp's d
 * are the whole sums now. */
template <class S, int R>
__device__ __forceinline__ bool exchange_parts(const ortc_cu_gemm &g, int row, int part, int parts,
                                               uint32_t room, uint32_t come, float (&d)[R])
{
    constexpr int all = S::WGS * 4, each = R * 128; /* warps; bytes of a warp */
    const int own = all / parts, warp = threadIdx.x / 32, lane = threadIdx.x % 32, owner = warp / own;
    if (threadIdx.x == 0) {
        const int rows = (int)g.m - row - part * own * 16, there = rows <= 0 ? 0 : (rows + 15) / 16;
        barrier_expect(come, (there < own ? there : own) * (parts - 1) * each);
    }
    if (row >= (int)g.m) return false;
    const uint32_t mine = room + warp % own * each + lane * 16;
    if (owner != part) {
        const uint32_t there = address_in(mine + (part - (part > owner)) * own * each, owner),
                       barrier = address_in(come, owner);
#pragma unroll
        for (int j = 0; j < R; j += 4) push(there + j * 128, d[j], d[j + 1], d[j + 2], d[j + 3], barrier);
        return false;
    }
    barrier_wait(come, 0);
#pragma unroll 1
    for (int p = 0; p < parts - 1; p++)
#pragma unroll
        for (int j = 0; j < R; j += 4) {
            const float4 x = quad_at(mine + p * own * each + j * 128);
            d[j] += x.x, d[j + 1] += x.y, d[j + 2] += x.z, d[j + 3] += x.w;
        }
    return true;
}

/* The same of few rows, which not all warps have: each block finishes a share of the columns, 8 at a time,
 * and stores it itself. */
template <class S, typename T, int PARTS, int R>
__device__ __forceinline__ void exchange_columns_of(const ortc_cu_gemm &g, const Tile &t, int row, int col,
                                                    int part, uint32_t room, uint32_t come,
                                                    const float (&d)[R])
{
    constexpr int eights = S::N / 8, own = (eights + PARTS - 1) / PARTS, each = own * 512;
    static_assert(S::a_rows / 16 * (PARTS - 1) * each <= S::exchange, "room for what comes");
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, left = max(eights - part * own, 0),
              owned = min(left, own);
    if (threadIdx.x == 0) {
        const int warps = S::a_rows > 16 && row + 16 < (int)g.m ? 2 : 1;
        barrier_expect(come, warps * (PARTS - 1) * owned * 512);
    }
    if (warp >= S::a_rows / 16 || row >= (int)g.m) return;
    room += warp * (PARTS - 1) * each;
    const uint32_t mine = room + lane * 16;
    float x[own * 4];
    each_number<0, PARTS>([&](auto number) {
        constexpr int to = decltype(number)::value, first = to * own;
        if (to == part) {
#pragma unroll
            for (int e = 0; e < own * 4; e++) x[e] = first * 4 + e < R ? d[first * 4 + e] : 0;
        } else {
            const uint32_t there = address_in(mine + (part - (part > to)) * each, to),
                           barrier = address_in(come, to);
#pragma unroll
            for (int j = 0; j < own && first + j < eights; j++) {
                const int at = (first + j) * 4;
                push(there + j * 512, d[at], d[at + 1], d[at + 2], d[at + 3], barrier);
            }
        }
    });
    barrier_wait(come, 0);
#pragma unroll 1
    for (int p = 0; p < PARTS - 1; p++)
#pragma unroll
        for (int j = 0; j < own; j++)
            if (j < owned) {
                const float4 more = quad_at(mine + p * each + j * 512);
                x[j * 4] += more.x, x[j * 4 + 1] += more.y, x[j * 4 + 2] += more.z, x[j * 4 + 3] += more.w;
            }
    if (g.alpha != 1.0f)
#pragma unroll
        for (int e = 0; e < own * 4; e++) x[e] *= g.alpha;
    if (__builtin_expect(g.act, 0)) activate<true>(g, x);
    row += lane / 4, col += part * own * 8 + lane % 4 * 2;
    T *const y = (T *)g.y + t.y + (int64_t)row * g.y_row + col;
#pragma unroll
    for (int j = 0; j < own; j++)
#pragma unroll
        for (int e = 0; e < 2; e++)
            if (j < owned && col + j * 8 < (int)g.n && row + e * 8 < (int)g.m)
                *(uint32_t *)(void *)(y + e * 8 * g.y_row + j * 8) = pair_of<T>(x[j * 4 + e * 2],
                                                                                x[j * 4 + e * 2 + 1]);
}
template <class S, typename T, int R>
__device__ __forceinline__ void exchange_columns(const ortc_cu_gemm &g, const Tile &t, int row, int col,
                                                 int part, int parts, uint32_t room, uint32_t come,
                                                 const float (&d)[R])
{
    each_number<2, 9>([&](auto number) {
        constexpr int count = decltype(number)::value;
        if constexpr (count != 7)
            if (parts == count) exchange_columns_of<S, T, count>(g, t, row, col, part, room, come, d);
    });
}

/* As each_of_band where results are whole aligned pieces of 8 of T, and C is not added: several at a time,
 * for what is asked for one after the other takes as long as a part of the product. ADDED: bias and residual
 * are in the sums. */
template <class S, int THREADS, typename T, bool ADDED>
__device__ __forceinline__ void finish_band(const ortc_cu_gemm &g, const Tile &t, const Band &own, int part,
                                            int parts, const float *sums)
{
    constexpr int columns = S::N / 8, U = 4;
    const int pieces = own.rows * columns;
#pragma unroll 1
    for (int first = (int)threadIdx.x; first < pieces; first += THREADS * U) {
        float x[U * 8];
        int at[U];
        bool there[U];
#pragma unroll
        for (int i = 0; i < U * 8; i++) x[i] = 0;
#pragma unroll
        for (int u = 0; u < U; u++) {
            const int p = first + u * THREADS, row = p / columns, col = p % columns * 8;
            there[u] = p < pieces && (int)t.col + col < (int)g.n;
            at[u] = row * S::split_pitch + col;
        }
#pragma unroll 1
        for (int b = 0; b < parts; b++) {
            const float *from = sums + (b == part ? own.begin : S::tile_m + (b - (b > part)) * own.pitch) *
                                           S::split_pitch;
#pragma unroll
            for (int u = 0; u < U; u++)
                if (there[u]) {
                    const float4 lo = *(const float4 *)(from + at[u]),
                                 hi = *(const float4 *)(from + at[u] + 4);
                    x[u * 8] += lo.x, x[u * 8 + 1] += lo.y, x[u * 8 + 2] += lo.z, x[u * 8 + 3] += lo.w,
                        x[u * 8 + 4] += hi.x, x[u * 8 + 5] += hi.y, x[u * 8 + 6] += hi.z,
                        x[u * 8 + 7] += hi.w;
                }
        }
        if (g.alpha != 1.0f)
#pragma unroll
            for (int i = 0; i < U * 8; i++) x[i] *= g.alpha;
        const int64_t to = t.y + (t.row + own.begin) * g.y_row + t.col;
        auto add = [&](const T *from, float(&x8)[8]) {
            const Vector<T, 8> more = *(const Vector<T, 8> *)(const void *)from;
#pragma unroll
            for (int i = 0; i < 8; i++) x8[i] += to_float(more.v[i]);
        };
        if (!ADDED && (g.bias || g.residual))
#pragma unroll
            for (int u = 0; u < U; u++) {
                float(&x8)[8] = *(float(*)[8])(x + u * 8);
                const int row = at[u] / S::split_pitch, col = at[u] % S::split_pitch;
                if (there[u] && g.bias) add((const T *)g.bias + t.col + col, x8);
                if (there[u] && g.residual) add((const T *)g.residual + to + row * g.y_row + col, x8);
            }
        if (__builtin_expect(g.act, 0)) activate<true>(g, x);
#pragma unroll
        for (int u = 0; u < U; u++)
            if (there[u]) {
                const uint4 y = {pair_of<T>(x[u * 8], x[u * 8 + 1]), pair_of<T>(x[u * 8 + 2], x[u * 8 + 3]),
                                 pair_of<T>(x[u * 8 + 4], x[u * 8 + 5]),
                                 pair_of<T>(x[u * 8 + 6], x[u * 8 + 7])};
                const int row = at[u] / S::split_pitch, col = at[u] % S::split_pitch;
                *(uint4 *)(void *)((T *)g.y + to + row * g.y_row + col) = y;
            }
    }
}
/* Of the warps that only load, where share_parts is called. */
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

} // namespace ortc_gemm

#endif
