/* kernels/attention/flash_wgmma_f16.cu: flash_wgmma.cuh for f16. */
#include "kernels/attention/flash_wgmma.cuh"

extern "C" int ortc_cu_flash_wgmma_f16(const ortc_cu_flash *f, void *queue)
{
    return ortc_attention::launch_flash_wgmma<__half>(f, queue);
}
