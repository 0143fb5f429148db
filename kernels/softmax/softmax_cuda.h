/* kernels/softmax/softmax_cuda.h: the launcher of softmax.cu. */
#ifndef ORTC_KERNELS_SOFTMAX_CUDA_H
#define ORTC_KERNELS_SOFTMAX_CUDA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* `rows` rows of `length` elements, `stride` apart; f32, f16, bf16. Nothing is empty. y may be x. Gives a
 * cudaError_t. */
int ortc_cu_softmax(int32_t dtype, int is_log, void *y, const void *x, int64_t rows, int64_t length,
                    int64_t stride, void *queue);

#ifdef __cplusplus
}
#endif
#endif
