/* kernels/gemm/gemm_wgmma_bf16_nt.cu: the bf16 kernels of gemm_wgmma.cuh for B whose K is dense. */
#include "kernels/gemm/gemm_wgmma.cuh"

extern "C" int ortc_cu_gemm_wgmma_bf16_nt(const ortc_cu_gemm *g, int count, void *queue)
{
    return ortc_gemm::launch_wgmma<__nv_bfloat16, false>(g, count, queue);
}
