/* kernels/gemm/nbits_row.cu: one row of f16 or bf16 times weights of 4 bits (cuda_nbits.h), which is bound by
 * the instructions that unpack, or by how much is asked of memory at once.
 *
 * A block owns 16 rows of weights, which are the rows of tensor cores' tiles; its warps stride over K, 256 at
 * a time. Weights are multiplied as the integers q - zero point, and a tile's eight columns are the sums of
 * eight pieces of 32 of K: in column c of a's tile only what piece c meets is not zero. So scales are applied
 * to the sums of pieces, four to a lane for 4096 weights. A lane reads 16 bytes of each of two rows, a piece,
 * twice, for 256 of K: lane l pieces l % 4 and 4 + l % 4. Word i of all pieces is multiplied at once; a's row
 * is laid out in shared memory in that order, behind it zeros, which lanes of other columns read.
 *
 * Blocks stay and take tile after tile. The weights of two or three steps are underway, the first asked for
 * before a's row has come. A step of a warp takes some 240 instructions, of which a half are integers' and so
 * count twice: what is said with more of them (addresses by products, masks by two operations) costs as much
 * as memory does. Copies into shared memory, by each lane, in place of registers: no gain at any depth. What
 * Hopper's copy engine can take goes by nbits_ring.cu.
 */
#include "kernels/gemm/cuda_nbits.h"
#include "kernels/gemm/gemm_tile.cuh"
#include "kernels/gemm/mma.cuh"
#include "kernels/gemm/nbits_laid.cuh"

namespace ortc_nbits {

using ortc_gemm::from_float;
using ortc_gemm::to_float;

/* What a lane has of a step: pieces of rows l / 4 and l / 4 + 8, what is taken off them, and the scales of
 * columns l % 4 * 2 and + 1. */
template <typename T> struct Step {
    uint4 q[2][2];
    uint32_t zero[2][2];
    T scale[2][2];
};

/* What a warp asks for next, step after step, tile after tile. What is not there of a last step stays as it
 * was: it meets zeros. */
template <typename T, bool PACKED, int WARPS> struct Ahead {
    const uint8_t *b[2], *zeros[2];
    const T *scales[2];
    int piece, pieces, block, blocks,
        shift; /* of K: this lane's first piece; this lane's first column's block */

    __device__ __forceinline__ void begin(const ortc_cu_nbits &g, int tile)
    {
        const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
        shift = 31 - __clz(g.block / PIECE);
        blocks = (int)g.blocks, pieces = blocks << shift;
        piece = warp * 8 + lane % 4;
        block = (warp * 8 + lane % 4 * 2) >> shift;
#pragma unroll
        for (int i = 0; i < 2; i++) { /* what is too much comes of other rows, and is dropped */
            int64_t row = (int64_t)tile * ROWS_OF_TILE + lane / 4 + 8 * i;
            if (row >= g.n) row = g.n - 1;
            b[i] = g.b + row * g.row_bytes + piece * 16;
            scales[i] = (const T *)g.scales + row * g.blocks + block;
            zeros[i] = (const uint8_t *)g.zeros + row * g.zero_bytes;
        }
    }
    __device__ __forceinline__ void ask(Step<T> &s)
    {
        const int second = shift == 0 && block + 1 < blocks;
        const bool there = block < blocks;
#pragma unroll
        for (int j = 0; j < 2; j++)
            if (piece + j * 4 < pieces) {
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    s.q[i][j] = __ldcs((const uint4 *)(const void *)b[i] + j * 4);
                    if (PACKED) {
                        const int at = (piece + j * 4) >> shift;
                        s.zero[i][j] = zeros[i][at / 2] >> (at % 2 * 4) & 15;
                    }
                }
            }
#pragma unroll
        for (int i = 0; i < 2; i++) {
            s.scale[i][0] = s.scale[i][1] = from_float<T>(0.0f);
            if (there) s.scale[i][0] = scales[i][0];
            if (there) s.scale[i][1] = scales[i][second];
        }
    }
    __device__ __forceinline__ void advance()
    {
        const int further = WARPS * 8 >> shift;
        piece += WARPS * 8, block += further;
#pragma unroll
        for (int i = 0; i < 2; i++) b[i] += WARPS * 128, scales[i] += further;
    }
};

/* The products of a step, scaled, to the sums of rows l / 4 and l / 4 + 8. */
template <typename T>
__device__ __forceinline__ void multiply_step(const Step<T> &s, const uint4 *laid, int step, int zeros,
                                              float (&sum)[2])
{
    const int column = threadIdx.x % 32 / 4, turn = threadIdx.x % 4;
    constexpr float by = Pair<T>::base >= 256 ? 0.0625f : 1.0f;
    float low[4] = {0.0f, 0.0f, 0.0f, 0.0f}, high[4] = {0.0f, 0.0f, 0.0f, 0.0f};
#pragma unroll
    for (int j = 0; j < 2; j++) {
        const int from = column == turn + j * 4 ? (step * 8 + column) * 4 : zeros;
        uint32_t less[2], less16[2];
#pragma unroll
        for (int i = 0; i < 2; i++) {
            less[i] = Pair<T>::magic + s.zero[i][j] * 0x10001;
            less16[i] = Pair<T>::magic + s.zero[i][j] * 0x100010;
        }
        const uint4 q[2] = {s.q[0][j], s.q[1][j]};
        multiply_pieces<T>(q, less, less16, laid + from, low, high);
    }
#pragma unroll
    for (int i = 0; i < 2; i++)
#pragma unroll
        for (int c = 0; c < 2; c++)
            sum[i] = fmaf(to_float(s.scale[i][c]), fmaf(high[i * 2 + c], by, low[i * 2 + c]), sum[i]);
}

