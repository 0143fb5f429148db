/* kernels/elementwise/op.c: arithmetic, comparison, logic, choice and conversion, element by element:
 * schemas, shapes, older forms.
 *
 * Inputs are broadcast as in numpy. Below 7 only the second was stretched, where `broadcast` said so, and its
 * dims could be laid along the first's from `axis` on. Small integer values are passed along by + - * / and
 * casts, for they compute shapes.
 */
#include <math.h>

#include "kernels/common/shape.h"
#include "kernels/elementwise/elementwise.h"
#include "ortc/program.h"

extern const ortc_kernel_table ortc_kernels_ref_elementwise, ortc_kernels_cpu_cast, ortc_kernels_cpu_where,
    ortc_kernels_cpu_program;

static ortc_status infer_same(ortc_infer *c) { return ortc_infer_like(c, 0, 0); }

static ortc_status infer_bool(ortc_infer *c) { return ortc_infer_out_broadcast(c, 0, ORTC_BOOL, 0, 2); }
static ortc_status infer_pow(ortc_infer *c)
{
    return ortc_infer_out_broadcast(c, 0, ortc_infer_in(c, 0).dtype, 0, 2);
}
static ortc_status infer_where(ortc_infer *c)
{
    return ortc_infer_out_broadcast(c, 0, ortc_infer_in(c, 1).dtype, 0, 3);
}
static ortc_status infer_variadic(ortc_infer *c)
{
    return ortc_infer_out_broadcast(c, 0, ortc_infer_in(c, 0).dtype, 0, ortc_node_n_in(ortc_infer_node(c)));
}

/* ---- Values -------------------------------------------------------------------------------------------- */

/* op: a letter that tells Add, Sub, Mul, Div, Max and Min apart. */
static ortc_dim value_of(ortc_infer *c, char op, ortc_dim a, ortc_dim b)
{
    switch (op) {
    case 'A': return ortc_element_add(c, a, b);
    case 'S': return ortc_element_sub(c, a, b);
    case 'M': return ortc_element_mul(c, a, b);
    case 'a': return ortc_dim_max(c, a, b);
    case 'i': return ortc_dim_min(c, a, b);
    default: /* towards zero, where dims are divided downwards; symbols stand for extents */
        if (ortc_dim_is_number(a) && ortc_dim_is_number(b)) return b == 0 ? ORTC_DIM_UNKNOWN : a / b;
        return ortc_dim_is_number(b) && b <= 0 ? ORTC_DIM_UNKNOWN : ortc_dim_div(c, a, b);
    }
}

/* The values that two inputs make, where those are known. */
static ortc_status make_values(ortc_infer *c, char op)
{
    int64_t count_a, count_b;
    const ortc_dim *a = ortc_infer_vector(c, 0, &count_a), *b = ortc_infer_vector(c, 1, &count_b);
    ortc_dim out[ORTC_VALUES_LIMIT];
    const int64_t count = count_a == 1 ? count_b : count_a;
    if (!a || !b || count > ORTC_VALUES_LIMIT || (count_a != 1 && count_b != 1 && count_a != count_b))
        return ORTC_OK;
    for (int64_t i = 0; i < count; i++)
        out[i] = value_of(c, op, a[count_a == 1 ? 0 : i], b[count_b == 1 ? 0 : i]);
    return ortc_infer_out_values(c, 0, count, out);
}

/* Add, Sub, Mul, Div. */
static ortc_status infer_arithmetic(ortc_infer *c)
{
    ORTC_TRY(ortc_infer_out_broadcast(c, 0, ortc_infer_in(c, 0).dtype, 0, 2));
    return make_values(c, ortc_node_op(ortc_infer_node(c))[0]);
}

/* Max and Min; their letters are the second ones, for Mul has the first. */
static ortc_status infer_extreme(ortc_infer *c)
{
    ORTC_TRY(infer_variadic(c));
    return ortc_node_n_in(ortc_infer_node(c)) == 2 ? make_values(c, ortc_node_op(ortc_infer_node(c))[1])
                                                   : ORTC_OK;
}

