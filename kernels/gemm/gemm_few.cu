/* kernels/gemm/gemm_few.cu: products of f32 matrices of few rows by fused multiply-adds: sm_90. From some 32
 * on tensor cores are quicker (gemm_split_few.cu).
 *
 * A tile is 16 x 64, and every warp of a block computes all of it, each for every sixteenth slice of K, 16
 * deep, which comes through a ring that is the warp's alone: nobody waits for anybody else. So many chains of
 * sums also lose less than one. Blocks of a cluster have a part of K each. What warps have summed up meets in
 * shared memory, what blocks have, in that of the block that finishes it, in an order that never changes.
 *
 * A's rows are K-dense, B's rows or columns; pitches are whole pieces of 16 bytes. What lies beyond K reads
 * as zeros, what lies beyond M and N is whatever was there and ends in sums that nobody stores. Slices of
 * K-dense operands lie in shared memory as rows of four such pieces, swapped so that 8 rows in a row meet no
 * bank twice.
 *
 * Of a constant B each warp's first slice is asked for before the kernel before has ended.
 *
 * Tried: lanes in other orders (2 to 5 % slower), tiles of 32 columns with two blocks a multiprocessor (25.6
 * us at 4096 x 4096, 21.3 so).
 */
#include "kernels/gemm/gemm_tile.cuh"
#include "kernels/gemm/launch_blocks.cuh"
#include "kernels/gemm/mma.cuh"
#include "kernels/gemm/wgmma.cuh"

