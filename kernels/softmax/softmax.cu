/* kernels/softmax/softmax.cu: Softmax and LogSoftmax on a GPU, in f32.
 *
 *   rows that lie dense, up to 32 K elements: one block per row (a warp, where they are short), the row in
 *   registers: read once, written once
 *   longer ones: three passes, the last two mostly out of the cache
 *   rows across memory (an axis that is not the last): a thread for each, neighbours in neighbouring
 *   threads, two passes: maximum and
 *   sum together, then results
 *
 * A NaN makes its row NaN, and so does a row of nothing but -infinity.
 */
#include <math.h>

#include "kernels/common/rows.cuh"
#include "kernels/softmax/softmax_cuda.h"
#include "ortc/types.h"

namespace {

/* Rows that fill a device with a warp for each. */
constexpr int64_t MANY = 2048;

/* VECTORS packs for each of blockDim.x threads of a row; a block has blockDim.y rows. NaNs are not the
 * largest of a row: they show in its sum. */
template <typename E, int VECTORS, bool is_log>
__global__ void __launch_bounds__(1024) in_registers(E *y, const E *x, int64_t rows, int length)
{
    ortc_cu_previous();
    constexpr int W = ortc_cu_pack<E>::WIDTH;
    __shared__ float shared[32];
    for (int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; row < rows;
         row += (int64_t)gridDim.x * blockDim.y) {
        const E *from = x + row * length;
        E *to = y + row * length;
        ortc_cu_pack<E> p[VECTORS];
        float v[VECTORS][W], largest = -INFINITY, sum = 0;
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            const int at = (k * (int)blockDim.x + (int)threadIdx.x) * W;
            if (at < length) p[k] = ortc_cu_pack<E>::load(from + at);
        }
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            const bool inside = (k * (int)blockDim.x + (int)threadIdx.x) * W < length;
#pragma unroll
            for (int i = 0; i < W; i++) {
                v[k][i] = inside ? ortc_cu_f32(p[k].at[i]) : -INFINITY;
                largest = fmaxf(largest, v[k][i]);
            }
        }
        largest = ortc_cu_block<ortc_cu_max>(largest, -INFINITY, shared);
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            const bool inside = (k * (int)blockDim.x + (int)threadIdx.x) * W < length;
#pragma unroll
            for (int i = 0; i < W; i++) {
                v[k][i] -= largest;
                const float e = ortc_cu_exp<E>(v[k][i]);
                if (inside) sum += e;
                if (!is_log) v[k][i] = e;
            }
        }
        sum = ortc_cu_block<ortc_cu_sum>(sum, 0, shared);
        const float by = is_log ? logf(sum) : 1 / sum;
#pragma unroll
        for (int k = 0; k < VECTORS; k++) {
            const int at = (k * (int)blockDim.x + (int)threadIdx.x) * W;
#pragma unroll
            for (int i = 0; i < W; i++) p[k].at[i] = ortc_cu_of_f32<E>(is_log ? v[k][i] - by : v[k][i] * by);
            if (at < length) p[k].store(to + at);
        }
    }
}

/* Any length at any address. */
template <typename E, bool is_log>
__global__ void __launch_bounds__(1024) in_passes(E *y, const E *x, int64_t rows, int64_t length)
{
    ortc_cu_previous();
    __shared__ float shared[32];
    for (int64_t row = (int64_t)blockIdx.x * blockDim.y + threadIdx.y; row < rows;
         row += (int64_t)gridDim.x * blockDim.y) {
        const E *from = x + row * length;
        E *to = y + row * length;
        float largest = -INFINITY, sum = 0;
        for (int64_t i = threadIdx.x; i < length; i += blockDim.x)
            largest = ortc_cu_max::join(largest, ortc_cu_f32(from[i]));
        largest = ortc_cu_block<ortc_cu_max>(largest, -INFINITY, shared);
        for (int64_t i = threadIdx.x; i < length; i += blockDim.x)
            sum += expf(ortc_cu_f32(from[i]) - largest);
        sum = ortc_cu_block<ortc_cu_sum>(sum, 0, shared);
        const float by = is_log ? logf(sum) : 1 / sum;
        for (int64_t i = threadIdx.x; i < length; i += blockDim.x) {
            const float v = ortc_cu_f32(from[i]) - largest;
            to[i] = ortc_cu_of_f32<E>(is_log ? v - by : expf(v) * by);
        }
    }
}

