/* kernels/gemm/gemm_bf16_nn.cu: the bf16 kernels of gemm_mma.cuh for B whose N is dense. */
#include "kernels/gemm/gemm_mma.cuh"

extern "C" int ortc_cu_gemm_bf16_nn(const ortc_cu_gemm *g, void *queue)
{
    return ortc_gemm::launch_mma<__nv_bfloat16, false>(*g, queue);
}
