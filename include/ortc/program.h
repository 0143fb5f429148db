/* ortc/program.h: pointwise programs: what an operator does to one element, written once for every provider.
 *
 * A program is typed SSA over a closed set of primitives: step i makes value i from values made before it;
 * the last step is the one STORE. An operator says its own in its declaration (ortc_op.expand), through the
 * builder below; libortc makes programs of single nodes and of groups of them (ortc_node_program), and of
 * what follows another operator's result (ortc_node_epilogue), and kernels read them. Inputs are broadcast to
 * the result's shape as in numpy; an input's number is the node's port.
 *
 * Registers: a value has one of the types f32, f64, i8 .. i64, u8 .. u64 and bool. Elements of f16 and bf16
 * are f32 in registers: only STORE and CAST round. A program is flat and position-independent: equal bytes
 * mean equal programs, so that it can be a part of a key. C11 and C++17; nothing to link with.
 */
#ifndef ORTC_PROGRAM_H
#define ORTC_PROGRAM_H

#include <string.h>

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* X(name, operands, types of the operands, result). Types: F floats, I integers, B bool; result: S that of
 * the last operand, B bool, G given by the step (`type`).
 *
 * Floats are IEEE's: rounded to nearest even, no exception is visible, NaN in gives NaN out unless said
 * otherwise. Integers wrap around. A function that is not exact may differ among providers, within the bounds
 * that they state; at the ends of its domain it gives what C's Annex F says.
 *
 *   LOAD       input a, of element type `type`; as if its shape had b more dims of 1 behind: a vector along
 *              an axis of the result that is not the last. A program loads an input with one b only
 *   CONST      k: .f for floats, .i for the rest (u64: the same bits)
 *   DIV        integers: towards zero; by 0: 0
 *   MOD REM    the remainder of a division rounded down (the sign of b), towards zero (of a);
 *              integers by 0: 0
 *   MIN MAX    NaN if either is; of two zeros any
 *   POW        a to the b; integers modulo their width, 1 / x towards zero where b is negative
 *   FMA        a * b + c, rounded once or twice
 *   SIGN       -1, 0, 1, of the type of a; zeros and NaN stay
 *   ROUND      to integers, halves to even
 *   EQ LT LE   false with NaN
 *   AND .. NOT of bool; of integers bit by bit
 *   SHL SHR    by b, 0 .. width - 1; right: arithmetic on signed types
 *   SELECT     a ? b : c
 *   CAST       to `type`: integers keep their low bits; floats are cut towards zero to an i64 that saturates
 *              (to u64: a u64), NaN is 0, and its low bits are kept; anything to bool is "not 0"; anything to
 *              a float is rounded once. To f16, bf16: rounded to it, the register is f32
 *   SATURATE   as CAST, but what does not fit becomes the nearest that does; floats round
 *              halves to even, NaN: 0
 *   IS_NAN     never true of what is no float
 *   STORE      value a, rounded to `type`, is the result; its register is that of `type`
 */
