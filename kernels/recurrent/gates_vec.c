/* Gates over rows (gates.h), a body for every instruction set. */
#include "kernels/recurrent/gates.h"

#include "kernels/common/vector/math.h"

VFN vf32 affine(vf32 x, vf32 a, vf32 b) { return v_fma(a, x, b); }
VFN vf32 relu(vf32 x, vf32 a, vf32 b) { return v_sel(v_lt(x, v_set_f32(0)), v_set_f32(0), x); }
VFN vf32 leaky_relu(vf32 x, vf32 a, vf32 b) { return v_sel(v_lt(x, v_set_f32(0)), v_mul(a, x), x); }
VFN vf32 thresholded_relu(vf32 x, vf32 a, vf32 b) { return v_sel(v_lt(a, x), x, v_set_f32(0)); }
VFN vf32 tanh_(vf32 x, vf32 a, vf32 b) { return v_tanh(x); }
VFN vf32 scaled_tanh(vf32 x, vf32 a, vf32 b) { return v_mul(a, v_tanh(v_mul(b, x))); }
VFN vf32 sigmoid(vf32 x, vf32 a, vf32 b) { return v_sigmoid(x); }
VFN vf32 hard_sigmoid(vf32 x, vf32 a, vf32 b) /* of NaN 0, as ref */
{
    return v_min(v_max(v_fma(a, x, b), v_set_f32(0)), v_set_f32(1));
}
VFN vf32 elu(vf32 x, vf32 a, vf32 b) { return v_sel(v_lt(x, v_set_f32(0)), v_mul(a, v_expm1(x)), x); }
VFN vf32 softsign(vf32 x, vf32 a, vf32 b) { return v_div(x, v_add(v_set_f32(1), v_abs(x))); }
VFN vf32 softplus(vf32 x, vf32 a, vf32 b)
{
    return v_add(v_max(v_set_f32(0), x), v_log1p(v_exp(v_neg(v_abs(x)))));
}

#define APPLY(name) \
    static void apply_##name(size_t count, const float *x, float clip, float alpha, float beta, float *y) \
    { \
        const vf32 most = v_set_f32(clip), a = v_set_f32(alpha), b = v_set_f32(beta); \
        V_FOR(i, n, count, { \
            const vf32 v = v_max(v_neg(most), v_min(most, v_load_f32(x + i, n))); /* NaN stays */ \
            v_store_f32(y + i, name(v, a, b), n); \
        }); \
    }
APPLY(affine)
APPLY(relu)
APPLY(leaky_relu)
APPLY(thresholded_relu)
APPLY(tanh_)
APPLY(scaled_tanh)
APPLY(sigmoid)
APPLY(hard_sigmoid)
APPLY(elu)
APPLY(softsign)
APPLY(softplus)

static void multiply(size_t count, const float *a, const float *b, float *y)
{
    V_FOR(i, n, count, v_store_f32(y + i, v_mul(v_load_f32(a + i, n), v_load_f32(b + i, n)), n););
}

static void add(size_t count, const float *a, const float *b, float *y)
{
    V_FOR(i, n, count, v_store_f32(y + i, v_add(v_load_f32(a + i, n), v_load_f32(b + i, n)), n););
}

static void multiply_add(size_t count, const float *a, const float *b, const float *c, float *y)
{
    V_FOR(i, n, count, {
        const vf32 v = v_fma(v_load_f32(a + i, n), v_load_f32(b + i, n), v_load_f32(c + i, n));
        v_store_f32(y + i, v, n);
    });
}

static void mix(size_t count, const float *z, const float *a, const float *b, float *y)
{
    V_FOR(i, n, count, {
        const vf32 s = v_load_f32(z + i, n), t = v_mul(v_sub(v_set_f32(1), s), v_load_f32(a + i, n));
        v_store_f32(y + i, v_fma(s, v_load_f32(b + i, n), t), n);
    });
}

const ortc_gates V_NAME(ortc_gates) = {{apply_affine, apply_relu, apply_leaky_relu, apply_thresholded_relu,
                                        apply_tanh_, apply_scaled_tanh, apply_sigmoid, apply_hard_sigmoid,
                                        apply_elu, apply_softsign, apply_softplus},
                                       multiply,
                                       add,
                                       multiply_add,
                                       mix};
