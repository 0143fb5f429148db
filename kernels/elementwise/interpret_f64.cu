/* kernels/elementwise/interpret_f64.cu: programs on registers of double. */
#include "kernels/elementwise/interpret.cuh"

extern "C" int ortc_cu_interpret_f64(const ortc_cu_program *p, void *queue)
{
    return launch<double, 2>(p, queue);
}
