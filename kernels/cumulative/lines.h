/* Running totals along lines and rows: the bodies' contract (lines_vec.c). Totals are doubles of floats (with
 * f32 over a few lines), else 64-bit integers, as on ref. By ORTC_TOTAL_*, the width of integers, signed or
 * not: the same bits. */
#ifndef ORTC_KERNELS_CUMULATIVE_LINES_H
#define ORTC_KERNELS_CUMULATIVE_LINES_H

#include "kernels/common/uk.h"
#include "kernels/cumulative/cumulative.h"

enum {
    ORTC_TOTAL_F32,
    ORTC_TOTAL_F16,
    ORTC_TOTAL_BF16,
    ORTC_TOTAL_F64,
    ORTC_TOTAL_32,
    ORTC_TOTAL_64,
    ORTC_TOTALS
};
enum { ORTC_TOTAL_LINE = 1024 /* elements at most */, ORTC_TOTAL_PAD = 16 };

typedef struct ortc_cumulative_lines {
    /* `length` lines of n <= ORTC_TOTAL_LINE elements, `step` apart: totals of elements below each other. y
     * may be x. */
    void (*down[ORTC_TOTALS])(const ortc_cumulative_state *, int64_t length, size_t n, int64_t step,
                              const void *x, void *y);
    /* Totals along a row; y may be x. Not of f16 and bf16. */
    void (*along[ORTC_TOTALS])(const ortc_cumulative_state *, int64_t length, const void *x, void *y);
} ortc_cumulative_lines;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_cumulative_lines)

#endif
