/* kernels/reduce/cpu.c: reductions of floats on the cpu provider, in f32, over every set of axes.
 *
 * By lines (reduce.h) a task makes a tile of results that lie beside each other. A *unit* is a piece of a
 * row or a line; a result's units are cut into `splits` shares where there are few results, whose parts
 * are joined in order. All of it depends on the shapes alone, so results are the same for any number of
 * threads. Pieces are folded in f32, units and shares in f64. So squares of what is beyond 2^63, or below
 * 2^-63, do not fit where they do on ref. Products are f64 all the way, those of a row 32 beside each other:
 * of many numbers near the ends of f32 one of these may be infinite or 0 where ref's, in order, is not.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/layout.h"
#include "kernels/common/vector/convert.h"
#include "kernels/reduce/reduce.h"
#include "kernels/reduce/rows.h"

ORTC_VEC_TABLE(ortc_reduce_rows)

enum { SUM, MEAN, MAX, MIN, PROD, L1, L2, SUM_SQUARE, LOG_SUM, LOG_SUM_EXP };
static const char *const names[] = {"ReduceSum",    "ReduceMean",     "ReduceMax", "ReduceMin",
                                    "ReduceProd",   "ReduceL1",       "ReduceL2",  "ReduceSumSquare",
                                    "ReduceLogSum", "ReduceLogSumExp"};
static const int folds[] = {ORTC_FOLD_SUM,     ORTC_FOLD_SUM, ORTC_FOLD_MAX,    ORTC_FOLD_MIN,
                            ORTC_FOLD_PRODUCT, ORTC_FOLD_ABS, ORTC_FOLD_SQUARE, ORTC_FOLD_SQUARE,
                            ORTC_FOLD_SUM,     ORTC_FOLD_MAX};

enum { PIECE = 8192, TILE = 512, LINES = 64 }; /* LINES: folded in f32 before they join the f64 sums */

typedef struct reduce_state {
    int what;
    bool noop;
} reduce_state;

typedef struct reduce_job {
    const ortc_reduce_rows *body;
    const ortc_convert *convert;
    const char *x;
    ortc_view *y;
    int what, fold, type; /* type: ORTC_FLOAT_* */
    ortc_reduced dims;
    int64_t results, splits;
    int64_t pieces, units; /* of a row; of a result */
    int64_t tiles;         /* by lines: for one place of `kept`; by rows a result is a place */
    double *parts;         /* [splits][results] */
    float *top;            /* LOG_SUM_EXP: the largest of each result */
} reduce_job;

/* Shares of a result, at most; where there are results enough for all threads, one. */
static int64_t splits_of(int64_t results, int64_t each)
{
    int64_t n = results * each / 32768;
    n = n < 4096 / results ? n : 4096 / results;
    n = n < each ? n : each;
    return n < 1 ? 1 : n;
}

/* What folds of the results first .. first + n mean; loops that compilers make vectors of. */
static void finish(const reduce_job *j, int64_t first, int64_t n, double *r)
{
    const double each = (double)j->dims.each;
    switch (j->what) {
    case MEAN:
        for (int64_t i = 0; i < n; i++) r[i] /= each;
        break;
    case L2:
        for (int64_t i = 0; i < n; i++) r[i] = sqrt(r[i]);
        break;
    case LOG_SUM:
        for (int64_t i = 0; i < n; i++) r[i] = log(r[i]);
        break;
    case LOG_SUM_EXP: /* of the second pass: an infinite largest, or NaN, is the result */
        for (int64_t i = 0; i < n; i++) {
            const double top = (double)j->top[first + i];
            r[i] = isfinite(top) ? top + log(r[i]) : top;
        }
    }
}

/* One share of the results first .. first + n, which finishing changes. */
static void put(const reduce_job *j, int64_t split, int64_t first, int64_t n, double *r)
{
    if (j->splits > 1) {
        memcpy(j->parts + split * j->results + first, r, (size_t)n * sizeof *r);
        return;
    }
    if (j->what == LOG_SUM_EXP && j->fold == ORTC_FOLD_MAX) { /* the first pass */
        for (int64_t i = 0; i < n; i++) j->top[first + i] = (float)r[i];
        return;
    }
    finish(j, first, n, r);
    float *y = j->y->data;
    if (j->type == ORTC_FLOAT_F32) {
        for (int64_t i = 0; i < n; i++) y[first + i] = (float)r[i];
        return;
    }
    for (int64_t at = 0, some; at < n; at += some) {
        float odd[TILE];
        some = n - at < TILE ? n - at : TILE;
        for (int64_t i = 0; i < some; i++) odd[i] = ortc_rounded_to_odd(r[at + i]);
        j->convert->narrow[j->type]((size_t)some, odd, (char *)y + 2 * (first + at));
    }
}

