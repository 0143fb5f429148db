/* The bodies of lines.h. */
#include "kernels/einsum/lines.h"

#include "kernels/common/vector/reduce.h"

static void multiply(size_t count, const float *a, int64_t a_step, const float *b, int64_t b_step, float *y)
{
    if (!a_step) { /* the first is the one that goes along */
        const float *c = a;
        a = b, b = c;
        a_step = b_step, b_step = 0;
    }
    if (!a_step) {
        V_FOR(i, n, count, v_store_f32(y + i, v_set_f32(*a * *b), n););
    } else if (!b_step) {
        V_FOR(i, n, count, v_store_f32(y + i, v_mul(v_load_f32(a + i, n), v_set_f32(*b)), n););
    } else {
        V_FOR(i, n, count, v_store_f32(y + i, v_mul(v_load_f32(a + i, n), v_load_f32(b + i, n)), n););
    }
}

static float dot(size_t count, const float *a, const float *b)
{
    V_REDUCE(sum, v_sum, 0, count, i, n, v_mul(v_load_f32(a + i, n), v_load_f32(b + i, n)));
    return sum;
}

const ortc_einsum_lines V_NAME(ortc_einsum_lines) = {multiply, dot};
