/* kernels/activation/op.c: functions of one element at a time that networks use between layers: Relu and its
 * relatives.
 *
 * All have the shape and the type of their input. Versions below 6 had the hint consumed_inputs; Clip's
 * bounds were attributes until 11 and inputs since.
 */
#include <float.h>

#include "kernels/common/shape.h"
#include "kernels/activation/expand.h"

extern const ortc_kernel_table ortc_kernels_ref_activation;

static ortc_status infer_same(ortc_infer *c) { return ortc_infer_like(c, 0, 0); }

static ortc_status infer_prelu(ortc_infer *c)
{
    const ortc_port x = ortc_infer_in(c, 0), slope = ortc_infer_in(c, 1);
    if (x.rank >= 0 && slope.rank >= 0) { /* one way: the slope is stretched */
        if (slope.rank > x.rank)
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "slope has rank %d, X %d", slope.rank, x.rank);
        for (int32_t d = 0; d < slope.rank; d++) {
            const ortc_dim have = slope.dims[d], want = x.dims[x.rank - slope.rank + d];
            if (have >= 0 && want >= 0 && have != 1 && have != want)
                return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH,
                                       "slope has %lld elements in dim %d, X has %lld", (long long)have, d,
                                       (long long)want);
        }
    }
    return ortc_infer_like(c, 0, 0);
}

/* Clip's bounds are scalars; a dim of 1 is let pass, as others write it. */
static ortc_status infer_clip(ortc_infer *c)
{
    for (uint32_t i = 1; i < 3; i++) {
        const ortc_port bound = ortc_infer_in(c, i);
        if (bound.rank > 1 || (bound.rank == 1 && bound.dims[0] >= 0 && bound.dims[0] != 1))
            return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "%s has rank %d%s, expected a scalar",
                                   i == 1 ? "min" : "max", bound.rank,
                                   bound.rank == 1 ? " and not one element" : "");
    }
    return ortc_infer_like(c, 0, 0);
}

/* SwiGLU broadcasts nothing. */
static ortc_status infer_swiglu(ortc_infer *c)
{
    const ortc_port a = ortc_infer_in(c, 0), b = ortc_infer_in(c, 1);
    ortc_dim dims[ORTC_RANK_LIMIT];
    if (a.rank < 0 || b.rank < 0) return ortc_infer_like(c, 0, a.rank < 0);
    if (a.rank != b.rank)
        return ortc_infer_fail(c, ORTC_SHAPE_MISMATCH, "A and B have ranks %d and %d", a.rank, b.rank);
    for (int32_t d = 0; d < a.rank; d++)
        ORTC_TRY(ortc_infer_same(c, "A and B differ in shape", a.dims[d], b.dims[d], &dims[d]));
    return ortc_infer_out(c, 0, a.dtype, a.rank, dims);
}

/* A scalar constant of the type of input 0 at `port`. */
static ortc_status scalar_in(ortc_lift *l, uint32_t port, double value)
{
    const ortc_dtype t = ortc_node_in(ortc_lift_node(l), 0).dtype;
    unsigned char data[8] = {0};
    const ortc_dtype as = ortc_class_of(t) == ORTC_CLASS_FLOAT ? t : ORTC_F32;
    ortc_store_f64(data, as, 0, value);
    return ortc_lift_const_in(l, port, as, 0, NULL, data);
}

/* Clip-6 has finite bounds where none are given, Clip-1 has none. */
static ortc_status lift_clip(ortc_lift *l)
{
    static const char *const names[] = {"min", "max"};
    ortc_lift_drop_attr(l, "consumed_inputs");
    for (uint32_t i = 0; i < 2; i++) {
        const ortc_attr a = ortc_node_attr(ortc_lift_node(l), names[i]);
        const double value = a.kind == ORTC_ATTR_FLOAT ? (double)a.f : i ? (double)FLT_MAX : -(double)FLT_MAX;
        ortc_lift_drop_attr(l, names[i]);
        if (a.kind == ORTC_ATTR_FLOAT || ortc_lift_version(l) == 6) ORTC_TRY(scalar_in(l, i + 1, value));
    }
    return ORTC_OK;
}

/* Selu-1 had defaults of four digits; the schema has none, so that a lifting sees what was given. */
static ortc_status lift_selu(ortc_lift *l)
{
    ortc_lift_drop_attr(l, "consumed_inputs");
    if (ortc_node_attr(ortc_lift_node(l), "alpha").kind == 0)
        ORTC_TRY(ortc_lift_set_float(l, "alpha", 1.6732F));
    if (ortc_node_attr(ortc_lift_node(l), "gamma").kind == 0)
        ORTC_TRY(ortc_lift_set_float(l, "gamma", 1.0507F));
    return ORTC_OK;
}