/* sum[i] and more[i] become one, in sum: loops that compilers make vectors of. */
static double larger(double a, double b) { return a > b || a != a ? a : b; }
static double smaller(double a, double b) { return a < b || a != a ? a : b; }
static void join(const reduce_job *j, int64_t n, double *sum, const double *more)
{
    switch (j->fold) {
    case ORTC_FOLD_MAX:
        for (int64_t i = 0; i < n; i++) sum[i] = larger(sum[i], more[i]);
        break;
    case ORTC_FOLD_MIN:
        for (int64_t i = 0; i < n; i++) sum[i] = smaller(sum[i], more[i]);
        break;
    case ORTC_FOLD_PRODUCT:
        for (int64_t i = 0; i < n; i++) sum[i] *= more[i];
        break;
    default:
        for (int64_t i = 0; i < n; i++) sum[i] += more[i];
    }
}
static double joined(const reduce_job *j, double a, double b)
{
    switch (j->fold) {
    case ORTC_FOLD_MAX: return larger(a, b);
    case ORTC_FOLD_MIN: return smaller(a, b);
    case ORTC_FOLD_PRODUCT: return a * b;
    default: return a + b;
    }
}
static double neutral(const reduce_job *j)
{
    return j->fold == ORTC_FOLD_MAX       ? -INFINITY
           : j->fold == ORTC_FOLD_MIN     ? INFINITY
           : j->fold == ORTC_FOLD_PRODUCT ? 1
                                          : 0;
}

/* n elements from `at` on as f32. */
static const float *read(const reduce_job *j, int64_t at, int64_t n, float *scratch)
{
    if (j->type == ORTC_FLOAT_F32) return (const float *)(const void *)j->x + at;
    j->convert->widen[j->type]((size_t)n, j->x + 2 * at, scratch);
    return scratch;
}

/* Lines of n elements, *step apart, which narrow types lie n apart in the scratch. */
static const float *read_lines(const reduce_job *j, int64_t at, int64_t n, int64_t lines, int64_t *step,
                               float *scratch)
{
    const int64_t apart = *step;
    if (j->type == ORTC_FLOAT_F32) return read(j, at, n, scratch);
    *step = n;
    if (apart == n) return read(j, at, lines * n, scratch);
    for (int64_t k = 0; k < lines; k++) read(j, at + k * apart, n, scratch + k * n);
    return scratch;
}

/* Results that are one row each, and lie dense: some are finished together. */
static void short_rows(const reduce_job *j, int64_t begin, int64_t end, float *scratch)
{
    enum { TOGETHER = 64 };
    const int64_t width = j->dims.width,
                  most = j->type == ORTC_FLOAT_F32 || PIECE / width > TOGETHER ? TOGETHER : PIECE / width;
    double r[TOGETHER];
    for (int64_t n; begin < end; begin += n) {
        n = end - begin < most ? end - begin : most;
        const float *x = read(j, begin * width, n * width, scratch);
        int64_t k = j->body->rows[j->fold] ? (int64_t)j->body->rows[j->fold]((size_t)n, (size_t)width, x, r)
                                           : 0;
        for (; k < n; k++)
            r[k] = joined(j, neutral(j),
                          j->body->row[j->fold]((size_t)width, x + k * width,
                                                j->top ? j->top[begin + k] : 0));
        put(j, 0, begin, n, r);
    }
}

