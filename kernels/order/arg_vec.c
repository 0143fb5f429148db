/* ArgMax and ArgMin of rows and lines (arg.h), a body for every instruction set. A row is read twice: for its
 * extreme, and for the place of that. */
#include "kernels/order/arg.h"

#include "kernels/common/vector/reduce.h"

/* Lanes that hold the value, or a NaN if it is one. */
VFN vm32 holds(vf32 x, float value) { return value != value ? v_is_nan(x) : v_eq(x, v_set_f32(value)); }

static int64_t row(size_t count, const float *x, int largest, int last)
{
    float value;
    if (largest) {
        V_REDUCE(r, v_max_nan, -__builtin_inff(), count, i, n, v_load_f32(x + i, n));
        value = r;
    } else {
        V_REDUCE(r, v_min_nan, __builtin_inff(), count, i, n, v_load_f32(x + i, n));
        value = r;
    }
    size_t at = 0;
    for (size_t i = 0; i < count; i += v_lanes())
        if (v_any(v_and(holds(v_load_f32(x + i, count - i), value), v_first(count - i)))) {
            at = i;
            if (!last) break;
        }
    const size_t end = at + v_lanes() < count ? at + v_lanes() : count;
    size_t found = at;
    for (size_t i = end; i-- > at;) {
        float v;
        memcpy(&v, x + i, sizeof v);
        if (v == value || (v != v && value != value)) {
            found = i;
            if (last) break;
        }
    }
    return (int64_t)found;
}

static void line(size_t count, int32_t k, const float *x, int largest, int last, float *best, int32_t *index)
{
    if (k == 0) {
        V_FOR(i, n, count, {
            v_store_f32(best + i, v_load_f32(x + i, n), n);
            v_store_i32(index + i, v_set_i32(0), n);
        });
        return;
    }
    V_FOR(i, n, count, {
        const vf32 v = v_load_f32(x + i, n), b = v_load_f32(best + i, n);
        const vm32 better = largest ? v_lt(b, v) : v_lt(v, b), v_nan = v_is_nan(v), b_nan = v_is_nan(b);
        vm32 take = v_or(v_and(v_nan, v_not(b_nan)), v_and(better, v_not(b_nan)));
        if (last) take = v_or(take, v_or(v_eq(v, b), v_and(v_nan, b_nan)));
        v_store_f32(best + i, v_sel(take, v, b), n);
        v_store_i32(index + i, v_sel_i32(take, v_set_i32(k), v_load_i32(index + i, n)), n);
    });
}

const ortc_arg V_NAME(ortc_arg) = {row, line};
