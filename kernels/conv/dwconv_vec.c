/* The depthwise micro-kernel (dwconv_uk.h), a body for every instruction set. Eight registers of results at a
 * time: a tap is one broadcast and eight loads that feed eight independent sums; then two, then one.
 */
#include "dwconv_uk.h"

#include "kernels/common/vector/vec.h"
#include "kernels/gemm/product_uk.h"

VFN vf32 activate(vf32 v, int32_t act, vf32 lo, vf32 hi)
{
    /* v second: max and min return their second operand when one is NaN. */
    if (act == ORTC_UK_ACT_CLIP) return v_min(hi, v_max(lo, v));
    if (act == ORTC_UK_ACT_LEAKY) return v_sel(v_lt(v, v_set_f32(0)), v_mul(v, lo), v);
    return v;
}

#define EACH_2(M) M(0) M(1)
#define EACH_8(M) M(0) M(1) M(2) M(3) M(4) M(5) M(6) M(7)
#define ZERO(k) vf32 sum##k = v_set_f32(0);
#define TAP(k) sum##k = v_fma(w, v_load_f32(s + (k)*step, step), sum##k);
#define FINISH(k) v_store_f32(dst + (k)*step, activate(v_add(sum##k, b), act, l, h), step);
/* Strips of `count` registers while there are so many. */
#define STRIPS(count) \
    for (; n >= (count)*step; n -= (count)*step, src += (count)*step, dst += (count)*step) { \
        EACH_##count(ZERO) for (size_t t = 0; t < taps; t++) \
        { \
            const vf32 w = v_set_f32(ortc_uk_load_f32(weight + t)); \
            const float *s = src + offset[t]; \
            EACH_##count(TAP) \
        } \
        EACH_##count(FINISH) \
    }

ortc_uk_dwconv_f32 V_NAME(ortc_uk_dwconv_f32);
void V_NAME(ortc_uk_dwconv_f32)(size_t n, size_t taps, const float *src, const int32_t *offset,
                                const float *weight, float bias, int32_t act, float lo, float hi, float *dst)
{
    const vf32 b = v_set_f32(bias), l = v_set_f32(lo), h = v_set_f32(hi);
    const size_t step = v_lanes();
    STRIPS(8)
    STRIPS(2)
    V_FOR(i, left, n, {
        vf32 sum = v_set_f32(0);
        for (size_t t = 0; t < taps; t++)
            sum = v_fma(v_set_f32(ortc_uk_load_f32(weight + t)), v_load_f32(src + offset[t] + i, left), sum);
        v_store_f32(dst + i, activate(v_add(sum, b), act, l, h), left);
    });
}