template <typename E, bool is_log>
__global__ void __launch_bounds__(256) across(E *y, const E *x, int64_t rows, int64_t length, int64_t stride)
{
    ortc_cu_previous();
    for (int64_t row = (int64_t)blockIdx.x * 256 + threadIdx.x; row < rows; row += (int64_t)gridDim.x * 256) {
        const int64_t outer = row / stride, first = outer * length * stride + (row - outer * stride);
        float largest = -INFINITY, sum = 0;
        for (int64_t i = 0; i < length; i++) {
            const float v = ortc_cu_f32(x[first + i * stride]), next = ortc_cu_max::join(largest, v);
            if (next != -INFINITY) /* -infinities alone are nothing yet */
                sum = sum * expf(largest - next) + expf(v - next);
            largest = next;
        }
        if (largest == -INFINITY) sum = largest - largest; /* NaN */
        const float by = is_log ? logf(sum) : 1 / sum;
        for (int64_t i = 0; i < length; i++) {
            const float v = ortc_cu_f32(x[first + i * stride]) - largest;
            y[first + i * stride] = ortc_cu_of_f32<E>(is_log ? v - by : expf(v) * by);
        }
    }
}

unsigned blocks_of(int64_t rows) { return (unsigned)(rows < 132 * 256 ? rows : 132 * 256); }

template <typename E, bool is_log>
int launch(void *out, const void *in, int64_t rows, int64_t length, int64_t stride, cudaStream_t stream)
{
    constexpr int W = ortc_cu_pack<E>::WIDTH;
    E *y = (E *)out;
    const E *x = (const E *)in;
    if (stride > 1) {
        return ortc_cu_launch(across<E, is_log>, ortc_cu_blocks(rows, 256), 256, stream, y, x, rows, length,
                              stride);
    }
    const bool aligned =
        ((uint64_t)(uintptr_t)out | (uint64_t)(uintptr_t)in | (uint64_t)length * sizeof(E)) % 16 == 0;
    const int64_t packs = length / W;
    const dim3 warps(32, 8); /* short rows: a warp for each */
    const unsigned by_warps = blocks_of((rows + 7) / 8), by_blocks = blocks_of(rows);
    if ((!aligned || packs > 4 * 1024) && length <= 128) {
        return ortc_cu_launch(in_passes<E, is_log>, by_warps, warps, stream, y, x, rows, length);
    } else if (!aligned || packs > 4 * 1024) {
        const int threads = length <= 1024 ? 128 : length <= 8192 ? 256 : 1024;
        return ortc_cu_launch(in_passes<E, is_log>, by_blocks, threads, stream, y, x, rows, length);
    } else if (packs <= 32) {
        return ortc_cu_launch(in_registers<E, 1, is_log>, by_warps, warps, stream, y, x, rows, (int)length);
    } else if (packs <= 64) {
        return ortc_cu_launch(in_registers<E, 2, is_log>, by_warps, warps, stream, y, x, rows, (int)length);
    } else if (packs <= 128 && rows >= MANY) {
        return ortc_cu_launch(in_registers<E, 4, is_log>, by_warps, warps, stream, y, x, rows, (int)length);
    } else if (packs <= 128) { /* up to 4 packs for each of up to 1024 threads */
        return ortc_cu_launch(in_registers<E, 1, is_log>, by_blocks, 128, stream, y, x, rows, (int)length);
    } else if (packs <= 512) {
        return ortc_cu_launch(in_registers<E, 2, is_log>, by_blocks, packs <= 256 ? 128 : 256, stream, y, x,
                              rows, (int)length);
    } else {
        const int threads = packs <= 1024 ? 256 : packs <= 2048 ? 512 : 1024;
        return ortc_cu_launch(in_registers<E, 4, is_log>, by_blocks, threads, stream, y, x, rows,
                              (int)length);
    }
}

template <typename E>
int launch_of(int is_log, void *y, const void *x, int64_t rows, int64_t length, int64_t stride,
              cudaStream_t stream)
{
    return is_log ? launch<E, true>(y, x, rows, length, stride, stream)
                  : launch<E, false>(y, x, rows, length, stride, stream);
}

} // namespace

extern "C" int ortc_cu_softmax(int32_t dtype, int is_log, void *y, const void *x, int64_t rows,
                               int64_t length, int64_t stride, void *queue)
{
    cudaStream_t stream = (cudaStream_t)queue;
    switch (dtype) {
    case ORTC_F32: return launch_of<float>(is_log, y, x, rows, length, stride, stream);
    case ORTC_F16: return launch_of<__half>(is_log, y, x, rows, length, stride, stream);
    default: return launch_of<__nv_bfloat16>(is_log, y, x, rows, length, stride, stream);
    }
}
