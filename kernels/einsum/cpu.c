/* kernels/einsum/cpu.c: Einsum of f32, f16 and bf16 on the cpu provider: the steps of a plan (steps.h) one
 * after the other, each split over threads. */
#include <stdlib.h>

#include "kernels/common/shape.h"
#include "kernels/common/vector/strided.h"
#include "kernels/common/vector/convert.h"
#include "kernels/einsum/lines.h"
#include "kernels/einsum/steps.h"
#include "kernels/gemm/epilogue.h"

ORTC_VEC_TABLE(ortc_einsum_lines)

enum { PIECE = 1024 }; /* elements of a row that are converted together */
#define SCRATCH ((PIECE + 64) * (sizeof(double) + 2 * sizeof(float)))

typedef struct einsum_plan {
    const ortc_einsum_lines *lines;
    const ortc_convert *convert;
    ortc_einsum_steps steps;
} einsum_plan;

typedef struct step_job {
    const einsum_plan *p;
    const ortc_einsum_step *s;
    const char *a, *b;
    char *c;
    ortc_walk walk; /* operands: a, b */
    ortc_walk over; /* of what is summed over: a */
    int64_t n, a_step, b_step, pieces;
    int64_t rows, row_step;
} step_job;

static ortc_status einsum_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *equation = ortc_node_string(n, "equation", "");
    char *copy = malloc(strlen(equation) + 1);
    if (!copy) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for the equation");
    *out = strcpy(copy, equation);
    return ORTC_OK;
}

static ortc_status einsum_plan_make(const void *state, ortc_plan *p, void **out)
{
    einsum_plan *e = malloc(sizeof *e);
    if (!e) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for a plan");
    *e = (einsum_plan){.lines = ortc_einsum_lines_select(), .convert = ortc_convert_get()};
    const ortc_status status = ortc_view_count(&p->out[0]) ? ortc_einsum_plan(p, state, SCRATCH, &e->steps)
                                                           : ORTC_OK;
    if (status) {
        free(e);
        return status;
    }
    *out = e;
    return ORTC_OK;
}

static void einsum_release(const void *state, void *pstate)
{
    einsum_plan *e = pstate;
    (void)state;
    if (e) free(e->steps.step);
    free(e);
}

/* ---- Steps --------------------------------------------------------------------------------------------- */

static char *address(ortc_call *c, const ortc_einsum_place *at)
{
    if (at->input == ORTC_EINSUM_RESULT) return c->out[0].data;
    if (at->input == ORTC_EINSUM_IN_WORKSPACE) return (char *)c->workspace + at->offset;
    return c->in[at->input].data;
}

/* n elements from x on, `step` apart, as f32: as they lie, or in `space`; *out_step is 0 or 1. */
static const float *floats(const step_job *j, const char *x, ortc_dtype t, int64_t step, int64_t n,
                           float *space, int64_t *out_step)
{
    *out_step = step != 0;
    if (t == ORTC_F32 && (step == 0 || step == 1)) return (const float *)(const void *)x;
    if (step == 0) n = 1;
    if (step == 0 || step == 1)
        j->p->convert->widen[ortc_float_index(t)]((size_t)n, x, space);
    else
        for (int64_t i = 0; i < n; i++) space[i] = (float)ortc_load_f64(x, t, i * step);
    return space;
}

static void multiply_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const step_job *j = arg;
    const ortc_einsum_step *s = j->s;
    float *space = scratch, *sums = space + 2 * PIECE;
    for (int64_t task = begin; task < end; task++) {
        const int64_t row = task / j->pieces, first = task % j->pieces * PIECE;
        const int64_t n = j->n - first < PIECE ? j->n - first : PIECE;
        ortc_walk w = j->walk;
        int64_t a_step, b_step;
        ortc_walk_seek(&w, row);
        const float *a = floats(j, ortc_product_at(j->a, w.at[0] + first * j->a_step, s->a.type), s->a.type,
                                j->a_step, n, space, &a_step);
        const float *b = floats(j, ortc_product_at(j->b, w.at[1] + first * j->b_step, s->b.type), s->b.type,
                                j->b_step, n, space + PIECE, &b_step);
        char *c = ortc_product_at(j->c, row * j->n + first, s->c.type);
        float *to = s->c.type == ORTC_F32 ? (float *)(void *)c : sums;
        j->p->lines->multiply((size_t)n, a, a_step, b, b_step, to);
        if (s->c.type != ORTC_F32) j->p->convert->narrow[ortc_float_index(s->c.type)]((size_t)n, to, c);
    }
}

