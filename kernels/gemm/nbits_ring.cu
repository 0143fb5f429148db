/* kernels/gemm/nbits_ring.cu: one row of f16 or bf16 times weights of 4 bits on Hopper: nbits_row.cu's
 * arithmetic, and a ring of shared memory which the copy engine fills.
 *
 * From a kernel's last weights to the first product of the next pass 3 us (its sums meet, it ends, a's row is
 * read). So a ring is as large as half of a multiprocessor allows, and when a few chunks are left to ask for,
 * the next kernel's block may begin beside this one and fill its own. The copy engine takes one request after
 * the other: as long as the kernel before runs, no more than UNDERWAY chunks are asked for at once, or what
 * it has yet to ask for would come behind a whole ring. All blocks have as many tiles of 16 rows, the last
 * tile again and again where there are too few of them (it comes from the cache): were one to end early, two
 * of the next kernel's blocks would begin on its multiprocessor.
 *
 * A chunk is CHUNK of K of a tile, and its scales, asked for by one instruction each: by 32, for rows, the
 * copy engine took twice as long as memory. Each of eight warps takes a step of K of every chunk: one chunk
 * is multiplied while the others come, where sixteen warps held two of them back.
 */
#include "kernels/gemm/gemm_tile.cuh"
#include "kernels/gemm/launch_blocks.cuh"
#include "kernels/gemm/nbits_laid.cuh"
#include "kernels/gemm/wgmma.cuh"
#include "kernels/gemm/wgmma_map.cuh"

