/* kernels/gemm/gemm_tile.cuh: what the GEMM kernels share: which tile a block computes, and what becomes of a
 * sum.
 *
 * Blocks are numbered along one axis: matrices of the batch one after the other, within a matrix in bands of
 * 8 tile rows, down each band's columns first, so that blocks that run at the same time read few rows of A
 * and few columns of B, which stay in L2.
 */
#ifndef ORTC_KERNELS_GEMM_TILE_CUH
#define ORTC_KERNELS_GEMM_TILE_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "ortc/op.h" /* before cuda.cuh, which defines a code of its own for those who do not see it */

#include "kernels/common/approximate.cuh"
#include "kernels/common/cuda.cuh"
#include "kernels/gemm/cuda_gemm.h"

namespace ortc_gemm {

/* ---- Element types ------------------------------------------------------------------------------------- */

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(__half x) { return __half2float(x); }
__device__ __forceinline__ float to_float(__nv_bfloat16 x) { return __bfloat162float(x); }
template <typename T> __device__ __forceinline__ T from_float(float x);
template <> __device__ __forceinline__ float from_float<float>(float x) { return x; }
template <> __device__ __forceinline__ __half from_float<__half>(float x) { return __float2half_rn(x); }
template <> __device__ __forceinline__ __nv_bfloat16 from_float<__nv_bfloat16>(float x)
{
    return __float2bfloat16_rn(x);
}

/* ---- Tiles --------------------------------------------------------------------------------------------- */

struct Tile {
    int64_t row, col; /* of its first element */
    int64_t a, b, y;  /* elements to the matrices of the batch */
};

/* `first`: the number of this launch's first block. */
__device__ __forceinline__ Tile tile_of(const ortc_cu_gemm &g, int64_t first, int tile_m, int tile_n)
{
    constexpr int64_t band = 8;
    const int64_t rows = (g.m + tile_m - 1) / tile_m, cols = (g.n + tile_n - 1) / tile_n,
                  per_matrix = rows * cols;
    const int64_t block = first + blockIdx.x;
    int64_t matrix = block / per_matrix;
    const int64_t within = block - matrix * per_matrix;
    const int64_t top = within / (band * cols) * band, height = rows - top < band ? rows - top : band;
    const int64_t in_band = within - top * cols;
    Tile t;
    t.col = in_band / height;
    t.row = (top + in_band - t.col * height) * tile_m;
    t.col *= tile_n;
    t.a = t.b = t.y = 0;
#pragma unroll
    for (int d = ORTC_CU_GEMM_RANK - 1; d >= 0; d--)
        if (d < g.rank) {
            const int64_t next = matrix / g.dims[d], i = matrix - next * g.dims[d];
            t.a += i * g.a_step[d];
            t.b += i * g.b_step[d];
            t.y += i * g.y_step[d];
            matrix = next;
        }
    return t;
}

/* Blocks of a whole product. */
static inline int64_t tiles_of(const ortc_cu_gemm &g, int tile_m, int tile_n)
{
    int64_t n = ((g.m + tile_m - 1) / tile_m) * ((g.n + tile_n - 1) / tile_n);
    for (int d = 0; d < g.rank; d++) n *= g.dims[d];
    return n;
}

/* ---- Epilogue ------------------------------------------------------------------------------------------ */

/* Comparisons with NaN are false: it passes through all of them. W values at once, so that the choice is made
 * once. FAST: for results of 16 bits. */
template <bool FAST, int W> __device__ __forceinline__ void activate(const ortc_cu_gemm &g, float (&x)[W])
{
#define ORTC_EACH(...) \
    _Pragma("unroll") for (int i = 0; i < W; i++) \
    { \
        const float v = x[i]; \
        x[i] = __VA_ARGS__; \
    } \
    break
    switch (g.act) {
    case ORTC_CU_ACT_RELU: ORTC_EACH(v < 0.0f ? 0.0f : v);
    case ORTC_CU_ACT_CLIP:
#pragma unroll
        for (int i = 0; i < W; i++) x[i] = x[i] < g.act_alpha ? g.act_alpha : x[i];
        ORTC_EACH(v > g.act_beta ? g.act_beta : v);
    case ORTC_CU_ACT_LEAKY_RELU: ORTC_EACH(v < 0.0f ? g.act_alpha * v : v);
    case ORTC_CU_ACT_SIGMOID: ORTC_EACH(FAST ? fast_sigmoid(v) : 1.0f / (1.0f + expf(-v)));
    case ORTC_CU_ACT_TANH: ORTC_EACH(FAST ? fast_tanh(v) : tanhf(v));
    case ORTC_CU_ACT_GELU: ORTC_EACH(FAST ? v * fast_normal(v) : 0.5f * v * (1.0f + erff(v * 0.70710678f)));
    case ORTC_CU_ACT_GELU_TANH:
        ORTC_EACH(FAST ? fast_gelu_tanh(v)
                       : 0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v))));
    case ORTC_CU_ACT_SILU: ORTC_EACH(FAST ? v * fast_sigmoid(v) : v / (1.0f + expf(-v)));
    case ORTC_CU_ACT_HARD_SWISH:
