/* kernels/quantize/dequantize.cu: integers to floats (dequantize_cuda.h), in f32. Elements of 4 bits lie two
 * in a byte, the first low. */
#include "kernels/common/cuda.cuh"
#include "kernels/common/registers.cuh"
#include "kernels/quantize/dequantize_cuda.h"

namespace {

struct low_i4 {};
struct low_u4 {};

template <typename Q> struct integer {
    static __device__ inline int64_t at(const void *p, int64_t i) { return ((const Q *)p)[i]; }
};
template <> struct integer<low_u4> {
    static __device__ inline int64_t at(const void *p, int64_t i)
    {
        return ((const uint8_t *)p)[i >> 1] >> (i & 1) * 4 & 15;
    }
};
template <> struct integer<low_i4> {
    static __device__ inline int64_t at(const void *p, int64_t i)
    {
        return (integer<low_u4>::at(p, i) ^ 8) - 8;
    }
};

__device__ inline float scale_at(const ortc_cu_dequantize &d, int64_t i)
{
    return d.scale_dtype == ORTC_F32   ? ((const float *)d.scale)[i]
           : d.scale_dtype == ORTC_F16 ? as_f32(((const __half *)d.scale)[i])
                                       : as_f32(((const __nv_bfloat16 *)d.scale)[i]);
}

__device__ inline int64_t place(const ortc_cu_dequantize &d, int64_t i)
{
    if (d.whole) return 0;
    const int64_t row = i / d.inner, outer = row / d.extent, along = row - outer * d.extent;
    return d.block ? (outer * d.blocks + along / d.block) * d.inner + (i - row * d.inner) : along;
}

template <typename Q>
__global__ void __launch_bounds__(256) dequantize(const __grid_constant__ ortc_cu_dequantize d)
{
    for (int64_t i = (int64_t)blockIdx.x * 256 + threadIdx.x; i < d.count; i += (int64_t)gridDim.x * 256) {
        const int64_t at = place(d, i), zero = d.zero ? integer<Q>::at(d.zero, at) : 0;
        const float v = (float)(integer<Q>::at(d.x, i) - zero) * scale_at(d, at);
        if (d.y_dtype == ORTC_F32)
            ((float *)d.y)[i] = v;
        else if (d.y_dtype == ORTC_F16)
            ((__half *)d.y)[i] = put<__half>::from(v);
        else
            ((__nv_bfloat16 *)d.y)[i] = put<__nv_bfloat16>::from(v);
    }
}

template <typename Q> int launch(const ortc_cu_dequantize *d, cudaStream_t stream)
{
    dequantize<Q><<<ortc_cu_blocks(d->count, 256), 256, 0, stream>>>(*d);
    return cudaGetLastError();
}

} // namespace

extern "C" int ortc_cu_dequantize_run(const ortc_cu_dequantize *d, void *queue)
{
    cudaStream_t stream = (cudaStream_t)queue;
    switch (d->x_dtype) {
    case ORTC_I8: return launch<int8_t>(d, stream);
    case ORTC_U8: return launch<uint8_t>(d, stream);
    case ORTC_I16: return launch<int16_t>(d, stream);
    case ORTC_U16: return launch<uint16_t>(d, stream);
    case ORTC_I32: return launch<int32_t>(d, stream);
    case ORTC_I4: return launch<low_i4>(d, stream);
    default: return launch<low_u4>(d, stream);
    }
}