/* clang-format off */
#define ORTC_PW_PRIMITIVES(X) \
    X(LOAD, 0, 0, 'G') X(CONST, 0, 0, 'G') \
    X(ADD, 2, "FI", 'S') X(SUB, 2, "FI", 'S') X(MUL, 2, "FI", 'S') X(DIV, 2, "FI", 'S') X(MOD, 2, "FI", 'S') \
    X(REM, 2, "FI", 'S') X(POW, 2, "FI", 'S') X(MIN, 2, "FIB", 'S') X(MAX, 2, "FIB", 'S') \
    X(FMA, 3, "F", 'S') \
    X(NEG, 1, "FI", 'S') X(ABS, 1, "FI", 'S') X(SIGN, 1, "FI", 'S') X(SQRT, 1, "F", 'S') \
    X(RECIPROCAL, 1, "F", 'S') X(FLOOR, 1, "F", 'S') X(CEIL, 1, "F", 'S') X(ROUND, 1, "F", 'S') \
    X(EXP, 1, "F", 'S') X(EXPM1, 1, "F", 'S') X(LOG, 1, "F", 'S') X(LOG1P, 1, "F", 'S') X(SIN, 1, "F", 'S') \
    X(COS, 1, "F", 'S') X(TAN, 1, "F", 'S') X(ASIN, 1, "F", 'S') X(ACOS, 1, "F", 'S') X(ATAN, 1, "F", 'S') \
    X(SINH, 1, "F", 'S') X(COSH, 1, "F", 'S') X(TANH, 1, "F", 'S') X(ASINH, 1, "F", 'S') \
    X(ACOSH, 1, "F", 'S') \
    X(ATANH, 1, "F", 'S') X(ERF, 1, "F", 'S') X(SIGMOID, 1, "F", 'S') \
    X(EQ, 2, "FIB", 'B') X(LT, 2, "FIB", 'B') X(LE, 2, "FIB", 'B') X(IS_NAN, 1, "F", 'B') \
    X(AND, 2, "IB", 'S') X(OR, 2, "IB", 'S') X(XOR, 2, "IB", 'S') X(NOT, 1, "IB", 'S') X(SHL, 2, "I", 'S') \
    X(SHR, 2, "I", 'S') X(SELECT, 3, "FIB", 'S') X(CAST, 1, "FIB", 'G') X(SATURATE, 1, "FIB", 'G') \
    X(STORE, 1, "FIB", 'G')
/* clang-format on */

enum {
#define ORTC_PW_NUMBER(name, n, types, result) ORTC_PW_##name,
    ORTC_PW_PRIMITIVES(ORTC_PW_NUMBER)
#undef ORTC_PW_NUMBER
        ORTC_PW_PRIMITIVE_COUNT
};

enum {
    ORTC_PW_STEPS = 128, /* of a program, at most */
    ORTC_PW_INPUTS = 16,
    ORTC_PW_NONE = -1 /* no value: an input left out, or something that has no program */
};

typedef struct ortc_pw_step {
    uint8_t op;       /* ORTC_PW_* */
    uint8_t type;     /* an element type: the register's; of LOAD, CAST, SATURATE and STORE also f16, bf16 */
    uint16_t a, b, c; /* values, 0 where there are fewer; of LOAD a is the input, b dims behind it */
    union {
        double f;
        int64_t i;
    } k; /* CONST; 0 elsewhere */
} ortc_pw_step;

typedef struct ortc_pointwise {
    uint32_t bytes;   /* of the whole */
    uint16_t n_in, n; /* inputs are numbered 0 .. n_in - 1, some of which nobody may load; steps */
    ortc_pw_step steps[1];
} ortc_pointwise;

/* Of a program of so many steps. */
static inline size_t ortc_pointwise_bytes(uint32_t n_steps)
{
    return offsetof(ortc_pointwise, steps) + n_steps * sizeof(ortc_pw_step);
}

/* The register's type for an element type; 0: none. */
static inline ortc_dtype ortc_pw_register(ortc_dtype t)
{
    const uint64_t kept = ORTC_TYPE(ORTC_F32) | ORTC_TYPE(ORTC_F64) | ORTC_TYPES_INT | ORTC_TYPES_UINT |
                          ORTC_TYPE(ORTC_BOOL);
    if (t == ORTC_F16 || t == ORTC_BF16) return ORTC_F32;
    return t > 0 && t < 64 && (kept >> t & 1) ? t : 0;
}
static inline char ortc_pw_class(ortc_dtype t) /* 'F', 'I', 'B' */
{
    return ORTC_TYPE(t) & ORTC_TYPES_FLOAT ? 'F' : t == ORTC_BOOL ? 'B' : 'I';
}
static inline uint32_t ortc_pw_operands(uint32_t op)
{
#define ORTC_PW_COUNT(name, n, types, result) n,
    static const uint8_t counts[] = {ORTC_PW_PRIMITIVES(ORTC_PW_COUNT)};
#undef ORTC_PW_COUNT
    return op < ORTC_PW_PRIMITIVE_COUNT ? counts[op] : 0;
}
static inline const char *ortc_pw_name(uint32_t op)
{
#define ORTC_PW_NAME(name, n, types, result) #name,
    static const char *const names[] = {ORTC_PW_PRIMITIVES(ORTC_PW_NAME)};
#undef ORTC_PW_NAME
    return op < ORTC_PW_PRIMITIVE_COUNT ? names[op] : "?";
}