static ortc_status infer_is(ortc_infer *c)
{
    return ortc_infer_out(c, 0, ORTC_BOOL, ortc_infer_in(c, 0).rank, ortc_infer_in(c, 0).dims);
}

static ortc_status cast_to(ortc_infer *c, int64_t to)
{
    const ortc_port x = ortc_infer_in(c, 0);
    int64_t count;
    if (to <= 0 || to >= ORTC_DTYPE_COUNT || to == ORTC_C64 || to == ORTC_C128)
        return ortc_infer_fail(c, ORTC_INVALID_MODEL, "attribute to is %lld, which is no type to cast to",
                               (long long)to);
    ORTC_TRY(ortc_infer_out(c, 0, (ortc_dtype)to, x.rank, x.dims));
    const ortc_dim *v = to == ORTC_I64 || to == ORTC_I32 ? ortc_infer_vector(c, 0, &count) : NULL;
    for (int64_t i = 0; v && i < count; i++)
        if (to == ORTC_I32 && ortc_dim_is_number(v[i]) && (v[i] > INT32_MAX || v[i] < INT32_MIN))
            return ORTC_OK;
    return v ? ortc_infer_out_values(c, 0, count, v) : ORTC_OK;
}
static ortc_status infer_cast(ortc_infer *c)
{
    const ortc_attr to = ortc_node_attr(ortc_infer_node(c), "to");
    return to.kind == ORTC_ATTR_INT ? cast_to(c, to.i)
                                    : ortc_infer_fail(c, ORTC_INVALID_MODEL, "attribute 'to' is required");
}
static ortc_status infer_cast_like(ortc_infer *c)
{
    const ortc_dtype to = ortc_infer_in(c, 1).dtype;
    return to ? cast_to(c, to) : ORTC_OK;
}

/* ---- Older forms --------------------------------------------------------------------------------------- */

/* Below 7: B's dims lie along A's from `axis` on, or at the end; dims of one behind B's make that numpy's
 * rule. */
static ortc_status lift_broadcast(ortc_lift *l)
{
    const ortc_node *n = ortc_lift_node(l);
    const ortc_port a = ortc_node_in(n, 0), b = ortc_node_in(n, 1);
    const ortc_attr at = ortc_node_attr(n, "axis");
    const bool broadcast = ortc_node_int(n, "broadcast", 0) != 0;
    int64_t axes[ORTC_RANK_LIMIT];
    int32_t axis, count = 0;
    ortc_lift_drop_attr(l, "axis");
    ortc_lift_drop_attr(l, "broadcast");
    ortc_lift_drop_attr(l, "consumed_inputs");
    if (!broadcast || at.kind != ORTC_ATTR_INT || b.rank == 0) return ORTC_OK;
    if (a.rank < 0 || b.rank < 0)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "attribute axis needs the ranks of both inputs");
    if (!ortc_axis_of(at.i, a.rank, &axis) || axis + b.rank > a.rank)
        return ortc_lift_fail(l, ORTC_INVALID_MODEL, "axis %lld does not fit ranks %d and %d",
                              (long long)at.i, a.rank, b.rank);
    for (; axis + b.rank + count < a.rank; count++) axes[count] = b.rank + count;
    return count ? ortc_lift_wrap_in(l, 1, "Unsqueeze", axes, (size_t)count) : ORTC_OK;
}

