/* kernels/pool/ref.c: the largest element, the mean or the p-norm under a window, in double, which holds all
 * types exactly.
 *
 * The global forms are a window of the whole input. Padding never wins a maximum; a window that sees a NaN
 * gives NaN. A window of nothing but padding gives the lowest value and the index -1, or 0 / 0.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/window.h"

extern const ortc_kernel ortc_ref_max_unpool; /* ref_unpool.c */

typedef struct pool_state {
    ortc_window window;
    bool max, global, column_major, include_pad;
    int64_t p; /* of the norm; 0: none */
} pool_state;

typedef struct pool_job {
    const pool_state *state;
    const ortc_view *x;
    const ortc_view *y, *indices; /* NULL: not wanted */
    int32_t spatial;
    int64_t in_count, out_count, most; /* most: places of a window that lie in the input */
    int64_t kernel[ORTC_SPATIAL_LIMIT], pad[ORTC_SPATIAL_LIMIT], pad_end[ORTC_SPATIAL_LIMIT];
    int64_t column[ORTC_SPATIAL_LIMIT]; /* strides of an index in column-major order */
} pool_job;

typedef struct pool_window {
    double best, sum, counted;
    int64_t index; /* index: of the first best element in its channel */
} pool_window;

/* Places k of a window, whose first lies at `first`, that are below `end`. */
static int64_t places_below(int64_t first, int64_t end, int64_t step, int64_t kernel)
{
    const int64_t n = end > first ? (end - 1 - first) / step + 1 : 0;
    return n < kernel ? n : kernel;
}

/* |v|^p; most norms are of p 2. */
static double power(double v, int64_t p)
{
    return p == 2 ? v * v : p == 1 ? fabs(v) : pow(fabs(v), (double)p);
}

/* Goes over the window at `o`, as far as it lies in the input: attributes may say far larger ones. */
static void pool_one(const pool_job *j, ortc_dtype t, int64_t x0, const int64_t *o, pool_window *r)
{
    const ortc_window *w = &j->state->window;
    int64_t first[ORTC_SPATIAL_LIMIT], from[ORTC_SPATIAL_LIMIT], to[ORTC_SPATIAL_LIMIT],
        k[ORTC_SPATIAL_LIMIT];
    int64_t inside = 1;
    double counted = 1;
    *r = (pool_window){-INFINITY, 0, 0, -1};
    for (int32_t i = 0; i < j->spatial; i++) {
        const int64_t extent = j->x->dims[i + 2], step = w->dilation[i];
        first[i] = o[i] * w->stride[i] - j->pad[i];
        to[i] = places_below(first[i], extent, step, j->kernel[i]);
        k[i] = from[i] = first[i] < 0 ? (step - 1 - first[i]) / step : 0;
        inside *= to[i] > from[i] ? to[i] - from[i] : 0;
        /* with ceil_mode a window may reach behind its padding */
        counted *= (double)places_below(first[i], extent + j->pad_end[i], step, j->kernel[i]);
    }
    r->counted = j->state->include_pad ? counted : (double)inside;
    for (int64_t q = 0; q < inside; q++) {
        int64_t at = 0, index = 0;
        for (int32_t i = 0; i < j->spatial; i++) {
            const int64_t p = first[i] + k[i] * w->dilation[i];
            at = at * j->x->dims[i + 2] + p;
            index += p * j->column[i];
        }
        for (int32_t i = j->spatial - 1; i >= 0 && ++k[i] == to[i]; i--) k[i] = from[i];
        const double v = ortc_load_f64(j->x->data, t, x0 + at);
        r->sum += j->state->p ? power(v, j->state->p) : v;
        if (r->index < 0 || v > r->best || (v != v && r->best == r->best)) {
            r->best = v;
            r->index = j->state->column_major ? index : at;
        }
    }
}

static double lowest(ortc_dtype t) { return t == ORTC_I8 ? -128 : t == ORTC_U8 ? 0 : -INFINITY; }

