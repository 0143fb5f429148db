/* kernels/softmax/ref_hardmax.c: Hardmax on ref: one for the first of a row's largest elements, nought for
 * the others. NaN counts as the largest, as in numpy.
 */
#include <stdlib.h>

#include "kernels/common/shape.h"

typedef struct hardmax_job {
    const ortc_view *x;
    ortc_view *y;
    int64_t length, stride;
} hardmax_job;

static void hardmax_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const hardmax_job *j = arg;
    const ortc_dtype t = j->y->dtype;
    for (int64_t row = begin; row < end; row++) {
        const int64_t first = row / j->stride * j->length * j->stride + row % j->stride;
        int64_t best = 0;
        double most = ortc_load_f64(j->x->data, t, first);
        for (int64_t i = 1; i < j->length && most == most; i++) {
            const double v = ortc_load_f64(j->x->data, t, first + i * j->stride);
            if (v > most || v != v) {
                best = i;
                most = v;
            }
        }
        for (int64_t i = 0; i < j->length; i++)
            ortc_store_f64(j->y->data, t, first + i * j->stride, i == best);
    }
}

static ortc_status hardmax_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const int64_t axis = ortc_node_int(n, "axis", -1);
    int64_t *state = malloc(sizeof *state);
    if (!state) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *state = axis;
    *out = state;
    return ORTC_OK;
}

static ortc_status hardmax_run(const void *state, const void *pstate, ortc_call *c)
{
    hardmax_job j = {&c->in[0], &c->out[0], 1, 1};
    const int64_t count = ortc_view_count(j.y);
    int32_t axis;
    if (count == 0) return ORTC_OK;
    if (ortc_axis_of(*(const int64_t *)state, j.x->rank, &axis)) { /* a scalar is a row of one */
        j.length = j.x->dims[axis];
        for (int32_t d = axis + 1; d < j.x->rank; d++) j.stride *= j.x->dims[d];
    }
    return ortc_parallel(c, count / j.length, ortc_grain(6.0 * (double)j.length), hardmax_chunk, &j);
}

extern const ortc_kernel ortc_ref_hardmax;
const ortc_kernel ortc_ref_hardmax = {.size = ORTC_SIZED(ortc_kernel),
                                      .name = "hardmax.ref",
                                      .prepare = hardmax_prepare,
                                      .run = hardmax_run};
