/* kernels/common/vector/math.h: functions of f32 on vectors: one text, the same bits, for every instruction
 * set with FMA.
 *
 * Largest errors over all 2^32 inputs, in units in the last place of the exact result
 * (tests/vectors/sweep.sh; pow: over 2^28 pairs), in parentheses where multiply-add is rounded twice:
 *   exp 0.892 (1.168)   log 0.853 (1.029)   tanh 2.351 (2.702)   erf 2.300 (2.300)   sigmoid 2.481
 *   sin 1.577 (1.578)   cos 1.578 (1.581)   rsqrt 1.491   pow 0.501
 *   expm1 2.944 (4.107)   log1p 2.470 (2.480)   asin 2.351 (2.369)   acos 1.117 (1.140)   atan 2.105 (2.147)
 * Denormal results are rounded like others; NaN gives NaN; infinities and the ends of domains are C's (Annex
 * F). Coefficients are own minimax fits, each rounded to f32 before the next was fitted.
 */
#ifndef ORTC_KERNELS_VECTOR_MATH_H
#define ORTC_KERNELS_VECTOR_MATH_H

#include "kernels/common/vector/vec.h"

/* Horner's rule, constants from the lowest power on. */
#define V_P1(x, a, b) v_fma(v_set_f32(b), x, v_set_f32(a))
#define V_P2(x, a, ...) v_fma(V_P1(x, __VA_ARGS__), x, v_set_f32(a))
#define V_P3(x, a, ...) v_fma(V_P2(x, __VA_ARGS__), x, v_set_f32(a))
#define V_P4(x, a, ...) v_fma(V_P3(x, __VA_ARGS__), x, v_set_f32(a))
#define V_P5(x, a, ...) v_fma(V_P4(x, __VA_ARGS__), x, v_set_f32(a))
#define V_P6(x, a, ...) v_fma(V_P5(x, __VA_ARGS__), x, v_set_f32(a))
#define V_P7(x, a, ...) v_fma(V_P6(x, __VA_ARGS__), x, v_set_f32(a))

/* Added to n, |n| < 2^21: the sum's low bits are the exponent of 2^n as it is stored (v_power_of), and n
 * comes back by taking it off. */
#define V_SHIFTED v_set_f32(0x1.8p23f + 127)
VFN vf32 v_power_of(vf32 shifted) { return v_f32_bits(v_shl(v_bits_f32(shifted), 23)); }

/* e^x = 2^n e^r, |r| at most half of log 2, which is in two parts: x less n times the first is exact. No
 * table: on AVX2 one of sixteen numbers costs more instructions than the polynomial's higher powers. */
VFN vf32 v_exp_r(vf32 x, vf32 n)
{
    return v_fma(n, v_set_f32(-0x1.7f7d1cp-20f), v_fma(n, v_set_f32(-0x1.62e4p-1f), x));
}
#define V_EXP_P(r, by) \
    V_P6(r, by * 1.f, by * 1.f, by * .49999994f, by * .16666521f, by * .041668266f, by * .0083686737f, \
         by * .0013820634f)

/* x is within -104 .. 89, or NaN */
VFN vf32 v_exp_within(vf32 x)
{
    const vf32 shifted = v_fma(x, v_set_f32(0x1.715476p+0f), V_SHIFTED), n = v_sub(shifted, V_SHIFTED);
    return v_scale2(V_EXP_P(v_exp_r(x, n), 1), n, v_sub(v_bits_f32(shifted), v_bits_f32(V_SHIFTED)));
}
/* The same of x up to 88, and 0 below -87, where few normal numbers are left: what is beside a largest of 1.
 * Some processors take a hundred clocks to make a number that is not normal, and to multiply with it (masks
 * that take 100 off leave 3.8e-44). The power of 2 is of n - 1, 0 where n is -126, which is the least. */
