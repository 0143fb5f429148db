/* The bodies of lines.h. */
#include "kernels/resize/lines.h"

#include "kernels/common/blocks.h"
#include "kernels/common/vector/vec.h"

static void add(size_t count, const float *x, float weight, int first, float *acc)
{
    const vf32 w = v_set_f32(weight), nothing = v_set_f32(0);
    V_FOR(i, n, count, {
        const vf32 before = first ? nothing : v_load_f32(acc + i, n);
        v_store_f32(acc + i, v_fma(w, v_load_f32(x + i, n), before), n);
    });
}

static void across(size_t count, size_t taps, const float *line, const int32_t *index, const float *weight,
                   float *y)
{
    const vf32 nothing = v_set_f32(0);
    V_FOR(i, n, count, {
        vf32 sum = nothing;
        for (size_t k = 0; k < taps; k++) {
            const vf32 w = v_load_f32(weight + k * count + i, n);
            const vf32 x = v_gather_f32(line, v_load_i32(index + k * count + i, n), n);
            sum = v_sel(v_eq(w, nothing), sum, v_fma(w, x, sum));
        }
        v_store_f32(y + i, sum, n);
    });
}

#define BLOCKS(T, type) \
    static void blocks_##T(size_t count, size_t rows, const void *const *row, const float *row_weight, \
                           size_t taps, const int32_t *index, const float *weight, void *to) \
    { \
        type *y = to; \
        for (size_t i = 0; i < count; i++, y += ORTC_BLOCK) \
            for (size_t c = 0; c < ORTC_BLOCK; c += v_lanes()) { \
                const size_t n = ORTC_BLOCK - c; \
                vf32 sum = v_set_f32(0); \
                for (size_t r = 0; r < rows; r++) \
                    for (size_t k = 0; k < taps; k++) { \
                        const float w = row_weight[r] * weight[k * count + i]; \
                        const type *x = (const type *)row[r] + (size_t)index[k * count + i] * ORTC_BLOCK; \
                        if (weight[k * count + i] == 0) continue; \
                        sum = v_fma(v_set_f32(w), v_load_##T(x + c, n), sum); \
                    } \
                v_store_##T(y + c, sum, n); \
            } \
    }
BLOCKS(f32, float)
BLOCKS(f16, uint16_t)
BLOCKS(bf16, uint16_t)

const ortc_resize_lines V_NAME(ortc_resize_lines) = {add, across, {blocks_f32, blocks_f16, blocks_bf16}};
