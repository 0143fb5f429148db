/* kernels/elementwise/interpret_i64.cu: programs on registers of int64_t. */
#include "kernels/elementwise/interpret.cuh"

extern "C" int ortc_cu_interpret_i64(const ortc_cu_program *p, void *queue)
{
    return launch<int64_t, 4>(p, queue);
}
