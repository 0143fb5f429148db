/* kernels/index/cpu_tuples.c: GatherND and ScatterND on the cpu provider, for elements of whole bytes: each
 * tuple of indices names a slice of the data, which is copied, or updated. Where slices are long a task of
 * ScatterND is a piece of all of them, for updates of one element are made in order; short ones are done by
 * one thread.
 */
#include "kernels/index/index.h"
#include "kernels/index/update.h"

typedef struct tuples_job {
    const ortc_view *x, *at;
    const char *from;
    char *y;
    ortc_tuples t;
    size_t bytes; /* of an element */
    int update;
    ortc_dtype type;
} tuples_job;

#define COPY(size) \
    for (int64_t i = begin; i < end; i++) \
        memcpy(j->y + (size_t)i * (size), j->from + (size_t)ortc_tuple_slice(&j->t, i) * (size), size);
static void gather_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const tuples_job *j = arg;
    const size_t run = (size_t)j->t.slice * j->bytes;
    (void)scratch;
    switch (run) {
    case 1: COPY(1) break;
    case 2: COPY(2) break;
    case 4: COPY(4) break;
    case 8: COPY(8) break;
    default: COPY(run)
    }
}

static ortc_status gather_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_index_state *s = state;
    tuples_job j = {.from = c->in[0].data, .y = c->out[0].data, .bytes = ortc_dtype_bits(c->in[0].dtype) / 8};
    (void)pstate;
    if (ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    ORTC_TRY(ortc_tuples_init(s->batch_dims, c, &j.t));
    const int64_t grain = 65536 / (j.t.slice * (int64_t)j.bytes + 16);
    return ortc_parallel(c, j.t.tuples, grain > 0 ? grain : 1, gather_chunk, &j);
}

#define UPDATE(kind, ctype, name) \
    case kind: { \
        ctype *y = (ctype *)(void *)j->y + to; \
        const ctype *u = (const ctype *)(const void *)j->from + from; \
        for (int64_t k = 0; k < n; k++) y[k] = ortc_update_##name(j->update, y[k], u[k]); \
        break; \
    }
/* Elements begin .. end of every slice. */
static void scatter_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const tuples_job *j = arg;
    const int64_t n = end - begin;
    (void)scratch;
    for (int64_t i = 0; i < j->t.tuples; i++) {
        const int64_t to = ortc_tuple_slice(&j->t, i) * j->t.slice + begin, from = i * j->t.slice + begin;
        if (j->update == ORTC_UPDATE_SET) {
            memcpy(j->y + (size_t)to * j->bytes, j->from + (size_t)from * j->bytes, (size_t)n * j->bytes);
            continue;
        }
        switch (j->type) {
            UPDATE(ORTC_F32, float, f32)
            UPDATE(ORTC_F64, double, f64)
            UPDATE(ORTC_I32, int32_t, i32)
            UPDATE(ORTC_I64, int64_t, i64)
        default: ortc_index_update(j->update, j->type, j->y, to, j->from, from, n);
        }
    }
}

static ortc_status scatter_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_index_state *s = state;
    tuples_job j = {.from = c->in[2].data,
                    .y = c->out[0].data,
                    .bytes = ortc_dtype_bits(c->in[0].dtype) / 8,
                    .update = s->update,
                    .type = c->in[0].dtype};
    (void)pstate;
    if (ortc_view_count(&c->out[0]) == 0) return ORTC_OK;
    ORTC_TRY(ortc_tuples_init(0, c, &j.t));
    ORTC_TRY(ortc_index_copy(c));
    if (j.t.tuples == 0) return ORTC_OK;
    const int64_t grain = 32768 / j.t.tuples;
    return ortc_parallel(c, j.t.slice, grain < 256 ? 256 : grain, scatter_chunk, &j);
}

const ortc_kernel ortc_cpu_gather_nd = {.size = ORTC_SIZED(ortc_kernel),
                                        .name = "gather_nd.cpu",
                                        .prepare = ortc_index_prepare,
                                        .plan = ortc_index_gather_plan,
                                        .run = gather_run};
const ortc_kernel ortc_cpu_scatter_nd = {.size = ORTC_SIZED(ortc_kernel),
                                         .name = "scatter_nd.cpu",
                                         .supports = ortc_index_supports,
                                         .prepare = ortc_index_prepare,
                                         .plan = ortc_index_scatter_plan,
                                         .run = scatter_run};
