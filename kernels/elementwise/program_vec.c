/* Lines of pointwise programs (program.h), a body for every instruction set.
 *
 * Threaded code: eight vectors travel in argument registers (the calling conventions of x86-64 and AArch64
 * have that many) from line to line, by calls in tail position; what a line's operands are it reads from
 * memory. Compilers make jumps of such calls where they optimise; where they do not (debug builds,
 * sanitizers) the same text is compiled as functions over a block in memory, called in a loop. Functions
 * that cost like an exp go over the block in memory in a loop: unrolled eight times they would be large and
 * spill.
 */
#include "kernels/elementwise/program.h"

#include "kernels/common/vector/math.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(__OPTIMIZE__) || \
    defined(ORTC_PW_TILED)
#define THREADED 0
#else
#define THREADED 1
#endif
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#undef THREADED
#define THREADED 0
#endif
#endif
#if defined(__clang__) && THREADED
#define TAIL __attribute__((musttail)) return
#else
#define TAIL
#endif

typedef ortc_pw_op op;

/* clang-format off */
#define ARGUMENTS a0, a1, a2, a3, a4, a5, a6, a7
#if THREADED
#define STATE vf32 a0, vf32 a1, vf32 a2, vf32 a3, vf32 a4, vf32 a5, vf32 a6, vf32 a7
typedef void function(const op *, size_t, STATE);
#define BEGIN(name) static void name(const op *o, size_t i, STATE) {
#define END TAIL ((function *)o[1].fn)(o + 1, i, ARGUMENTS); }
#define STOP }
#else
typedef void function(const op *, size_t, float *);
#define BEGIN(name) \
    static void name(const op *o, size_t i, float *acc) { vf32 a0, a1, a2, a3, a4, a5, a6, a7; FROM(acc);
#define END TO(acc); }
#define STOP }
#endif
/* clang-format on */

/* LINE(name, statements): one that goes on; LAST: one that ends the program. */
#define LINE(name, ...) BEGIN(name) __VA_ARGS__ END
#define LAST(name, ...) BEGIN(name) __VA_ARGS__ STOP

/* Register k at a block's address. */
#define AT(p, k) ((float *)(void *)(p) + (k)*v_lanes())
#define R(p, k) v_load_f32(AT(p, k), v_lanes())
#define W(p, k) v_store_f32(AT(p, k), a##k, v_lanes())
#define FROM(p) \
    a0 = R(p, 0), a1 = R(p, 1), a2 = R(p, 2), a3 = R(p, 3), a4 = R(p, 4), a5 = R(p, 5), a6 = R(p, 6), \
    a7 = R(p, 7)
#define TO(p) W(p, 0), W(p, 1), W(p, 2), W(p, 3), W(p, 4), W(p, 5), W(p, 6), W(p, 7)
#define P (o->p + i * o->p_step)
#define Q (o->q + i * o->q_step)

#define EACH_1(f) \
    a0 = f(a0), a1 = f(a1), a2 = f(a2), a3 = f(a3), a4 = f(a4), a5 = f(a5), a6 = f(a6), a7 = f(a7);
#define EACH_2(f, p) \
    a0 = f(a0, R(p, 0)), a1 = f(a1, R(p, 1)), a2 = f(a2, R(p, 2)), a3 = f(a3, R(p, 3)), a4 = f(a4, R(p, 4)), \
    a5 = f(a5, R(p, 5)), a6 = f(a6, R(p, 6)), a7 = f(a7, R(p, 7));
#define EACH_3(f, p, q) \
    a0 = f(a0, R(p, 0), R(q, 0)), a1 = f(a1, R(p, 1), R(q, 1)), a2 = f(a2, R(p, 2), R(q, 2)), \
    a3 = f(a3, R(p, 3), R(q, 3)), a4 = f(a4, R(p, 4), R(q, 4)), a5 = f(a5, R(p, 5), R(q, 5)), \
    a6 = f(a6, R(p, 6), R(q, 6)), a7 = f(a7, R(p, 7), R(q, 7));
#define LINE_1(name, f) LINE(name, EACH_1(f))
#define LINE_2(name, f) LINE(name, const char *p = P; EACH_2(f, p))
#define LINE_3(name, f) LINE(name, const char *p = P; const char *q = Q; EACH_3(f, p, q))

/* ---- Memory -------------------------------------------------------------------------------------------- */

#define LOAD(T, type, convert) \
    LINE(load_##T, const type *p = (const void *)P; const size_t n = v_lanes(); \
         a0 = convert(v_load_##T(p, n)), a1 = convert(v_load_##T(p + n, n)), \
         a2 = convert(v_load_##T(p + 2 * n, n)), a3 = convert(v_load_##T(p + 3 * n, n)), \
         a4 = convert(v_load_##T(p + 4 * n, n)), a5 = convert(v_load_##T(p + 5 * n, n)), \
         a6 = convert(v_load_##T(p + 6 * n, n)), a7 = convert(v_load_##T(p + 7 * n, n));)
#define STORE(name, T, type, convert) \
    LAST(name, type *p = (void *)P; const size_t n = v_lanes(); \
         v_store_##T(p, convert(a0), n), v_store_##T(p + n, convert(a1), n), \
         v_store_##T(p + 2 * n, convert(a2), n), v_store_##T(p + 3 * n, convert(a3), n), \
         v_store_##T(p + 4 * n, convert(a4), n), v_store_##T(p + 5 * n, convert(a5), n), \
         v_store_##T(p + 6 * n, convert(a6), n), v_store_##T(p + 7 * n, convert(a7), n);)
#define SAME(v) (v)
#ifdef __AVX512F__
VFN void two_bf16(uint16_t *y, vf32 low, vf32 high)
{
    __m512i both;
    __asm__("vcvtne2ps2bf16 %2, %1, %0" : "=v"(both) : "v"(high), "v"(low));
    _mm512_storeu_si512(y, both);
}
#endif
VFN vf32 flag(vm32 m) { return v_f32_bits(v_sel_i32(m, v_set_i32(1), v_set_i32(0))); }

/* clang-format off */
LINE(load, char *p = P; FROM(p);)
LINE(save, char *p = P; TO(p);)
LAST(store, char *p = P; TO(p);)
LOAD(f16, uint16_t, SAME)
LOAD(bf16, uint16_t, SAME)
LOAD(i8, int8_t, v_f32_bits)
LOAD(u8, uint8_t, v_f32_bits)
LOAD(i16, int16_t, v_f32_bits)
LOAD(u16, uint16_t, v_f32_bits)
LOAD(bool, uint8_t, flag)
STORE(store_f16, f16, uint16_t, SAME)
STORE(store_bf16, bf16, uint16_t, SAME)
#ifdef __AVX512F__
LAST(store_bf16_amx, uint16_t *p = (void *)P;
     two_bf16(p, a0, a1), two_bf16(p + 32, a2, a3), two_bf16(p + 64, a4, a5), two_bf16(p + 96, a6, a7);)
#else
#define store_bf16_amx store_bf16
#endif
STORE(store_8, i8, int8_t, v_bits_f32)
STORE(store_16, i16, int16_t, v_bits_f32)
LINE(load_bool_64,
    const uint8_t *p = (const void *)P;
    int64_t *s = (void *)o->q;
    for (size_t k = 0; k < 4 * v_lanes(); k++) s[k] = p[k] != 0;
    FROM(s);)
LAST(store_8_64,
    uint8_t *p = (void *)P;
    const int64_t *s = (const void *)o->q;
    TO(o->q);
    for (size_t k = 0; k < 4 * v_lanes(); k++) p[k] = (uint8_t)s[k];)
/* clang-format on */

/* ---- Floats -------------------------------------------------------------------------------------------- */

VFN vf32 rsub(vf32 a, vf32 b) { return v_sub(b, a); }
VFN vf32 rdiv(vf32 a, vf32 b) { return v_div(b, a); }
VFN vf32 fma_(vf32 a, vf32 b, vf32 c) { return v_fma(a, b, c); }
VFN vf32 eq(vf32 a, vf32 b) { return flag(v_eq(a, b)); }
VFN vf32 lt(vf32 a, vf32 b) { return flag(v_lt(a, b)); }
VFN vf32 gt(vf32 a, vf32 b) { return flag(v_lt(b, a)); }
VFN vf32 le(vf32 a, vf32 b) { return flag(v_le(a, b)); }
VFN vf32 ge(vf32 a, vf32 b) { return flag(v_le(b, a)); }
VFN vf32 sign(vf32 a)
{
    return v_sel(v_eq(a, v_set_f32(0)), a, v_sel(v_is_nan(a), a, v_copysign(v_set_f32(1), a)));
}
VFN vf32 reciprocal(vf32 a) { return v_div(v_set_f32(1), a); }
VFN vf32 is_nan(vf32 a) { return flag(v_is_nan(a)); }
VFN vf32 bool_of(vf32 a) { return flag(v_ne(a, v_set_f32(0))); }
VFN vf32 of_i32(vf32 a) { return v_f32_of_i32(v_bits_f32(a)); }

/* As its steps one by one: the same bits. */
VFN vf32 gelu(vf32 x)
{
    const vf32 erf = v_erf(v_mul(x, v_set_f32(.70710678118654752440f)));
    return v_mul(v_mul(x, v_set_f32(.5f)), v_add(erf, v_set_f32(1)));
}

VFN vf32 hard_swish(vf32 x) /* NaN by its last product */
{
    const vf32 line = v_add(v_mul(x, v_set_f32((float)(1.0 / 6))), v_set_f32(.5f));
    return v_mul(x, v_min(v_max(line, v_set_f32(0)), v_set_f32(1)));
}

/* An integer that is a number to 8 bits; of NaN 0, as of a cast. */
VFN vf32 to_8(vf32 q, vf32 zero, float low, float high)
{
    const vf32 v = v_min(v_set_f32(high), v_max(v_set_f32(low), v_add(q, zero)));
    return v_f32_bits(v_i32_within(v_sel(v_is_nan(q), v_set_f32(0), v)));
}

#ifdef __AVX512F__
/* 1 / (1 + 2^t), to 2 parts in 10,000: a polynomial on what t has behind its floor (fitted to the least
 * largest relative error, exact at 0) and an approximate reciprocal, a third of v_sigmoid's time. */
VFN vf32 sigmoid_by_2(vf32 t)
{
    t = v_max(v_set_f32(-100), t); /* t second: NaN stays */
    const vf32 f = _mm512_reduce_ps(t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    const vf32 most = v_fma(v_set_f32(.07706715f), f, v_set_f32(.22764488f));
    const vf32 p = v_fma(v_fma(most, f, v_set_f32(.69511682f)), f, v_set_f32(1));
    return _mm512_rcp14_ps(v_add(_mm512_scalef_ps(p, t), v_set_f32(1)));
}
VFN vf32 sigmoid_of_bf16(vf32 x) { return sigmoid_by_2(v_mul(x, v_set_f32(-1.4426950f))); }

/* Gelu by tanh is x times a sigmoid, for 1 + tanh(y) is 2 sigmoid(2 y). */
VFN vf32 gelu_tanh_of_bf16(vf32 x)
{
    const float by = -2 * 1.4426950f * .79788456f;
    const vf32 factor = v_fma(v_mul(x, x), v_set_f32(by * .044715f), v_set_f32(by));
    return v_mul(x, sigmoid_by_2(v_mul(factor, x)));
}

/* x times the normal distribution's function, which left of 0 is 2^t, t a polynomial of |x| (fitted from -13
 * to 0): to 4 parts in 10,000 down to -4.5, below by less than 1e-8. What is below f32's normal numbers is
 * 0. */
VFN vf32 gelu_of_bf16(vf32 x)
{
    const vf32 z = v_abs(x), one = v_set_f32(1);
    const vf32 t = V_P5(z, -1.0004230f, -1.1455325f, -.47098039f, -.043799468f, .0046706938f, -.00021598677f);
    const vf32 f = _mm512_reduce_ps(t, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
    const vf32 p = V_P3(f, 1, .69511682f, .22764488f, .07706715f);
    const vf32 left = _mm512_maskz_scalef_ps(v_le(v_set_f32(-126), t), p, t);
    return v_mul(x, v_sel(v_lt(x, v_set_f32(0)), left, v_sub(one, left)));
}
#endif

/* What does not fit keeps the low bits of an i64 that saturates. */
static int32_t cut(float x)
{
    if (x != x) return 0;
    if (x >= 0x1p63f) return -1;
    if (x < -0x1p63f) return 0;
    return (int32_t)(uint32_t)(uint64_t)(int64_t)x;
}

/* Over the block in memory: BLOCK_LINE(name, block, statements that change v; k is its first element). */
#define BLOCK_LINE(name, block, ...) \
    LINE( \
        name, const size_t n = v_lanes(); float *s = (void *)(block); TO(s); \
        for (size_t k = 0; k < 8 * n; k += n) { \
            vf32 v = v_load_f32(s + k, n); \
            __VA_ARGS__ \
            v_store_f32(s + k, v, n); \
        } FROM(s);)
#define STORE_FLAGS(name, f) \
    LAST(name, const char *p = P; uint8_t *y = (void *)Q; const size_t n = v_lanes(); \
         v_store_bool(y, f(a0, R(p, 0)), n), v_store_bool(y + n, f(a1, R(p, 1)), n), \
         v_store_bool(y + 2 * n, f(a2, R(p, 2)), n), v_store_bool(y + 3 * n, f(a3, R(p, 3)), n), \
         v_store_bool(y + 4 * n, f(a4, R(p, 4)), n), v_store_bool(y + 5 * n, f(a5, R(p, 5)), n), \
         v_store_bool(y + 6 * n, f(a6, R(p, 6)), n), v_store_bool(y + 7 * n, f(a7, R(p, 7)), n);)
#define FUNCTION(name) LINE_1(name##_f, v_##name)

/* Quotients are products with the reciprocal, which are off by less than 2^-13 below 2^9, beyond which all
 * ends in the same bound: where none is that near to a half. off: the farthest from an integer, NaN left out.
 */
#define NEAREST(k) \
    vf32 q##k = v_rint(v_mul(a##k, r)); \
    off = v_max(v_abs(v_fma(a##k, minus, q##k)), off);
#define DIVIDED(k) q##k = v_rint(v_div(a##k, scale));
#define EACH_OF(f) f(0) f(1) f(2) f(3) f(4) f(5) f(6) f(7)
#define QUANTISE(name, low, high) \
    LINE(name, const vf32 scale = R(P, 0), zero = R(Q, 0), r = v_div(v_set_f32(1), scale), minus = v_neg(r); \
         vf32 off = v_set_f32(0); \
         EACH_OF(NEAREST) if (__builtin_expect(v_any(v_lt(v_set_f32(0.5f - 0x1p-13f), off)), \
                                               0)){EACH_OF(DIVIDED)} a0 = to_8(q0, zero, low, high), \
         a1 = to_8(q1, zero, low, high), a2 = to_8(q2, zero, low, high), a3 = to_8(q3, zero, low, high), \
         a4 = to_8(q4, zero, low, high), a5 = to_8(q5, zero, low, high), a6 = to_8(q6, zero, low, high), \
         a7 = to_8(q7, zero, low, high);)

/* clang-format off */
LINE_2(add_f, v_add) LINE_2(sub_f, v_sub) LINE_2(rsub_f, rsub) LINE_2(mul_f, v_mul) LINE_2(div_f, v_div)
LINE_2(rdiv_f, rdiv) LINE_2(min_f, v_min_nan) LINE_2(max_f, v_max_nan) LINE_3(fma_f, fma_)
LINE_2(eq_f, eq) LINE_2(lt_f, lt) LINE_2(gt_f, gt) LINE_2(le_f, le) LINE_2(ge_f, ge)
STORE_FLAGS(eq_store, v_eq) STORE_FLAGS(lt_store, v_lt) STORE_FLAGS(gt_store, v_gt)
STORE_FLAGS(le_store, v_le) STORE_FLAGS(ge_store, v_ge)
LINE_1(neg_f, v_neg) LINE_1(abs_f, v_abs) LINE_1(sign_f, sign) LINE_1(sqrt_f, v_sqrt)
LINE_1(reciprocal_f, reciprocal) LINE_1(floor_f, v_floor) LINE_1(ceil_f, v_ceil) LINE_1(round_f, v_rint)
LINE_1(is_nan_f, is_nan) LINE_1(bool_of_f, bool_of) LINE_1(f_of_i32, of_i32)

FUNCTION(exp) FUNCTION(expm1) FUNCTION(log) FUNCTION(log1p) FUNCTION(tanh) FUNCTION(erf) FUNCTION(sigmoid)
FUNCTION(sin) FUNCTION(cos) FUNCTION(asin) FUNCTION(acos) FUNCTION(atan)
LINE_1(gelu_f, gelu) LINE_1(hard_swish_f, hard_swish)
QUANTISE(quantise_i8, -128, 127)
QUANTISE(quantise_u8, 0, 255)
#ifdef __AVX512F__
LINE_1(sigmoid_bf16, sigmoid_of_bf16) LINE_1(gelu_bf16, gelu_of_bf16)
LINE_1(gelu_tanh_bf16, gelu_tanh_of_bf16)
#else
#define gelu_bf16 NULL /* programs have them where there is AVX-512 alone */
#define gelu_tanh_bf16 NULL
#define sigmoid_bf16 sigmoid_f
#endif
BLOCK_LINE(pow_f, o->q, v = v_pow(v, v_load_f32((const float *)(const void *)P + k, n));)
BLOCK_LINE(to_f16, o->p,
    v_store_f16((uint16_t *)(void *)(s + k), v, n);
    v = v_load_f16((const uint16_t *)(const void *)(s + k), n);)
BLOCK_LINE(to_bf16, o->p,
    v_store_bf16((uint16_t *)(void *)(s + k), v, n);
    v = v_load_bf16((const uint16_t *)(const void *)(s + k), n);)
BLOCK_LINE(i32_of_f, o->p,
    if (__builtin_expect(!v_any(v_not(v_lt(v_abs(v), v_set_f32(0x1p31f)))), 1)) {
        v = v_f32_bits(v_i32_of_f32(v));
    } else {
        for (size_t e = 0; e < n; e++) {
            const int32_t whole = cut(s[k + e]);
            memcpy(s + k + e, &whole, sizeof whole);
        }
        v = v_load_f32(s + k, n);
    })
LINE(each_f,
    float *s = (void *)o->p;
    TO(s);
    for (size_t k = 0; k < 8 * v_lanes(); k++) s[k] = (float)o->each.f1((double)s[k]);
    FROM(s);)
LINE(each2_f,
    float *s = (void *)o->q;
    const float *b = (const void *)P;
    TO(s);
    for (size_t k = 0; k < 8 * v_lanes(); k++) s[k] = (float)o->each.f2((double)s[k], (double)b[k]);
    FROM(s);)
/* clang-format on */

/* ---- Integers, and choice ------------------------------------------------------------------------------ */

#define INTEGER_2(name, suffix, reg, ...) \
    VFN vf32 name##_##suffix##_(vf32 x, vf32 y) \
    { \
        const reg a = (reg)x, b = (reg)y; \
        return (vf32)(__VA_ARGS__); \
    } \
    LINE_2(name##_##suffix, name##_##suffix##_)
#define INTEGER_1(name, suffix, reg, ...) \
    VFN vf32 name##_##suffix##_(vf32 x) \
    { \
        const reg a = (reg)x; \
        return (vf32)(__VA_ARGS__); \
    } \
    LINE_1(name##_##suffix, name##_##suffix##_)

/* clang-format off */
/* Wrapping, so on unsigned registers. */
#define INTEGERS(s, reg, ureg, set, sel, less, same) \
    INTEGER_2(add, s, ureg, a + b) \
    INTEGER_2(sub, s, ureg, a - b) \
    INTEGER_2(rsub, s, ureg, b - a) \
    INTEGER_2(mul, s, ureg, a * b) \
    INTEGER_2(min, s, reg, sel(less(b, a), b, a)) \
    INTEGER_2(max, s, reg, sel(less(a, b), b, a)) \
    INTEGER_2(eq, s, reg, sel(same(a, b), set(1), set(0))) \
    INTEGER_2(lt, s, reg, sel(less(a, b), set(1), set(0))) \
    INTEGER_2(gt, s, reg, sel(less(b, a), set(1), set(0))) \
    INTEGER_2(le, s, reg, sel(less(b, a), set(0), set(1))) \
    INTEGER_2(ge, s, reg, sel(less(a, b), set(0), set(1))) \
    INTEGER_1(neg, s, ureg, 0 - a) \
    INTEGER_1(abs, s, reg, sel(less(a, set(0)), (reg)(0 - (ureg)a), a)) \
    INTEGER_1(sign, s, reg, sel(less(a, set(0)), set(-1), sel(same(a, set(0)), a, set(1)))) \
    VFN vf32 select_##s##_(vf32 m, vf32 x, vf32 y) \
    { \
        return (vf32)sel(same((reg)m, set(0)), (reg)y, (reg)x); \
    } \
    LINE_3(select_##s, select_##s##_)
INTEGERS(i, vi32, vu32, v_set_i32, v_sel_i32, v_lt_i32, v_eq_i32)
INTEGERS(l, vi64, vu64, v_set_i64, v_sel_i64, v_lt_i64, v_eq_i64)
INTEGER_2(and, i, vi32, a & b) /* bits are bits: of 64-bit registers, too */
INTEGER_2(or, i, vi32, a | b)
INTEGER_2(xor, i, vi32, a ^ b)
INTEGER_1(wrap, i8, vi32, (vi32)((vu32)a << 24) >> 24)
INTEGER_1(wrap, u8, vi32, a & 0xff)
INTEGER_1(wrap, i16, vi32, (vi32)((vu32)a << 16) >> 16)
INTEGER_1(wrap, u16, vi32, a & 0xffff)
INTEGER_1(bool_of, i32, vi32, v_sel_i32(v_eq_i32(a, v_set_i32(0)), v_set_i32(0), v_set_i32(1)))
INTEGER_1(bool_of, i64, vi64, v_sel_i64(v_eq_i64(a, v_set_i64(0)), v_set_i64(0), v_set_i64(1)))
LINE(each2_i,
    int32_t *s = (void *)o->q;
    const int32_t *b = (const void *)P;
    TO(s);
    for (size_t k = 0; k < 8 * v_lanes(); k++) s[k] = (int32_t)(uint64_t)o->each.i2(s[k], b[k]);
    FROM(s);)
LINE(each2_l,
    int64_t *s = (void *)o->q;
    const int64_t *b = (const void *)P;
    TO(s);
    for (size_t k = 0; k < 4 * v_lanes(); k++) s[k] = o->each.i2(s[k], b[k]);
    FROM(s);)

/* ---- f64, and what is rare ----------------------------------------------------------------------------- */

/* One line for them all, over the block in memory: eight registers handed over for each would be large. f64
 * is in 64-bit registers; its signs are bits (and_i, xor_i), selection is select_l. */
VFN vf32 bit_of(vm64 m) { return (vf32)v_sel_i64(m, v_set_i64(1), v_set_i64(0)); }
#define SMALL(name, reg, ...) \
    case ORTC_PWS_##name: \
        _Pragma("GCC unroll 1") for (size_t k = 0; k < 8 * n; k += n) { \
            const reg a = (reg)v_load_f32(s + k, n), b = (reg)v_load_f32(p + k, n); \
            v_store_f32(s + k, (vf32)(__VA_ARGS__), n); \
        } \
        break;
LINE(small,
    const size_t n = v_lanes();
    float *s = (void *)o->q;
    const float *p = (const void *)P;
    TO(s);
    switch (o->each.small) {
        SMALL(shl_i, vu32, a << b) /* by less than the width */
        SMALL(shr_i, vi32, a >> b)
        SMALL(shr_u, vu32, a >> b)
        SMALL(add_d, vf64, a + b)
        SMALL(sub_d, vf64, a - b)
        SMALL(mul_d, vf64, a * b)
        SMALL(div_d, vf64, a / b)
        SMALL(min_d, vf64, v_sel_f64(v_lt_f64(a, b), a, v_sel_f64(v_eq_f64(a, a), b, a)))
        SMALL(max_d, vf64, v_sel_f64(v_lt_f64(b, a), a, v_sel_f64(v_eq_f64(a, a), b, a)))
        SMALL(eq_d, vf64, bit_of(v_eq_f64(a, b)))
        SMALL(lt_d, vf64, bit_of(v_lt_f64(a, b)))
        SMALL(le_d, vf64, (vi64)bit_of(v_lt_f64(a, b)) | (vi64)bit_of(v_eq_f64(a, b)))
    }
    FROM(s);)
LINE(each_d,
    double *s = (void *)o->p;
    TO(s);
    for (size_t k = 0; k < 4 * v_lanes(); k++) s[k] = o->each.f1(s[k]);
    FROM(s);)
LINE(each2_d,
    double *s = (void *)o->q;
    const double *b = (const void *)P;
    TO(s);
    for (size_t k = 0; k < 4 * v_lanes(); k++) s[k] = o->each.f2(s[k], b[k]);
    FROM(s);)
/* clang-format on */

/* ---- Programs of one operation ------------------------------------------------------------------ */

/* The most frequent: load, a line, store; or load and a line that stores. Each vector is read, worked on
     * and stored before the next: memory likes that better than eight of each in turn. */
typedef void loop(const op *, size_t, size_t);
VFN void in_turn(const op *o, size_t count, size_t block, vf32 (*f)(vf32, vf32))
{
    const size_t n = v_lanes(), x_step = block * o[0].p_step, p_step = block * o[1].p_step;
    const char *x = o[0].p, *p = o[1].p;
    char *y = o[2].p;
    for (size_t i = 0; i < count; i += block, x += x_step, p += p_step, y += 8 * n * sizeof(float))
        for (size_t k = 0; k < 8; k++) v_store_f32(AT(y, k), f(R(x, k), R(p, k)), n);
}
VFN void flags_in_turn(const op *o, size_t count, size_t block, vm32 (*f)(vf32, vf32))
{
    const size_t n = v_lanes(), x_step = block * o[0].p_step, p_step = block * o[1].p_step;
    const char *x = o[0].p, *p = o[1].p;
    uint8_t *y = (uint8_t *)o[1].q;
    for (size_t i = 0; i < count; i += block, x += x_step, p += p_step, y += 8 * n)
        for (size_t k = 0; k < 8; k++) v_store_bool(y + k * n, f(R(x, k), R(p, k)), n);
}
VFN vf32 add_(vf32 a, vf32 b) { return v_add(a, b); }
VFN vf32 sub_(vf32 a, vf32 b) { return v_sub(a, b); }
VFN vf32 mul_(vf32 a, vf32 b) { return v_mul(a, b); }
VFN vf32 div_(vf32 a, vf32 b) { return v_div(a, b); }
VFN vm32 gt_(vf32 a, vf32 b) { return v_lt(b, a); }

/* clang-format off */
#define LOOPS(X) \
    X(add_f, in_turn, add_) X(sub_f, in_turn, sub_) X(mul_f, in_turn, mul_) X(div_f, in_turn, div_) \
    X(min_f, in_turn, v_min_nan) X(max_f, in_turn, v_max_nan) X(lt_store, flags_in_turn, v_lt) \
    X(gt_store, flags_in_turn, gt_)
#define LOOP(name, how, f) \
    static void name##_loop(const op *o, size_t count, size_t block) { how(o, count, block, f); }
LOOPS(LOOP)
/* clang-format on */

typedef struct one {
    void (*line)(void);
    loop *loop;
} one;
#define ONE(name, how, f) {(void (*)(void))name, name##_loop},
static const one ones[] = {LOOPS(ONE)};

static loop *loop_of(const op *o)
{
    const int flags = o[0].fn && o[1].fn && !o[2].fn;
    if (o[0].fn != (void (*)(void))load || (!flags && (o[2].fn != (void (*)(void))store || o[3].fn)))
        return NULL;
    for (size_t i = 0; i < sizeof ones / sizeof *ones; i++)
        if (o[1].fn == ones[i].line) return ones[i].loop;
    return NULL;
}

static void run(const op *ops, size_t count, size_t block)
{
    loop *const whole = loop_of(ops);
    if (whole) {
        whole(ops, count, block);
        return;
    }
#if THREADED
    const vf32 z = v_set_f32(0);
    for (size_t i = 0; i < count; i += block) ((function *)ops->fn)(ops, i, z, z, z, z, z, z, z, z);
#ifdef __AVX__
    /* Compilers leave it out behind functions that take registers; the next instruction of SSE would take
     * hundreds of clocks. */
    __builtin_ia32_vzeroupper();
#endif
#else
    float acc[8 * V_LANES] = {0};
    for (size_t i = 0; i < count; i += block)
        for (const op *o = ops; o->fn; o++) ((function *)o->fn)(o, i, acc);
#endif
}

static void look_up(size_t n, const uint8_t *table, const uint8_t *x, uint8_t *y)
{
    v_look_up(n, table, x, y);
}

/* What changes the result where a, b, or both are set. */
static void look_up_flags(size_t n, const uint8_t *table, const uint8_t *a, const uint8_t *b, uint8_t *y)
{
    typedef uint8_t bytes __attribute__((vector_size(4 * V_LANES)));
    const uint8_t none = table[0], of_a = table[0] ^ table[2], of_b = table[0] ^ table[1],
                  of_both = table[0] ^ table[1] ^ table[2] ^ table[3];
    size_t i = 0;
    for (; i + sizeof(bytes) <= n; i += sizeof(bytes)) {
        bytes p, q;
        memcpy(&p, a + i, sizeof p);
        memcpy(&q, b + i, sizeof q);
        p = (bytes)(p != 0), q = (bytes)(q != 0);
        p = none ^ (p & of_a) ^ (q & of_b) ^ (p & q & of_both);
        memcpy(y + i, &p, sizeof p);
    }
    for (; i < n; i++) y[i] = table[2 * (a[i] != 0) + (b[i] != 0)];
}

#define FN(name) (void (*)(void)) name,
const ortc_pw_body V_NAME(ortc_pw_body) = {8 * 4 * V_LANES, {ORTC_PW_LINES(FN)}, run, look_up, look_up_flags};
