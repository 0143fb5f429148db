/* kernels/shape/cuda_strided.h: copies between strided tensors on a GPU: what Transpose, Concat, Split,
 * Slice, Expand, Tile and Pad are made of.
 */
#ifndef ORTC_KERNELS_SHAPE_CUDA_STRIDED_H
#define ORTC_KERNELS_SHAPE_CUDA_STRIDED_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { ORTC_CU_MOVE_RANK = 17 };

/* to[i * to_step] = from[i * from_step] for every index i below dims. Steps may be 0 in `from` (repeated) and
 * negative. */
typedef struct ortc_cu_move {
    void *to;
    const void *from;
    int32_t rank;
    uint32_t bytes; /* of an element: 1, 2, 4, 8, 16 */
    int64_t dims[ORTC_CU_MOVE_RANK], to_step[ORTC_CU_MOVE_RANK], from_step[ORTC_CU_MOVE_RANK]; /* elements */
} ortc_cu_move;

/* cuda_strided.c: in the form that takes the fewest and widest accesses. 0: nothing to move. */
int ortc_cu_move_simplify(ortc_cu_move *);

/* strided.cu. Both give a cudaError_t. */
int ortc_cu_move_run(const ortc_cu_move *, void *queue); /* simplifies first */
/* `count` elements of `bytes` each, all the same as the one at `value` on the device; NULL: zeros. */
int ortc_cu_fill(void *to, int64_t count, uint32_t bytes, const void *value, void *queue);
/* bytes: up to 8 */
int ortc_cu_fill_with(void *to, int64_t count, uint32_t bytes, uint64_t bits, void *queue);

#ifdef __cplusplus
}
#endif
#endif
