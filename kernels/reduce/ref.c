/* kernels/reduce/ref.c: reductions on ref: for each output element, over the elements that it is made of.
 *
 * Floats in double. Integers exactly modulo 2^64 for sums, products and extremes; roots and logarithms of
 * them in double, cut towards zero. An empty reduction gives the neutral element: 0, 1, or the lowest or
 * highest value of the type.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/shape.h"

enum { SUM, MEAN, MAX, MIN, PROD, L1, L2, SUM_SQUARE, LOG_SUM, LOG_SUM_EXP };
static const char *const names[] = {"ReduceSum",    "ReduceMean",     "ReduceMax", "ReduceMin",
                                    "ReduceProd",   "ReduceL1",       "ReduceL2",  "ReduceSumSquare",
                                    "ReduceLogSum", "ReduceLogSumExp"};

typedef struct reduce_state {
    int what;
    bool noop;
} reduce_state;

typedef struct reduce_job {
    int what;
    const ortc_view *x;
    ortc_view *y;
    int64_t each; /* elements that one result is made of */
    ortc_walk kept, reduced;
} reduce_job;

/* Over the reduced dims, from element `base`; a full turn brings the walk back to its start. */
#define EACH(w) for (int64_t i = 0; i < j->each; i++, ortc_walk_next(w))

static double reduce_float(const reduce_job *j, ortc_walk *w, int64_t base)
{
    const ortc_dtype t = j->x->dtype;
    double r = j->what == PROD                            ? 1
               : j->what == MAX || j->what == LOG_SUM_EXP ? -INFINITY
               : j->what == MIN                           ? INFINITY
                                                          : 0;
    EACH(w)
    {
        const double v = ortc_load_f64(j->x->data, t, base + w->at[0]);
        switch (j->what) {
        case PROD: r *= v; break;
        case MAX:
        case LOG_SUM_EXP: r = v > r || v != v ? v : r; break;
        case MIN: r = v < r || v != v ? v : r; break;
        case L1: r += fabs(v); break;
        case L2:
        case SUM_SQUARE: r += v * v; break;
        default: r += v;
        }
    }
    switch (j->what) {
    case MEAN: return r / (double)j->each;
    case L2: return sqrt(r);
    case LOG_SUM: return log(r);
    case LOG_SUM_EXP: { /* the largest is taken off first; an infinite one is the result */
        double sum = 0;
        if (isinf(r) || r != r) return r;
        EACH(w)
        sum += exp(ortc_load_f64(j->x->data, t, base + w->at[0]) - r);
        return r + log(sum);
    }
    default: return r;
    }
}

/* Sums and products of two's complement numbers are the same bits signed or not. */
static uint64_t reduce_int(const reduce_job *j, ortc_walk *w, int64_t base, bool is_signed)
{
    const ortc_dtype t = j->x->dtype;
    const uint32_t bits = t == ORTC_BOOL ? 1 : ortc_dtype_bits(t);
    const uint64_t highest = is_signed ? UINT64_MAX >> (65 - bits) : UINT64_MAX >> (64 - bits);
    uint64_t r = j->what == PROD  ? 1
                 : j->what == MAX ? (is_signed ? ~highest : 0)
                 : j->what == MIN ? highest
                                  : 0;
    EACH(w)
    {
        const uint64_t v = (uint64_t)ortc_load_i64(j->x->data, t, base + w->at[0]);
        const bool less = is_signed ? (int64_t)v < (int64_t)r : v < r;
        switch (j->what) {
        case PROD: r *= v; break;
        case MAX: r = less ? r : v; break;
        case MIN: r = less ? v : r; break;
        case L1: r += is_signed && (int64_t)v < 0 ? 0 - v : v; break;
        case SUM_SQUARE: r += v * v; break;
        default: r += v;
        }
    }
    if (j->what == MEAN && j->each > 0)
        r = is_signed ? (uint64_t)((int64_t)r / j->each) : r / (uint64_t)j->each;
    return r;
}

