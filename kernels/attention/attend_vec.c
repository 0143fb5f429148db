/* The bodies of ortc_attend_vec (attend.h). */
#include "kernels/attention/attend.h"

#include "kernels/common/vector/math.h"
#include "kernels/common/vector/reduce.h"
#include "kernels/gemm/amx.h"
#include "kernels/gemm/amx_bf16.h"

/* ---- Scores of few rows -------------------------------------------------------------------------------- */

/* Eight keys share each load of q; eight sums hide the latency of an FMA. */
#define EACH(M, ...) \
    M(0, __VA_ARGS__) \
    M(1, __VA_ARGS__) \
    M(2, __VA_ARGS__) \
    M(3, __VA_ARGS__) M(4, __VA_ARGS__) M(5, __VA_ARGS__) M(6, __VA_ARGS__) M(7, __VA_ARGS__)
enum { KEYS = 8 };
#define ZERO(j, T) vf32 sum##j = v_set_f32(0);
#define TERM(j, T) sum##j = v_fma(qv, v_load_##T(at + (j)*ldk + i, n), sum##j);
#define FINISH(j, T) to[j] = V_ACROSS(v_sum, sum##j);
#define DOTS(T, type) \
    static void dots_##T(size_t rows, size_t keys, size_t d, const float *q, const void *k, size_t ldk, \
                         float *s, size_t lds) \
    { \
        for (size_t key = 0; key < keys; key += KEYS) \
            for (size_t r = 0; r < rows; r++) { \
                const type *at = (const type *)k + key * ldk; \
                const float *row = q + r * d; \
                float *to = s + r * lds + key; \
                if (keys - key >= KEYS) { \
                    EACH(ZERO, T) \
                    V_FOR(i, n, d, const vf32 qv = v_load_f32(row + i, n); EACH(TERM, T)); \
                    EACH(FINISH, T) \
                    continue; \
                } \
                for (size_t j = key; j < keys; j++, at += ldk, to++) { \
                    ZERO(0, T) \
                    V_FOR(i, n, d, const vf32 qv = v_load_f32(row + i, n); TERM(0, T)); \
                    FINISH(0, T) \
                } \
            } \
    }

/* ---- Values of few rows -------------------------------------------------------------------------------- */

