/* kernels/cumulative/scan.cu: sums and products along an axis on a GPU, floats in f64, integers modulo 2^64.
 * A block for each row: a tile of 256 elements at a time, the total so far carried on; always in the same
 * order.
 */
#include "kernels/common/cuda.cuh"
#include "kernels/common/registers.cuh"

namespace {

struct rows {
    void *y;
    const void *x;
    int64_t count, length, inner; /* rows; elements of one; elements from one to the next */
    int product, exclusive, reverse;
};

template <typename R> __device__ inline R joined(R a, R b, int product) { return product ? a * b : a + b; }

template <typename R, typename E> __global__ void __launch_bounds__(256) scan(const __grid_constant__ rows r)
{
    __shared__ R totals[8];
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const R nothing = r.product ? R(1) : R(0);
    for (int64_t row = blockIdx.x; row < r.count; row += gridDim.x) {
        const int64_t outer = row / r.inner, first = outer * r.length * r.inner + row - outer * r.inner;
        R before = nothing; /* of all tiles so far */
        for (int64_t tile = 0; tile < r.length; tile += 256) {
            const int64_t i = tile + threadIdx.x, at = first + (r.reverse ? r.length - 1 - i : i) * r.inner;
            R v = i < r.length ? get<R, E>::from(((const E *)r.x)[at]) : nothing;
#pragma unroll
            for (int m = 1; m < 32; m *= 2) {
                const R other = __shfl_up_sync(0xffffffffu, v, m);
                v = lane >= m ? joined(other, v, r.product) : v;
            }
            const R left = __shfl_up_sync(0xffffffffu, v, 1);
            if (lane == 31) totals[warp] = v;
            __syncthreads();
            R mine = before;
            for (int w = 0; w < 8; w++) {
                mine = w < warp ? joined(mine, totals[w], r.product) : mine;
                before = joined(before, totals[w], r.product);
            }
            const R result = r.exclusive ? (lane ? joined(mine, left, r.product) : mine)
                                         : joined(mine, v, r.product);
            if (i < r.length) ((E *)r.y)[at] = put<E>::from(result);
            __syncthreads();
        }
    }
}

template <typename R, typename E> int launch(const rows &r, cudaStream_t stream)
{
    scan<R, E><<<ortc_cu_blocks(r.count, 1), 256, 0, stream>>>(r);
    return cudaGetLastError();
}

} // namespace

/* `count` rows of `length` elements, `inner` apart; nothing is empty. y may be x. */
extern "C" int ortc_cu_scan(int32_t dtype, void *y, const void *x, int64_t count, int64_t length,
                            int64_t inner, int product, int exclusive, int reverse, void *queue)
{
    const rows r = {y, x, count, length, inner, product, exclusive, reverse};
    cudaStream_t stream = (cudaStream_t)queue;
    switch (dtype) {
    case ORTC_F32: return launch<double, float>(r, stream);
    case ORTC_F16: return launch<double, __half>(r, stream);
    case ORTC_BF16: return launch<double, __nv_bfloat16>(r, stream);
    case ORTC_F64: return launch<double, double>(r, stream);
    case ORTC_I32: return launch<uint64_t, int32_t>(r, stream);
    case ORTC_U32: return launch<uint64_t, uint32_t>(r, stream);
    default: return launch<uint64_t, uint64_t>(r, stream);
    }
}
