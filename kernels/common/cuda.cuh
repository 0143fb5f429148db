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

/* Launches a kernel that may start while the one before it ends, where the device can (sm_90 on): such a
 * kernel calls ortc_cu_previous before it touches global memory. */
template <typename... P, typename... A>
static inline cudaError_t ortc_cu_launch(void (*kernel)(P...), dim3 grid, dim3 block, cudaStream_t stream,
                                         A... a)
{
#ifdef __CUDACC__
    cudaLaunchAttribute with = {};
    cudaLaunchConfig_t launch = {};
    launch.gridDim = grid;
    launch.blockDim = block;
    launch.stream = stream;
    launch.attrs = &with;
    launch.numAttrs = 1;
    with.id = cudaLaunchAttributeProgrammaticStreamSerialization;
    with.val.programmaticStreamSerializationAllowed = 1;
    const cudaError_t e = cudaLaunchKernelEx(&launch, kernel, P(a)...);
    return e != cudaSuccess ? e : cudaGetLastError();
#else /* a host that plays the device */
    kernel<<<grid, block, 0, stream>>>(a...);
    return cudaGetLastError();
#endif
}

/* The kernel after this one may start, and what this one needs of the one before is there. */
__device__ inline void ortc_cu_previous()
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;\ngriddepcontrol.wait;\n" ::: "memory");
#endif
}

#endif
