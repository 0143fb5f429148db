/* kernels/common/cuda.cuh: what .cu files share. Device code only: cuda.h is for the C side. */
#ifndef ORTC_KERNELS_CUDA_CUH
#define ORTC_KERNELS_CUDA_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#define ORTC_FAULT_INDEX 1u /* op.h's */

/* Blocks for a loop over n that strides by the grid: enough to fill any device, few enough for the launch to
 * be cheap. */
static inline unsigned ortc_cu_blocks(int64_t n, int threads)
{
    int64_t blocks = (n + threads - 1) / threads;
    return (unsigned)(blocks < 1 ? 1 : blocks > 132 * 32 ? 132 * 32 : blocks);
}

#endif
