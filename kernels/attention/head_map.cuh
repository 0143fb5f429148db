/* kernels/attention/head_map.cuh: how the copy engine is told where the heads of a tensor lie. */
#ifndef ORTC_KERNELS_ATTENTION_HEAD_MAP_CUH
#define ORTC_KERNELS_ATTENTION_HEAD_MAP_CUH

#include "kernels/attention/cuda_attention.h"
#include "kernels/gemm/wgmma_map.cuh"

namespace ortc_attention {

/* Rows of a tensor of heads: `length` of them, `size` elements each; a copy takes `box` of them, at
 * {key head, sample}. */
static bool head_map(CUtensorMap *map, const ortc_cu_flash &f, const void *data, const int64_t *step,
                     int64_t length, int64_t heads, int64_t size, int box)
{
    ortc_cu_gemm g = {};
    g.type = f.rows.type, g.k = size, g.rank = 2, g.dims[0] = heads, g.dims[1] = f.rows.batch;
    const int64_t steps[2] = {step[1], step[0]};
    return ortc_gemm::map_of(map, g, data, length, step[2], 1, steps, false, box);
}

} // namespace ortc_attention

#endif
