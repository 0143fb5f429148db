/* kernels/activation/expand.h: expansions (ortc/program.h) that other families compare programs with. */
#ifndef ORTC_KERNELS_ACTIVATION_EXPAND_H
#define ORTC_KERNELS_ACTIVATION_EXPAND_H

#include "ortc/program.h"

static inline int32_t ortc_expand_sigmoid(ortc_pw_builder *b, int32_t x)
{
    return ortc_pw_1(b, ORTC_PW_SIGMOID, x);
}
static inline int32_t ortc_expand_tanh(ortc_pw_builder *b, int32_t x)
{
    return ortc_pw_1(b, ORTC_PW_TANH, x);
}
static inline int32_t ortc_expand_silu(ortc_pw_builder *b, int32_t x)
{
    return ortc_pw_2(b, ORTC_PW_MUL, x, ortc_expand_sigmoid(b, x));
}
/* x / 2 (1 + f), where f of x is an erf or a tanh */
static inline int32_t ortc_expand_half(ortc_pw_builder *b, int32_t x, int32_t f)
{
    return ortc_pw_2(b, ORTC_PW_MUL, ortc_pw_2(b, ORTC_PW_MUL, x, ortc_pw_const(b, x, 0.5)),
                     ortc_pw_2(b, ORTC_PW_ADD, f, ortc_pw_const(b, x, 1)));
}
static inline int32_t ortc_expand_gelu(ortc_pw_builder *b, int32_t x)
{
    const int32_t root = ortc_pw_2(b, ORTC_PW_MUL, x, ortc_pw_const(b, x, 0.70710678118654752440));
    return ortc_expand_half(b, x, ortc_pw_1(b, ORTC_PW_ERF, root));
}
static inline int32_t ortc_expand_gelu_tanh(ortc_pw_builder *b, int32_t x)
{
    const double k = 0.79788456080286535588; /* sqrt(2 / pi) */
    const int32_t square = ortc_pw_2(b, ORTC_PW_MUL, x, x);
    const int32_t by = ortc_pw_2(b, ORTC_PW_ADD,
                                 ortc_pw_2(b, ORTC_PW_MUL, square, ortc_pw_const(b, x, k * 0.044715)),
                                 ortc_pw_const(b, x, k));
    return ortc_expand_half(b, x, ortc_pw_1(b, ORTC_PW_TANH, ortc_pw_2(b, ORTC_PW_MUL, by, x)));
}
static inline int32_t ortc_expand_hard_swish(ortc_pw_builder *b, int32_t x)
{
    const int32_t line = ortc_pw_2(b, ORTC_PW_ADD, ortc_pw_2(b, ORTC_PW_MUL, x, ortc_pw_const(b, x, 1.0 / 6)),
                                   ortc_pw_const(b, x, 0.5));
    const int32_t above = ortc_pw_2(b, ORTC_PW_MAX, line, ortc_pw_const(b, x, 0));
    return ortc_pw_2(b, ORTC_PW_MUL, x, ortc_pw_2(b, ORTC_PW_MIN, above, ortc_pw_const(b, x, 1)));
}

/* Whether value v of p is what `expand` makes of value x, up to the order of operands of sums and products.
 */
int ortc_expands_to(const ortc_pointwise *p, uint32_t v, uint32_t x,
                    int32_t (*expand)(ortc_pw_builder *, int32_t x));
/* The same of ortc_expand_gelu, _gelu_tanh, _hard_swish, for those who have no other use of them (op.c). */
int ortc_is_gelu(const ortc_pointwise *p, uint32_t v, uint32_t x);
int ortc_is_gelu_tanh(const ortc_pointwise *p, uint32_t v, uint32_t x);
int ortc_is_hard_swish(const ortc_pointwise *p, uint32_t v, uint32_t x);

#endif
