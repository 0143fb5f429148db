/* Walks through trees (walks.h), a body for every instruction set: a step of all, then the next one, so that
 * none waits for what another one reads. */
#include "kernels/ml/walks.h"

#include "kernels/common/vector/vec.h"

#if V_LANES > 4
VFN vi32 gather(const int32_t *base, vi32 index, size_t n)
{
    return (vi32)v_gather_f32((const float *)(const void *)base, index, n);
}

static void walk(const ml_records *r, size_t n, int64_t steps, const float *rows, const int32_t *row,
                 int32_t *at)
{
    const vi32 asks = v_set_i32(ML_ASKS), none = v_set_i32(0);
    for (int64_t s = 0; s < steps; s++) {
        vi32 any = none;
        V_FOR(i, left, n, {
            const vi32 here = v_load_i32(at + i, left), next = gather(r->next, here, left);
            const vi32 feature = v_add(v_load_i32(row + i, left), gather(r->feature, here, left));
            const vf32 v = v_gather_f32(r->value, here, left), x = v_gather_f32(rows, feature, left);
            const vi32 missing = v_sel_i32(v_eq(x, x), none, v_and(v_shr(next, 1), asks));
            const vi32 low = v_sel_i32(v_le(x, v), asks, missing);
            any = v_or(any, next);
            v_store_i32(at + i, v_add(v_shr(next, ML_NEXT), v_and(v_xor(low, asks), next)), left);
        });
        if (!v_any(v_lt_i32(none, v_and(any, asks)))) return;
    }
}
#else
/* Registers of four gain nothing by gathering. */
static void walk(const ml_records *r, size_t n, int64_t steps, const float *rows, const int32_t *row,
                 int32_t *at)
{
    for (int64_t s = 0; s < steps; s++) {
        int32_t any = 0;
        for (size_t i = 0; i < n; i++) {
            const int32_t here = at[i], next = r->next[here];
            const float v = r->value[here], x = rows[row[i] + r->feature[here]];
            const int32_t low = (x <= v) | ((x != x) & next >> 1);
            at[i] = (next >> ML_NEXT) + (~low & next & ML_ASKS);
            any |= next;
        }
        if (!(any & ML_ASKS)) return;
    }
}
#endif

const ml_walks V_NAME(ml_walks) = {walk};
