/* kernels/softmax/cpu.c: Softmax and LogSoftmax on the cpu provider: rows along the last axis, some a
 * task, f32 where it lies, f16 and bf16 through a worker's scratch. Along another axis a task is a tile of
 * columns beside each other, of f16 and bf16 widened into the scratch, of few columns some lines as one;
 * but where columns are long and too few tiles wide enough for whoever fetches ahead, f32 goes by lines,
 * some a task, in three rounds, and what a task found of its part of each column is put together between
 * them. What follows rows (kernels/gemm/epilogue.h) is done to some of them in scratch.
 */
#include <stdlib.h>
#include <string.h>

#include "kernels/common/counts.h"
#include "kernels/common/shape.h"
#include "kernels/common/vector/convert.h"
#include "kernels/gemm/epilogue.h"
#include "kernels/softmax/rows.h"

ORTC_VEC_TABLE(ortc_softmax_rows)

typedef struct softmax_state {
    int64_t axis;
    int log;
    ortc_tail_spec tail; /* of the last axis */
} softmax_state;

enum {
    COLUMNS = 256, /* of a tile: as far as fetching ahead is worth its begin */
    MOST_COLUMNS = 1024,
    NARROW = 64,
    TILE = 65536,      /* elements that stay in L2 */
    FOLDED = 8 * TILE, /* that one task does the quicker for it */
    FEW_TILES = 16,
    LEAST_LINES = 16, /* of a part */
    ENDED = 4096      /* elements of rows that are finished before what follows */
};

typedef struct softmax_plan {
    const ortc_softmax_rows *body;
    const ortc_convert *convert;
    int64_t outer, length, inner;
    int64_t width, tiles; /* inner > 1: columns of a task, tasks for one of `outer` */
    int64_t fold;         /* lines that are one */
    int64_t lines, parts; /* of a part, parts of a column; 0: tiles */
} softmax_plan;

typedef struct softmax_job {
    const softmax_plan *p;
    const char *x;
    char *y;
    int type, log; /* ORTC_FLOAT_* */
    float *kept;   /* by lines: tops and sums */
    const softmax_state *state;
    const ortc_call *call;
} softmax_job;

static int64_t rows_together(int64_t length) { return length < ENDED ? ENDED / length : 1; }

static void rows_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const softmax_job *j = arg;
    const softmax_plan *p = j->p;
    const size_t length = (size_t)p->length;
    if (j->type == ORTC_FLOAT_F32) {
        const size_t at = (size_t)begin * length * sizeof(float);
        p->body->rows((size_t)(end - begin), length, (const float *)(const void *)(j->x + at),
                      (float *)(void *)(j->y + at), j->log);
        return;
    }
    for (int64_t row = begin, n; row < end; row += n) {
        n = min64(end - row, rows_together(p->length));
        const size_t at = (size_t)row * length * 2, count = (size_t)n * length;
        p->convert->widen[j->type](count, j->x + at, scratch);
        p->body->rows((size_t)n, length, scratch, scratch, j->log);
        p->convert->narrow[j->type](count, scratch, j->y + at);
    }
}

/* The same, with what follows. */
static void ended_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const softmax_job *j = arg;
    const softmax_plan *p = j->p;
    const size_t length = (size_t)p->length;
    const ortc_view *in = j->call->in, *out = &j->call->out[0];
    const int64_t most = rows_together(p->length);
    for (int64_t row = begin, n; row < end; row += n) {
        n = min64(end - row, most);
        const ortc_tail_place place = {.channel_col = 1, .element = row * p->length, .row = length, .col = 1};
        const void *x = ortc_product_at(in[0].data, place.element, in[0].dtype);
        void *y = ortc_product_at(out->data, place.element, out->dtype);
        if (j->type != ORTC_FLOAT_F32) {
            p->convert->widen[j->type]((size_t)n * length, x, scratch);
            x = scratch;
        }
        p->body->rows((size_t)n, length, x, scratch, j->log);
        if (out->dtype == ORTC_F32)
            ortc_tail_over(&j->state->tail, in, &place, scratch, length, y, length, (size_t)n, length);
        else
            ortc_tail_store(&j->state->tail, in, &place, scratch, length, y, length, (size_t)n, length);
    }
}

/* `width` numbers to `copies` more behind them. */
static void repeat(float *v, size_t width, size_t copies)
{
    for (size_t k = 1; k <= copies; k++) memcpy(v + k * width, v, width * sizeof *v);
}

/* n lines of `width` elements of 16 bits, `step` from line to line, to dense f32 or back. */
static void widen_lines(const softmax_job *j, size_t n, size_t width, const char *x, size_t step, float *to)
{
    if (step == width) width *= n, n = 1;
    for (size_t k = 0; k < n; k++) j->p->convert->widen[j->type](width, x + k * step * 2, to + k * width);
}
static void narrow_lines(const softmax_job *j, size_t n, size_t width, const float *from, char *y,
                         size_t step)
{
    if (step == width) width *= n, n = 1;
    for (size_t k = 0; k < n; k++) j->p->convert->narrow[j->type](width, from + k * width, y + k * step * 2);
}

