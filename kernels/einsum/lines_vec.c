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

static float sum(size_t count, const float *x)
{
    V_REDUCE(total, v_sum, 0, count, i, n, v_load_f32(x + i, n));
    return total;
}

/* Some rows in f32, all of them in double: an error does not grow with their number. */
#define ADD(T, type) \
    static void add_##T(size_t count, size_t rows, int64_t step, const void *from, double *sums) \
    { \
        const type *x = from; \
        const size_t half = v_lanes() / 2, some = 16; \
        V_FOR(i, n, count, { \
            vf64 lo = v_load_wide_f64(sums + i, half), hi = v_load_wide_f64(sums + i + half, half); \
            for (size_t first = 0; first < rows; first += some) { \
                const size_t end = rows - first < some ? rows : first + some; \
                vf32 sum = v_load_##T(x + (int64_t)first * step + i, n); \
                for (size_t r = first + 1; r < end; r++) \
                    sum = v_add(sum, v_load_##T(x + (int64_t)r * step + i, n)); \
                lo = v_add(lo, v_f64_lo(sum)); \
                hi = v_add(hi, v_f64_hi(sum)); \
            } \
            v_store_wide_f64(sums + i, lo, half); \
            v_store_wide_f64(sums + i + half, hi, half); \
        }); \
    }
ADD(f32, float)
ADD(f16, uint16_t)
ADD(bf16, uint16_t)

static void round_off(size_t count, const double *sums, float *y)
{
    for (size_t i = 0; i < count; i++) y[i] = (float)sums[i];
}

const ortc_einsum_lines V_NAME(ortc_einsum_lines) = {
    multiply, dot, sum, {add_f32, add_f16, add_bf16}, round_off};
