/* BatchNormalization (batch.h), a body for every instruction set. */
#include "kernels/norm/batch.h"

#include "kernels/common/vector/vec.h"

static void channel(size_t count, const float *x, float mean, float factor, float bias, float *y)
{
    const vf32 m = v_set_f32(mean), f = v_set_f32(factor), b = v_set_f32(bias);
    V_FOR(i, n, count, v_store_f32(y + i, v_fma(v_sub(v_load_f32(x + i, n), m), f, b), n););
}

static void line(size_t count, const float *x, const float *mean, const float *factor, const float *bias,
                 float *y)
{
    V_FOR(i, n, count, {
        const vf32 d = v_sub(v_load_f32(x + i, n), v_load_f32(mean + i, n));
        v_store_f32(y + i, v_fma(d, v_load_f32(factor + i, n), v_load_f32(bias + i, n)), n);
    });
}

const ortc_batch V_NAME(ortc_batch) = {channel, line};
