/* kernels/rearrange/trilu.cu: the triangle above or below a diagonal stays, the rest becomes zero. */
#include <cuda_runtime.h>
#include <stdint.h>

#include "kernels/common/cuda.cuh"

namespace {

struct sixteen {
    uint64_t low, high;
};

template <typename E>
__global__ void __launch_bounds__(256)
    trilu(E *y, const E *x, int64_t count, int64_t rows, int64_t columns, const int64_t *k, int upper)
{
    const int64_t diagonal = k ? *k : 0;
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < count; i += (int64_t)gridDim.x * 256) {
        /* diagonals above the main one */
        const int64_t row = i / columns, off = i - row * columns - row % rows;
        y[i] = (upper ? off >= diagonal : off <= diagonal) ? x[i] : E();
    }
}

template <typename E>
int launch(void *y, const void *x, int64_t count, int64_t rows, int64_t columns, const int64_t *k, int upper,
           void *queue)
{
    trilu<E><<<ortc_cu_blocks(count, 256), 256, 0, (cudaStream_t)queue>>>((E *)y, (const E *)x, count, rows,
                                                                          columns, k, upper);
    return cudaGetLastError();
}

} // namespace

/* k: one number on the device; NULL: 0. bytes: of an element. */
extern "C" int ortc_cu_trilu(void *y, const void *x, int64_t count, int64_t rows, int64_t columns,
                             const int64_t *k, int upper, uint32_t bytes, void *queue)
{
    if (count == 0) return 0;
    switch (bytes) {
    case 16: return launch<sixteen>(y, x, count, rows, columns, k, upper, queue);
    case 8: return launch<uint64_t>(y, x, count, rows, columns, k, upper, queue);
    case 4: return launch<uint32_t>(y, x, count, rows, columns, k, upper, queue);
    case 2: return launch<uint16_t>(y, x, count, rows, columns, k, upper, queue);
    default: return launch<uint8_t>(y, x, count, rows, columns, k, upper, queue);
    }
}
