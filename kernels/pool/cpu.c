/* kernels/pool/cpu.c: pools of floats on the cpu provider, in f32, over any number of spatial dims.
 *
 * A row of results is made in two steps: the rows of X under its windows are folded into one line, padded
 * left and right with what never wins (or adds nothing); then each result folds its places of the line.
 * Numbers of counted elements are products of one factor per dim. Global pools fold whole channels by the
 * bodies of reductions. Places of maxima are places.c's.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/vector/convert.h"
#include "kernels/common/window.h"
#include "kernels/pool/across.h"
#include "kernels/pool/blocks.h"
#include "kernels/pool/bytes.h"
#include "kernels/pool/places.h"
#include "kernels/reduce/rows.h"

ORTC_VEC_TABLE(ortc_pool_across)
ORTC_VEC_TABLE(ortc_reduce_rows)

enum {
    PIECE = 8192,
    SOME_ROWS = 8,
    LINE = 16
}; /* SOME_ROWS: folded at a time; LINE: floats in one of the cache */

typedef struct pool_state {
    ortc_window window;
    bool max, global, include_pad;
} pool_state;

typedef struct pool_plan {
    const ortc_pool_across *across;
    const ortc_reduce_rows *fold;
    const ortc_convert *convert;
    int32_t spatial;
    int64_t channels, in_count,
        rows; /* channels: all of the batch; in_count: elements of one; rows: of results in one */
    int64_t in[ORTC_SPATIAL_LIMIT], out[ORTC_SPATIAL_LIMIT], pad[ORTC_SPATIAL_LIMIT];
    int64_t limit[ORTC_SPATIAL_LIMIT]; /* places below it count where padding does */
    int64_t line;                      /* elements of the line; 0: global */
    const float *count;                /* of the last dim; behind this struct */
    bool blocked;                      /* then only this: */
    ortc_pool_blocks blocks;
} pool_plan;

typedef struct pool_job {
    const pool_state *s;
    const pool_plan *p;
    const char *x;
    char *y;
    int type; /* ORTC_FLOAT_* */
} pool_job;

static int64_t aligned(int64_t n) { return (n + LINE - 1) / LINE * LINE; }

static const float *read(const pool_job *j, int64_t at, int64_t n, float *scratch)
{
    if (j->type == ORTC_FLOAT_F32) return (const float *)(const void *)j->x + at;
    j->p->convert->widen[j->type]((size_t)n, j->x + 2 * at, scratch);
    return scratch;
}

/* How many of a window's places in dim i are counted. */
static int64_t counted(const pool_state *s, const pool_plan *p, int32_t i, int64_t o)
{
    const int64_t step = s->window.dilation[i], first = o * s->window.stride[i] - p->pad[i];
    const int64_t end = s->include_pad ? p->limit[i] : p->in[i]; /* places below it count */
    const int64_t from = s->include_pad || first >= 0 ? 0 : (step - 1 - first) / step;
    const int64_t to = end > first ? (end - 1 - first) / step + 1 : 0, most = s->window.kernel[i];
    const int64_t n = (to < most ? to : most) - from;
    return n > 0 ? n : 0;
}

/* How many places of a row of results' windows are counted, in all dims but the last. */
static double counted_rows(const pool_job *j, const int64_t *o)
{
    double rows = 1;
    for (int32_t i = 0; i < j->p->spatial - 1; i++) rows *= (double)counted(j->s, j->p, i, o[i]);
    return rows;
}

/* Folds the rows under the windows of one row of results into acc, some at a time: narrow types' widened one
 * behind the other in the scratch. */
