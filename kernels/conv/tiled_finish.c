/* What becomes of sums of tiles (tiled.h). */
#include <math.h>

#include "kernels/gemm/product_uk.h"
#include "tiled_loops.h"

#define BLOCK ORTC_BLOCK
#define UNIT ORTC_TILED_UNIT

typedef ortc_tiled_job job;
typedef ortc_tiled_band band;

void ortc_tiled_finish(const band *b, int fixed, float *sums, int64_t block, int64_t blocks, int64_t from,
                       int64_t to)
{
    const job *j = b->j;
    const ortc_tiled_plan *p = j->p;
    const int whole = p->pitch == p->e.out[2]; /* nothing lies between rows: they are one */
    for (int64_t q = from; q < to;) {
        const int64_t row = whole ? 0 : q / p->pitch, column = q - row * p->pitch;
        if (!whole && column >= b->pixels) {
            q = (row + 1) * p->pitch;
            continue;
        }
        const int64_t n = whole ? to - q : min64(b->pixels - column, to - q);
        for (int64_t k = 0; k < blocks; k++) {
            const int64_t all = block + k, lanes = all % p->outs + 1 < p->outs ? BLOCK : p->lanes;
            const int64_t at = ((b->image * p->group * p->outs + all) * p->out_count +
                                (b->plane * p->e.out[1] + b->row + row) * p->e.out[2] + b->column + column) *
                               BLOCK;
            float *s = sums + (k * UNIT + q - from) * BLOCK;
            if (fixed) {
                ortc_blocked_fixed(j->a, all, (const int32_t *)(const void *)s, n, at);
            } else if (j->straight && lanes == BLOCK) {
                const int clip = j->a->tail->act == ORTC_UK_ACT_CLIP;
                const float *residual = j->a->residual;
                p->uk->clip((size_t)(n * BLOCK), s, residual ? residual + at : NULL,
                            clip ? j->a->tail->lo : -INFINITY, clip ? j->a->tail->hi : INFINITY,
                            (float *)j->a->y + at);
            } else {
                ortc_blocked_finish(&j->end, s, n, all * BLOCK, (size_t)lanes, at);
            }
        }
        q += n;
    }
}