static void rows_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const reduce_job *j = arg;
    if (j->splits == 1 && j->units == 1 && j->pieces == 1 && j->dims.kept.rank <= 1 &&
        (j->dims.kept.rank == 0 || j->dims.kept.step[0][0] == j->dims.width)) {
        short_rows(j, begin, end, scratch);
        return;
    }
    ortc_walk kept = j->dims.kept,
              reduced = j->dims.reduced; /* a full turn brings the second back to its start */
    ortc_walk_seek(&kept, begin / j->splits);
    for (int64_t task = begin; task < end; task++) {
        const int64_t i = task / j->splits, split = task % j->splits;
        const int64_t from = j->units * split / j->splits, to = j->units * (split + 1) / j->splits;
        double r = neutral(j);
        if (j->splits > 1) {
            reduced = j->dims.reduced;
            if (from < to) ortc_walk_seek(&reduced, from / j->pieces);
        }
        for (int64_t u = from; u < to; u++) {
            const int64_t piece = u % j->pieces * PIECE,
                          n = j->dims.width - piece < PIECE ? j->dims.width - piece : PIECE;
            const float *x = read(j, kept.at[0] + reduced.at[0] + piece, n, scratch);
            r = joined(j, r, j->body->row[j->fold]((size_t)n, x, j->top ? j->top[i] : 0));
            if ((u + 1) % j->pieces == 0) ortc_walk_next(&reduced);
        }
        put(j, split, i, 1, &r);
        if (split + 1 == j->splits) ortc_walk_next(&kept);
    }
}

/* Units u .. stop of the n results that begin `at` elements into a line of `kept`, folded into acc; `reduced`
 * goes along. */
static void fold_lines(const reduce_job *j, const ortc_walk *kept, ortc_walk *reduced, int64_t at, int64_t n,
                       int64_t u, int64_t stop, const float *top, float *scratch, float *acc)
{
    for (int64_t k = 0; k < n; k++) acc[k] = (float)neutral(j);
    while (u < stop) { /* along the last reduced dim they lie evenly: some together */
        const int32_t d = reduced->rank - 1;
        const int64_t step = d < 0 ? 0 : reduced->step[0][d];
        int64_t lines = d < 0 ? 1 : reduced->dims[d] - reduced->index[d];
        lines = lines < stop - u ? lines : stop - u;
        if (j->type != ORTC_FLOAT_F32) lines = lines < PIECE / n ? lines : PIECE / n;
        int64_t apart = step;
        const float *x = read_lines(j, kept->at[0] + reduced->at[0] + at, n, lines, &apart, scratch);
        j->body->line[j->fold]((size_t)n, (size_t)lines, (size_t)apart, x, top, acc);
        if (d >= 0) reduced->index[d] += lines - 1, reduced->at[0] += (lines - 1) * step;
        ortc_walk_next(reduced);
        u += lines;
    }
}

/* Lines so few that f64 has nothing to join, and results that are what they fold to, or a number of them. */
static bool is_straight(const reduce_job *j)
{
    return j->splits == 1 && j->units <= LINES && j->what != L2 && j->what != LOG_SUM &&
           j->what != LOG_SUM_EXP && j->what != PROD;
}

static void lines_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const reduce_job *j = arg;
    const bool straight = is_straight(j);
    double sum[TILE], wide[TILE];
    float acc[TILE];
    for (int64_t task = begin; task < end; task++) {
        const int64_t split = task % j->splits, tile = task / j->splits % j->tiles,
                      place = task / j->splits / j->tiles;
        const int64_t from = j->units * split / j->splits, to = j->units * (split + 1) / j->splits,
                      at = tile * TILE;
        const int64_t n = j->dims.width - at < TILE ? j->dims.width - at : TILE,
                      first = place * j->dims.width + at;
        const float *top = j->top ? j->top + first : NULL;
        ortc_walk kept = j->dims.kept, reduced = j->dims.reduced;
        ortc_walk_seek(&kept, place);
        if (straight) {
            const float each = (float)j->units;
            float *y = j->type == ORTC_FLOAT_F32 ? (float *)j->y->data + first : acc;
            fold_lines(j, &kept, &reduced, at, n, 0, j->units, top, scratch, y);
            for (int64_t k = 0; j->what == MEAN && k < n; k++) y[k] /= each;
            if (y == acc) j->convert->narrow[j->type]((size_t)n, acc, (char *)j->y->data + 2 * first);
            continue;
        }
        if (from < to) ortc_walk_seek(&reduced, from);
        for (int64_t k = 0; k < n; k++) sum[k] = neutral(j);
        const int64_t lines = j->fold == ORTC_FOLD_PRODUCT ? 1 : LINES;
        for (int64_t u = from; u < to; u += lines) {
            fold_lines(j, &kept, &reduced, at, n, u, u + lines < to ? u + lines : to, top, scratch, acc);
            for (int64_t k = 0; k < n; k++) wide[k] = (double)acc[k];
            join(j, n, sum, wide);
        }
        put(j, split, first, n, sum);
    }
}

