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

/* To the nearest, halves to even, and into the type; NaN, as every integer of no float, ends in a byte of 0.
 * */
VFN vi32 quantised(vf32 v, vf32 zero, vf32 low, vf32 high)
{
    const vf32 q = v_add(v_rint(v), zero);
    return v_i32_of_f32(v_min_nan(v_max_nan(q, low), high));
}

static void run(const ortc_int_pass *p, size_t rows, size_t cols, const int32_t *sums, size_t ld, void *y,
                size_t y_ld)
{
    const vf32 lo = v_set_f32(p->lo), hi = v_set_f32(p->hi), y_scale = v_set_f32(p->y_scale),
               zero = v_set_f32(p->y_zero), low = v_set_f32(p->type == ORTC_I8 ? -128 : 0),
               high = v_set_f32(p->type == ORTC_I8 ? 127 : 255);
    const int divides = p->y_scale != 1;
    for (size_t r = 0; r < rows; r++, sums += ld) {
        float *f = (float *)y + r * y_ld;
        int8_t *b = (int8_t *)y + r * y_ld;
        V_FOR(i, n, cols, {
            vi32 s = v_load_i32(sums + i, n);
            if (p->before.data) s += integers(&p->before, r, i, n);
            vf32 v = v_f32_of_i32(s);
            if (p->scale.data) v = v_mul(v, floats(&p->scale, r, i, n));
            if (p->bias.data) v = v_add(v, floats(&p->bias, r, i, n));
            v = v_min_nan(v_max_nan(v, lo), hi);
            if (p->type == ORTC_F32)
                v_store_f32(f + i, v, n);
            else
                v_store_i8(b + i, quantised(divides ? v_div(v, y_scale) : v, zero, low, high), n);
        });
    }
}

const ortc_int_passes V_NAME(ortc_int_passes) = {run};
