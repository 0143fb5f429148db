/* The bodies of activation.h. */
#include "kernels/gemm/activation.h"

#include "kernels/common/vector/math.h"

VFN vf32 sigmoid(vf32 x) { return v_sigmoid(x); }
VFN vf32 tanh_(vf32 x) { return v_tanh(x); }
/* x (1 + t) / 2 */
VFN vf32 half_of(vf32 x, vf32 t) { return v_mul(v_mul(v_set_f32(0.5f), x), v_add(v_set_f32(1), t)); }
VFN vf32 gelu(vf32 x) { return half_of(x, v_erf(v_mul(x, v_set_f32(0.70710678f)))); }
VFN vf32 gelu_tanh(vf32 x)
{
    const vf32 cube = v_mul(v_mul(x, x), x);
    return half_of(x, v_tanh(v_mul(v_set_f32(0.79788456f), v_fma(v_set_f32(0.044715f), cube, x))));
}
VFN vf32 silu(vf32 x) { return v_mul(x, v_sigmoid(x)); }
VFN vf32 hard_swish(vf32 x)
{
    const vf32 y = v_fma(x, v_set_f32(1.0f / 6.0f), v_set_f32(0.5f));
    return v_mul(x, v_min(v_set_f32(1), v_max(v_set_f32(0), y))); /* NaN stays */
}

#define OVER(name) \
    static void over_##name(size_t count, float *x) \
    { \
        V_FOR(i, n, count, v_store_f32(x + i, name(v_load_f32(x + i, n)), n);); \
    }
/* clang-format off */
OVER(sigmoid) OVER(tanh_) OVER(gelu) OVER(gelu_tanh) OVER(silu) OVER(hard_swish)
    /* clang-format on */

    const ortc_activations V_NAME(ortc_activations) = {
        {over_sigmoid, over_tanh_, over_gelu, over_gelu_tanh, over_silu, over_hard_swish}};