/* A warp has `each` steps of a tile, of which the last may not be there. */
/* Warps of a multiprocessor: what their registers leave. */
static constexpr int warps_at_once(int underway) { return underway > 2 ? 16 : 24; }

template <typename T, bool PACKED, int WARPS, int UNDERWAY>
__global__ void __launch_bounds__(32 * WARPS, warps_at_once(UNDERWAY) / WARPS)
    one_row(const __grid_constant__ ortc_cu_nbits g, int tiles, int each)
{
    constexpr int most = ORTC_CU_NBITS_ROW_K / 8;
    __shared__ __align__(16) uint4 laid[most + 4]; /* eight elements of a each; zeros */
    __shared__ float partial[2][WARPS][ROWS_OF_TILE];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, steps = ((int)g.k + STEP - 1) / STEP;
    int next_tile = (int)blockIdx.x, next_step = 0; /* to ask for, of `each` */
    Ahead<T, PACKED, WARPS> ahead;
    ahead.begin(g, next_tile);
    auto load = [&](Step<T> &s) {
        if (next_tile < tiles) ahead.ask(s);
        ahead.advance();
        if (++next_step == each) {
            next_step = 0;
            next_tile += (int)gridDim.x;
            if (next_tile < tiles) ahead.begin(g, next_tile);
        }
    };
    if (threadIdx.x < 4) laid[most + threadIdx.x] = make_uint4(0, 0, 0, 0);
    if (!g.constant) ortc_cu_previous();
    Step<T> held[UNDERWAY] = {};
#pragma unroll
    for (int u = 0; u < UNDERWAY; u++) {
#pragma unroll
        for (int i = 0; i < 4; i++) held[u].zero[i / 2][i % 2] = 8;
        load(held[u]);
    }
    ortc_cu_previous(); /* weights of a model may come early, a may not */
    lay_out<32 * WARPS>(g, laid, steps * (STEP / 8));
    __syncthreads();
    float sum[2] = {0.0f, 0.0f};
    int tile = (int)blockIdx.x, step = warp, turn = 0;
#pragma unroll 1
    while (tile < tiles)
#pragma unroll
        for (int u = 0; u < UNDERWAY; u++) {
            if (tile >= tiles) break;
            if (step < steps) multiply_step<T>(held[u], laid, step, most, sum);
            load(held[u]);
            step += WARPS;
            if (step < each * WARPS) continue;
            __syncwarp();
#pragma unroll
            for (int i = 0; i < 2; i++) {
                sum[i] += __shfl_xor_sync(~0u, sum[i], 1);
                sum[i] += __shfl_xor_sync(~0u, sum[i], 2);
                if (lane % 4 == 0) partial[turn][warp][lane / 4 + 8 * i] = sum[i];
                sum[i] = 0.0f;
            }
            __syncthreads();
            finish_rows<T, WARPS>(g, tile, partial[turn]);
            turn ^= 1; /* who is ahead writes where nobody reads */
            step = warp;
            tile += (int)gridDim.x;
        }
}

template <typename T, int WARPS, int UNDERWAY> static int launch_row(const ortc_cu_nbits &g, void *queue)
{
    const int64_t tiles = (g.n + ROWS_OF_TILE - 1) / ROWS_OF_TILE,
                  most = (int64_t)g.processors * warps_at_once(UNDERWAY) / WARPS;
    const unsigned blocks = (unsigned)(tiles < most ? tiles : most);
    const int each = (int)((g.k + STEP * WARPS - 1) / (STEP * WARPS));
    const auto kernel = g.zeros ? one_row<T, true, WARPS, UNDERWAY> : one_row<T, false, WARPS, UNDERWAY>;
    if (tiles > INT32_MAX / 2) return cudaErrorInvalidValue;
    return ortc_cu_launch(kernel, blocks, 32 * WARPS, (cudaStream_t)queue, g, (int)tiles, each);
}

/* Small blocks where there are enough of them, for a tile's end is one of waiting; else more warps for each,
 * with room for the next kernel's blocks where two steps are most of K. <WARPS, UNDERWAY> on an H200 took, in
 * microseconds: 14336 x 4096 10.3 by <4, 3>, 10.9 by <8, 3>, 12.3 by <8, 2>; 4096 x 4096 5.0, 5.0, 4.7;
 * 4096 x 14336 16.3, 11.5, 14.2. */
template <typename T> static int launch_row(const ortc_cu_nbits &g, void *queue)
{
    if (g.k <= 4 * STEP) return launch_row<T, 4, 1>(g, queue);
    if (g.n > (int64_t)ROWS_OF_TILE * 2 * g.processors) return launch_row<T, 4, 3>(g, queue);
    return g.k <= 16 * STEP ? launch_row<T, 8, 2>(g, queue) : launch_row<T, 8, 3>(g, queue);
}

} // namespace ortc_nbits

extern "C" int ortc_cu_nbits_row(const ortc_cu_nbits *g, void *queue)
{
    return g->type == ORTC_F16 ? ortc_nbits::launch_row<__half>(*g, queue)
                               : ortc_nbits::launch_row<__nv_bfloat16>(*g, queue);
}
