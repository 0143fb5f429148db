/* kernels/cumulative/cpu.c: CumSum and CumProd on the cpu provider. Totals are doubles, or 64-bit integers
 * (lines.h); of f16 and bf16 they are f32 in between. Along the last axis a task is some rows, along others a
 * piece of lines beside each other.
 */
#include <stdlib.h>

#include "kernels/common/vector/convert.h"
#include "kernels/cumulative/lines.h"

ORTC_VEC_TABLE(ortc_cumulative_lines)

static int total_of(ortc_dtype t)
{
    switch (t) {
    case ORTC_F16: return ORTC_TOTAL_F16;
    case ORTC_BF16: return ORTC_TOTAL_BF16;
    case ORTC_F64: return ORTC_TOTAL_F64;
    case ORTC_I32:
    case ORTC_U32: return ORTC_TOTAL_32;
    case ORTC_I64:
    case ORTC_U64: return ORTC_TOTAL_64;
    default: return ORTC_TOTAL_F32;
    }
}

enum { PIECE = ORTC_TOTAL_LINE }; /* columns of a task: whole rows, where they lie in pages of their own */

typedef struct job {
    const ortc_cumulative_state *s;
    const ortc_cumulative_lines *lines;
    const ortc_convert *convert;
    const char *x;
    char *y;
    ortc_cumulative_shape shape;
    int64_t piece, pieces;
    size_t bytes;
    int total, narrow; /* ORTC_TOTAL_*, ORTC_FLOAT_* (F32: as it lies) */
} job;

static void columns_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const int64_t length = j->shape.length, inner = j->shape.inner;
    (void)scratch;
    for (int64_t task = begin; task < end; task++) {
        const int64_t first = task % j->pieces * j->piece;
        const int64_t n = inner - first < j->piece ? inner - first : j->piece;
        const size_t at = (size_t)(task / j->pieces * length * inner + first) * j->bytes;
        j->lines->down[j->total](j->s, length, (size_t)n, inner, j->x + at, j->y + at);
    }
}

/* Narrow types are converted as rows, not element by element. */
static void rows_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const job *j = arg;
    const int64_t length = j->shape.length;
    for (int64_t row = begin; row < end; row++) {
        const size_t at = (size_t)(row * length) * j->bytes;
        if (j->narrow == ORTC_FLOAT_F32) {
            j->lines->along[j->total](j->s, length, j->x + at, j->y + at);
            continue;
        }
        j->convert->widen[j->narrow]((size_t)length, j->x + at, scratch);
        j->lines->along[ORTC_TOTAL_F32](j->s, length, scratch, scratch);
        j->convert->narrow[j->narrow]((size_t)length, scratch, j->y + at);
    }
}

/* The axis comes with the run: rows are at most as long as the longest axis. */
static ortc_status plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *x = &p->in[0];
    const int64_t count = ortc_view_count(x);
    int64_t longest = 1;
    (void)state, (void)pstate;
    for (int32_t d = 0; d < x->rank; d++) longest = x->dims[d] > longest ? x->dims[d] : longest;
    if (count > 0 && ortc_float_index(x->dtype) != ORTC_FLOAT_F32)
        ortc_plan_workspace(p, 0, (size_t)longest * sizeof(float));
    ortc_plan_in_place(p, 0, 0);
    ortc_plan_cost(p, (double)count, 2.0 * (double)ortc_bytes_of(ortc_dtype_bits(x->dtype), count));
    return ORTC_OK;
}

static ortc_status run(const void *state, const void *pstate, ortc_call *c)
{
    job j = {.s = state,
             .lines = ortc_cumulative_lines_select(),
             .convert = ortc_convert_get(),
             .x = c->in[0].data,
             .y = c->out[0].data};
    const ortc_dtype t = c->in[0].dtype;
    (void)pstate;
    ORTC_TRY(ortc_cumulative_shape_of(c, &j.shape));
    if (j.shape.count == 0) return ORTC_OK;
    j.narrow = ortc_float_index(t);
    j.total = total_of(t);
    j.bytes = ortc_dtype_bits(t) / 8;
    const int64_t rows = j.shape.count / j.shape.length / j.shape.inner;
    if (j.shape.inner == 1) return ortc_parallel(c, rows, ortc_rows_grain(j.shape.length), rows_chunk, &j);
    j.piece = j.shape.inner < PIECE ? j.shape.inner : PIECE;
    j.pieces = (j.shape.inner - 1) / j.piece + 1;
    return ortc_parallel(c, rows * j.pieces, ortc_rows_grain(j.shape.length * j.piece), columns_chunk, &j);
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
