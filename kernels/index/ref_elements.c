/* kernels/index/ref_elements.c: GatherElements and ScatterElements on ref: an element's place is its own
 * position, but along the axis the index.
 *
 * Updates are made one after the other, in order, so that equal indices give the same on any number of
 * threads.
 */
#include "kernels/common/strings.h"
#include "kernels/index/index.h"

typedef struct elements_job {
    const ortc_view *x, *at;
    ortc_view *y;
    int64_t extent, stride; /* along the axis */
    ortc_walk walk;         /* over the indices; operand: the data, without the axis */
} elements_job;

static ortc_status elements_init(const ortc_index_state *s, ortc_call *c, elements_job *j)
{
    int64_t strides[ORTC_RANK_LIMIT];
    int32_t axis = 0;
    *j = (elements_job){.x = &c->in[0], .at = &c->in[1], .y = &c->out[0]};
    if (!ortc_axis_of(s->axis, j->x->rank, &axis))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "the axis is outside of the data's rank");
    ortc_dense_strides(j->x->rank, j->x->dims, strides);
    j->extent = j->x->dims[axis];
    j->stride = strides[axis];
    strides[axis] = 0;
    ortc_walk_init(&j->walk, j->at->rank, j->at->dims);
    ortc_walk_strided(&j->walk, strides, 0);
    ortc_walk_merge(&j->walk);
    const int64_t count = ortc_view_count(j->at);
    for (int64_t i = 0; i < count; i++) {
        int64_t index = ortc_load_i64(j->at->data, j->at->dtype, i);
        if (!ortc_index_wrap(&index, j->extent))
            return ortc_call_fail(
                c, ORTC_INVALID_ARGUMENT,
                "index %lld (element %lld of indices) is outside of the %lld elements of axis %d",
                (long long)index, (long long)i, (long long)j->extent, axis);
        if (i % 65536 == 65535) ORTC_TRY(ortc_poll(c));
    }
    return ORTC_OK;
}

static int64_t place(const elements_job *j, const ortc_walk *w, int64_t i)
{
    int64_t index = ortc_load_i64(j->at->data, j->at->dtype, i);
    ortc_index_wrap(&index, j->extent);
    return w->at[0] + index * j->stride;
}

static void gather_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const elements_job *j = arg;
    ortc_walk w = j->walk;
    ortc_walk_seek(&w, begin);
    for (int64_t i = begin; i < end; i++, ortc_walk_next(&w))
        ortc_move_element(j->y->data, i, j->x->data, place(j, &w, i), ortc_dtype_bits(j->y->dtype));
}

static ortc_status gather_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(gather_run, state, pstate, c);
    elements_job j;
    ORTC_TRY(elements_init(state, c, &j));
    return ortc_parallel(c, ortc_view_count(j.y), ortc_grain(8), gather_chunk, &j);
}

static ortc_status scatter_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[0].dtype == ORTC_STRING) return ortc_run_on_strings(scatter_run, state, pstate, c);
    const ortc_index_state *s = state;
    elements_job j;
    if (ortc_view_count(&c->out[0]) == 0)
        return ORTC_OK; /* as everywhere here: nothing results, no index counts */
    ORTC_TRY(elements_init(s, c, &j));
    ORTC_TRY(ortc_index_copy(c));
    const int64_t count = ortc_view_count(j.at);
    for (int64_t i = 0; i < count; i++, ortc_walk_next(&j.walk)) {
        ortc_index_update(s->update, j.y->dtype, j.y->data, place(&j, &j.walk, i), c->in[2].data, i, 1);
        if (i % 16384 == 16383) ORTC_TRY(ortc_poll(c));
    }
    return ORTC_OK;
}

static ortc_status scatter_plan(const void *state, ortc_plan *p, void **pstate)
{
    ortc_plan_in_place(p, 0, 0);
    return ORTC_OK;
}

const ortc_kernel ortc_ref_gather_elements = {.size = ORTC_SIZED(ortc_kernel),
                                              .name = "gather_elements.ref",
                                              .prepare = ortc_index_prepare,
                                              .run = gather_run};
const ortc_kernel ortc_ref_scatter_elements = {.size = ORTC_SIZED(ortc_kernel),
                                               .name = "scatter_elements.ref",
                                               .supports = ortc_index_supports,
                                               .prepare = ortc_index_prepare,
                                               .plan = scatter_plan,
                                               .run = scatter_run};
