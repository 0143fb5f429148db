/* kernels/elementwise/cuda_lower.c: from pointwise programs to code (cuda_code.h).
 *
 * All registers of a program are of one type: that of its arithmetic. What is only read, or only stored, may
 * have another, for reading and storing convert; a condition is 0 or 1 in any. First it is found out which
 * steps are needed: some values are what others are (a Cast from what the register holds anyway), some are
 * one instruction though many steps (Gelu). Then code is made in the program's order. The accumulator holds
 * the latest value; one that is needed again when the accumulator is about to be taken goes into a temporary.
 */
#include <string.h>

#include "kernels/activation/expand.h"
#include "kernels/elementwise/cuda_code.h"

#define T(t) ORTC_TYPE(ORTC_##t)
#define WHOLE (ORTC_TYPES_INT | ORTC_TYPES_UINT)

typedef struct lowering {
    const ortc_pointwise *p;
    ortc_cu_code *code;
    const char *why; /* NULL: good so far */
    int32_t acc;     /* the value in the accumulator; -1: none */
    uint32_t taken;  /* temporaries, a bit each */
    uint16_t uses[ORTC_PW_STEPS];
    uint8_t home[ORTC_PW_STEPS]; /* an operand, or ORTC_CU_NONE */
    uint8_t
        compound[ORTC_PW_STEPS]; /* the one instruction that makes the value of `from`; 0: the step's own */
    uint16_t from[ORTC_PW_STEPS], with[ORTC_PW_STEPS]; /* with: what else PRELU reads */
} lowering;

static const ortc_pw_step *at(const lowering *l, uint32_t v) { return &l->p->steps[v]; }
static ortc_dtype type_of(const lowering *l, uint32_t v) { return ortc_pw_register(at(l, v)->type); }
static int is_float(const lowering *l) { return l->code->registers <= ORTC_CU_F64; }
static void no(lowering *l, const char *why) { l->why = l->why ? l->why : why; }

/* ---- Which registers ----------------------------------------------------------------------------------- */

static uint32_t kind_of(const lowering *l, uint32_t v)
{
    const ortc_dtype t = type_of(l, v);
    if (at(l, v)->op == ORTC_PW_SATURATE || t == ORTC_BOOL) return 0; /* held as they come */
    return 1u << (t == ORTC_F32   ? ORTC_CU_F32
                  : t == ORTC_F64 ? ORTC_CU_F64
                  : t == ORTC_U64 ? ORTC_CU_U64
                                  : ORTC_CU_I64);
}

/* What the result is stored from: a Cast at the end is what a store does. */
static uint32_t stored(const lowering *l)
{
    const ortc_pw_step *end = at(l, l->p->n - 1u), *last = at(l, end->a);
    return last->op == ORTC_PW_CAST && last->type == end->type ? last->a : end->a;
}

static void choose_registers(lowering *l)
{
    uint8_t needed[ORTC_PW_STEPS] = {0};
    uint32_t kinds = 0;
    needed[stored(l)] = 1;
    for (uint32_t v = l->p->n - 1u; v-- > 0;) {
        const ortc_pw_step *s = at(l, v);
        const uint16_t of[3] = {s->a, s->b, s->c};
        if (!needed[v] || s->op == ORTC_PW_LOAD || s->op == ORTC_PW_CONST) continue;
        kinds |= kind_of(l, v);
        for (uint32_t k = 0; k < ortc_pw_operands(s->op); k++) {
            needed[of[k]] = 1;
            if (s->op != ORTC_PW_CAST || at(l, of[k])->op != ORTC_PW_LOAD) kinds |= kind_of(l, of[k]);
        }
    }
    if (!kinds) kinds = kind_of(l, stored(l)); /* moved, or a condition */
    l->code->registers = ORTC_CU_F32;
    while (l->code->registers < ORTC_CU_U64 && !(kinds >> l->code->registers & 1)) l->code->registers++;
    if (!kinds) l->code->registers = ORTC_CU_F32;
    if (kinds & (kinds - 1)) no(l, "its types are not of one kind of register");
}

/* ---- What is needed ------------------------------------------------------------------------------------ */

static int holds(ortc_dtype wide, ortc_dtype narrow) /* every value of an integer type, or of bool */
{
    const uint32_t w = ortc_dtype_bits(wide), n = ortc_dtype_bits(narrow);
    const int from_signed = ORTC_TYPE(narrow) & ORTC_TYPES_INT ? 1 : 0,
              to_signed = ORTC_TYPE(wide) & ORTC_TYPES_INT ? 1 : 0;
    if (narrow == ORTC_BOOL) return 1;
    return from_signed == to_signed ? w >= n : to_signed && w > n;
}

