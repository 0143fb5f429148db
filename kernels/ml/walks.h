/* kernels/ml/walks.h: walks of many rows through a tree, or of a row through many: the body's contract
 * (walks_vec.c). */
#ifndef ORTC_KERNELS_ML_WALKS_H
#define ORTC_KERNELS_ML_WALKS_H

#include "kernels/common/uk.h"

/* Of `next`: whether it asks, and whether a NaN counts as at most the value; above these bits the record that
 * follows where the feature is at most the value, and beside which the other one lies, or a leaf's own. */
enum { ML_ASKS = 1, ML_MISSING_IS_LOW = 2, ML_NEXT = 2 };
typedef struct ml_records {
    const float *value;
    const int32_t *feature, *next; /* 0 and itself of a leaf */
} ml_records;

typedef struct ml_walks {
    /* From records at[] on, of n walks, by the features at rows + row[], so many steps at most, to leaves. */
    void (*walk)(const ml_records *, size_t n, int64_t steps, const float *rows, const int32_t *row,
                 int32_t *at);
} ml_walks;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ml_walks)

#endif
