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

/* VECTORS packs for each of blockDim.x threads of a row; a block has blockDim.y rows. All that is read is
 * asked for at once; a row passes the cache by, which keeps scale and bias. What hides the waits are the
 * other blocks of a multiprocessor: few registers. */
template <typename E, int VECTORS, bool centred>
__global__ void __launch_bounds__(VECTORS > 2 ? 512 : 256, VECTORS > 2 ? 2 : 6)
    in_registers(const __grid_constant__ ortc_cu_norm n)
{
    ortc_cu_previous();
    constexpr int W = ortc_cu_pack<E>::WIDTH;
    __shared__ float shared[32];
    const int length = (int)n.length;
    const float share = 1.0f / (float)length;
    auto at = [](int k) { return (k * (int)blockDim.x + (int)threadIdx.x) * W; };
    for (int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; row < n.rows;
         row += (int64_t)gridDim.x * blockDim.y) {
        const E *from = (const E *)n.x + row * length;
        ortc_cu_pack<E> x[VECTORS], scale[VECTORS], bias[VECTORS];
        float mean = 0, squares = 0;
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
            if (at(k) < length) x[k] = ortc_cu_pack<E>::load_once(from + at(k));
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
            if (at(k) < length) {
                scale[k] = ortc_cu_pack<E>::load((const E *)n.scale + at(k));
                if (n.bias) bias[k] = ortc_cu_pack<E>::load((const E *)n.bias + at(k));
            }
        if (centred) {
#pragma unroll
            for (int k = 0; k < VECTORS; k++)
                if (at(k) < length)
#pragma unroll
                    for (int i = 0; i < W; i++) mean += ortc_cu_f32(x[k].at[i]);
            mean = ortc_cu_block<ortc_cu_sum>(mean, 0, shared) * share;
        }
#pragma unroll
        for (int k = 0; k < VECTORS; k++)
            if (at(k) < length)
#pragma unroll
                for (int i = 0; i < W; i++) {
                    const float d = ortc_cu_f32(x[k].at[i]) - mean;
                    squares += d * d;
                }
        squares = ortc_cu_block<ortc_cu_sum>(squares, 0, shared);
        const float inverse = inverse_root<E>(squares * share + n.epsilon);
        if (threadIdx.x == 0 && n.mean) n.mean[row] = mean;
        if (threadIdx.x == 0 && n.inverse) n.inverse[row] = inverse;
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            if (at(k) >= length || !n.y) continue;
#pragma unroll
            for (int i = 0; i < W; i++) {
                const float y = (ortc_cu_f32(x[k].at[i]) - mean) * inverse * ortc_cu_f32(scale[k].at[i]);
                x[k].at[i] = ortc_cu_of_f32<E>(n.bias ? y + ortc_cu_f32(bias[k].at[i]) : y);
            }
            x[k].store((E *)n.y + row * length + at(k));
        }
    }
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
    const bool apart = !whole || (at | (uint64_t)n->length * sizeof(E)) % 16 || packs > 4 * 512;
    if (apart && n->length <= 128) {
        return ortc_cu_launch(in_passes<E, centred>, by_warps, warps, stream, *n);
    } else if (apart) {
        const int threads = n->length <= 1024 ? 128 : n->length <= 8192 ? 256 : 512;
        return ortc_cu_launch(in_passes<E, centred>, blocks, threads, stream, *n);
    } else if (packs <= 32) {
        return ortc_cu_launch(in_registers<E, 1, centred>, by_warps, warps, stream, *n);
    } else if (packs <= 64) {
        return ortc_cu_launch(in_registers<E, 2, centred>, by_warps, warps, stream, *n);
    } else if (packs <= 128 && n->rows >= MANY) {
        return ortc_cu_launch(in_registers<E, 4, centred>, by_warps, warps, stream, *n);
    } else if (packs <= 128) {
        const int threads = packs <= 96 ? 96 : 128;
        return ortc_cu_launch(in_registers<E, 1, centred>, blocks, threads, stream, *n);
    } else if (packs <= 512) {
        const int threads = packs <= 256 ? 128 : 256;
        return ortc_cu_launch(in_registers<E, 2, centred>, blocks, threads, stream, *n);
    } else {
        const int threads = packs <= 1024 ? 256 : 512;
        return ortc_cu_launch(in_registers<E, 4, centred>, blocks, threads, stream, *n);
    }
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
