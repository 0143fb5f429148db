/* kernels/order/extreme.cu: where the largest or smallest element of a row is: a NaN before all others, of
 * equal ones the first, or the last where that is asked for. Dense rows: a block each. Rows across memory: a
 * thread each.
 */
#include "kernels/common/cuda.cuh"
#include "kernels/common/registers.cuh"

namespace {

template <typename R> struct best {
    R value;
    int64_t at; /* -1: none yet */
};

template <typename R> __device__ inline bool wins(const best<R> &a, const best<R> &b, int largest, int last)
{
    if (a.at < 0 || b.at < 0) return b.at < 0;
    const bool a_nan = a.value != a.value, b_nan = b.value != b.value;
    if (a_nan != b_nan) return a_nan;
    if (!a_nan && a.value != b.value) return (a.value > b.value) == (largest != 0);
    return last ? a.at > b.at : a.at < b.at;
}

template <typename R> __device__ inline best<R> shuffled(const best<R> &a, int m)
{
    best<R> b;
    b.value = __shfl_xor_sync(0xffffffffu, a.value, m);
    b.at = __shfl_xor_sync(0xffffffffu, a.at, m);
    return b;
}

template <typename R, typename E>
__global__ void __launch_bounds__(256)
    along(int64_t *y, const E *x, int64_t rows, int64_t length, int largest, int last)
{
    __shared__ R values[8];
    __shared__ int64_t places[8];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32, warps = blockDim.x / 32;
    for (int64_t row = blockIdx.x; row < rows; row += gridDim.x) {
        best<R> mine = {R(0), -1};
        for (int64_t i = threadIdx.x; i < length; i += blockDim.x) {
            const best<R> other = {get<R, E>::from(x[row * length + i]), i};
            mine = wins(other, mine, largest, last) ? other : mine;
        }
#pragma unroll
        for (int m = 16; m > 0; m >>= 1) {
            const best<R> other = shuffled(mine, m);
            mine = wins(other, mine, largest, last) ? other : mine;
        }
        if (lane == 0) {
            values[warp] = mine.value;
            places[warp] = mine.at;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int w = 1; w < warps; w++) {
                const best<R> other = {values[w], places[w]};
                mine = wins(other, mine, largest, last) ? other : mine;
            }
            y[row] = mine.at;
        }
        __syncthreads();
    }
}

template <typename R, typename E>
__global__ void __launch_bounds__(256)
    across(int64_t *y, const E *x, int64_t rows, int64_t length, int64_t stride, int largest, int last)
{
    for (int64_t row = (int64_t)blockIdx.x * 256 + threadIdx.x; row < rows; row += (int64_t)gridDim.x * 256) {
        const int64_t outer = row / stride, first = outer * length * stride + row - outer * stride;
        best<R> mine = {get<R, E>::from(x[first]), 0};
        for (int64_t i = 1; i < length; i++) {
            const best<R> other = {get<R, E>::from(x[first + i * stride]), i};
            mine = wins(other, mine, largest, last) ? other : mine;
        }
        y[row] = mine.at;
    }
}

template <typename R, typename E>
int launch(int64_t *y, const void *x, int64_t rows, int64_t length, int64_t stride, int largest, int last,
           cudaStream_t stream)
{
    if (stride == 1)
        along<R, E><<<ortc_cu_blocks(rows, 1), length <= 64 ? 32 : 256, 0, stream>>>(y, (const E *)x, rows,
                                                                                     length, largest, last);
    else
        across<R, E><<<ortc_cu_blocks(rows, 256), 256, 0, stream>>>(y, (const E *)x, rows, length, stride,
                                                                    largest, last);
    return cudaGetLastError();
}

} // namespace

/* Rows of `length` elements, `stride` apart; nothing is empty. */
extern "C" int ortc_cu_arg(int32_t dtype, int64_t *y, const void *x, int64_t rows, int64_t length,
                           int64_t stride, int largest, int last, void *queue)
{
    cudaStream_t s = (cudaStream_t)queue;
    switch (dtype) {
    case ORTC_F32: return launch<float, float>(y, x, rows, length, stride, largest, last, s);
    case ORTC_F16: return launch<float, __half>(y, x, rows, length, stride, largest, last, s);
    case ORTC_BF16: return launch<float, __nv_bfloat16>(y, x, rows, length, stride, largest, last, s);
    case ORTC_F64: return launch<double, double>(y, x, rows, length, stride, largest, last, s);
    case ORTC_I64: return launch<int64_t, int64_t>(y, x, rows, length, stride, largest, last, s);
    case ORTC_I32: return launch<int32_t, int32_t>(y, x, rows, length, stride, largest, last, s);
    case ORTC_I16: return launch<int32_t, int16_t>(y, x, rows, length, stride, largest, last, s);
    case ORTC_I8: return launch<int32_t, int8_t>(y, x, rows, length, stride, largest, last, s);
    case ORTC_U64: return launch<uint64_t, uint64_t>(y, x, rows, length, stride, largest, last, s);
    case ORTC_U32: return launch<uint32_t, uint32_t>(y, x, rows, length, stride, largest, last, s);
    case ORTC_U16: return launch<uint32_t, uint16_t>(y, x, rows, length, stride, largest, last, s);
    default: return launch<uint32_t, uint8_t>(y, x, rows, length, stride, largest, last, s);
    }
}
