/* kernels/cumulative/cpu.c: CumSum and CumProd on the cpu provider. Totals are doubles, or 64-bit integers,
 * as on ref, and so are results the same bits; of f16 and bf16 they are f32 in between. Along the last axis a
 * task is some rows, along others a piece of lines beside each other, whose totals go along together.
 */
#include <stdlib.h>

#include "kernels/common/vector/convert.h"
#include "kernels/cumulative/cumulative.h"

enum { PIECE = 256 }; /* elements of a line whose totals are kept */

/* x and y: `length` lines of n elements, `step` apart; y may be x. */
typedef void along(const ortc_cumulative_state *s, int64_t length, int64_t n, int64_t step, const void *x,
                   void *y);

#define LINES(type, total, op, ...) \
    for (int64_t k = 0; k < length; k++) { \
        const int64_t at = (s->reverse ? length - 1 - k : k) * step; \
        for (int64_t i = 0; i < n; i++) { \
            const total old = sums[i]; \
            sums[i] = old op(total) in[at + i]; \
            out[at + i] = (type)(__VA_ARGS__); \
        } \
    }
#define ALONG(name, type, total) \
    static void along_##name(const ortc_cumulative_state *s, int64_t length, int64_t n, int64_t step, \
                             const void *x, void *y) \
    { \
        const type *in = x; \
        type *out = y; \
        total sums[PIECE]; \
        for (int64_t i = 0; i < n; i++) sums[i] = s->product; \
        if (s->product && s->exclusive) \
            LINES(type, total, *, old) \
        else if (s->product) \
            LINES(type, total, *, sums[i]) \
        else if (s->exclusive) \
            LINES(type, total, +, old) \
        else \
            LINES(type, total, +, sums[i]) \
    }
ALONG(f32, float, double)
ALONG(f64, double, double)
ALONG(32, uint32_t, uint64_t) /* signed or not: the same bits */
ALONG(64, uint64_t, uint64_t)

static along *along_of(ortc_dtype t)
{
    switch (t) {
    case ORTC_F64: return along_f64;
    case ORTC_I32:
    case ORTC_U32: return along_32;
    case ORTC_I64:
    case ORTC_U64: return along_64;
    default: return along_f32;
    }
}

typedef struct job {
    const ortc_cumulative_state *s;
    const ortc_convert *convert;
    along *along;
    const char *x;
    char *y;
    ortc_cumulative_shape shape;
    int64_t piece, pieces;
    size_t bytes;
    int narrow; /* ORTC_FLOAT_*; F32: as it lies */
} job;

static void chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const int64_t length = j->shape.length, inner = j->shape.inner;
    float *tile = scratch;
    for (int64_t task = begin; task < end; task++) {
        const int64_t first = task % j->pieces * j->piece;
        const int64_t n = inner - first < j->piece ? inner - first : j->piece;
        const size_t at = (size_t)(task / j->pieces * length * inner + first) * j->bytes;
        if (j->narrow == ORTC_FLOAT_F32) {
            j->along(j->s, length, n, inner, j->x + at, j->y + at);
            continue;
        }
        for (int64_t k = 0; k < length; k++)
            j->convert->widen[j->narrow]((size_t)n, j->x + at + (size_t)(k * inner) * j->bytes, tile + k * n);
        along_f32(j->s, length, n, n, tile, tile);
        for (int64_t k = 0; k < length; k++)
            j->convert->narrow[j->narrow]((size_t)n, tile + k * n,
                                          j->y + at + (size_t)(k * inner) * j->bytes);
    }
}

/* Narrow types along the last axis are converted row by row, not element by element. */
static void rows_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const int64_t length = j->shape.length;
    for (int64_t row = begin; row < end; row++) {
        const size_t at = (size_t)(row * length) * j->bytes;
        j->convert->widen[j->narrow]((size_t)length, j->x + at, scratch);
        along_f32(j->s, length, 1, 1, scratch, scratch);
        j->convert->narrow[j->narrow]((size_t)length, scratch, j->y + at);
    }
}

/* The axis comes with the run: a tile is at most all of the input. */
static ortc_status plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *x = &p->in[0];
    const int64_t count = ortc_view_count(x);
    int64_t longest = 1;
    (void)state, (void)pstate;
    for (int32_t d = 0; d < x->rank; d++) longest = x->dims[d] > longest ? x->dims[d] : longest;
    if (count > 0 && ortc_float_index(x->dtype) != ORTC_FLOAT_F32)
        ortc_plan_workspace(p, 0, (size_t)(count / longest < 16 ? count : 16 * longest) * sizeof(float));
    ortc_plan_in_place(p, 0, 0);
    ortc_plan_cost(p, (double)count, 2.0 * (double)ortc_bytes_of(ortc_dtype_bits(x->dtype), count));
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    job j = {.s = state, .convert = ortc_convert_get(), .x = c->in[0].data, .y = c->out[0].data};
    const ortc_dtype t = c->in[0].dtype;
    (void)pstate;
    ORTC_TRY(ortc_cumulative_shape_of(c, &j.shape));
    if (j.shape.count == 0) return ORTC_OK;
    j.narrow = ortc_float_index(t);
    j.along = along_of(t);
    j.bytes = ortc_dtype_bits(t) / 8;
    const int64_t most = j.narrow == ORTC_FLOAT_F32 ? PIECE : 16;
    j.piece = j.shape.inner < most ? j.shape.inner : most;
    j.pieces = (j.shape.inner - 1) / j.piece + 1;
    const int64_t tasks = j.shape.count / j.shape.length / j.shape.inner * j.pieces;
    const bool rows = j.shape.inner == 1 && j.narrow != ORTC_FLOAT_F32;
    return ortc_parallel(c, tasks, ortc_rows_grain(j.shape.length * j.piece), rows ? rows_chunk : chunk, &j);
}

static const ortc_kernel cumulative_cpu = {.size = ORTC_SIZED(ortc_kernel),
                                           .name = "cumulative.cpu",
                                           .host_in = 2,
                                           .prepare = ortc_cumulative_prepare,
                                           .plan = plan,
                                           .run = run};

#define TYPES \
    (ORTC_TYPES_BY_F32 | ORTC_TYPE(ORTC_F64) | ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64) | \
     ORTC_TYPE(ORTC_U32) | ORTC_TYPE(ORTC_U64))
#define INDEX (ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64))
ORTC_KERNELS(cpu, cumulative, ORTC_KERNEL("CumSum", 14, ORTC_NEWEST, (TYPES, INDEX), &cumulative_cpu),
             ORTC_KERNEL("CumProd", 26, ORTC_NEWEST, (TYPES, INDEX), &cumulative_cpu));