/* Of few columns `fold` lines are one, and those that are left are parts of their own. */
static void columns_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const softmax_job *j = arg;
    const softmax_plan *p = j->p;
    const size_t length = (size_t)p->length, inner = (size_t)p->inner, fold = (size_t)p->fold,
                 lines = length / fold, rest = length % fold, parts = fold + (rest > 0);
    const size_t bytes = j->type == ORTC_FLOAT_F32 ? 4 : 2, kept = (size_t)p->width * (fold + 1);
    const bool f32 = j->type == ORTC_FLOAT_F32;
    float *top = scratch, *sum = top + kept, *tile = sum + kept;
    for (int64_t task = begin; task < end; task++) {
        const int64_t first = task % p->tiles * p->width, left = p->inner - first;
        const size_t width = (size_t)(left < p->width ? left : p->width), all = width * fold;
        const size_t at = (size_t)(task / p->tiles * p->length * p->inner + first);
        const char *x = j->x + at * bytes;
        char *y = j->y + at * bytes;
        if (!f32) widen_lines(j, length, width, x, inner, tile);
        const float *from = f32 ? (const float *)(const void *)x : tile;
        float *to = f32 ? (float *)(void *)y : tile;
        const size_t step = f32 && fold == 1 ? inner : all, last = lines * step;
        p->body->tops(lines, all, from, step, top);
        p->body->tops(rest, width, from + last, width, top + all);
        p->body->tops(parts, width, top, width, sum);
        repeat(memcpy(top, sum, width * sizeof *top), width, fold);
        p->body->powers(lines, all, from, step, to, step, top, sum, j->log);
        p->body->powers(rest, width, from + last, width, to + last, width, top, sum + all, j->log);
        p->body->divisors(parts, width, sum, sum, j->log);
        repeat(sum, width, fold);
        p->body->divide(lines, all, to, step, sum, j->log);
        p->body->divide(rest, width, to + last, width, sum, j->log);
        if (!f32) narrow_lines(j, length, width, tile, y, inner);
    }
}

/* By lines: the workspace has, for each of `outer`, a line of each part and one more, of tops and of sums. */
typedef struct part {
    const float *x;
    float *y, *top, *sum; /* lines of the whole: `parts` of them and, last, what they come to */
    size_t lines, inner, own;
} part;

static part part_of(const softmax_job *j, int64_t task)
{
    const softmax_plan *p = j->p;
    const int64_t outer = task / p->parts, own = task % p->parts, left = p->length - own * p->lines;
    const size_t at = (size_t)((outer * p->length + own * p->lines) * p->inner);
    float *top = j->kept + outer * 2 * (p->parts + 1) * p->inner;
    return (part){(const float *)(const void *)j->x + at,
                  (float *)(void *)j->y + at,
                  top,
                  top + (p->parts + 1) * p->inner,
                  (size_t)(left < p->lines ? left : p->lines),
                  (size_t)p->inner,
                  (size_t)own};
}

static void tops_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const softmax_job *j = arg;
    for (int64_t task = begin; task < end; task++) {
        const part t = part_of(j, task);
        j->p->body->tops(t.lines, t.inner, t.x, t.inner, t.top + t.own * t.inner);
    }
}
static void powers_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const softmax_job *j = arg;
    const size_t parts = (size_t)j->p->parts;
    for (int64_t task = begin; task < end; task++) {
        const part t = part_of(j, task);
        j->p->body->powers(t.lines, t.inner, t.x, t.inner, t.y, t.inner, t.top + parts * t.inner,
                           t.sum + t.own * t.inner, j->log);
    }
}
static void divide_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const softmax_job *j = arg;
    const size_t parts = (size_t)j->p->parts;
    for (int64_t task = begin; task < end; task++) {
        const part t = part_of(j, task);
        j->p->body->divide(t.lines, t.inner, t.y, t.inner, t.sum + parts * t.inner, j->log);
    }
}

static ortc_status by_lines(ortc_call *c, softmax_job *j)
{
    const softmax_plan *p = j->p;
    const int64_t tasks = p->outer * p->parts;
    const size_t parts = (size_t)p->parts;
    ORTC_TRY(ortc_parallel(c, tasks, 1, tops_chunk, j));
    for (int64_t task = 0; task < tasks; task += p->parts) {
        const part t = part_of(j, task);
        p->body->tops(parts, t.inner, t.top, t.inner, t.top + parts * t.inner);
    }
    ORTC_TRY(ortc_parallel(c, tasks, 1, powers_chunk, j));
    for (int64_t task = 0; task < tasks; task += p->parts) {
        const part t = part_of(j, task);
        p->body->divisors(parts, t.inner, t.sum, t.sum + parts * t.inner, j->log);
    }
    return ortc_parallel(c, tasks, 1, divide_chunk, j);
}