/* Whether step `at` may stand behind the steps before it, and of what type its value is; 0: it may not. */
static inline ortc_dtype ortc_pw_check(const ortc_pw_step *steps, uint32_t at, uint32_t n_in)
{
#define ORTC_PW_TYPES(name, n, types, result) types,
#define ORTC_PW_RESULT(name, n, types, result) result,
    static const char *const types[] = {ORTC_PW_PRIMITIVES(ORTC_PW_TYPES)};
    static const char results[] = {ORTC_PW_PRIMITIVES(ORTC_PW_RESULT)};
#undef ORTC_PW_TYPES
#undef ORTC_PW_RESULT
    const ortc_pw_step *s = &steps[at];
    if (s->op >= ORTC_PW_PRIMITIVE_COUNT || !ortc_pw_register(s->type)) return 0;
    if (s->op == ORTC_PW_LOAD) return s->a < n_in && s->b < 64 ? ortc_pw_register(s->type) : 0;
    if (s->op == ORTC_PW_CONST) return s->type == ortc_pw_register(s->type) ? s->type : 0;
    const uint32_t n = ortc_pw_operands(s->op);
    const uint16_t operands[3] = {s->a, s->b, s->c};
    ortc_dtype last = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (operands[i] >= at || steps[operands[i]].op == ORTC_PW_STORE) return 0;
        const ortc_dtype t = ortc_pw_register(steps[operands[i]].type);
        const int condition = s->op == ORTC_PW_SELECT && i == 0;
        int allowed = condition ? t == ORTC_BOOL : 0;
        for (const char *c = types[s->op]; !condition && *c; c++) allowed |= *c == ortc_pw_class(t);
        if (!allowed || (last && t != last)) return 0;
        last = condition ? 0 : t;
    }
    switch (results[s->op]) {
    case 'S': return s->type == last ? last : 0;
    case 'B': return s->type == ORTC_BOOL ? ORTC_BOOL : 0;
    default: /* a register is stored as what it holds, but for floats of 16 bits */
        return s->op != ORTC_PW_STORE || ortc_pw_register(s->type) == last ? ortc_pw_register(s->type) : 0;
    }
}

/* Whether the bytes are a program. */
static inline int ortc_pointwise_valid(const ortc_pointwise *p, size_t bytes)
{
    if (bytes < offsetof(ortc_pointwise, steps) || p->n == 0 || p->n > ORTC_PW_STEPS || p->bytes != bytes ||
        bytes != ortc_pointwise_bytes(p->n))
        return 0;
    for (uint32_t i = 0; i < p->n; i++)
        if (!ortc_pw_check(p->steps, i, p->n_in) || (p->steps[i].op == ORTC_PW_STORE) != (i + 1 == p->n))
            return 0;
    return 1;
}

/* ---- Epilogues ----------------------------------------------------------------------------------------- */

/* A port as a program loads it: with `behind` more dims of 1 (LOAD's b), in `space`, which has room for them.
 * What is not known, or has too many dims, has no rank. */