namespace ortc_gemm {

using namespace ortc_hopper;

/* ROWS x N: of the tile; LANES: of a warp along its rows. */
struct Few {
    static constexpr int ROWS = 16, N = 64, LANES = 4, K = 16, WARPS = 16, threads = WARPS * 32;
    static constexpr int own_rows = ROWS / LANES, across = 32 / LANES; /* of a lane; lanes along N */
    static_assert(N == across * 8, "a lane has eight columns");
    static constexpr int a_bytes = ROWS * K * 4, stage = a_bytes + N * K * 4, STAGES = 2;
    static constexpr int quads = ROWS * N / 4; /* of the tile */
    static constexpr int ring = STAGES * stage * WARPS, sums = quads * 16;
    /* Where the ring was: sums of warps, then what comes of blocks, as many bytes as one has and the rounding
     * of each block's share. */
    static constexpr int all = (WARPS + 1) * sums + 8 * 8 * 16, shared = 128 + (ring > all ? ring : all);
};

#ifdef ORTC_HOPPER

/* Where piece c of a row of four lies. */
__device__ __forceinline__ int swapped(int row, int c) { return row * 64 + (c ^ (row >> 1 & 3)) * 16; }
__device__ __forceinline__ void copy_whole(uint32_t to, const void *from)
{
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;\n" ::"r"(to), "l"(from) : "memory");
}
/* How many bytes of a piece are there when `left` elements are. */
__device__ __forceinline__ int there(int left) { return left >= 4 ? 16 : left > 0 ? left * 4 : 0; }
__device__ __forceinline__ float2 pair_at(uint32_t address)
{
    float2 x;
    asm volatile("ld.shared.v2.f32 {%0, %1}, [%2];\n" : "=f"(x.x), "=f"(x.y) : "r"(address));
    return x;
}
#endif

template <bool B_K_DENSE>
__global__ void __launch_bounds__(Few::threads, 1)
    few_rows(const __grid_constant__ ortc_cu_gemm g, int parts, bool vec)
{
#ifdef ORTC_HOPPER
    using S = Few;
    constexpr int own = S::own_rows, in_row = S::N / 4; /* pieces of a row of B, N dense */
    extern __shared__ __align__(128) char shared_few[];
    __shared__ __align__(8) uint64_t come_place;
    const int part = (int)blockIdx.x % parts, lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const Tile t = tile_of(g, (int64_t)(blockIdx.x / (unsigned)parts) - blockIdx.x, S::ROWS, S::N);
    const uint32_t begun = (shared_address(shared_few) + 127) / 128 * 128, come = shared_address(&come_place),
                   ring = begun + warp * (S::STAGES * S::stage);
    const int slices = (int)((g.k + S::K - 1) / S::K), end = (int)((int64_t)slices * (part + 1) / parts);
    const float *const a = (const float *)g.a + t.a, *const b = (const float *)g.b + t.b;
    /* What a lane copies of a slice: of rows (of A, and B where K is dense) every 8th from lane / 4 on, piece
     * lane % 4; where N is dense, a piece of a row of B. */
    const int from_row = lane / 4, from_k = lane % 4 * 4,
              first = (int)((int64_t)slices * part / parts) + warp;
    const int rows = (int)min(g.m - t.row - from_row, (int64_t)S::ROWS),
              columns = (int)min(g.n - t.col - (B_K_DENSE ? from_row : lane % in_row * 4), (int64_t)S::N);
    const float *a_at = a + (t.row + from_row) * g.a_row + (int64_t)first * S::K + from_k,
                *b_at = B_K_DENSE ? b + (t.col + from_row) * g.b_col + (int64_t)first * S::K + from_k
                                  : b + ((int64_t)first * S::K + lane / in_row) * g.b_row + t.col +
                                        lane % in_row * 4;
    const int64_t a_next = g.a_row * 8, b_next = B_K_DENSE ? g.b_col * 8 : g.b_row * (32 / in_row),
                  b_step = B_K_DENSE ? S::WARPS * S::K : g.b_row * (S::WARPS * S::K);
    const uint32_t a_to = ring + swapped(from_row, lane % 4),
                   b_to = ring + S::a_bytes + (B_K_DENSE ? swapped(from_row, lane % 4) : lane * 16);
    const int n_bytes = there(columns);
    int a_left = (int)(g.k - (int64_t)first * S::K), b_left = a_left; /* of K, from the slice to load on */
    auto load_a = [&](int at) {
        const float *from = a_at;
        const uint32_t to = a_to + at * S::stage;
        if (a_left >= S::K) {
#pragma unroll
            for (int i = 0; i < S::ROWS / 8; i++, from += a_next)
                if (i * 8 < rows) copy_whole(to + i * 512, from);
        } else { /* the end of K */
            const int k_bytes = there(a_left - from_k);
#pragma unroll 1
            for (int i = 0; i < S::ROWS / 8; i++, from += a_next)
                if (i * 8 < rows) copy16(to + i * 512, from, k_bytes);
        }
        a_at += S::WARPS * S::K, a_left -= S::WARPS * S::K;
    };
    auto load_b = [&](int at) {
        const float *from = b_at;
        const uint32_t to = b_to + at * S::stage;
        if (b_left >= S::K) {
#pragma unroll
            for (int i = 0; i < S::N / 8; i++, from += b_next)
                if (B_K_DENSE) {
                    if (i * 8 < columns) copy_whole(to + i * 512, from);
                } else
                    copy16(to + i * 512, from, n_bytes);
        } else {
            const int k_bytes = there(b_left - from_k);
#pragma unroll 1
            for (int i = 0; i < S::N / 8; i++, from += b_next)
                if (B_K_DENSE) {
                    if (i * 8 < columns) copy16(to + i * 512, from, k_bytes);
                } else
                    copy16(to + i * 512, from, lane / in_row + i * (32 / in_row) < b_left ? n_bytes : 0);
        }
        b_at += b_step, b_left -= S::WARPS * S::K;
    };
    if (threadIdx.x == 0) {
        barrier_init(come, 1);
        barriers_made();
    }
    next_may_start();
    int slice = first, at = 0;
    if (!g.b_constant) previous_wait();
#pragma unroll
    for (int i = 0; i < S::STAGES - 1; i++)
        if (slice + i * S::WARPS < end) load_b(i);
    previous_wait();
#pragma unroll
    for (int i = 0; i < S::STAGES - 1; i++) { /* all of B that is underway comes with A's first */
        if (slice + i * S::WARPS < end) load_a(i);
        copies_commit();
    }
    float sum[own][8];
#pragma unroll
    for (int i = 0; i < own; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) sum[i][j] = 0.0f;
#pragma unroll 1
    for (; slice < end; slice += S::WARPS) {
        const int next = slice + (S::STAGES - 1) * S::WARPS, free = at ? at - 1 : S::STAGES - 1;
        if (next < end) {
            load_a(free);
            load_b(free);
        }
        copies_commit();
        copies_wait<S::STAGES - 1>();
        __syncwarp();
        const uint32_t from = ring + at * S::stage, a_from = from + swapped(lane / S::across, 0),
                       b_from = from + S::a_bytes;
#pragma unroll
        for (int k = 0; k < S::K; k += 2) {
            const int c = k / 4;
            float x[own][2];
#pragma unroll
            for (int i = 0; i < own; i++) {
                const int piece = c ^ i % 2 * 2; /* as `swapped` says of row 4 i */
                const float2 q = pair_at((a_from ^ piece * 16) + i * S::LANES * 64 + k % 4 * 4);
                x[i][0] = q.x, x[i][1] = q.y;
            }
#pragma unroll
            for (int half = 0; half < 2; half++) {
                float y[2][4]; /* by k */
                if (B_K_DENSE)
#pragma unroll
                    for (int j = 0; j < 4; j++) {
                        const float2 q = pair_at(
                            b_from + swapped(lane % S::across + (half * 4 + j) * S::across, c) + k % 4 * 4);
                        y[0][j] = q.x, y[1][j] = q.y;
                    }
                else
#pragma unroll
                    for (int e = 0; e < 2; e++) {
                        const float4 q = quad_at(b_from + (k + e) * S::N * 4 + half * S::N * 2 +
                                                 lane % S::across * 16);
                        y[e][0] = q.x, y[e][1] = q.y, y[e][2] = q.z, y[e][3] = q.w;
                    }
#pragma unroll
                for (int e = 0; e < 2; e++)
#pragma unroll
                    for (int i = 0; i < own; i++)
#pragma unroll
                        for (int j = 0; j < 4; j++)
                            sum[i][half * 4 + j] = fmaf(x[i][e], y[e][j], sum[i][half * 4 + j]);
            }
        }
        __syncwarp();
        if (++at == S::STAGES) at = 0;
    }

    /* The warps' sums, then the blocks', each quad where its owner finishes it. */
    const int share = (S::quads + parts - 1) / parts, mine = (S::quads - part + parts - 1) / parts;
    float4 *const sums = (float4 *)(shared_few + (begun - shared_address(shared_few))), *const received =
                                                                                            sums +
                                                                                            S::WARPS *
                                                                                                S::quads;
    if (threadIdx.x == 0 && parts > 1) barrier_expect(come, parts * mine * 16);
    __syncthreads();
    if (parts > 1) cluster_arrive(); /* this block's ring is no more */
    float *const to = (float *)(sums + warp * S::quads);
#pragma unroll
    for (int i = 0; i < own; i++)
#pragma unroll
        for (int j = 0; j < 8; j++) {
            const int lane_col = lane % S::across,
                      col = B_K_DENSE ? lane_col + j * S::across : j / 4 * (S::N / 2) + lane_col * 4 + j % 4;
            to[(lane / S::across + i * S::LANES) * S::N + col] = sum[i][j];
        }
    __syncthreads();
    if (parts > 1) cluster_wait();
    auto finish_quad = [&](int quad, float(&x)[4]) {
        finish<float, 4>(g, t, x, t.row + quad / (S::N / 4), t.col + quad % (S::N / 4) * 4, vec);
    };
    for (int quad = (int)threadIdx.x; quad < S::quads; quad += S::threads) {
        float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
        for (int w = 0; w < S::WARPS; w++) {
            const float4 y = sums[w * S::quads + quad];
            x[0] += y.x, x[1] += y.y, x[2] += y.z, x[3] += y.w;
        }
        if (parts == 1) {
            finish_quad(quad, x);
            continue;
        }
        const int owner = quad % parts;
        const uint32_t there = address_in(shared_address(received + part * share + quad / parts), owner),
                       barrier = address_in(come, owner);
        push(there, x[0], x[1], barrier);
        push(there + 8, x[2], x[3], barrier);
    }
    if (parts == 1) return;
    barrier_wait(come, 0);
    for (int i = (int)threadIdx.x; i < mine; i += S::threads) {
        float x[4] = {0.0f, 0.0f, 0.0f, 0.0f};
        for (int p = 0; p < parts; p++) {
            const float4 y = received[p * share + i];
            x[0] += y.x, x[1] += y.y, x[2] += y.z, x[3] += y.w;
        }
        finish_quad(i * parts + part, x);
    }
#endif
}

} // namespace ortc_gemm

extern "C" int ortc_cu_gemm_few(const ortc_cu_gemm *g, void *queue)
{
    using namespace ortc_gemm;
    const int64_t blocks = tiles_of(*g, Few::ROWS, Few::N) * g->parts;
    if (blocks > INT32_MAX) return cudaErrorInvalidValue;
    return launch_blocks(g->b_col == 1 ? few_rows<false> : few_rows<true>, dim3((unsigned)blocks), g->parts,
                         Few::threads, Few::shared, queue, *g, (int)g->parts, vectors_fit(*g));
}
