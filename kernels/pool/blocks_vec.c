/* Pools over blocks (blocks.h), a body for every instruction set: four pixels at a time, so that their folds
 * do not wait for each other. A NaN under a window makes its maximum NaN. Sums of bytes are exact. */
#include "kernels/pool/blocks.h"

#include "kernels/common/vector/convert.h"
#include "kernels/common/vector/vec.h"

VFN vf32 load(const int type, const char *p, size_t n)
{
    if (type == ORTC_FLOAT_F16) return v_load_f16((const uint16_t *)(const void *)p, n);
    if (type == ORTC_FLOAT_BF16) return v_load_bf16((const uint16_t *)(const void *)p, n);
    return v_load_f32((const float *)(const void *)p, n);
}
VFN void store(const int type, char *p, vf32 v, size_t n)
{
    if (type == ORTC_FLOAT_F16)
        v_store_f16((uint16_t *)(void *)p, v, n);
    else if (type == ORTC_FLOAT_BF16)
        v_store_bf16((uint16_t *)(void *)p, v, n);
    else
        v_store_f32((float *)(void *)p, v, n);
}
VFN vf32 fold(const int how, vf32 a, vf32 b) { return how == ORTC_POOL_MAX ? v_max_nan(a, b) : v_add(a, b); }

/* The maximum of pixel `at` as it is where one is a NaN. */
static __attribute__((noinline, cold)) vf32 most(const int type, const ortc_pool_window *w, ptrdiff_t at,
                                                 size_t skip, size_t n)
{
    vf32 r = v_set_f32(-__builtin_inff());
    for (size_t t = 0; t < w->taps; t++)
        r = v_max_nan(r, load(type, w->tap[t].x + at * w->tap[t].step + skip, n));
    return r;
}

/* Maxima lose a NaN, or ask for it at each step, which takes three times as long. Sums keep it; where one is
 * NaN (infinities of both signs become that, too) its maximum is made anew. */
#define EACH_1(M) M(0)
#define EACH_4(M) M(0) M(1) M(2) M(3)
#define FIRST(p) vf32 r##p = load(type, x + (p)*step, left), sum##p = r##p;
#define FOLD(p) r##p = fold(how, r##p, load(type, x + (p)*step, left));
#define FOLD_BOTH(p) \
    { \
        const vf32 v = load(type, x + (p)*step, left); \
        r##p = how == ORTC_POOL_MAX ? v_max(r##p, v) : v_add(r##p, v); \
        if (how == ORTC_POOL_MAX) sum##p = v_add(sum##p, v); \
    }