VFN vf32 v_exp_normal_or_0(vf32 x)
{
    const vf32 a = v_max(v_set_f32(-87.33f), x); /* NaN is second: it stays */
    const vf32 down = v_sub(V_SHIFTED, v_set_f32(1));
    const vf32 shifted = v_fma(a, v_set_f32(0x1.715476p+0f), down);
    return v_mul(V_EXP_P(v_exp_r(a, v_sub(shifted, down)), 2), v_power_of(shifted));
}
VFN vf32 v_exp(vf32 x) /* NaN is second in both: it stays */
{
    return v_exp_within(v_min(v_set_f32(89), v_max(v_set_f32(-104), x)));
}

/* log x = e log 2 + log(1 + f), 1 + f from sqrt(1/2) to sqrt(2). */
VFN vf32 v_log(vf32 x)
{
    const vi32 root = v_set_i32(0x3f3504f3); /* sqrt(1/2) */
    const vm32 tiny = v_lt(x, v_set_f32(0x1p-126f));
    const vf32 scaled = v_sel(tiny, v_mul(x, v_set_f32(0x1p23f)), x);
    const vi32 b = (vi32)v_sub((vu32)v_bits_f32(scaled), (vu32)root); /* of negative x it wraps */
    const vf32 shift = v_sel(tiny, v_set_f32(-23), v_set_f32(0));
    const vf32 e = v_add(v_f32_of_i32(v_shr(b, 23)), shift);
    const vf32 f = v_sub(v_f32_bits(v_add(v_and(b, v_set_i32(0x7fffff)), root)), v_set_f32(1)),
               u = v_mul(f, f);
    const vf32 p = V_P7(f, 0.333333313f, -0.250008196f, 0.200012416f, -0.166234091f, 0.142015815f,
                        -0.131596133f, 0.127621993f, -0.0763639957f);
    vf32 y = v_fma(v_mul(f, u), p, v_mul(e, v_set_f32(-0x1.05c610p-29f)));
    y = v_fma(v_set_f32(-0.5f), u, y);
    y = v_fma(e, v_set_f32(0x1.62e430p-1f), v_add(f, y));
    const vf32 inf = v_set_f32(__builtin_inff()), zero = v_set_f32(0);
    const vf32 special = v_sel(v_eq(x, zero), v_neg(inf),
                               v_sel(v_gt(x, zero), x, v_set_f32(__builtin_nanf(""))));
    return v_sel(v_and(v_gt(x, zero), v_lt(x, inf)), y, special);
}

/* |x| = r + n log(2) / 2: by the addition theorem of tanh r and tanh(n log(2) / 2) = (2^n - 1) / (2^n + 1).
 * The denominator is the numerator and 2 (1 - tanh r), so that most of the numerator's error leaves again.
 * One log 2 in f32 is enough: it is off by 1.9e-9. */
VFN vf32 v_tanh(vf32 x)
{
    const vf32 a = v_min(v_set_f32(10), v_abs(x)), one = v_set_f32(1), two = v_set_f32(2); /* NaN stays */
    const vf32 shifted = v_fma(a, v_set_f32(2 * 0x1.715476p+0f), V_SHIFTED), s = v_power_of(shifted);
    const vf32 r = v_fma(v_sub(shifted, V_SHIFTED), v_set_f32(-0x1.62e430p-2f), a), u = v_mul(r, r);
    const vf32 t = v_fma(v_mul(r, u), V_P2(u, -0.333333224f, 0.133311421f, -0.0527152084f), r);
    const vf32 top = v_fma(t, v_add(s, one), v_sub(s, one));
    return v_copysign(v_div(top, v_add(v_fma(t, v_neg(two), two), top)), x);
}

/* |x| times a polynomial of its distance from the nearest multiple of 0x1.11p-1, another one for each of the
 * eight; from 3.97 on it is 1. */
