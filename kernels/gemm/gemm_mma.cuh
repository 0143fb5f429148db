/* kernels/gemm/gemm_mma.cuh: products of f16 or bf16 matrices on tensor cores by mma.sync m16n8k16, sums in
 * f32: sm_80 and later.
 *
 * A block of warps computes a tile of Y. Pieces of A and B, TILE_K deep, come through a ring of STAGES
 * buffers in shared memory, filled by cp.async STAGES - 1 pieces ahead. Rows there are 16-byte chunks, chunk
 * c of row r at c ^ (r mod 8) (by r / 2 mod 4 where a row has 4 chunks): ldmatrix then meets no bank twice. A
 * has its K dense. B has its N dense (NN: rows of shared memory are k, ldmatrix transposes) or its K dense
 * (NT: rows are n). What lies beyond M, N and K reads as zeros. Sums go through shared memory to the
 * epilogue, which stores whole rows.
 *
 * mma_any takes any strides and any alignment: elements one by one, through registers, a piece ahead.
 */
#ifndef ORTC_KERNELS_GEMM_MMA_CUH
#define ORTC_KERNELS_GEMM_MMA_CUH

#include "kernels/gemm/gemm_tile.cuh"
#include "kernels/gemm/mma.cuh"

namespace ortc_gemm {

/* ---- Tiles of 16-bit elements in shared memory --------------------------------------------------------- */

/* Bytes from the tile's begin to a chunk of 8 elements; a row has CHUNKS of them. */
template <int CHUNKS> __device__ __forceinline__ int chunk_at(int row, int chunk)
{
    return (row * CHUNKS + (CHUNKS == 4 ? chunk ^ (row >> 1 & 3) : chunk ^ (row & 7))) * 16;
}

/* Fills a tile of ROWS x CHUNKS from a matrix whose rows are `pitch` elements apart, dense inside, of which
 * rows_left rows and cols_left columns are there. `from`: this thread's chunk in the tile's row threadIdx.x /
 * CHUNKS; `anything`: an address that may be read. */
template <int ROWS, int CHUNKS, int THREADS, typename T>
__device__ __forceinline__ void fill(uint32_t tile, const T *from, int64_t pitch, int rows_left,
                                     int cols_left, const void *anything)
{
    static_assert(THREADS % CHUNKS == 0 && ROWS * CHUNKS % THREADS == 0, "whole rows a step");
    constexpr int step = THREADS / CHUNKS;
    const int first = threadIdx.x / CHUNKS, chunk = threadIdx.x % CHUNKS;
    int bytes = 2 * (cols_left - chunk * 8);
    bytes = bytes < 0 ? 0 : bytes > 16 ? 16 : bytes;
#pragma unroll
    for (int row = 0; row < ROWS; row += step) {
        const int there = first + row < rows_left ? bytes : 0;
        copy16(tile + chunk_at<CHUNKS>(first + row, chunk), there ? (const void *)from : anything, there);
        from += step * pitch;
    }
}

/* One warp's part of a tile of depth TILE_K: WARP_M x WARP_N elements of Y at (warp_m, warp_n) of the
 * block's. */
template <typename T, int TILE_N, int TILE_K, int WARP_M, int WARP_N, bool NT>
__device__ __forceinline__ void multiply_tiles(float (&sum)[WARP_M / 16][WARP_N / 8][4], uint32_t a_tile,
                                               uint32_t b_tile, int warp_m, int warp_n)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int k = 0; k < TILE_K / 16; k++) {
        uint32_t a[WARP_M / 16][4], b[WARP_N / 16][4];
#pragma unroll
        for (int i = 0; i < WARP_M / 16; i++)
            load_matrices(a[i],
                          a_tile + chunk_at<TILE_K / 8>(warp_m + i * 16 + lane % 16, k * 2 + lane / 16));
#pragma unroll
        for (int j = 0; j < WARP_N / 16; j++)
            if (NT)
                load_matrices(b[j], b_tile + chunk_at<TILE_K / 8>(warp_n + j * 16 + lane % 8 + lane / 16 * 8,
                                                                  k * 2 + lane / 8 % 2));
            else
                load_matrices_transposed(b[j], b_tile + chunk_at<TILE_N / 8>(k * 16 + lane % 16,
                                                                             warp_n / 8 + j * 2 + lane / 16));
#pragma unroll
        for (int i = 0; i < WARP_M / 16; i++)
#pragma unroll
            for (int j = 0; j < WARP_N / 8; j++)
                multiply<T>(sum[i][j], a[i], b[j / 2][j % 2 * 2], b[j / 2][j % 2 * 2 + 1]);
    }
}

template <int WARP_M, int WARP_N>
__device__ __forceinline__ void clear(float (&sum)[WARP_M / 16][WARP_N / 8][4])
{
#pragma unroll
    for (int i = 0; i < WARP_M / 16; i++)
#pragma unroll
        for (int j = 0; j < WARP_N / 8; j++)
#pragma unroll
            for (int e = 0; e < 4; e++) sum[i][j][e] = 0.0f;
}