/* A Cast that leaves the register as it is; one that cannot be done is refused. */
static int is_idle(lowering *l, const ortc_pw_step *s)
{
    const ortc_pw_step *x = at(l, s->a);
    const ortc_dtype from = x->op == ORTC_PW_LOAD ? x->type : type_of(l, s->a), to = s->type;
    const int read = x->op == ORTC_PW_LOAD;
    if (to == ORTC_BOOL) return 0;
    if (!is_float(l)) {
        if (from != ORTC_BOOL && !(ORTC_TYPE(from) & WHOLE)) no(l, "a float becomes an integer on the way");
        return holds(to, from) || (l->code->registers == ORTC_CU_U64 && to == ORTC_U64) ||
               (l->code->registers == ORTC_CU_I64 && to == ORTC_I64);
    }
    if (!(ORTC_TYPE(to) & ORTC_TYPES_FLOAT)) {
        no(l, "a float becomes an integer on the way");
    } else if (ortc_pw_register(to) != (l->code->registers == ORTC_CU_F32 ? ORTC_F32 : ORTC_F64)) {
        no(l, "its types are not of one kind of register");
    } else if (to == ORTC_F16 || to == ORTC_BF16) {
        const int wide = from == ORTC_F64 || (ORTC_TYPE(from) & WHOLE && ortc_dtype_bits(from) > 16);
        if (read && wide && (to == ORTC_BF16 || from == ORTC_F64)) no(l, "a cast would round twice");
        return 0;
    }
    return 1;
}

/* The value itself, where a step only passes it on. */
static uint16_t origin(lowering *l, uint16_t v)
{
    while (!l->why && at(l, v)->op == ORTC_PW_CAST && is_idle(l, at(l, v))) v = at(l, v)->a;
    return v;
}

static int is_zero(const lowering *l, uint32_t v)
{
    const ortc_pw_step *s = at(l, v);
    return s->op == ORTC_PW_CONST && (is_float(l) ? s->k.f == 0 : s->k.i == 0);
}

/* x < 0 ? x s : x */
static int is_prelu(lowering *l, uint32_t v)
{
    const ortc_pw_step *s = at(l, v), *less = at(l, s->a), *by = at(l, s->b);
    if (s->op != ORTC_PW_SELECT || less->op != ORTC_PW_LT || by->op != ORTC_PW_MUL) return 0;
    const uint16_t x = s->c;
    if (less->a != x || !is_zero(l, less->b) || (by->a != x && by->b != x)) return 0;
    l->compound[v] = ORTC_CU_PRELU;
    l->from[v] = x;
    l->with[v] = by->a == x ? by->b : by->a;
    return 1;
}

/* Whether few instructions make the value that steps in a row spell out. */
static void find_compound(lowering *l, uint32_t v)
{
    static const struct {
        int32_t op, (*expand)(ortc_pw_builder *, int32_t);
    } known[] = {{ORTC_CU_GELU, ortc_expand_gelu},
                 {ORTC_CU_GELU_TANH, ortc_expand_gelu_tanh},
                 {ORTC_CU_SWISH, ortc_expand_silu},
                 {ORTC_CU_HARD_SWISH, ortc_expand_hard_swish}};
    if (is_prelu(l, v) || at(l, v)->op != ORTC_PW_MUL || type_of(l, v) != ORTC_F32) return;
    for (uint32_t x = 0; x < v; x++)
        for (size_t i = 0; i < sizeof known / sizeof *known; i++)
            if (type_of(l, x) == ORTC_F32 && ortc_expands_to(l->p, v, x, known[i].expand)) {
                l->compound[v] = (uint8_t)known[i].op;
                l->from[v] = (uint16_t)x;
                return;
            }
}

/* The values that a step reads, as they are held; how many. */
static uint32_t reads(lowering *l, uint32_t v, uint16_t *out)
{
    const ortc_pw_step *s = at(l, v);
    const uint16_t of[3] = {s->op == ORTC_PW_STORE ? (uint16_t)stored(l) : s->a, s->b, s->c};
    if (l->compound[v]) {
        out[0] = origin(l, l->from[v]);
        out[1] = origin(l, l->with[v]);
        return l->compound[v] == ORTC_CU_PRELU ? 2 : 1;
    }
    for (uint32_t k = 0; k < ortc_pw_operands(s->op); k++) out[k] = origin(l, of[k]);
    return ortc_pw_operands(s->op);
}

