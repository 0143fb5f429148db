/* kernels/index/index_cuda.h: the launchers of pick.cu. */
#ifndef ORTC_KERNELS_INDEX_CUDA_H
#define ORTC_KERNELS_INDEX_CUDA_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ORTC_CU_INDEX_RANK = 8 };

/* y[i] = x[place of i by `step` + index[i] * stride] */
typedef struct ortc_cu_pick {
    void *y;
    const void *x, *indices;
    int32_t wide, rank;            /* wide: indices are 64-bit */
    int64_t count, extent, stride; /* extent, stride: of x along the axis */
    /* of the indices; x's strides, 0 along the axis */
    int64_t dims[ORTC_CU_INDEX_RANK], step[ORTC_CU_INDEX_RANK];
    uint32_t *fault;
} ortc_cu_pick;

/* Tuples of `length` indices name slices of x: [batches, rows, slice]; dims are those that the rows are made
 * of. */
typedef struct ortc_cu_tuples {
    void *y;
    const void *x;
    const int64_t *indices;
    int32_t length, reserved;
    int64_t tuples, each, rows, slice_bytes; /* each: tuples of a batch */
    int64_t dims[ORTC_CU_INDEX_RANK];
    uint32_t *fault;
} ortc_cu_tuples;

/* Nothing is empty. cudaError_t. */
int ortc_cu_gather_elements(const ortc_cu_pick *, uint32_t bytes, void *queue);
int ortc_cu_gather_nd(const ortc_cu_tuples *, void *queue);

#ifdef __cplusplus
}
#endif
#endif