VFN vf32 v_erf(vf32 x)
{
    static const float c[7][8] = {{1.1283792f, 1.0299802f, 0.81439674f, 0.6103454f, 0.46766454f, 0.37503043f,
                                   0.31257442f, 0.26792252f},
                                  {-6.162264e-06f, -0.33914524f, -0.4243373f, -0.3269595f, -0.2136744f,
                                   -0.14032416f, -0.0976907f, -0.07178222f},
                                  {-0.37594116f, -0.21309133f, 0.036031246f, 0.11706326f, 0.088248484f,
                                   0.05170951f, 0.030495614f, 0.019230837f},
                                  {-0.002389815f, 0.17060164f, 0.11038516f, 0.0017700086f, -0.02627207f,
                                   -0.01787196f, -0.009449954f, -0.0051498855f},
                                  {0.1278627f, 0.024008628f, -0.05969743f, -0.031978f, 0.00014959142f,
                                   0.005003368f, 0.0028271677f, 0.0013827336f},
                                  {-0.045552578f, -0.04855284f, -0.0062984535f, 0.016815828f, 0.005831691f,
                                   -0.00041975037f, -0.0007582446f, -0.00036691627f},
                                  {0.026851257f, 0.0027739997f, 0.015341337f, -0.0004902761f, -0.003279833f,
                                   -0.0008271995f, 0.00020149819f, 2.929093e-05f}};
    const vf32 a = v_min(v_set_f32(3.96875f), v_abs(x)), magic = v_set_f32(0x1.8p23f); /* NaN stays */
    const vf32 t = v_fma(a, v_set_f32(0x1.e01e02p0f), magic);
    const vi32 i = v_sub(v_bits_f32(t), v_bits_f32(magic));
    const vf32 r = v_fma(v_sub(t, magic), v_set_f32(-0x1.11p-1f), a);
    vf32 p = v_pick_8(c[6], i);
    for (int k = 5; k >= 0; k--) p = v_fma(p, r, v_pick_8(c[k], i));
    return v_copysign(v_min(v_set_f32(1), v_mul(a, p)), x);
}

/* 1 / (1 + e^-x), left of -87, where that would overflow, e^x. */
VFN vf32 v_sigmoid(vf32 x)
{
    const vf32 a = v_min(v_set_f32(87), v_max(v_set_f32(-87), v_neg(x))); /* NaN is second: it stays */
    const vf32 shifted = v_fma(a, v_set_f32(0x1.715476p+0f), V_SHIFTED), n = v_sub(shifted, V_SHIFTED);
    const vf32 p = V_EXP_P(v_exp_r(a, n), 1), one = v_set_f32(1);
    const vf32 y = v_div(one, v_fma(p, v_power_of(shifted), one));
    const vm32 left = v_lt(x, v_set_f32(-87));
    if (__builtin_expect(v_any(left), 0)) return v_sel(left, v_exp_within(v_max(v_set_f32(-104), x)), y);
    return y;
}

/* e^x - 1 */
VFN vf32 v_expm1(vf32 x)
{
    const vf32 p = V_P5(x, 1, .49999993f, .16666515f, .041668457f, .008369419f, .0013813142f);
    return v_sel(v_lt(v_abs(x), v_set_f32(0.34f)), v_mul(x, p), v_sub(v_exp(x), v_set_f32(1)));
}

/* log(1 + x): of u = 1 + x, rounded; times x / (u - 1), what the rounding lost. */
VFN vf32 v_log1p(vf32 x)
{
    const vf32 one = v_set_f32(1), u = v_add(one, x), l = v_log(u);
    const vf32 y = v_mul(l, v_div(x, v_sub(u, one)));
    return v_sel(v_eq(u, one), x, v_sel(v_lt(u, v_set_f32(__builtin_inff())), y, l));
}

VFN vf32 v_rsqrt(vf32 x) { return v_div(v_set_f32(1), v_sqrt(x)); }

/* ---- sin, cos ------------------------------------------------------------------------------------------ */

/* Where n, rounded from a product with 2/pi in f32, would be off by more than 1/200. */
#define V_TRIG_FAR (V_HAS_FMA ? 0x1p18f : 0x1p13f)

/* x of that and more = (quadrant + 4k) pi/2 + r, by integers: the product of x's 24 bits and a window of
 * 2/pi's. */