static void find_needed(lowering *l)
{
    l->uses[l->p->n - 1u] = 1;
    for (uint32_t v = l->p->n; v-- > 0 && !l->why;) {
        uint16_t of[3];
        if (!l->uses[v]) continue;
        find_compound(l, v);
        const uint32_t n = reads(l, v, of);
        for (uint32_t k = 0; k < n; k++) l->uses[of[k]]++;
    }
}

/* ---- Code ---------------------------------------------------------------------------------------------- */

static void emit(lowering *l, int op, int operand)
{
    if (l->code->n_code == ORTC_CU_CODE) no(l, "the program is too long");
    if (l->why) return;
    l->code->code[l->code->n_code].op = (uint8_t)op;
    l->code->code[l->code->n_code++].operand = (uint8_t)operand;
}

static int constant(lowering *l, double f, int64_t i)
{
    ortc_cu_number c;
    uint32_t k = 0;
    memset(&c, 0, sizeof c);
    if (is_float(l))
        c.f = f;
    else
        c.i = i;
    while (k < l->code->n_constants && memcmp(&l->code->constants[k], &c, sizeof c)) k++;
    if (k == ORTC_CU_CONSTANTS) return no(l, "there are too many constants"), 0;
    l->code->constants[k] = c;
    l->code->n_constants += k == l->code->n_constants;
    return ORTC_CU_CONSTANT | (int)k;
}
static int number(lowering *l, int64_t n) { return constant(l, (double)n, n); }

static int input(lowering *l, const ortc_pw_step *load)
{
    uint32_t k = 0;
    while (k < l->code->n_in && (l->code->ports[k] != load->a || l->code->behind[k] != load->b)) k++;
    if (k == ORTC_CU_INPUTS) return no(l, "there are too many inputs"), 0;
    l->code->ports[k] = (uint8_t)load->a;
    l->code->behind[k] = (uint8_t)load->b;
    l->code->n_in += k == l->code->n_in;
    return (int)k;
}

/* The accumulator's value also goes into a temporary. */
static void save(lowering *l)
{
    uint32_t t = 0;
    while (t < ORTC_CU_TEMPS && (l->taken >> t & 1)) t++;
    if (t == ORTC_CU_TEMPS) {
        no(l, "too many values are needed at once");
        return;
    }
    l->taken |= 1u << t;
    l->code->n_temps = l->code->n_temps > t + 1 ? l->code->n_temps : t + 1;
    l->home[l->acc] = (uint8_t)(ORTC_CU_TEMP | t);
    emit(l, ORTC_CU_SAVE, (int)t);
}

/* The accumulator is about to be taken; `reads` of its uses are by who takes it. */
static void preserve(lowering *l, uint32_t reading)
{
    if (l->acc >= 0 && l->uses[l->acc] > reading && l->home[l->acc] == ORTC_CU_NONE) save(l);
}

static void bring(lowering *l, uint16_t v)
{
    if (l->acc == v) return;
    preserve(l, 0);
    if (l->home[v] == ORTC_CU_NONE) no(l, "a value is lost");
    emit(l, ORTC_CU_LOAD, l->home[v]);
    l->acc = v;
}

/* Where an instruction can read the value; beside the accumulator that holds it, too. */
static int place(lowering *l, uint16_t v)
{
    if (l->home[v] == ORTC_CU_NONE && l->acc == v) save(l);
    return l->home[v];
}

static int wrap_of(ortc_dtype t)
{
    return t == ORTC_I8    ? ORTC_CU_TO_I8
           : t == ORTC_U8  ? ORTC_CU_TO_U8
           : t == ORTC_I16 ? ORTC_CU_TO_I16
           : t == ORTC_U16 ? ORTC_CU_TO_U16
           : t == ORTC_I32 ? ORTC_CU_TO_I32
           : t == ORTC_U32 ? ORTC_CU_TO_U32
                           : 0;
}

/* Whether nobody but the store reads the value, which has the value's type. */
static int is_last(const lowering *l, uint32_t v)
{
    return stored(l) == v && l->uses[v] == 1 && at(l, l->p->n - 1u)->type == at(l, v)->type;
}