static void fold_rows(const pool_job *j, int64_t channel, const int64_t *o, float *acc, float *scratch)
{
    const pool_plan *p = j->p;
    const ortc_window *w = &j->s->window;
    const int32_t last = p->spatial - 1;
    const int64_t width = p->in[last];
    const float *rows[SOME_ROWS];
    int64_t k[ORTC_SPATIAL_LIMIT], windows = 1;
    size_t n = 0;
    bool any = false;
    for (int32_t i = 0; i < last; i++) {
        k[i] = 0;
        windows *= w->kernel[i];
    }
    for (int64_t q = 0; q < windows; q++) {
        int64_t row = 0;
        bool inside = true;
        for (int32_t i = 0; i < last; i++) {
            const int64_t at = o[i] * w->stride[i] - p->pad[i] + k[i] * w->dilation[i];
            inside &= at >= 0 && at < p->in[i];
            row = row * p->in[i] + at;
        }
        for (int32_t i = last - 1; i >= 0 && ++k[i] == w->kernel[i]; i--) k[i] = 0;
        if (inside) {
            rows[n] = read(j, channel * p->in_count + row * width, width,
                           scratch + (int64_t)n * aligned(width));
            n++;
        }
        if (n == SOME_ROWS || (n > 0 && q == windows - 1)) {
            p->across->rows((size_t)width, n, rows, j->s->max, acc);
            any = true;
            n = 0;
            rows[n++] = acc;
        }
    }
    for (int64_t i = 0; !any && i < width; i++) acc[i] = j->s->max ? -INFINITY : 0;
}

static void rows_chunk(void *arg, int64_t begin, int64_t end, void *memory)
{
    const pool_job *j = arg;
    const pool_plan *p = j->p;
    const int32_t last = p->spatial - 1;
    const ortc_window *w = &j->s->window;
    const int64_t out = p->out[last], pad = p->pad[last];
    /* rows begin where vectors are aligned */
    float *line = (float *)memory + aligned(pad) - pad, *y = (float *)memory + aligned(p->line) + LINE,
          *scratch = y + aligned(out);
    const float nothing = j->s->max ? -INFINITY : 0;
    for (int64_t i = 0; i < p->line; i++) /* what is not under the rows stays so */
        line[i] = nothing;
    int64_t o[ORTC_SPATIAL_LIMIT], channel = begin / p->rows, rest = begin % p->rows;
    for (int32_t i = last - 1; i >= 0; i--) {
        o[i] = rest % p->out[i];
        rest /= p->out[i];
    }
    for (int64_t row = begin; row < end; row++) {
        fold_rows(j, channel, o, line + pad, scratch);
        const float rows = j->s->max ? 1 : (float)counted_rows(j, o);
        float *to = j->type == ORTC_FLOAT_F32 ? (float *)(void *)j->y + row * out : y;
        const int64_t some = w->stride[last] > 1 << 24 ? 1 : out; /* else the body's steps might not fit */
        for (int64_t i = 0; i < out; i += some)
            p->across->run((size_t)some, (size_t)w->kernel[last], (size_t)w->dilation[last],
                           some == 1 ? 1 : (size_t)w->stride[last], line + i * w->stride[last],
                           j->s->max ? NULL : p->count + i, rows, to + i);
        if (j->type != ORTC_FLOAT_F32) p->convert->narrow[j->type]((size_t)out, y, j->y + 2 * row * out);
        int32_t i = last - 1;
        while (i >= 0 && ++o[i] == p->out[i]) o[i--] = 0;
        channel += i < 0;
    }
}

static void global_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const pool_job *j = arg;
    const int64_t n = j->p->in_count;
    for (int64_t c = begin; c < end; c++) {
        double r = j->s->max ? -INFINITY : 0;
        for (int64_t at = 0; at < n; at += PIECE) {
            const int64_t some = n - at < PIECE ? n - at : PIECE;
            const double v = j->p->fold->row[j->s->max ? ORTC_FOLD_MAX : ORTC_FOLD_SUM](
                (size_t)some, read(j, c * n + at, some, scratch), 0);
            r = !j->s->max ? r + v : r > v || r != r ? r : v;
        }
        float y = (float)(j->s->max ? r : r / (double)n);
        j->p->convert->narrow[j->type](1, &y, j->y + c * (j->type == ORTC_FLOAT_F32 ? 4 : 2));
    }
}

static ortc_status pool_supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const ortc_port x = ortc_node_in(n, 0);
    (void)device;
    if (ortc_node_n_out(n) > 1 && ortc_node_out(n, 1).type)
        return ortc_no(why, "the indices of a maximum are not done here");
    if (!strstr(ortc_node_op(n), "Global") && x.rank >= 0 && x.rank < 3)
        return ortc_no(why, "there is no spatial dim");
    size_t count;
    for (int list = 0; list < 3; list++) {
        static const char *const lists[] = {"kernel_shape", "dilations", "pads"};
        const int64_t *v = ortc_node_ints(n, lists[list], &count);
        for (size_t i = 0; i < count; i++)
            if (v[i] > 4096) return ortc_no(why, "%s of more than 4096 are not done here", lists[list]);
    }
    return ORTC_OK;
}

