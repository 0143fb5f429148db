/* kernels/reorder/ref.c: Reorder on ref: element by element, by index; what fills up blocks is zero. */
#include <string.h>

#include "kernels/common/shape.h"
#include "kernels/reorder/reorder.h"

typedef struct job {
    const ortc_view *x, *y;
    size_t bytes; /* of an element */
} job;

static void chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = (const job *)arg;
    const ortc_view *x = j->x, *y = j->y;
    int64_t index[ORTC_RANK_LIMIT];
    (void)scratch;
    for (int64_t i = begin; i < end; i++) {
        for (int64_t d = x->rank - 1, rest = i; d >= 0; rest /= x->dims[d--]) index[d] = rest % x->dims[d];
        memcpy((char *)y->data + (size_t)ortc_layout_at(y->layout, y->rank, y->dims, index) * j->bytes,
               (const char *)x->data + (size_t)ortc_layout_at(x->layout, x->rank, x->dims, index) * j->bytes,
               j->bytes);
    }
}

static ortc_status choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    (void)state, (void)why;
    o->clocks = 2000 + 60.0 * (double)ortc_view_count(&q->in[0]);
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    job j = {&c->in[0], &c->out[0], ortc_dtype_bits(c->in[0].dtype) / 8};
    const int64_t count = ortc_view_count(j.x);
    (void)state, (void)pstate;
    if (!count) return ORTC_OK;
    if (ortc_view_stored(j.y) != count) memset(j.y->data, 0, (size_t)ortc_view_stored(j.y) * j.bytes);
    return ortc_parallel(c, count, ortc_grain(16), chunk, &j);
}

static const ortc_kernel reorder = {.size = ORTC_SIZED(ortc_kernel),
                                    .flags = ORTC_KERNEL_LAYOUTS,
                                    .name = "reorder.ref",
                                    .run = run,
                                    .choose = choose};

ORTC_KERNELS(ref, reorder, ORTC_KERNEL_IN("ortc", "Reorder", 1, 1, (WHOLE_BYTES), &reorder));
