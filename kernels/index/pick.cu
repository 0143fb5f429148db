/* kernels/index/pick.cu: GatherElements and GatherND on a GPU (index_cuda.h), a piece per thread. */
#include <cuda_runtime.h>
#include <stdint.h>

#include "kernels/common/cuda.cuh"
#include "kernels/index/index_cuda.h"

namespace {

struct sixteen {
    uint64_t low, high;
}; /* 16 bytes at addresses good for 8 */

__device__ inline int64_t checked(int64_t index, int64_t extent, uint32_t *fault)
{
    index += index < 0 ? extent : 0;
    if (index >= 0 && index < extent) return index;
    atomicOr(fault, ORTC_FAULT_INDEX);
    return index < 0 ? 0 : extent - 1;
}

template <typename E> __global__ void __launch_bounds__(256) elements(const __grid_constant__ ortc_cu_pick p)
{
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < p.count; i += (int64_t)gridDim.x * 256) {
        int64_t rest = i, from = 0;
        for (int d = p.rank - 1; d >= 0; d--) {
            const int64_t next = rest / p.dims[d];
            from += (rest - next * p.dims[d]) * p.step[d];
            rest = next;
        }
        const int64_t index = p.wide ? ((const int64_t *)p.indices)[i] : ((const int32_t *)p.indices)[i];
        ((E *)p.y)[i] = ((const E *)p.x)[from + checked(index, p.extent, p.fault) * p.stride];
    }
}

template <typename E> int launch(const ortc_cu_pick *p, cudaStream_t stream)
{
    elements<E><<<ortc_cu_blocks(p->count, 256), 256, 0, stream>>>(*p);
    return cudaGetLastError();
}

template <typename Piece>
__global__ void __launch_bounds__(256) tuples(const __grid_constant__ ortc_cu_tuples t, int64_t slice)
{
    const int64_t pieces = t.tuples * slice;
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < pieces; i += (int64_t)gridDim.x * 256) {
        const int64_t tuple = i / slice, within = i - tuple * slice;
        int64_t row = 0;
        for (int k = 0; k < t.length; k++)
            row = row * t.dims[k] + checked(t.indices[tuple * t.length + k], t.dims[k], t.fault);
        ((Piece *)t.y)[i] = ((const Piece *)t.x)[(tuple / t.each * t.rows + row) * slice + within];
    }
}

template <typename Piece> int launch(const ortc_cu_tuples *t, cudaStream_t stream)
{
    const int64_t slice = t->slice_bytes / (int64_t)sizeof(Piece);
    tuples<Piece><<<ortc_cu_blocks(t->tuples * slice, 256), 256, 0, stream>>>(*t, slice);
    return cudaGetLastError();
}

} // namespace

extern "C" int ortc_cu_gather_elements(const ortc_cu_pick *p, uint32_t bytes, void *queue)
{
    cudaStream_t stream = (cudaStream_t)queue;
    switch (bytes) {
    case 16: return launch<sixteen>(p, stream);
    case 8: return launch<uint64_t>(p, stream);
    case 4: return launch<uint32_t>(p, stream);
    case 2: return launch<uint16_t>(p, stream);
    default: return launch<uint8_t>(p, stream);
    }
}

extern "C" int ortc_cu_gather_nd(const ortc_cu_tuples *t, void *queue)
{
    cudaStream_t stream = (cudaStream_t)queue;
    const uint64_t align = (uint64_t)(uintptr_t)t->y | (uint64_t)(uintptr_t)t->x | (uint64_t)t->slice_bytes;
    if (align % 16 == 0) return launch<uint4>(t, stream);
    if (align % 8 == 0) return launch<uint2>(t, stream);
    if (align % 4 == 0) return launch<uint32_t>(t, stream);
    return align % 2 == 0 ? launch<uint16_t>(t, stream) : launch<uint8_t>(t, stream);
}
