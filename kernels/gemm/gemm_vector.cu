/* kernels/gemm/gemm_vector.cu: products with at most 8 rows: what counts is to stream B once, in 16-byte
 * pieces, many at a time.
 *
 *   N dense  a block owns 4 pieces of columns, its threads stride over K, 8 rows of B each; then sums meet
 *            by shuffles and in
 *            shared memory, warps in order
 *   K dense  a warp owns 2 columns, its lanes stride over K; then sums meet by shuffles
 *
 * Of a constant B the first pieces are asked for before the kernel before has ended. A is read through L1
 * again and again. Pitches are whole pieces (ortc_cu_gemm_plan sees to it); an address
 * that is not aligned costs single loads, in the same order.
 */
#include "kernels/gemm/gemm_tile.cuh"

namespace ortc_gemm {

/* B, read once. */
template <typename T, int W> __device__ __forceinline__ Vector<T, W> stream(const T *p, bool aligned)
{
    Vector<T, W> y;
    if (aligned) {
        const uint4 x = __ldcs((const uint4 *)(const void *)p);
        memcpy(&y, &x, sizeof y);
    } else {
#pragma unroll
        for (int i = 0; i < W; i++) y.v[i] = p[i];
    }
    return y;
}

__device__ __forceinline__ bool is_aligned(const void *p) { return (uint64_t)(uintptr_t)p % 16 == 0; }

/* Elements k .. k + N of a row of A; zeros from g.k on. vec: they are all there, in aligned pieces. */
template <typename T, int N>
__device__ __forceinline__ void read_a(float (&x)[N], const ortc_cu_gemm &g, const T *row, int64_t k,
                                       bool vec)
{
    if (vec) {
        const Vector<T, N> v = *(const Vector<T, N> *)(const void *)(row + k);
#pragma unroll
        for (int e = 0; e < N; e++) x[e] = to_float(v.v[e]);
        return;
    }
#pragma unroll
    for (int e = 0; e < N; e++) x[e] = k + e < g.k ? to_float(__ldg(row + (k + e) * g.a_col)) : 0.0f;
}

template <typename T, int ROWS, int THREADS>
__global__ void __launch_bounds__(THREADS)
    vector_n_dense(const __grid_constant__ ortc_cu_gemm g, int64_t first, bool vec)
{
    constexpr int width = 16 / sizeof(T), across = 4, cols = across * width, deep = 8,
                  lanes = THREADS / across, warps = THREADS / 32;
    __shared__ float partial[warps][ROWS][cols];
    const Tile t = tile_of(g, first, 8, cols);
    const int piece = threadIdx.x % across, lane = threadIdx.x / across, warp = threadIdx.x / 32;
    const int64_t col = t.col + piece * width;
    const T *a = (const T *)g.a + t.a, *b = (const T *)g.b + t.b + col;
    const bool aligned = is_aligned(b),
               a_vec = is_aligned(a) && g.a_col == 1 && g.k % deep == 0 && (g.m == 1 || g.a_row % deep == 0);
    float sum[ROWS][width];
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int i = 0; i < width; i++) sum[r][i] = 0.0f;
    Vector<T, width> w[deep];
    auto ask = [&](int64_t k) {
        if (k < g.k)
#pragma unroll
            for (int e = 0; e < deep; e++) /* what is too much meets zeros, below */
                w[e] = stream<T, width>(b + (k + e < g.k ? k + e : k) * g.b_row, aligned);
    };
    if (!g.b_constant) ortc_cu_previous();
    if (col < g.n) ask((int64_t)lane * deep);
    ortc_cu_previous();
    if (col < g.n)
#pragma unroll 1
        for (int64_t k = (int64_t)lane * deep; k < g.k; k += lanes * deep) {
#pragma unroll
            for (int r = 0; r < ROWS; r++) {
                float x[deep];
                if (r < g.m) read_a(x, g, a + r * g.a_row, k, a_vec);
#pragma unroll
                for (int e = 0; e < deep; e++)
                    if (r < g.m && k + e < g.k)
#pragma unroll
                        for (int i = 0; i < width; i++)
                            sum[r][i] = fmaf(x[e], to_float(w[e].v[i]), sum[r][i]);
            }
            ask(k + lanes * deep);
        }
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int i = 0; i < width; i++) {
#pragma unroll
            for (int step = across; step < 32; step *= 2) sum[r][i] += __shfl_xor_sync(~0u, sum[r][i], step);
            if (threadIdx.x % 32 < across) partial[warp][r][piece * width + i] = sum[r][i];
        }
    __syncthreads();
    for (int i = threadIdx.x; i < ROWS * cols; i += THREADS) {
        float x[1] = {0.0f};
#pragma unroll
        for (int w = 0; w < warps; w++) x[0] += partial[w][i / cols][i % cols];
        finish<T, 1>(g, t, x, i / cols, t.col + i % cols, vec);
    }
}

