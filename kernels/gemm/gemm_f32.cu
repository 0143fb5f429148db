/* kernels/gemm/gemm_f32.cu: products of f32 matrices by fused multiply-adds, exact f32 (no tf32).
 *
 * 256 threads compute a tile of Y, each a block of SIDE x SIDE elements (8 x 8 as four blocks of 4 x 4, so
 * that neighbours read neighbouring quads). Pieces of A and B, 8 or 16 deep, lie in shared memory with M and
 * N dense, in two buffers: while one is used, the next piece is on its way in registers. Quads are read as 16
 * bytes where the address allows, else one by one; what lies beyond M, N and K reads as zeros.
 */
#include "kernels/gemm/gemm_tile.cuh"

namespace ortc_gemm {

static constexpr int threads = 256;

/* An operand of a tile: EXTENT rows of A or columns of B (its "lanes"), `depth` deep. K_DENSE: consecutive k
 * are neighbours. A thread moves four neighbours. */
template <int EXTENT, bool K_DENSE> struct Operand {
    static constexpr int depth = 1024 / EXTENT, pitch = EXTENT + 4;
    static_assert(EXTENT * depth == 4 * threads, "each thread has its four");
    float v[4];
    const float *at; /* this thread's four of the next piece */
    int64_t next;    /* from one piece to the next */
    int lanes;       /* that are there, from this thread's on */
    bool vec;

    static constexpr int inners = (K_DENSE ? depth : EXTENT) / 4;
    static __device__ __forceinline__ int outer() { return threadIdx.x / inners; }
    static __device__ __forceinline__ int inner() { return threadIdx.x % inners * 4; }

    __device__ __forceinline__ void init(const float *from, int64_t lane_step, int64_t k_step, int64_t first,
                                         int64_t count)
    {
        const int64_t step = K_DENSE ? lane_step : k_step;
        at = from + first * lane_step + outer() * step + inner();
        next = K_DENSE ? depth : depth * step;
        lanes = (count - first < EXTENT ? (int)(count - first) : EXTENT) - (K_DENSE ? outer() : inner());
        vec = ((uint64_t)(uintptr_t)at | (uint64_t)step * 4) % 16 == 0;
    }
    /* k_left: how much of K is there from the piece on */
    __device__ __forceinline__ void load(int k_left)
    {
        const int deep = k_left - (K_DENSE ? inner() : outer()), there = K_DENSE    ? (lanes > 0 ? deep : 0)
                                                                         : deep > 0 ? lanes
                                                                                    : 0;
        if (vec && there >= 4) {
            const float4 x = __ldg((const float4 *)(const void *)at);
            v[0] = x.x, v[1] = x.y, v[2] = x.z, v[3] = x.w;
        } else {
#pragma unroll
            for (int e = 0; e < 4; e++) v[e] = e < there ? __ldg(at + e) : 0.0f;
        }
        at += next;
    }
    __device__ __forceinline__ void put(float *to) const
    {
        if (K_DENSE) {
#pragma unroll
            for (int e = 0; e < 4; e++) to[(inner() + e) * pitch + outer()] = v[e];
        } else
            *(float4 *)(to + outer() * pitch + inner()) = make_float4(v[0], v[1], v[2], v[3]);
    }
};

template <int TILE> struct SharedF32 { /* floats */
    static constexpr int depth = 1024 / TILE, operand = depth * (TILE + 4), pitch = TILE + 8,
                         sums = TILE * pitch, pieces = 4 * operand;
    static constexpr int all = sums > pieces ? sums : pieces;
};

template <int TILE, bool A_K_DENSE, bool B_K_DENSE>
__global__ void __launch_bounds__(threads, 2)
    ffma_tiles(const __grid_constant__ ortc_cu_gemm g, int64_t first, bool vec)
{
    constexpr int side = TILE / 16, blocks = side / 4; /* of 4, along each side */
    using S = SharedF32<TILE>;
    constexpr int depth = S::depth;
    extern __shared__ __align__(16) float shared_f32[];
    const Tile t = tile_of(g, first, TILE, TILE);
    const int row = threadIdx.x / 16 * 4, col = threadIdx.x % 16 * 4;
    const int pieces = (int)((g.k + depth - 1) / depth);
    Operand<TILE, A_K_DENSE> a;
    Operand<TILE, B_K_DENSE> b;
    a.init((const float *)g.a + t.a, g.a_row, g.a_col, t.row, g.m);
    b.init((const float *)g.b + t.b, g.b_col, g.b_row, t.col, g.n);
    auto load = [&](int piece) {
        const int k_left = piece + 1 < pieces ? depth : (int)(g.k - (int64_t)piece * depth);
        a.load(k_left);
        b.load(k_left);
    };
    auto put = [&](int piece) {
        float *to = shared_f32 + piece % 2 * 2 * S::operand;
        a.put(to);
        b.put(to + S::operand);
    };

    float sum[side][side];
#pragma unroll
    for (int i = 0; i < side; i++)
#pragma unroll
        for (int j = 0; j < side; j++) sum[i][j] = 0.0f;
    if (pieces) {
        load(0);
        put(0);
    }
#pragma unroll 1
    for (int piece = 0; piece < pieces; piece++) {
        const bool more = piece + 1 < pieces;
        __syncthreads(); /* this piece is whole, and the buffer of the next is read no more */
        if (more) load(piece + 1);
        const float *from = shared_f32 + piece % 2 * 2 * S::operand;
#pragma unroll
        for (int k = 0; k < depth; k++) {
            float x[side], y[side];
#pragma unroll
            for (int i = 0; i < blocks; i++) {
                const float4 p = *(const float4 *)(from + k * (TILE + 4) + i * 64 + row);
                const float4 q = *(const float4 *)(from + S::operand + k * (TILE + 4) + i * 64 + col);
                x[i * 4] = p.x, x[i * 4 + 1] = p.y, x[i * 4 + 2] = p.z, x[i * 4 + 3] = p.w;
                y[i * 4] = q.x, y[i * 4 + 1] = q.y, y[i * 4 + 2] = q.z, y[i * 4 + 3] = q.w;
            }
#pragma unroll
            for (int i = 0; i < side; i++)
#pragma unroll
                for (int j = 0; j < side; j++) sum[i][j] = fmaf(x[i], y[j], sum[i][j]);
        }
        if (more) put(piece + 1);
    }
    __syncthreads();
#pragma unroll
    for (int i = 0; i < side; i++)
#pragma unroll
        for (int j = 0; j < blocks; j++)
            *(float4 *)(shared_f32 + (i / 4 * 64 + row + i % 4) * S::pitch + j * 64 + col) =
                make_float4(sum[i][j * 4], sum[i][j * 4 + 1], sum[i][j * 4 + 2], sum[i][j * 4 + 3]);
    __syncthreads();
    finish_tile<float, TILE, TILE, threads>(g, t, shared_f32, S::pitch, vec);
}

template <int TILE, bool A_K_DENSE, bool B_K_DENSE> static int launch_ffma(const ortc_cu_gemm &g, void *queue)
{
    return launch(ffma_tiles<TILE, A_K_DENSE, B_K_DENSE>, g, tiles_of(g, TILE, TILE), threads,
                  SharedF32<TILE>::all * sizeof(float), queue);
}

template <int TILE> static int launch_size(const ortc_cu_gemm &g, void *queue)
{
    if (g.a_col == 1)
        return g.b_col == 1 ? launch_ffma<TILE, true, false>(g, queue)
                            : launch_ffma<TILE, true, true>(g, queue);
    return g.b_col == 1 ? launch_ffma<TILE, false, false>(g, queue)
                        : launch_ffma<TILE, false, true>(g, queue);
}

} // namespace ortc_gemm

extern "C" int ortc_cu_gemm_f32(const ortc_cu_gemm *g, void *queue)
{
    return g->kernel == ORTC_CU_GEMM_FFMA_128X128 ? ortc_gemm::launch_size<128>(*g, queue)
                                                  : ortc_gemm::launch_size<64>(*g, queue);
}
