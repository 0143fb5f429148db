/* A micro-kernel of s32 sums in plain C: the version that always exists. Bytes are packed as pairs of 16
 * bits. */
#include "product_uk.h"

#include <assert.h>

#define MR 4
#define NR 8

static inline __attribute__((always_inline)) void sum(size_t mr, size_t nr, size_t groups, const int16_t *a,
                                                      const int16_t *b, size_t ldb, int32_t acc[MR][NR])
{
    for (size_t g = 0; g < groups; g++)
        for (size_t i = 0; i < mr; i++)
            for (size_t j = 0; j < nr; j++)
                acc[i][j] += a[2 * (g * mr + i)] * b[2 * (g * ldb + j)] +
                             a[2 * (g * mr + i) + 1] * b[2 * (g * ldb + j) + 1];
}

ortc_uk_product ortc_uk_product_s16_s16_4x8_scalar;
void ortc_uk_product_s16_s16_4x8_scalar(size_t mr, size_t nr, size_t groups, const void *a, const void *b,
                                        size_t ldb, void *sums, size_t ld, uint32_t flags,
                                        const ortc_uk_tail_f32 *tail, const ortc_uk_ahead *ahead)
{
    (void)ahead;
    int32_t *c = sums, acc[MR][NR] = {{0}};
    assert(mr >= 1 && mr <= MR && nr >= 1 && nr <= NR && !tail);
    (void)tail;
    if (mr == MR && nr == NR)
        sum(MR, NR, groups, a, b, ldb, acc);
    else
        sum(mr, nr, groups, a, b, ldb, acc);
    for (size_t i = 0; i < mr; i++)
        for (size_t j = 0; j < nr; j++) /* as unsigned: sums wrap */
            c[i * ld + j] = (int32_t)((flags & ORTC_UK_ACCUMULATE ? (uint32_t)c[i * ld + j] : 0) +
                                      (uint32_t)acc[i][j]);
}