/* Integers are kept as their type has them; what may have left it is cut, but by the store. */
static void wrap(lowering *l, uint32_t v)
{
    static const uint64_t leaves = 1u << ORTC_PW_ADD | 1u << ORTC_PW_SUB | 1u << ORTC_PW_MUL |
                                   1u << ORTC_PW_DIV | 1u << ORTC_PW_POW | UINT64_C(1) << ORTC_PW_NEG |
                                   UINT64_C(1) << ORTC_PW_ABS | UINT64_C(1) << ORTC_PW_NOT |
                                   UINT64_C(1) << ORTC_PW_SHL | UINT64_C(1) << ORTC_PW_SELECT /* PRELU */;
    const int op = wrap_of(type_of(l, v));
    if (op && (leaves >> at(l, v)->op & 1) && !is_last(l, v)) emit(l, op, ORTC_CU_NONE);
}

/* [0]: the accumulator and an operand; [1]: the same with the accumulator on the right, 0: there is none. */
static const uint8_t instructions[ORTC_PW_PRIMITIVE_COUNT][2] = {
#define ONE(P) [ORTC_PW_##P] = {ORTC_CU_##P, 0}
#define BOTH(P) [ORTC_PW_##P] = {ORTC_CU_##P, ORTC_CU_##P}
    BOTH(ADD),
    BOTH(MUL),
    BOTH(MIN),
    BOTH(MAX),
    BOTH(AND),
    BOTH(OR),
    BOTH(XOR),
    ONE(MOD),
    ONE(REM),
    ONE(POW),
    ONE(SHL),
    ONE(SHR),
    ONE(NEG),
    ONE(ABS),
    ONE(SIGN),
    ONE(SQRT),
    ONE(RECIPROCAL),
    ONE(FLOOR),
    ONE(CEIL),
    ONE(ROUND),
    ONE(EXP),
    ONE(EXPM1),
    ONE(LOG),
    ONE(LOG1P),
    ONE(SIN),
    ONE(COS),
    ONE(TAN),
    ONE(ASIN),
    ONE(ACOS),
    ONE(ATAN),
    ONE(SINH),
    ONE(COSH),
    ONE(ASINH),
    ONE(ACOSH),
    ONE(ATANH),
    ONE(TANH),
    ONE(ERF),
    ONE(SIGMOID),
    ONE(IS_NAN),
    [ORTC_PW_SUB] = {ORTC_CU_SUB, ORTC_CU_RSUB},
    [ORTC_PW_DIV] = {ORTC_CU_DIV, ORTC_CU_RDIV},
    [ORTC_PW_EQ] = {ORTC_CU_EQUAL, ORTC_CU_EQUAL},
    [ORTC_PW_LT] = {ORTC_CU_LESS, ORTC_CU_GREATER},
    [ORTC_PW_LE] = {ORTC_CU_LESS_EQUAL, ORTC_CU_GREATER_EQUAL},
};

static uint32_t times(const uint16_t *of, uint32_t n, uint16_t v)
{
    uint32_t count = 0;
    for (uint32_t k = 0; k < n; k++) count += of[k] == v;
    return count;
}

static void two(lowering *l, int op, int reversed, uint16_t a, uint16_t b)
{
    if (a == b) {
        bring(l, a);
        preserve(l, 2);
        emit(l, op, ORTC_CU_SELF);
    } else if (l->acc == b && reversed && l->home[a] != ORTC_CU_NONE) {
        preserve(l, 1);
        emit(l, reversed, l->home[a]);
    } else {
        const int operand = place(l, b);
        bring(l, a);
        preserve(l, 1);
        emit(l, op, operand);
    }
}

static void cast(lowering *l, const ortc_pw_step *s, uint16_t x)
{
    bring(l, x);
    preserve(l, 1);
    if (s->type == ORTC_BOOL)
        emit(l, ORTC_CU_BOOL, ORTC_CU_NONE);
    else if (is_float(l))
        emit(l, s->type == ORTC_F16 ? ORTC_CU_TO_F16 : ORTC_CU_TO_BF16, ORTC_CU_NONE);
    else if (wrap_of(s->type))
        emit(l, wrap_of(s->type), ORTC_CU_NONE);
}

