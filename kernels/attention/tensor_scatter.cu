/* kernels/attention/tensor_scatter.cu: rows of an update into a cache, from an index of each sample on, which
 * is read here. A sample whose rows do not fit is reported through the fault word and left alone.
 */
#include <cuda_runtime.h>
#include <stdint.h>

#include "kernels/common/cuda.cuh"

namespace {

struct scatter {
    void *cache;
    const void *update;
    const int64_t *indices; /* NULL: 0 for all */
    /* outer rows of a sample; extents along the axis; pieces behind it */
    int64_t samples, per_sample, length, room, inner;
    int circular;
};

template <typename Piece>
__global__ void __launch_bounds__(256) write(const __grid_constant__ scatter s, uint32_t *fault)
{
    const int64_t pieces = s.samples * s.per_sample * s.length * s.inner;
    for (int64_t at = (int64_t)blockIdx.x * 256 + threadIdx.x; at < pieces; at += (int64_t)gridDim.x * 256) {
        const int64_t row = at / s.inner, within = at - row * s.inner, outer = row / s.length,
                      step = row - outer * s.length;
        int64_t index = s.indices ? s.indices[outer / s.per_sample] : 0;
        if (s.circular) {
            index %= s.room;
            index = (index < 0 ? index + s.room : index) + step;
            index %= s.room;
        } else if (index < 0 || index > s.room - s.length) {
            atomicOr(fault, ORTC_FAULT_INDEX);
            continue;
        } else {
            index += step;
        }
        ((Piece *)s.cache)[(outer * s.room + index) * s.inner + within] = ((const Piece *)s.update)[at];
    }
}

/* An update without rows still must begin inside. */
__global__ void check(const int64_t *indices, int64_t samples, int64_t most, uint32_t *fault)
{
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < samples; i += (int64_t)gridDim.x * 256)
        if (indices[i] < 0 || indices[i] > most) atomicOr(fault, ORTC_FAULT_INDEX);
}

template <typename Piece> int launch(scatter s, int64_t inner, uint32_t *fault, cudaStream_t stream)
{
    s.inner = inner;
    write<Piece>
        <<<ortc_cu_blocks(s.samples * s.per_sample * s.length * inner, 256), 256, 0, stream>>>(s, fault);
    return cudaGetLastError();
}

} // namespace

extern "C" int ortc_cu_tensor_scatter(void *cache, const void *update, const void *indices, int64_t samples,
                                      int64_t per_sample, int64_t length, int64_t room, int64_t inner_bytes,
                                      int circular, uint32_t *fault, void *queue)
{
    cudaStream_t stream = (cudaStream_t)queue;
    const scatter s = {cache, update,  (const int64_t *)indices, samples, per_sample, length, room,
                       0,     circular};
    const uint64_t align = (uint64_t)(uintptr_t)cache | (uint64_t)(uintptr_t)update | (uint64_t)inner_bytes;
    if (samples * per_sample * length * inner_bytes == 0) {
        if (samples == 0 || circular || !indices) return 0;
        check<<<ortc_cu_blocks(samples, 256), 256, 0, stream>>>((const int64_t *)indices, samples,
                                                                room - length, fault);
        return cudaGetLastError();
    }
    if (align % 16 == 0) return launch<uint4>(s, inner_bytes / 16, fault, stream);
    if (align % 8 == 0) return launch<uint2>(s, inner_bytes / 8, fault, stream);
    if (align % 4 == 0) return launch<uint32_t>(s, inner_bytes / 4, fault, stream);
    if (align % 2 == 0) return launch<uint16_t>(s, inner_bytes / 2, fault, stream);
    return launch<uint8_t>(s, inner_bytes, fault, stream);
}
