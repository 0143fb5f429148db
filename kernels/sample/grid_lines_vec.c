/* The bodies of grid_lines.h. */
#include "kernels/sample/grid_lines.h"

#include "kernels/common/vector/vec.h"

/* A coordinate is computed in double and rounded once, as on ref, so that halves are halves. */
VFN vf64 coordinate(vf64 g, double extent, int corners)
{
    const vf64 one = v_set_f64(1), half = v_set_f64(0.5);
    if (corners) return v_mul(v_mul(v_add(g, one), half), v_set_f64(extent - 1));
    return v_mul(v_sub(v_mul(v_add(g, one), v_set_f64(extent)), one), half);
}

/* The tap at position `x`, a whole number; NaN is nowhere. */
VFN void put(size_t n, vf32 x, vf32 w, float most, int border, int32_t *at, float *weight)
{
    const vf32 low = v_set_f32(0), high = v_set_f32(most), inside = v_min(v_max(x, low), high);
    if (!border) w = v_sel(v_and(v_le(low, x), v_le(x, high)), w, low);
    v_store_i32(at, v_i32_of_f32(v_sel(v_eq(w, low), low, inside)), n);
    v_store_f32(weight, w, n);
}

static void around(size_t count, const float *normalized, int64_t extent, int linear, int border, int corners,
                   size_t pitch, int32_t *at, float *weight)
{
    const double e = (double)extent;
    const vf32 first = v_set_f32(corners ? 0 : -0.5F), last = v_set_f32((float)(e - (corners ? 1 : 0.5)));
    const vf32 low = v_set_f32(0), high = v_set_f32((float)(e - 1)), one = v_set_f32(1);
    V_FOR(i, n, count, {
        const vf32 g = v_load_f32(normalized + i, n);
        vf32 x = v_f32_of_f64(coordinate(v_f64_lo(g), e, corners), coordinate(v_f64_hi(g), e, corners));
        /* far away is as good as just outside; and so is NaN, before the first */
        x = v_min(v_max(x, v_set_f32(-2)), v_set_f32((float)(e + 2)));
        if (!linear) x = v_rint(x);
        if (border) x = v_sel(v_or(v_lt(x, first), v_lt(last, x)), v_min(v_max(x, low), high), x);
        if (linear) {
            const vf32 whole = v_floor(x), f = v_sub(x, whole);
            put(n, whole, v_sub(one, f), (float)(e - 1), border, at + i, weight + i);
            put(n, v_add(whole, one), f, (float)(e - 1), border, at + pitch + i, weight + pitch + i);
        } else {
            put(n, x, one, (float)(e - 1), border, at + i, weight + i);
        }
    });
}

static void combine(size_t count, int32_t step, const int32_t *of, const float *by, const int32_t *at,
                    const float *weight, int32_t *to, float *to_weight)
{
    const vf32 nothing = v_set_f32(0);
    V_FOR(i, n, count, {
        const vf32 w = v_mul(v_load_f32(weight + i, n), v_load_f32(by + i, n));
        const vi32 place = v_add(v_load_i32(at + i, n), v_mul(v_load_i32(of + i, n), v_set_i32(step)));
        v_store_i32(to + i, v_sel_i32(v_eq(w, nothing), v_set_i32(0), place), n);
        v_store_f32(to_weight + i, w, n);
    });
}

VFN vf32 tap(size_t n, const float *x, const int32_t *at, const float *weight, vf32 sum)
{
    const vf32 w = v_load_f32(weight, n), v = v_gather_f32(x, v_load_i32(at, n), n);
    return v_sel(v_eq(w, v_set_f32(0)), sum, v_fma(w, v, sum));
}

static void sample(size_t count, size_t taps, size_t pitch, const float *x, const int32_t *at,
                   const float *weight, float *y)
{
    if (taps == 4) { /* of most networks */
        V_FOR(i, n, count, {
            const vf32 a = tap(n, x, at + i, weight + i, v_set_f32(0));
            const vf32 b = tap(n, x, at + pitch + i, weight + pitch + i, a);
            const vf32 c = tap(n, x, at + 2 * pitch + i, weight + 2 * pitch + i, b);
            v_store_f32(y + i, tap(n, x, at + 3 * pitch + i, weight + 3 * pitch + i, c), n);
        });
        return;
    }
    V_FOR(i, n, count, {
        vf32 sum = v_set_f32(0);
        for (size_t k = 0; k < taps; k++) sum = tap(n, x, at + k * pitch + i, weight + k * pitch + i, sum);
        v_store_f32(y + i, sum, n);
    });
}

static void add(size_t count, const float *x, const float *weight, int first, float *y)
{
    const vf32 nothing = v_set_f32(0);
    V_FOR(i, n, count, {
        const vf32 w = v_load_f32(weight + i, n), sum = first ? nothing : v_load_f32(y + i, n);
        const vf32 more = v_fma(w, v_load_f32(x + i, n), sum);
        v_store_f32(y + i, v_sel(v_eq(w, nothing), sum, more), n);
    });
}

static void blend(size_t channels, size_t taps, size_t pitch, const float *x, const int32_t *at,
                  const float *weight, int first, float *y)
{
    V_FOR(i, n, channels, {
        const size_t begin = !weight && first && taps; /* the first is the largest so far */
        vf32 sum = begin   ? v_load_f32(x + (size_t)at[0] * pitch + i, n)
                   : first ? v_set_f32(0)
                           : v_load_f32(y + i, n);
        for (size_t k = begin; k < taps; k++) {
            const vf32 v = v_load_f32(x + (size_t)at[k] * pitch + i, n);
            sum = weight ? v_fma(v_set_f32(weight[k]), v, sum) : v_max(v, sum);
        }
        v_store_f32(y + i, sum, n);
    });
}

const ortc_grid_lines V_NAME(ortc_grid_lines) = {around, combine, sample, add, blend};