static void dot_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const step_job *j = arg;
    const ortc_einsum_step *s = j->s;
    float *space = scratch;
    ortc_walk w = j->walk;
    ortc_walk_seek(&w, begin);
    for (int64_t row = begin; row < end; row++, ortc_walk_next(&w)) {
        double sum = 0;
        for (int64_t first = 0; first < s->k; first += PIECE) {
            const int64_t n = s->k - first < PIECE ? s->k - first : PIECE;
            int64_t step;
            const float *a = floats(j, ortc_product_at(j->a, w.at[0] + first, s->a.type), s->a.type, 1, n,
                                    space, &step);
            const float *b = floats(j, ortc_product_at(j->b, w.at[1] + first, s->b.type), s->b.type, 1, n,
                                    space + PIECE, &step);
            sum += (double)j->p->lines->dot((size_t)n, a, b);
        }
        const float f = (float)sum;
        j->p->convert->narrow[ortc_float_index(s->c.type)](1, &f, ortc_product_at(j->c, row, s->c.type));
    }
}

/* Piece by piece of the innermost dims, where they are kept. */
static void sum_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const step_job *j = arg;
    const ortc_einsum_step *s = j->s;
    double *sums = scratch;
    float *space = (float *)(sums + PIECE + 64), *rounded = space + PIECE;
    ortc_walk outer = j->walk, over = j->over; /* the second ends where it has begun */
    int64_t step;
    ortc_walk_seek(&outer, begin / j->pieces);
    for (int64_t task = begin; task < end; task++) {
        const int64_t from = s->across ? 0 : task % j->pieces * PIECE;
        const int64_t n = s->across ? 1 : s->k - from < PIECE ? s->k - from : PIECE;
        memset(sums, 0, (size_t)n * sizeof *sums);
        for (int64_t i = 0; i < j->n; i++, ortc_walk_next(&over)) {
            const char *x = ortc_product_at(j->a, outer.at[0] + over.at[0] + from * s->step, s->a.type);
            for (int64_t first = 0; s->across && first < s->k; first += PIECE) {
                const int64_t some = s->k - first < PIECE ? s->k - first : PIECE;
                const float *line = floats(j, ortc_product_at(x, first * s->step, s->a.type), s->a.type,
                                           s->step, some, space, &step);
                *sums += (double)j->p->lines->sum((size_t)some, line);
            }
            if (!s->across && s->step == 1)
                j->p->lines->add[ortc_float_index(s->a.type)]((size_t)n, (size_t)j->rows, j->row_step, x,
                                                              sums);
            for (int64_t r = 0; !s->across && s->step != 1 && r < j->rows; r++) {
                const char *row = ortc_product_at(x, r * j->row_step, s->a.type);
                const float *line = floats(j, row, s->a.type, s->step, n, space, &step);
                j->p->lines->add[ORTC_FLOAT_F32]((size_t)n, 1, 0, line, sums);
            }
        }
        j->p->lines->round((size_t)n, sums, rounded);
        j->p->convert->narrow[ortc_float_index(s->c.type)](
            (size_t)n, rounded,
            ortc_product_at(j->c, task / j->pieces * (s->across ? 1 : s->k) + from, s->c.type));
        if ((task + 1) % j->pieces == 0) ortc_walk_next(&outer);
    }
}

static ortc_status run_sum(ortc_call *c, step_job *j)
{
    const ortc_einsum_step *s = j->s;
    int64_t count = 1;
    j->n = 1;
    j->pieces = s->across ? 1 : (s->k - 1) / PIECE + 1;
    for (int32_t d = 0; d < s->rank; d++) count *= s->dims[d];
    for (int32_t d = s->rank; d < s->rank + s->summed; d++) j->n *= s->dims[d];
    ortc_walk_init(&j->walk, s->rank, s->dims);
    ortc_walk_strided(&j->walk, s->a_step, 0);
    const int32_t rows = s->across || s->summed == 0 ? 0 : 1; /* added up together */
    j->rows = rows ? s->dims[s->rank + s->summed - 1] : 1;
    j->row_step = rows ? s->a_step[s->rank + s->summed - 1] : 0;
    j->n /= j->rows;
    ortc_walk_init(&j->over, s->summed - rows, s->dims + s->rank);
    ortc_walk_strided(&j->over, s->a_step + s->rank, 0);
    const int64_t each = s->k < PIECE || s->across ? s->k : PIECE;
    return ortc_parallel(c, count * j->pieces, ortc_rows_grain((each + 16) * j->n * j->rows), sum_chunk, j);
}

