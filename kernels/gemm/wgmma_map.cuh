/* kernels/gemm/wgmma_map.cuh: how the copy engine is told where a matrix lies (gemm_wgmma.cu), for the
 * families that use it. */
#ifndef ORTC_KERNELS_GEMM_WGMMA_MAP_CUH
#define ORTC_KERNELS_GEMM_WGMMA_MAP_CUH

#include <cuda.h>

#include "kernels/gemm/cuda_gemm.h"
#include "kernels/gemm/wgmma.cuh"

namespace ortc_gemm {

/* A matrix from `data` on with `rows` along M or N and g.k along K, K dense or not; of g the type and the
 * batch count, `step` are the operand's steps in it. Copies take 128 bytes of the dense side, `box`
 * elements of the other. False: it cannot be told. */
bool map_of(CUtensorMap *map, const ortc_cu_gemm &g, const void *data, int64_t rows, int64_t row_step,
            int64_t k_step, const int64_t *step, bool mn_major, int box);

/* `rows` rows of `row_bytes`, whole lines of 128 bytes: copies take `lines` lines of `box` rows, line by
 * line; coordinates are 0, row, line. */
bool map_of_lines(CUtensorMap *map, const void *data, int64_t rows, int64_t row_bytes, int box, int lines);

} // namespace ortc_gemm

#endif