static ortc_status pool_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *op = ortc_node_op(n), *attribute, *wrong;
    pool_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->max = strstr(op, "Max") != NULL;
    s->global = strstr(op, "Global") != NULL;
    s->include_pad = ortc_node_int(n, "count_include_pad", 0) != 0;
    wrong = ortc_window_read(n, -1, &s->window, &attribute);
    if (wrong) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute %s %s", attribute, wrong);
    }
    *out = s;
    return ORTC_OK;
}

static void pool_shape(const pool_state *s, const ortc_view *x, const ortc_view *y, pool_plan *p)
{
    const ortc_window *w = &s->window;
    p->channels = x->dims[0] * x->dims[1];
    p->in_count = p->rows = 1;
    p->spatial = x->rank - 2;
    for (int32_t i = 0; i < p->spatial; i++) {
        p->in[i] = x->dims[i + 2];
        p->in_count *= p->in[i];
        if (s->global) continue;
        p->out[i] = y->dims[i + 2];
        p->pad[i] = ortc_window_pad(w, i, p->in[i], p->out[i]);
        const bool same = w->auto_pad == ORTC_PAD_SAME_UPPER || w->auto_pad == ORTC_PAD_SAME_LOWER;
        p->limit[i] = same ? INT64_MAX / 2
                           : p->in[i] + w->pad_end[i]; /* same: as much as the windows reach over */
        p->rows *= i < p->spatial - 1 ? p->out[i] : 1;
    }
    if (s->global) return;
    const int32_t last = p->spatial - 1;
    const int64_t reach = (p->out[last] - 1) * w->stride[last] + ortc_window_span(w, last),
                  have = p->pad[last] + p->in[last];
    p->line = reach > have ? reach : have;
}

/* The same of values in blocks of channels. */
static void pool_blocks(const pool_state *s, const ortc_view *x, const ortc_view *y, pool_plan *p)
{
    const ortc_window *w = &s->window;
    ortc_pool_blocks *b = &p->blocks;
    ortc_window_extents *e = &b->extents;
    pool_shape(s, x, y, p);
    p->blocked = true;
    *b = (ortc_pool_blocks){.fold = s->max ? ORTC_POOL_MAX : ORTC_POOL_MEAN,
                            .type = ortc_float_index(x->dtype),
                            .global = s->global,
                            .before = s->include_pad,
                            .images = x->dims[0],
                            .channels = x->dims[1]};
    for (int i = 0; i < 3; i++) {
        const int32_t d = p->spatial - 3 + i;
        const bool used = d >= 0 && !s->global;
        e->in[i] = d < 0 ? 1 : p->in[d], e->out[i] = used ? p->out[d] : 1;
        e->kernel[i] = used ? w->kernel[d] : 1, e->stride[i] = used ? w->stride[d] : 1;
        e->dilation[i] = used ? w->dilation[d] : 1, e->pad[i] = used ? p->pad[d] : 0;
        b->limit[i] = used && s->include_pad ? p->limit[d] : e->in[i];
    }
    ortc_pool_blocks_init(b);
}

/* Clocks: what is read and written, and of a window's places a fold each, of vectors in both layouts; in the
 * plain one rows are folded first, and then read again at every place along them. */
static ortc_status pool_choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const pool_state *s = state;
    const ortc_view *x = &q->in[0], *y = &q->out[0];
    const int blocked = ortc_blocks_asked(q);
    if (blocked < 0) return ortc_no(why, "plain or in blocks of %d channels", ORTC_BLOCK);
    if (blocked && (x->rank < 3 || x->rank > 5))
        return ortc_no(why, "one to three spatial dims are done in blocks");
    double taps = 1;
    for (int32_t i = 0; i < x->rank - 2; i++) taps *= s->global ? 0 : (double)s->window.kernel[i];
    if (blocked && taps > 4096) return ortc_no(why, "a window of more than 4096 places");
    const double in = (double)ortc_view_count(x), out = (double)ortc_view_count(y);
    if (blocked && (in == 0 || out == 0)) return ortc_no(why, "there are no elements");
    o->clocks = 0.125 * (in + out) + (blocked ? 0.125 : 0.25) * taps * out;
    if (blocked) o->in[0] = o->out[0] = ortc_blocks();
    return ORTC_OK;
}

