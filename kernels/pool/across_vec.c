/* The last step of a pool (across.h), a body for every instruction set. A NaN under a window makes its
 * maximum NaN. */
#include "kernels/pool/across.h"

#include "kernels/common/vector/vec.h"

#define ROWS(op) \
    V_FOR(i, left, n, { \
        vf32 r = v_load_f32(x[0] + i, left); \
        for (size_t k = 1; k < rows; k++) r = op(r, v_load_f32(x[k] + i, left)); \
        v_store_f32(acc + i, r, left); \
    })
static void rows(size_t n, size_t rows, const float *const *x, int max, float *acc)
{
    if (max)
        ROWS(v_max_nan);
    else
        ROWS(v_add);
}

VFN vf32 at(const float *p, vi32 steps, size_t stride, size_t n)
{
    return stride == 1 ? v_load_f32(p, n) : stride == 2 ? v_load_even_f32(p, n) : v_gather_f32(p, steps, n);
}

static void run(size_t n, size_t taps, size_t dilation, size_t stride, const float *line, const float *count,
                float rows, float *y)
{
    const vi32 steps = v_mul(v_iota(), v_set_i32((int32_t)stride));
    if (count)
        V_FOR(i, left, n, {
            vf32 r = v_set_f32(0);
            for (size_t k = 0; k < taps; k++)
                r = v_add(r, at(line + i * stride + k * dilation, steps, stride, left));
            v_store_f32(y + i, v_div(r, v_mul(v_load_f32(count + i, left), v_set_f32(rows))), left);
        });
    else if (taps == 3 && dilation == 1 && stride == 2) /* of most networks */
        V_FOR(i, left, n, {
            const float *p = line + 2 * i;
            const vf32 r = v_max_nan(v_load_even_f32(p, left), v_load_even_f32(p + 1, left));
            v_store_f32(y + i, v_max_nan(r, v_load_even_f32(p + 2, left)), left);
        });
    else
        V_FOR(i, left, n, {
            vf32 r = at(line + i * stride, steps, stride, left);
            for (size_t k = 1; k < taps; k++)
                r = v_max_nan(r, at(line + i * stride + k * dilation, steps, stride, left));
            v_store_f32(y + i, r, left);
        });
}

const ortc_pool_across V_NAME(ortc_pool_across) = {rows, run};