enum { ORTC_PW_RANK = 64 };
static inline ortc_port ortc_pw_port(const ortc_port *p, uint32_t behind, ortc_dim space[ORTC_PW_RANK])
{
    ortc_port out = *p;
    if (!behind || p->rank < 0) return out;
    out.rank = -1;
    out.dims = NULL;
    if ((uint32_t)p->rank + behind > ORTC_PW_RANK) return out;
    for (int32_t d = 0; d < p->rank; d++) space[d] = p->dims[d];
    for (uint32_t d = 0; d < behind; d++) space[(uint32_t)p->rank + d] = 1;
    out.rank = p->rank + (int32_t)behind;
    out.dims = space;
    return out;
}

/* How an input lies under a result. */
enum {
    ORTC_PW_ONE,     /* one element for all */
    ORTC_PW_CHANNEL, /* one for each index along `axis`, in order */
    ORTC_PW_FULL,    /* of the result's shape */
    ORTC_PW_OTHER    /* broadcast otherwise, or not provable at load */
};
static inline int ortc_pw_lies(const ortc_port *in, const ortc_port *result, int32_t axis)
{
    int one = 1, channel = 1, full = 1;
    if (in->rank < 0 || in->rank > result->rank) return ORTC_PW_OTHER;
    for (int32_t d = 0; d < result->rank; d++) {
        const int32_t own = d - (result->rank - in->rank);
        const ortc_dim n = own < 0 ? 1 : in->dims[own], m = result->dims[d];
        const int same = n == m && n != ORTC_DIM_UNKNOWN;
        one &= n == 1;
        channel &= d == axis ? same : n == 1;
        full &= same;
    }
    return one ? ORTC_PW_ONE : channel ? ORTC_PW_CHANNEL : full ? ORTC_PW_FULL : ORTC_PW_OTHER;
}

/* ---- Building ------------------------------------------------------------------------------------------ */

/* What `expand` writes into. A step that is wrong, or one too many, sets `failed`, and every value is
 * NONE from then on: an expansion need not check. Equal steps are made once. */
typedef struct ortc_pw_builder {
    uint32_t size;
    int32_t failed;
    uint32_t n, n_in, n_ports;
    const int32_t *ports; /* n_ports of them: the values of the node's inputs */
    ortc_pw_step steps[ORTC_PW_STEPS];
} ortc_pw_builder;

/* A step, whose value it gives: that of an equal step that is there already, or a new one. NONE: it is wrong,
 * or there are too many, and the whole has failed. */
static inline int32_t ortc_pw_add(ortc_pw_builder *b, ortc_pw_step s)
{
    if (b->failed || b->n == ORTC_PW_STEPS) return b->failed = 1, ORTC_PW_NONE;
    b->steps[b->n] = s;
    if (!ortc_pw_check(b->steps, b->n, b->n_in)) return b->failed = 1, ORTC_PW_NONE;
    for (uint32_t i = 0; i < b->n; i++)
        if (!memcmp(&b->steps[i], &s, sizeof s)) return (int32_t)i;
    return (int32_t)b->n++;
}

/* The type of a value, as a register holds it; 0: of none. */
static inline ortc_dtype ortc_pw_type(const ortc_pw_builder *b, int32_t v)
{
    return v < 0 ? 0 : ortc_pw_register(b->steps[v].type);
}
/* The value of the node's input at `port`; NONE: left out. */
static inline int32_t ortc_pw_in(const ortc_pw_builder *b, uint32_t port)
{
    return port < b->n_ports ? b->ports[port] : ORTC_PW_NONE;
}

