/* Folding f32 on vectors: the bodies' contract (rows_vec.c). */
#ifndef ORTC_KERNELS_REDUCE_ROWS_H
#define ORTC_KERNELS_REDUCE_ROWS_H

#include "kernels/common/uk.h"

/* What is folded how; of EXP e^(x - top). Products are of f64, for one of f32 may be infinite where a
 * longer one is not; lines of them go one by one. */
enum {
    ORTC_FOLD_SUM,
    ORTC_FOLD_ABS,
    ORTC_FOLD_SQUARE,
    ORTC_FOLD_MAX,
    ORTC_FOLD_MIN,
    ORTC_FOLD_PRODUCT,
    ORTC_FOLD_EXP,
    ORTC_FOLD_COUNT
};

typedef struct ortc_reduce_rows {
    /* A row to one number; rows of some thousand elements, so that a sum's error stays small. */
    double (*row[ORTC_FOLD_COUNT])(size_t n, const float *x, float top);
    /* The same of the first of so many short rows, which lie dense; how many. NULL: of none. */
    size_t (*rows[ORTC_FOLD_COUNT])(size_t rows, size_t n, const float *x, double *r);
    /* acc[i] = fold(acc[i], x[i], x[step + i], ..), `lines` of them in order; top: as many as acc. */
    void (*line[ORTC_FOLD_COUNT])(size_t n, size_t lines, size_t step, const float *x, const float *top,
                                  float *acc);
} ortc_reduce_rows;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_reduce_rows)

#endif
