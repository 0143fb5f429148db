/* kernels/index/gather.cu: Gather on a GPU: out[o, i, k] = data[o, index[i], k], pieces of 1 to 16 bytes, one
 * thread each.
 *
 * An index outside the axis is clamped, so that nothing outside `data` is read, and reported through the
 * fault word.
 */
#include <cuda_runtime.h>
#include <stdint.h>

#include "kernels/common/cuda.cuh"

template <typename Piece, typename Index>
__global__ void gather(Piece *out, const Piece *__restrict__ data, const Index *__restrict__ indices,
                       int64_t pieces, int64_t n_indices, int64_t inner, int64_t axis, uint32_t *fault)
{
    for (int64_t at = (int64_t)blockIdx.x * blockDim.x + threadIdx.x; at < pieces;
         at += (int64_t)gridDim.x * blockDim.x) {
        int64_t row = at / inner, k = at - row * inner, o = row / n_indices;
        int64_t index = indices[row - o * n_indices];
        index += index < 0 ? axis : 0;
        if (index < 0 || index >= axis) {
            atomicOr(fault, ORTC_FAULT_INDEX);
            index = index < 0 ? 0 : axis - 1;
        }
        out[at] = data[(o * axis + index) * inner + k];
    }
}

template <typename Piece>
static void launch(void *out, const void *data, const void *indices, int wide, int64_t outer, int64_t n,
                   int64_t inner, int64_t axis, uint32_t *fault, cudaStream_t stream)
{
    int64_t pieces = outer * n * inner;
    unsigned blocks = ortc_cu_blocks(pieces, 256);
    if (wide)
        gather<Piece, int64_t><<<blocks, 256, 0, stream>>>((Piece *)out, (const Piece *)data,
                                                           (const int64_t *)indices, pieces, n, inner, axis,
                                                           fault);
    else
        gather<Piece, int32_t><<<blocks, 256, 0, stream>>>((Piece *)out, (const Piece *)data,
                                                           (const int32_t *)indices, pieces, n, inner, axis,
                                                           fault);
}

/* inner_bytes: of one slice; wide: indices are 64-bit. axis > 0. */
extern "C" int ortc_cu_gather(void *out, const void *data, const void *indices, int wide, int64_t outer,
                              int64_t n, int64_t inner_bytes, int64_t axis, uint32_t *fault, void *queue)
{
    cudaStream_t stream = (cudaStream_t)queue;
    uint64_t align = (uint64_t)(uintptr_t)out | (uint64_t)(uintptr_t)data | (uint64_t)inner_bytes;
    if (outer * n * inner_bytes == 0) return 0;
    if (align % 16 == 0)
        launch<uint4>(out, data, indices, wide, outer, n, inner_bytes / 16, axis, fault, stream);
    else if (align % 8 == 0)
        launch<uint2>(out, data, indices, wide, outer, n, inner_bytes / 8, axis, fault, stream);
    else if (align % 4 == 0)
        launch<uint32_t>(out, data, indices, wide, outer, n, inner_bytes / 4, axis, fault, stream);
    else if (align % 2 == 0)
        launch<uint16_t>(out, data, indices, wide, outer, n, inner_bytes / 2, axis, fault, stream);
    else
        launch<uint8_t>(out, data, indices, wide, outer, n, inner_bytes, axis, fault, stream);
    return cudaGetLastError();
}
