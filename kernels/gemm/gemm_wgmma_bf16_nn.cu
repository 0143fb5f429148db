/* kernels/gemm/gemm_wgmma_bf16_nn.cu: the bf16 kernels of gemm_wgmma.cuh for B whose N is dense. */
#include "kernels/gemm/gemm_wgmma.cuh"

extern "C" int ortc_cu_gemm_wgmma_bf16_nn(const ortc_cu_gemm *g, int count, void *queue)
{
    return ortc_gemm::launch_wgmma<__nv_bfloat16, true>(g, count, queue);
}
