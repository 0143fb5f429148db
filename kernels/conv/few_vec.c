/* Adding rows that are moved (few.h). */
#include "few.h"

#include "kernels/common/uk.h"
#include "kernels/common/vector/vec.h"

ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_few_body)

static void add_f32(size_t count, size_t taps, const float *from, size_t step, float *to)
{
    V_FOR(i, n, count, {
        vf32 sum = v_load_f32(from + i, n);
        for (size_t k = 1; k < taps; k++) sum = v_add(sum, v_load_f32(from + k * step + i, n));
        v_store_f32(to + i, sum, n);
    });
}

static void add_i32(size_t count, size_t taps, const int32_t *from, size_t step, int32_t *to)
{
    V_FOR(i, n, count, {
        vi32 sum = v_load_i32(from + i, n);
        for (size_t k = 1; k < taps; k++) sum = v_add(sum, v_load_i32(from + k * step + i, n));
        v_store_i32(to + i, sum, n);
    });
}

const ortc_few_body V_NAME(ortc_few_body) = {add_f32, add_i32};
