/* kernels/gemm/gemm_wgmma_f16_nn.cu: the f16 kernels of gemm_wgmma.cuh for B whose N is dense. */
#include "kernels/gemm/gemm_wgmma.cuh"

extern "C" int ortc_cu_gemm_wgmma_f16_nn(const ortc_cu_gemm *g, int count, void *queue)
{
    return ortc_gemm::launch_wgmma<__half, true>(g, count, queue);
}
