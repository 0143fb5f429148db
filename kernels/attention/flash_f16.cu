/* kernels/attention/flash_f16.cu: flash.cuh for f16. */
#include "kernels/attention/flash.cuh"

extern "C" int ortc_cu_flash_f16(const ortc_cu_flash *f, void *queue)
{
    return ortc_attention::launch_flash<__half>(f, queue);
}
