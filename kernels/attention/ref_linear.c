/* kernels/attention/ref_linear.c: LinearAttention and CausalConvWithState on ref: one position after the
 * other, in double. */
#include <math.h>
#include <stdlib.h>

#include "kernels/attention/linear.h"

/* ---- LinearAttention (linear.h) ---------------------------------------------------------------------- */

typedef struct linear_job {
    const ortc_linear_state *state;
    ortc_call *call;
    int64_t length, size, value_size;
    double scale;
} linear_job;

static double at3(const ortc_view *v, int64_t b, int64_t t, int64_t i)
{
    return ortc_load_f64(v->data, v->dtype, (b * v->dims[1] + t) * v->dims[2] + i);
}

/* scratch: S, then a vector of values. */
static void linear_step(const linear_job *j, int64_t b, int64_t h, int64_t t, double *S, double *value)
{
    const ortc_linear_state *s = j->state;
    const ortc_view *in = j->call->in, *y = &j->call->out[0];
    const int64_t D = j->size, V = j->value_size, group = s->q_heads / s->kv_heads;
    if (s->gated) {
        const bool per_head = in[4].dims[2] == s->kv_heads;
        for (int64_t d = 0; d < D; d++) {
            const double keep = exp(at3(&in[4], b, t, per_head ? h : h * D + d));
            for (int64_t m = 0; m < V; m++) S[d * V + m] *= keep;
        }
    }
    for (int64_t m = 0; m < V; m++) {
        value[m] = at3(&in[2], b, t, h * V + m);
        if (s->delta) {
            double known = 0;
            for (int64_t d = 0; d < D; d++) known += S[d * V + m] * at3(&in[1], b, t, h * D + d);
            value[m] = at3(&in[5], b, t, in[5].dims[2] == 1 ? 0 : h) * (value[m] - known);
        }
    }
    for (int64_t d = 0; d < D; d++) {
        const double k = at3(&in[1], b, t, h * D + d);
        for (int64_t m = 0; m < V; m++) S[d * V + m] += k * value[m];
    }
    for (int64_t q = h * group; y->dtype && q < (h + 1) * group; q++)
        for (int64_t m = 0; m < V; m++) {
            double sum = 0;
            for (int64_t d = 0; d < D; d++) sum += at3(&in[0], b, t, q * D + d) * S[d * V + m];
            ortc_store_f64(y->data, y->dtype, (b * j->length + t) * s->q_heads * V + q * V + m,
                           j->scale * sum);
        }
}

static void linear_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const linear_job *j = arg;
    const ortc_call *c = j->call;
    const int64_t each = j->size * j->value_size;
    double *S = scratch;
    for (int64_t r = begin; r < end; r++) {
        for (int64_t i = 0; i < each; i++)
            S[i] = c->n_in > 3 && c->in[3].dtype ? ortc_load_f64(c->in[3].data, c->in[3].dtype, r * each + i)
                                                 : 0;
        for (int64_t t = 0; t < j->length; t++)
            linear_step(j, r / j->state->kv_heads, r % j->state->kv_heads, t, S, S + each);
        for (int64_t i = 0; c->n_out > 1 && c->out[1].dtype && i < each; i++)
            ortc_store_f64(c->out[1].data, c->out[1].dtype, r * each + i, S[i]);
    }
}

ortc_status ortc_linear_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *rule = ortc_node_string(n, "update_rule", "gated_delta");
    ortc_linear_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (ortc_linear_state){ortc_node_int(n, "q_num_heads", 1), ortc_node_int(n, "kv_num_heads", 1),
                             !strncmp(rule, "gated", 5), strstr(rule, "delta") != NULL,
                             (double)ortc_node_float(n, "scale", 0)};
    *out = s;
    return ORTC_OK;
}

static ortc_status linear_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_linear_state *s = state;
    const size_t size = (size_t)(p->in[0].dims[2] / s->q_heads),
                 values = (size_t)(p->in[2].dims[2] / s->kv_heads);
    ortc_plan_workspace(p, 0, sizeof(double) * (size + 1) * values);
    return ORTC_OK;
}

static ortc_status linear_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_linear_state *s = state;
    linear_job j = {
        s, c, c->in[0].dims[1], c->in[0].dims[2] / s->q_heads, c->in[2].dims[2] / s->kv_heads, s->scale};
    if (j.scale == 0) j.scale = 1 / sqrt((double)j.size);
    const int64_t rows = c->in[0].dims[0] * s->kv_heads;
    return rows ? ortc_parallel(c, rows, 1, linear_chunk, &j) : ORTC_OK;
}

const ortc_kernel ortc_ref_linear_attention = {.size = ORTC_SIZED(ortc_kernel),
                                               .name = "linear_attention.ref",
                                               .prepare = ortc_linear_prepare,
                                               .plan = linear_plan,
                                               .run = linear_run};

/* ---- CausalConvWithState: y[l] = sum of w[k] * padded[l + k], padded = past, input --------------------- */

typedef struct causal_job {
    const ortc_call *call;
    bool silu;
    int64_t channels, length, taps;
} causal_job;

/* Element `at` of a row's past and input, one behind the other. */
static double padded(const causal_job *j, int64_t row, int64_t at)
{
    const ortc_view *x = &j->call->in[0], *past = &j->call->in[3];
    const int64_t before = j->taps - 1;
    if (at >= before) return ortc_load_f64(x->data, x->dtype, row * j->length + at - before);
    return j->call->n_in > 3 && past->dtype ? ortc_load_f64(past->data, past->dtype, row * before + at) : 0;
}

static void causal_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const causal_job *j = arg;
    const ortc_view *w = &j->call->in[1], *bias = &j->call->in[2], *out = j->call->out;
    for (int64_t row = begin; row < end; row++) {
        const int64_t channel = row % j->channels;
        for (int64_t l = 0; out[0].dtype && l < j->length; l++) {
            double sum = j->call->n_in > 2 && bias->dtype ? ortc_load_f64(bias->data, bias->dtype, channel)
                                                          : 0;
            for (int64_t k = 0; k < j->taps; k++)
                sum += ortc_load_f64(w->data, w->dtype, channel * j->taps + k) * padded(j, row, l + k);
            ortc_store_f64(out[0].data, out[0].dtype, row * j->length + l,
                           j->silu ? sum / (1 + exp(-sum)) : sum);
        }
        for (int64_t k = 0; j->call->n_out > 1 && out[1].dtype && k < j->taps - 1; k++)
            ortc_store_f64(out[1].data, out[1].dtype, row * (j->taps - 1) + k, padded(j, row, j->length + k));
    }
}

ortc_status ortc_causal_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    bool *silu = malloc(sizeof *silu);
    if (!silu) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *silu = strcmp(ortc_node_string(n, "activation", "none"), "none") != 0;
    *out = silu;
    return ORTC_OK;
}

static ortc_status causal_run(const void *state, const void *pstate, ortc_call *c)
{
    const int64_t *dims = c->in[0].dims;
    causal_job j = {c, *(const bool *)state, dims[1], dims[2], c->in[1].dims[2]};
    const int64_t rows = dims[0] * dims[1], grain = 100000 / (j.length * j.taps + 1);
    return rows ? ortc_parallel(c, rows, grain > 0 ? grain : 1, causal_chunk, &j) : ORTC_OK;
}

const ortc_kernel ortc_ref_causal_conv = {.size = ORTC_SIZED(ortc_kernel),
                                          .name = "causal_conv_with_state.ref",
                                          .prepare = ortc_causal_prepare,
                                          .run = causal_run};
