/* kernels/gemm/nbits_pair.cuh: two weights of f16 or bf16 in a register, as integers in the low bits of a
 * number large enough that they count its units (nbits.cu, nbits_row.cu). */
#ifndef ORTC_KERNELS_GEMM_NBITS_PAIR_CUH
#define ORTC_KERNELS_GEMM_NBITS_PAIR_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>
#include <string.h>

namespace ortc_nbits {

template <typename T> struct Pair;
template <> struct Pair<__half> {
    typedef __half2 type;
    static constexpr uint32_t magic = 0x64006400, base = 1024; /* of both: 1024 */
};
template <> struct Pair<__nv_bfloat16> {
    typedef __nv_bfloat162 type;
    static constexpr uint32_t magic = 0x43004300, base = 128;
};
template <typename T> __device__ __forceinline__ typename Pair<T>::type pair_of(uint32_t bits)
{
    typename Pair<T>::type p;
    memcpy(&p, &bits, sizeof p);
    return p;
}
template <typename T> __device__ __forceinline__ uint32_t bits_of(typename Pair<T>::type p)
{
    uint32_t bits;
    memcpy(&bits, &p, sizeof bits);
    return bits;
}
} // namespace ortc_nbits

#endif