/* A warp's sums into the tile of floats that finish_tile reads. */
template <int WARP_M, int WARP_N>
__device__ __forceinline__ void put_sums(const float (&sum)[WARP_M / 16][WARP_N / 8][4], float *sums,
                                         int pitch, int warp_m, int warp_n)
{
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < WARP_M / 16; i++)
#pragma unroll
        for (int j = 0; j < WARP_N / 8; j++) {
            float *to = sums + (warp_m + i * 16 + lane / 4) * pitch + warp_n + j * 8 + lane % 4 * 2;
            *(float2 *)to = make_float2(sum[i][j][0], sum[i][j][1]);
            *(float2 *)(to + 8 * pitch) = make_float2(sum[i][j][2], sum[i][j][3]);
        }
}

__device__ __forceinline__ int left(int64_t n) { return n > 1 << 20 ? 1 << 20 : (int)n; }

/* ---- The kernels --------------------------------------------------------------------------------------- */

template <int TILE_M, int TILE_N, int TILE_K, int STAGES> struct Shared { /* bytes */
    static constexpr int a = TILE_M * TILE_K * 2, b = TILE_N * TILE_K * 2, stage = a + b;
    static constexpr int pitch = TILE_N + 8; /* floats of a row of sums: pairs of 4 rows fill the banks */
    static constexpr int sums = TILE_M * pitch * 4;
    static constexpr int all = STAGES * stage > sums ? STAGES *stage : sums;
};

template <typename T, int TILE_M, int TILE_N, int TILE_K, int WARP_M, int WARP_N, int STAGES, bool NT>
__global__ void __launch_bounds__(TILE_M / WARP_M * (TILE_N / WARP_N) * 32)
    mma_tiles(const __grid_constant__ ortc_cu_gemm g, int64_t first, bool vec)
{
    constexpr int threads = TILE_M / WARP_M * (TILE_N / WARP_N) * 32, k_chunks = TILE_K / 8,
                  n_chunks = TILE_N / 8;
    using S = Shared<TILE_M, TILE_N, TILE_K, STAGES>;
    extern __shared__ __align__(128) char shared[];
    const uint32_t ring = shared_address(shared);
    const Tile t = tile_of(g, first, TILE_M, TILE_N);
    const int warp = threadIdx.x / 32, warp_m = warp % (TILE_M / WARP_M) * WARP_M,
              warp_n = warp / (TILE_M / WARP_M) * WARP_N;
    const int pieces = (int)((g.k + TILE_K - 1) / TILE_K);

    const int rows_left = left(g.m - t.row), cols_left = left(g.n - t.col);
    const T *a = (const T *)g.a + t.a + (t.row + threadIdx.x / k_chunks) * g.a_row +
                 threadIdx.x % k_chunks * 8;
    const T *b = (const T *)g.b + t.b;
    b += NT ? (t.col + threadIdx.x / k_chunks) * g.b_col + threadIdx.x % k_chunks * 8
            : threadIdx.x / n_chunks * g.b_row + t.col + threadIdx.x % n_chunks * 8;
    auto load = [&](int piece) {
        const int64_t k = (int64_t)piece * TILE_K;
        const int k_left = left(g.k - k);
        const uint32_t to = ring + piece % STAGES * S::stage;
        fill<TILE_M, k_chunks, threads>(to, a + k, g.a_row, rows_left, k_left, g.a);
        if (NT)
            fill<TILE_N, k_chunks, threads>(to + S::a, b + k, g.b_col, cols_left, k_left, g.b);
        else
            fill<TILE_K, n_chunks, threads>(to + S::a, b + k * g.b_row, g.b_row, k_left, cols_left, g.b);
    };

    float sum[WARP_M / 16][WARP_N / 8][4];
    clear<WARP_M, WARP_N>(sum);
#pragma unroll
    for (int piece = 0; piece < STAGES - 1; piece++) {
        if (piece < pieces) load(piece);
        copies_commit(); /* empty groups keep the count */
    }
#pragma unroll 1
    for (int piece = 0; piece < pieces; piece++) {
        copies_wait<STAGES - 2>();
        __syncthreads(); /* all have this piece, and none reads the one before any more */
        if (piece + STAGES - 1 < pieces) load(piece + STAGES - 1);
        copies_commit();
        const uint32_t at = ring + piece % STAGES * S::stage;
        multiply_tiles<T, TILE_N, TILE_K, WARP_M, WARP_N, NT>(sum, at, at + S::a, warp_m, warp_n);
    }
    copies_wait<0>();
    __syncthreads();
    put_sums<WARP_M, WARP_N>(sum, (float *)shared, S::pitch, warp_m, warp_n);
    __syncthreads();
    finish_tile<T, TILE_M, TILE_N, threads>(g, t, (const float *)shared, S::pitch, vec);
}

/* Chunks of 8 elements read one by one: row `row` of a tile is `row_step` elements from the next, its
 * elements `step`. */
