/* kernels/common/vector/convert.h: f16 and bf16 computed in f32: whole rows to and from a worker's scratch,
 * which stays in L1, so that bodies need only know f32. Narrowing is the only rounding. */
#ifndef ORTC_KERNELS_VECTOR_CONVERT_H
#define ORTC_KERNELS_VECTOR_CONVERT_H

#include "kernels/common/uk.h"
#include "ortc/op.h"

enum { ORTC_FLOAT_F32, ORTC_FLOAT_F16, ORTC_FLOAT_BF16 };
#define ORTC_TYPES_BY_F32 (ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_F16) | ORTC_TYPE(ORTC_BF16))

static inline int ortc_float_index(ortc_dtype t)
{
    return t == ORTC_F16 ? ORTC_FLOAT_F16 : t == ORTC_BF16 ? ORTC_FLOAT_BF16 : ORTC_FLOAT_F32;
}

/* By ORTC_FLOAT_*; f32 is copied. Any alignment. */
typedef struct ortc_convert {
    void (*widen[3])(size_t n, const void *x, float *y);
    void (*narrow[3])(size_t n, const float *x, void *y);
} ortc_convert;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_convert)

/* The best on this machine. Thread: any. */
const ortc_convert *ortc_convert_get(void);

/* Items for a chunk of ortc_parallel, when one has so many elements: enough to be worth a handover (some
 * microseconds), and enough chunks for many threads. */
static inline int64_t ortc_rows_grain(int64_t elements)
{
    const int64_t n = 16384 / (elements > 0 ? elements : 1);
    return n > 0 ? n : 1;
}

#endif
