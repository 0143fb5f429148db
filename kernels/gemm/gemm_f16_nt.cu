/* kernels/gemm/gemm_f16_nt.cu: the f16 kernels of gemm_mma.cuh for B whose K is dense. */
#include "kernels/gemm/gemm_mma.cuh"

extern "C" int ortc_cu_gemm_f16_nt(const ortc_cu_gemm *g, void *queue)
{
    return ortc_gemm::launch_mma<__half, true>(*g, queue);
}
