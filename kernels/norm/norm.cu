/* kernels/norm/norm.cu: normalising rows by their own statistics on a GPU, in f32: y = (x - mean) / sqrt(var
 * + epsilon) * scale + bias.
 *
 * Rows of up to 8 K (f32) or 16 K elements whose scale is a row too stay in registers, those of a block or of
 * a warp: read once, written once. The variance is that of the differences from the mean, not of squares. All
 * else takes three passes, the last two mostly out of the cache.
 */
#include <math.h>

#include "kernels/common/rows.cuh"
#include "kernels/norm/norm_cuda.h"
#include "ortc/types.h"

namespace {

/* Rows that fill a device with a warp for each. */
constexpr int64_t MANY = 2048;

/* Of what a sum of squares is the root's inverse, for results of E. */
template <typename E> __device__ inline float inverse_root(float x)
{
    return sizeof(E) == 2 ? rsqrtf(x) : 1 / sqrtf(x);
}

/* A pack as it came: the compiler gives elements of 16 bits a register each where it sees them. */
struct words {
    uint32_t at[4];
};
/* once: nobody reads them again. */
__device__ inline words load(const void *from, bool once)
{
    words p;
#ifdef __CUDA_ARCH__
    const uint4 w = once ? __ldcs((const uint4 *)from) : *(const uint4 *)from;
#else
    const uint4 w = *(const uint4 *)from;
#endif
    memcpy(&p, &w, 16);
    return p;
}
template <typename E> __device__ inline float element(const words &p, int i)
{
    E pair[4 / sizeof(E)];
    memcpy(pair, &p.at[i * (int)sizeof(E) / 4], 4);
    return ortc_cu_f32(pair[i % (4 / (int)sizeof(E))]);
}
template <> __device__ inline float element<__nv_bfloat16>(const words &p, int i)
{
    const uint32_t bits = i % 2 ? p.at[i / 2] & 0xffff0000 : p.at[i / 2] << 16;
    float v;
    memcpy(&v, &bits, 4);
    return v;
}
/* What is made of elements is not kept beside them. */
template <int VECTORS> __device__ inline void keep(words (&x)[VECTORS])
{
#ifdef __CUDA_ARCH__
#pragma unroll
    for (int k = 0; k < VECTORS; k++)
        asm volatile("" : "+r"(x[k].at[0]), "+r"(x[k].at[1]), "+r"(x[k].at[2]), "+r"(x[k].at[3]));
#endif
}

/* The sum of a row's WARPS warps, `shared` being one for each: nobody has another use for it. */
template <int WARPS> __device__ inline float of_row(float v, float *shared)
{
    v = ortc_cu_warp<ortc_cu_sum>(v);
    if (WARPS == 1) return v;
    if (threadIdx.x % 32 == 0) shared[threadIdx.x / 32] = v;
    __syncthreads();
    float sum = shared[0];
#pragma unroll
    for (int w = 1; w < WARPS; w++) sum += shared[w];
    return sum;
}

/* Threads of a block that has one row, or eight by a warp each; with up to 40 registers, or 64. */
constexpr int threads_of(int warps) { return warps == 1 ? 256 : warps * 32; }
constexpr int at_once(int vectors, int warps) { return (vectors > 2 ? 1024 : 1536) / threads_of(warps); }

/* WARPS warps for each row, VECTORS packs a thread. All that is read is asked for at once; a row passes the
 * cache by, which keeps scale and bias. What hides the waits are the other blocks of a multiprocessor: few
 * registers, and a barrier a sum. */
template <typename E, int VECTORS, int WARPS, bool centred>
__global__ void __launch_bounds__(threads_of(WARPS), at_once(VECTORS, WARPS))
    in_registers(const __grid_constant__ ortc_cu_norm n)
{
    ortc_cu_previous();
    constexpr int W = ortc_cu_pack<E>::WIDTH;
    __shared__ __align__(16) float partial[2][WARPS];
    const int length = (int)n.length;
    const float share = 1.0f / (float)length;
    const int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y;
    auto at = [](int k) { return (k * (WARPS * 32) + (int)threadIdx.x) * W; };
    const E *from = (const E *)n.x + row * length;
    words x[VECTORS], scale[VECTORS], bias[VECTORS];
    float mean = 0, squares = 0;
    if (row >= n.rows) return; /* a whole warp */
#pragma unroll
    for (int k = 0; k < VECTORS; k++)
        if (at(k) < length) x[k] = load(from + at(k), true);
#pragma unroll
    for (int k = 0; k < VECTORS; k++)
        if (at(k) < length) {
            scale[k] = load((const E *)n.scale + at(k), false);
            if (n.bias) bias[k] = load((const E *)n.bias + at(k), false);
        }
    if (centred) {
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            float some = 0;
            if (at(k) < length)
#pragma unroll
                for (int i = 0; i < W; i++) some += element<E>(x[k], i);
            mean += some;
        }
        mean = of_row<WARPS>(mean, partial[0]) * share;
        keep(x);
    }
#pragma unroll
    for (int k = 0; k < VECTORS; k++) {
        float some = 0;
        if (at(k) < length)
#pragma unroll
            for (int i = 0; i < W; i++) {
                const float d = element<E>(x[k], i) - mean;
                some += d * d;
            }
        squares += some;
    }
    squares = of_row<WARPS>(squares, partial[1]);
    keep(x);
    const float inverse = inverse_root<E>(squares * share + n.epsilon);
    if (threadIdx.x == 0 && n.mean) n.mean[row] = mean;
    if (threadIdx.x == 0 && n.inverse) n.inverse[row] = inverse;
#pragma unroll
    for (int k = 0; k < VECTORS; k++) {
        if (at(k) >= length || !n.y) continue;
        ortc_cu_pack<E> y;
#pragma unroll
        for (int i = 0; i < W; i++) {
            const float v = (element<E>(x[k], i) - mean) * inverse * element<E>(scale[k], i);
            y.at[i] = ortc_cu_of_f32<E>(n.bias ? v + element<E>(bias[k], i) : v);
        }
        y.store((E *)n.y + row * length + at(k));
    }
}

