/* kernels/attention/flash_wgmma_bf16.cu: flash_wgmma.cuh for bf16. */
#include "kernels/attention/flash_wgmma.cuh"

extern "C" int ortc_cu_flash_wgmma_bf16(const ortc_cu_flash *f, void *queue)
{
    return ortc_attention::launch_flash_wgmma<__nv_bfloat16>(f, queue);
}
