/* The interpreter of programs.h, and activations written again, by the book. */
#include "programs.h"

#include <float.h>
#include <math.h>

#define EPS ((double)FLT_EPSILON)

static double larger(double a, double b) { return a > b ? a : b; }

/* f(a) with a slope of at most `slope` around a, computed to a few units in the last place. */
static bounded function(double v, bounded a, double slope)
{
    return (bounded){v, slope * a.e + 4 * EPS * fabs(v) + DBL_MIN};
}

static bounded step(const ortc_pw_step *s, const bounded *made, bounded first, const double *in)
{
    const bounded a = made[s->a], b = made[s->b], c = made[s->c];
    double v;
    switch (s->op) {
    case ORTC_PW_LOAD: return s->a ? (bounded){in[s->a], 0} : first;
    case ORTC_PW_CONST: return (bounded){s->k.f, 0};
    case ORTC_PW_ADD: v = a.v + b.v; return (bounded){v, a.e + b.e + EPS * fabs(v)};
    case ORTC_PW_SUB: v = a.v - b.v; return (bounded){v, a.e + b.e + EPS * fabs(v)};
    case ORTC_PW_MUL:
        v = a.v * b.v;
        return (bounded){v, fabs(a.v) * b.e + fabs(b.v) * a.e + a.e * b.e + EPS * fabs(v)};
    case ORTC_PW_MAX: return (bounded){isnan(a.v) || a.v > b.v ? a.v : b.v, larger(a.e, b.e)};
    case ORTC_PW_MIN: return (bounded){isnan(a.v) || a.v < b.v ? a.v : b.v, larger(a.e, b.e)};
    case ORTC_PW_NEG: return (bounded){-a.v, a.e};
    case ORTC_PW_ABS: return (bounded){fabs(a.v), a.e};
    case ORTC_PW_EXP: return function(exp(a.v), a, exp(a.v + a.e));
    case ORTC_PW_EXPM1: return function(expm1(a.v), a, exp(a.v + a.e));
    case ORTC_PW_LOG1P: return function(log1p(a.v), a, 1 / (1 + a.v - a.e));
    case ORTC_PW_TANH: return function(tanh(a.v), a, 1);
    case ORTC_PW_ERF: return function(erf(a.v), a, 1.13);
    case ORTC_PW_SIGMOID: return function(1 / (1 + exp(-a.v)), a, 0.25);
    case ORTC_PW_LT: return (bounded){a.v < b.v, fabs(a.v - b.v) <= a.e + b.e};
    case ORTC_PW_SELECT:
        v = a.v != 0 ? b.v : c.v;
        return (bounded){v, a.e != 0 ? larger(b.e, c.e) + fabs(b.v - c.v) : a.v != 0 ? b.e : c.e};
    case ORTC_PW_STORE: return a;
    default: return (bounded){NAN, NAN};
    }
}

static int reads(const ortc_pw_step *s, uint32_t v)
{
    const uint32_t n = ortc_pw_operands(s->op);
    return (n > 0 && s->a == v) || (n > 1 && s->b == v) || (n > 2 && s->c == v);
}

/* x * 0.5 * (1 + erf(...)), its last step. */
static int is_gelu(const ortc_pointwise *p, const ortc_pw_step *s)
{
    const ortc_pw_step *sum = s->op == ORTC_PW_MUL ? &p->steps[s->b] : NULL;
    return sum && sum->op == ORTC_PW_ADD &&
           (p->steps[sum->a].op == ORTC_PW_ERF || p->steps[sum->b].op == ORTC_PW_ERF);
}

