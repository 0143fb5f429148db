/* kernels/common/vector/strided.h: moving elements of whole bytes between two tensors by strides, at memory's
 * speed: what Transpose, Slice, Expand, Concat and Split are on the cpu provider. */
#ifndef ORTC_KERNELS_STRIDED_H
#define ORTC_KERNELS_STRIDED_H

#include "kernels/common/iterate.h"

typedef struct ortc_strided {
    void *to;
    const void *from;
    size_t bytes; /* of an element: 1, 2, 4, 8, 16 */
    int32_t rank;
    int64_t dims[ORTC_RANK_LIMIT];
    int64_t to_step[ORTC_RANK_LIMIT],
        from_step[ORTC_RANK_LIMIT]; /* elements; from_step may be 0 or negative */
} ortc_strided;

/* to[sum of index * to_step] = from[sum of index * from_step] for every index within dims; the two do not
 * overlap. */
ortc_status ortc_strided_move(ortc_call *, const ortc_strided *);

#endif
