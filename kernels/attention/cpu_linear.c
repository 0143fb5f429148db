/* kernels/attention/cpu_linear.c: LinearAttention and CausalConvWithState on the cpu provider, f32, f16 and
 * bf16 computed in f32. Of the former a task is a head of keys of an image, whose state S stays in the
 * worker's scratch (64 KB for heads of 128) from one position to the next; a position goes over it once, or
 * twice where the rule is a delta's. Of the latter a task is some channels.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/attention/linear.h"
#include "kernels/common/vector/convert.h"

ORTC_VEC_TABLE(ortc_linear_vec)

static const void *at(const ortc_view *v, int64_t element)
{
    return (const char *)v->data + (size_t)element * (ortc_dtype_bits(v->dtype) / 8);
}

static bool is_there(const ortc_call *c, uint32_t port) { return c->n_in > port && c->in[port].dtype; }

/* ---- LinearAttention ----------------------------------------------------------------------------------- */

typedef struct linear_job {
    const ortc_linear_state *s;
    const ortc_linear_vec *vec;
    const ortc_convert *convert;
    const ortc_call *c;
    int64_t length, size, values; /* positions; D, Dv */
    float scale;
} linear_job;

/* A worker's: S [D][Dv] of a head, and rows of a position. */
typedef struct work {
    float *S, *q, *k, *v, *decay, *known, *y;
} work;

static size_t scratch_bytes(int64_t size, int64_t values)
{
    return (size_t)((size + 3) * values + 3 * size) * sizeof(float);
}

static work lay_out(const linear_job *j, void *scratch)
{
    work w = {.S = scratch};
    w.q = w.S + j->size * j->values;
    w.k = w.q + j->size;
    w.decay = w.k + j->size;
    w.v = w.decay + j->size;
    w.known = w.v + j->values;
    w.y = w.known + j->values;
    return w;
}

/* n elements of position t of image b, from element i on. */
static void load(const linear_job *j, uint32_t port, int64_t b, int64_t t, int64_t i, int64_t n, float *to)
{
    const ortc_view *v = &j->c->in[port];
    j->convert->widen[ortc_float_index(v->dtype)]((size_t)n, at(v, (b * v->dims[1] + t) * v->dims[2] + i),
                                                  to);
}

static void decay(const linear_job *j, work *w, int64_t b, int64_t h, int64_t t)
{
    const size_t size = (size_t)j->size, values = (size_t)j->values;
    const bool per_head = j->c->in[4].dims[2] == j->s->kv_heads;
    load(j, 4, b, t, per_head ? h : h * j->size, per_head ? 1 : j->size, w->decay);
    j->vec->exp(per_head ? 1 : size, w->decay, w->decay);
    if (per_head) {
        j->vec->scale(size * values, w->decay[0], w->S);
        return;
    }
    for (size_t d = 0; d < size; d++) j->vec->scale(values, w->decay[d], w->S + d * values);
}

static void position(const linear_job *j, work *w, int64_t b, int64_t h, int64_t t)
{
    const size_t size = (size_t)j->size, values = (size_t)j->values;
    const ortc_view *y = &j->c->out[0];
    const int64_t group = j->s->q_heads / j->s->kv_heads;
    if (j->s->gated) decay(j, w, b, h, t);
    load(j, 1, b, t, h * j->size, j->size, w->k);
    load(j, 2, b, t, h * j->values, j->values, w->v);
    if (j->s->delta) {
        float beta;
        load(j, 5, b, t, j->c->in[5].dims[2] == 1 ? 0 : h, 1, &beta);
        j->vec->read(size, values, w->S, w->k, 1, w->known);
        j->vec->correct(values, beta, w->known, w->v);
    }
    for (int64_t q = h * group; q < (h + 1) * group; q++) {
        load(j, 0, b, t, q * j->size, j->size, w->q);
        if (q == h * group)
            j->vec->step(size, values, w->S, w->k, w->v, w->q, j->scale, w->y);
        else
            j->vec->read(size, values, w->S, w->q, j->scale, w->y);
        if (y->dtype)
            j->convert->narrow[ortc_float_index(y->dtype)](
                values, w->y,
                (char *)(uintptr_t)at(y, ((b * j->length + t) * j->s->q_heads + q) * j->values));
    }
}

static void linear_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const linear_job *j = arg;
    const ortc_call *c = j->c;
    const size_t each = (size_t)(j->size * j->values);
    work w = lay_out(j, scratch);
    for (int64_t r = begin; r < end; r++) {
        if (is_there(c, 3))
            j->convert->widen[ortc_float_index(c->in[3].dtype)](each, at(&c->in[3], r * (int64_t)each), w.S);
        else
            memset(w.S, 0, each * sizeof(float));
        for (int64_t t = 0; t < j->length; t++) position(j, &w, r / j->s->kv_heads, r % j->s->kv_heads, t);
        if (c->n_out > 1 && c->out[1].dtype)
            j->convert->narrow[ortc_float_index(c->out[1].dtype)](each, w.S,
                                                                  (char *)(uintptr_t)at(&c->out[1],
                                                                                        r * (int64_t)each));
    }
}

