/* kernels/reduce/cpu_integers.c: sums, products and extremes of i32 and i64 on the cpu: exact, the first
 * two modulo 2^32 or 2^64. One task makes a result, or by lines `width` results beside each other.
 */
#include <stdlib.h>

#include "kernels/reduce/reduce.h"

enum { SUM, PROD, MAX, MIN };
static const char *const names[] = {"ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin"};

typedef struct integer_state {
    int what;
    bool noop;
} integer_state;

typedef struct integer_job {
    const void *x;
    void *y;
    int what;
    ortc_reduced dims;
} integer_job;

/* r = fold(r, x[i]) for each i. T's sums and products as U, whose overflow is defined. */
#define EACH(T, U, r) \
    switch (what) { \
    case SUM: \
        for (int64_t i = 0; i < n; i++) r = (T)((U)r + (U)x[i]); \
        break; \
    case PROD: \
        for (int64_t i = 0; i < n; i++) r = (T)((U)r * (U)x[i]); \
        break; \
    case MAX: \
        for (int64_t i = 0; i < n; i++) r = x[i] > r ? x[i] : r; \
        break; \
    default: \
        for (int64_t i = 0; i < n; i++) r = x[i] < r ? x[i] : r; \
    }

#define FOLD(T, U, LOW, HIGH) \
    static void row_##T(int what, int64_t n, const T *x, T *y) \
    { \
        T r = *y; \
        EACH(T, U, r) \
        *y = r; \
    } \
    static void line_##T(int what, int64_t n, const T *x, T *y) { EACH(T, U, y[i]) } \
    static void chunk_##T(void *arg, int64_t begin, int64_t end, void *scratch) \
    { \
        const integer_job *j = arg; \
        const ortc_reduced *d = &j->dims; \
        const int64_t beside = d->by_lines ? d->width : 1; \
        const int64_t pieces = d->by_lines || !d->width ? d->each : d->each / d->width; \
        const T neutral = j->what == SUM ? 0 : j->what == PROD ? 1 : j->what == MAX ? LOW : HIGH; \
        ortc_walk kept = d->kept, reduced = d->reduced; /* a full turn ends where it began */ \
        ortc_walk_seek(&kept, begin); \
        for (int64_t task = begin; task < end; task++, ortc_walk_next(&kept)) { \
            T *y = (T *)j->y + task * beside; \
            for (int64_t i = 0; i < beside; i++) y[i] = neutral; \
            for (int64_t p = 0; p < pieces; p++, ortc_walk_next(&reduced)) { \
                const T *x = (const T *)j->x + kept.at[0] + reduced.at[0]; \
                (d->by_lines ? line_##T : row_##T)(j->what, d->width, x, y); \
            } \
        } \
    }
FOLD(int32_t, uint32_t, INT32_MIN, INT32_MAX)
FOLD(int64_t, uint64_t, INT64_MIN, INT64_MAX)

static ortc_status integers_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    integer_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->noop = ortc_node_int(n, "noop_with_empty_axes", 0) != 0;
    while (strcmp(names[s->what], ortc_node_op(n)) != 0) s->what++;
    *out = s;
    return ORTC_OK;
}

static ortc_status integers_run(const void *state, const void *pstate, ortc_call *c)
{
    const integer_state *s = state;
    const ortc_view *axes = c->n_in > 1 && c->in[1].dtype ? &c->in[1] : NULL;
    const int64_t results = ortc_view_count(&c->out[0]);
    integer_job j = {.x = c->in[0].data, .y = c->out[0].data, .what = s->what};
    (void)pstate;
    if (!ortc_reduce_dims(&c->in[0], axes, s->noop, &j.dims))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "an axis is outside of the input's rank");
    if (results == 0) return ORTC_OK;
    const bool lines = j.dims.by_lines;
    const int64_t tasks = lines ? results / j.dims.width : results;
    return ortc_parallel(c, tasks, ortc_grain((double)(j.dims.each * (lines ? j.dims.width : 1))),
                         c->in[0].dtype == ORTC_I32 ? chunk_int32_t : chunk_int64_t, &j);
}

const ortc_kernel ortc_cpu_reduce_integers = {.size = ORTC_SIZED(ortc_kernel),
                                              .name = "reduce.integers",
                                              .host_in = 2,
                                              .prepare = integers_prepare,
                                              .run = integers_run};