namespace ortc_nbits {

using namespace ortc_hopper;
using ortc_gemm::to_float;

/* A step of K of a tile is lines of 128 bytes, swizzled, as are a chunk's scales. Rows of products lie in
 * another order than rows of weights: of eight lanes that read at once four read a row which is four further,
 * and so all banks are met.
 *
 * UNDERWAY: with 1 and 3 most shapes are 3 to 8 % slower. The next kernel may start when EARLY chunks are
 * left, or, where A leaves room for few stages, EARLY_FEW: a chunk sooner or later costs up to 4 and 6 %
 * (docs/performance.md). */
enum {
    WARPS = 8,
    CHUNK = WARPS * STEP,
    LINES = ROWS_OF_TILE * STEP / 2,
    SCALES = WARPS * LINES, /* where they begin in a stage */
    STAGE = SCALES + ROWS_OF_TILE * 128,
    MOST_STAGES = 8,
    FEW_STAGES = 4,
    EARLY = 4,
    EARLY_FEW = 2,
    UNDERWAY = 2,
    THREADS = 32 * (WARPS + 1)
};

struct RingMaps {
    CUtensorMap weights, scales;
};

template <typename T>
__global__ void __launch_bounds__(THREADS, 2)
    ring_row(const __grid_constant__ ortc_cu_nbits g, const __grid_constant__ RingMaps maps, int tiles,
             int stages, int each, int early)
{
#ifdef ORTC_HOPPER
    extern __shared__ char shared_nbits[];
    __shared__ __align__(8) uint64_t barriers[2 * MOST_STAGES + 1];
    __shared__ float partial[2][WARPS][ROWS_OF_TILE];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, shift = 31 - __clz(g.block / PIECE),
              steps = (int)(g.row_bytes * 2 / STEP), chunks = (steps + WARPS - 1) / WARPS,
              zeros = steps * (STEP / 8);
    const uint32_t begun = (uint32_t)__cvta_generic_to_shared(shared_nbits),
                   ring = (begun + 1023) / 1024 * 1024;
    const uint32_t full = (uint32_t)__cvta_generic_to_shared(barriers), empty = full + MOST_STAGES * 8,
                   ended = empty + MOST_STAGES * 8; /* the kernel before has */
    uint4 *const laid = (uint4 *)(void *)(shared_nbits + (ring - begun) + stages * STAGE); /* then zeros */
    if (warp == WARPS && lane < MOST_STAGES) {
        barrier_init(full + lane * 8, 1);
        barrier_init(empty + lane * 8, WARPS);
        if (lane == 0) barrier_init(ended, 1);
        barriers_made();
    } else if (threadIdx.x == 0) {
        map_prefetch(&maps.weights);
        map_prefetch(&maps.scales);
    }
    if (threadIdx.x < 4) laid[zeros + threadIdx.x] = make_uint4(0, 0, 0, 0);
    __syncthreads();

    if (warp == WARPS) { /* one thread asks */
        if (lane > 0) return;
        if (!g.constant) previous_wait();
        int at = 0, parity = 1, asked = 0;
        for (int i = 0; i < each; i++) {
            const int tile = min((int)(blockIdx.x + i * gridDim.x), tiles - 1);
            for (int chunk = 0; chunk < chunks; chunk++, asked++) {
                if (asked == each * chunks - early) next_may_start();
                if (g.constant && asked >= UNDERWAY && asked < stages)
                    while (!barrier_over(full + (asked - UNDERWAY) * 8, 0) && !barrier_over(ended, 0)) {}
                const int place[3] = {chunk * WARPS, 0, 0};
                const uint32_t to = ring + at * STAGE, barrier = full + at * 8;
                barrier_wait(empty + at * 8, parity);
                barrier_expect(barrier, STAGE); /* what is not there comes as zeros */
                tile_load(to, &maps.weights, barrier, 0, tile * ROWS_OF_TILE, place);
                tile_load(to + SCALES, &maps.scales, barrier, chunk * (CHUNK / PIECE) >> shift,
                          tile * ROWS_OF_TILE);
                if (++at == stages) {
                    at = 0;
                    parity ^= 1;
                }
            }
        }
        return;
    }
    previous_wait();
    if (threadIdx.x == 0) barrier_arrive(ended);
    lay_out<32 * WARPS>(g, laid, zeros);
    warps_sync(1, 32 * WARPS);
    const int column = lane / 4, part = lane % 4, row = column / 2 + column % 2 * 4,
              scale = ((warp * 8 + part * 2) >> shift) * 2;
    const uint32_t weights = ring + warp * LINES + row * 128,
                   scales = ring + SCALES + row * 128 + (scale ^ row * 16);
    constexpr float by = Pair<T>::base >= 256 ? 0.0625f : 1.0f;
    constexpr uint32_t off = Pair<T>::magic + 8 * 0x10001, off16 = Pair<T>::magic + 8 * 0x100010;
    const uint32_t less[2] = {off, off}, less16[2] = {off16, off16};
    int at = 0, parity = 0;
    for (int i = 0, tile = (int)blockIdx.x, turn = 0; i < each; i++, tile += (int)gridDim.x, turn ^= 1) {
        float sum[2] = {0.0f, 0.0f};
        for (int chunk = 0; chunk < chunks; chunk++) {
            const int step = chunk * WARPS + warp;
            barrier_wait(full + at * 8, parity);
            if (step < steps) {
                float low[4] = {0.0f, 0.0f, 0.0f, 0.0f}, high[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
                for (int j = 0; j < 2; j++) {
                    uint4 q[2];
#pragma unroll
                    for (int r = 0; r < 2; r++)
                        q[r] = words_at(weights + at * STAGE + r * 1024 + ((part + j * 4) ^ row) * 16);
                    multiply_pieces<T>(q, less, less16,
                                       laid + (column == part + j * 4 ? (step * 8 + column) * 4 : zeros), low,
                                       high);
                }
#pragma unroll
                for (int r = 0; r < 2; r++) { /* the scales of two columns, one where both are of a block */
                    const uint32_t from = scales + at * STAGE + r * 1024;
                    const typename Pair<T>::type s = pair_of<T>(shift ? half_at(from) * 0x10001
                                                                      : word_at(from));
                    sum[r] = fmaf(to_float(s.x), fmaf(high[r * 2], by, low[r * 2]), sum[r]);
                    sum[r] = fmaf(to_float(s.y), fmaf(high[r * 2 + 1], by, low[r * 2 + 1]), sum[r]);
                }
            }
            __syncwarp();
            if (lane == 0) barrier_arrive(empty + at * 8);
            if (++at == stages) {
                at = 0;
                parity ^= 1;
            }
        }
#pragma unroll
        for (int r = 0; r < 2; r++) {
            sum[r] += __shfl_xor_sync(~0u, sum[r], 1);
            sum[r] += __shfl_xor_sync(~0u, sum[r], 2);
            if (part == 0) partial[turn][warp][row + 8 * r] = sum[r];
        }
        warps_sync(1, 32 * WARPS);
        finish_rows<T, WARPS>(g, tile, partial[turn]);
    }
#endif
}

template <typename T> static int launch_ring(const ortc_cu_nbits &g, void *queue)
{
    const int64_t tiles = (g.n + ROWS_OF_TILE - 1) / ROWS_OF_TILE;
    const int a = (int)(g.row_bytes * 4) + 64, most = (ORTC_CU_NBITS_RING_SHARED - 1024 - a) / STAGE,
              stages = most < MOST_STAGES ? most : MOST_STAGES;
    RingMaps maps;
    ortc_cu_gemm scales = {};
    scales.type = g.type, scales.k = g.blocks;
    if (tiles > INT32_MAX / 2 / ROWS_OF_TILE || stages <= UNDERWAY ||
        !ortc_gemm::map_of_lines(&maps.weights, g.b, g.n, g.row_bytes, ROWS_OF_TILE, WARPS) ||
        !ortc_gemm::map_of(&maps.scales, scales, g.scales, g.n, g.blocks, 1, NULL, false, ROWS_OF_TILE))
        return cudaErrorInvalidValue;
    const int blocks = (int)(tiles < g.processors ? tiles : g.processors),
              each = (int)((tiles + blocks - 1) / blocks),
              chunks = (int)((g.row_bytes * 2 + CHUNK - 1) / CHUNK), all = each * chunks,
              early = stages > FEW_STAGES ? EARLY : EARLY_FEW;
    return launch_blocks(ring_row<T>, dim3((unsigned)blocks), 1, THREADS, 1024 + a + stages * STAGE, queue, g,
                         maps, (int)tiles, stages, each, early < all ? early : all);
}

} // namespace ortc_nbits

extern "C" int ortc_cu_nbits_ring(const ortc_cu_nbits *g, void *queue)
{
    return g->type == ORTC_F16 ? ortc_nbits::launch_ring<__half>(*g, queue)
                               : ortc_nbits::launch_ring<__nv_bfloat16>(*g, queue);
}
