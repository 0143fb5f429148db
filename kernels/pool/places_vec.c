/* Maxima and their places (places.h), a body for every instruction set. */
#include "kernels/pool/places.h"

#include "kernels/common/vector/vec.h"

static void find(size_t count, const float *x, size_t stride, int32_t first, int32_t step, float *best,
                 int32_t *place)
{
    const vi32 lanes = v_iota(), steps = v_mul(lanes, v_set_i32((int32_t)stride)), zero = v_set_i32(0);
    V_FOR(i, n, count, {
        const float *p = x + i * stride;
        const vf32 v = stride == 1   ? v_load_f32(p, n)
                       : stride == 2 ? v_load_even_f32(p, n)
                                     : v_gather_f32(p, steps, n);
        const vf32 b = v_load_f32(best + i, n);
        const vi32 old = v_load_i32(place + i, n);
        const vi32 here = v_add(v_set_i32(first + (int32_t)i * step), v_mul(lanes, v_set_i32(step)));
        const vm32 nan = v_and(v_not(v_eq(v, v)), v_eq(b, b));
        const vm32 takes = v_or(v_or(v_lt(b, v), nan), v_lt_i32(old, zero));
        v_store_f32(best + i, v_sel(takes, v, b), n);
        v_store_i32(place + i, v_sel_i32(takes, here, old), n);
    });
}

/* A loop that compilers make vectors of. */
static void store(size_t n, const int32_t *place, int64_t base, int64_t *to)
{
    for (size_t i = 0; i < n; i++) to[i] = place[i] < 0 ? -1 : base + place[i];
}

const ortc_pool_places V_NAME(ortc_pool_places) = {find, store};
