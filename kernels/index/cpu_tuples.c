/* kernels/index/cpu_tuples.c: GatherND and ScatterND on the cpu provider, for elements of whole bytes: each
 * tuple of indices names a slice of the data, which is copied, or updated. Updates of one element are made in
 * order: a task of ScatterND is a piece of all slices where they are long, else all updates of some of the
 * data's slices, for which each task looks at all tuples; of short ones there is one task.
 */
#include "kernels/common/vector/convert.h"
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
    int64_t slices, shares; /* of the data; parts of them */
} tuples_job;

enum { LONG = 16384, SHORT = 512 }; /* bytes of a slice */

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
        ortc_updates_##name(j->update, n, y, u); \
        break; \
    }
/* Of 16 bits, whose sums and products f32 rounds to as double does: it has as many digits as that takes. */
static void update_halves(const tuples_job *j, int64_t to, int64_t from, int64_t n)
{
    enum { SOME = 256 };
    const ortc_convert *convert = ortc_convert_get();
    const int type = ortc_float_index(j->type);
    uint16_t *y = (uint16_t *)(void *)j->y + to;
    const uint16_t *u = (const uint16_t *)(const void *)j->from + from;
    float wide_y[SOME], wide_u[SOME];
    for (int64_t some; n > 0; n -= some, y += some, u += some) {
        some = n < SOME ? n : SOME;
        convert->widen[type]((size_t)some, y, wide_y);
        convert->widen[type]((size_t)some, u, wide_u);
        ortc_updates_f32(j->update, some, wide_y, wide_u);
        convert->narrow[type]((size_t)some, wide_y, y);
    }
}

/* Update i of slice `at`: n elements from `begin` on. */
static void update(const tuples_job *j, int64_t i, int64_t at, int64_t begin, int64_t n)
{
    const int64_t to = at * j->t.slice + begin, from = i * j->t.slice + begin;
    if (j->update == ORTC_UPDATE_SET) {
        memcpy(j->y + (size_t)to * j->bytes, j->from + (size_t)from * j->bytes, (size_t)n * j->bytes);
        return;
    }
    switch (j->type) {
        UPDATE(ORTC_F32, float, f32)
        UPDATE(ORTC_F64, double, f64)
        UPDATE(ORTC_I32, int32_t, i32)
        UPDATE(ORTC_I64, int64_t, i64)
    case ORTC_F16:
    case ORTC_BF16: update_halves(j, to, from, n); break;
    default: ortc_index_update(j->update, j->type, j->y, to, j->from, from, n);
    }
}

/* Elements begin .. end of every slice. */
static void pieces_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const tuples_job *j = arg;
    (void)scratch;
    for (int64_t i = 0; i < j->t.tuples; i++) update(j, i, ortc_tuple_slice(&j->t, i), begin, end - begin);
}

/* Slices of the data in share begin .. end of `shares`. */
static void slices_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const tuples_job *j = arg;
    const int64_t first = begin * j->slices / j->shares, stop = end * j->slices / j->shares;
    (void)scratch;
    for (int64_t i = 0; i < j->t.tuples; i++) {
        const int64_t at = ortc_tuple_slice(&j->t, i);
        if (at >= first && at < stop) update(j, i, at, 0, j->t.slice);
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
    const int64_t bytes = j.t.slice * (int64_t)j.bytes, grain = 32768 / j.t.tuples;
    if (bytes >= LONG) return ortc_parallel(c, j.t.slice, grain < 2048 ? 2048 : grain, pieces_chunk, &j);
    j.slices = ortc_view_count(&c->out[0]) / j.t.slice;
    j.shares = bytes / SHORT < j.t.tuples * bytes / 65536 ? bytes / SHORT : j.t.tuples * bytes / 65536;
    j.shares = j.shares > 0 ? j.shares : 1;
    return ortc_parallel(c, j.shares, 1, slices_chunk, &j);
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
