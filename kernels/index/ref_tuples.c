/* kernels/index/ref_tuples.c: GatherND and ScatterND on ref: each tuple of indices names a slice of the data.
 *
 * Updates are made one after the other, in order, so that equal tuples give the same on any number of
 * threads.
 */
#include "kernels/common/strings.h"
#include "kernels/index/index.h"

typedef struct tuples_job {
    const ortc_view *x, *at;
    ortc_view *y;
    int32_t batch;          /* leading dims that data and indices share */
    int64_t length, tuples; /* indices in a tuple; tuples in all */
    int64_t each;           /* tuples of one batch element */
    int64_t slice, rows;    /* elements that a tuple names; slices in a batch element of the data */
} tuples_job;

/* The slice that a tuple names; -1: outside. */
static int64_t slice_of(const tuples_job *j, int64_t tuple)
{
    int64_t at = 0;
    for (int64_t k = 0; k < j->length; k++) {
        int64_t index = ortc_load_i64(j->at->data, ORTC_I64, tuple * j->length + k);
        if (!ortc_index_wrap(&index, j->x->dims[j->batch + k])) return -1;
        at = at * j->x->dims[j->batch + k] + index;
    }
    return tuple / j->each * j->rows + at;
}

static ortc_status tuples_init(int64_t batch, ortc_call *c, tuples_job *j)
{
    *j = (tuples_job){.x = &c->in[0],
                      .at = &c->in[1],
                      .y = &c->out[0],
                      .batch = (int32_t)batch,
                      .tuples = 1,
                      .each = 1,
                      .slice = 1,
                      .rows = 1};
    j->length = j->at->dims[j->at->rank - 1];
    for (int32_t d = 0; d + 1 < j->at->rank; d++) {
        j->tuples *= j->at->dims[d];
        j->each *= d < batch ? 1 : j->at->dims[d];
    }
    for (int32_t d = j->batch; d < j->x->rank; d++)
        *(d < j->batch + j->length ? &j->rows : &j->slice) *= j->x->dims[d];
    for (int64_t i = 0; i < j->tuples; i++) {
        if (slice_of(j, i) < 0)
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "tuple %lld of indices is outside of the data",
                                  (long long)i);
        if (i % 65536 == 65535) ORTC_TRY(ortc_poll(c));
    }
    return ORTC_OK;
}

static void gather_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const tuples_job *j = arg;
    while (begin < end) { /* a chunk may begin and end within a slice */
        const int64_t within = begin % j->slice,
                      n = j->slice - within < end - begin ? j->slice - within : end - begin;
        ortc_move_elements(j->y->data, begin, j->x->data, slice_of(j, begin / j->slice) * j->slice + within,
                           n, ortc_dtype_bits(j->y->dtype));
        begin += n;
    }
}

static ortc_status gather_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(gather_run, state, pstate, c);
    const ortc_index_state *s = state;
    const int64_t count = ortc_view_count(&c->out[0]);
    tuples_job j;
    if (count == 0) return ORTC_OK;
    ORTC_TRY(tuples_init(s->batch_dims, c, &j));
    return ortc_parallel(c, count, ortc_grain(10), gather_chunk, &j);
}

static ortc_status scatter_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(scatter_run, state, pstate, c);
    const ortc_index_state *s = state;
    tuples_job j;
    if (ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    ORTC_TRY(tuples_init(0, c, &j));
    ORTC_TRY(ortc_index_copy(c));
    for (int64_t i = 0; i < j.tuples; i++) {
        ortc_index_update(s->update, j.y->dtype, j.y->data, slice_of(&j, i) * j.slice, c->in[2].data,
                          i * j.slice, j.slice);
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