static __attribute__((unused, noinline)) int32_t v_trig_far(float x, float *r)
{
    static const uint32_t two_over_pi[] = {0,          0xa2f9836e, 0x4e441529, 0xfc2757d1, 0xf534ddc0,
                                           0xdb629599, 0x3c439041, 0xfe5163ab, 0xdebbc561};
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    const int32_t e = (int32_t)(bits >> 23 & 0xff) - 150; /* x = m 2^e */
    if (e == 105) {
        *r = x - x; /* infinity, NaN */
        return 0;
    }
    const uint64_t m = (bits & 0x7fffff) | 0x800000;
    const uint32_t at = (uint32_t)(e + 30) / 32,
                   s = (uint32_t)(e + 30) % 32; /* bits before are multiples of 4 */
    uint32_t w[3];
    for (uint32_t i = 0; i < 3; i++)
        w[i] = (uint32_t)((((uint64_t)two_over_pi[at + i] << 32 | two_over_pi[at + i + 1]) << s) >> 32);
    const uint64_t p1 = m * w[1] + (m * w[2] >> 32),
                   top = (m * w[0] << 32) + p1; /* two bits of quadrant, 62 of fraction */
    const uint64_t near = top + (UINT64_C(1) << 61);
    const double part = (double)(int64_t)((near & ~(UINT64_C(3) << 62)) - (UINT64_C(1) << 61));
    const float v = (float)(part * (0x1.921fb54442d18p+0 * 0x1p-62));
    *r = bits >> 31 ? -v : v;
    return bits >> 31 ? -(int32_t)(near >> 62) : (int32_t)(near >> 62);
}

/* x - n pi/2. With FMA the first step is exact, the later ones round relative to what is left; without it, in
 * f64: products of n with 31 bits are exact. */
VFN vf32 v_trig_near(vf32 x, vf32 n)
{
#if V_HAS_FMA
    return v_fma(n, v_set_f32(0x1.ee59dap-50f),
                 v_fma(n, v_set_f32(0x1.777a5cp-25f), v_fma(n, v_set_f32(-0x1.921fb6p+0f), x)));
#else
    const vf64 p = v_set_f64(0x1.921fb544p+0), q = v_set_f64(0x1.0b4611a626331p-34);
    const vf64 nl = v_f64_lo(n), nh = v_f64_hi(n);
    return v_f32_of_f64(v_sub(v_sub(v_f64_lo(x), v_mul(nl, p)), v_mul(nl, q)),
                        v_sub(v_sub(v_f64_hi(x), v_mul(nh, p)), v_mul(nh, q)));
#endif
}

/* sin(x + turn pi/2) */
VFN vf32 v_trig(vf32 x, int32_t turn)
{
    const vf32 magic = v_set_f32(0x1.8p23f), t = v_fma(x, v_set_f32(0x1.45f306p-1f), magic),
               n = v_sub(t, magic);
    vi32 q = v_sub(v_bits_f32(t), v_bits_f32(magic));
    vf32 r = v_trig_near(x, n);
    const vm32 far = v_not(v_lt(v_abs(x), v_set_f32(V_TRIG_FAR)));
    if (v_any(far)) {
        float xs[V_LANES], rs[V_LANES];
        int32_t qs[V_LANES];
        v_store_f32(xs, v_sel(far, x, v_set_f32(V_TRIG_FAR)), V_LANES);
        for (size_t i = 0; i < V_LANES; i++) qs[i] = v_trig_far(xs[i], &rs[i]);
        r = v_sel(far, v_load_f32(rs, V_LANES), r);
        q = v_sel_i32(far, v_load_i32(qs, V_LANES), q);
    }
    q = v_add(q, v_set_i32(turn));
    const vf32 u = v_mul(r, r);
    const vf32 s = v_fma(v_mul(r, u),
                         V_P3(u, -0.166666672f, 0.0083333794f, -0.000198530281f, 2.83177383e-06f), r);
    const vf32 c = v_fma(v_mul(u, u), V_P2(u, 0.0416666456f, -0.00138873013f, 2.44306684e-05f),
                         v_fma(u, v_set_f32(-0.5f), v_set_f32(1)));
    const vm32 even = v_eq_i32(v_and(q, v_set_i32(1)), v_set_i32(0));
    return v_f32_bits(v_xor(v_bits_f32(v_sel(even, s, c)), v_shl(v_and(q, v_set_i32(2)), 30)));
}
VFN vf32 v_sin(vf32 x)
{
    const vf32 y = v_trig(x, 0);
    return v_sel(v_eq(x, v_set_f32(0)), x, y); /* -0 */
}
VFN vf32 v_cos(vf32 x) { return v_trig(x, 1); }

