/* kernels/loss/ref.c: NegativeLogLikelihoodLoss on ref. First each sample's own loss and weight, in double,
 * in the workspace; then their sum, in order. A sample of the class ignore_index weighs nothing.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/shape.h"

enum { NONE, SUM, MEAN };

typedef struct loss_state {
    bool has_ignored;
    int reduction;
    int64_t ignored;
} loss_state;

typedef struct loss_job {
    const loss_state *state;
    const ortc_view *x, *target, *weight; /* weight: NULL for none */
    int64_t classes, inner;
    double *losses, *weights; /* one for each sample */
} loss_job;

static void loss_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const loss_job *j = arg;
    const loss_state *s = j->state;
    const ortc_dtype t = j->x->dtype;
    for (int64_t i = begin; i < end; i++) {
        const int64_t first = i / j->inner * j->classes * j->inner + i % j->inner;
        const int64_t class = ortc_load_i64(j->target->data, j->target->dtype, i);
        j->losses[i] = j->weights[i] = 0;
        if (s->has_ignored && class == s->ignored) continue;
        j->weights[i] = j->weight ? ortc_load_f64(j->weight->data, t, class) : 1;
        j->losses[i] = j->weights[i] * -ortc_load_f64(j->x->data, t, first + class * j->inner);
    }
}

static ortc_status loss_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *how = ortc_node_string(n, "reduction", "mean");
    const ortc_attr ignored = ortc_node_attr(n, "ignore_index");
    loss_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (loss_state){ignored.kind == ORTC_ATTR_INT,
                      !strcmp(how, "none")  ? NONE
                      : !strcmp(how, "sum") ? SUM
                                            : MEAN,
                      ignored.i};
    *out = s;
    return ORTC_OK;
}

static ortc_status loss_plan(const void *state, ortc_plan *p, void **pstate)
{
    const int64_t samples = ortc_view_count(&p->in[1]);
    if ((uint64_t)samples > SIZE_MAX / 32)
        return ortc_plan_fail(p, ORTC_LIMIT, "%lld samples are too many", (long long)samples);
    ortc_plan_workspace(p, (size_t)samples * 2 * sizeof(double), 0);
    return ORTC_OK;
}

static ortc_status loss_run(const void *state, const void *pstate, ortc_call *c)
{
    const loss_state *s = state;
    loss_job j = {.state = s,
                  .x = &c->in[0],
                  .target = &c->in[1],
                  .weight = c->n_in > 2 && c->in[2].dtype ? &c->in[2] : NULL,
                  .classes = c->in[0].dims[1],
                  .inner = 1};
    const int64_t samples = ortc_view_count(j.target);
    double loss = 0, weight = 0;
    for (int64_t i = 0; i < samples; i++) {
        const int64_t class = ortc_load_i64(j.target->data, j.target->dtype, i);
        if ((class < 0 || class >= j.classes) && !(s->has_ignored && class == s->ignored))
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "class %lld (sample %lld) is not one of %lld",
                                  (long long)class, (long long)i, (long long)j.classes);
        if (i % 65536 == 65535) ORTC_TRY(ortc_poll(c));
    }
    for (int32_t d = 2; d < j.x->rank && samples > 0; d++) j.inner *= j.x->dims[d];
    j.losses = c->workspace;
    j.weights = j.losses + samples;
    ORTC_TRY(ortc_parallel(c, samples, ortc_grain(20), loss_chunk, &j));
    if (!c->out[0].dtype) return ORTC_OK;
    for (int64_t i = 0; i < samples; i++) {
        if (s->reduction == NONE) ortc_store_f64(c->out[0].data, c->out[0].dtype, i, j.losses[i]);
        loss += j.losses[i];
        weight += j.weights[i];
        if (i % 65536 == 65535) ORTC_TRY(ortc_poll(c));
    }
    if (s->reduction != NONE)
        ortc_store_f64(c->out[0].data, c->out[0].dtype, 0, s->reduction == MEAN ? loss / weight : loss);
    return ORTC_OK;
}

static const ortc_kernel loss_ref = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "loss.ref",
                                     .prepare = loss_prepare,
                                     .plan = loss_plan,
                                     .run = loss_run};

#define INDEX (ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64))
ORTC_KERNELS(ref, loss,
             ORTC_KERNEL("NegativeLogLikelihoodLoss", 22, ORTC_NEWEST, (ORTC_TYPES_FLOAT, INDEX), &loss_ref));
