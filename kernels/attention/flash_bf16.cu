/* kernels/attention/flash_bf16.cu: flash.cuh for bf16. */
#include "kernels/attention/flash.cuh"

extern "C" int ortc_cu_flash_bf16(const ortc_cu_flash *f, void *queue)
{
    return ortc_attention::launch_flash<__nv_bfloat16>(f, queue);
}
