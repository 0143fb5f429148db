/* kernels/common/vector/interleave.h: sixteen bytes as a vector of any machine (on x86-64 a register of SSE2,
 * whose punpck these become), for what moves bytes. */
#ifndef ORTC_KERNELS_VECTOR_INTERLEAVE_H
#define ORTC_KERNELS_VECTOR_INTERLEAVE_H

#include <stdint.h>

typedef uint8_t ortc_v16 __attribute__((vector_size(16)));
typedef uint16_t ortc_v8 __attribute__((vector_size(16)));
typedef uint32_t ortc_v4 __attribute__((vector_size(16)));

/* a0 b0 a1 b1 ... of the lower and the upper halves. */
#define ORTC_LOW_BYTES(a, b) \
    __builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23)
#define ORTC_HIGH_BYTES(a, b) \
    __builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31)
#define ORTC_LOW_PAIRS(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11)
#define ORTC_HIGH_PAIRS(a, b) __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15)
#define ORTC_LOW_WORDS(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define ORTC_HIGH_WORDS(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define ORTC_LOW_HALVES(a, b) __builtin_shufflevector(a, b, 0, 1, 4, 5)
#define ORTC_HIGH_HALVES(a, b) __builtin_shufflevector(a, b, 2, 3, 6, 7)

/* (a[i], b[i], c[i], d[i]) of 16 columns. */
static inline __attribute__((always_inline)) void ortc_quads_of(ortc_v16 a, ortc_v16 b, ortc_v16 c,
                                                                ortc_v16 d, ortc_v4 out[4])
{
    const ortc_v8 low0 = (ortc_v8)ORTC_LOW_BYTES(a, b), low1 = (ortc_v8)ORTC_LOW_BYTES(c, d),
                  high0 = (ortc_v8)ORTC_HIGH_BYTES(a, b), high1 = (ortc_v8)ORTC_HIGH_BYTES(c, d);
    out[0] = (ortc_v4)ORTC_LOW_PAIRS(low0, low1), out[1] = (ortc_v4)ORTC_HIGH_PAIRS(low0, low1);
    out[2] = (ortc_v4)ORTC_LOW_PAIRS(high0, high1), out[3] = (ortc_v4)ORTC_HIGH_PAIRS(high0, high1);
}

#endif
