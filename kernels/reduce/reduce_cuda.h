/* kernels/reduce/reduce_cuda.h: the launcher of reduce.cu. */
#ifndef ORTC_KERNELS_REDUCE_CUDA_H
#define ORTC_KERNELS_REDUCE_CUDA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ORTC_CU_REDUCE_RANK = 8 };
enum {
    ORTC_CU_SUM,
    ORTC_CU_MEAN,
    ORTC_CU_MAX_OF,
    ORTC_CU_MIN_OF,
    ORTC_CU_PROD,
    ORTC_CU_L1,
    ORTC_CU_L2,
    ORTC_CU_SUM_SQUARE,
    ORTC_CU_LOG_SUM
};

/* A reduction seen as dims that are kept and dims that are reduced, each in order, with their steps in x
 * (elements). */
typedef struct ortc_cu_reduce {
    void *y;
    const void *x;
    /* workspace: ortc_cu_reduce_splits(...) * results of 8 bytes, where that is above 1 */
    void *partial;
    int32_t what, dtype;
    int32_t n_kept, n_reduced;
    int64_t kept[ORTC_CU_REDUCE_RANK], kept_step[ORTC_CU_REDUCE_RANK];
    int64_t reduced[ORTC_CU_REDUCE_RANK], reduced_step[ORTC_CU_REDUCE_RANK];
    int64_t results, each; /* products of the two */
} ortc_cu_reduce;

/* In how many parts each result is computed: depends on the counts alone, so that bits do not change. */
static inline int64_t ortc_cu_reduce_splits(int64_t results, int64_t each)
{
    int64_t splits = 1;
    while (results * splits < 264 && each / splits >= 8192) splits *= 2;
    return splits;
}

int ortc_cu_reduce_run(const ortc_cu_reduce *, void *queue); /* cudaError_t */

#ifdef __cplusplus
}
#endif
#endif
