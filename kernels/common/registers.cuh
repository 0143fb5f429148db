/* kernels/common/registers.cuh: between elements of any whole-byte type and registers of float, double,
 * int64_t or uint64_t, as ref converts them: integers keep their low bits, floats become integers towards
 * zero, everything is rounded to a float once.
 */
#ifndef ORTC_KERNELS_REGISTERS_CUH
#define ORTC_KERNELS_REGISTERS_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "ortc/types.h"

namespace {

/* Towards zero; what does not fit saturates, NaN is 0. */
__device__ inline int64_t to_int(double x)
{
    return x != x                       ? 0
           : x >= 9223372036854775808.0 ? INT64_MAX
           : x < -9223372036854775808.0 ? INT64_MIN
                                        : (int64_t)x;
}
__device__ inline int64_t to_int(float x)
{
    return x != x                        ? 0
           : x >= 9223372036854775808.0f ? INT64_MAX
           : x < -9223372036854775808.0f ? INT64_MIN
                                         : (int64_t)x;
}
__device__ inline uint64_t to_uint(double x)
{
    return !(x > -1) ? (uint64_t)to_int(x) : x >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)x;
}
__device__ inline uint64_t to_uint(float x)
{
    return !(x > -1) ? (uint64_t)to_int(x) : x >= 18446744073709551616.0f ? UINT64_MAX : (uint64_t)x;
}
__device__ inline int64_t to_int(int64_t x) { return x; }
__device__ inline int64_t to_int(uint64_t x) { return (int64_t)x; }
__device__ inline uint64_t to_uint(int64_t x) { return (uint64_t)x; }
__device__ inline uint64_t to_uint(uint64_t x) { return x; }

/* Elements that the host's types have no name for. */
struct boolean {
    uint8_t bits;
};

template <typename E> __device__ inline float as_f32(E v) { return (float)v; }
template <> __device__ inline float as_f32(__half v) { return __half2float(v); }
template <> __device__ inline float as_f32(__nv_bfloat16 v) { return __bfloat162float(v); }
template <> __device__ inline float as_f32(boolean v) { return v.bits ? 1.0f : 0.0f; }

template <typename R, typename E> struct get {
    static __device__ inline R from(E v) { return (R)v; }
};
template <typename R> struct get<R, __half> {
    static __device__ inline R from(__half v) { return (R)as_f32(v); }
};
template <typename R> struct get<R, __nv_bfloat16> {
    static __device__ inline R from(__nv_bfloat16 v) { return (R)as_f32(v); }
};
template <typename R> struct get<R, boolean> {
    static __device__ inline R from(boolean v) { return (R)(v.bits != 0); }
};

template <typename E> struct put {
    template <typename R> static __device__ inline E from(R v)
    {
        if (E(-1) < E(0)) return (E)to_int(v);
        return (E)to_uint(v);
    }
};
template <> struct put<float> {
    template <typename R> static __device__ inline float from(R v) { return (float)v; }
};
template <> struct put<double> {
    template <typename R> static __device__ inline double from(R v) { return (double)v; }
};
template <> struct put<boolean> {
    template <typename R> static __device__ inline boolean from(R v)
    {
        boolean b;
        b.bits = v != (R)0;
        return b;
    }
};
template <> struct put<__half> {
    static __device__ inline __half from(float v) { return __float2half_rn(v); }
    template <typename R> static __device__ inline __half from(R v) { return __double2half((double)v); }
};
template <> struct put<__nv_bfloat16> {
    static __device__ inline __nv_bfloat16 from(float v) { return __float2bfloat16_rn(v); }
    template <typename R> static __device__ inline __nv_bfloat16 from(R v)
    {
        return __double2bfloat16((double)v);
    }
};

template <typename R> __device__ inline bool is_negative(R a) { return a < 0; }
template <> __device__ inline bool is_negative(uint64_t) { return false; }

/* clang-format off */
#define ORTC_CU_ELEMENTS(X) \
    X(ORTC_F32, float) X(ORTC_F16, __half) X(ORTC_BF16, __nv_bfloat16) X(ORTC_F64, double) \
    X(ORTC_I64, int64_t) X(ORTC_I32, int32_t) X(ORTC_I16, int16_t) X(ORTC_I8, int8_t) X(ORTC_U64, uint64_t) \
    X(ORTC_U32, uint32_t) X(ORTC_U16, uint16_t) X(ORTC_U8, uint8_t) X(ORTC_BOOL, boolean)
/* clang-format on */

} // namespace

#endif
