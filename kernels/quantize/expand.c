/* kernels/quantize/expand.c: QuantizeLinear and DequantizeLinear to one element (expand.h).
 *
 *   y = saturate(round(x / scale) + zero)    the quotient in the type that the standard says
 *   y = (x - zero) * scale
 *
 * Both in f32, where numbers of 16 bits and their differences are exact. What would be rounded twice on the
 * way, and not as ref does, has no program.
 */
#include "expand.h"

static int is_narrow(ortc_dtype t) { return t == ORTC_I8 || t == ORTC_U8 || t == ORTC_I16 || t == ORTC_U16; }
static int is_half(ortc_dtype t) { return t == ORTC_F16 || t == ORTC_BF16; }

/* The scale or zero point at `port`, lying along the axis; NONE: left out, or not to be said here. */
static int32_t numbers(const ortc_node *n, ortc_pw_builder *b, uint32_t port)
{
    const ortc_port x = ortc_node_in(n, 0), p = ortc_node_in(n, port);
    int64_t axis = ortc_node_int(n, "axis", 1);
    const int32_t v = ortc_pw_in(b, port);
    if (v < 0 || p.rank == 0 || b->steps[v].op != ORTC_PW_LOAD) return v;
    axis += axis < 0 ? x.rank : 0;
    if (p.rank != 1 || x.rank < 1) return b->failed = 1, ORTC_PW_NONE;
    if (p.dims[0] == 1) return v;
    return ortc_pw_along(b, v, (int32_t)axis, x.rank);
}

/* A zero point as f32; a constant at once. */
static int32_t as_float(ortc_pw_builder *b, int32_t like, int32_t zero)
{
    if (zero >= 0 && b->steps[zero].op == ORTC_PW_CONST)
        return ortc_pw_const(b, like, (double)b->steps[zero].k.i);
    return ortc_pw_to(b, ORTC_PW_CAST, ORTC_F32, zero);
}
static int is_zero(const ortc_pw_builder *b, int32_t v)
{
    return v < 0 || (b->steps[v].op == ORTC_PW_CONST && b->steps[v].k.i == 0);
}

static int is_one(const ortc_pw_builder *b, int32_t v)
{
    return v >= 0 && b->steps[v].op == ORTC_PW_CONST && b->steps[v].k.f == 1;
}

int32_t ortc_expand_quantize(const ortc_node *n, ortc_pw_builder *b)
{
    const ortc_dtype x_type = ortc_node_in(n, 0).dtype, scale_type = ortc_node_in(n, 1).dtype,
                     to = ortc_node_out(n, 0).dtype;
    const ortc_dtype asked = (ortc_dtype)ortc_node_int(n, "precision", 0),
                     precision = asked ? asked : scale_type;
    const int32_t x = ortc_pw_in(b, 0);
    if (!is_narrow(to) || ortc_pw_type(b, x) != ORTC_F32 || ortc_node_int(n, "block_size", 0)) return -1;
    if (precision != ORTC_F32 && !(is_half(precision) && x_type == precision && scale_type == precision))
        return ORTC_PW_NONE;
    const int32_t scale = numbers(n, b, 1), zero = numbers(n, b, 2);
    int32_t y = is_one(b, scale) ? x : ortc_pw_2(b, ORTC_PW_DIV, x, scale);
    if (is_half(precision)) y = ortc_pw_to(b, ORTC_PW_CAST, precision, y);
    if (!is_zero(b, zero))
        y = ortc_pw_2(b, ORTC_PW_ADD, ortc_pw_1(b, ORTC_PW_ROUND, y), as_float(b, y, zero));
    return ortc_pw_to(b, ORTC_PW_SATURATE, to, y);
}

int32_t ortc_expand_dequantize(const ortc_node *n, ortc_pw_builder *b)
{
    const ortc_dtype from = ortc_node_in(n, 0).dtype, scale_type = ortc_node_in(n, 1).dtype,
                     to = ortc_node_out(n, 0).dtype;
    const int32_t x = ortc_pw_in(b, 0);
    if (!is_narrow(from) || x < 0 || ortc_node_int(n, "block_size", 0)) return ORTC_PW_NONE;
    /* 9 bits by a half's are exact in f32 */
    if (to != ORTC_F32 && !(is_half(to) && to == scale_type && (from == ORTC_I8 || from == ORTC_U8)))
        return ORTC_PW_NONE;
    const int32_t scale = numbers(n, b, 1), zero = numbers(n, b, 2);
    int32_t y = ortc_pw_to(b, ORTC_PW_CAST, ORTC_F32, x);
    if (!is_zero(b, zero)) y = ortc_pw_2(b, ORTC_PW_SUB, y, as_float(b, y, zero));
    return ortc_pw_2(b, ORTC_PW_MUL, y, scale);
}
