/* kernels/generate/ref_range.c: Range on ref: start + i delta, in double or in 64-bit integers; f16 and bf16
 * are rounded once, at the end, as stash_type asks for.
 */
#include <math.h>

#include "kernels/generate/generate.h"

typedef struct range_job {
    ortc_view *y;
    ortc_range r;
} range_job;

static void range_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const range_job *j = arg;
    const ortc_dtype t = j->y->dtype;
    for (int64_t i = begin; i < end; i++)
        if (ortc_class_of(t) == ORTC_CLASS_FLOAT)
            ortc_store_f64(j->y->data, t, i, j->r.start + (double)i * j->r.delta);
        else
            ortc_store_u64(j->y->data, t, i, (uint64_t)j->r.first + (uint64_t)i * (uint64_t)j->r.step);
}

/* How many; -1: too many, or not a number. */
static int64_t count_floats(double start, double limit, double delta)
{
    const double n = ceil((limit - start) / delta);
    return n != n || n >= 9e18 ? -1 : n > 0 ? (int64_t)n : 0;
}
static int64_t count_ints(int64_t start, int64_t limit, int64_t delta)
{
    if (delta > 0 ? limit <= start : limit >= start) return 0;
    const uint64_t length = delta > 0 ? (uint64_t)limit - (uint64_t)start : (uint64_t)start - (uint64_t)limit;
    const uint64_t step = delta > 0 ? (uint64_t)delta : 0 - (uint64_t)delta, n = (length - 1) / step + 1;
    return n > INT64_MAX ? -1 : (int64_t)n;
}

ortc_status ortc_range_read(ortc_call *c, ortc_range *r)
{
    const ortc_dtype t = c->in[0].dtype;
    *r = (ortc_range){0};
    for (uint32_t i = 0; i < 3; i++)
        if (ortc_view_count(&c->in[i]) != 1)
            return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "input %u has %lld elements, expected 1", i,
                                  (long long)ortc_view_count(&c->in[i]));
    if (ortc_class_of(t) == ORTC_CLASS_FLOAT) {
        r->start = ortc_load_f64(c->in[0].data, t, 0);
        r->delta = ortc_load_f64(c->in[2].data, t, 0);
        r->count = count_floats(r->start, ortc_load_f64(c->in[1].data, t, 0), r->delta);
    } else {
        r->first = ortc_load_i64(c->in[0].data, t, 0);
        r->step = ortc_load_i64(c->in[2].data, t, 0);
        r->count = r->step == 0 ? -1 : count_ints(r->first, ortc_load_i64(c->in[1].data, t, 0), r->step);
    }
    if (r->count < 0)
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "start, limit and delta make no range that ends");
    return ORTC_OK;
}

static ortc_status range_run(const void *state, const void *pstate, ortc_call *c)
{
    range_job j = {.y = &c->out[0]};
    ORTC_TRY(ortc_range_read(c, &j.r));
    ORTC_TRY(ortc_call_resize(c, 0, 1, &j.r.count));
    return ortc_parallel(c, j.r.count, ortc_grain(3), range_chunk, &j);
}

const ortc_kernel ortc_ref_range = {.size = ORTC_SIZED(ortc_kernel),
                                    .flags = ORTC_KERNEL_LATE_OUT,
                                    .name = "range.ref",
                                    .host_in = 7,
                                    .run = range_run};
