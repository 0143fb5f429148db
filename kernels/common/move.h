/* kernels/common/move.h: the one loop of ref's operators that only move elements. */
#ifndef ORTC_KERNELS_MOVE_H
#define ORTC_KERNELS_MOVE_H

#include "kernels/common/shape.h"

/* Output 0, seen as a tensor of these dims, takes elements of input 0 by strides, from element `start` on.
 * Any element type but strings; what is behind the last element in its byte becomes 0. */
ortc_status ortc_move_strided(ortc_call *, int32_t rank, const int64_t *dims, const int64_t *strides,
                              int64_t start);

#endif
