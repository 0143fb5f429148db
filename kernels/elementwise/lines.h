/* Cast and Where over dense lines: the bodies' contract (lines_vec.c). */
#ifndef ORTC_KERNELS_ELEMENTWISE_LINES_H
#define ORTC_KERNELS_ELEMENTWISE_LINES_H

#include "kernels/common/uk.h"
#include "ortc/types.h"

/* Elements of memory, by ORTC_LINE_*, to and from f32 or i32; NULL where it is neither, or would round
 * twice. */
enum {
    ORTC_LINE_F32,
    ORTC_LINE_F16,
    ORTC_LINE_BF16,
    ORTC_LINE_F64,
    ORTC_LINE_BOOL,
    ORTC_LINE_I8,
    ORTC_LINE_U8,
    ORTC_LINE_I16,
    ORTC_LINE_U16,
    ORTC_LINE_I32,
    ORTC_LINE_I64,
    ORTC_LINE_COUNT
};
typedef struct ortc_lines {
    void (*to_f32[ORTC_LINE_COUNT])(size_t n, const void *x, float *y);
    void (*to_i32[ORTC_LINE_COUNT])(size_t n, const void *x, int32_t *y); /* the low bits of i64 */
    void (*of_f32[ORTC_LINE_COUNT])(size_t n, const float *x, void *y);
    void (*of_i32[ORTC_LINE_COUNT])(size_t n, const int32_t *x, void *y);
    void (*bool_of_i64)(size_t n, const int64_t *x, uint8_t *y);
    /* Cut towards zero. 0, and what is in y undefined: something does not fit, or is NaN. */
    int (*cut)(size_t n, const float *x, int32_t *y);
    /* y = m ? a : b, of 1, 2, 4, 8 bytes by their logarithm; steps 0 or 1. */
    void (*where[4])(size_t n, const uint8_t *m, const void *a, size_t a_step, const void *b, size_t b_step,
                     void *y);
} ortc_lines;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_lines)

#endif
