/* Runs of words (grouped.h). */
#include "grouped.h"

#include "kernels/common/uk.h"
#include "kernels/common/vector/vec.h"

ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_grouped_body)

static void words(size_t count, size_t stride, const int32_t *src, int32_t *dst)
{
    if (stride == 1) {
        V_FOR(i, n, count, { v_store_i32(dst + i, v_load_i32(src + i, n), n); });
    } else if (stride == 2 && count > V_LANES) { /* whole pairs, but for the last, which may not be there */
        V_FOR(i, n, count - 1, {
            v_store_i32(dst + i, v_bits_f32(v_load_even_f32((const float *)(const void *)(src + 2 * i), n)),
                        n);
        });
        dst[count - 1] = src[2 * (count - 1)];
    } else {
        for (size_t i = 0; i < count; i++) dst[i] = src[i * stride];
    }
}

const ortc_grouped_body V_NAME(ortc_grouped_body) = {words};
