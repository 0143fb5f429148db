/* The bodies of DynamicQuantizeLinear (cpu.h). */
#include "kernels/common/vector/vec.h"
#include "kernels/quantize/cpu.h"

static void range(size_t count, const float *x, float *low, float *high)
{
    vf32 l = v_set_f32(*low), h = v_set_f32(*high); /* NaN is neither below nor above */
    float lows[V_LANES], highs[V_LANES];
    V_FOR(i, n, count, {
        const vf32 v = v_keep(v_load_f32(x + i, n), n, 0);
        l = v_min(v, l);
        h = v_max(v, h);
    });
    v_store_f32(lows, l, V_LANES);
    v_store_f32(highs, h, V_LANES);
    for (size_t i = 0; i < V_LANES; i++) {
        *low = lows[i] < *low ? lows[i] : *low;
        *high = highs[i] > *high ? highs[i] : *high;
    }
}

/* A product with the reciprocal is off by less than 2^-13 below 2^9, beyond which all ends in the same bound:
 * where one is that near to a half, it is a quotient. Of NaN 0, as of a cast. */
static void quantise(size_t count, const float *x, float scale, float zero, uint8_t *y)
{
    const vf32 s = v_set_f32(scale), z = v_set_f32(zero), low = v_set_f32(0), high = v_set_f32(255),
               r = v_set_f32(1 / scale), near = v_set_f32(0.5f - 0x1p-13f);
    V_FOR(i, n, count, {
        const vf32 v = v_load_f32(x + i, n);
        vf32 q = v_rint(v_mul(v, r));
        if (__builtin_expect(v_any(v_not(v_le(v_abs(v_fma(v, v_neg(r), q)), near))), 0))
            q = v_rint(v_div(v, s));
        const vf32 to = v_min(high, v_max(low, v_add(q, z)));
        v_store_i8((int8_t *)y + i, v_i32_within(v_sel(v_is_nan(q), low, to)), n);
    });
}

const ortc_dynamic_body V_NAME(ortc_dynamic_body) = {range, quantise};
