/* The bodies behind functions.h, compiled for every instruction set. */
#include "functions.h"

#include "kernels/common/vector/math.h"
#include "kernels/common/vector/reduce.h"

#define VEC_UNARY(name, exact, bound, bound_without_fma) \
    static void unary_##name(size_t count, const float *x, float *y) \
    { \
        V_FOR(i, n, count, v_store_f32(y + i, v_##name(v_load_f32(x + i, n)), n);); \
    }
#include "unary.inc"
#undef VEC_UNARY

#define BINARY(name, v_name) \
    static void name(size_t count, const float *a, const float *b, float *c) \
    { \
        V_FOR(i, n, count, v_store_f32(c + i, v_name(v_load_f32(a + i, n), v_load_f32(b + i, n)), n);); \
    }
BINARY(power, v_pow)
BINARY(max, v_max)
BINARY(min, v_min)
BINARY(max_nan, v_max_nan)
BINARY(min_nan, v_min_nan)

static void fma3(size_t count, const float *a, const float *b, const float *c, float *d)
{
    V_FOR(i, n, count,
          v_store_f32(d + i, v_fma(v_load_f32(a + i, n), v_load_f32(b + i, n), v_load_f32(c + i, n)), n););
}
static void less(size_t count, const float *a, const float *b, uint8_t *c)
{
    V_FOR(i, n, count, v_store_bool(c + i, v_lt(v_load_f32(a + i, n), v_load_f32(b + i, n)), n););
}
static void choose(size_t count, const uint8_t *m, const float *a, const float *b, float *c)
{
    V_FOR(i, n, count,
          v_store_f32(c + i, v_sel(v_load_bool(m + i, n), v_load_f32(a + i, n), v_load_f32(b + i, n)), n););
}
static float sum(size_t count, const float *x)
{
    V_REDUCE(s, v_sum, 0, count, i, n, v_load_f32(x + i, n));
    return s;
}
static float highest(size_t count, const float *x)
{
    V_REDUCE(s, v_max_nan, -__builtin_inff(), count, i, n, v_load_f32(x + i, n));
    return s;
}
static void gather(size_t count, const float *base, const int32_t *index, float *y)
{
    V_FOR(i, n, count, v_store_f32(y + i, v_gather_f32(base, v_load_i32(index + i, n), n), n););
}

static void pick(size_t count, const int32_t *index, const float *x, float *y)
{
    V_FOR(i, n, count, v_store_f32(y + i, v_pick_f32(v_load_f32(x + i, n), v_load_i32(index + i, n)), n););
}

static void masked(size_t count, const uint8_t *m, const float *x, float *y)
{
    V_FOR(i, n, count, {
        const vm32 on = v_and(v_load_bool(m + i, n), v_first(n));
        v_store_masked_f32(y + i, v_load_masked_f32(x + i, on), on);
    });
}
static void even(size_t count, const float *x, float *y)
{
    V_FOR(i, n, count, v_store_f32(y + i, v_load_even_f32(x + 2 * i, n), n););
}

/* Of whole registers. */
static void upper_halves(size_t count, const float *x, const float *y, uint16_t *z)
{
    for (size_t i = 0; i < count; i += V_LANES) {
        const vi32 both = v_upper_halves(v_load_f32(x + i, V_LANES), v_load_f32(y + i, V_LANES));
        memcpy(z + 2 * i, &both, sizeof both);
    }
}
static void max_u16(size_t count, const int32_t *x, const int32_t *y, int32_t *z)
{
    V_FOR(i, n, count, v_store_i32(z + i, v_max_u16(v_load_i32(x + i, n), v_load_i32(y + i, n)), n););
}
static void min_u16(size_t count, const int32_t *x, const int32_t *y, int32_t *z)
{
    V_FOR(i, n, count, v_store_i32(z + i, v_min_u16(v_load_i32(x + i, n), v_load_i32(y + i, n)), n););
}

static void repeat(size_t count, size_t times, const float *x, float *y)
{
    V_FOR(i, n, count, v_store_f32(y + i, v_repeat_f32(x + i / times, times, n), n););
}

#define MOVE(name, from, to, load, convert, store) \
    static void name(size_t count, const from *x, to *y) \
    { \
        V_FOR(i, n, count, store(y + i, convert(load(x + i, n)), n);); \
    }
MOVE(load_f16, uint16_t, float, v_load_f16, , v_store_f32)
MOVE(store_f16, float, uint16_t, v_load_f32, , v_store_f16)
MOVE(load_bf16, uint16_t, float, v_load_bf16, , v_store_f32)
MOVE(store_bf16, float, uint16_t, v_load_f32, , v_store_bf16)
MOVE(load_f64, double, float, v_load_f64, , v_store_f32)
MOVE(store_f64, float, double, v_load_f32, , v_store_f64)
MOVE(i32_of_f32, float, int32_t, v_load_f32, v_i32_of_f32, v_store_i32)
MOVE(f32_of_i32, int32_t, float, v_load_i32, v_f32_of_i32, v_store_f32)
MOVE(low4, int32_t, float, v_load_i32, v_f32_of_low4, v_store_f32)
MOVE(load_i8, int8_t, int32_t, v_load_i8, , v_store_i32)
MOVE(load_u8, uint8_t, int32_t, v_load_u8, , v_store_i32)
MOVE(load_i16, int16_t, int32_t, v_load_i16, , v_store_i32)
MOVE(load_u16, uint16_t, int32_t, v_load_u16, , v_store_i32)
MOVE(load_i64, int64_t, int32_t, v_load_i64, , v_store_i32)
MOVE(store_i8, int32_t, int8_t, v_load_i32, , v_store_i8)
MOVE(store_u8, int32_t, uint8_t, v_load_i32, , v_store_u8)
MOVE(store_i16, int32_t, int16_t, v_load_i32, , v_store_i16)
MOVE(store_u16, int32_t, uint16_t, v_load_i32, , v_store_u16)
MOVE(store_i64, int32_t, int64_t, v_load_i32, , v_store_i64)

extern const vec_functions V_NAME(vec_functions);
const vec_functions V_NAME(vec_functions) = {V_LANES,
                                             V_HAS_FMA,
                                             {
#define VEC_UNARY(name, exact, bound, bound_without_fma) unary_##name,
#include "unary.inc"
                                             },
                                             power,
                                             fma3,
                                             max,
                                             min,
                                             max_nan,
                                             min_nan,
                                             less,
                                             choose,
                                             sum,
                                             highest,
                                             gather,
                                             pick,
                                             masked,
                                             even,
                                             low4,
                                             repeat,
                                             upper_halves,
                                             max_u16,
                                             min_u16,
                                             load_f16,
                                             store_f16,
                                             load_bf16,
                                             store_bf16,
                                             load_f64,
                                             store_f64,
                                             i32_of_f32,
                                             f32_of_i32,
                                             load_i8,
                                             load_u8,
                                             load_i16,
                                             load_u16,
                                             load_i64,
                                             store_i8,
                                             store_u8,
                                             store_i16,
                                             store_u16,
                                             store_i64};
