/* kernels/softmax/ref.c: Softmax and LogSoftmax along an axis: the row's maximum is taken off, exponentials
 * are summed, all in double. A NaN makes its row NaN, and so does a row of nothing but -infinity.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/shape.h"

extern const ortc_kernel ortc_ref_hardmax; /* ref_hardmax.c */

typedef struct softmax_state {
    int64_t axis;
    bool log;
} softmax_state;

typedef struct softmax_job {
    const void *x;
    void *y;
    ortc_dtype t;
    bool log;
    int64_t length, stride; /* of a row: its elements, and from one to the next */
} softmax_job;

ORTC_INLINE void softmax_loop(ortc_dtype t, const softmax_job *j, int64_t begin, int64_t end)
{
    for (int64_t row = begin; row < end; row++) {
        const int64_t first = row / j->stride * j->length * j->stride + row % j->stride;
        double max = -INFINITY, sum = 0;
        for (int64_t i = 0; i < j->length; i++) {
            const double v = ortc_load_f64(j->x, t, first + i * j->stride);
            max = v > max || v != v ? v : max;
        }
        for (int64_t i = 0; i < j->length; i++)
            sum += exp(ortc_load_f64(j->x, t, first + i * j->stride) - max);
        const double log_sum = log(sum);
        for (int64_t i = 0; i < j->length; i++) {
            const double v = ortc_load_f64(j->x, t, first + i * j->stride) - max;
            ortc_store_f64(j->y, t, first + i * j->stride, j->log ? v - log_sum : exp(v) / sum);
        }
    }
}
static void softmax_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const softmax_job *j = arg;
    ORTC_SPECIALISE(j->t, softmax_loop, j, begin, end);
}

static ortc_status softmax_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    softmax_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (softmax_state){ortc_node_int(n, "axis", -1), !strcmp(ortc_node_op(n), "LogSoftmax")};
    *out = s;
    return ORTC_OK;
}

static ortc_status softmax_plan(const void *state, ortc_plan *p, void **pstate)
{
    ortc_plan_in_place(p, 0, 0);
    return ORTC_OK;
}

static ortc_status softmax_run(const void *state, const void *pstate, ortc_call *c)
{
    const softmax_state *s = state;
    const ortc_view *x = &c->in[0];
    const int64_t count = ortc_view_count(x);
    softmax_job j = {x->data, c->out[0].data, x->dtype, s->log, 1, 1};
    int32_t axis;
    if (count == 0) return ORTC_OK;
    if (ortc_axis_of(s->axis, x->rank, &axis)) { /* a scalar is a row of one */
        j.length = x->dims[axis];
        for (int32_t d = axis + 1; d < x->rank; d++) j.stride *= x->dims[d];
    }
    const int64_t grain = 2000 / j.length; /* packed types have no softmax: rows may end anywhere */
    return ortc_parallel(c, count / j.length, grain > 0 ? grain : 1, softmax_chunk, &j);
}

static const ortc_kernel softmax_ref = {.size = ORTC_SIZED(ortc_kernel),
                                        .name = "softmax.ref",
                                        .prepare = softmax_prepare,
                                        .plan = softmax_plan,
                                        .run = softmax_run};

ORTC_KERNELS(ref, softmax, ORTC_KERNEL("Softmax", 13, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &softmax_ref),
             ORTC_KERNEL("LogSoftmax", 13, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &softmax_ref),
             ORTC_KERNEL("Hardmax", 13, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &ortc_ref_hardmax));
