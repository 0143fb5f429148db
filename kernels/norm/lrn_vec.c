/* LRN (lrn.h), a body for every instruction set. */
#include "kernels/norm/lrn.h"

#include "kernels/common/vector/math.h"

/* x^3/4 of what is positive, which most networks ask for, is two roots. */
VFN vf32 three_quarters(vf32 x)
{
    const vf32 root = v_sqrt(x);
    return v_mul(root, v_sqrt(root));
}

static void line(size_t count, const float *x, const float *squares, float scale, float bias, float beta,
                 float *y)
{
    const vf32 s = v_set_f32(scale), b = v_set_f32(bias), e = v_set_f32(beta);
    if (beta == 0.75F && scale >= 0 && bias > 0) {
        V_FOR(i, n, count, {
            const vf32 around = three_quarters(v_fma(s, v_load_f32(squares + i, n), b));
            v_store_f32(y + i, v_div(v_load_f32(x + i, n), around), n);
        });
        return;
    }
    V_FOR(i, n, count, {
        const vf32 around = v_pow(v_fma(s, v_load_f32(squares + i, n), b), e);
        v_store_f32(y + i, v_div(v_load_f32(x + i, n), around), n);
    });
}

const ortc_lrn V_NAME(ortc_lrn) = {line};
