/* kernels/recurrent/ref.c: RNN, GRU and LSTM on ref, step by step, all directions and the whole batch at
 * once; states in double.
 *
 * A step is: what goes into each gate (X W + H R + B); for a GRU whose reset comes before its matrix, reset
 * states; new states. Each is one parallel loop, so that a long sequence can be cancelled between steps. Rows
 * of gates: LSTM input, output, forget, cell; GRU update, reset, hidden. Behind a sequence's own length its
 * states stay and Y is 0.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/recurrent/recurrent.h"

typedef ortc_recurrent_state recurrent_state;

typedef struct recurrent_job {
    const recurrent_state *s;
    const ortc_view *x, *w, *r, *b, *p; /* b, p: NULL for none */
    const int32_t *lengths;             /* NULL: all are as long as X */
    ortc_view *y;                       /* NULL: not wanted */
    int64_t steps, batch, input, hidden, step;
    double *into; /* [D, B, G H]: what goes into the gates */
    /* [D, B, H]; reset: GRU, what R has made of the hidden gate's state, or the state to reset */
    double *h, *c, *next, *reset;
} recurrent_job;

/* Where in X's steps a row of the batch is now; -1: its sequence is over. */
static int64_t now(const recurrent_job *j, int64_t d, int64_t b)
{
    const int64_t length = j->lengths ? j->lengths[b] : j->steps;
    if (j->step >= length) return -1;
    return d == 1 || j->s->reverse ? length - 1 - j->step : j->step;
}

static double dot(const ortc_view *v, int64_t row, int64_t n, const double *with)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += ortc_load_f64(v->data, v->dtype, row * n + k) * with[k];
    return sum;
}

static double bias(const recurrent_job *j, int64_t d, int64_t row)
{
    const int64_t rows = j->s->gates * j->hidden;
    return j->b ? ortc_load_f64(j->b->data, j->b->dtype, d * 2 * rows + row) : 0;
}

static void gates_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const recurrent_job *j = arg;
    const int64_t rows = j->s->gates * j->hidden;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i % rows, b = i / rows % j->batch, d = i / rows / j->batch, t = now(j, d, b);
        if (t < 0) continue;
        const int64_t x0 = (j->s->batch_first ? b * j->steps + t : t * j->batch + b) * j->input;
        double sum = bias(j, d, row);
        for (int64_t k = 0; k < j->input; k++)
            sum += ortc_load_f64(j->x->data, j->x->dtype, x0 + k) *
                   ortc_load_f64(j->w->data, j->w->dtype, (d * rows + row) * j->input + k);
        const bool hidden_gate = j->s->what == ORTC_GRU && row >= 2 * j->hidden;
        double recurrent = bias(j, d, rows + row);
        if (!hidden_gate || j->s->reset_last)
            recurrent += dot(j->r, d * rows + row, j->hidden, j->h + (d * j->batch + b) * j->hidden);
        if (hidden_gate && j->s->reset_last) /* the reset is multiplied afterwards */
            j->reset[(d * j->batch + b) * j->hidden + row - 2 * j->hidden] = recurrent;
        else
            sum += recurrent;
        j->into[i] = sum;
    }
}

static double apply(const recurrent_job *j, int64_t d, int32_t which, double v)
{
    const ortc_gate_function *f = &j->s->fn[d * j->s->functions + which];
    v = v > j->s->clip ? j->s->clip : v < -j->s->clip ? -j->s->clip : v;
    return f->fn(v, f->alpha, f->beta);
}

static void reset_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const recurrent_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        const int64_t k = i % j->hidden, row = i / j->hidden, d = row / j->batch;
        j->reset[i] = apply(j, d, 0, j->into[row * 3 * j->hidden + j->hidden + k]) * j->h[i];
    }
}

static double gru(const recurrent_job *j, int64_t d, int64_t row, int64_t k)
{
    const int64_t H = j->hidden;
    const double *into = j->into + row * 3 * H;
    const double z = apply(j, d, 0, into[k]);
    const double recurrent = j->s->reset_last ? apply(j, d, 0, into[H + k]) * j->reset[row * H + k]
                                              : dot(j->r, d * 3 * H + 2 * H + k, H, j->reset + row * H);
    return (1 - z) * apply(j, d, 1, into[2 * H + k] + recurrent) + z * j->h[row * H + k];
}

static double lstm(const recurrent_job *j, int64_t d, int64_t row, int64_t k)
{
    const int64_t H = j->hidden;
    const double *into = j->into + row * 4 * H;
    double *cell = &j->c[row * H + k], peep[3] = {0, 0, 0}; /* input, output, forget */
    for (int i = 0; i < 3 && j->p; i++)
        peep[i] = ortc_load_f64(j->p->data, j->p->dtype, d * 3 * H + i * H + k);
    const double i = apply(j, d, 0, into[k] + peep[0] * *cell);
    const double f = j->s->input_forget ? 1 - i : apply(j, d, 0, into[2 * H + k] + peep[2] * *cell);
    *cell = f * *cell + i * apply(j, d, 1, into[3 * H + k]);
    const double o = apply(j, d, 0, into[H + k] + peep[1] * *cell);
    return o * apply(j, d, 2, *cell);
}