template <int ROWS, int CHUNKS, int THREADS> struct Pieces {
    static constexpr int n = ROWS * CHUNKS / THREADS;
    uint16_t v[n][8];

    __device__ __forceinline__ void load(const uint16_t *tile, int64_t row_step, int64_t step, int rows_left,
                                         int cols_left)
    {
#pragma unroll
        for (int i = 0; i < n; i++) {
            const int at = threadIdx.x + i * THREADS, row = at / CHUNKS, col = at % CHUNKS * 8;
#pragma unroll
            for (int e = 0; e < 8; e++)
                v[i][e] = row < rows_left && col + e < cols_left
                              ? __ldg(tile + row * row_step + (col + e) * step)
                              : (uint16_t)0;
        }
    }
    __device__ __forceinline__ void put(char *tile) const
    {
#pragma unroll
        for (int i = 0; i < n; i++) {
            const int at = threadIdx.x + i * THREADS;
            *(uint4 *)(tile + chunk_at<CHUNKS>(at / CHUNKS, at % CHUNKS)) =
                make_uint4(v[i][0] | (uint32_t)v[i][1] << 16, v[i][2] | (uint32_t)v[i][3] << 16,
                           v[i][4] | (uint32_t)v[i][5] << 16, v[i][6] | (uint32_t)v[i][7] << 16);
        }
    }
};

template <typename T, bool NT>
__global__ void __launch_bounds__(128)
    mma_any(const __grid_constant__ ortc_cu_gemm g, int64_t first, bool vec)
{
    constexpr int tile = 64, tile_k = 32, threads = 128, warp_size = 32;
    using S = Shared<tile, tile, tile_k, 2>;
    __shared__ __align__(128) char shared[S::all];
    const Tile t = tile_of(g, first, tile, tile);
    const int warp = threadIdx.x / 32, warp_m = warp % 2 * warp_size, warp_n = warp / 2 * warp_size;
    const int64_t pieces = (g.k + tile_k - 1) / tile_k;
    const uint16_t *a = (const uint16_t *)g.a + t.a + t.row * g.a_row,
                   *b = (const uint16_t *)g.b + t.b + t.col * g.b_col;
    const int rows_left = left(g.m - t.row), cols_left = left(g.n - t.col);
    Pieces<tile, tile_k / 8, threads> pa;
    Pieces<NT ? tile : tile_k, (NT ? tile_k : tile) / 8, threads> pb;
    auto load = [&](int64_t k) {
        const int k_left = left(g.k - k);
        pa.load(a + k * g.a_col, g.a_row, g.a_col, rows_left, k_left);
        if (NT)
            pb.load(b + k * g.b_row, g.b_col, g.b_row, cols_left, k_left);
        else
            pb.load(b + k * g.b_row, g.b_row, g.b_col, k_left, cols_left);
    };
    auto put = [&](int64_t piece) {
        char *to = shared + piece % 2 * S::stage;
        pa.put(to);
        pb.put(to + S::a);
    };

    float sum[2][4][4];
    clear<warp_size, warp_size>(sum);
    if (pieces) {
        load(0);
        put(0);
    }
#pragma unroll 1
    for (int64_t piece = 0; piece < pieces; piece++) {
        const bool more = piece + 1 < pieces;
        __syncthreads(); /* this piece is whole, and the buffer of the next is read no more */
        if (more) load((piece + 1) * tile_k);
        const uint32_t at = shared_address(shared + piece % 2 * S::stage);
        multiply_tiles<T, tile, tile_k, warp_size, warp_size, NT>(sum, at, at + S::a, warp_m, warp_n);
        if (more) put(piece + 1);
    }
    __syncthreads();
    put_sums<warp_size, warp_size>(sum, (float *)shared, S::pitch, warp_m, warp_n);
    __syncthreads();
    finish_tile<T, tile, tile, threads>(g, t, (const float *)shared, S::pitch, vec);
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

template <typename T, int TILE_M, int TILE_N, int TILE_K, int WARP_M, int WARP_N, int STAGES, bool NT>
static int launch_tiles(const ortc_cu_gemm &g, void *queue)
{
    return launch(mma_tiles<T, TILE_M, TILE_N, TILE_K, WARP_M, WARP_N, STAGES, NT>, g,
                  tiles_of(g, TILE_M, TILE_N), TILE_M / WARP_M * (TILE_N / WARP_N) * 32,
                  Shared<TILE_M, TILE_N, TILE_K, STAGES>::all, queue);
}

template <typename T, bool NT> static int launch_mma(const ortc_cu_gemm &g, void *queue)
{
    switch (g.kernel) {
    case ORTC_CU_GEMM_MMA_128X128: return launch_tiles<T, 128, 128, 64, 64, 64, 3, NT>(g, queue);
    case ORTC_CU_GEMM_MMA_128X64: return launch_tiles<T, 128, 64, 64, 64, 32, 3, NT>(g, queue);
    case ORTC_CU_GEMM_MMA_64X64: return launch_tiles<T, 64, 64, 64, 32, 32, 4, NT>(g, queue);
    case ORTC_CU_GEMM_MMA_64X32:
        return launch_tiles<T, 64, 32, 64, 32, 16, 6, NT>(g, queue); /* few rows: many pieces of B underway */
    default: return launch(mma_any<T, NT>, g, tiles_of(g, 64, 64), 128, 0, queue);
    }
}

} // namespace ortc_gemm

#endif
