/* The depthwise micro-kernel for AVX-512: dwconv_tile.inc on its vectors. */
#include "dwconv_uk.h"

#include "kernels/common/vector_avx512.h"
#include "kernels/gemm/sgemm_uk.h"

#define DW_NAME ortc_uk_dwconv_f32_avx512
#include "dwconv_tile.inc"