static void states_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const recurrent_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        const int64_t k = i % j->hidden, row = i / j->hidden, b = row % j->batch, d = row / j->batch,
                      t = now(j, d, b);
        j->next[i] = j->h[i];
        if (t < 0) continue;
        j->next[i] = j->s->what == ORTC_RNN   ? apply(j, d, 0, j->into[i])
                     : j->s->what == ORTC_GRU ? gru(j, d, row, k)
                                              : lstm(j, d, row, k);
        if (!j->y) continue;
        const int64_t D = j->s->directions;
        const int64_t to = j->s->batch_first ? (b * j->steps + t) * D + d : (t * D + d) * j->batch + b;
        ortc_store_f64(j->y->data, j->y->dtype, to * j->hidden + k, j->next[i]);
    }
}

/* ---- The node ------------------------------------------------------------------------------------------ */

static ortc_status recurrent_plan(const void *state, ortc_plan *p, void **pstate)
{
    const recurrent_state *s = state;
    const int64_t batch = p->in[0].dims[!s->batch_first], hidden = p->in[2].dims[2];
    const double bytes = (double)s->directions * (double)batch * (double)hidden * (s->gates + 4) *
                         sizeof(double);
    if (bytes > (double)(SIZE_MAX / 4))
        return ortc_plan_fail(p, ORTC_LIMIT, "%g bytes of states are too many", bytes);
    ortc_plan_workspace(p, (size_t)bytes, 0);
    return ORTC_OK;
}

/* States as they come and go: [D, B, H], or [B, D, H]. */
static int64_t place(const recurrent_job *j, int64_t i)
{
    const int64_t k = i % j->hidden, b = i / j->hidden % j->batch, d = i / j->hidden / j->batch;
    return j->s->batch_first ? (b * j->s->directions + d) * j->hidden + k : i;
}
static void load_states(const recurrent_job *j, const ortc_view *from, double *to, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        to[i] = from ? ortc_load_f64(from->data, from->dtype, place(j, i)) : 0;
}

static const ortc_view *optional(const ortc_call *c, uint32_t i)
{
    return c->n_in > i && c->in[i].dtype ? &c->in[i] : NULL;
}
static ortc_view *wanted(ortc_call *c, uint32_t i)
{
    return c->n_out > i && c->out[i].dtype ? &c->out[i] : NULL;
}

static ortc_status recurrent_run(const void *state, const void *pstate, ortc_call *c)
{
    const recurrent_state *s = state;
    recurrent_job j = {.s = s,
                       .x = &c->in[0],
                       .w = &c->in[1],
                       .r = &c->in[2],
                       .b = optional(c, 3),
                       .p = optional(c, 7),
                       .y = wanted(c, 0),
                       .steps = c->in[0].dims[s->batch_first],
                       .batch = c->in[0].dims[!s->batch_first],
                       .input = c->in[0].dims[2],
                       .hidden = c->in[2].dims[2]};
    const int64_t count = s->directions * j.batch * j.hidden;
    if (optional(c, 4)) {
        j.lengths = c->in[4].data;
        ORTC_TRY(ortc_recurrent_lengths(c, &c->in[4], j.steps));
    }
    j.h = c->workspace;
    j.c = j.h + count;
    j.next = j.c + count;
    j.reset = j.next + count;
    j.into = j.reset + count;
    load_states(&j, optional(c, 5), j.h, count);
    load_states(&j, optional(c, 6), j.c, count);
    if (j.y && ortc_view_count(j.y) > 0 && j.lengths)
        memset(j.y->data, 0, ortc_bytes_of(ortc_dtype_bits(j.y->dtype), ortc_view_count(j.y)));
    for (j.step = 0; j.step < j.steps && count > 0; j.step++) {
        ORTC_TRY(ortc_poll(c));
        ORTC_TRY(ortc_parallel(c, count * s->gates, ortc_grain(2.0 * (double)(j.input + j.hidden + 4)),
                               gates_chunk, &j));
        if (s->what == ORTC_GRU && !s->reset_last)
            ORTC_TRY(ortc_parallel(c, count, ortc_grain(30), reset_chunk, &j));
        ORTC_TRY(ortc_parallel(c, count, ortc_grain(100 + (s->what == ORTC_GRU ? 2.0 * (double)j.hidden : 0)),
                               states_chunk, &j));
        double *const done = j.h;
        j.h = j.next;
        j.next = done;
    }
    for (uint32_t o = 1; o < 3; o++)
        for (int64_t i = 0; wanted(c, o) && i < count; i++)
            ortc_store_f64(c->out[o].data, c->out[o].dtype, place(&j, i), (o == 1 ? j.h : j.c)[i]);
    return ORTC_OK;
}

static const ortc_kernel recurrent_ref = {.size = ORTC_SIZED(ortc_kernel),
                                          .name = "recurrent.ref",
                                          .prepare = ortc_recurrent_prepare,
                                          .plan = recurrent_plan,
                                          .run = recurrent_run};

#define K(op) ORTC_KERNEL(op, 22, ORTC_NEWEST, (ORTC_TYPES_FLOAT, ORTC_TYPE(ORTC_I32)), &recurrent_ref)
ORTC_KERNELS(ref, recurrent, K("RNN"), K("GRU"), K("LSTM"));
