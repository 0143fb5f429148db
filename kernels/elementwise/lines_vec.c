/* Cast and Where over lines (lines.h), a body for every instruction set. Where is plain loops: compilers know
 * how. */
#include "kernels/elementwise/lines.h"

#include "kernels/common/vector/vec.h"

/* clang-format off */
#define LINE(name, from, to, ...) \
    static void name(size_t count, const from *in, to *out) { __VA_ARGS__ }
#define FROM(T, type) \
    LINE(f32_of_##T, void, float, const type *x = in; \
         V_FOR(i, n, count, v_store_f32(out + i, v_load_##T(x + i, n), n););)
/* to memory: a name with _ behind it, for f32 and i32 are both */
#define TO(T, type) \
    LINE(T##_of_f32_, float, void, type *y = out; \
         V_FOR(i, n, count, v_store_##T(y + i, v_load_f32(in + i, n), n););)
#define FROM_INT(T, type) \
    LINE(i32_of_##T, void, int32_t, const type *x = in; \
         V_FOR(i, n, count, v_store_i32(out + i, v_load_##T(x + i, n), n););) \
    LINE(f32_of_##T, void, float, const type *x = in; \
         V_FOR(i, n, count, v_store_f32(out + i, v_f32_of_i32(v_load_##T(x + i, n)), n););)
#define TO_INT(T, type) \
    LINE(T##_of_i32_, int32_t, void, type *y = out; \
         V_FOR(i, n, count, v_store_##T(y + i, v_load_i32(in + i, n), n););)

FROM(f32, float)
FROM(f16, uint16_t) FROM(bf16, uint16_t) FROM(f64, double) TO(f32, float) TO(f16, uint16_t) TO(bf16, uint16_t)
    TO(f64, double) FROM_INT(i8, int8_t) FROM_INT(u8, uint8_t) FROM_INT(i16, int16_t) FROM_INT(u16, uint16_t)
        FROM_INT(i32, int32_t) TO_INT(i8, int8_t) TO_INT(i16, int16_t) TO_INT(i32, int32_t) TO_INT(i64,
                                                                                                   int64_t)

            LINE(i32_of_i64, void, int32_t, const int64_t *x = in;
                 V_FOR(i, n, count, v_store_i32(out + i, v_load_i64(x + i, n), n););)
                LINE(f32_of_i64, void, float, const int64_t *x = in;
                     for (size_t i = 0; i < count; i++)
                         out[i] = (float)x[i];) LINE(bool_of_i64, int64_t, uint8_t,
                                                     for (size_t i = 0; i < count; i++) out[i] = in[i] != 0;)
                    LINE(i32_of_bool, void, int32_t, const uint8_t *x = in;
                         for (size_t i = 0; i < count; i++) out[i] = x[i] != 0;)
                        LINE(f32_of_bool, void, float, const uint8_t *x = in; for (size_t i = 0; i < count;
                                                                                   i++) out[i] = x[i] != 0;)
                            LINE(bool_of_f32, float, void, uint8_t *y = out;
                                 V_FOR(i, n, count,
                                       v_store_bool(y + i, v_ne(v_load_f32(in + i, n), v_set_f32(0)), n););)
                                LINE(bool_of_i32, int32_t, void, uint8_t *y = out;
                                     V_FOR(i, n, count,
                                           v_store_bool(y + i,
                                                        v_not(v_eq_i32(v_load_i32(in + i, n), v_set_i32(0))),
                                                        n););)

                                    static int cut(size_t count, const float *x, int32_t *y)
{
    vf32 most = v_set_f32(0); /* the largest magnitude, or NaN */
    const size_t step = v_lanes();
    for (size_t i = 0; i < count; i += step) {
        const vf32 v = v_load_f32(x + i, count - i);
        most = v_max_nan(most, v_abs(v));
        v_store_i32(y + i, v_i32_of_f32(v), count - i);
    }
    return !v_any(v_not(v_lt(most, v_set_f32(0x1p31f))));
}

#define WHERE(bits) \
    static void where_##bits(size_t count, const uint8_t *m, const void *p, size_t p_step, const void *q, \
                             size_t q_step, void *to) \
    { \
        const uint##bits##_t *a = p, *b = q; \
        uint##bits##_t *y = to; \
        if (p_step && q_step) \
            for (size_t i = 0; i < count; i++) { \
                const uint##bits##_t s = a[i], t = b[i]; \
                y[i] = m[i] ? s : t; \
            } \
        else if (p_step) \
            for (size_t i = 0; i < count; i++) { \
                const uint##bits##_t s = a[i], t = b[0]; \
                y[i] = m[i] ? s : t; \
            } \
        else \
            for (size_t i = 0; i < count; i++) { \
                const uint##bits##_t s = a[0], t = b[i * q_step]; \
                y[i] = m[i] ? s : t; \
            } \
    }
WHERE(8)
WHERE(16)
WHERE(32)
WHERE(64)

const ortc_lines V_NAME(ortc_lines) = {{f32_of_f32, f32_of_f16, f32_of_bf16, f32_of_f64, f32_of_bool,
                                        f32_of_i8, f32_of_u8, f32_of_i16, f32_of_u16, f32_of_i32, f32_of_i64},
                                       {NULL, NULL, NULL, NULL, i32_of_bool, i32_of_i8, i32_of_u8, i32_of_i16,
                                        i32_of_u16, i32_of_i32, i32_of_i64},
                                       {f32_of_f32_, f16_of_f32_, bf16_of_f32_, f64_of_f32_, bool_of_f32,
                                        NULL, NULL, NULL, NULL, NULL, NULL},
                                       {NULL, NULL, NULL, NULL, bool_of_i32, i8_of_i32_, i8_of_i32_,
                                        i16_of_i32_, i16_of_i32_, i32_of_i32_, i64_of_i32_},
                                       bool_of_i64,
                                       cut,
                                       {where_8, where_16, where_32, where_64}};
