/* kernels/random/ref.c: random operators on ref, on the generator of kernels/common/random.h: element i of a
 * node's result depends on the node's seed and on i alone.
 */
#include <stdlib.h>

#include "kernels/common/random.h"
#include "kernels/common/shape.h"

enum { NORMAL, UNIFORM, BERNOULLI };

typedef struct random_state {
    int what;
    ortc_random_seed seed;
    double a, b; /* mean and scale; low and the range */
} random_state;

typedef struct random_job {
    const random_state *state;
    const ortc_view *x; /* Bernoulli's probabilities */
    ortc_view *y;
    uint64_t key;
} random_job;

static ortc_status random_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    random_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->seed = ortc_random_seed_of(n);
    if (!strcmp(ortc_node_op(n), "Bernoulli")) {
        s->what = BERNOULLI;
    } else if (!strncmp(ortc_node_op(n), "RandomNormal", 12)) {
        s->what = NORMAL;
        s->a = (double)ortc_node_float(n, "mean", 0);
        s->b = (double)ortc_node_float(n, "scale", 1);
    } else {
        s->what = UNIFORM;
        s->a = (double)ortc_node_float(n, "low", 0);
        s->b = (double)ortc_node_float(n, "high", 1) - s->a;
    }
    *out = s;
    return ORTC_OK;
}

static void random_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const random_job *j = arg;
    const random_state *s = j->state;
    for (int64_t i = begin; i < end; i++) {
        const uint64_t at = (uint64_t)i;
        double v;
        if (s->what == NORMAL)
            v = s->a + s->b * ortc_random_normal(j->key, at);
        else if (s->what == UNIFORM)
            v = s->a + s->b * ortc_random_uniform(j->key, at);
        else
            v = ortc_random_uniform(j->key, at) < ortc_load_f64(j->x->data, j->x->dtype, i);
        ortc_store_f64(j->y->data, j->y->dtype, i, v);
    }
}

static ortc_status random_run(const void *state, const void *pstate, ortc_call *c)
{
    const random_state *s = state;
    random_job j = {s, s->what == BERNOULLI ? &c->in[0] : NULL, &c->out[0], ortc_random_key_of(&s->seed, c)};
    return ortc_parallel(c, ortc_view_count(j.y), ortc_grain(40), random_chunk, &j);
}

/* ---- Multinomial: the class of the largest logarithm of weight + Gumbel noise -------------------------- */

typedef struct draw_job {
    const ortc_view *x;
    ortc_view *y;
    int64_t classes, samples;
    uint64_t key;
} draw_job;

static void draw_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const draw_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i / j->samples * j->classes;
        double max = -INFINITY, best = -INFINITY;
        int64_t pick = 0;
        for (int64_t k = 0; k < j->classes; k++)
            max = fmax(max, ortc_load_f64(j->x->data, j->x->dtype, row + k));
        for (int64_t k = 0; k < j->classes; k++) {
            const double u = ortc_random_uniform(j->key, (uint64_t)(i * j->classes + k));
            const double v = ortc_load_f64(j->x->data, j->x->dtype, row + k) - max - log(-log(u + 0x1p-54));
            if (v > best) {
                best = v;
                pick = k;
            }
        }
        ortc_store_i64(j->y->data, j->y->dtype, i, pick);
    }
}

static ortc_status draw_run(const void *state, const void *pstate, ortc_call *c)
{
    draw_job j = {&c->in[0], &c->out[0], c->in[0].dims[1], c->out[0].dims[1], ortc_random_key_of(state, c)};
    const int64_t count = ortc_view_count(j.y);
    if (count && !j.classes)
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "there is no class to draw from");
    return ortc_parallel(c, count, ortc_grain(60.0 * (double)j.classes), draw_chunk, &j);
}

static ortc_status draw_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    ortc_random_seed *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = ortc_random_seed_of(n);
    *out = s;
    return ORTC_OK;
}

static const ortc_kernel random_ref = {.size = ORTC_SIZED(ortc_kernel),
                                       .name = "random.ref",
                                       .prepare = random_prepare,
                                       .run = random_run};
static const ortc_kernel multinomial_ref = {.size = ORTC_SIZED(ortc_kernel),
                                            .name = "multinomial.ref",
                                            .prepare = draw_prepare,
                                            .run = draw_run};

extern const ortc_kernel ortc_ref_dropout; /* ref_dropout.c */

#define F8 \
    (ORTC_TYPE(ORTC_F8E4M3FN) | ORTC_TYPE(ORTC_F8E4M3FNUZ) | ORTC_TYPE(ORTC_F8E5M2) | \
     ORTC_TYPE(ORTC_F8E5M2FNUZ))
#define BOOL ORTC_TYPE(ORTC_BOOL)
#define ANY (ORTC_TYPES_NUM | BOOL | ORTC_TYPE(ORTC_STRING) | ORTC_TYPE(ORTC_C64) | ORTC_TYPE(ORTC_C128))
#define K(op, kernel, ...) ORTC_KERNEL(op, 22, ORTC_NEWEST, (__VA_ARGS__), kernel)
ORTC_KERNELS(ref, random, K("RandomNormal", &random_ref, ORTC_TYPES_FLOAT),
             K("RandomUniform", &random_ref, ORTC_TYPES_FLOAT),
             K("RandomNormalLike", &random_ref, ANY, ORTC_TYPES_FLOAT),
             K("RandomUniformLike", &random_ref, ANY, ORTC_TYPES_FLOAT),
             K("Bernoulli", &random_ref, ORTC_TYPES_FLOAT, ORTC_TYPES_NUM | BOOL),
             K("Multinomial", &multinomial_ref, ORTC_TYPES_FLOAT, ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64)),
             K("Dropout", &ortc_ref_dropout, ORTC_TYPES_FLOAT | F8, ORTC_TYPES_FLOAT | F8, BOOL));
