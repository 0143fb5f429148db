/* kernels/activation/ref.c: the activations, one element at a time in double; Relu, Clip and PRelu also on
 * integers.
 *
 * NaN stays NaN, but for ThresholdedRelu, which asks whether x is above a bound. A function gets its
 * attributes as two numbers, p[0] and p[1].
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/shape.h"

typedef double (*activation_fn)(double x, const double *p);

static double clamp01(double x) { return x < 0 ? 0 : x > 1 ? 1 : x; }
static double softplus_of(double x) { return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x)); }

static double relu(double x, const double *p) { return x < 0 ? 0 : x; }
static double leaky_relu(double x, const double *p) { return x < 0 ? p[0] * x : x; }
static double sigmoid(double x, const double *p) { return 1 / (1 + exp(-x)); }
static double tanh_(double x, const double *p) { return tanh(x); }
static double gelu(double x, const double *p) { return 0.5 * x * erfc(-x * 0.70710678118654752440); }
static double gelu_tanh(double x, const double *p)
{
    return 0.5 * x * (1 + tanh(0.79788456080286535588 * (x + 0.044715 * x * x * x))); /* sqrt(2 / pi) */
}
static double erf_(double x, const double *p) { return erf(x); }
static double hard_swish(double x, const double *p) { return x * clamp01(x / 6 + 0.5); }
static double hard_sigmoid(double x, const double *p) { return clamp01(p[0] * x + p[1]); }
static double elu(double x, const double *p) { return x < 0 ? p[0] * expm1(x) : x; }
static double selu(double x, const double *p) { return p[1] * (x <= 0 ? p[0] * expm1(x) : x); }
static double celu(double x, const double *p) { return x > 0 ? x : p[0] * expm1(x / p[0]); }
static double softplus(double x, const double *p) { return softplus_of(x); }
static double softsign(double x, const double *p) { return x / (1 + fabs(x)); }
static double mish(double x, const double *p) { return x * tanh(softplus_of(x)); }
static double swish(double x, const double *p) { return x / (1 + exp(-p[0] * x)); }
static double thresholded_relu(double x, const double *p) { return x > p[0] ? x : 0; }

static const struct activation {
    const char *op;
    activation_fn fn;
    const char *first, *second;          /* attributes */
    float first_default, second_default; /* where the schema has none */
} activations[] = {
    {"Relu", relu},
    {"LeakyRelu", leaky_relu, "alpha"},
    {"Sigmoid", sigmoid},
    {"Tanh", tanh_},
    {"Gelu", gelu},
    {"Erf", erf_},
    {"HardSwish", hard_swish},
    {"HardSigmoid", hard_sigmoid, "alpha", "beta"},
    {"Elu", elu, "alpha"},
    {"Selu", selu, "alpha", "gamma", 1.67326319217681884765625F, 1.05070102214813232421875F},
    {"Celu", celu, "alpha"},
    {"Softplus", softplus},
    {"Softsign", softsign},
    {"Mish", mish},
    {"Swish", swish, "alpha"},
    {"SwiGLU", swish, "alpha"},
    {"ThresholdedRelu", thresholded_relu, "alpha"},
};

typedef struct activation_state {
    activation_fn fn;
    double p[2];
} activation_state;

typedef struct activation_job {
    const activation_state *state;
    const void *x;
    void *y;
    ortc_dtype t;
} activation_job;

static ortc_status activation_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *op = ortc_node_op(n), *approximate = ortc_node_string(n, "approximate", "none");
    size_t i = 0;
    while (strcmp(activations[i].op, op) != 0)
        if (++i == sizeof activations / sizeof *activations)
            return ortc_prep_fail(prep, ORTC_INTERNAL, "no activation '%s'", op);
    activation_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->fn = activations[i].fn;
    if (activations[i].first)
        s->p[0] = ortc_node_float(n, activations[i].first, activations[i].first_default);
    if (activations[i].second)
        s->p[1] = ortc_node_float(n, activations[i].second, activations[i].second_default);
    if (s->fn == gelu && !strcmp(approximate, "tanh")) {
        s->fn = gelu_tanh;
    } else if (s->fn == gelu && strcmp(approximate, "none") != 0) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                              "attribute approximate is '%s', expected none or tanh", approximate);
    }
    *out = s;
    return ORTC_OK;
}

static ortc_status in_place(const void *state, ortc_plan *p, void **pstate)
{
    ortc_plan_in_place(p, 0, 0);
    return ORTC_OK;
}

ORTC_INLINE void activation_loop(ortc_dtype t, const activation_job *j, int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        if (ortc_class_of(t) == ORTC_CLASS_FLOAT) {
            ortc_store_f64(j->y, t, i, j->state->fn(ortc_load_f64(j->x, t, i), j->state->p));
        } else { /* only Relu is defined on integers */
            const int64_t v = ortc_load_i64(j->x, t, i);
            ortc_store_i64(j->y, t, i, v < 0 ? 0 : v);
        }
    }
}
static void activation_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const activation_job *j = arg;
    ORTC_SPECIALISE(j->t, activation_loop, j, begin, end);
}
static ortc_status activation_run(const void *state, const void *pstate, ortc_call *c)
{
    activation_job j = {state, c->in[0].data, c->out[0].data, c->out[0].dtype};
    return ortc_parallel(c, ortc_view_count(&c->out[0]), ortc_grain(20), activation_chunk, &j);
}

/* ---- Clip: bounds are inputs --------------------------------------------------------------------------- */

typedef struct clip_job {
    const void *x, *low, *high; /* bounds: one element, NULL for none */
    void *y;
    ortc_dtype t;
} clip_job;

