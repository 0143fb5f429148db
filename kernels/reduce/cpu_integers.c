/* kernels/reduce/cpu_integers.c: sums, products and extremes on the cpu in the type of the elements:
 * of integers exact, the first two modulo their width; of f64 with the mean. One task makes a result, or by
 * lines `width` results beside each other.
 */
#include <stdlib.h>

#include "kernels/reduce/reduce.h"

enum { SUM, PROD, MAX, MIN, MEAN };
static const char *const names[] = {"ReduceSum", "ReduceProd", "ReduceMax", "ReduceMin", "ReduceMean"};

typedef struct integer_state {
    int what;
    bool noop;
} integer_state;

/* y = fold(y, x[i]) for each i; by lines y[i] = fold(y[i], x[i]). */
typedef void fold_fn(int what, int64_t n, const void *x, void *y);

typedef struct integer_job {
    const char *x;
    char *y;
    int what;
    uint64_t neutral; /* low bytes first, as memory has them */
    fold_fn *row, *line;
    size_t bytes;
    ortc_reduced dims;
} integer_job;

/* T's sums and products as U, whose overflow is defined. A NaN stays. */
#define EXTREMES(r) \
    case MAX: \
        for (int64_t i = 0; i < n; i++) r = x[i] > r || x[i] != x[i] ? x[i] : r; \
        break; \
    default: \
        for (int64_t i = 0; i < n; i++) r = x[i] < r || x[i] != x[i] ? x[i] : r;
#define EACH(T, U, r) \
    case SUM: \
        for (int64_t i = 0; i < n; i++) r = (T)((U)r + (U)x[i]); \
        break; \
    case PROD: \
        for (int64_t i = 0; i < n; i++) r = (T)((U)r * (U)x[i]); \
        break; \
        EXTREMES(r)
#define NO_SUMS(T, U, r) EXTREMES(r)
#define FOLD(T, U, CASES) \
    static void row_##T(int what, int64_t n, const void *from, void *to) \
    { \
        const T *x = from; \
        T r = *(T *)to; \
        switch (what) { \
            CASES(T, U, r) \
        } \
        *(T *)to = r; \
    } \
    static void line_##T(int what, int64_t n, const void *from, void *to) \
    { \
        const T *x = from; \
        T *y = to; \
        switch (what) { \
            CASES(T, U, y[i]) \
        } \
    }
FOLD(int32_t, uint32_t, EACH)
FOLD(int64_t, uint64_t, EACH)
FOLD(double, double, EACH)
FOLD(uint8_t, uint8_t, NO_SUMS)

/* A row of f64 as lines first: its folds would wait for each other. */
static void row_f64(int what, int64_t n, const void *from, void *to)
{
    enum { BESIDE = 32 };
    const double *x = from;
    double part[BESIDE];
    int64_t i = BESIDE;
    if (n < 2 * BESIDE) {
        row_double(what, n, x, to);
        return;
    }
    memcpy(part, x, sizeof part);
    for (; i + BESIDE <= n; i += BESIDE) line_double(what, BESIDE, x + i, part);
    row_double(what, BESIDE, part, to);
    row_double(what, n - i, x + i, to);
}

/* Sums of unsigned numbers are those of signed ones; their extremes are not done here. */
static const struct folds {
    uint64_t types;
    fold_fn *row, *line;
} folds[] = {
#define TYPES(t, u) ORTC_TYPE(ORTC_##t) | ORTC_TYPE(ORTC_##u)
    {TYPES(I32, U32), row_int32_t, line_int32_t},
    {TYPES(I64, U64), row_int64_t, line_int64_t},
    {TYPES(F64, F64), row_f64, line_double},
    {TYPES(U8, BOOL), row_uint8_t, line_uint8_t},
};

/* The bits of what changes nothing; of extremes the least or the most that there is. */
static uint64_t neutral_of(int what, ortc_dtype t)
{
    const bool least = what == MAX;
    const uint64_t top = UINT64_C(1) << (ortc_dtype_bits(t) - 1);
    if (what != MAX && what != MIN) return what != PROD ? 0 : t == ORTC_F64 ? UINT64_C(0x3ff) << 52 : 1;
    if (t == ORTC_F64) return UINT64_C(0x7ff) << 52 | (least ? top : 0);
    if (ortc_class_of(t) == ORTC_CLASS_INT) return least ? top : top - 1;
    return least ? 0 : t == ORTC_BOOL ? 1 : 2 * top - 1;
}

static void integers_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const integer_job *j = arg;
    const ortc_reduced *d = &j->dims;
    const int64_t beside = d->by_lines ? d->width : 1;
    const int64_t pieces = d->by_lines || !d->width ? d->each : d->each / d->width;
    ortc_walk kept = d->kept, reduced = d->reduced; /* a full turn ends where it began */
    ortc_walk_seek(&kept, begin);
    for (int64_t task = begin; task < end; task++, ortc_walk_next(&kept)) {
        char *y = j->y + (size_t)(task * beside) * j->bytes;
        for (int64_t i = 0; i < beside; i++) memcpy(y + (size_t)i * j->bytes, &j->neutral, j->bytes);
        for (int64_t p = 0; p < pieces; p++, ortc_walk_next(&reduced))
            (d->by_lines ? j->line : j->row)(j->what == MEAN ? SUM : j->what, d->width,
                                             j->x + (size_t)(kept.at[0] + reduced.at[0]) * j->bytes, y);
        for (int64_t i = 0; j->what == MEAN && i < beside; i++) ((double *)(void *)y)[i] /= (double)d->each;
    }
}

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
    const ortc_dtype t = c->in[0].dtype;
    const struct folds *f = folds;
    (void)pstate;
    bool drop[ORTC_RANK_LIMIT];
    if (!ortc_reduce_drop(&c->in[0], axes, s->noop, drop))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "an axis is outside of the input's rank");
    ortc_reduce_dims(&c->in[0], drop, &j.dims);
    if (results == 0) return ORTC_OK;
    while (!(f->types >> t & 1)) f++;
    j.row = f->row;
    j.line = f->line;
    j.bytes = ortc_dtype_bits(t) / 8;
    j.neutral = neutral_of(s->what, t);
    const bool lines = j.dims.by_lines;
    const int64_t tasks = lines ? results / j.dims.width : results;
    return ortc_parallel(c, tasks, ortc_grain((double)(j.dims.each * (lines ? j.dims.width : 1))),
                         integers_chunk, &j);
}

const ortc_kernel ortc_cpu_reduce_integers = {.size = ORTC_SIZED(ortc_kernel),
                                              .name = "reduce.integers",
                                              .host_in = 2,
                                              .prepare = integers_prepare,
                                              .run = integers_run};
