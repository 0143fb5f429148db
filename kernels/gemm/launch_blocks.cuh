/* kernels/gemm/launch_blocks.cuh: launches of Hopper's kernels: clusters, and kernels that start while the
 * one before ends.
 */
#ifndef ORTC_KERNELS_GEMM_LAUNCH_BLOCKS_CUH
#define ORTC_KERNELS_GEMM_LAUNCH_BLOCKS_CUH

#include <cuda_runtime.h>

namespace ortc_hopper {

/* So many blocks, in a row or in columns, `together` in a cluster, which may start while the kernel before
 * ends; `shared` bytes of dynamic shared memory. */
template <typename K, typename... Arguments>
static int launch_blocks(K kernel, dim3 blocks, int together, int threads, int shared, void *queue,
                         const Arguments &...arguments)
{
    cudaError_t e = cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, shared);
    if (e != cudaSuccess) return e;
    cudaLaunchAttribute with[2] = {};
    cudaLaunchConfig_t launch = {};
    launch.gridDim = blocks;
    launch.blockDim = dim3((unsigned)threads);
    launch.dynamicSmemBytes = (size_t)shared;
    launch.stream = (cudaStream_t)queue;
    launch.attrs = with;
    with[launch.numAttrs].id = cudaLaunchAttributeProgrammaticStreamSerialization;
    with[launch.numAttrs++].val.programmaticStreamSerializationAllowed = 1;
    if (together > 1) {
        with[launch.numAttrs].id = cudaLaunchAttributeClusterDimension;
        with[launch.numAttrs].val.clusterDim.x = (unsigned)together;
        with[launch.numAttrs].val.clusterDim.y = with[launch.numAttrs].val.clusterDim.z = 1;
        launch.numAttrs++;
    }
    e = cudaLaunchKernelEx(&launch, kernel, arguments...);
    return e != cudaSuccess ? e : cudaGetLastError();
}

} // namespace ortc_hopper

#endif
