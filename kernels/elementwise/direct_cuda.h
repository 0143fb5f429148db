/* kernels/elementwise/direct_cuda.h: the launchers of direct_unary.cu and direct_binary.cu. */
#ifndef ORTC_KERNELS_ELEMENTWISE_DIRECT_CUDA_H
#define ORTC_KERNELS_ELEMENTWISE_DIRECT_CUDA_H

#include "kernels/elementwise/cuda_program.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct ortc_cu_direct {
    void *y;
    const void *x, *a;   /* a: NULL where the operand is a number, or there is none */
    int64_t packs;       /* of 16 bytes, below 2^31 */
    ortc_cu_divisor row; /* packs that `a` has, where it is a repeated row */
    float number;
    int32_t dtype, repeated;
} ortc_cu_direct;

/* 1: launched, *error says how that went; 0: there is no such kernel. */
int ortc_cu_direct_unary(int op, const ortc_cu_direct *, void *queue, int *error);
int ortc_cu_direct_binary(int op, const ortc_cu_direct *, void *queue, int *error);

#ifdef __cplusplus
}
#endif
#endif