static void join_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const reduce_job *j = arg;
    reduce_job whole = *j;
    whole.splits = 1;
    for (int64_t split = 1; split < j->splits; split++)
        join(j, end - begin, j->parts + begin, j->parts + split * j->results + begin);
    put(&whole, 0, begin, end - begin, j->parts + begin);
}

static int64_t places_of(const reduce_job *j)
{
    return j->dims.by_lines ? j->results / j->dims.width * j->tiles : j->results;
}

static ortc_status pass(ortc_call *c, reduce_job *j)
{
    const int64_t places = places_of(j);
    const int64_t work = (j->dims.by_lines ? (j->dims.width < TILE ? j->dims.width : TILE) : 1) *
                         j->dims.each / j->splits;
    ORTC_TRY(ortc_parallel(c, places * j->splits, ortc_rows_grain(work),
                           j->dims.by_lines ? lines_chunk : rows_chunk, j));
    return j->splits > 1 ? ortc_parallel(c, j->results, 4096, join_chunk, j) : ORTC_OK;
}

static ortc_status reduce_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    reduce_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->noop = ortc_node_int(n, "noop_with_empty_axes", 0) != 0;
    while (strcmp(names[s->what], ortc_node_op(n)) != 0) s->what++;
    *out = s;
    return ORTC_OK;
}

/* ---- Layouts ------------------------------------------------------------------------------------------- */

/* Whether the axes are known, and all of them behind the blocked one, and the order plain. */
static bool keeps_blocks(const ortc_view *x, const ortc_view *axes, ortc_layout l)
{
    const int32_t kept = ortc_layout_axis(l);
    if (!ortc_layout_block(l) || kept >= x->rank || l != ortc_layout_blocked(kept, ortc_layout_block(l)) ||
        !axes || axes->dtype != ORTC_I64 || !(axes->flags & ORTC_VIEW_CONST) || !axes->data ||
        !ortc_view_count(axes))
        return false;
    for (int64_t i = 0; i < ortc_view_count(axes); i++) {
        int32_t axis;
        if (!ortc_axis_of(ortc_load_i64(axes->data, ORTC_I64, i), x->rank, &axis) || axis <= kept)
            return false;
    }
    return true;
}

/* Clocks: reading, and in plain rows or lines as well as in blocks what a result costs. */
static ortc_status reduce_choose(const void *state, const ortc_question *q, ortc_offer *o, ortc_why *why)
{
    const ortc_layout l = q->layout;
    const ortc_view *x = &q->in[0], *y = &q->out[0], *axes = q->n_in > 1 && q->in[1].dtype ? &q->in[1] : NULL;
    (void)state;
    o->clocks = 2000 + 0.1 * (double)ortc_view_count(x) * (double)(ortc_dtype_bits(x->dtype) / 8) +
                10.0 * (double)ortc_view_count(y);
    if (l == ORTC_PLAIN) return ORTC_OK;
    if (l == ORTC_ANY_LAYOUT) return ortc_no(why, "it goes along with others");
    if (!keeps_blocks(x, axes, l)) return ortc_no(why, "not in this layout");
    /* without the dims that are reduced whole blocks lie as plain values do */
    if (y->rank != x->rank && x->dims[ortc_layout_axis(l)] % ortc_layout_block(l))
        return ortc_no(why, "blocks that are not full, of another rank");
    o->in[0] = l;
    if (y->rank == x->rank) o->out[0] = l;
    return ORTC_OK;
}

/* Axes may come with the run: the shapes say enough. */
static ortc_status reduce_plan(const void *state, ortc_plan *p, void **pstate)
{
    const reduce_state *s = state;
    const int64_t results = ortc_view_stored(&p->out[0]), all = ortc_view_stored(&p->in[0]);
    (void)pstate;
    if (results > 0) {
        const int64_t splits = splits_of(results, all / results);
        ortc_plan_workspace(p,
                            (splits > 1 ? (size_t)(splits * results) * sizeof(double) : 0) +
                                (s->what == LOG_SUM_EXP ? (size_t)results * sizeof(float) : 0),
                            p->in[0].dtype == ORTC_F32 ? 0 : PIECE * sizeof(float));
    }
    ortc_plan_cost(p, (double)all, (double)(all + results) * ortc_dtype_bits(p->in[0].dtype) / 8);
    return ORTC_OK;
}

