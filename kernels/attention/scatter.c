/* kernels/attention/scatter.c: TensorScatter, the cache, and the update written into it along `axis`. It
 * moves bytes as fast as they go, so ref and the cpu have the same.
 *
 * Where the planner finds that nobody else reads the cache, the result is the cache, and only the update
 * is moved. Indices are all looked at before the first element is written.
 */
#include <stdlib.h>

#include "kernels/attention/attention.h"
#include "kernels/common/strings.h"

typedef struct scatter_state {
    int64_t axis;
    bool circular;
} scatter_state;

typedef struct scatter_job {
    const ortc_call *call;
    /* outer rows of a sample; extents along the axis; elements behind it */
    int64_t per_sample, length, room, inner;
    uint32_t bits;
} scatter_job;

static int64_t index_of(const ortc_call *c, int64_t sample)
{
    return c->n_in > 2 && c->in[2].dtype ? ortc_load_i64(c->in[2].data, ORTC_I64, sample) : 0;
}

static void copy_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const scatter_job *j = arg;
    ortc_move_elements(j->call->out[0].data, begin, j->call->in[0].data, begin, end - begin, j->bits);
}

static void scatter_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const scatter_job *j = arg;
    for (int64_t r = begin; r < end; r++) {
        const int64_t row = r / j->length, first = index_of(j->call, row / j->per_sample) % j->room;
        /* linear ones have room */
        const int64_t at = ((first < 0 ? first + j->room : first) + r % j->length) % j->room;
        ortc_move_elements(j->call->out[0].data, (row * j->room + at) * j->inner, j->call->in[1].data,
                           r * j->inner, j->inner, j->bits);
    }
}

static ortc_status scatter_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    scatter_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (scatter_state){ortc_node_int(n, "axis", -2),
                         !strcmp(ortc_node_string(n, "mode", "linear"), "circular")};
    *out = s;
    return ORTC_OK;
}

static ortc_status scatter_plan(const void *state, ortc_plan *p, void **pstate)
{
    ortc_plan_may_reuse(p, 0, 0);
    return ORTC_OK;
}

static ortc_status scatter_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(scatter_run, state, pstate, c);
    const scatter_state *s = state;
    const ortc_view *cache = &c->in[0];
    const int64_t count = ortc_view_count(cache);
    scatter_job j = {.call = c, .per_sample = 1, .inner = 1, .bits = ortc_dtype_bits(cache->dtype)};
    int32_t axis;
    if (!ortc_axis_of(s->axis, cache->rank, &axis))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "the axis is outside of the cache's rank");
    for (int32_t d = 1; d < cache->rank; d++)
        if (d != axis) *(d < axis ? &j.per_sample : &j.inner) *= cache->dims[d];
    j.room = cache->dims[axis];
    j.length = c->in[1].dims[axis];
    for (int64_t b = 0; !s->circular && b < cache->dims[0]; b++) {
        const int64_t at = index_of(c, b);
        if (at < 0 || at > j.room - j.length)
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT,
                                  "write_indices holds %lld for sample %lld: %lld elements from there on "
                                  "do not fit into a cache of %lld",
                                  (long long)at, (long long)b, (long long)j.length, (long long)j.room);
    }
    if (count == 0) return ORTC_OK;
    if (c->out[0].data != cache->data) {
        ortc_clear_tail(&c->out[0], count);
        ORTC_TRY(ortc_parallel(c, count, ortc_grain(1), copy_chunk, &j));
    }
    const int64_t rows = cache->dims[0] * j.per_sample * j.length, grain = ortc_grain((double)j.inner);
    return rows ? ortc_parallel(c, rows, j.bits < 8 ? rows : grain, scatter_chunk,
                                &j) /* rows of packed types share bytes */
                : ORTC_OK;
}

#define KERNEL(provider) \
    const ortc_kernel ortc_##provider##_tensor_scatter = {.size = ORTC_SIZED(ortc_kernel), \
                                                          .flags = ORTC_KERNEL_STATE, \
                                                          .name = "tensor_scatter." #provider, \
                                                          .prepare = scatter_prepare, \
                                                          .plan = scatter_plan, \
                                                          .run = scatter_run};
KERNEL(ref)
KERNEL(cpu)
