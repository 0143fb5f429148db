/* kernels/cumulative/ref.c: CumSum and CumProd on ref: row by row along the axis, floats in double, integers
 * modulo 2^64. */
#include <stdlib.h>

#include "kernels/cumulative/cumulative.h"

typedef struct cumulative_job {
    const ortc_cumulative_state *state;
    const ortc_view *x;
    ortc_view *y;
    int64_t length, inner;
} cumulative_job;

#define ALONG(type, load, store) \
    { \
        type total = s->product; \
        for (int64_t i = 0; i < j->length; i++) { \
            const int64_t k = s->reverse ? j->length - 1 - i : i; \
            const int64_t at = first + k * j->inner; \
            const type v = load(j->x->data, t, at); \
            const type next = s->product ? total * v : total + v; \
            store(j->y->data, t, at, s->exclusive ? total : next); \
            total = next; \
        } \
    }

static void cumulative_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const cumulative_job *j = arg;
    const ortc_cumulative_state *s = j->state;
    const ortc_dtype t = j->y->dtype;
    for (int64_t row = begin; row < end; row++) {
        const int64_t first = row / j->inner * j->length * j->inner + row % j->inner;
        if (ortc_class_of(t) == ORTC_CLASS_FLOAT)
            ALONG(double, ortc_load_f64, ortc_store_f64)
        else /* the same bits, signed or not */
            ALONG(uint64_t, (uint64_t)ortc_load_i64, ortc_store_u64)
    }
}

ortc_status ortc_cumulative_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    ortc_cumulative_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (ortc_cumulative_state){!strcmp(ortc_node_op(n), "CumProd"), ortc_node_int(n, "exclusive", 0) != 0,
                                 ortc_node_int(n, "reverse", 0) != 0};
    *out = s;
    return ORTC_OK;
}

static ortc_status cumulative_plan(const void *state, ortc_plan *p, void **pstate)
{
    ortc_plan_in_place(p, 0, 0);
    return ORTC_OK;
}

ortc_status ortc_cumulative_shape_of(ortc_call *c, ortc_cumulative_shape *out)
{
    const ortc_view *x = &c->in[0];
    int32_t axis;
    if (ortc_view_count(&c->in[1]) != 1 ||
        !ortc_axis_of(ortc_load_i64(c->in[1].data, c->in[1].dtype, 0), x->rank, &axis))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "axis is not one of the %d axes of the input",
                              x->rank);
    *out = (ortc_cumulative_shape){ortc_view_count(x), x->dims[axis], 1};
    for (int32_t d = axis + 1; out->count > 0 && d < x->rank; d++) out->inner *= x->dims[d];
    return ORTC_OK;
}

static ortc_status cumulative_run(const void *state, const void *pstate, ortc_call *c)
{
    ortc_cumulative_shape shape;
    ORTC_TRY(ortc_cumulative_shape_of(c, &shape));
    if (shape.count == 0) return ORTC_OK;
    cumulative_job j = {state, &c->in[0], &c->out[0], shape.length, shape.inner};
    return ortc_parallel(c, shape.count / j.length, ortc_grain(8.0 * (double)j.length), cumulative_chunk, &j);
}

static const ortc_kernel cumulative_ref = {.size = ORTC_SIZED(ortc_kernel),
                                           .name = "cumulative.ref",
                                           .host_in = 2,
                                           .prepare = ortc_cumulative_prepare,
                                           .plan = cumulative_plan,
                                           .run = cumulative_run};

#define TYPES \
    (ORTC_TYPES_FLOAT | ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64) | ORTC_TYPE(ORTC_U32) | ORTC_TYPE(ORTC_U64))
#define INDEX (ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64))
ORTC_KERNELS(ref, cumulative, ORTC_KERNEL("CumSum", 14, ORTC_NEWEST, (TYPES, INDEX), &cumulative_ref),
             ORTC_KERNEL("CumProd", 26, ORTC_NEWEST, (TYPES, INDEX), &cumulative_ref));