/* The step of a primitive; its operands are values, as many as it has. */
static inline int32_t ortc_pw(ortc_pw_builder *b, uint32_t op, int32_t x, int32_t y, int32_t z)
{
    const int32_t values[3] = {x, y, z};
    const uint32_t n = ortc_pw_operands(op);
    uint16_t of[3] = {0, 0, 0};
    ortc_pw_step s;
    if (n == 0 || b->failed) return b->failed = 1, ORTC_PW_NONE;
    for (uint32_t i = 0; i < n; i++) {
        if (values[i] < 0) return b->failed = 1, ORTC_PW_NONE;
        of[i] = (uint16_t)values[i];
    }
    memset(&s, 0, sizeof s);
    s.op = (uint8_t)op;
    s.type = (uint8_t)(op == ORTC_PW_EQ || op == ORTC_PW_LT || op == ORTC_PW_LE || op == ORTC_PW_IS_NAN
                           ? ORTC_BOOL
                           : ortc_pw_type(b, values[n - 1]));
    s.a = of[0];
    s.b = of[1];
    s.c = of[2];
    return ortc_pw_add(b, s);
}
static inline int32_t ortc_pw_1(ortc_pw_builder *b, uint32_t op, int32_t x)
{
    return ortc_pw(b, op, x, ORTC_PW_NONE, ORTC_PW_NONE);
}
static inline int32_t ortc_pw_2(ortc_pw_builder *b, uint32_t op, int32_t x, int32_t y)
{
    return ortc_pw(b, op, x, y, ORTC_PW_NONE);
}
static inline int32_t ortc_pw_select(ortc_pw_builder *b, int32_t condition, int32_t x, int32_t y)
{
    return ortc_pw(b, ORTC_PW_SELECT, condition, x, y);
}
/* CAST, SATURATE and STORE name a type; a CAST to what a register holds anyway is none. */
static inline int32_t ortc_pw_to(ortc_pw_builder *b, uint32_t op, ortc_dtype type, int32_t x)
{
    ortc_pw_step s;
    if (x < 0) return b->failed = 1, ORTC_PW_NONE;
    if (op == ORTC_PW_CAST && ortc_pw_type(b, x) == type) return x;
    memset(&s, 0, sizeof s);
    s.op = (uint8_t)op;
    s.type = (uint8_t)type;
    s.a = (uint16_t)x;
    return ortc_pw_add(b, s);
}
static inline int32_t ortc_pw_load(ortc_pw_builder *b, uint32_t input, ortc_dtype type)
{
    ortc_pw_step s;
    memset(&s, 0, sizeof s);
    s.op = ORTC_PW_LOAD;
    s.type = (uint8_t)type;
    s.a = (uint16_t)input;
    return ortc_pw_add(b, s);
}
/* An input's value, which is a vector (or one element), lying along an axis of a result of that rank. */
static inline int32_t ortc_pw_along(ortc_pw_builder *b, int32_t v, int32_t axis, int32_t rank)
{
    ortc_pw_step s;
    if (v < 0 || axis < 0 || axis >= rank) return b->failed = 1, ORTC_PW_NONE;
    if (b->steps[v].op != ORTC_PW_LOAD) return v;
    s = b->steps[v];
    s.b = (uint16_t)(rank - 1 - axis);
    return ortc_pw_add(b, s);
}
static inline int32_t ortc_pw_int(ortc_pw_builder *b, ortc_dtype type, int64_t k)
{
    ortc_pw_step s;
    memset(&s, 0, sizeof s);
    s.op = ORTC_PW_CONST;
    s.type = (uint8_t)ortc_pw_register(type);
    s.k.i = k;
    return ortc_pw_add(b, s);
}
/* A number as a constant of the type that value `like` has; of integers its whole part. */
static inline int32_t ortc_pw_const(ortc_pw_builder *b, int32_t like, double k)
{
    ortc_pw_step s;
    const ortc_dtype t = ortc_pw_type(b, like);
    if (!t) return b->failed = 1, ORTC_PW_NONE;
    if (ortc_pw_class(t) != 'F') return ortc_pw_int(b, t, (int64_t)k);
    memset(&s, 0, sizeof s);
    s.op = ORTC_PW_CONST;
    s.type = (uint8_t)t;
    s.k.f = t == ORTC_F32 ? (double)(float)k : k;
    return ortc_pw_add(b, s);
}

#ifdef __cplusplus
}
#endif
#endif