#pragma unroll
        for (int i = 0; i < W; i++) {
            float y = x[i] * (1.0f / 6.0f) + 0.5f;
            y = y < 0.0f ? 0.0f : y;
            x[i] *= y > 1.0f ? 1.0f : y;
        }
        break;
    default: break;
    }
#undef ORTC_EACH
}

/* W elements of 16-byte pieces. */
template <typename T, int W> struct alignas(sizeof(T) * W % 16 ? sizeof(T) : 16) Vector {
    T v[W];
};

/* Adds `by` times the W elements at p, `step` apart, of which the first n are there. vec: p is aligned. */
template <typename T, int W>
__device__ __forceinline__ void add(float (&x)[W], float by, const T *p, int64_t step, int n, bool vec)
{
    if (W > 1 && vec && n == W && step == 1) {
        const Vector<T, W> p8 = *(const Vector<T, W> *)(const void *)p;
#pragma unroll
        for (int i = 0; i < W; i++) x[i] += by * to_float(p8.v[i]);
    } else {
#pragma unroll
        for (int i = 0; i < W; i++)
            if (i < n) x[i] += by * to_float(p[i * step]);
    }
}

template <typename T, int W> __device__ __forceinline__ void store(T *p, const float (&x)[W], int n, bool vec)
{
    if (W > 1 && vec && n == W) {
        Vector<T, W> y;
#pragma unroll
        for (int i = 0; i < W; i++) y.v[i] = from_float<T>(x[i]);
        *(Vector<T, W> *)(void *)p = y;
    } else {
#pragma unroll
        for (int i = 0; i < W; i++)
            if (i < n) p[i] = from_float<T>(x[i]);
    }
}

/* Stores elements (row, col .. col + W) of Y, whose sums are x. vec: what is added and stored lies in aligned
 * pieces of W. */
template <typename T, int W>
__device__ __forceinline__ void finish(const ortc_cu_gemm &g, const Tile &t, float (&x)[W], int64_t row,
                                       int64_t col, bool vec)
{
    if (row >= g.m || col >= g.n) return;
    const int n = g.n - col < W ? (int)(g.n - col) : W;
    const int64_t at = t.y + row * g.y_row + col;
#pragma unroll
    for (int i = 0; i < W; i++) x[i] *= g.alpha;
    if (g.c) add<T, W>(x, g.beta, (const T *)g.c + row * g.c_row + col * g.c_col, g.c_col, n, vec);
    if (g.bias) add<T, W>(x, 1.0f, (const T *)g.bias + col, 1, n, vec);
    if (g.residual) add<T, W>(x, 1.0f, (const T *)g.residual + at, 1, n, vec);
    if (g.act) activate<sizeof(T) == 2>(g, x);
    if (g.out_type == ORTC_F32)
        store<float, W>((float *)g.y + at, x, n, vec);
    else
        store<T, W>((T *)g.y + at, x, n, vec);
}

/* Sums of a tile lie in shared memory, `pitch` floats a row: every thread finishes pieces of 8 columns. */
template <typename T, int TILE_M, int TILE_N, int THREADS>
__device__ __forceinline__ void finish_tile(const ortc_cu_gemm &g, const Tile &t, const float *sums,
                                            int pitch, bool vec)
{
    constexpr int pieces = TILE_N / 8;
#pragma unroll 1
    for (int i = threadIdx.x; i < TILE_M * pieces; i += THREADS) {
        const int row = i / pieces, col = i % pieces * 8;
        const float4 lo = *(const float4 *)(sums + row * pitch + col),
                     hi = *(const float4 *)(sums + row * pitch + col + 4);
        float x[8] = {lo.x, lo.y, lo.z, lo.w, hi.x, hi.y, hi.z, hi.w};
        finish<T, 8>(g, t, x, t.row + row, t.col + col, vec);
    }
}

/* ---- Launching ----------------------------------------------------------------------------------------- */

/* Whether what the epilogue reads and writes lies in aligned pieces of 8 elements. */
static inline bool vectors_fit(const ortc_cu_gemm &g)
{
    uint64_t addresses = (uint64_t)(uintptr_t)g.y | (uint64_t)(uintptr_t)g.c | (uint64_t)(uintptr_t)g.bias |
                         (uint64_t)(uintptr_t)g.residual;
    uint64_t steps = (uint64_t)g.y_row | (g.c ? (uint64_t)g.c_row : 0);
    for (int d = 0; d < g.rank; d++) steps |= (uint64_t)g.y_step[d];
    return addresses % 16 == 0 && steps % 8 == 0;
}

/* Launches `blocks` blocks of a kernel (g, number of the first block, vec), as many at once as a grid
 * holds. */
template <typename Kernel>
static inline int launch(Kernel kernel, const ortc_cu_gemm &g, int64_t blocks, int threads, size_t shared,
                         void *queue)
{
    const int64_t most = 1 << 30;
    const bool vec = vectors_fit(g);
    if (shared > 48 << 10) {
        const cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                                                   (int)shared);
        if (e != cudaSuccess) return e;
    }
    for (int64_t first = 0; first < blocks; first += most)
        kernel<<<(unsigned)(blocks - first < most ? blocks - first : most), threads, shared,
                 (cudaStream_t)queue>>>(g, first, vec);
    return cudaGetLastError();
}

} // namespace ortc_gemm

#endif
