/* kernels/elementwise/interpret_u64.cu: programs on registers of uint64_t. */
#include "kernels/elementwise/interpret.cuh"

extern "C" int ortc_cu_interpret_u64(const ortc_cu_program *p, void *queue)
{
    return launch<uint64_t, 4>(p, queue);
}