/* ---- asin, acos, atan ---------------------------------------------------------------------------------- */

#define V_HALF_PI v_set_f32(0x1.921fb6p+0f) /* and what f32 does not hold of it: */
#define V_HALF_PI_REST v_set_f32(-0x1.777a5cp-25f)

/* Of |x| beyond the tangents of 1/8 and of 3/8 pi the arctangent of (|x| - 1) / (|x| + 1) and of -1 / |x|,
 * and what is between. */
VFN vf32 v_atan(vf32 x)
{
    const vf32 a = v_abs(x), one = v_set_f32(1), zero = v_set_f32(0);
    const vm32 far = v_lt(v_set_f32(0x1.3504f4p+1f), a), near = v_not(v_lt(v_set_f32(0x1.a8279ap-2f), a));
    const vf32 top = v_sel(far, v_set_f32(-1), v_sel(near, a, v_sub(a, one)));
    const vf32 t = v_div(top, v_sel(far, a, v_sel(near, one, v_add(a, one)))), u = v_mul(t, t);
    const vf32 p = v_fma(v_mul(t, u),
                         V_P4(u, -0.33333316f, 0.19998528f, -0.14244391f, 0.105991684f, -0.060900524f), t);
    const vf32 part = v_sel(near, zero, v_sel(far, one, v_set_f32(0.5f))); /* of half of pi */
    return v_copysign(v_fma(part, V_HALF_PI, v_fma(part, V_HALF_PI_REST, p)), x);
}

/* Of a, 0 to 1: asin a up to 1/2, beyond it half of acos a: the arcsine of the root of (1 - a) / 2. */
VFN vf32 v_arc(vf32 a, vm32 beyond)
{
    const vf32 half = v_set_f32(0.5f), u = v_sel(beyond, v_fma(a, v_neg(half), half), v_mul(a, a));
    const vf32 s = v_sel(beyond, v_sqrt(u), a);
    return v_fma(v_mul(s, u), V_P4(u, 0.16666752f, 0.074953094f, 0.045469154f, 0.024184741f, 0.0421584f), s);
}
VFN vf32 v_asin(vf32 x)
{
    const vf32 a = v_abs(x), two = v_set_f32(2);
    const vm32 beyond = v_lt(v_set_f32(0.5f), a);
    const vf32 p = v_arc(a, beyond);
    return v_copysign(v_sel(beyond, v_add(V_HALF_PI, v_sub(V_HALF_PI_REST, v_mul(two, p))), p), x);
}
VFN vf32 v_acos(vf32 x)
{
    const vf32 a = v_abs(x), two = v_set_f32(2);
    const vm32 beyond = v_lt(v_set_f32(0.5f), a), left = v_lt(x, v_set_f32(0));
    const vf32 p = v_arc(a, beyond), twice = v_mul(two, p), own = v_copysign(p, x);
    const vf32 to_pi = v_add(v_mul(two, V_HALF_PI), v_sub(v_mul(two, V_HALF_PI_REST), twice));
    return v_sel(beyond, v_sel(left, to_pi, twice), v_add(V_HALF_PI, v_sub(V_HALF_PI_REST, own)));
}

/* ---- pow ----------------------------------------------------------------------------------------------- */

