/* kernels/norm/norm_cuda.h: the launcher of norm.cu. */
#ifndef ORTC_KERNELS_NORM_CUDA_H
#define ORTC_KERNELS_NORM_CUDA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Rows of `length` elements that lie dense, all of type dtype (f32, f16, bf16). */
typedef struct ortc_cu_norm {
    void *y;                      /* may be x */
    const void *x, *scale, *bias; /* bias: NULL for none */
    float *mean, *inverse;        /* a number per row; NULL: not wanted */
    int64_t rows, length;
    /* Element i of row r has scale[(r % groups * length + i) / each % count]: Layer- and RMSNormalization
     * have groups 1 and each 1, the others a scale per channel of `each` elements. */
    int64_t groups, each, scale_count, bias_count;
    float epsilon;
    int32_t dtype, centred; /* centred: the mean is taken off */
} ortc_cu_norm;

int ortc_cu_norm_run(const ortc_cu_norm *, void *queue); /* cudaError_t; nothing is empty */

#ifdef __cplusplus
}
#endif
#endif
