/* A micro-kernel of f32 in plain C: the version that always exists, and the one to read first. A 4x8 tile in
 * local arrays, which compilers keep in registers where there are enough; multiply and add are rounded
 * separately.
 */
#include "product_uk.h"

#include <assert.h>

#define MR 4
#define NR 8

/* Inlined with constant mr and w for the full tile, and as it is for the edges. */
static inline __attribute__((always_inline)) void sum(size_t mr, size_t w, size_t k, const float *a,
                                                      const float *b, size_t ldb, float acc[MR][NR])
{
    for (size_t kk = 0; kk < k; kk++)
        for (size_t i = 0; i < mr; i++)
            for (size_t j = 0; j < w; j++)
                acc[i][j] += ortc_uk_load_f32(a + kk * mr + i) * ortc_uk_load_f32(b + kk * ldb + j);
}

static float finish(float v, const ortc_uk_tail_f32 *t, size_t i, size_t j)
{
    v *= t->alpha;
    if (t->bias_col) v += ortc_uk_load_f32(t->bias_col + j);
    if (t->bias_row) v += ortc_uk_load_f32(t->bias_row + i);
    if (t->residual) v += t->beta * ortc_uk_load_f32(t->residual + i * t->residual_stride + j);
    if (t->act == ORTC_UK_ACT_CLIP) {
        v = v < t->lo ? t->lo : v; /* comparisons with NaN are false: it stays */
        v = v > t->hi ? t->hi : v;
    } else if (t->act == ORTC_UK_ACT_LEAKY) {
        v = v < 0 ? v * t->lo : v;
    }
    return v;
}

ortc_uk_product ortc_uk_product_f32_f32_4x8_scalar;
void ortc_uk_product_f32_f32_4x8_scalar(size_t mr, size_t nr, size_t k, const void *a, const void *b,
                                        size_t ldb, void *sums, size_t ldc, uint32_t flags,
                                        const ortc_uk_tail_f32 *tail, const ortc_uk_ahead *ahead)
{
    (void)ahead;
    float *c = sums;
    assert(mr >= 1 && mr <= MR && nr >= 1 && nr <= NR);
    float acc[MR][NR] = {{0}};
    if (mr == MR && nr == NR)
        sum(MR, NR, k, a, b, ldb, acc);
    else
        sum(mr, nr, k, a, b, ldb, acc);
    for (size_t i = 0; i < mr; i++)
        for (size_t j = 0; j < nr; j++) {
            float v = acc[i][j];
            if (flags & ORTC_UK_ACCUMULATE) v = c[i * ldc + j] + v;
            c[i * ldc + j] = tail ? finish(v, tail, i, j) : v;
        }
}

ortc_uk_pack_f32 ortc_uk_pack_rows_f32_scalar, ortc_uk_pack_transpose_f32_scalar;
void ortc_uk_pack_rows_f32_scalar(size_t w, size_t k, const float *src, size_t ld, float *dst, size_t dw)
{
    assert(dw >= w);
    for (size_t i = 0; i < k; i++)
        for (size_t j = 0; j < dw; j++) dst[i * dw + j] = j < w ? ortc_uk_load_f32(src + i * ld + j) : 0.0f;
}

void ortc_uk_pack_transpose_f32_scalar(size_t w, size_t k, const float *src, size_t ld, float *dst, size_t dw)
{
    assert(dw >= w);
    for (size_t j = 0; j < dw; j++)
        for (size_t i = 0; i < k; i++) dst[i * dw + j] = j < w ? ortc_uk_load_f32(src + j * ld + i) : 0.0f;
}
