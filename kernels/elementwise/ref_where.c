/* kernels/elementwise/ref_where.c: Where on ref: elements are moved as they are, whatever their type. */
#include "kernels/common/shape.h"
#include "kernels/common/strings.h"
#include "kernels/elementwise/elementwise.h"

typedef struct where_job {
    const ortc_view *in;
    ortc_view *y;
    ortc_walk walk;
} where_job;

static void where_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const where_job *j = arg;
    const uint32_t bits = ortc_dtype_bits(j->y->dtype);
    ortc_walk w = j->walk;
    ortc_walk_seek(&w, begin);
    for (int64_t i = begin; i < end; i++, ortc_walk_next(&w)) {
        const int from = ((const uint8_t *)j->in[0].data)[w.at[0]] ? 1 : 2;
        ortc_move_element(j->y->data, i, j->in[from].data, w.at[from], bits);
    }
}

static ortc_status where_run(const void *state, const void *pstate, ortc_call *c)
{
    if (c->in[1].dtype == ORTC_STRING) return ortc_run_on_strings(where_run, state, pstate, c);
    where_job j = {c->in, &c->out[0]};
    const int64_t count = ortc_view_count(j.y);
    if (count == 0) return ORTC_OK;
    ortc_walk_init(&j.walk, j.y->rank, j.y->dims);
    for (int k = 0; k < 3; k++) ortc_walk_view(&j.walk, &c->in[k]);
    ortc_walk_merge(&j.walk);
    return ortc_parallel(c, count, ortc_grain(10), where_chunk, &j);
}

const ortc_kernel ortc_ref_where = {.size = ORTC_SIZED(ortc_kernel), .name = "where.ref", .run = where_run};
