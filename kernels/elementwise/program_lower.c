/* kernels/elementwise/program_lower.c: from pointwise programs to lines with one accumulator (program.h).
 *
 * Values are made in the program's order. The accumulator holds the latest; one that is needed again when the
 * accumulator is about to be taken goes into a temporary block. Integers narrower than the register are kept
 * extended: what may leave their range is wrapped.
 */
#include <math.h>

#include "kernels/activation/expand.h"
#include "kernels/common/cpu_features.h"
#include "kernels/common/element.h"
#include "kernels/elementwise/program.h"

/* ---- One by one ---------------------------------------------------------------------------------------- */

/* fmod where the quotient fits a double's digits: what it leaves is a number then, which one fused
 * multiplication gives; a quotient that was rounded up is one too large. */
static double rem_floats(double a, double b)
{
    const double q = a / b;
    if (!(fabs(q) < 0x1p52) || isinf(b)) return fmod(a, b);
    const double r = fma(-(double)(int64_t)q, b, a);
    return copysign(r != 0 && (r < 0) != (a < 0) ? r + copysign(b, a) : r, a);
}

static double mod_floats(double a, double b)
{
    const double r = rem_floats(a, b);
    if (r != r) return r;
    return r == 0 ? copysign(0, b) : (r < 0) != (b < 0) ? r + b : r;
}
static int64_t div_ints(int64_t a, int64_t b)
{
    return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b; /* the lowest number has no opposite */
}
static int64_t rem_ints(int64_t a, int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
static int64_t mod_ints(int64_t a, int64_t b)
{
    const int64_t r = rem_ints(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
static int64_t pow_ints(int64_t base, int64_t exponent)
{
    uint64_t result = 1, square = (uint64_t)base;
    if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
    for (uint64_t e = (uint64_t)exponent; e; e >>= 1, square *= square) result *= e & 1 ? square : 1;
    return (int64_t)result;
}
static int64_t shl_ints(int64_t a, int64_t b) { return (int64_t)((uint64_t)a << (b & 63)); }
static int64_t shr_ints(int64_t a, int64_t b) { return a >> (b & 63); }

/* A u32 comes with its sign's copies above it, which keeps the order, but not what it is divided by. */
static int64_t min_u64(int64_t a, int64_t b) { return (uint64_t)a < (uint64_t)b ? a : b; }
static int64_t max_u64(int64_t a, int64_t b) { return (uint64_t)a < (uint64_t)b ? b : a; }
static int64_t lt_u64(int64_t a, int64_t b) { return (uint64_t)a < (uint64_t)b; }
static int64_t le_u64(int64_t a, int64_t b) { return (uint64_t)a <= (uint64_t)b; }
static int64_t div_u64(int64_t a, int64_t b) { return b ? (int64_t)((uint64_t)a / (uint64_t)b) : 0; }
static int64_t rem_u64(int64_t a, int64_t b) { return b ? (int64_t)((uint64_t)a % (uint64_t)b) : 0; }
static int64_t shr_u64(int64_t a, int64_t b) { return (int64_t)((uint64_t)a >> (b & 63)); }
static int64_t div_u32(int64_t a, int64_t b) { return div_u64((uint32_t)a, (uint32_t)b); }
static int64_t rem_u32(int64_t a, int64_t b) { return rem_u64((uint32_t)a, (uint32_t)b); }

static double reciprocal(double x) { return 1 / x; }
static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double sign(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }

/* Of floats, of signed integers and those narrower than 32 bits, of u32 and u64, of u64 alone. */
enum { EACH_F1 = 1, EACH_F2 = 2, EACH_I2 = 4, EACH_U2 = 8, EACH_U2_64 = 16 };
static const struct each {
    uint8_t primitive, kind;
    union {
        ortc_pw_f1 f1;
        ortc_pw_f2 f2;
        ortc_pw_i2 i2;
    } u;
} eaches[] = {
#define EACH(P, KIND, field, fn) {ORTC_PW_##P, EACH_##KIND, {.field = fn}},
    /* clang-format off */
    EACH(TAN, F1, f1, tan) EACH(ASIN, F1, f1, asin) EACH(ACOS, F1, f1, acos) EACH(ATAN, F1, f1, atan)
    EACH(SINH, F1, f1, sinh) EACH(COSH, F1, f1, cosh) EACH(ASINH, F1, f1, asinh) EACH(ACOSH, F1, f1, acosh)
    EACH(ATANH, F1, f1, atanh) EACH(EXP, F1, f1, exp) EACH(EXPM1, F1, f1, expm1) EACH(LOG, F1, f1, log)
    EACH(LOG1P, F1, f1, log1p) EACH(SIN, F1, f1, sin) EACH(COS, F1, f1, cos) EACH(TANH, F1, f1, tanh)
    EACH(ERF, F1, f1, erf) EACH(SQRT, F1, f1, sqrt) EACH(FLOOR, F1, f1, floor) EACH(CEIL, F1, f1, ceil)
    EACH(ROUND, F1, f1, rint) EACH(RECIPROCAL, F1, f1, reciprocal) EACH(SIGMOID, F1, f1, sigmoid)
    EACH(SIGN, F1, f1, sign) EACH(MOD, F2, f2, mod_floats) EACH(REM, F2, f2, rem_floats)
    EACH(POW, F2, f2, pow) EACH(DIV, I2, i2, div_ints) EACH(MOD, I2, i2, mod_ints) EACH(REM, I2, i2, rem_ints)
    EACH(POW, I2, i2, pow_ints) EACH(SHL, I2 | EACH_U2 | EACH_U2_64, i2, shl_ints)
    EACH(SHR, I2, i2, shr_ints) EACH(SHR, U2_64, i2, shr_u64) EACH(MIN, U2 | EACH_U2_64, i2, min_u64)
    EACH(MAX, U2 | EACH_U2_64, i2, max_u64) EACH(LT, U2 | EACH_U2_64, i2, lt_u64)
    EACH(LE, U2 | EACH_U2_64, i2, le_u64) EACH(DIV, U2_64, i2, div_u64) EACH(DIV, U2, i2, div_u32)
    EACH(MOD, U2_64, i2, rem_u64) EACH(MOD, U2, i2, rem_u32) EACH(REM, U2_64, i2, rem_u64)
    EACH(REM, U2, i2, rem_u32)
    /* clang-format on */
};
enum { N_EACHES = sizeof eaches / sizeof *eaches, NO = 255 };

void ortc_pw_each(uint8_t each, ortc_pw_op *o)
{
    if (each > ORTC_PWS_NONE && each != NO) o->each.small = each;
    if (each >= N_EACHES) return;
    switch (eaches[each].kind) {
    case EACH_F1: o->each.f1 = eaches[each].u.f1; break;
    case EACH_F2: o->each.f2 = eaches[each].u.f2; break;
    default: o->each.i2 = eaches[each].u.i2;
    }
}

/* That of a primitive on operands of type t. */
static uint8_t each_of(uint8_t primitive, ortc_dtype t)
{
    const int kinds = ortc_pw_class(t) == 'F' ? EACH_F1 | EACH_F2
                      : t == ORTC_U32         ? EACH_U2
                      : t == ORTC_U64         ? EACH_U2_64
                                              : EACH_I2;
    for (uint8_t i = 0; i < N_EACHES; i++)
        if (eaches[i].primitive == primitive && (eaches[i].kind & kinds)) return i;
    return NO;
}

/* ---- Which line ---------------------------------------------------------------------------------------- */

#define LINE(name) ORTC_PWL_##name
/* For a primitive on f32, on 32 bits of integers and bool, on 64; with the operands exchanged; on f64. */
static const struct lines {
    uint8_t f, i, l, rf, ri, rl, d;
} lines_of[ORTC_PW_PRIMITIVE_COUNT] = {
#define F1(P, f) [ORTC_PW_##P] = {LINE(f), NO, NO, NO, NO, NO, LINE(each_d)}
#define ALL(P, n, r, d) \
    [ORTC_PW_##P] = {LINE(n##_f), LINE(n##_i), LINE(n##_l), LINE(r##_f), LINE(r##_i), LINE(r##_l), d}
#define BITS(P, n) [ORTC_PW_##P] = {NO, LINE(n), LINE(n), NO, LINE(n), LINE(n), NO}
    ALL(ADD, add, add, ORTC_PWS_add_d),
    ALL(SUB, sub, rsub, ORTC_PWS_sub_d),
    ALL(MUL, mul, mul, ORTC_PWS_mul_d),
    ALL(MIN, min, min, ORTC_PWS_min_d),
    ALL(MAX, max, max, ORTC_PWS_max_d),
    ALL(EQ, eq, eq, ORTC_PWS_eq_d),
    ALL(LT, lt, gt, ORTC_PWS_lt_d),
    ALL(LE, le, ge, ORTC_PWS_le_d),
    ALL(NEG, neg, neg, LINE(xor_i)),
    ALL(ABS, abs, abs, LINE(and_i)),
    ALL(SIGN, sign, sign, LINE(each_d)),
    BITS(AND, and_i),
    BITS(OR, or_i),
    BITS(XOR, xor_i),
    [ORTC_PW_DIV] = {LINE(div_f), LINE(each2_i), LINE(each2_l), LINE(rdiv_f), NO, NO, ORTC_PWS_div_d},
    [ORTC_PW_MOD] = {LINE(each2_f), LINE(each2_i), LINE(each2_l), NO, NO, NO, LINE(each2_d)},
    [ORTC_PW_REM] = {LINE(each2_f), LINE(each2_i), LINE(each2_l), NO, NO, NO, LINE(each2_d)},
    [ORTC_PW_POW] = {LINE(pow_f), LINE(each2_i), LINE(each2_l), NO, NO, NO, LINE(each2_d)},
    [ORTC_PW_SHL] = {NO, ORTC_PWS_shl_i, LINE(each2_l), NO, NO, NO, NO},
    [ORTC_PW_SHR] = {NO, ORTC_PWS_shr_i, LINE(each2_l), NO, NO, NO, NO},
    [ORTC_PW_FMA] = {LINE(fma_f), NO, NO, NO, NO, NO, NO},
    [ORTC_PW_SELECT] = {LINE(select_i), LINE(select_i), LINE(select_l), NO, NO, NO, LINE(select_l)},
    F1(SQRT, sqrt_f),
    F1(RECIPROCAL, reciprocal_f),
    F1(FLOOR, floor_f),
    F1(CEIL, ceil_f),
    F1(ROUND, round_f),
    F1(EXP, exp_f),
    F1(EXPM1, expm1_f),
    F1(LOG, log_f),
    F1(LOG1P, log1p_f),
    F1(SIN, sin_f),
    F1(COS, cos_f),
    F1(TAN, each_f),
    F1(ASIN, asin_f),
    F1(ACOS, acos_f),
    F1(ATAN, atan_f),
    F1(SINH, each_f),
    F1(COSH, each_f),
    F1(TANH, tanh_f),
    F1(ASINH, each_f),
    F1(ACOSH, each_f),
    F1(ATANH, each_f),
    F1(ERF, erf_f),
    F1(SIGMOID, sigmoid_f),
    [ORTC_PW_IS_NAN] = {LINE(is_nan_f), NO, NO, NO, NO, NO, NO},
};

static uint8_t load_line(ortc_dtype t, int wide)
{
    switch (t) {
    case ORTC_F16: return LINE(load_f16);
    case ORTC_BF16: return LINE(load_bf16);
    case ORTC_I8: return LINE(load_i8);
    case ORTC_U8: return LINE(load_u8);
    case ORTC_I16: return LINE(load_i16);
    case ORTC_U16: return LINE(load_u16);
    case ORTC_BOOL: return wide ? LINE(load_bool_64) : LINE(load_bool);
    default: return LINE(load);
    }
}

static uint8_t store_line(ortc_dtype t, int wide)
{
    switch (t) {
    case ORTC_F16: return LINE(store_f16);
    case ORTC_BF16: return LINE(store_bf16);
    case ORTC_I8:
    case ORTC_U8:
    case ORTC_BOOL: return wide ? LINE(store_8_64) : LINE(store_8);
    case ORTC_I16:
    case ORTC_U16: return LINE(store_16);
    default: return LINE(store);
    }
}

/* ---- Lowering ------------------------------------------------------------------------------------------ */

typedef struct lowering {
    const ortc_pointwise *p;
    ortc_pw_code *code;
    const char *why; /* NULL: good so far */
    int32_t acc;     /* the value in the accumulator; -1: none */
    uint16_t uses[ORTC_PW_STEPS];
    uint8_t home[ORTC_PW_STEPS];  /* an operand, or ORTC_PWO_NONE */
    uint32_t taken;               /* temporaries, a bit each */
    uint8_t rough[ORTC_PW_STEPS]; /* see find_rough */
    /* 1 + the value whose Gelu or the like it is, all in one line (0: none); which line */
    uint8_t whole[ORTC_PW_STEPS], whole_line[ORTC_PW_STEPS];
} lowering;

static int is_wide(const lowering *l) { return l->code->element == 8; }
static int is_load(const lowering *l, int32_t v) { return l->p->steps[v].op == ORTC_PW_LOAD; }
static ortc_dtype type_of(const lowering *l, int32_t v) { return ortc_pw_register(l->p->steps[v].type); }

static void no(lowering *l, const char *why) { l->why = l->why ? l->why : why; }

static void emit(lowering *l, uint8_t op, uint8_t p, uint8_t q, uint8_t each)
{
    if (op == NO) no(l, "a primitive on this type is not done here");
    if (l->code->n == ORTC_PW_LINES_MAX) no(l, "the program is too long");
    if (l->why) return;
    if (op > ORTC_PWS_NONE) each = op, op = LINE(small);
    l->code->lines[l->code->n++] = (ortc_pw_line){op, p, q, each};
    l->code->heavy += (op >= LINE(exp_f) && op <= LINE(each2_f)) || op == LINE(each_d) || op == LINE(each2_d);
}

static uint8_t constant(lowering *l, int64_t bits)
{
    uint32_t i = 0;
    while (i < l->code->n_constants && l->code->constants[i] != bits) i++;
    if (i == ORTC_PW_CONSTANTS) return no(l, "there are too many constants"), 0;
    l->code->constants[i] = bits;
    l->code->n_constants += i == l->code->n_constants;
    return (uint8_t)(ORTC_PWO_CONSTANT + i);
}
static uint8_t number(lowering *l, float x)
{
    int32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return constant(l, bits);
}

/* The accumulator's value also goes into a temporary. */
static void save(lowering *l)
{
    uint32_t t = 0;
    while (t < ORTC_PW_TEMPS && (l->taken >> t & 1)) t++;
    if (t == ORTC_PW_TEMPS) {
        no(l, "too many values are needed at once");
        return;
    }
    l->taken |= 1u << t;
    l->code->n_temps = l->code->n_temps > t + 1 ? l->code->n_temps : t + 1;
    l->home[l->acc] = (uint8_t)(ORTC_PWO_TEMP + t);
    emit(l, LINE(save), l->home[l->acc], ORTC_PWO_NONE, NO);
}

/* The accumulator is about to be taken; `reads` of its uses are by who takes it. */
static void preserve(lowering *l, uint32_t reads)
{
    if (l->acc >= 0 && l->uses[l->acc] > reads && l->home[l->acc] == ORTC_PWO_NONE && !is_load(l, l->acc))
        save(l);
}

static void bring(lowering *l, int32_t v)
{
    if (l->acc == v) return;
    preserve(l, 0);
    const ortc_pw_step *s = &l->p->steps[v];
    if (l->home[v] != ORTC_PWO_NONE)
        emit(l, LINE(load), l->home[v], ORTC_PWO_NONE, NO);
    else if (is_load(l, v))
        emit(l, load_line(s->type, is_wide(l)), (uint8_t)s->a, ORTC_PWO_SPILL, NO);
    else
        no(l, "a value is lost");
    l->acc = v;
}

/* Where a line can read the value. */
static uint8_t place(lowering *l, int32_t v)
{
    if (l->home[v] == ORTC_PWO_NONE) {
        bring(l, v);
        if (!l->why) save(l);
    }
    return l->home[v];
}

static uint32_t reads_of(const ortc_pw_step *s, int32_t v)
{
    const uint16_t of[3] = {s->a, s->b, s->c};
    uint32_t n = 0;
    for (uint32_t i = 0; i < ortc_pw_operands(s->op); i++) n += of[i] == v;
    return n;
}

static void wrap(lowering *l, ortc_dtype t)
{
    const uint8_t line = t == ORTC_I8    ? LINE(wrap_i8)
                         : t == ORTC_U8  ? LINE(wrap_u8)
                         : t == ORTC_I16 ? LINE(wrap_i16)
                         : t == ORTC_U16 ? LINE(wrap_u16)
                                         : NO;
    if (line != NO) emit(l, line, ORTC_PWO_NONE, ORTC_PWO_NONE, NO);
}

static void cast(lowering *l, const ortc_pw_step *s)
{
    const ortc_dtype from = type_of(l, s->a), to = s->type, held = ortc_pw_register(to);
    const uint8_t none = ORTC_PWO_NONE, spill = ORTC_PWO_SPILL;
    if (from == ORTC_F64 || held == ORTC_F64 || (from == ORTC_U32 && held == ORTC_F32))
        no(l, "a cast between these types is not done here");
    bring(l, s->a);
    preserve(l, 1);
    if (held == ORTC_F32) {
        if (from == ORTC_I32 && to == ORTC_BF16) no(l, "a cast would round twice");
        if (from != ORTC_F32) emit(l, LINE(f_of_i32), none, none, NO);
        if (to == ORTC_F16) emit(l, LINE(to_f16), spill, none, NO);
        if (to == ORTC_BF16) emit(l, LINE(to_bf16), spill, none, NO);
    } else if (to == ORTC_BOOL) {
        if (from != ORTC_BOOL)
            emit(l,
                 from == ORTC_F32 ? LINE(bool_of_f)
                 : is_wide(l)     ? LINE(bool_of_i64)
                                  : LINE(bool_of_i32),
                 none, none, NO);
    } else {
        if (from == ORTC_F32) emit(l, LINE(i32_of_f), spill, none, NO);
        if (from != ORTC_BOOL) wrap(l, to);
    }
}

static int is_number(const ortc_pw_step *s) { return s->op == ORTC_PW_CONST && s->type == ORTC_F32; }

/* QuantizeLinear by numbers whose reciprocal is one: what is quantised; -1: it is none. */
static int32_t find_quantised(const lowering *l, int32_t v, const ortc_pw_step **scale, float *zero)
{
    const ortc_pw_step *steps = l->p->steps, *s = &steps[v];
    if ((s->type != ORTC_U8 && s->type != ORTC_I8) || is_wide(l) || type_of(l, s->a) != ORTC_F32) return -1;
    s = &steps[s->a], *zero = 0;
    if (s->op == ORTC_PW_ADD && steps[s->a].op == ORTC_PW_ROUND && is_number(&steps[s->b]))
        *zero = (float)steps[s->b].k.f, s = &steps[steps[s->a].a];
    if (s->op != ORTC_PW_DIV || !is_number(&steps[s->b]) || type_of(l, s->a) != ORTC_F32) return -1;
    *scale = &steps[s->b];
    const double size = fabs((*scale)->k.f);
    const int is_zero_point = fabsf(*zero) <= 255 && *zero == rintf(*zero);
    return size > 0x1p-100 && size < 0x1p100 && is_zero_point ? s->a : -1;
}

/* To integers of 8 and 16 bits. */
static void saturate(lowering *l, int32_t at)
{
    const ortc_pw_step *s = &l->p->steps[at];
    const ortc_dtype from = type_of(l, s->a), to = s->type;
    const int bits = to == ORTC_I8 || to == ORTC_U8 ? 8 : 16;
    const int low = to == ORTC_I8 || to == ORTC_I16 ? -(1 << (bits - 1)) : 0, high = low + (1 << bits) - 1;
    if ((to != ORTC_I8 && to != ORTC_U8 && to != ORTC_I16 && to != ORTC_U16) || is_wide(l)) {
        no(l, "a saturating cast to this type is not done here");
        return;
    }
    if (l->whole[at]) {
        const ortc_pw_step *scale;
        float zero;
        const int32_t x = find_quantised(l, at, &scale, &zero);
        bring(l, x);
        preserve(l, 1);
        emit(l, l->whole_line[at], number(l, (float)scale->k.f), number(l, zero), NO);
        return;
    }
    bring(l, s->a);
    preserve(l, 1);
    if (from == ORTC_F32) {
        emit(l, LINE(round_f), ORTC_PWO_NONE, ORTC_PWO_NONE, NO);
        emit(l, LINE(max_f), number(l, (float)low), ORTC_PWO_NONE, NO);
        emit(l, LINE(min_f), number(l, (float)high), ORTC_PWO_NONE, NO);
        emit(l, LINE(i32_of_f), ORTC_PWO_SPILL, ORTC_PWO_NONE, NO);
    } else {
        emit(l, LINE(max_i), constant(l, low), ORTC_PWO_NONE, NO);
        emit(l, LINE(min_i), constant(l, high), ORTC_PWO_NONE, NO);
    }
}

static void binary(lowering *l, const ortc_pw_step *s, uint8_t line, uint8_t reversed, uint8_t each)
{
    if (l->acc == s->b && s->a != s->b && reversed != NO && l->home[s->a] != ORTC_PWO_NONE) {
        preserve(l, 1);
        emit(l, reversed, l->home[s->a], ORTC_PWO_SPILL, each);
        return;
    }
    const uint8_t b = place(l, s->b);
    bring(l, s->a);
    preserve(l, reads_of(s, s->a));
    emit(l, line, b, ORTC_PWO_SPILL, each);
}

/* The last line, if it compares floats, stores what it finds. */
static int store_compared(lowering *l)
{
    static const uint8_t lines[][2] = {{LINE(eq_f), LINE(eq_store)},
                                       {LINE(lt_f), LINE(lt_store)},
                                       {LINE(gt_f), LINE(gt_store)},
                                       {LINE(le_f), LINE(le_store)},
                                       {LINE(ge_f), LINE(ge_store)}};
    ortc_pw_line *last = l->code->n ? &l->code->lines[l->code->n - 1] : NULL;
    for (size_t i = 0; last && i < sizeof lines / sizeof *lines; i++)
        if (last->op == lines[i][0]) {
            last->op = lines[i][1];
            last->q = ORTC_PWO_OUT;
            return 1;
        }
    return 0;
}

/* A value needs no more than bf16 holds where the program's result does not and all that reads it, up to
 * there, keeps relative errors. Of what is behind it that is known already. */
static void find_rough(lowering *l, int32_t v)
{
    const ortc_pointwise *p = l->p;
    int rough = p->steps[p->n - 1].type == ORTC_BF16;
    for (uint32_t i = (uint32_t)v + 1; i < p->n && rough; i++)
        rough = !reads_of(&p->steps[i], v) || p->steps[i].op == ORTC_PW_STORE ||
                (p->steps[i].op == ORTC_PW_MUL && l->rough[i]);
    l->rough[v] = (uint8_t)rough;
}

/* Whether one line makes the value that steps in a row spell out: with the same bits, or as rough as it may
 * be. */
static void find_whole(lowering *l, int32_t v)
{
    const ortc_pw_step *steps = l->p->steps, *s = &steps[v], *scale;
    float zero;
    if (s->op == ORTC_PW_SATURATE) {
        l->whole[v] = (uint8_t)(find_quantised(l, v, &scale, &zero) + 1);
        l->whole_line[v] = s->type == ORTC_U8 ? LINE(quantise_u8) : LINE(quantise_i8);
        return;
    }
    if (s->op != ORTC_PW_MUL || type_of(l, v) != ORTC_F32) return;
    /* comparing takes long: there is no Gelu without an erf or a tanh, and HardSwish ends in x times a
     * minimum */
    const int rough = l->rough[v] && ortc_cpu_features() & ORTC_CPU_AVX512;
    int erf = 0, tanh = 0;
    for (int32_t i = 0; i < v; i++) erf |= steps[i].op == ORTC_PW_ERF, tanh |= steps[i].op == ORTC_PW_TANH;
    for (int32_t x = 0; x < v; x++) {
        if (type_of(l, x) != ORTC_F32 || steps[x].op == ORTC_PW_CONST) continue;
        const uint32_t at = (uint32_t)v, of = (uint32_t)x;
        const int swish = (s->a == x && steps[s->b].op == ORTC_PW_MIN) ||
                          (s->b == x && steps[s->a].op == ORTC_PW_MIN);
        const uint8_t line = erf && ortc_is_gelu(l->p, at, of) ? rough ? LINE(gelu_bf16) : LINE(gelu_f)
                             : tanh && rough && ortc_is_gelu_tanh(l->p, at, of) ? LINE(gelu_tanh_bf16)
                             : swish && ortc_is_hard_swish(l->p, at, of)        ? LINE(hard_swish_f)
                                                                                : NO;
        if (line == NO) continue;
        l->whole[v] = (uint8_t)(x + 1);
        l->whole_line[v] = line;
    }
}

/* The values that a step reads; how many. */
static uint32_t operands_of(const lowering *l, int32_t v, uint16_t *out)
{
    const ortc_pw_step *s = &l->p->steps[v];
    out[0] = l->whole[v] ? (uint16_t)(l->whole[v] - 1) : s->a, out[1] = s->b, out[2] = s->c;
    return l->whole[v] ? 1 : ortc_pw_operands(s->op);
}

/* The line for a step whose operands have type t, and that with the operands exchanged. */
static uint8_t line_of(const lowering *l, const ortc_pw_step *s, ortc_dtype t, uint8_t *reversed)
{
    const struct lines *of = &lines_of[s->op];
    const int f = t == ORTC_F32 && s->op != ORTC_PW_SELECT, wide = is_wide(l);
    *reversed = NO;
    if (t == ORTC_F64) return of->d;
    if ((t == ORTC_U32 || t == ORTC_U64) && each_of(s->op, t) != NO && s->op != ORTC_PW_SHL)
        return wide ? LINE(each2_l) : LINE(each2_i);
    if (t == ORTC_U32 && s->op == ORTC_PW_SHR) return ORTC_PWS_shr_u;
    *reversed = f ? of->rf : wide ? of->rl : of->ri;
    return f ? of->f : wide ? of->l : of->i;
}

/* A sign: of f64 it is a bit, of unsigned numbers there is none. */
static int signs(lowering *l, const ortc_pw_step *s, ortc_dtype t, uint8_t line)
{
    const int is_unsigned = t == ORTC_U32 || t == ORTC_U64;
    if (s->op == ORTC_PW_POW && is_unsigned) no(l, "a primitive on this type is not done here");
    if (s->op != ORTC_PW_NEG && s->op != ORTC_PW_ABS && (s->op != ORTC_PW_SIGN || !is_unsigned)) return 0;
    if (t != ORTC_F64 && (!is_unsigned || s->op == ORTC_PW_NEG)) return 0;
    bring(l, s->a);
    preserve(l, 1);
    if (t == ORTC_F64)
        emit(l, line, constant(l, s->op == ORTC_PW_NEG ? INT64_MIN : INT64_MAX), ORTC_PWO_NONE, NO);
    else if (s->op == ORTC_PW_SIGN)
        emit(l, is_wide(l) ? LINE(bool_of_i64) : LINE(bool_of_i32), ORTC_PWO_NONE, ORTC_PWO_NONE, NO);
    return 1;
}

static void step(lowering *l, int32_t at)
{
    const ortc_pw_step *s = &l->p->steps[at];
    const ortc_dtype t = type_of(l, s->a), result = type_of(l, at);
    uint8_t reversed;
    const uint8_t line = line_of(l, s, t, &reversed), each = each_of(s->op, t);
    switch (s->op) {
    case ORTC_PW_CAST: cast(l, s); break;
    case ORTC_PW_SATURATE: saturate(l, at); break;
    case ORTC_PW_STORE:
        bring(l, s->a);
        if (s->type == ORTC_BOOL && l->uses[s->a] == 1 && store_compared(l)) break;
        emit(l, store_line(s->type, is_wide(l)), ORTC_PWO_OUT, ORTC_PWO_SPILL, NO);
        break;
    case ORTC_PW_NOT:
        bring(l, s->a);
        preserve(l, 1);
        emit(l, LINE(xor_i), constant(l, t == ORTC_BOOL ? 1 : -1), ORTC_PWO_NONE, NO);
        break;
    case ORTC_PW_FMA:
    case ORTC_PW_SELECT: {
        const uint8_t b = place(l, s->b), c = place(l, s->c);
        bring(l, s->a);
        preserve(l, reads_of(s, s->a));
        emit(l, line, b, c, NO);
        break;
    }
    default:
        if (signs(l, s, t, line)) break;
        if (l->whole[at]) {
            bring(l, l->whole[at] - 1);
            preserve(l, 1);
            emit(l, l->whole_line[at], ORTC_PWO_NONE, ORTC_PWO_NONE, NO);
        } else if (ortc_pw_operands(s->op) == 2) {
            binary(l, s, line, reversed, each);
        } else {
            bring(l, s->a);
            preserve(l, 1);
            emit(l, s->op == ORTC_PW_SIGMOID && l->rough[at] ? LINE(sigmoid_bf16) : line, ORTC_PWO_SPILL,
                 ORTC_PWO_SPILL, each);
        }
    }
    if (ortc_pw_class(result) == 'I' && s->op != ORTC_PW_CAST && s->op != ORTC_PW_SATURATE &&
        s->op != ORTC_PW_SELECT && s->op != ORTC_PW_STORE)
        wrap(l, result);
    uint16_t operands[3];
    const uint32_t n_operands = operands_of(l, at, operands);
    for (uint32_t i = 0; i < n_operands; i++) {
        const uint16_t v = operands[i];
        if (--l->uses[v] == 0 && l->home[v] >= ORTC_PWO_TEMP && l->home[v] < ORTC_PWO_CONSTANT)
            l->taken &= ~(1u << (l->home[v] - ORTC_PWO_TEMP));
    }
    l->acc = at;
}

static int fits(ortc_dtype t, int wide)
{
    const uint64_t narrow = ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_I8) | ORTC_TYPE(ORTC_U8) |
                            ORTC_TYPE(ORTC_I16) | ORTC_TYPE(ORTC_U16) | ORTC_TYPE(ORTC_I32) |
                            ORTC_TYPE(ORTC_U32) | ORTC_TYPE(ORTC_BOOL);
    const uint64_t broad = ORTC_TYPE(ORTC_I64) | ORTC_TYPE(ORTC_U64) | ORTC_TYPE(ORTC_F64) |
                           ORTC_TYPE(ORTC_BOOL);
    return ((wide ? broad : narrow) >> t & 1) != 0;
}

int ortc_pw_lower(const ortc_pointwise *p, ortc_pw_code *code, const char **why)
{
    lowering l = {.p = p, .code = code, .acc = -1};
    memset(code, 0, sizeof *code);
    code->element = 4;
    code->n_in = p->n_in;
    if (p->n_in > ORTC_PW_INPUTS) no(&l, "there are too many inputs");
    memset(l.home, ORTC_PWO_NONE, sizeof l.home);
    for (uint32_t i = p->n; i-- > 0;) { /* what is needed, backwards */
        const ortc_pw_step *s = &p->steps[i];
        if (s->op != ORTC_PW_STORE && !l.uses[i]) continue;
        const ortc_dtype t = type_of(&l, (int32_t)i);
        if (t == ORTC_I64 || t == ORTC_U64 || t == ORTC_F64) code->element = 8;
        uint16_t operands[3];
        find_rough(&l, (int32_t)i);
        find_whole(&l, (int32_t)i);
        const uint32_t n_operands = operands_of(&l, (int32_t)i, operands);
        for (uint32_t k = 0; k < n_operands; k++) l.uses[operands[k]]++;
    }
    for (uint32_t i = 0; i < p->n && !l.why; i++) {
        const ortc_pw_step *s = &p->steps[i];
        if (s->op != ORTC_PW_STORE && !l.uses[i]) continue;
        if (!fits(type_of(&l, (int32_t)i), is_wide(&l))) {
            no(&l, "its types are not of one kind of register");
        } else if (s->op == ORTC_PW_LOAD) {
            if (code->in[s->a] && code->behind[s->a] != s->b) no(&l, "an input lies in two ways");
            code->in[s->a] = s->type;
            code->behind[s->a] = (uint8_t)s->b;
            if (load_line(s->type, is_wide(&l)) == LINE(load)) l.home[i] = (uint8_t)s->a;
        } else if (s->op == ORTC_PW_CONST) {
            l.home[i] = s->type == ORTC_F32 ? number(&l, (float)s->k.f) : constant(&l, s->k.i);
        } else {
            step(&l, (int32_t)i);
        }
    }
    code->out = p->steps[p->n - 1].type;
    *why = l.why;
    return !l.why;
}