#define CHECK(p) \
    if (v_any(v_is_nan(sum##p))) r##p = most(type, w, (ptrdiff_t)(at + (p)), c * size, left);
#define MEAN(p) r##p = v_div(r##p, count);
#define STORE(p) store(type, y + (ptrdiff_t)(at + (p)) * y_step, v_keep(r##p, keep, 0), left);
#define MOVE(tap) step = (tap).step, x = (tap).x + (ptrdiff_t)at * step + (ptrdiff_t)(c * size)
/* From pixel `at` on, for as long as there are so many. */
#define PIXELS(some, EACH) \
    for (; n - at >= (some); at += (some)) { \
        ptrdiff_t step; \
        const char *x; \
        MOVE(w->tap[0]); \
        EACH(FIRST) \
        for (size_t t = 1; t < w->taps; t++) { \
            MOVE(w->tap[t]); \
            EACH(FOLD_BOTH) \
        } \
        if (how == ORTC_POOL_MAX) { \
            EACH(CHECK) \
        } \
        if (how == ORTC_POOL_MEAN) { \
            EACH(MEAN) \
        } \
        EACH(STORE) \
    }

VFN void window(const int how, const int type, size_t n, const ortc_pool_window *w)
{
    const size_t size = type == ORTC_FLOAT_F32 ? 4 : 2;
    const ptrdiff_t y_step = (ptrdiff_t)(w->y_step * size);
    const vf32 count = v_set_f32(w->count);
    for (size_t c = 0; c < ORTC_BLOCK; c += v_lanes()) {
        const size_t left = ORTC_BLOCK - c, keep = w->lanes > c ? w->lanes - c : 0;
        char *y = (char *)w->y + c * size;
        size_t at = 0;
        PIXELS(4, EACH_4)
        PIXELS(1, EACH_1)
    }
}

VFN void all(const int how, const int type, size_t n, const void *from, float *acc)
{
    const ptrdiff_t step = type == ORTC_FLOAT_F32 ? 4 * ORTC_BLOCK : 2 * ORTC_BLOCK;
    for (size_t c = 0; c < ORTC_BLOCK; c += v_lanes()) {
        const size_t left = ORTC_BLOCK - c;
        const char *x = (const char *)from + step / ORTC_BLOCK * (ptrdiff_t)c;
        vf32 r0 = v_load_f32(acc + c, left), r1 = v_set_f32(how == ORTC_POOL_MAX ? -__builtin_inff() : 0);
        vf32 r2 = r1, r3 = r1;
        size_t i = 0;
        for (; n - i >= 4; i += 4, x += 4 * step) {
            EACH_4(FOLD)
        }
        for (; i < n; i++, x += step) {
            EACH_1(FOLD)
        }
        v_store_f32(acc + c, fold(how, fold(how, r0, r1), fold(how, r2, r3)), left);
    }
}

/* What ends a sum of bytes. The quotient of the operators' own steps, three roundings, is below 512, or all
 * ends in the same bound; a product with one factor is off by less than 2^-11 then. */
typedef struct ends {
    vi32 zeros, y_zero; /* zeros: what zero points add to a sum */
    vf32 factor, near, count, x_scale, y_scale, low, high;
} ends;

VFN ends ends_of(const ortc_pool_window *w)
{
    const ortc_pool_between *b = w->between;
    const float f = (float)((double)b->x_scale / ((double)w->count * (double)b->y_scale));
    const int quick = f > 0x1p-100f && f < 0x1p100f, least = b->y_signed ? -128 : 0;
    return (ends){.zeros = v_set_i32((int32_t)w->taps * b->x_zero),
                  .y_zero = v_set_i32(b->y_zero),
                  .factor = v_set_f32(quick ? f : 0),
                  .near = v_set_f32(quick ? 0.5f - 0x1p-11f : -1),
                  .count = v_set_f32(w->count),
                  .x_scale = v_set_f32(b->x_scale),
                  .y_scale = v_set_f32(b->y_scale),
                  .low = v_set_f32((float)(least - b->y_zero)),
                  .high = v_set_f32((float)(least + 255 - b->y_zero))};
}

/* As the operators do it; where nothing counts, it is NaN, which becomes 0, as of a cast. */
VFN vf32 quotient(const ends *k, vf32 s)
{
    const vf32 q = v_rint(v_div(v_mul(v_div(s, k->count), k->x_scale), k->y_scale));
    return v_sel(v_is_nan(q), v_neg(v_f32_of_i32(k->y_zero)), q);
}
VFN vi32 bounded(const ends *k, vf32 q)
{
    return v_add(v_i32_within(v_min(k->high, v_max(k->low, q))), k->y_zero);
}

VFN vi32 load_byte(const int is_signed, const char *p, size_t n)
{
    return is_signed ? v_load_i8((const int8_t *)p, n) : v_load_u8((const uint8_t *)p, n);
}
#define FIRST_BYTE(p) vi32 s##p = load_byte(is_signed, x + (p)*step, left);
#define ADD_BYTE(p) s##p = v_add(s##p, load_byte(is_signed, x + (p)*step, left));
#define NUMBER(p) \
    const vf32 f##p = v_f32_of_i32(v_sub(s##p, k.zeros)), v##p = v_mul(f##p, k.factor); \
    vf32 q##p = v_rint(v##p);
#define OFF(p) off = v_max(off, v_abs(v_sub(v##p, q##p)));
#define AGAIN(p) q##p = quotient(&k, f##p);
#define STORE_BYTE(p) \
    v_store_i8((int8_t *)y + (ptrdiff_t)(at + (p)) * y_step, v_keep_i32(bounded(&k, q##p), keep, 0), left);
#define BYTES(some, EACH) \
    for (; n - at >= (some); at += (some)) { \
        ptrdiff_t step; \
        const char *x; \
        MOVE(w->tap[0]); \
        EACH(FIRST_BYTE) \
        for (size_t t = 1; t < w->taps; t++) { \
            MOVE(w->tap[t]); \
            EACH(ADD_BYTE) \
        } \
        EACH(NUMBER) \
        vf32 off = v_set_f32(0); \
        EACH(OFF) \
        if (__builtin_expect(v_any(v_lt(k.near, off)), 0)) { \
            EACH(AGAIN) \
        } \
        EACH(STORE_BYTE) \
    }

VFN void mean_of_bytes(const int is_signed, size_t n, const ortc_pool_window *w)
{
    const size_t size = 1;
    const ptrdiff_t y_step = (ptrdiff_t)w->y_step;
    const ends k = ends_of(w);
    for (size_t c = 0; c < ORTC_BLOCK; c += v_lanes()) {
        const size_t left = ORTC_BLOCK - c, keep = w->lanes > c ? w->lanes - c : 0;
        char *y = (char *)w->y + c;
        size_t at = 0;
        BYTES(4, EACH_4)
        BYTES(1, EACH_1)
    }
}
static void between(size_t n, const ortc_pool_window *w)
{
    if (w->between->x_signed)
        mean_of_bytes(1, n, w);
    else
        mean_of_bytes(0, n, w);
}

#define BODIES(how, type) \
    static void window_##how##_##type(size_t n, const ortc_pool_window *w) \
    { \
        window(ORTC_POOL_##how, ORTC_FLOAT_##type, n, w); \
    } \
    static void all_##how##_##type(size_t n, const void *x, float *acc) \
    { \
        all(ORTC_POOL_##how, ORTC_FLOAT_##type, n, x, acc); \
    }
#define OF(what, how) \
    { \
        what##_##how##_F32, what##_##how##_F16, what##_##how##_BF16 \
    }
BODIES(MAX, F32)
BODIES(MAX, F16)
BODIES(MAX, BF16)
BODIES(MEAN, F32)
BODIES(MEAN, F16)
BODIES(MEAN, BF16)

const ortc_pool_blocks_uk V_NAME(ortc_pool_blocks_uk) = {{OF(window, MAX), OF(window, MEAN)},
                                                         {OF(all, MAX), OF(all, MEAN)},
                                                         between};
