/* kernels/norm/ref_batch.c: BatchNormalization in double: y = (x - mean) / sqrt(var + epsilon) * scale + B
 * per channel. */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/shape.h"

typedef struct batch_state {
    double epsilon, momentum;
    bool training;
} batch_state;

typedef struct batch_job {
    const batch_state *state;
    const ortc_call *call;
    int64_t samples, channels, inner; /* X as [samples, channels, inner] */
    double *mean, *var;               /* training: the batch's own, per channel; else NULL */
} batch_job;

/* The mean of a channel and the mean of squared distances from it. */
static void measure_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const batch_job *j = arg;
    const ortc_view *x = &j->call->in[0];
    const double count = (double)j->samples * (double)j->inner;
    for (int64_t c = begin; c < end; c++) {
        double sum = 0, squares = 0;
        for (int64_t n = 0; n < j->samples; n++)
            for (int64_t i = 0; i < j->inner; i++)
                sum += ortc_load_f64(x->data, x->dtype, (n * j->channels + c) * j->inner + i);
        const double mean = sum / count;
        for (int64_t n = 0; n < j->samples; n++)
            for (int64_t i = 0; i < j->inner; i++) {
                const double d = ortc_load_f64(x->data, x->dtype, (n * j->channels + c) * j->inner + i) -
                                 mean;
                squares += d * d;
            }
        j->mean[c] = mean;
        j->var[c] = squares / count;
    }
}

ORTC_INLINE void batch_loop(ortc_dtype t, const batch_job *j, int64_t begin, int64_t end)
{
    const ortc_view *in = j->call->in;
    double mean = 0, factor = 0, offset = 0;
    int64_t channel = -1;
    for (int64_t i = begin; i < end; i++) {
        const int64_t c = i / j->inner % j->channels;
        if (c != channel) {
            channel = c;
            mean = j->mean ? j->mean[c] : ortc_load_f64(in[3].data, in[3].dtype, c);
            const double var = j->mean ? j->var[c] : ortc_load_f64(in[4].data, in[4].dtype, c);
            factor = ortc_load_f64(in[1].data, in[1].dtype, c) / sqrt(var + j->state->epsilon);
            offset = ortc_load_f64(in[2].data, in[2].dtype, c);
        }
        ortc_store_f64(j->call->out[0].data, t, i,
                       (ortc_load_f64(in[0].data, t, i) - mean) * factor + offset);
    }
}
static void batch_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const batch_job *j = arg;
    ORTC_SPECIALISE(j->call->in[0].dtype, batch_loop, j, begin, end);
}

static ortc_status batch_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    batch_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (batch_state){ortc_node_float(n, "epsilon", 1e-5F), ortc_node_float(n, "momentum", 0.9F),
                       ortc_node_int(n, "training_mode", 0) != 0};
    *out = s;
    return ORTC_OK;
}

static int64_t channels_of(const ortc_view *x) { return x->rank > 1 ? x->dims[1] : 1; }

static ortc_status batch_plan(const void *state, ortc_plan *p, void **pstate)
{
    const batch_state *s = state;
    const int64_t channels = channels_of(&p->in[0]);
    if (s->training && channels > INT64_MAX / 64)
        return ortc_plan_fail(p, ORTC_LIMIT, "%lld channels", (long long)channels);
    if (s->training) ortc_plan_workspace(p, (size_t)channels * 2 * sizeof(double), 0);
    ortc_plan_in_place(p, 0, 0);
    return ORTC_OK;
}

static ortc_status batch_run(const void *state, const void *pstate, ortc_call *c)
{
    const batch_state *s = state;
    const ortc_view *x = &c->in[0];
    batch_job j = {s, c, x->rank > 0 ? x->dims[0] : 1, channels_of(x), 1, NULL, NULL};
    for (int32_t d = 2; d < x->rank; d++) j.inner *= x->dims[d];
    if (s->training) {
        j.mean = c->workspace;
        j.var = j.mean + j.channels;
        ORTC_TRY(ortc_parallel(c, j.channels, 1, measure_chunk, &j));
    }
    for (uint32_t o = 1; o < c->n_out && o < 3; o++)
        for (int64_t i = 0; c->out[o].dtype && i < j.channels; i++) {
            const double given = ortc_load_f64(c->in[o + 2].data, c->in[o + 2].dtype, i);
            const double own = j.mean ? (o == 1 ? j.mean : j.var)[i] : given;
            ortc_store_f64(c->out[o].data, c->out[o].dtype, i, given * s->momentum + own * (1 - s->momentum));
        }
    const int64_t count = ortc_view_count(x);
    return count && c->out[0].dtype ? ortc_parallel(c, count, ortc_grain(4), batch_chunk, &j) : ORTC_OK;
}

static const ortc_kernel batch_ref = {.size = ORTC_SIZED(ortc_kernel),
                                      .name = "batch_normalization.ref",
                                      .prepare = batch_prepare,
                                      .plan = batch_plan,
                                      .run = batch_run};

ORTC_KERNELS(ref, norm_batch,
             ORTC_KERNEL("BatchNormalization", 15, ORTC_NEWEST,
                         (ORTC_TYPES_FLOAT, ORTC_TYPES_FLOAT, ORTC_TYPES_FLOAT), &batch_ref));