/* Vectors of what follows lie along rows. 0: not done, *why says what. */
static int read_tail(const ortc_node *n, ortc_tail_spec *tail, const char **why)
{
    const int32_t rank = ortc_node_out(n, 0).rank;
    const int64_t axis = ortc_node_int(n, "axis", -1);
    if (ortc_node_epilogue(n) && (rank < 1 || (axis != -1 && axis != rank - 1)))
        return *why = "it is not along the last axis", 0;
    return ortc_tail_spec_init(n, rank - 1, ORTC_TAIL_BYTES, tail, why);
}

static ortc_status supports(const ortc_node *n, const ortc_device *device, ortc_why *why)
{
    const char *reason;
    ortc_tail_spec tail;
    (void)device;
    return read_tail(n, &tail, &reason) ? ORTC_OK : ortc_no(why, "%s", reason);
}

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *why;
    softmax_state *s = calloc(1, sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    s->axis = ortc_node_int(n, "axis", -1);
    s->log = !strcmp(ortc_node_op(n), "LogSoftmax");
    if (!read_tail(n, &s->tail, &why)) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INTERNAL, "%s", why);
    }
    *out = s;
    return ORTC_OK;
}

/* Whole vectors of some lines; 1: lines are long, or few. */
static int64_t fold_of(int64_t inner, int64_t length)
{
    int64_t fold = 1;
    if (inner >= NARROW) return 1;
    while (fold * inner % 16 || fold * inner < NARROW) fold *= 2;
    return fold * 4 <= length ? fold : 1;
}

static ortc_status plan(const void *state, ortc_plan *p, void **out)
{
    const softmax_state *s = state;
    const ortc_view *x = &p->in[0];
    const int64_t count = ortc_view_count(x);
    softmax_plan *g = calloc(1, sizeof *g);
    int32_t axis;
    if (!g) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    *g = (softmax_plan){.body = ortc_softmax_rows_select(),
                        .convert = ortc_convert_get(),
                        .length = 1,
                        .inner = 1};
    *out = g;
    if (count == 0) return ORTC_OK;
    if (ortc_axis_of(s->axis, x->rank, &axis)) { /* a scalar is a row of one */
        g->length = x->dims[axis];
        for (int32_t d = axis + 1; d < x->rank; d++) g->inner *= x->dims[d];
    }
    g->outer = count / g->length / g->inner;
    const bool f32 = x->dtype == ORTC_F32;
    const int64_t least = f32 ? COLUMNS : 16, most = f32 ? MOST_COLUMNS : COLUMNS;
    g->width = TILE / g->length > least ? TILE / g->length : f32 ? most : least;
    g->width = g->width > most ? most : g->width;
    g->width = g->width < g->inner ? g->width : g->inner;
    g->tiles = (g->inner + g->width - 1) / g->width;
    g->fold = g->width == g->inner && g->length * g->inner <= FOLDED ? fold_of(g->inner, g->length) : 1;
    if (f32 && g->inner > 1 && TILE / g->length < COLUMNS && g->outer * g->tiles < FEW_TILES &&
        g->fold == 1) {
        g->lines = TILE / g->inner > LEAST_LINES ? TILE / g->inner : LEAST_LINES;
        g->parts = (g->length + g->lines - 1) / g->lines;
        ortc_plan_workspace(p, (size_t)(g->outer * 2 * (g->parts + 1) * g->inner) * sizeof(float), 0);
    } else if (s->tail.has_rest || (!f32 && g->inner == 1)) {
        ortc_plan_workspace(p, 0, (size_t)(rows_together(g->length) * g->length) * sizeof(float));
    } else {
        const int64_t tile = f32 ? 0 : g->length * g->width,
                      kept = g->inner > 1 ? 2 * g->width * (g->fold + 1) : 0;
        ortc_plan_workspace(p, 0, (size_t)(tile + kept) * sizeof(float));
    }
    if (!s->tail.has_rest) ortc_plan_in_place(p, 0, 0);
    ortc_plan_cost(p, 20.0 * (double)count, 2.0 * (double)ortc_bytes_of(ortc_dtype_bits(x->dtype), count));
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    const softmax_state *s = state;
    const softmax_plan *p = pstate;
    softmax_job j = {
        p, c->in[0].data, c->out[0].data, ortc_float_index(c->in[0].dtype), s->log, c->workspace, s, c};
    if (p->outer == 0) return ORTC_OK;
    if (p->inner == 1)
        return ortc_parallel(c, p->outer, ortc_rows_grain(p->length),
                             s->tail.has_rest ? ended_chunk : rows_chunk, &j);
    if (p->parts) return by_lines(c, &j);
    return ortc_parallel(c, p->outer * p->tiles, ortc_rows_grain(p->length * p->width), columns_chunk, &j);
}

static const ortc_kernel softmax = {.size = ORTC_SIZED(ortc_kernel),
                                    .flags = ORTC_KERNEL_EPILOGUE,
                                    .name = "softmax.cpu",
                                    .supports = supports,
                                    .prepare = prepare,
                                    .plan = plan,
                                    .run = run};

ORTC_KERNELS(cpu, softmax, ORTC_KERNEL("Softmax", 13, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &softmax),
             ORTC_KERNEL("LogSoftmax", 13, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &softmax));
