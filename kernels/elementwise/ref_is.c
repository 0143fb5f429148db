/* kernels/elementwise/ref_is.c: IsInf and IsNaN on ref. */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/shape.h"
#include "kernels/elementwise/elementwise.h"

typedef struct is_state {
    bool nan, positive, negative; /* what is asked for */
} is_state;

typedef struct is_job {
    const is_state *state;
    const ortc_view *x;
    uint8_t *y;
} is_job;

static void is_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const is_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        const double v = ortc_load_f64(j->x->data, j->x->dtype, i);
        j->y[i] = (j->state->nan && v != v) || (j->state->positive && v == INFINITY) ||
                  (j->state->negative && v == -INFINITY);
    }
}

static ortc_status is_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const bool nan = !strcmp(ortc_node_op(n), "IsNaN");
    is_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (is_state){nan, !nan && ortc_node_int(n, "detect_positive", 1) != 0,
                    !nan && ortc_node_int(n, "detect_negative", 1) != 0};
    *out = s;
    return ORTC_OK;
}

static ortc_status is_run(const void *state, const void *pstate, ortc_call *c)
{
    is_job j = {state, &c->in[0], c->out[0].data};
    return ortc_parallel(c, ortc_view_count(j.x), ortc_grain(4), is_chunk, &j);
}

const ortc_kernel ortc_ref_is = {.size = ORTC_SIZED(ortc_kernel),
                                 .name = "is.ref",
                                 .prepare = is_prepare,
                                 .run = is_run};