/* Cast-1 named its type. */
static ortc_status lift_cast(ortc_lift *l)
{
    static const struct {
        const char *name;
        ortc_dtype t;
    } names[] = {{"FLOAT", ORTC_F32},   {"UINT8", ORTC_U8},   {"INT8", ORTC_I8},    {"UINT16", ORTC_U16},
                 {"INT16", ORTC_I16},   {"INT32", ORTC_I32},  {"INT64", ORTC_I64},  {"BOOL", ORTC_BOOL},
                 {"FLOAT16", ORTC_F16}, {"DOUBLE", ORTC_F64}, {"UINT32", ORTC_U32}, {"UINT64", ORTC_U64}};
    const ortc_attr to = ortc_node_attr(ortc_lift_node(l), "to");
    for (size_t i = 0; to.kind == ORTC_ATTR_STRING && i < sizeof names / sizeof *names; i++)
        if (!strcmp(to.u.s, names[i].name)) return ortc_lift_set_int(l, "to", names[i].t);
    return to.kind == ORTC_ATTR_INT ? ORTC_OK
                                    : ortc_lift_fail(l, ORTC_INVALID_MODEL, "attribute to names no type");
}

/* ---- What they do to an element (ortc/program.h) ------------------------------------------------------- */

#define PRIMITIVE_1(name) \
    static int32_t expand_##name(const ortc_node *n, ortc_pw_builder *b) \
    { \
        return ortc_pw_1(b, ORTC_PW_##name, ortc_pw_in(b, 0)); \
    }
#define PRIMITIVE_2(name) \
    static int32_t expand_##name(const ortc_node *n, ortc_pw_builder *b) \
    { \
        return ortc_pw_2(b, ORTC_PW_##name, ortc_pw_in(b, 0), ortc_pw_in(b, 1)); \
    }
#define PRIMITIVE_ALL(name) /* of any number of inputs */ \
    static int32_t expand_##name(const ortc_node *n, ortc_pw_builder *b) \
    { \
        int32_t v = ortc_pw_in(b, 0); \
        for (uint32_t i = 1; i < ortc_node_n_in(n); i++) \
            v = ortc_pw_2(b, ORTC_PW_##name, v, ortc_pw_in(b, i)); \
        return v; \
    }
/* clang-format off */
PRIMITIVE_2(SUB) PRIMITIVE_2(MUL) PRIMITIVE_2(DIV) PRIMITIVE_2(AND) PRIMITIVE_2(OR) PRIMITIVE_2(XOR)
PRIMITIVE_2(EQ) PRIMITIVE_2(LT) PRIMITIVE_2(LE)
PRIMITIVE_ALL(ADD) PRIMITIVE_ALL(MIN) PRIMITIVE_ALL(MAX)
PRIMITIVE_1(NEG) PRIMITIVE_1(ABS) PRIMITIVE_1(SIGN) PRIMITIVE_1(SQRT) PRIMITIVE_1(EXP) PRIMITIVE_1(LOG)
PRIMITIVE_1(RECIPROCAL) PRIMITIVE_1(FLOOR) PRIMITIVE_1(CEIL) PRIMITIVE_1(ROUND) PRIMITIVE_1(SIN)
PRIMITIVE_1(COS) PRIMITIVE_1(TAN) PRIMITIVE_1(ASIN) PRIMITIVE_1(ACOS) PRIMITIVE_1(ATAN) PRIMITIVE_1(SINH)
PRIMITIVE_1(COSH) PRIMITIVE_1(ASINH) PRIMITIVE_1(ACOSH) PRIMITIVE_1(ATANH) PRIMITIVE_1(NOT)
PRIMITIVE_1(IS_NAN)

/* Of the operators on bits (elementwise.h). */
int32_t ortc_expand_and(const ortc_node *n, ortc_pw_builder *b) { return expand_AND(n, b); }
int32_t ortc_expand_or(const ortc_node *n, ortc_pw_builder *b) { return expand_OR(n, b); }
int32_t ortc_expand_xor(const ortc_node *n, ortc_pw_builder *b) { return expand_XOR(n, b); }
int32_t ortc_expand_not(const ortc_node *n, ortc_pw_builder *b) { return expand_NOT(n, b); }
int32_t ortc_expand_shift(const ortc_node *n, ortc_pw_builder *b)
{
    const int32_t x = ortc_pw_in(b, 0), by = ortc_pw_in(b, 1);
    const ortc_dtype t = ortc_pw_type(b, x);
    const char *direction = ortc_node_string(n, "direction", "");
    const bool left = !strcmp(direction, "LEFT"), is_signed = (ORTC_TYPES_INT >> t & 1) != 0;
    if (!t || (!left && strcmp(direction, "RIGHT") != 0)) return ORTC_PW_NONE;
    const int32_t most = ortc_pw_int(b, t, ortc_dtype_bits(t) - 1);
    const int32_t within = ortc_pw_2(b, ORTC_PW_AND, by, most), fits = ortc_pw_2(b, ORTC_PW_EQ, by, within);
    if (!left && is_signed) return ortc_pw_2(b, ORTC_PW_SHR, x, ortc_pw_select(b, fits, within, most));
    return ortc_pw_select(b, fits, ortc_pw_2(b, left ? ORTC_PW_SHL : ORTC_PW_SHR, x, within),
                          ortc_pw_int(b, t, 0));
}

static int32_t expand_greater(const ortc_node *n, ortc_pw_builder *b)
{
    return ortc_pw_2(b, ORTC_PW_LT, ortc_pw_in(b, 1), ortc_pw_in(b, 0));
}
/* clang-format on */
static int32_t expand_greater_or_equal(const ortc_node *n, ortc_pw_builder *b)
{
    return ortc_pw_2(b, ORTC_PW_LE, ortc_pw_in(b, 1), ortc_pw_in(b, 0));
}
static int32_t expand_mean(const ortc_node *n, ortc_pw_builder *b)
{
    const int32_t sum = expand_ADD(n, b);
    return ortc_pw_2(b, ORTC_PW_DIV, sum, ortc_pw_const(b, sum, ortc_node_n_in(n)));
}
/* The number that input i is, if it is a constant of one element; NaN: it is none. */
static double one_number(const ortc_node *n, uint32_t i)
{
    const ortc_port y = ortc_node_in(n, i);
    for (int32_t d = 0; d < y.rank; d++)
        if (y.dims[d] != 1) return NAN;
    return y.data && y.rank >= 0 ? ortc_load_f64(y.data, y.dtype, 0) : NAN;
}
/* The exponent may have a type of its own: taken into that of the base where that keeps it, or rounds what is
 * far beyond a float's digits. */
static int32_t expand_pow(const ortc_node *n, ortc_pw_builder *b)
{
    const int32_t x = ortc_pw_in(b, 0), y = ortc_pw_in(b, 1);
    const ortc_dtype tx = ortc_pw_type(b, x), ty = ortc_pw_type(b, y);
    if (tx != ty && (!tx || !ty || ortc_pw_class(tx) != 'F' || ty == ORTC_F64)) return ORTC_PW_NONE;
    const double power = one_number(n, 1); /* of small ones what is meant is products */
    const int32_t square = power == 2 || power == 3 ? ortc_pw_2(b, ORTC_PW_MUL, x, x) : ORTC_PW_NONE;
    if (power == 2) return square;
    if (power == 3) return ortc_pw_2(b, ORTC_PW_MUL, square, x);
    return ortc_pw_2(b, ORTC_PW_POW, x, ortc_pw_to(b, ORTC_PW_CAST, tx, y));
}
static int32_t expand_mod(const ortc_node *n, ortc_pw_builder *b)
{
    return ortc_pw_2(b, ortc_node_int(n, "fmod", 0) ? ORTC_PW_REM : ORTC_PW_MOD, ortc_pw_in(b, 0),
                     ortc_pw_in(b, 1));
}
static int32_t expand_is_inf(const ortc_node *n, ortc_pw_builder *b)
{
    const int positive = ortc_node_int(n, "detect_positive", 1) != 0,
              negative = ortc_node_int(n, "detect_negative", 1) != 0;
    const int32_t x = ortc_pw_in(b, 0), inf = ortc_pw_const(b, x, (double)INFINITY);
    if (!positive && !negative) return ortc_pw_int(b, ORTC_BOOL, 0);
    if (positive && negative) return ortc_pw_2(b, ORTC_PW_EQ, ortc_pw_1(b, ORTC_PW_ABS, x), inf);
    return ortc_pw_2(b, ORTC_PW_EQ, positive ? x : ortc_pw_1(b, ORTC_PW_NEG, x), inf);
}
static int32_t expand_where(const ortc_node *n, ortc_pw_builder *b)
{
    return ortc_pw_select(b, ortc_pw_in(b, 0), ortc_pw_in(b, 1), ortc_pw_in(b, 2));
}
static int32_t expand_cast(const ortc_node *n, ortc_pw_builder *b)
{
    return ortc_pw_to(b, ORTC_PW_CAST, ortc_node_out(n, 0).dtype, ortc_pw_in(b, 0));
}

/* ---- The table ----------------------------------------------------------------------------------------- */

#define BINARY(name, since, older, types, infer, expand) \
    ORTC_POINTWISE("", name, since, 7, older, "A:T B:T", "C:T", "", types, infer, lift_broadcast, expand)
#define COMPARE(name, since, form, older, types, lift, expand) \
    ORTC_POINTWISE("", name, since, form, older, "A:T B:T", "C:T1", "", types " T1=bool", infer_bool, lift, \
                   expand)
#define UNARY(name, since, form, older, types, lift, expand) \
    ORTC_POINTWISE("", name, since, form, older, "X:T", "Y:T", "", types, infer_same, lift, expand)
#define VARIADIC(name, form, older, types, infer, lift, expand) \
    ORTC_POINTWISE("", name, 13, form, older, "data_0:T+", "result:T", "", types, infer, lift, expand)
#define CASTS_25 "float,int,uint,bool,string,f8,u4,i4,f4e2m1,f8e8m0,u2,i2"
#define CASTS CASTS_25 ",f6e2m3,f6e3m2"

static const ortc_op ops[] = {
    BINARY("Add", 14, "13 7 6 1", "T=num", infer_arithmetic, expand_ADD),
    BINARY("Sub", 14, "13 7 6 1", "T=num", infer_arithmetic, expand_SUB),
    BINARY("Mul", 14, "13 7 6 1", "T=num", infer_arithmetic, expand_MUL),
    BINARY("Div", 14, "13 7 6 1", "T=num", infer_arithmetic, expand_DIV),
    ORTC_POINTWISE("", "Pow", 15, 7, "13 12 7 1", "X:T Y:T1", "Z:T", "", "T=float,i32,i64 T1=num", infer_pow,
                   lift_broadcast, expand_pow),
    BINARY("And", 7, "1", "T=bool", infer_bool, expand_AND),
    BINARY("Or", 7, "1", "T=bool", infer_bool, expand_OR),
    BINARY("Xor", 7, "1", "T=bool", infer_bool, expand_XOR),
    COMPARE("Equal", 19, 7, "13 11 7 1", "T=num,bool,string", lift_broadcast, expand_EQ),
    COMPARE("Greater", 13, 7, "9 7 1", "T=num", lift_broadcast, expand_greater),
    COMPARE("Less", 13, 7, "9 7 1", "T=num", lift_broadcast, expand_LT),
    COMPARE("GreaterOrEqual", 16, 12, "12", "T=num", NULL, expand_greater_or_equal),
    COMPARE("LessOrEqual", 16, 12, "12", "T=num", NULL, expand_LE),
    VARIADIC("Min", 6, "12 8 6 1", "T=num", infer_extreme, ortc_lift_consumed, expand_MIN),
    VARIADIC("Max", 6, "12 8 6 1", "T=num", infer_extreme, ortc_lift_consumed, expand_MAX),
    VARIADIC("Sum", 6, "8 6 1", "T=float", infer_variadic, ortc_lift_consumed, expand_ADD),
    VARIADIC("Mean", 6, "8 6 1", "T=float", infer_variadic, ortc_lift_consumed, expand_mean),
    UNARY("Neg", 13, 6, "6 1", "T=float,int", ortc_lift_consumed, expand_NEG),
    UNARY("Abs", 13, 6, "6 1", "T=num", ortc_lift_consumed, expand_ABS),
    UNARY("Sign", 13, 9, "9", "T=num", NULL, expand_SIGN),
    UNARY("Sqrt", 13, 6, "6 1", "T=float", ortc_lift_consumed, expand_SQRT),
    UNARY("Exp", 13, 6, "6 1", "T=float", ortc_lift_consumed, expand_EXP),
    UNARY("Log", 13, 6, "6 1", "T=float", ortc_lift_consumed, expand_LOG),
    UNARY("Reciprocal", 13, 6, "6 1", "T=float", ortc_lift_consumed, expand_RECIPROCAL),
    UNARY("Floor", 13, 6, "6 1", "T=float", ortc_lift_consumed, expand_FLOOR),
    UNARY("Ceil", 13, 6, "6 1", "T=float", ortc_lift_consumed, expand_CEIL),
    UNARY("Round", 22, 11, "11", "T=float", NULL, expand_ROUND),
    UNARY("Sin", 22, 7, "7", "T=float", NULL, expand_SIN),
    UNARY("Cos", 22, 7, "7", "T=float", NULL, expand_COS),
    UNARY("Tan", 22, 7, "7", "T=float", NULL, expand_TAN),
    UNARY("Asin", 22, 7, "7", "T=float", NULL, expand_ASIN),
    UNARY("Acos", 22, 7, "7", "T=float", NULL, expand_ACOS),
    UNARY("Atan", 22, 7, "7", "T=float", NULL, expand_ATAN),
    UNARY("Sinh", 22, 9, "9", "T=float", NULL, expand_SINH),
    UNARY("Cosh", 22, 9, "9", "T=float", NULL, expand_COSH),
    UNARY("Asinh", 22, 9, "9", "T=float", NULL, expand_ASINH),
    UNARY("Acosh", 22, 9, "9", "T=float", NULL, expand_ACOSH),
    UNARY("Atanh", 22, 9, "9", "T=float", NULL, expand_ATANH),
    UNARY("Not", 1, 1, "", "T=bool", NULL, expand_NOT),
    ORTC_POINTWISE("", "Mod", 28, 10, "13 10", "A:T B:T", "C:T", "fmod:i=0", "T=num", infer_variadic, NULL,
                   expand_mod),
    ORTC_POINTWISE("", "IsInf", 20, 10, "10", "X:T1", "Y:T2", "detect_negative:i=1 detect_positive:i=1",
                   "T1=float,f8 T2=bool", infer_is, NULL, expand_is_inf),
    ORTC_POINTWISE("", "IsNaN", 20, 9, "13 9", "X:T1", "Y:T2", "", "T1=float,f8 T2=bool", infer_is, NULL,
                   expand_IS_NAN),
    ORTC_POINTWISE("", "CastLike", 25, 15, "24 23 21 19 15", "input:T1 target_type:T2", "output:T2",
                   "round_mode:s=up saturate:i=1", "T1=" CASTS_25 " T2=" CASTS_25, infer_cast_like, NULL,
                   expand_cast),
    ORTC_POINTWISE("", "Where", 16, 9, "9", "condition:B X:T Y:T", "output:T", "",
                   "B=bool T=num,bool,string,c64,c128", infer_where, NULL, expand_where),
    ORTC_POINTWISE("", "Cast", 28, 6, "25 24 23 21 19 13 9 6 1", "input:T1", "output:T2",
                   "round_mode:s=up saturate:i=1 to:i!", "T1=" CASTS " T2=" CASTS, infer_cast, lift_cast,
                   expand_cast),
};
ORTC_FAMILY(elementwise, ops, &ortc_kernels_ref_elementwise, &ortc_kernels_cpu_cast, &ortc_kernels_cpu_where,
            &ortc_kernels_cpu_program);
