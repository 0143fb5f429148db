/* kernels/quantize/dequantize_cuda.h: the launcher of dequantize.cu. */
#ifndef ORTC_KERNELS_QUANTIZE_CUDA_H
#define ORTC_KERNELS_QUANTIZE_CUDA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Which scale belongs to an element is said as in quantize.h (ortc_granularity). */
typedef struct ortc_cu_dequantize {
    void *y;
    const void *x, *scale, *zero; /* zero: of x's type; NULL for none */
    int64_t count, inner, extent, block, blocks;
    int32_t whole, x_dtype, scale_dtype, y_dtype;
} ortc_cu_dequantize;

int ortc_cu_dequantize_run(const ortc_cu_dequantize *, void *queue); /* cudaError_t; not empty */

#ifdef __cplusplus
}
#endif
#endif