static ortc_status run_elements(ortc_call *c, step_job *j)
{
    const ortc_einsum_step *s = j->s;
    int64_t count = 1;
    for (int32_t d = 0; d < s->rank; d++) count *= s->dims[d];
    ortc_walk_init(&j->walk, s->rank, s->dims);
    ortc_walk_strided(&j->walk, s->a_step, 0);
    ortc_walk_strided(&j->walk, s->b_step, 0);
    ortc_walk_merge(&j->walk);
    if (s->kind == ORTC_EINSUM_DOT) return ortc_parallel(c, count, ortc_rows_grain(s->k + 16), dot_chunk, j);
    const int32_t last = j->walk.rank - 1;
    j->n = last < 0 ? 1 : j->walk.dims[last];
    j->a_step = last < 0 ? 0 : j->walk.step[0][last];
    j->b_step = last < 0 ? 0 : j->walk.step[1][last];
    j->walk.rank = last < 0 ? 0 : last;
    j->pieces = (j->n - 1) / PIECE + 1;
    return ortc_parallel(c, count / j->n * j->pieces, ortc_rows_grain(j->n < PIECE ? j->n + 16 : PIECE),
                         multiply_chunk, j);
}

static void locate(const void *arg, int64_t index, ortc_product_item *it)
{
    const ortc_einsum_step *s = arg;
    int64_t a = 0, b = 0, c = 0;
    for (int32_t d = s->rank - 1; d >= 0; d--) {
        const int64_t i = index % s->dims[d];
        index /= s->dims[d];
        a += i * s->a_step[d];
        b += i * s->b_step[d];
        c += i * s->c_step[d];
    }
    it->a = ortc_product_at(it->a, a, s->a.type);
    it->b = ortc_product_at(it->b, b, s->b.type);
    it->c = ortc_product_at(it->c, c, s->c.type);
}

static ortc_status run_product(ortc_call *c, const einsum_plan *e, const ortc_einsum_step *s)
{
    const ortc_product_threads threads = {ortc_call_parallel, c};
    const ortc_product_args x = {.item = {.a = address(c, &s->a),
                                          .b = s->packed ? s->packed->data : address(c, &s->b),
                                          .c = address(c, &s->c)},
                                 .lda = s->lda,
                                 .ldb = s->ldb,
                                 .ldc = s->ldc,
                                 .alpha = 1,
                                 .beta = 1,
                                 .locate = s->rank ? locate : NULL,
                                 .arg = s,
                                 .workspace = (char *)c->workspace + e->steps.at_product};
    return ortc_product_run(&s->product, &x, &threads);
}

static ortc_status run_move(ortc_call *c, const ortc_einsum_step *s)
{
    ortc_strided m = {.to = address(c, &s->c),
                      .from = address(c, &s->a),
                      .bytes = (size_t)ortc_product_size(s->a.type),
                      .rank = s->rank};
    ortc_copy_dims(m.dims, s->dims, s->rank);
    ortc_copy_dims(m.to_step, s->c_step, s->rank);
    ortc_copy_dims(m.from_step, s->a_step, s->rank);
    return ortc_strided_move(c, &m);
}

static ortc_status run_step(ortc_call *c, const einsum_plan *e, const ortc_einsum_step *s)
{
    step_job j = {.p = e, .s = s, .c = address(c, &s->c)};
    switch (s->kind) {
    case ORTC_EINSUM_MOVE: return run_move(c, s);
    case ORTC_EINSUM_PRODUCT: return run_product(c, e, s);
    case ORTC_EINSUM_SUM: j.a = address(c, &s->a); return run_sum(c, &j);
    default:
        j.a = address(c, &s->a);
        j.b = address(c, &s->b);
        return run_elements(c, &j);
    }
}

static ortc_status einsum_run(const void *state, const void *pstate, ortc_call *c)
{
    const einsum_plan *e = pstate;
    const ortc_view *y = &c->out[0];
    (void)state;
    if (e->steps.zero) memset(y->data, 0, ortc_bytes_of(ortc_dtype_bits(y->dtype), ortc_view_count(y)));
    for (uint32_t i = 0; i < e->steps.count; i++) ORTC_TRY(run_step(c, e, &e->steps.step[i]));
    return ORTC_OK;
}

static const ortc_kernel einsum_cpu = {.size = ORTC_SIZED(ortc_kernel),
                                       .name = "einsum.cpu",
                                       .prepare = einsum_prepare,
                                       .plan = einsum_plan_make,
                                       .run = einsum_run,
                                       .release_plan = einsum_release};

ORTC_KERNELS(cpu, einsum, ORTC_KERNEL("Einsum", 28, ORTC_NEWEST, (ORTC_TYPES_BY_F32), &einsum_cpu));
