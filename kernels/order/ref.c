/* kernels/order/ref.c: TopK, ArgMax and ArgMin on ref. NaN counts as larger than everything by TopK, and is
 * the choice of ArgMax and ArgMin alike, as in numpy. Of equal elements the one with the lower index comes
 * first.
 */
#include <stdlib.h>

#include "kernels/common/sort.h"
#include "kernels/order/order.h"

typedef ortc_order_state order_state;

typedef struct row {
    const ortc_view *x;
    int64_t first, stride; /* element 0 of the row, and from one to the next */
    bool largest;
} row;

/* -1, 0, 1: element a of the row is less than, equal to, more than b. */
static int compare(const row *r, int64_t a, int64_t b)
{
    const void *x = r->x->data;
    const ortc_dtype t = r->x->dtype;
    a = r->first + a * r->stride;
    b = r->first + b * r->stride;
    switch (ortc_class_of(t)) {
    case ORTC_CLASS_FLOAT: {
        const double p = ortc_load_f64(x, t, a), q = ortc_load_f64(x, t, b);
        return p != p || q != q ? (p != p) - (q != q) : (p > q) - (p < q);
    }
    case ORTC_CLASS_INT: {
        const int64_t p = ortc_load_i64(x, t, a), q = ortc_load_i64(x, t, b);
        return (p > q) - (p < q);
    }
    default: {
        const uint64_t p = ortc_load_u64(x, t, a), q = ortc_load_u64(x, t, b);
        return (p > q) - (p < q);
    }
    }
}

static bool before(const void *context, int64_t a, int64_t b)
{
    const row *r = context;
    const int order = compare(r, a, b);
    return order ? (order > 0) == r->largest : a < b;
}

ortc_status ortc_order_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const bool topk = !strcmp(ortc_node_op(n), "TopK");
    order_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (order_state){ortc_node_int(n, "axis", topk ? -1 : 0),
                       topk ? ortc_node_int(n, "largest", 1) != 0 : !strcmp(ortc_node_op(n), "ArgMax"),
                       ortc_node_int(n, "select_last_index", 0) != 0};
    *out = s;
    return ORTC_OK;
}

typedef struct order_job {
    const order_state *state;
    const ortc_view *x;
    ortc_view *values, *indices; /* NULL: not wanted */
    int64_t length, inner, k;
} order_job;

static void topk_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const order_job *j = arg;
    int64_t *at = scratch;
    for (int64_t i = begin; i < end; i++) {
        const int64_t outer = i / j->inner, within = i % j->inner;
        const row r = {j->x, outer * j->length * j->inner + within, j->inner, j->state->largest};
        ortc_sort_first(at, j->k, j->length, before, &r);
        for (int64_t n = 0; n < j->k; n++) {
            const int64_t to = (outer * j->k + n) * j->inner + within;
            if (j->values)
                ortc_move_element(j->values->data, to, j->x->data, r.first + at[n] * r.stride,
                                  ortc_dtype_bits(j->x->dtype));
            if (j->indices) ((int64_t *)j->indices->data)[to] = at[n];
        }
    }
}

static bool is_nan(const row *r, int64_t i)
{
    const double v = ortc_class_of(r->x->dtype) == ORTC_CLASS_FLOAT
                         ? ortc_load_f64(r->x->data, r->x->dtype, r->first + i * r->stride)
                         : 0;
    return v != v;
}

static void arg_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const order_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        const row r = {j->x, i / j->inner * j->length * j->inner + i % j->inner, j->inner, j->state->largest};
        int64_t best = 0;
        for (int64_t n = 1; n < j->length; n++) {
            const int order = is_nan(&r, n) || is_nan(&r, best) ? is_nan(&r, n) - is_nan(&r, best)
                                                                : compare(&r, n, best) * (r.largest ? 1 : -1);
            if (order > 0 || (order == 0 && j->state->last)) best = n;
        }
        ((int64_t *)j->indices->data)[i] = best;
    }
}

static bool order_shape(const order_state *s, const ortc_view *x, order_job *j)
{
    int32_t axis;
    *j = (order_job){.state = s, .x = x, .inner = 1};
    if (!ortc_axis_of(s->axis, x->rank, &axis)) return false;
    j->length = x->dims[axis];
    for (int32_t d = axis + 1; d < x->rank; d++) j->inner *= x->dims[d];
    return true;
}

static ortc_status topk_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *y = &p->out[p->out[0].dtype ? 0 : 1];
    int32_t axis;
    const order_state *s = state;
    if (y->dtype && ortc_axis_of(s->axis, y->rank, &axis) && y->dims[axis] > 0)
        ortc_plan_workspace(p, 0, (size_t)y->dims[axis] * sizeof(int64_t));
    return ORTC_OK;
}

static ortc_status topk_run(const void *state, const void *pstate, ortc_call *c)
{
    order_job j;
    int32_t axis = 0;
    const order_state *s = state;
    const ortc_view *y = &c->out[c->out[0].dtype ? 0 : 1];
    const int64_t count = y->dtype ? ortc_view_count(y) : 0;
    if (count == 0 || !order_shape(s, &c->in[0], &j) || !ortc_axis_of(s->axis, y->rank, &axis))
        return ORTC_OK;
    j.values = c->out[0].dtype ? &c->out[0] : NULL;
    j.indices = c->n_out > 1 && c->out[1].dtype ? &c->out[1] : NULL;
    j.k = y->dims[axis];
    const int64_t grain = 20000 / (j.length + 1);
    return ortc_parallel(c, count / j.k, grain > 0 ? grain : 1, topk_chunk, &j);
}

static ortc_status arg_run(const void *state, const void *pstate, ortc_call *c)
{
    order_job j;
    const int64_t count = ortc_view_count(&c->out[0]);
    if (count == 0 || !order_shape(state, &c->in[0], &j)) /* a scalar's only element is the first */
        return ORTC_OK;
    j.indices = &c->out[0];
    return ortc_parallel(c, count, ortc_grain(6.0 * (double)(j.length + 1)), arg_chunk, &j);
}

static const ortc_kernel topk_ref = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "topk.ref",
                                     .host_in = 2,
                                     .prepare = ortc_order_prepare,
                                     .plan = topk_plan,
                                     .run = topk_run};
static const ortc_kernel arg_ref = {.size = ORTC_SIZED(ortc_kernel),
                                    .name = "arg.ref",
                                    .prepare = ortc_order_prepare,
                                    .run = arg_run};

ORTC_KERNELS(ref, order,
             ORTC_KERNEL("TopK", 24, ORTC_NEWEST, (ORTC_TYPES_NUM, ORTC_TYPE(ORTC_I64)), &topk_ref),
             ORTC_KERNEL("ArgMax", 13, ORTC_NEWEST, (ORTC_TYPES_NUM), &arg_ref),
             ORTC_KERNEL("ArgMin", 13, ORTC_NEWEST, (ORTC_TYPES_NUM), &arg_ref));
