/* kernels/elementwise/ref_variadic.c: Min, Max, Sum and Mean of any number of inputs on ref.
 *
 * A block of results at a time is gathered from one input after the other, in the class of the type, and
 * rounded once. A NaN in any input gives NaN.
 */
#include <stdlib.h>

#include "kernels/common/shape.h"
#include "kernels/elementwise/elementwise.h"

#define BLOCK 256

enum { VARIADIC_MIN, VARIADIC_MAX, VARIADIC_SUM, VARIADIC_MEAN };

typedef struct variadic_job {
    int what;
    const ortc_call *call;
} variadic_job;

typedef union number {
    double f;
    int64_t i;
    uint64_t u;
} number;

#define GATHER(field, load, or_nan) \
    for (int64_t i = 0; i < count; i++, ortc_walk_next(&w)) { \
        const number v = {.field = load(x->data, x->dtype, w.at[0])}; \
        number *a = &to[i]; \
        if (first) \
            *a = v; \
        else if (what == VARIADIC_MIN ? v.field < a->field or_nan \
                                      : what == VARIADIC_MAX && (v.field > a->field or_nan)) \
            *a = v; \
        else if (what >= VARIADIC_SUM) \
            a->field += v.field; \
    }

static void gather(int what, const ortc_view *x, const ortc_view *y, int64_t begin, int64_t count, bool first,
                   number *to)
{
    ortc_walk w;
    ortc_walk_init(&w, y->rank, y->dims);
    ortc_walk_view(&w, x);
    ortc_walk_merge(&w);
    ortc_walk_seek(&w, begin);
    switch (ortc_class_of(x->dtype)) {
    case ORTC_CLASS_FLOAT: GATHER(f, ortc_load_f64, || v.f != v.f) break;
    case ORTC_CLASS_INT: GATHER(i, ortc_load_i64, ) break;
    default: GATHER(u, ortc_load_u64, ) break;
    }
}

static void variadic_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const variadic_job *j = arg;
    const ortc_view *y = &j->call->out[0];
    number block[BLOCK];
    for (int64_t at = begin; at < end; at += BLOCK) {
        const int64_t count = end - at < BLOCK ? end - at : BLOCK;
        for (uint32_t k = 0; k < j->call->n_in; k++)
            gather(j->what, &j->call->in[k], y, at, count, k == 0, block);
        for (int64_t i = 0; i < count; i++) {
            if (ortc_class_of(y->dtype) == ORTC_CLASS_FLOAT)
                ortc_store_f64(y->data, y->dtype, at + i,
                               j->what == VARIADIC_MEAN ? block[i].f / (double)j->call->n_in : block[i].f);
            else
                ortc_store_u64(y->data, y->dtype, at + i, block[i].u);
        }
    }
}

static ortc_status variadic_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    static const char *const names[] = {"Min", "Max", "Sum", "Mean"};
    int *state = malloc(sizeof *state);
    if (!state) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for the operator's state");
    for (*state = 0; *state < VARIADIC_MEAN && strcmp(names[*state], ortc_node_op(n)) != 0;) ++*state;
    *out = state;
    return ORTC_OK;
}

static ortc_status variadic_run(const void *state, const void *pstate, ortc_call *c)
{
    variadic_job j = {*(const int *)state, c};
    const int64_t count = ortc_view_count(&c->out[0]);
    return count ? ortc_parallel(c, count, ortc_grain(10.0 * (double)c->n_in), variadic_chunk, &j) : ORTC_OK;
}

const ortc_kernel ortc_ref_variadic = {.size = ORTC_SIZED(ortc_kernel),
                                       .name = "variadic.ref",
                                       .prepare = variadic_prepare,
                                       .run = variadic_run};