/* Four keys for each pass over a row of results, which stays in L1. */
#define MIX(T, type) \
    static void mix_##T(size_t rows, size_t keys, size_t d, const float *p, size_t ldp, const void *v, \
                        size_t ldv, float *o) \
    { \
        size_t key = 0; \
        for (; key + 4 <= keys; key += 4) \
            for (size_t r = 0; r < rows; r++) { \
                const type *at = (const type *)v + key * ldv; \
                const float *w = p + r * ldp + key; \
                float *to = o + r * d; \
                const vf32 w0 = v_set_f32(w[0]), w1 = v_set_f32(w[1]), w2 = v_set_f32(w[2]), \
                           w3 = v_set_f32(w[3]); \
                V_FOR(i, n, d, { \
                    vf32 y = v_load_f32(to + i, n); \
                    y = v_fma(w0, v_load_##T(at + i, n), y); \
                    y = v_fma(w1, v_load_##T(at + ldv + i, n), y); \
                    y = v_fma(w2, v_load_##T(at + 2 * ldv + i, n), y); \
                    y = v_fma(w3, v_load_##T(at + 3 * ldv + i, n), y); \
                    v_store_f32(to + i, y, n); \
                }); \
            } \
        for (; key < keys; key++) \
            for (size_t r = 0; r < rows; r++) { \
                const type *at = (const type *)v + key * ldv; \
                const vf32 w = v_set_f32(p[r * ldp + key]); \
                float *to = o + r * d; \
                V_FOR(i, n, d, \
                      v_store_f32(to + i, v_fma(w, v_load_##T(at + i, n), v_load_f32(to + i, n)), n);); \
            } \
    }
#define STORE(T, type) \
    static void store_##T(size_t count, const float *x, float by, void *y) \
    { \
        const vf32 f = v_set_f32(by); \
        V_FOR(i, n, count, v_store_##T((type *)y + i, v_mul(v_load_f32(x + i, n), f), n);); \
    }
#define OF(T, type) DOTS(T, type) MIX(T, type) STORE(T, type)
OF(f32, float)
OF(f16, uint16_t)
OF(bf16, uint16_t)

/* ---- Weights ------------------------------------------------------------------------------------------- */

#define LOG2E 1.44269504f

VFN vf32 mask_at(const int kind, const void *mask, size_t i, size_t n)
{
    switch (kind) {
    case ORTC_MASK_F32: return v_load_f32((const float *)mask + i, n);
    case ORTC_MASK_F16: return v_load_f16((const uint16_t *)mask + i, n);
    case ORTC_MASK_BF16: return v_load_bf16((const uint16_t *)mask + i, n);
    case ORTC_MASK_BOOL:
        return v_sel(v_eq_i32(v_load_u8((const uint8_t *)mask + i, n), v_set_i32(0)),
                     v_set_f32(-__builtin_inff()), v_set_f32(0));
    default: return v_set_f32(0);
    }
}

/* 2^t, to 1.5 units in the last place for t up to 100; below f32's normal numbers 0, which some processors
 * take a hundred clocks for each of; NaN stays. */
VFN vf32 power(vf32 t)
{
#ifdef __AVX512F__
    const vf32 f = _mm512_reduce_ps(t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC); /* from its floor on */
    const vf32 p = V_P6(f, 1, .693147063f, .240229085f, .0554861836f, .00967377517f, .00124822895f,
                        .000215659718f);
    return _mm512_maskz_scalef_ps(v_not(v_lt(t, v_set_f32(-126))), p, t);
#else
    const vf32 a = v_max(v_set_f32(-126), t), down = v_sub(V_SHIFTED, v_set_f32(1)); /* NaN is second */
    const vf32 shifted = v_add(a, down), r = v_sub(a, v_sub(shifted, down));
    const vf32 p = V_P6(r, 2, 1.38629436f, .480452955f, .111007199f, .0192370117f, .00267816125f,
                        .000306529254f);
    return v_mul(p, v_power_of(shifted)); /* of n - 1: 0 where n is -126 */
#endif
}

/* What is taken off: nothing where all is -infinity so far, -infinity - -infinity would be NaN. */
VFN float off_of(float most) { return most == -__builtin_inff() ? 0 : -most; }

/* What weights of a block refer to: the largest score so far, or that of blocks before where weights do not
 * become large beside theirs: so results are seldom multiplied. */
#define LARGE 11 /* 2^11 */
VFN float reference(const ortc_attend_row *row, float top)
{
    return top - row->most < LARGE || !(top > row->most) ? row->most : top;
}

/* Returns what the row's results so far are to be multiplied by. */
static float go_on(ortc_attend_row *row, float most, float sum)
{
    const float was = row->most;
    float by = 1; /* of a first block, too: nothing has been added up */
    if (most != was && was != -__builtin_inff()) v_store_f32(&by, power(v_set_f32(was - most)), 1);
    row->most = most;
    row->sum = row->sum * (double)by + (double)sum;
    return by;
}

/* What most rows are: scores from the first on, and no cap. The largest of them, by lanes; where there is no
 * mask, of products, which are not multiplied before their power is taken. What is behind the last, up to a
 * whole vector, is hidden. */
VFN vf32 largest(const int kind, const ortc_attend_products *x, float factor)
{
    const size_t lanes = v_lanes(), n = x->end, whole = n / lanes * lanes;
    float *const s = x->s;
    const vf32 by = v_set_f32(factor), log2e = v_set_f32(LOG2E), hidden = v_set_f32(-__builtin_inff());
    vf32 top0 = hidden, top1 = hidden;
    size_t i = 0;
#define SCORE(top, count) \
    do { \
        vf32 v = v_load_f32(s + i, lanes); \
        if (kind != ORTC_MASK_NONE) v = v_fma(v, by, v_mul(mask_at(kind, x->mask, i, count), log2e)); \
        if ((count) < lanes) v = v_keep(v, count, -__builtin_inff()); \
        if (kind != ORTC_MASK_NONE || (count) < lanes) v_store_f32(s + i, v, lanes); \
        top = v_max(top, v); \
        i += lanes; \
    } while (0)
    while (i + 2 * lanes <= whole) {
        SCORE(top0, lanes);
        SCORE(top1, lanes);
    }
    if (i < whole) SCORE(top0, lanes);
    if (i < n) SCORE(top1, n - i);
#undef SCORE
    return v_max(top0, top1);
}

/* Weights of scores (products times `scale`), and their sum, by lanes. */
VFN vf32 weights(const ortc_attend_products *x, float scale, float most)
{
    const size_t lanes = v_lanes(), n = x->end;
    float *const s = x->s;
    const vf32 by = v_set_f32(scale), off = v_set_f32(off_of(most)), zero = v_set_f32(0);
    vf32 sum0 = zero, sum1 = zero;
    size_t i = 0;
#define WEIGHT(sum) \
    do { \
        const vf32 v = power(v_fma(v_load_f32(s + i, lanes), by, off)); \
        v_store_f32(s + i, v, lanes); \
        sum = v_add(sum, v); \
        i += lanes; \
    } while (0)
    while (i + 2 * lanes <= n) {
        WEIGHT(sum0);
        WEIGHT(sum1);
    }
    while (i < n) WEIGHT(sum0);
#undef WEIGHT
    return v_add(sum0, sum1);
}

/* What the weights of each row refer to. */
VFN void references(const int kind, const size_t rows, const ortc_attend_products *x, float factor,
                    float *most)
{
    vf32 v[ORTC_ATTEND_TOGETHER];
    for (size_t k = 0; k < rows; k++) v[k] = largest(kind, &x[k], factor);
    for (size_t k = 0; k < rows; k++) {
        const float top = V_ACROSS(v_max, v[k]);
        most[k] = reference(x[k].row, kind == ORTC_MASK_NONE ? top * factor : top);
    }
}

VFN void weigh_rows(const int kind, const size_t rows, ortc_attend_products *x, float factor)
{
    vf32 v[ORTC_ATTEND_TOGETHER];
    float most[ORTC_ATTEND_TOGETHER];
    references(kind, rows, x, factor, most);
    for (size_t k = 0; k < rows; k++) v[k] = weights(&x[k], kind == ORTC_MASK_NONE ? factor : 1, most[k]);
    for (size_t k = 0; k < rows; k++) x[k].by = go_on(x[k].row, most[k], V_ACROSS(v_sum, v[k]));
}

#define EACH_KIND(rows_of) \
    switch (kind) { \
        rows_of(ORTC_MASK_NONE) rows_of(ORTC_MASK_F32) rows_of(ORTC_MASK_F16) rows_of(ORTC_MASK_BF16) \
            rows_of(ORTC_MASK_BOOL) default : return; \
    }

static void weigh(size_t rows, ortc_attend_products *x, float factor, int kind, float softcap)
{
    const vf32 by = v_set_f32(factor), cap = v_set_f32(softcap);
    const int plain = !(softcap > 0) && factor > 0; /* else products are made scores first */
    for (size_t k = 0; !plain && k < rows; k++)
        V_FOR(i, n, x[k].end, {
            vf32 v = v_mul(v_load_f32(x[k].s + i, n), by);
            if (softcap > 0) v = v_mul(cap, v_tanh(v_div(v, cap)));
            v_store_f32(x[k].s + i, v, n);
        });
    factor = plain ? factor * LOG2E : LOG2E;
#define ROWS_OF(kind) \
    case kind: \
        if (rows == ORTC_ATTEND_TOGETHER) \
            weigh_rows(kind, ORTC_ATTEND_TOGETHER, x, factor); \
        else \
            weigh_rows(kind, rows, x, factor); \
        return;
    EACH_KIND(ROWS_OF)
#undef ROWS_OF
}

/* ---- Weights as bf16 ----------------------------------------------------------------------------------- */

#ifdef __AVX512F__
/* The same to 2 parts in 10,000 (elementwise/program_vec.c). */
VFN vf32 power_of_bf16(vf32 t)
{
    const vf32 f = _mm512_reduce_ps(t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    const vf32 p = V_P3(f, 1, .69511682f, .22764488f, .07706715f);
    return _mm512_maskz_scalef_ps(v_not(v_lt(t, v_set_f32(-126))), p, t);
}

/* Weights, of n, and their sum, by lanes. */
VFN vf32 powers(const ortc_attend_products *x, size_t n, float by, float most, size_t step)
{
    enum { L = V_LANES };
    const vf32 scale = v_set_f32(by), off = v_set_f32(off_of(most)), zero = v_set_f32(0);
    vf32 sums[2] = {zero, zero};
    uint16_t *to = x->to;
    size_t i = 0;
    for (; i + L < x->end; i += 2 * L, to += step) {
        const vf32 a = power_of_bf16(v_fma(v_load_f32(x->s + i, L), scale, off)),
                   b = power_of_bf16(v_fma(v_load_f32(x->s + i + L, L), scale, off));
        amx_store_two_bf16(to, a, b);
        sums[0] = v_add(sums[0], a), sums[1] = v_add(sums[1], b);
    }
    for (; i < n; i += 2 * L, to += step) {
        const vf32 a = i < x->end ? power_of_bf16(v_fma(v_load_f32(x->s + i, L), scale, off)) : zero;
        amx_store_two_bf16(to, a, zero);
        sums[0] = v_add(sums[0], a);
    }
    return v_add(sums[0], sums[1]);
}

/* Between tiles of so few products the unit is kept awake (amx.h): 1.05 of Attention over 128 keys, 1.02 over
 * 197; over 256, whose rows take longer than it waits, 0.98. */
enum { LONG = 256 };

VFN void halve_rows(const int kind, const size_t rows, ortc_attend_products *x, size_t n, float factor,
                    size_t step)
{
    vf32 v[ORTC_ATTEND_TOGETHER];
    float most[ORTC_ATTEND_TOGETHER];
    references(kind, rows, x, factor, most);
    if (n < LONG) AMX_WAKE();
    for (size_t k = 0; k < rows; k++) {
        v[k] = powers(&x[k], n, kind == ORTC_MASK_NONE ? factor : 1, most[k], step);
        if (n < LONG) AMX_WAKE();
    }
    for (size_t k = 0; k < rows; k++) x[k].by = go_on(x[k].row, most[k], V_ACROSS(v_sum, v[k]));
}

/* Any row. */
static void halve_any(ortc_attend_products *x, size_t n, float factor, int kind, float softcap, size_t step)
{
    const size_t lanes = v_lanes(), begin = x->begin, end = x->end;
    const vf32 by = v_set_f32(factor), hidden = v_set_f32(-__builtin_inff()), log2e = v_set_f32(LOG2E);
    float *s = x->s;
    vf32 tops = hidden;
    for (size_t i = 0; i < n; i += lanes) {
        vf32 v = v_mul(v_load_f32(s + i, lanes), by);
        const size_t left = end > i ? end - i : 0;
        if (softcap > 0) v = v_mul(v_set_f32(softcap), v_tanh(v_div(v, v_set_f32(softcap))));
        if (kind != ORTC_MASK_NONE) v = v_add(v, mask_at(kind, x->mask, i, left));
        v = v_mul(v, log2e);
        if (left < lanes) v = v_keep(v, left, -__builtin_inff());
        if (begin > i) v = v_sel(v_first(begin - i), hidden, v);
        v_store_f32(s + i, v, lanes);
        tops = v_max(tops, v);
    }
    const float most = reference(x->row, V_ACROSS(v_max, tops));
    const vf32 off = v_set_f32(off_of(most));
    vf32 sums = v_set_f32(0);
    for (size_t i = 0; i < n; i += lanes) {
        const vf32 e = power_of_bf16(v_add(v_load_f32(s + i, lanes), off));
        amx_store_bf16(x->to + i / ORTC_ATTEND_GROUP * step + i % ORTC_ATTEND_GROUP, e, lanes);
        sums = v_add(sums, e);
    }
    x->by = go_on(x->row, most, V_ACROSS(v_sum, sums));
}

static void halve(size_t rows, ortc_attend_products *x, size_t n, float factor, int kind, float softcap,
                  size_t step)
{
    int plain = !(softcap > 0) && factor > 0;
    for (size_t k = 0; k < rows; k++) plain &= x[k].begin == 0;
    for (size_t k = 0; !plain && k < rows; k++) halve_any(&x[k], n, factor, kind, softcap, step);
    if (!plain) return;
    factor *= LOG2E;
#define ROWS_OF(kind) \
    case kind: \
        if (rows == ORTC_ATTEND_TOGETHER) \
            halve_rows(kind, ORTC_ATTEND_TOGETHER, x, n, factor, step); \
        else \
            halve_rows(kind, rows, x, n, factor, step); \
        return;
    EACH_KIND(ROWS_OF)
#undef ROWS_OF
}
#else
#define halve NULL /* where there is a unit for it, there is AVX-512 */
#endif

static void scale(size_t count, float *x, float by)
{
    const vf32 f = v_set_f32(by);
    V_FOR(i, n, count, v_store_f32(x + i, v_mul(v_load_f32(x + i, n), f), n););
}

const ortc_attend_vec V_NAME(ortc_attend_vec) = {{dots_f32, dots_f16, dots_bf16},
                                                 {mix_f32, mix_f16, mix_bf16},
                                                 {store_f32, store_f16, store_bf16},
                                                 weigh,
                                                 halve,
                                                 scale};