/* x^y for x >= 0, as 2^(y log2 x) in f64, exact to about 2^-34: rounding to f32 decides. */
VFN vf64 v_pow_f64(vf64 x, vf64 y)
{
    const vi64 root = v_set_i64(INT64_C(0x3fe6a09e667f3bcd)), low = v_set_i64(INT64_C(0x000fffffffffffff));
    const vf64 one = v_set_f64(1), lim = v_set_f64(0x1p200), end = v_set_f64(1000);
    const vi64 b = v_sub(v_bits_f64(x), root);
    /* the exponent as a double: b's upper bits, put below a constant's, by integers that are never
     * negative */
    const vu64 up = v_shr((vu64)v_add(b, v_set_i64(INT64_C(0x4000000000000000))), 52);
    const vf64 e = v_sub(v_f64_bits(v_or((vi64)up, v_set_i64(INT64_C(0x4330000000000000)))),
                         v_set_f64(0x1p52 + 1024));
    const vf64 m = v_f64_bits(v_add(v_and(b, low), root)), z = v_div(v_sub(m, one), v_add(m, one)),
               u = v_mul(z, z);
    vf64 p = v_set_f64(1.0 / 15);
    p = v_fma_f64(p, u, v_set_f64(1.0 / 13));
    p = v_fma_f64(p, u, v_set_f64(1.0 / 11));
    p = v_fma_f64(p, u, v_set_f64(1.0 / 9));
    p = v_fma_f64(p, u, v_set_f64(1.0 / 7));
    p = v_fma_f64(p, u, v_set_f64(1.0 / 5));
    p = v_fma_f64(p, u, v_set_f64(1.0 / 3));
    p = v_fma_f64(p, u, one);
    vf64 l = v_fma_f64(v_mul(z, v_set_f64(2 * 0x1.71547652b82fep+0)), p, e); /* log2 x */
    l = v_sel_f64(v_eq_f64(x, v_set_f64(0)), v_set_f64(-0x1p400), l);
    l = v_sel_f64(v_eq_f64(x, v_set_f64(__builtin_inf())), v_set_f64(0x1p400), l);
    y = v_min_f64(lim, v_max_f64(v_sub(v_set_f64(0), lim), y)); /* infinity times 0 must not be */
    const vf64 w = v_min_f64(end, v_max_f64(v_sub(v_set_f64(0), end), v_mul(y, l)));
    const vf64 magic = v_set_f64(0x1.8p52), t = v_add(w, magic), n = v_sub(t, magic);
    const vf64 f = v_mul(v_sub(w, n), v_set_f64(0x1.62e42fefa39efp-1));
    vf64 q = v_set_f64(1.0 / 362880);
    q = v_fma_f64(q, f, v_set_f64(1.0 / 40320));
    q = v_fma_f64(q, f, v_set_f64(1.0 / 5040));
    q = v_fma_f64(q, f, v_set_f64(1.0 / 720));
    q = v_fma_f64(q, f, v_set_f64(1.0 / 120));
    q = v_fma_f64(q, f, v_set_f64(1.0 / 24));
    q = v_fma_f64(q, f, v_set_f64(1.0 / 6));
    q = v_fma_f64(q, f, v_set_f64(0.5));
    q = v_fma_f64(q, f, one);
    q = v_fma_f64(q, f, one);
    const vi64 ni = v_sub(v_bits_f64(t), v_bits_f64(magic));
    return v_f64_bits(v_add(v_bits_f64(q), v_shl(ni, 52)));
}

VFN vf32 v_pow(vf32 x, vf32 y)
{
    const vf32 a = v_abs(x), zero = v_set_f32(0), one = v_set_f32(1), inf = v_set_f32(__builtin_inff());
    vf32 z = v_f32_of_f64(v_pow_f64(v_f64_lo(a), v_f64_lo(y)), v_pow_f64(v_f64_hi(a), v_f64_hi(y)));
    const vm32 whole = v_eq(v_trunc(y), y), small = v_lt(v_abs(y), v_set_f32(0x1p24f));
    const vm32 odd = v_and(v_and(whole, small), v_eq_i32(v_and(v_i32_of_f32(y), v_set_i32(1)), v_set_i32(1)));
    z = v_sel(odd, v_copysign(z, x), z);
    z = v_sel(v_and(v_and(v_lt(x, zero), v_lt(a, inf)), v_not(whole)), v_set_f32(__builtin_nanf("")), z);
    z = v_sel(v_or(v_is_nan(x), v_is_nan(y)), v_set_f32(__builtin_nanf("")), z);
    return v_sel(v_or(v_eq(y, zero), v_eq(x, one)), one, z);
}

#endif