static void saturate(lowering *l, uint32_t v, uint16_t x)
{
    const ortc_dtype to = at(l, v)->type;
    const uint32_t bits = ortc_dtype_bits(to), exact = l->code->registers == ORTC_CU_F32 ? 16 : 32;
    if (!(ORTC_TYPE(to) & WHOLE) || bits > exact || l->code->registers == ORTC_CU_U64) {
        no(l, "a saturating cast to this type is not done here");
        return;
    }
    const int64_t low = ORTC_TYPE(to) & ORTC_TYPES_INT ? -(INT64_C(1) << (bits - 1)) : 0;
    bring(l, x);
    preserve(l, 1);
    if (is_float(l)) emit(l, ORTC_CU_ROUND, ORTC_CU_NONE);
    emit(l, ORTC_CU_MAX, number(l, low));
    emit(l, ORTC_CU_MIN, number(l, low + (INT64_C(1) << bits) - 1));
    if (is_float(l) && !is_last(l, v)) emit(l, ORTC_CU_NUMBER, ORTC_CU_NONE);
}

static void step(lowering *l, uint32_t v)
{
    const ortc_pw_step *s = at(l, v);
    uint16_t of[3];
    const uint32_t n = reads(l, v, of);
    if (l->why) return;
    if (l->compound[v]) {
        if (n == 2) {
            two(l, l->compound[v], 0, of[0], of[1]);
        } else {
            bring(l, of[0]);
            preserve(l, 1);
            emit(l, l->compound[v], ORTC_CU_NONE);
        }
    } else {
        switch (s->op) {
        case ORTC_PW_STORE: bring(l, of[0]); break;
        case ORTC_PW_CAST: cast(l, s, of[0]); break;
        case ORTC_PW_SATURATE: saturate(l, v, of[0]); break;
        case ORTC_PW_NOT:
            bring(l, of[0]);
            preserve(l, 1);
            emit(l, ORTC_CU_XOR, number(l, type_of(l, v) == ORTC_BOOL ? 1 : -1));
            break;
        case ORTC_PW_FMA: {
            const int b = place(l, of[1]), c = place(l, of[2]);
            bring(l, of[0]);
            preserve(l, times(of, n, of[0]));
            emit(l, ORTC_CU_MUL, b);
            emit(l, ORTC_CU_ADD, c);
            break;
        }
        case ORTC_PW_SELECT: {
            const int b = place(l, of[1]), c = place(l, of[2]);
            bring(l, of[0]);
            preserve(l, times(of, n, of[0]));
            emit(l, ORTC_CU_TEST, ORTC_CU_NONE);
            emit(l, ORTC_CU_LOAD, b);
            emit(l, ORTC_CU_BLEND, c);
            break;
        }
        default:
            if (!instructions[s->op][0]) {
                no(l, "a primitive is not done here");
            } else if (n == 2) {
                two(l, instructions[s->op][0], instructions[s->op][1], of[0], of[1]);
            } else {
                bring(l, of[0]);
                preserve(l, 1);
                emit(l, instructions[s->op][0], ORTC_CU_NONE);
            }
        }
    }
    if (l->compound[v] || s->op != ORTC_PW_SELECT) wrap(l, v);
    for (uint32_t k = 0; k < n; k++)
        if (--l->uses[of[k]] == 0 && l->home[of[k]] != ORTC_CU_NONE && l->home[of[k]] & ORTC_CU_TEMP &&
            !(l->home[of[k]] & ORTC_CU_CONSTANT))
            l->taken &= ~(1u << (l->home[of[k]] & (ORTC_CU_TEMP - 1)));
    l->acc = (int32_t)v;
}

/* Integers that are read into floats, or the other way, are so only by a Cast. */
static int reads_as(const lowering *l, ortc_dtype t)
{
    return is_float(l) || t == ORTC_BOOL || ORTC_TYPE(t) & WHOLE;
}

int ortc_cu_lower(const ortc_pointwise *p, ortc_cu_code *code, const char **why)
{
    lowering l = {.p = p, .code = code, .acc = -1};
    memset(code, 0, sizeof *code);
    memset(l.home, ORTC_CU_NONE, sizeof l.home);
    choose_registers(&l);
    if (!l.why) find_needed(&l);
    for (uint32_t v = 0; v < p->n && !l.why; v++) {
        const ortc_pw_step *s = at(&l, v);
        if (!l.uses[v]) continue;
        if (s->op == ORTC_PW_LOAD) {
            l.home[v] = (uint8_t)input(&l, s);
            if (!reads_as(&l, s->type)) no(&l, "a float becomes an integer on the way");
        } else if (s->op == ORTC_PW_CONST) {
            l.home[v] = (uint8_t)constant(&l, ortc_pw_class(s->type) == 'F' ? s->k.f : (double)s->k.i,
                                          s->k.i);
        } else {
            step(&l, v);
        }
    }
    *why = l.why;
    return !l.why;
}
