/* The bodies of ortc_linear_vec (linear.h). */
#include "kernels/attention/linear.h"

#include "kernels/common/vector/math.h"

static void read(size_t size, size_t values, const float *S, const float *k, float scale, float *y)
{
    V_FOR(i, n, values, {
        vf32 sum = v_set_f32(0);
        for (size_t d = 0; d < size; d++)
            sum = v_fma(v_set_f32(k[d]), v_load_f32(S + d * values + i, n), sum);
        v_store_f32(y + i, v_mul(sum, v_set_f32(scale)), n);
    });
}

static void step(size_t size, size_t values, float *S, const float *k, const float *v, const float *q,
                 float scale, float *y)
{
    V_FOR(i, n, values, {
        const vf32 value = v_load_f32(v + i, n);
        vf32 sum = v_set_f32(0);
        for (size_t d = 0; d < size; d++) {
            float *s = S + d * values + i;
            const vf32 now = v_fma(v_set_f32(k[d]), value, v_load_f32(s, n));
            v_store_f32(s, now, n);
            sum = v_fma(v_set_f32(q[d]), now, sum);
        }
        v_store_f32(y + i, v_mul(sum, v_set_f32(scale)), n);
    });
}

static void correct(size_t count, float beta, const float *known, float *v)
{
    V_FOR(i, n, count, {
        v_store_f32(v + i, v_mul(v_set_f32(beta), v_sub(v_load_f32(v + i, n), v_load_f32(known + i, n))), n);
    });
}

static void exp_all(size_t count, const float *x, float *y)
{
    V_FOR(i, n, count, { v_store_f32(y + i, v_exp(v_load_f32(x + i, n)), n); });
}

static void scale(size_t count, float by, float *x)
{
    V_FOR(i, n, count, { v_store_f32(x + i, v_mul(v_load_f32(x + i, n), v_set_f32(by)), n); });
}

static void convolve(size_t count, size_t taps, const float *x, const float *w, float bias, int silu,
                     float *y)
{
    V_FOR(i, n, count, {
        vf32 sum = v_set_f32(bias);
        for (size_t k = 0; k < taps; k++) sum = v_fma(v_set_f32(w[k]), v_load_f32(x + i + k, n), sum);
        if (silu) sum = v_mul(sum, v_sigmoid(sum));
        v_store_f32(y + i, sum, n);
    });
}

const ortc_linear_vec V_NAME(ortc_linear_vec) = {read, step, correct, exp_all, scale, convolve};
