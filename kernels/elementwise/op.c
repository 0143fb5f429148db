/* kernels/elementwise/op.c: arithmetic, comparison, logic, choice and conversion, element by element:
 * schemas, shapes, older forms.
 *
 * Inputs are broadcast as in numpy. Below 7 only the second was stretched, where `broadcast` said so, and its
 * dims could be laid along the first's from `axis` on. Small integer values are passed along by + - * / and
 * casts, for they compute shapes.
 */
#include "kernels/common/shape.h"

extern const ortc_kernel_table ortc_kernels_ref_elementwise;

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

static ortc_dim value_of(ortc_infer *c, char op, ortc_dim a, ortc_dim b)
{
    switch (op) {
    case 'A': return ortc_element_add(c, a, b);
    case 'S': return ortc_element_sub(c, a, b);
    case 'M': return ortc_element_mul(c, a, b);
    default: /* towards zero, where dims are divided downwards; symbols stand for extents */
        if (ortc_dim_is_number(a) && ortc_dim_is_number(b)) return b == 0 ? ORTC_DIM_UNKNOWN : a / b;
        return ortc_dim_is_number(b) && b <= 0 ? ORTC_DIM_UNKNOWN : ortc_dim_div(c, a, b);
    }
}

/* Add, Sub, Mul, Div. */
static ortc_status infer_arithmetic(ortc_infer *c)
{
    int64_t count_a, count_b;
    const ortc_dim *a = ortc_infer_vector(c, 0, &count_a), *b = ortc_infer_vector(c, 1, &count_b);
    ortc_dim out[ORTC_VALUES_LIMIT];
    const int64_t count = count_a == 1 ? count_b : count_a;
    ORTC_TRY(ortc_infer_out_broadcast(c, 0, ortc_infer_in(c, 0).dtype, 0, 2));
    if (!a || !b || count > ORTC_VALUES_LIMIT || (count_a != 1 && count_b != 1 && count_a != count_b))
        return ORTC_OK;
    for (int64_t i = 0; i < count; i++)
        out[i] = value_of(c, ortc_node_op(ortc_infer_node(c))[0], a[count_a == 1 ? 0 : i],
                          b[count_b == 1 ? 0 : i]);
    return ortc_infer_out_values(c, 0, count, out);
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
    return cast_to(c, ortc_node_int(ortc_infer_node(c), "to", 0));
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

/* ---- The table ----------------------------------------------------------------------------------------- */

#define BINARY(name, since, older, types, infer) \
    ORTC_OP("", name, since, 7, older, "A:T B:T", "C:T", "", types, infer, lift_broadcast, 0)
#define COMPARE(name, since, form, older, types, lift) \
    ORTC_OP("", name, since, form, older, "A:T B:T", "C:T1", "", types " T1=bool", infer_bool, lift, 0)
#define UNARY(name, since, form, older, types, lift) \
    ORTC_OP("", name, since, form, older, "X:T", "Y:T", "", types, infer_same, lift, 0)
#define VARIADIC(name, form, older, types, lift) \
    ORTC_OP("", name, 13, form, older, "data_0:T+", "result:T", "", types, infer_variadic, lift, 0)
#define CASTS_25 "float,int,uint,bool,string,f8,u4,i4,f4e2m1,f8e8m0,u2,i2"
#define CASTS CASTS_25 ",f6e2m3,f6e3m2"

static const ortc_op ops[] = {
    BINARY("Add", 14, "13 7 6 1", "T=num", infer_arithmetic),
    BINARY("Sub", 14, "13 7 6 1", "T=num", infer_arithmetic),
    BINARY("Mul", 14, "13 7 6 1", "T=num", infer_arithmetic),
    BINARY("Div", 14, "13 7 6 1", "T=num", infer_arithmetic),
    ORTC_OP("", "Pow", 15, 7, "13 12 7 1", "X:T Y:T1", "Z:T", "", "T=float,i32,i64 T1=num", infer_pow,
            lift_broadcast, 0),
    BINARY("And", 7, "1", "T=bool", infer_bool),
    BINARY("Or", 7, "1", "T=bool", infer_bool),
    BINARY("Xor", 7, "1", "T=bool", infer_bool),
    COMPARE("Equal", 19, 7, "13 11 7 1", "T=num,bool,string", lift_broadcast),
    COMPARE("Greater", 13, 7, "9 7 1", "T=num", lift_broadcast),
    COMPARE("Less", 13, 7, "9 7 1", "T=num", lift_broadcast),
    COMPARE("GreaterOrEqual", 16, 12, "12", "T=num", NULL),
    COMPARE("LessOrEqual", 16, 12, "12", "T=num", NULL),
    VARIADIC("Min", 6, "12 8 6 1", "T=num", ortc_lift_consumed),
    VARIADIC("Max", 6, "12 8 6 1", "T=num", ortc_lift_consumed),
    VARIADIC("Sum", 6, "8 6 1", "T=float", ortc_lift_consumed),
    VARIADIC("Mean", 6, "8 6 1", "T=float", ortc_lift_consumed),
    UNARY("Neg", 13, 6, "6 1", "T=float,int", ortc_lift_consumed),
    UNARY("Abs", 13, 6, "6 1", "T=num", ortc_lift_consumed),
    UNARY("Sign", 13, 9, "9", "T=num", NULL),
    UNARY("Sqrt", 13, 6, "6 1", "T=float", ortc_lift_consumed),
    UNARY("Exp", 13, 6, "6 1", "T=float", ortc_lift_consumed),
    UNARY("Log", 13, 6, "6 1", "T=float", ortc_lift_consumed),
    UNARY("Reciprocal", 13, 6, "6 1", "T=float", ortc_lift_consumed),
    UNARY("Floor", 13, 6, "6 1", "T=float", ortc_lift_consumed),
    UNARY("Ceil", 13, 6, "6 1", "T=float", ortc_lift_consumed),
    UNARY("Round", 22, 11, "11", "T=float", NULL),
    UNARY("Sin", 22, 7, "7", "T=float", NULL),
    UNARY("Cos", 22, 7, "7", "T=float", NULL),
    UNARY("Tan", 22, 7, "7", "T=float", NULL),
    UNARY("Asin", 22, 7, "7", "T=float", NULL),
    UNARY("Acos", 22, 7, "7", "T=float", NULL),
    UNARY("Atan", 22, 7, "7", "T=float", NULL),
    UNARY("Sinh", 22, 9, "9", "T=float", NULL),
    UNARY("Cosh", 22, 9, "9", "T=float", NULL),
    UNARY("Asinh", 22, 9, "9", "T=float", NULL),
    UNARY("Acosh", 22, 9, "9", "T=float", NULL),
    UNARY("Atanh", 22, 9, "9", "T=float", NULL),
    UNARY("Not", 1, 1, "", "T=bool", NULL),
    ORTC_OP("", "Mod", 28, 10, "13 10", "A:T B:T", "C:T", "fmod:i=0", "T=num", infer_variadic, NULL, 0),
    ORTC_OP("", "IsInf", 20, 10, "10", "X:T1", "Y:T2", "detect_negative:i=1 detect_positive:i=1",
            "T1=float,f8 T2=bool", infer_is, NULL, 0),
    ORTC_OP("", "IsNaN", 20, 9, "13 9", "X:T1", "Y:T2", "", "T1=float,f8 T2=bool", infer_is, NULL, 0),
    ORTC_OP("", "CastLike", 25, 15, "24 23 21 19 15", "input:T1 target_type:T2", "output:T2",
            "round_mode:s=up saturate:i=1", "T1=" CASTS_25 " T2=" CASTS_25, infer_cast_like, NULL, 0),
    ORTC_OP("", "Where", 16, 9, "9", "condition:B X:T Y:T", "output:T", "",
            "B=bool T=num,bool,string,c64,c128", infer_where, NULL, 0),
    ORTC_OP("", "Cast", 28, 6, "25 24 23 21 19 13 9 6 1", "input:T1", "output:T2",
            "round_mode:s=up saturate:i=1 to:i!", "T1=" CASTS " T2=" CASTS, infer_cast, lift_cast, 0),
};
ORTC_FAMILY(elementwise, ops, &ortc_kernels_ref_elementwise);