bounded program_element(const ortc_pointwise *p, bounded first, const double *in)
{
    bounded made[ORTC_PW_STEPS];
    uint8_t rough[ORTC_PW_STEPS];
    /* what is only multiplied until it is stored as bf16 */
    for (uint32_t v = p->n; v-- > 0;) {
        rough[v] = p->steps[p->n - 1].type == ORTC_BF16;
        for (uint32_t i = v + 1; i < p->n; i++)
            if (reads(&p->steps[i], v))
                rough[v] &= p->steps[i].op == ORTC_PW_STORE || (p->steps[i].op == ORTC_PW_MUL && rough[i]);
    }
    for (uint32_t i = 0; i < p->n; i++) {
        const ortc_pw_step *s = &p->steps[i];
        made[i] = step(s, made, first, in);
        /* as exact as the cpu's say that they are (kernels/elementwise/program_vec.c) */
        if (rough[i] && s->op == ORTC_PW_SIGMOID) made[i].e += 2e-4 * fabs(made[i].v);
        if (rough[i] && is_gelu(p, s)) made[i].e += 4e-4 * fabs(made[i].v) + 1e-8;
    }
    return made[p->n - 1];
}

int program_finish(ortc_pw_builder *b, int32_t v, ortc_dtype type, program_space *out)
{
    ortc_pw_to(b, ORTC_PW_STORE, type, v);
    memset(out, 0, sizeof *out);
    out->p.bytes = (uint32_t)ortc_pointwise_bytes(b->n);
    out->p.n_in = (uint16_t)b->n_in;
    out->p.n = (uint16_t)b->n;
    memcpy(out->p.steps, b->steps, b->n * sizeof *b->steps);
    return !b->failed && ortc_pointwise_valid(&out->p, out->p.bytes);
}

const char *const program_acts[PROGRAM_ACTS] = {"none",      "relu", "clip",       "clip above", "leaky",
                                                "prelu",     "silu", "hard swish", "mish",       "gelu",
                                                "gelu tanh", "tanh", "elu"};

#define ADD(x, y) ortc_pw_2(b, ORTC_PW_ADD, x, y)
#define MUL(x, y) ortc_pw_2(b, ORTC_PW_MUL, x, y)
#define OF(f, x) ortc_pw_1(b, ORTC_PW_##f, x)
#define K(k) ortc_pw_const(b, x, k)
int32_t program_act(ortc_pw_builder *b, int act, int32_t x, int32_t slope)
{
    const int32_t zero = K(0), negative = ortc_pw_2(b, ORTC_PW_LT, x, zero);
    const int32_t positive = ortc_pw_2(b, ORTC_PW_MAX, x, zero);
    const int32_t cube = MUL(MUL(x, x), x);
    switch (act) {
    case 1: return positive;
    case 2: return ortc_pw_2(b, ORTC_PW_MIN, K(0.5), ortc_pw_2(b, ORTC_PW_MAX, x, K(-0.25)));
    case 3: return ortc_pw_2(b, ORTC_PW_MIN, x, K(0.5));
    case 4: return ortc_pw_select(b, negative, MUL(x, K(0.125)), x);
    case 5: return ortc_pw_select(b, negative, MUL(x, slope), x);
    case 6: return MUL(OF(SIGMOID, x), x);
    case 7:
        return MUL(x, ortc_pw_2(b, ORTC_PW_MIN,
                                ortc_pw_2(b, ORTC_PW_MAX, ADD(MUL(x, K(1.0 / 6)), K(0.5)), zero), K(1)));
    case 8: return MUL(x, OF(TANH, ADD(positive, OF(LOG1P, OF(EXP, OF(NEG, OF(ABS, x)))))));
    case 9: return MUL(MUL(x, K(0.5)), ADD(OF(ERF, MUL(x, K(0.70710678118654752))), K(1)));
    case 10:
        return MUL(MUL(x, K(0.5)),
                   ADD(OF(TANH, MUL(K(0.79788456080286536), ADD(x, MUL(K(0.044715), cube)))), K(1)));
    case 11: return OF(TANH, x);
    case 12: return ortc_pw_select(b, negative, OF(EXPM1, x), x);
    default: return x;
    }
}
