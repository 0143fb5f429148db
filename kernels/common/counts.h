/* Counts that loops are split by, none negative; b, and parts, above 0. */
#ifndef ORTC_KERNELS_COUNTS_H
#define ORTC_KERNELS_COUNTS_H

#include <stdint.h>

static inline int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static inline int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }
static inline int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }
/* Where part i of n begins, dealt evenly. */
static inline int64_t dealt(int64_t n, int64_t parts, int64_t i)
{
    return n / parts * i + min64(n % parts, i);
}

#endif
