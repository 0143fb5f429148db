/* kernels/select/ref_unique.c: Unique on ref: slices are sorted, equal ones are neighbours then.
 *
 * NaN is equal to NaN and the largest, complex numbers go by their real part first, as in numpy. Workspace:
 * five arrays of as many positions as there are slices.
 */
#include <stdlib.h>

#include "kernels/common/sort.h"
#include "kernels/common/strings.h"
#include "kernels/select/select.h"

typedef struct slices {
    const ortc_view *x;
    int64_t outer, n, inner;
} slices;

static int compare_floats(double a, double b)
{
    return a != a || b != b ? (a != a) - (b != b) : (a > b) - (a < b);
}

static int compare_elements(const ortc_view *v, int64_t i, int64_t k)
{
    const ortc_dtype t = v->dtype;
    if (t == ORTC_STRING) return ortc_span_compare(ortc_span_at(v, i), ortc_span_at(v, k));
    switch (ortc_class_of(t)) {
    case ORTC_CLASS_FLOAT: return compare_floats(ortc_load_f64(v->data, t, i), ortc_load_f64(v->data, t, k));
    case ORTC_CLASS_INT: {
        const int64_t a = ortc_load_i64(v->data, t, i), b = ortc_load_i64(v->data, t, k);
        return (a > b) - (a < b);
    }
    case ORTC_CLASS_UINT: {
        const uint64_t a = ortc_load_u64(v->data, t, i), b = ortc_load_u64(v->data, t, k);
        return (a > b) - (a < b);
    }
    default: {
        const ortc_dtype part = t == ORTC_C64 ? ORTC_F32 : ORTC_F64;
        const int real = compare_floats(ortc_load_f64(v->data, part, 2 * i),
                                        ortc_load_f64(v->data, part, 2 * k));
        return real ? real
                    : compare_floats(ortc_load_f64(v->data, part, 2 * i + 1),
                                     ortc_load_f64(v->data, part, 2 * k + 1));
    }
    }
}

static int compare_slices(const slices *s, int64_t a, int64_t b)
{
    for (int64_t o = 0; o < s->outer; o++)
        for (int64_t i = 0; i < s->inner; i++) {
            const int order = compare_elements(s->x, (o * s->n + a) * s->inner + i,
                                               (o * s->n + b) * s->inner + i);
            if (order) return order;
        }
    return 0;
}
static bool slice_before(const void *context, int64_t a, int64_t b)
{
    const int order = compare_slices(context, a, b);
    return order ? order < 0 : a < b;
}
static bool first_before(const void *context, int64_t a, int64_t b)
{
    const int64_t *first = context;
    return first[a] < first[b];
}

/* The found slices, in the order `ranked`, as strings. */
static ortc_status give_strings(ortc_call *c, const slices *x, int32_t rank, const int64_t *dims,
                                int64_t found, const int64_t *first, const int64_t *ranked)
{
    const int64_t count = x->outer * found * x->inner;
    ortc_span *spans = malloc((size_t)count * sizeof *spans + 1);
    if (!spans) return ortc_call_fail(c, ORTC_OUT_OF_MEMORY, "no memory for %lld strings", (long long)count);
    for (int64_t i = 0; i < count; i++) {
        const int64_t within = i % x->inner, r = i / x->inner % found, o = i / x->inner / found;
        spans[i] = ortc_span_at(x->x, (o * x->n + first[ranked[r]]) * x->inner + within);
    }
    const ortc_status s = ortc_give_spans(c, 0, rank, dims, spans);
    free(spans);
    return s;
}

enum { ORDER, GROUP, FIRST, COUNT, RANKED, ARRAYS };

static ortc_status unique_plan(const void *state, ortc_plan *p, void **pstate)
{
    int64_t outer, n, inner;
    int32_t axis;
    ortc_slices_of(state, &p->in[0], &outer, &n, &inner, &axis);
    if ((uint64_t)n > SIZE_MAX / ARRAYS / sizeof n)
        return ortc_plan_fail(p, ORTC_LIMIT, "%lld slices are too many", (long long)n);
    ortc_plan_workspace(p, (size_t)n * ARRAYS * sizeof n, 0);
    return ORTC_OK;
}

static ortc_status unique_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_slices *s = state;
    slices x = {.x = &c->in[0]};
    int64_t dims[ORTC_RANK_LIMIT], *a[ARRAYS], found = 0;
    int32_t axis;
    ortc_slices_of(s, x.x, &x.outer, &x.n, &x.inner, &axis);
    for (int i = 0; i < ARRAYS; i++) a[i] = (int64_t *)c->workspace + i * x.n;
    for (int64_t i = 0; i < x.n; i++) a[ORDER][i] = i;
    ortc_sort(a[ORDER], x.n, slice_before, &x);
    ORTC_TRY(ortc_poll(c));
    for (int64_t i = 0; i < x.n;
         i++) { /* groups in sorted order; the first of a group has its lowest position */
        if (i == 0 || compare_slices(&x, a[ORDER][i - 1], a[ORDER][i])) {
            a[FIRST][found] = a[ORDER][i];
            a[COUNT][found++] = 0;
        }
        a[COUNT][found - 1]++;
        a[GROUP][a[ORDER][i]] = found - 1;
    }
    for (int64_t g = 0; g < found; g++) a[RANKED][g] = g;
    if (!s->sorted) /* by first occurrence */
        ortc_sort(a[RANKED], found, first_before, a[FIRST]);
    for (int64_t r = 0; r < found; r++) a[ORDER][a[RANKED][r]] = r; /* where a group stands in the result */
    const int32_t rank = ortc_slices_dims(s, x.x, axis, found, dims);
    const bool strings = x.x->dtype == ORTC_STRING;
    if (strings && c->out[0].dtype) ORTC_TRY(give_strings(c, &x, rank, dims, found, a[FIRST], a[RANKED]));
    if (!strings) ORTC_TRY(ortc_call_resize(c, 0, rank, dims));
    if (c->n_out > 1) ORTC_TRY(ortc_call_resize(c, 1, 1, &found));
    if (c->n_out > 2) ORTC_TRY(ortc_call_resize(c, 2, 1, &x.n));
    if (c->n_out > 3) ORTC_TRY(ortc_call_resize(c, 3, 1, &found));
    for (int64_t o = 0; o < x.outer && c->out[0].dtype && !strings; o++)
        for (int64_t r = 0; r < found; r++)
            ortc_move_elements(c->out[0].data, (o * found + r) * x.inner, x.x->data,
                               (o * x.n + a[FIRST][a[RANKED][r]]) * x.inner, x.inner,
                               ortc_dtype_bits(x.x->dtype));
    for (int64_t r = 0; r < found && c->n_out > 1; r++) {
        if (c->out[1].dtype) ((int64_t *)c->out[1].data)[r] = a[FIRST][a[RANKED][r]];
        if (c->n_out > 3 && c->out[3].dtype) ((int64_t *)c->out[3].data)[r] = a[COUNT][a[RANKED][r]];
    }
    for (int64_t i = 0; i < x.n && c->n_out > 2 && c->out[2].dtype; i++)
        ((int64_t *)c->out[2].data)[i] = a[ORDER][a[GROUP][i]];
    return ORTC_OK;
}

const ortc_kernel ortc_ref_unique = {.size = ORTC_SIZED(ortc_kernel),
                                     .flags = ORTC_KERNEL_LATE_OUT,
                                     .name = "unique.ref",
                                     .prepare = ortc_slices_prepare,
                                     .plan = unique_plan,
                                     .run = unique_run};
