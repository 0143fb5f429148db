/* tests/gpu/by_hand.cuh: what the programs here share that run kernels without the rest of ortc (tiles.cu,
 * heads.cu, nbits.cu, rows.cu; `ninja gpu-programs` builds them). */
#ifndef ORTC_TESTS_GPU_BY_HAND_CUH
#define ORTC_TESTS_GPU_BY_HAND_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <vector>

#include "ortc/op.h"

#define CHECK(e) \
    do { \
        const cudaError_t e_ = (cudaError_t)(e); \
        if (e_ != cudaSuccess) { \
            printf("%s:%d: %s\n", __FILE__, __LINE__, cudaGetErrorString(e_)); \
            exit(1); \
        } \
    } while (0)

static uint64_t state = 1;
static uint32_t draw(uint32_t n) /* 0 .. n - 1 */
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)((state >> 33) % n);
}

#endif
