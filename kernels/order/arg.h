/* The place of the largest or smallest f32, on vectors: the bodies' contract (arg_vec.c). A NaN is the choice
 * of both; of equal elements the first is chosen, or the last. */
#ifndef ORTC_KERNELS_ORDER_ARG_H
#define ORTC_KERNELS_ORDER_ARG_H

#include "kernels/common/uk.h"

typedef struct ortc_arg {
    int64_t (*row)(size_t n, const float *x, int largest, int last); /* n > 0 */
    /* Lines are given one after another, k the number of this one: best[i] and index[i] are changed where
     * x[i] is better; line 0 sets them. */
    void (*line)(size_t n, int32_t k, const float *x, int largest, int last, float *best, int32_t *index);
} ortc_arg;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_arg)

#endif