template <typename T, int ROWS>
__global__ void __launch_bounds__(256, 2)
    vector_k_dense(const __grid_constant__ ortc_cu_gemm g, int64_t first, bool vec)
{
    constexpr int width = 16 / sizeof(T), own = 2, warps = 8, deep = ROWS < 4 ? 4 : 2;
    const Tile t = tile_of(g, first, 8, own * warps);
    const int lane = threadIdx.x % 32;
    const int64_t col = t.col + threadIdx.x / 32 * own;
    const T *a = (const T *)g.a + t.a, *b = (const T *)g.b + t.b;
    if (col >= g.n) /* the whole warp */
        return;
    const bool a_aligned = is_aligned(a), b_aligned = is_aligned(b);
    const T *column[own];
    float sum[ROWS][own];
#pragma unroll
    for (int c = 0; c < own; c++) {
        column[c] = b + (col + c < g.n ? col + c : col) * g.b_col;
#pragma unroll
        for (int r = 0; r < ROWS; r++) sum[r][c] = 0.0f;
    }
    auto step = [&](int64_t k, const Vector<T, width>(&w)[own]) {
#pragma unroll
        for (int r = 0; r < ROWS; r++)
            if (r < g.m) {
                Vector<T, width> x;
                if (a_aligned)
                    x = *(const Vector<T, width> *)(const void *)(a + r * g.a_row + k);
                else
#pragma unroll
                    for (int i = 0; i < width; i++) x.v[i] = a[r * g.a_row + k + i];
#pragma unroll
                for (int c = 0; c < own; c++)
#pragma unroll
                    for (int i = 0; i < width; i++)
                        sum[r][c] = fmaf(to_float(x.v[i]), to_float(w[c].v[i]), sum[r][c]);
            }
    };
    int64_t k = (int64_t)lane * width;
    Vector<T, width> w[deep][own];
    auto all_there = [&]() { return k + (deep - 1) * 32 * width < g.k; };
    auto ask = [&]() {
        if (all_there())
#pragma unroll
            for (int d = 0; d < deep; d++)
#pragma unroll
                for (int c = 0; c < own; c++)
                    w[d][c] = stream<T, width>(column[c] + k + d * 32 * width, b_aligned);
    };
    if (!g.b_constant) ortc_cu_previous();
    ask();
    ortc_cu_previous();
#pragma unroll 1
    while (all_there()) {
#pragma unroll
        for (int d = 0; d < deep; d++) step(k + d * 32 * width, w[d]);
        k += deep * 32 * width;
        ask();
    }
#pragma unroll 1
    for (; k < g.k; k += 32 * width) {
        Vector<T, width> last[own];
#pragma unroll
        for (int c = 0; c < own; c++) last[c] = stream<T, width>(column[c] + k, b_aligned);
        step(k, last);
    }
    __syncwarp();
#pragma unroll
    for (int r = 0; r < ROWS; r++)
#pragma unroll
        for (int c = 0; c < own; c++) {
#pragma unroll
            for (int s = 16; s; s /= 2) sum[r][c] += __shfl_xor_sync(~0u, sum[r][c], s);
            float x[1] = {sum[r][c]};
            if (lane == (r * own + c) % 32) finish<T, 1>(g, t, x, r, col + c, vec);
        }
}

template <typename T, int ROWS> static int launch_rows(const ortc_cu_gemm &g, void *queue)
{
    constexpr int threads = ROWS == 1 ? 512 : 256, width = 16 / sizeof(T);
    const bool n_dense = g.b_col == 1, vec = vectors_fit(g);
    const int64_t blocks = tiles_of(g, 8, n_dense ? 4 * width : 16), most = 1 << 30;
    int error = cudaSuccess;
    for (int64_t first = 0; first < blocks && !error; first += most) {
        const unsigned now = (unsigned)(blocks - first < most ? blocks - first : most);
        error = n_dense
                    ? ortc_cu_launch(vector_n_dense<T, ROWS, threads>, now, threads, (cudaStream_t)queue, g,
                                     first, vec)
                    : ortc_cu_launch(vector_k_dense<T, ROWS>, now, 256, (cudaStream_t)queue, g, first, vec);
    }
    return error;
}

template <typename T> static int launch_vector(const ortc_cu_gemm &g, void *queue)
{
    return g.m == 1   ? launch_rows<T, 1>(g, queue)
           : g.m == 2 ? launch_rows<T, 2>(g, queue)
           : g.m <= 4 ? launch_rows<T, 4>(g, queue)
                      : launch_rows<T, 8>(g, queue);
}

} // namespace ortc_gemm

extern "C" int ortc_cu_gemm_vector(const ortc_cu_gemm *g, void *queue)
{
    return g->type == ORTC_F32   ? ortc_gemm::launch_vector<float>(*g, queue)
           : g->type == ORTC_F16 ? ortc_gemm::launch_vector<__half>(*g, queue)
                                 : ortc_gemm::launch_vector<__nv_bfloat16>(*g, queue);
}
