/* Sums of s32 to f32 or to 8 bits, a body for every instruction set (integer_tail.h). */
#include "integer_tail.h"

#include "kernels/common/vector/vec.h"

/* Element (r, i) of a vector, for a register's lanes. */
VFN vf32 floats(const ortc_int_vector *v, size_t r, size_t i, size_t n)
{
    const float *p = (const float *)v->data + r * v->row;
    return v->col ? v_load_f32(p + i, n) : v_set_f32(*p);
}
VFN vi32 integers(const ortc_int_vector *v, size_t r, size_t i, size_t n)
{
    const int32_t *p = (const int32_t *)v->data + r * v->row;
    return v->col ? v_load_i32(p + i, n) : v_set_i32(*p);
}

/* 8 bits of a scale, as a loop over registers wants them. Quotients are products with the reciprocal where
 * that cannot matter (`quotient`); reciprocal 0: it always may. */
typedef struct scaled {
    vf32 scale, reciprocal, zero, low, high;
    int divides, quick;
} scaled;

VFN scaled scaled_of(const ortc_int_scaled *s)
{
    const float r = 1 / s->scale;
    const int is_signed = s->type == ORTC_I8;
    return (scaled){v_set_f32(s->scale),
                    v_set_f32(r),
                    v_set_f32(s->zero),
                    v_set_f32(is_signed ? -128 : 0),
                    v_set_f32(is_signed ? 127 : 255),
                    s->scale != 1,
                    r > 0x1p-100f && r < 0x1p100f};
}

/* v / scale to the nearest integer, halves to even. A product with the reciprocal is off by less than 2^-11
 * while it is below 2^10, beyond which all ends in the same bound: only near halves that may matter. */
VFN vf32 quotient(vf32 v, const scaled *s)
{
    if (!s->divides) return v_rint(v);
    if (s->quick) {
        const vf32 t = v_mul(v, s->reciprocal), q = v_rint(t);
        if (!v_any(v_lt(v_set_f32(0.5f - 0x1p-11f), v_abs(v_sub(t, q))))) return q;
    }
    return v_rint(v_div(v, s->scale));
}

/* Into the type, as numbers; NaN, second of each two, stays. */
VFN vf32 quantised(vf32 v, const scaled *s)
{
    return v_min(s->high, v_max(s->low, v_add(quotient(v, s), s->zero)));
}

VFN vf32 residual_of(const ortc_int_pass *p, size_t at, size_t n, vf32 zero, vf32 scale)
{
    const int32_t type = p->steps->residual.type;
    if (type == ORTC_F32) return v_load_f32((const float *)p->residual + at, n);
    const vi32 x = type == ORTC_I8 ? v_load_i8((const int8_t *)p->residual + at, n)
                                   : v_load_u8((const uint8_t *)p->residual + at, n);
    return v_mul(v_sub(v_f32_of_i32(x), zero), scale);
}

/* Compiled for each combination, so that the loop has few choices in it. */
static inline __attribute__((always_inline)) void pass(const int back, const int adds, const int ends,
                                                       const ortc_int_pass *p, size_t rows, size_t cols,
                                                       const int32_t *sums, size_t ld, void *y, size_t y_ld)
{
    const ortc_int_steps *s = p->steps;
    const vf32 lo = v_set_f32(s->clip.lo), hi = v_set_f32(s->clip.hi), last_lo = v_set_f32(s->last.lo),
               last_hi = v_set_f32(s->last.hi), zero = v_set_f32(s->from.zero),
               scale = v_set_f32(s->from.scale), r_zero = v_set_f32(s->residual.zero),
               r_scale = v_set_f32(s->residual.scale);
    const scaled to = scaled_of(&s->to), end = scaled_of(&s->y);
    const ortc_int_vector before = p->before, factor = p->scale, bias = p->bias;
    for (size_t r = 0; r < rows; r++, sums += ld) {
        float *f = (float *)y + r * y_ld;
        int8_t *b = (int8_t *)y + r * y_ld;
        V_FOR(i, n, cols, {
            vi32 sum = v_load_i32(sums + i, n);
            if (before.data) sum += integers(&before, r, i, n);
            vf32 v = v_f32_of_i32(sum);
            if (factor.data) v = v_mul(v, floats(&factor, r, i, n));
            if (bias.data) v = v_add(v, floats(&bias, r, i, n));
            v = v_min(hi, v_max(lo, v));
            if (back) {
                v = quantised(v, &to);
                v = v_sel(v_is_nan(v), v_set_f32(0), v); /* as an integer */
                v = v_mul(v_sub(v, zero), scale);
            }
            if (adds) v = v_add(v, residual_of(p, r * p->residual_row + i, n, r_zero, r_scale));
            if (back || adds) v = v_min(last_hi, v_max(last_lo, v));
            if (ends) /* NaN, as every integer of no float, ends in a byte of 0 */
                v_store_i8(b + i, v_i32_of_f32(quantised(v, &end)), n);
            else
                v_store_f32(f + i, v, n);
        });
    }
}

static void run(const ortc_int_pass *p, size_t rows, size_t cols, const int32_t *sums, size_t ld, void *y,
                size_t y_ld)
{
    const int back = p->steps->to.type != 0, adds = p->residual != NULL;
#define PASS(b, a) \
    (p->ends ? pass(b, a, 1, p, rows, cols, sums, ld, y, y_ld) \
             : pass(b, a, 0, p, rows, cols, sums, ld, y, y_ld))
    if (back)
        adds ? PASS(1, 1) : PASS(1, 0);
    else
        adds ? PASS(0, 1) : PASS(0, 0);
#undef PASS
}

const ortc_int_passes V_NAME(ortc_int_passes) = {run};
