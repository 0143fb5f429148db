/* What adds a line that ConvTranspose spreads (spread.h), a body for every instruction set. */
#include "kernels/conv/spread.h"

#include "kernels/common/vector/vec.h"

static void add(size_t n, const float *x, float *y)
{
    V_FOR(i, left, n, v_store_f32(y + i, v_add(v_load_f32(y + i, left), v_load_f32(x + i, left)), left););
}

static void add_times(size_t n, const float *x, float by, float *y)
{
    const vf32 w = v_set_f32(by);
    V_FOR(i, left, n, v_store_f32(y + i, v_fma(v_load_f32(x + i, left), w, v_load_f32(y + i, left)), left););
}

static void add_one(size_t n, const float *x, float b, float *y)
{
    const vf32 one = v_set_f32(b);
    V_FOR(i, left, n, v_store_f32(y + i, v_add(v_load_f32(x + i, left), one), left););
}

const ortc_spread V_NAME(ortc_spread) = {add, add_times, add_one};