static ortc_status pool_plan_make(const void *state, ortc_plan *p, void **out)
{
    const pool_state *s = state;
    const ortc_view *x = &p->in[0], *y = &p->out[0];
    const int64_t results = y->dtype ? ortc_view_count(y) : 0, width = y->rank > 2 ? y->dims[y->rank - 1] : 1;
    pool_plan *g = calloc(1, sizeof *g + (size_t)(results && !s->global ? width : 0) * sizeof(float));
    if (!g) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    *out = g;
    *g = (pool_plan){.across = ortc_pool_across_select(),
                     .fold = ortc_reduce_rows_select(),
                     .convert = ortc_convert_get()};
    if (results == 0) return ORTC_OK;
    if (x->layout) {
        pool_blocks(s, x, y, g);
        ortc_plan_workspace(p, 0, g->blocks.scratch);
        return ORTC_OK;
    }
    pool_shape(s, x, y, g);
    if (s->global) {
        ortc_plan_workspace(p, 0, PIECE * sizeof(float));
        return ORTC_OK;
    }
    float *count = (float *)(void *)(g + 1);
    for (int64_t i = 0; i < width; i++) count[i] = (float)counted(s, g, g->spatial - 1, i);
    g->count = count;
    ortc_plan_workspace(p, 0,
                        (size_t)(aligned(g->line) + LINE + aligned(width) +
                                 SOME_ROWS * aligned(g->in[g->spatial - 1])) *
                            sizeof(float));
    ortc_plan_cost(p, (double)results, (double)ortc_view_count(x) * ortc_dtype_bits(x->dtype) / 8);
    return ORTC_OK;
}

static int32_t parallel(void *call, int64_t n, int64_t grain, ortc_parallel_fn body, void *arg)
{
    return ortc_parallel((ortc_call *)call, n, grain, body, arg);
}

static ortc_status pool_run(const void *state, const void *pstate, ortc_call *c)
{
    const pool_plan *p = pstate;
    pool_job j = {state, p, c->in[0].data, c->out[0].data, ortc_float_index(c->in[0].dtype)};
    if (p->blocked) return ortc_pool_blocks_run(&p->blocks, j.x, j.y, parallel, c);
    if (p->channels == 0) return ORTC_OK;
    if (!p->line) return ortc_parallel(c, p->channels, ortc_rows_grain(p->in_count), global_chunk, &j);
    int64_t taps = 1;
    for (int32_t i = 0; i < p->spatial - 1; i++) taps *= j.s->window.kernel[i];
    return ortc_parallel(c, p->channels * p->rows, ortc_rows_grain(taps * p->line), rows_chunk, &j);
}

static const ortc_kernel pool_cpu = {.size = ORTC_SIZED(ortc_kernel),
                                     .flags = ORTC_KERNEL_LAYOUTS,
                                     .name = "pool.cpu",
                                     .supports = pool_supports,
                                     .prepare = pool_prepare,
                                     .plan = pool_plan_make,
                                     .run = pool_run,
                                     .choose = pool_choose};

#define F ORTC_TYPES_BY_F32
ORTC_KERNELS(cpu, pool, ORTC_KERNEL("MaxPool", 22, ORTC_NEWEST, (F, ORTC_TYPES_ANY), &pool_cpu),
             ORTC_KERNEL("MaxPool", 22, ORTC_NEWEST, (F, ORTC_TYPE(ORTC_I64)), &ortc_cpu_pool_places),
             ORTC_KERNEL("MaxPool", 22, ORTC_NEWEST,
                         (ORTC_TYPE(ORTC_I8) | ORTC_TYPE(ORTC_U8), ORTC_TYPES_ANY), &ortc_cpu_pool_bytes),
             ORTC_KERNEL("AveragePool", 22, ORTC_NEWEST, (F), &pool_cpu),
             ORTC_KERNEL("GlobalMaxPool", 22, ORTC_NEWEST, (F), &pool_cpu),
             ORTC_KERNEL("GlobalAveragePool", 22, ORTC_NEWEST, (F), &pool_cpu),
             ORTC_KERNEL_IN("ortc", "Group", 1, 1, (ORTC_TYPES_ANY), &ortc_cpu_pool_means),
             ORTC_KERNEL_IN("ortc", "Group", 1, 1, (ORTC_TYPES_ANY), &ortc_cpu_pool_averages));