/* Below 7 a slope of one dim belonged to the channels (axis 1), whatever follows them. */
static ortc_status lift_prelu(ortc_lift *l)
{
    const ortc_port x = ortc_node_in(ortc_lift_node(l), 0), slope = ortc_node_in(ortc_lift_node(l), 1);
    int64_t axes[ORTC_RANK_LIMIT];
    ortc_lift_drop_attr(l, "consumed_inputs");
    if (slope.rank == 0 || (slope.rank == 1 && slope.dims[0] == 1) || slope.rank > 1) return ORTC_OK;
    if (x.rank < 0 || slope.rank < 0)
        return ortc_lift_fail(l, ORTC_UNSUPPORTED, "the ranks of X and slope must be known for this version");
    for (int32_t i = 0; i < x.rank - 2; i++) axes[i] = i + 1;
    return x.rank > 2 ? ortc_lift_wrap_in(l, 1, "Unsqueeze", axes, (size_t)(x.rank - 2)) : ORTC_OK;
}

/* ---- What they do to an element (ortc/program.h) ------------------------------------------------------- */

#define X ortc_pw_in(b, 0)
#define K(number) ortc_pw_const(b, X, number)
#define ATTRIBUTE(name, otherwise) ((double)ortc_node_float(n, name, otherwise))
#define ADD(x, y) ortc_pw_2(b, ORTC_PW_ADD, x, y)
#define MUL(x, y) ortc_pw_2(b, ORTC_PW_MUL, x, y)
#define MIN(x, y) ortc_pw_2(b, ORTC_PW_MIN, x, y)
#define MAX(x, y) ortc_pw_2(b, ORTC_PW_MAX, x, y)
#define LT(x, y) ortc_pw_2(b, ORTC_PW_LT, x, y)
#define OF(name, x) ortc_pw_1(b, ORTC_PW_##name, x)
/* EXPAND(name, statements that return the value of one element x of input 0) */
#define EXPAND(name, ...) \
    static int32_t expand_##name(const ortc_node *n, ortc_pw_builder *b) \
    { \
        const int32_t x = X; \
        __VA_ARGS__ \
    }

static int32_t clamp01(ortc_pw_builder *b, int32_t x) { return MIN(MAX(x, K(0)), K(1)); }
static int32_t softplus(ortc_pw_builder *b, int32_t x) /* max(x, 0) + log(1 + e^-|x|) */
{
    return ADD(MAX(x, K(0)), OF(LOG1P, OF(EXP, OF(NEG, OF(ABS, x)))));
}
static int32_t swish(ortc_pw_builder *b, int32_t x, double alpha)
{
    return alpha == 1 ? ortc_expand_silu(b, x) : MUL(x, OF(SIGMOID, MUL(x, K(alpha))));
}
static int32_t elu(ortc_pw_builder *b, int32_t x, double alpha,
                   double scale) /* alpha (e^(x / scale) - 1) below 0 */
{
    const int32_t below = OF(EXPM1, scale == 1 ? x : ortc_pw_2(b, ORTC_PW_DIV, x, K(scale)));
    return ortc_pw_select(b, LT(x, K(0)), alpha == 1 ? below : MUL(below, K(alpha)), x);
}

EXPAND(relu, return MAX(x, K(0));)
EXPAND(leaky_relu, return ortc_pw_select(b, LT(x, K(0)), MUL(x, K(ATTRIBUTE("alpha", 0.01F))), x);)
EXPAND(prelu, return ortc_pw_select(b, LT(x, K(0)), MUL(x, ortc_pw_in(b, 1)), x);)
EXPAND(clip, const int32_t low = ortc_pw_in(b, 1), high = ortc_pw_in(b, 2);
       const int32_t above = low < 0 ? x : MAX(x, low); /* the upper bound wins where they cross */
       return high < 0 ? above : MIN(above, high);)
EXPAND(sigmoid, return ortc_expand_sigmoid(b, x);)
EXPAND(tanh, return ortc_expand_tanh(b, x);)
EXPAND(erf, return OF(ERF, x);)
EXPAND(gelu, const char *by = ortc_node_string(n, "approximate", "none");
       if (!strcmp(by, "none")) return ortc_expand_gelu(b, x);
       return strcmp(by, "tanh") ? ORTC_PW_NONE : ortc_expand_gelu_tanh(b, x);)
int ortc_is_gelu(const ortc_pointwise *p, uint32_t v, uint32_t x)
{
    return ortc_expands_to(p, v, x, ortc_expand_gelu);
}
int ortc_is_gelu_tanh(const ortc_pointwise *p, uint32_t v, uint32_t x)
{
    return ortc_expands_to(p, v, x, ortc_expand_gelu_tanh);
}
int ortc_is_hard_swish(const ortc_pointwise *p, uint32_t v, uint32_t x)
{
    return ortc_expands_to(p, v, x, ortc_expand_hard_swish);
}
EXPAND(hard_swish, return ortc_expand_hard_swish(b, x);)
EXPAND(hard_sigmoid, return clamp01(b, ADD(MUL(x, K(ATTRIBUTE("alpha", 0.2F))), K(ATTRIBUTE("beta", 0.5F))));)
EXPAND(elu, return elu(b, x, ATTRIBUTE("alpha", 1), 1);)
EXPAND(selu, return MUL(elu(b, x, ATTRIBUTE("alpha", 1.67326319217681884765625F), 1),
                        K(ATTRIBUTE("gamma", 1.05070102214813232421875F)));)
