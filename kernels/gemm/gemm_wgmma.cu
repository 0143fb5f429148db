/* kernels/gemm/gemm_wgmma.cu: the host's part of gemm_wgmma.cuh: how the copy engine is told where a matrix
 * lies, and the kernels by type. The maps are made at each launch, which takes less than the launch, and
 * travel as its parameters.
 */
#include <cudaTypedefs.h>
#include <cuda_runtime.h>

#include "ortc/types.h"

#include "kernels/gemm/wgmma_map.cuh"

extern "C" {
int ortc_cu_gemm_wgmma_f16_nn(const ortc_cu_gemm *, int count, void *queue);
int ortc_cu_gemm_wgmma_f16_nt(const ortc_cu_gemm *, int count, void *queue);
int ortc_cu_gemm_wgmma_bf16_nn(const ortc_cu_gemm *, int count, void *queue);
int ortc_cu_gemm_wgmma_bf16_nt(const ortc_cu_gemm *, int count, void *queue);
int ortc_cu_gemm_once(const ortc_cu_gemm *, void *queue);
int ortc_cu_gemm_split(const ortc_cu_gemm *, void *queue);
}

namespace ortc_gemm {

/* The driver's function, found through the runtime: nothing is linked to the driver. */
static PFN_cuTensorMapEncodeTiled_v12000 encoder()
{
    static void *found; /* the same for every thread that looks */
    void *p = __atomic_load_n(&found, __ATOMIC_RELAXED);
    cudaDriverEntryPointQueryResult result;
    if (p) return (PFN_cuTensorMapEncodeTiled_v12000)p;
    if (cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &p, 12000, cudaEnableDefault, &result) !=
            cudaSuccess ||
        result != cudaDriverEntryPointSuccess)
        return NULL;
    __atomic_store_n(&found, p, __ATOMIC_RELAXED);
    return (PFN_cuTensorMapEncodeTiled_v12000)p;
}

bool map_of(CUtensorMap *map, const ortc_cu_gemm &g, const void *data, int64_t rows, int64_t row_step,
            int64_t k_step, const int64_t *step, bool mn_major, int box)
{
    const PFN_cuTensorMapEncodeTiled_v12000 encode = encoder();
    const int64_t outer = mn_major ? g.k : rows, pitch = mn_major ? k_step : row_step;
    cuuint64_t dims[5] = {(cuuint64_t)(mn_major ? rows : g.k), (cuuint64_t)outer, 1, 1, 1}, steps[4];
    const int bytes = g.type == ORTC_F32 ? 4 : 2;
    const cuuint32_t boxes[5] = {128u / bytes, (cuuint32_t)box, 1, 1, 1}, each[5] = {1, 1, 1, 1, 1};
    if (!encode) return false;
    steps[0] = outer > 1 ? (cuuint64_t)pitch * bytes : 16;
    for (int d = 0; d < 3; d++) {
        const bool moves = d < g.rank && step[d] && g.dims[d] > 1;
        dims[2 + d] = moves ? (cuuint64_t)g.dims[d] : 1;
        steps[1 + d] = moves ? (cuuint64_t)step[d] * bytes : 16;
    }
    return encode(map,
                  g.type == ORTC_F32   ? CU_TENSOR_MAP_DATA_TYPE_FLOAT32
                  : g.type == ORTC_F16 ? CU_TENSOR_MAP_DATA_TYPE_FLOAT16
                                       : CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                  g.rank ? 5 : 2, (void *)(uintptr_t)data, dims, steps, boxes, each,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

bool map_of_lines(CUtensorMap *map, const void *data, int64_t rows, int64_t row_bytes, int box, int lines)
{
    const PFN_cuTensorMapEncodeTiled_v12000 encode = encoder();
    const cuuint64_t dims[5] = {64, (cuuint64_t)rows, (cuuint64_t)row_bytes / 128, 1, 1},
                     steps[4] = {(cuuint64_t)row_bytes, 128, 16, 16};
    const cuuint32_t boxes[5] = {64, (cuuint32_t)box, (cuuint32_t)lines, 1, 1}, each[5] = {1, 1, 1, 1, 1};
    return encode &&
           encode(map, CU_TENSOR_MAP_DATA_TYPE_UINT16, 5, (void *)(uintptr_t)data, dims, steps, boxes, each,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

} // namespace ortc_gemm

extern "C" int ortc_cu_gemm_wgmma(const ortc_cu_gemm *g, int count, void *queue)
{
    if (g->type == ORTC_F32) return count > 1 ? cudaErrorInvalidValue : ortc_cu_gemm_split(g, queue);
    if (g->kernel >= ORTC_CU_GEMM_ONCE_64X64)
        return count > 1 ? cudaErrorInvalidValue : ortc_cu_gemm_once(g, queue);
    if (g->type == ORTC_F16)
        return (g->b_col == 1 ? ortc_cu_gemm_wgmma_f16_nn : ortc_cu_gemm_wgmma_f16_nt)(g, count, queue);
    return (g->b_col == 1 ? ortc_cu_gemm_wgmma_bf16_nn : ortc_cu_gemm_wgmma_bf16_nt)(g, count, queue);
}
