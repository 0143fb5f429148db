/* kernels/index/ref_tuples.c: GatherND and ScatterND on ref: each tuple of indices names a slice of the data.
 *
 * Updates are made one after the other, in order, so that equal tuples give the same on any number of
 * threads.
 */
#include "kernels/common/strings.h"
#include "kernels/index/index.h"

typedef struct tuples_job {
    const ortc_view *x;
    ortc_view *y;
    ortc_tuples t;
} tuples_job;

ortc_status ortc_tuples_init(int64_t batch, ortc_call *c, ortc_tuples *t)
{
    const ortc_view *x = &c->in[0], *at = &c->in[1];
    *t = (ortc_tuples){.dims = x->dims + batch,
                       .at = at->data,
                       .tuples = 1,
                       .each = 1,
                       .slice = 1,
                       .rows = 1,
                       .length = at->dims[at->rank - 1]};
    for (int32_t d = 0; d + 1 < at->rank; d++) {
        t->tuples *= at->dims[d];
        t->each *= d < batch ? 1 : at->dims[d];
    }
    for (int32_t d = (int32_t)batch; d < x->rank; d++)
        *(d < batch + t->length ? &t->rows : &t->slice) *= x->dims[d];
    for (int64_t i = 0; i < t->tuples; i++) {
        for (int64_t k = 0; k < t->length; k++) {
            int64_t index = t->at[i * t->length + k];
            if (!ortc_index_wrap(&index, t->dims[k]))
                return ortc_call_fail(c, ORTC_INVALID_ARGUMENT,
                                      "tuple %lld of indices is outside of the data", (long long)i);
        }
        if (i % 65536 == 65535) ORTC_TRY(ortc_poll(c));
    }
    return ORTC_OK;
}

static void gather_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const tuples_job *j = arg;
    while (begin < end) { /* a chunk may begin and end within a slice */
        const int64_t within = begin % j->t.slice,
                      n = j->t.slice - within < end - begin ? j->t.slice - within : end - begin;
        ortc_move_elements(j->y->data, begin, j->x->data,
                           ortc_tuple_slice(&j->t, begin / j->t.slice) * j->t.slice + within, n,
                           ortc_dtype_bits(j->y->dtype));
        begin += n;
    }
}

static ortc_status gather_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(gather_run, state, pstate, c);
    const ortc_index_state *s = state;
    const int64_t count = ortc_view_count(&c->out[0]);
    tuples_job j = {.x = &c->in[0], .y = &c->out[0]};
    if (count == 0) return ORTC_OK;
    ORTC_TRY(ortc_tuples_init(s->batch_dims, c, &j.t));
    return ortc_parallel(c, count, ortc_grain(10), gather_chunk, &j);
}

static ortc_status scatter_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(scatter_run, state, pstate, c);
    const ortc_index_state *s = state;
    tuples_job j = {.x = &c->in[0], .y = &c->out[0]};
    if (ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    ORTC_TRY(ortc_tuples_init(0, c, &j.t));
    ORTC_TRY(ortc_index_copy(c));
    for (int64_t i = 0; i < j.t.tuples; i++) {
        ortc_index_update(s->update, j.y->dtype, j.y->data, ortc_tuple_slice(&j.t, i) * j.t.slice,
                          c->in[2].data, i * j.t.slice, j.t.slice);
        if (i % 1024 == 1023) ORTC_TRY(ortc_poll(c));
    }
    return ORTC_OK;
}

static ortc_status scatter_plan(const void *state, ortc_plan *p, void **pstate)
{
    ortc_plan_in_place(p, 0, 0);
    return ORTC_OK;
}

const ortc_kernel ortc_ref_gather_nd = {.size = ORTC_SIZED(ortc_kernel),
                                        .name = "gather_nd.ref",
                                        .prepare = ortc_index_prepare,
                                        .run = gather_run};
const ortc_kernel ortc_ref_scatter_nd = {.size = ORTC_SIZED(ortc_kernel),
                                         .name = "scatter_nd.ref",
                                         .supports = ortc_index_supports,
                                         .prepare = ortc_index_prepare,
                                         .plan = scatter_plan,
                                         .run = scatter_run};
