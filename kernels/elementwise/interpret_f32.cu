/* kernels/elementwise/interpret_f32.cu: programs on registers of float. */
#include "kernels/elementwise/interpret.cuh"

extern "C" int ortc_cu_interpret_f32(const ortc_cu_program *p, void *queue)
{
    return launch<float, 8>(p, queue);
}
