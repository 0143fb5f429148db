/* kernels/attention/cuda_mask.cuh: which keys a row of attention sees, and what the mask adds: for every
 * kernel of it on a GPU. */
#ifndef ORTC_KERNELS_CUDA_MASK_CUH
#define ORTC_KERNELS_CUDA_MASK_CUH

#include <math_constants.h>

#include "kernels/attention/cuda_attention.h"
#include "kernels/gemm/gemm_tile.cuh"

namespace ortc_attention {

using ortc_gemm::from_float;
using ortc_gemm::to_float;

/* A row's keys are those from `from` up to `to`, of which the mask takes some away. */
struct Row {
    int64_t from, to, mask; /* mask: elements to its row */
};

__device__ __forceinline__ Row row_of(const ortc_cu_rows &p, int64_t b, int64_t h, int64_t i)
{
    int64_t valid = p.total, position = i + p.past;
    if (p.nonpad) { /* whatever it says: beyond the keys it means all of them, below 0 none */
        const int64_t says = p.nonpad[b], most = (int64_t)1 << 60;
        valid = says < 0 ? 0 : says > most ? most : says;
        position = i + valid - p.length;
    }
    Row r = {0, valid < p.total ? valid : p.total,
             b * p.mask_step[0] + h * p.mask_step[1] + i * p.mask_step[2]};
    if (p.mask_type && p.mask_count < r.to) r.to = p.mask_count;
    if (p.causal && position < r.to) r.to = position + 1;
    if (p.right >= 0 && position + p.right < r.to) r.to = position + p.right + 1;
    if (p.left >= 0 && position > p.left) r.from = position - p.left < p.total ? position - p.left : p.total;
    return r;
}

__device__ __forceinline__ float load_mask(int32_t type, const void *p, int64_t i)
{
    switch (type) {
    case ORTC_F32: return ((const float *)p)[i];
    case ORTC_F16: return to_float(((const __half *)p)[i]);
    case ORTC_BF16: return to_float(((const __nv_bfloat16 *)p)[i]);
    case ORTC_BOOL: return ((const uint8_t *)p)[i] ? 0.0f : -CUDART_INF_F;
    case ORTC_F64: return (float)((const double *)p)[i];
    case ORTC_I8: return ((const int8_t *)p)[i];
    case ORTC_U8: return ((const uint8_t *)p)[i];
    case ORTC_I16: return ((const int16_t *)p)[i];
    case ORTC_U16: return ((const uint16_t *)p)[i];
    case ORTC_I32: return (float)((const int32_t *)p)[i];
    case ORTC_U32: return (float)((const uint32_t *)p)[i];
    case ORTC_I64: return (float)((const int64_t *)p)[i];
    default: return (float)((const uint64_t *)p)[i];
    }
}

/* What is added to the score of a key: 0, the mask, or -infinity. */
__device__ __forceinline__ float bias_of(const ortc_cu_rows &p, const Row &r, int64_t key)
{
    if (key < r.from || key >= r.to) return -CUDART_INF_F;
    return p.mask_type ? load_mask(p.mask_type, p.mask, r.mask + key) : 0.0f;
}

} // namespace ortc_attention

#endif