#define CLIP_LOOP(type, load, store) \
    for (int64_t i = begin; i < end; i++) { \
        type v = load(j->x, t, i); \
        if (j->low) { \
            const type low = load(j->low, t, 0); \
            v = v < low || low != low ? low : v; \
        } \
        if (j->high) { /* the upper bound wins where they cross */ \
            const type high = load(j->high, t, 0); \
            v = v > high || high != high ? high : v; \
        } \
        store(j->y, t, i, v); \
    }

static void clip_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const clip_job *j = arg;
    const ortc_dtype t = j->t;
    switch (ortc_class_of(t)) {
    case ORTC_CLASS_FLOAT: CLIP_LOOP(double, ortc_load_f64, ortc_store_f64) break;
    case ORTC_CLASS_INT: CLIP_LOOP(int64_t, ortc_load_i64, ortc_store_i64) break;
    default: CLIP_LOOP(uint64_t, ortc_load_u64, ortc_store_u64) break;
    }
}
static const void *bound(const ortc_call *c, uint32_t in)
{
    return c->n_in > in && c->in[in].dtype && ortc_view_count(&c->in[in]) > 0 ? c->in[in].data : NULL;
}
static ortc_status clip_run(const void *state, const void *pstate, ortc_call *c)
{
    clip_job j = {c->in[0].data, bound(c, 1), bound(c, 2), c->out[0].data, c->out[0].dtype};
    return ortc_parallel(c, ortc_view_count(&c->out[0]), ortc_grain(10), clip_chunk, &j);
}

/* ---- PRelu: a slope per element, stretched ------------------------------------------------------------- */

typedef struct prelu_job {
    const ortc_view *x, *slope;
    ortc_view *y;
    ortc_walk walk;
} prelu_job;

static void prelu_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const prelu_job *j = arg;
    const ortc_dtype t = j->y->dtype;
    const ortc_class class = ortc_class_of(t);
    ortc_walk w = j->walk;
    ortc_walk_seek(&w, begin);
    for (int64_t i = begin; i < end; i++, ortc_walk_next(&w)) {
        if (class == ORTC_CLASS_FLOAT) {
            const double v = ortc_load_f64(j->x->data, t, i);
            ortc_store_f64(j->y->data, t, i, v < 0 ? v * ortc_load_f64(j->slope->data, t, w.at[0]) : v);
        } else { /* unsigned ones are never below zero */
            uint64_t v = (uint64_t)ortc_load_i64(j->x->data, t, i);
            if (class == ORTC_CLASS_INT && (int64_t)v < 0)
                v *= (uint64_t)ortc_load_i64(j->slope->data, t, w.at[0]);
            ortc_store_u64(j->y->data, t, i, v);
        }
    }
}
static ortc_status prelu_run(const void *state, const void *pstate, ortc_call *c)
{
    prelu_job j = {&c->in[0], &c->in[1], &c->out[0]};
    const int64_t count = ortc_view_count(j.y);
    ortc_walk_init(&j.walk, j.y->rank, j.y->dims);
    ortc_walk_view(&j.walk, j.slope);
    ortc_walk_merge(&j.walk);
    return count ? ortc_parallel(c, count, ortc_grain(10), prelu_chunk, &j) : ORTC_OK;
}

static const ortc_kernel activation_ref = {.size = ORTC_SIZED(ortc_kernel),
                                           .name = "activation.ref",
                                           .prepare = activation_prepare,
                                           .plan = in_place,
                                           .run = activation_run};
static const ortc_kernel clip_ref = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "clip.ref",
                                     .plan = in_place,
                                     .run = clip_run};
static const ortc_kernel prelu_ref = {.size = ORTC_SIZED(ortc_kernel),
                                      .name = "prelu.ref",
                                      .plan = in_place,
                                      .run = prelu_run};

extern const ortc_kernel ortc_ref_shrink, ortc_ref_swiglu; /* ref_gates.c */

#define FLOATS(op, since) ORTC_KERNEL(op, since, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &activation_ref)
ORTC_KERNELS(ref, activation,
             ORTC_KERNEL("Relu", 14, ORTC_NEWEST, (ORTC_TYPES_FLOAT | ORTC_TYPES_INT), &activation_ref),
             FLOATS("LeakyRelu", 16), FLOATS("Sigmoid", 13), FLOATS("Tanh", 13), FLOATS("Gelu", 20),
             FLOATS("Erf", 13), FLOATS("HardSwish", 22), FLOATS("HardSigmoid", 22), FLOATS("Elu", 22),
             FLOATS("Selu", 22), FLOATS("Celu", 28), FLOATS("Softplus", 22), FLOATS("Softsign", 22),
             FLOATS("Mish", 22), FLOATS("Swish", 24), FLOATS("ThresholdedRelu", 22),
             ORTC_KERNEL("Shrink", 9, ORTC_NEWEST,
                         ((ORTC_TYPES_FLOAT & ~ORTC_TYPE(ORTC_BF16)) | ORTC_TYPES_INT | ORTC_TYPES_UINT),
                         &ortc_ref_shrink),
             ORTC_KERNEL("SwiGLU", 28, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &ortc_ref_swiglu),
             ORTC_KERNEL("Clip", 13, ORTC_NEWEST, (ORTC_TYPES_NUM), &clip_ref),
             ORTC_KERNEL("PRelu", 16, ORTC_NEWEST,
                         (ORTC_TYPES_FLOAT | ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64) | ORTC_TYPE(ORTC_U32) |
                          ORTC_TYPE(ORTC_U64)),
                         &prelu_ref));