static void pool_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const pool_job *j = arg;
    const ortc_dtype t = j->x->dtype;
    for (int64_t at = begin; at < end; at++) {
        int64_t o[ORTC_SPATIAL_LIMIT], rest = at % j->out_count;
        const int64_t x0 = at / j->out_count * j->in_count;
        pool_window r;
        for (int32_t i = j->spatial - 1; i >= 0; i--) {
            const int64_t extent = j->state->global ? 1 : j->y ? j->y->dims[i + 2] : j->indices->dims[i + 2];
            o[i] = rest % extent;
            rest /= extent;
        }
        pool_one(j, t, x0, o, &r);
        if (j->y)
            ortc_store_f64(j->y->data, t, at,
                           j->state->p      ? pow(r.sum, 1 / (double)j->state->p)
                           : !j->state->max ? r.sum / r.counted
                           : r.index < 0    ? lowest(t)
                                            : r.best);
        if (j->indices) ortc_store_i64(j->indices->data, ORTC_I64, at, r.index < 0 ? -1 : x0 + r.index);
    }
}

static ortc_status pool_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *op = ortc_node_op(n), *attribute, *wrong;
    pool_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->max = strstr(op, "Max") != NULL;
    s->p = strstr(op, "Lp") ? ortc_node_int(n, "p", 2) : 0;
    if (strstr(op, "Lp") && s->p < 1) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute p must be 1 at least");
    }
    s->global = strstr(op, "Global") != NULL;
    s->column_major = ortc_node_int(n, "storage_order", 0) != 0;
    s->include_pad = ortc_node_int(n, "count_include_pad", 0) != 0;
    wrong = ortc_window_read(n, -1, &s->window, &attribute);
    if (wrong) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute %s %s", attribute, wrong);
    }
    *out = s;
    return ORTC_OK;
}

static ortc_status pool_run(const void *state, const void *pstate, ortc_call *c)
{
    const pool_state *s = state;
    pool_job j = {.state = s, .x = &c->in[0], .in_count = 1, .out_count = 1, .most = 1};
    j.y = c->out[0].dtype ? &c->out[0] : NULL;
    j.indices = c->n_out > 1 && c->out[1].dtype ? &c->out[1] : NULL;
    const ortc_view *shape = j.y ? j.y : j.indices;
    if (!shape || ortc_view_count(shape) == 0) return ORTC_OK;
    j.spatial = j.x->rank - 2;
    for (int32_t i = 0; i < j.spatial; i++) {
        const int64_t in = j.x->dims[i + 2], out = shape->dims[i + 2];
        j.column[i] = j.in_count;
        j.kernel[i] = s->global ? in : s->window.kernel[i];
        if (!s->global) {
            j.pad[i] = ortc_window_pad(&s->window, i, in, out);
            j.pad_end[i] = s->window.pad_end[i];
            if (s->window.auto_pad == ORTC_PAD_SAME_UPPER || s->window.auto_pad == ORTC_PAD_SAME_LOWER)
                j.pad_end[i] = INT32_MAX; /* as much as the windows reach over */
        }
        j.in_count *= in;
        j.out_count *= out;
        j.most *= j.kernel[i] < in ? j.kernel[i] : in;
    }
    return ortc_parallel(c, ortc_view_count(shape), ortc_grain(8.0 * (double)(j.most + 4)), pool_chunk, &j);
}

static const ortc_kernel pool_ref = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "pool.ref",
                                     .prepare = pool_prepare,
                                     .run = pool_run};

ORTC_KERNELS(ref, pool,
             ORTC_KERNEL("MaxPool", 22, ORTC_NEWEST,
                         (ORTC_TYPES_FLOAT | ORTC_TYPE(ORTC_I8) | ORTC_TYPE(ORTC_U8), ORTC_TYPE(ORTC_I64)),
                         &pool_ref),
             ORTC_KERNEL("AveragePool", 22, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &pool_ref),
             ORTC_KERNEL("GlobalMaxPool", 22, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &pool_ref),
             ORTC_KERNEL("GlobalAveragePool", 22, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &pool_ref),
             ORTC_KERNEL("LpPool", 22, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &pool_ref),
             ORTC_KERNEL("GlobalLpPool", 22, ORTC_NEWEST, (ORTC_TYPES_FLOAT), &pool_ref),
             ORTC_KERNEL("MaxUnpool", 22, ORTC_NEWEST, (ORTC_TYPES_FLOAT, ORTC_TYPE(ORTC_I64)),
                         &ortc_ref_max_unpool));