EXPAND(celu, return elu(b, x, ATTRIBUTE("alpha", 1), ATTRIBUTE("alpha", 1));)
EXPAND(softplus, return softplus(b, x);)
EXPAND(softsign, return ortc_pw_2(b, ORTC_PW_DIV, x, ADD(OF(ABS, x), K(1)));)
EXPAND(mish, return MUL(x, OF(TANH, softplus(b, x)));)
EXPAND(swish, return swish(b, x, ATTRIBUTE("alpha", 1));)
EXPAND(swiglu, return MUL(swish(b, x, ATTRIBUTE("alpha", 1)), ortc_pw_in(b, 1));)
EXPAND(thresholded_relu, return ortc_pw_select(b, LT(K(ATTRIBUTE("alpha", 1)), x), x, K(0));)
EXPAND(shrink, const double bias = ATTRIBUTE("bias", 0), bound = ATTRIBUTE("lambd", 0.5F);
       const ortc_dtype t = ortc_pw_type(b, x);
       if (!t || ortc_pw_class(t) != 'F') return ORTC_PW_NONE; /* integers compare with a fraction */
       return ortc_pw_select(b, LT(x, K(-bound)), ADD(x, K(bias)),
                             ortc_pw_select(b, ortc_pw_2(b, ORTC_PW_LE, x, K(bound)), K(0),
                                            ADD(x, K(-bias))));)

#undef X

#define UNARY(name, since, form, older, attributes, types, lift, expand) \
    ORTC_POINTWISE("", name, since, form, older, "X:T", "Y:T", attributes, types, infer_same, lift, expand)
static const ortc_op ops[] = {
    UNARY("Relu", 14, 6, "13 6 1", "", "T=float,int", ortc_lift_consumed, expand_relu),
    UNARY("LeakyRelu", 16, 6, "6 1", "alpha:f=0.01", "T=float", ortc_lift_consumed, expand_leaky_relu),
    ORTC_POINTWISE("", "PRelu", 16, 7, "9 7 6 1", "X:T slope:T", "Y:T", "", "T=float,i32,i64,u32,u64",
                   infer_prelu, lift_prelu, expand_prelu),
    ORTC_POINTWISE("", "Clip", 13, 11, "12 11 6 1", "input:T min:T? max:T?", "output:T", "", "T=num",
                   infer_clip, lift_clip, expand_clip),
    UNARY("Sigmoid", 13, 6, "6 1", "", "T=float", ortc_lift_consumed, expand_sigmoid),
    UNARY("Tanh", 13, 6, "6 1", "", "T=float", ortc_lift_consumed, expand_tanh),
    UNARY("Gelu", 20, 20, "", "approximate:s=none", "T=float", NULL, expand_gelu),
    UNARY("Erf", 13, 9, "9", "", "T=float", NULL, expand_erf),
    UNARY("HardSwish", 22, 14, "14", "", "T=float", NULL, expand_hard_swish),
    UNARY("HardSigmoid", 22, 6, "6 1", "alpha:f=0.2 beta:f=0.5", "T=float", ortc_lift_consumed,
          expand_hard_sigmoid),
    UNARY("Elu", 22, 6, "6 1", "alpha:f=1", "T=float", ortc_lift_consumed, expand_elu),
    UNARY("Selu", 22, 6, "6 1", "alpha:f? gamma:f?", "T=float", lift_selu, expand_selu),
    UNARY("Celu", 28, 12, "12", "alpha:f=1", "T=float", NULL, expand_celu),
    UNARY("Softplus", 22, 1, "1", "", "T=float", NULL, expand_softplus),
    UNARY("Softsign", 22, 1, "1", "", "T=float", NULL, expand_softsign),
    UNARY("Mish", 22, 18, "18", "", "T=float", NULL, expand_mish),
    UNARY("Swish", 24, 24, "", "alpha:f=1", "T=float", NULL, expand_swish),
    UNARY("ThresholdedRelu", 22, 10, "10", "alpha:f=1", "T=float", NULL, expand_thresholded_relu),
    ORTC_POINTWISE("", "Shrink", 9, 9, "", "input:T", "output:T", "bias:f=0 lambd:f=0.5",
                   "T=int,uint,f16,f32,f64", infer_same, NULL, expand_shrink),
    ORTC_POINTWISE("", "SwiGLU", 28, 28, "", "A:T B:T", "Y:T", "alpha:f=1", "T=float", infer_swiglu, NULL,
                   expand_swiglu),
};
ORTC_FAMILY(activation, ops, &ortc_kernels_ref_activation);
