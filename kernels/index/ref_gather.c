/* kernels/index/ref_gather.c: Gather on ref: runs of elements moved as they are. */
#include "kernels/common/strings.h"
#include "kernels/index/index.h"

typedef struct gather_job {
    const ortc_view *x, *at;
    ortc_view *y;
    int64_t extent, inner, picks;
} gather_job;

static void gather_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const gather_job *j = arg;
    const uint32_t bits = ortc_dtype_bits(j->y->dtype);
    while (begin < end) {
        const int64_t row = begin / j->inner, within = begin % j->inner;
        const int64_t n = j->inner - within < end - begin ? j->inner - within : end - begin;
        int64_t index = ortc_load_i64(j->at->data, j->at->dtype, row % j->picks);
        index += index < 0 ? j->extent : 0;
        ortc_move_elements(j->y->data, begin, j->x->data,
                           (row / j->picks * j->extent + index) * j->inner + within, n, bits);
        begin += n;
    }
}

static ortc_status gather_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(gather_run, state, pstate, c);
    gather_job j = {&c->in[0], &c->in[1], &c->out[0]};
    int32_t axis;
    const int64_t count = ortc_view_count(j.y);
    if (count == 0 || !ortc_axis_of(((const ortc_index_state *)state)->axis, j.x->rank, &axis))
        return ORTC_OK;
    j.inner = 1;
    for (int32_t d = axis + 1; d < j.x->rank; d++) j.inner *= j.x->dims[d];
    j.extent = j.x->dims[axis];
    j.picks = ortc_view_count(j.at);
    for (int64_t i = 0; i < j.picks; i++) {
        const int64_t index = ortc_load_i64(j.at->data, j.at->dtype, i);
        if (index < -j.extent || index >= j.extent)
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT,
                                  "index %lld (indices[%lld]) is outside of the %lld elements of axis %d",
                                  (long long)index, (long long)i, (long long)j.extent, axis);
        if (i % 65536 == 65535) ORTC_TRY(ortc_poll(c));
    }
    ortc_clear_tail(j.y, count);
    return ortc_parallel(c, count, ortc_grain(2), gather_chunk, &j);
}

const ortc_kernel ortc_ref_gather = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "gather.ref",
                                     .prepare = ortc_index_prepare,
                                     .run = gather_run};