template <typename E, int VECTORS, int WARPS, bool centred>
int launch_rows(const ortc_cu_norm *n, cudaStream_t stream)
{
    const dim3 block(WARPS * 32, WARPS == 1 ? 8 : 1);
    return ortc_cu_launch(in_registers<E, VECTORS, WARPS, centred>, (unsigned)((n->rows - 1) / block.y + 1),
                          block, stream, *n);
}

/* Which of the scales belongs to an element. */
__device__ inline int64_t channel(const ortc_cu_norm &n, int64_t row, int64_t i)
{
    if (n.groups == 1 && n.each == 1) return i;
    return (row % n.groups * n.length + i) / n.each;
}

template <typename E, bool centred>
__global__ void __launch_bounds__(512) in_passes(const __grid_constant__ ortc_cu_norm n)
{
    ortc_cu_previous();
    __shared__ float shared[32];
    const float share = 1.0f / (float)n.length;
    for (int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; row < n.rows;
         row += (int64_t)gridDim.x * blockDim.y) {
        const E *from = (const E *)n.x + row * n.length;
        E *to = (E *)n.y + row * n.length;
        float mean = 0, squares = 0;
        if (centred) {
            for (int64_t i = threadIdx.x; i < n.length; i += blockDim.x) mean += ortc_cu_f32(from[i]);
            mean = ortc_cu_block<ortc_cu_sum>(mean, 0, shared) * share;
        }
        for (int64_t i = threadIdx.x; i < n.length; i += blockDim.x) {
            const float d = ortc_cu_f32(from[i]) - mean;
            squares += d * d;
        }
        const float inverse = 1 / sqrtf(ortc_cu_block<ortc_cu_sum>(squares, 0, shared) * share + n.epsilon);
        if (threadIdx.x == 0 && n.mean) n.mean[row] = mean;
        if (threadIdx.x == 0 && n.inverse) n.inverse[row] = inverse;
        for (int64_t i = threadIdx.x; i < n.length && n.y; i += blockDim.x) {
            const int64_t c = channel(n, row, i);
            const int64_t s = c < n.scale_count ? c : c % n.scale_count,
                          b = c < n.bias_count || !n.bias ? c : c % n.bias_count;
            const float y = (ortc_cu_f32(from[i]) - mean) * inverse * ortc_cu_f32(((const E *)n.scale)[s]);
            to[i] = ortc_cu_of_f32<E>(n.bias ? y + ortc_cu_f32(((const E *)n.bias)[b]) : y);
        }
    }
}

template <typename E, bool centred> int launch(const ortc_cu_norm *n, cudaStream_t stream)
{
    constexpr int W = ortc_cu_pack<E>::WIDTH;
    const unsigned blocks = (unsigned)(n->rows < 132 * 256 ? n->rows : 132 * 256);
    const uint64_t at = (uint64_t)(uintptr_t)n->y | (uint64_t)(uintptr_t)n->x |
                        (uint64_t)(uintptr_t)n->scale | (uint64_t)(uintptr_t)n->bias;
    const bool whole = n->groups == 1 && n->each == 1 && n->scale_count == n->length &&
                       (!n->bias || n->bias_count == n->length);
    const int64_t packs = n->length / W;
    const dim3 warps(32, 8); /* short rows: a warp for each */
    const unsigned by_warps = (blocks + 7) / 8;
    const bool apart = !whole || (at | (uint64_t)n->length * sizeof(E)) % 16 || packs > 4 * 512 ||
                       n->rows > INT32_MAX;
    if (apart && n->length <= 128) {
        return ortc_cu_launch(in_passes<E, centred>, by_warps, warps, stream, *n);
    } else if (apart) {
        const int threads = n->length <= 1024 ? 128 : n->length <= 8192 ? 256 : 512;
        return ortc_cu_launch(in_passes<E, centred>, blocks, threads, stream, *n);
    }
    return packs <= 32                       ? launch_rows<E, 1, 1, centred>(n, stream)
           : packs <= 64                     ? launch_rows<E, 2, 1, centred>(n, stream)
           : packs <= 128 && n->rows >= MANY ? launch_rows<E, 4, 1, centred>(n, stream)
           : packs <= 96                     ? launch_rows<E, 1, 3, centred>(n, stream)
           : packs <= 128                    ? launch_rows<E, 1, 4, centred>(n, stream)
           : packs <= 256                    ? launch_rows<E, 2, 4, centred>(n, stream)
           : packs <= 512                    ? launch_rows<E, 2, 8, centred>(n, stream)
           : packs <= 1024                   ? launch_rows<E, 4, 8, centred>(n, stream)
                                             : launch_rows<E, 4, 16, centred>(n, stream);
}

template <typename E> int launch_of(const ortc_cu_norm *n, cudaStream_t stream)
{
    return n->centred ? launch<E, true>(n, stream) : launch<E, false>(n, stream);
}

} // namespace

extern "C" int ortc_cu_norm_run(const ortc_cu_norm *n, void *queue)
{
    switch (n->dtype) {
    case ORTC_F32: return launch_of<float>(n, (cudaStream_t)queue);
    case ORTC_F16: return launch_of<__half>(n, (cudaStream_t)queue);
    default: return launch_of<__nv_bfloat16>(n, (cudaStream_t)queue);
    }
}