static ortc_status linear_plan(const void *state, ortc_plan *p, void **out)
{
    const ortc_linear_state *s = state;
    const int64_t size = p->in[0].dims[2] / s->q_heads, values = p->in[2].dims[2] / s->kv_heads;
    (void)out;
    ortc_plan_workspace(p, 0, scratch_bytes(size, values));
    ortc_plan_cost(p,
                   2.0 * (double)p->in[0].dims[0] * (double)p->in[0].dims[1] *
                       (double)(s->q_heads + 2 * s->kv_heads) * (double)size * (double)values,
                   0);
    return ORTC_OK;
}

static ortc_status linear_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_linear_state *s = state;
    linear_job j = {.s = s,
                    .vec = ortc_linear_vec_select(),
                    .convert = ortc_convert_get(),
                    .c = c,
                    .length = c->in[0].dims[1],
                    .size = c->in[0].dims[2] / s->q_heads,
                    .values = c->in[2].dims[2] / s->kv_heads};
    const int64_t heads = c->in[0].dims[0] * s->kv_heads;
    (void)pstate;
    j.scale = (float)(s->scale == 0 ? 1 / sqrt((double)j.size) : s->scale);
    const double each = (double)(j.length + 1) * (double)j.size * (double)j.values / 4;
    return heads ? ortc_parallel(c, heads, ortc_grain(each), linear_chunk, &j) : ORTC_OK;
}

const ortc_kernel ortc_cpu_linear_attention = {.size = ORTC_SIZED(ortc_kernel),
                                               .name = "linear_attention.cpu",
                                               .prepare = ortc_linear_prepare,
                                               .plan = linear_plan,
                                               .run = linear_run};

/* ---- CausalConvWithState ------------------------------------------------------------------------------- */

typedef struct causal_job {
    const ortc_linear_vec *vec;
    const ortc_convert *convert;
    const ortc_call *c;
    bool silu;
    int64_t channels, length, taps;
} causal_job;

/* scratch: a channel's past and input, one behind the other; its weights; its results. */
static void causal_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const causal_job *j = arg;
    const ortc_view *in = j->c->in, *out = j->c->out;
    const int type = ortc_float_index(in[0].dtype);
    const size_t past = (size_t)j->taps - 1, length = (size_t)j->length;
    float *x = scratch, *w = x + past + length, *y = w + j->taps, bias = 0;
    for (int64_t row = begin; row < end; row++) {
        const int64_t channel = row % j->channels;
        if (is_there(j->c, 3))
            j->convert->widen[type](past, at(&in[3], row * (int64_t)past), x);
        else
            memset(x, 0, past * sizeof(float));
        j->convert->widen[type](length, at(&in[0], row * j->length), x + past);
        j->convert->widen[type]((size_t)j->taps, at(&in[1], channel * j->taps), w);
        if (is_there(j->c, 2)) j->convert->widen[type](1, at(&in[2], channel), &bias);
        if (out[0].dtype) {
            j->vec->convolve(length, (size_t)j->taps, x, w, bias, j->silu, y);
            j->convert->narrow[type](length, y, (char *)(uintptr_t)at(&out[0], row * j->length));
        }
        if (j->c->n_out > 1 && out[1].dtype)
            j->convert->narrow[type](past, x + length, (char *)(uintptr_t)at(&out[1], row * (int64_t)past));
    }
}

static ortc_status causal_plan(const void *state, ortc_plan *p, void **out)
{
    const int64_t *dims = p->in[0].dims, taps = p->in[1].dims[2];
    (void)state, (void)out;
    ortc_plan_workspace(p, 0, (size_t)(2 * (dims[2] + taps)) * sizeof(float));
    ortc_plan_cost(p, 2.0 * (double)ortc_view_count(&p->in[0]) * (double)taps,
                   2.0 * (double)ortc_bytes_of(ortc_dtype_bits(p->in[0].dtype), ortc_view_count(&p->in[0])));
    return ORTC_OK;
}

static ortc_status causal_run(const void *state, const void *pstate, ortc_call *c)
{
    const int64_t *dims = c->in[0].dims;
    causal_job j = {ortc_linear_vec_select(), ortc_convert_get(), c, *(const bool *)state, dims[1], dims[2],
                    c->in[1].dims[2]};
    const int64_t rows = dims[0] * dims[1];
    (void)pstate;
    return rows ? ortc_parallel(c, rows, ortc_rows_grain(j.length * j.taps / 4 + 16), causal_chunk, &j)
                : ORTC_OK;
}

const ortc_kernel ortc_cpu_causal_conv = {.size = ORTC_SIZED(ortc_kernel),
                                          .name = "causal_conv_with_state.cpu",
                                          .prepare = ortc_causal_prepare,
                                          .plan = causal_plan,
                                          .run = causal_run};
