/* kernels/random/ref_dropout.c: Dropout on ref: a view of its input, unless a model asks for training.
 *
 * Then each element is kept with probability 1 - ratio and scaled by 1 / (1 - ratio). Where the node has a
 * seed, they are those that numpy would keep (twister.h), as the standard's cases have it; else which ones
 * depends on the run's seed and the element's position alone (kernels/common/random.h). Threads do not matter
 * either way.
 */
#include <stdlib.h>

#include "kernels/common/random.h"
#include "kernels/common/shape.h"
#include "kernels/random/twister.h"

typedef struct dropout_state {
    bool seeded;
    uint32_t seed; /* its low bits: numpy takes no others */
} dropout_state;

typedef struct dropout_job {
    const ortc_view *x;
    ortc_view *y, *mask; /* NULL: not wanted */
    double ratio;        /* 0 keeps everything */
    uint64_t key;
} dropout_job;

static ortc_status dropout_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    dropout_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->seeded = ortc_node_attr(n, "seed").kind == ORTC_ATTR_INT;
    s->seed = (uint32_t)ortc_node_int(n, "seed", 0);
    *out = s;
    return ORTC_OK;
}

static bool training(const ortc_view *in, uint32_t n_in)
{
    return n_in > 2 && in[2].dtype && ortc_view_count(&in[2]) > 0 && ((const uint8_t *)in[2].data)[0];
}

static ortc_status dropout_plan(const void *state, ortc_plan *p, void **pstate)
{
    const bool asked = p->n_in > 2 && p->in[2].dtype, known = asked && p->in[2].data && p->in[2].rank == 0;
    const bool mask = p->n_out > 1 && p->out[1].dtype;
    if (!mask && (!asked || (known && !training(p->in, p->n_in)))) ortc_plan_view(p, 0, 0, 0);
    return ORTC_OK;
}

static void drop(const dropout_job *j, int64_t i, bool keep)
{
    const ortc_dtype t = j->x->dtype;
    if (j->y && j->ratio == 0)
        ortc_move_element(j->y->data, i, j->x->data, i, ortc_dtype_bits(t));
    else if (j->y)
        ortc_store_f64(j->y->data, t, i, keep ? ortc_load_f64(j->x->data, t, i) / (1 - j->ratio) : 0);
    if (j->mask) ((uint8_t *)j->mask->data)[i] = keep;
}

static void dropout_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const dropout_job *j = arg;
    for (int64_t i = begin; i < end; i++)
        drop(j, i, j->ratio == 0 || ortc_random_uniform(j->key, (uint64_t)i) >= j->ratio);
}

static ortc_status drop_as_numpy(const dropout_job *j, uint32_t seed, ortc_call *c)
{
    const int64_t count = ortc_view_count(j->x);
    ortc_twister t;
    ortc_twister_seed(&t, seed);
    for (int64_t i = 0; i < count; i++) {
        if (i % 65536 == 65535) ORTC_TRY(ortc_poll(c));
        drop(j, i, ortc_twister_uniform(&t) >= j->ratio);
    }
    return ORTC_OK;
}

static ortc_status dropout_run(const void *state, const void *pstate, ortc_call *c)
{
    const dropout_state *s = state;
    dropout_job j = {&c->in[0], c->out[0].dtype ? &c->out[0] : NULL,
                     c->n_out > 1 && c->out[1].dtype ? &c->out[1] : NULL};
    if (training(c->in, c->n_in)) {
        j.ratio = c->in[1].dtype && ortc_view_count(&c->in[1]) > 0
                      ? ortc_load_f64(c->in[1].data, c->in[1].dtype, 0)
                      : 0.5;
        if (!(j.ratio >= 0 && j.ratio < 1))
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "ratio is %g, expected 0 <= ratio < 1", j.ratio);
        if (s->seeded && j.ratio > 0) return drop_as_numpy(&j, s->seed, c);
        j.key = ortc_random_key(ortc_call_seed(c));
    }
    return ortc_parallel(c, ortc_view_count(j.x), ortc_grain(8), dropout_chunk, &j);
}

const ortc_kernel ortc_ref_dropout = {.size = ORTC_SIZED(ortc_kernel),
                                      .name = "dropout.ref",
                                      .host_in = 6,
                                      .prepare = dropout_prepare,
                                      .plan = dropout_plan,
                                      .run = dropout_run};