static void reduce_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const reduce_job *j = arg;
    const ortc_class class = ortc_class_of(j->x->dtype);
    const bool in_double = class == ORTC_CLASS_FLOAT || j->what == L2 || j->what == LOG_SUM ||
                           j->what == LOG_SUM_EXP;
    ortc_walk kept = j->kept, reduced = j->reduced;
    ortc_walk_seek(&kept, begin);
    for (int64_t i = begin; i < end; i++, ortc_walk_next(&kept)) {
        if (in_double)
            ortc_store_f64(j->y->data, j->y->dtype, i, reduce_float(j, &reduced, kept.at[0]));
        else
            ortc_store_u64(j->y->data, j->y->dtype, i,
                           reduce_int(j, &reduced, kept.at[0], class == ORTC_CLASS_INT));
    }
}

static ortc_status reduce_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    reduce_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->noop = ortc_node_int(n, "noop_with_empty_axes", 0) != 0;
    for (s->what = 0; s->what < LOG_SUM_EXP && strcmp(names[s->what], ortc_node_op(n)) != 0;) s->what++;
    *out = s;
    return ORTC_OK;
}

static ortc_status reduce_run(const void *state, const void *pstate, ortc_call *c)
{
    const reduce_state *s = state;
    const ortc_view *x = &c->in[0], *axes = c->n_in > 1 && c->in[1].dtype ? &c->in[1] : NULL;
    const int64_t given = axes ? ortc_view_count(axes) : 0, count = ortc_view_count(&c->out[0]);
    reduce_job j = {.what = s->what, .x = x, .y = &c->out[0], .each = 1};
    int64_t strides[ORTC_RANK_LIMIT], dims[2][ORTC_RANK_LIMIT], steps[2][ORTC_RANK_LIMIT];
    bool drop[ORTC_RANK_LIMIT] = {false};
    int32_t rank[2] = {0, 0}; /* kept, reduced */
    if (count == 0) return ORTC_OK;
    for (int64_t i = 0; i < given; i++) {
        int32_t axis;
        if (!ortc_axis_of(ortc_load_i64(axes->data, ORTC_I64, i), x->rank, &axis))
            return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "an axis is outside of the input's rank");
        drop[axis] = true;
    }
    ortc_dense_strides(x->rank, x->dims, strides);
    for (int32_t d = 0; d < x->rank; d++) {
        const int to = given ? drop[d] : !s->noop;
        dims[to][rank[to]] = x->dims[d];
        steps[to][rank[to]++] = strides[d];
    }
    j.each = ortc_view_count(&(ortc_view){.rank = rank[1], .dims = dims[1]});
    ortc_walk *const walks[2] = {&j.kept, &j.reduced};
    for (int k = 0; k < 2; k++) {
        ortc_walk_init(walks[k], rank[k], dims[k]);
        ortc_walk_strided(walks[k], steps[k], 0);
        ortc_walk_merge(walks[k]);
    }
    return ortc_parallel(c, count, ortc_grain(6.0 * (double)(j.each + 4)), reduce_chunk, &j);
}

static const ortc_kernel reduce_ref = {.size = ORTC_SIZED(ortc_kernel),
                                       .name = "reduce.ref",
                                       .host_in = 2,
                                       .prepare = reduce_prepare,
                                       .run = reduce_run};

#define WIDE \
    (ORTC_TYPES_FLOAT | ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64) | ORTC_TYPE(ORTC_U32) | ORTC_TYPE(ORTC_U64))
#define NARROW (ORTC_TYPE(ORTC_I8) | ORTC_TYPE(ORTC_U8) | ORTC_TYPE(ORTC_BOOL))
#define K(op, since, types) ORTC_KERNEL(op, since, ORTC_NEWEST, (types), &reduce_ref)
ORTC_KERNELS(ref, reduce, K("ReduceSum", 13, WIDE), K("ReduceMean", 18, WIDE),
             K("ReduceMax", 20, WIDE | NARROW), K("ReduceMin", 20, WIDE | NARROW), K("ReduceProd", 18, WIDE),
             K("ReduceL1", 18, WIDE), K("ReduceL2", 18, WIDE), K("ReduceSumSquare", 18, WIDE),
             K("ReduceLogSum", 28, WIDE), K("ReduceLogSumExp", 28, WIDE));