static ortc_status reduce(const reduce_state *s, ortc_call *c)
{
    const ortc_view *axes = c->n_in > 1 && c->in[1].dtype ? &c->in[1] : NULL;
    reduce_job j = {.body = ortc_reduce_rows_select(),
                    .convert = ortc_convert_get(),
                    .x = c->in[0].data,
                    .y = &c->out[0],
                    .what = s->what,
                    .fold = folds[s->what],
                    .type = ortc_float_index(c->in[0].dtype)};
    int64_t dims[ORTC_RANK_LIMIT];
    bool drop[ORTC_RANK_LIMIT];
    ortc_view x = c->in[0]; /* as memory has it, with one dim more in blocks */
    if (!ortc_reduce_drop(&x, axes, s->noop, drop))
        return ortc_call_fail(c, ORTC_INVALID_ARGUMENT, "an axis is outside of the input's rank");
    if (x.layout) {
        drop[x.rank] = false;
        ortc_layout_dims(x.layout, x.rank, c->in[0].dims, &x.rank, dims);
        x.dims = dims;
    }
    j.results = ortc_view_stored(j.y);
    if (j.results == 0) return ORTC_OK;
    ortc_reduce_dims(&x, drop, &j.dims);
    if (j.dims.each == 0) {
        for (int64_t i = 0; i < j.results; i++) {
            double none = s->what == LOG_SUM_EXP ? -INFINITY : neutral(&j);
            if (s->what != LOG_SUM_EXP) finish(&j, i, 1, &none);
            ortc_store_f64(j.y->data, j.y->dtype, i, none);
        }
        return ORTC_OK;
    }
    j.pieces = j.dims.by_lines ? 1 : (j.dims.width + PIECE - 1) / PIECE;
    j.units = j.dims.by_lines ? j.dims.each : j.dims.each / j.dims.width * j.pieces;
    j.tiles = (j.dims.width + TILE - 1) / TILE;
    j.splits = places_of(&j) >= 64 ? 1 : splits_of(j.results, j.dims.each);
    j.parts = c->workspace;
    if (s->what != LOG_SUM_EXP) return pass(c, &j);
    float *top = (float *)(void *)((char *)c->workspace +
                                   (j.splits > 1 ? (size_t)(j.splits * j.results) * sizeof(double) : 0));
    j.top = top;
    ORTC_TRY(pass(c, &j));
    j.fold = ORTC_FOLD_EXP;
    return pass(c, &j);
}

static ortc_status reduce_run(const void *state, const void *pstate, ortc_call *c)
{
    (void)pstate;
    ORTC_TRY(reduce(state, c));
    if (c->out[0].layout) ortc_layout_zero_rest(&c->out[0]);
    return ORTC_OK;
}

static const ortc_kernel reduce_cpu = {.size = ORTC_SIZED(ortc_kernel),
                                       .flags = ORTC_KERNEL_LAYOUTS,
                                       .name = "reduce.cpu",
                                       .host_in = 2,
                                       .prepare = reduce_prepare,
                                       .plan = reduce_plan,
                                       .run = reduce_run,
                                       .choose = reduce_choose};

#define K(op, since) ORTC_KERNEL(op, since, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &reduce_cpu)
#define WHOLE(op, since, types) ORTC_KERNEL(op, since, ORTC_NEWEST, (types), &ortc_cpu_reduce_integers)
#define SIGNED (ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64) | ORTC_TYPE(ORTC_F64))
#define SUMS (SIGNED | ORTC_TYPE(ORTC_U32) | ORTC_TYPE(ORTC_U64))
#define EXTREMES (SIGNED | ORTC_TYPE(ORTC_U8) | ORTC_TYPE(ORTC_BOOL))
ORTC_KERNELS(cpu, reduce, K("ReduceSum", 13), K("ReduceMean", 18), K("ReduceMax", 20), K("ReduceMin", 20),
             K("ReduceProd", 18), K("ReduceL1", 18), K("ReduceL2", 18), K("ReduceSumSquare", 18),
             K("ReduceLogSum", 28), K("ReduceLogSumExp", 28), WHOLE("ReduceSum", 13, SUMS),
             WHOLE("ReduceProd", 18, SUMS), WHOLE("ReduceMax", 20, EXTREMES),
             WHOLE("ReduceMin", 20, EXTREMES), WHOLE("ReduceMean", 18, ORTC_TYPE(ORTC_F64)));
