/* The bodies of ortc_rotate_vec (rotate.h). */
#include "kernels/attention/rotate.h"

#include "kernels/common/vector/vec.h"

static void halves(size_t half, const float *x, const float *cos, const float *sin, float *y)
{
    V_FOR(i, n, half, {
        const vf32 c = v_load_f32(cos + i, n), s = v_load_f32(sin + i, n);
        const vf32 x1 = v_load_f32(x + i, n), x2 = v_load_f32(x + half + i, n);
        v_store_f32(y + i, v_sub(v_mul(x1, c), v_mul(x2, s)), n);
        v_store_f32(y + half + i, v_add(v_mul(x1, s), v_mul(x2, c)), n);
    });
}

/* Plain C: what lies in pairs, compilers load and store as well as this layer would. */
static void pairs(size_t half, const float *x, const float *cos, const float *sin, float *y)
{
    for (size_t i = 0; i < half; i++) {
        const float c = cos[i], s = sin[i], x1 = x[2 * i], x2 = x[2 * i + 1];
        y[2 * i] = x1 * c - x2 * s;
        y[2 * i + 1] = x1 * s + x2 * c;
    }
}

const ortc_rotate_vec V_NAME(ortc_rotate_vec) = {halves, pairs};
