/* The depthwise micro-kernel for AVX2 with FMA: dwconv_tile.inc on its vectors. */
#include "dwconv_uk.h"

#include "kernels/common/vector_avx2.h"
#include "kernels/gemm/sgemm_uk.h"

#define DW_NAME ortc_uk_dwconv_f32_avx2
#include "dwconv_tile.inc"
