/* kernels/elementwise/cpu_where.c: Where on the cpu provider, for elements of 1 to 8 bytes, whatever they
 * are. Dims are merged; along the last one each operand moves by one element or stays. */
#include "kernels/common/shape.h"
#include "kernels/elementwise/lines.h"

ORTC_VEC_TABLE(ortc_lines)

enum { PIECE = 8192 };

typedef struct where_job {
    const ortc_lines *body;
    const uint8_t *m;
    const char *a, *b;
    char *y;
    size_t bytes;
    int64_t width, pieces; /* of the last merged dim */
    int64_t step[3];       /* along it: of m, a, b */
    ortc_walk outer;
} where_job;

static void where_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const where_job *j = arg;
    const int by = j->bytes == 1 ? 0 : j->bytes == 2 ? 1 : j->bytes == 4 ? 2 : 3;
    ortc_walk w = j->outer;
    uint8_t all[PIECE];
    (void)scratch;
    ortc_walk_seek(&w, begin / j->pieces);
    for (int64_t task = begin; task < end; task++) {
        const int64_t at = task % j->pieces * PIECE, n = j->width - at < PIECE ? j->width - at : PIECE;
        const uint8_t *m = j->m + w.at[0] + at * j->step[0];
        if (j->step[0] == 0) m = memset(all, *m, (size_t)n);
        j->body->where[by]((size_t)n, m, j->a + (size_t)(w.at[1] + at * j->step[1]) * j->bytes,
                           (size_t)j->step[1], j->b + (size_t)(w.at[2] + at * j->step[2]) * j->bytes,
                           (size_t)j->step[2], j->y + (size_t)(task / j->pieces * j->width + at) * j->bytes);
        if ((task + 1) % j->pieces == 0) ortc_walk_next(&w);
    }
}

static ortc_status where_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *y = &p->out[0];
    (void)state, (void)pstate;
    ortc_plan_in_place(p, 0, 1);
    ortc_plan_in_place(p, 0, 2);
    ortc_plan_cost(p, 0, (double)ortc_view_count(y) * (3.0 * ortc_dtype_bits(y->dtype) / 8 + 1));
    return ORTC_OK;
}

static ortc_status where_run(const void *state, const void *pstate, ortc_call *c)
{
    const ortc_view *y = &c->out[0];
    const int64_t count = ortc_view_count(y);
    where_job j = {.body = ortc_lines_select(),
                   .m = c->in[0].data,
                   .a = c->in[1].data,
                   .b = c->in[2].data,
                   .y = y->data,
                   .bytes = ortc_dtype_bits(y->dtype) / 8,
                   .width = 1};
    ortc_walk *w = &j.outer;
    (void)state, (void)pstate;
    if (count == 0) return ORTC_OK;
    ortc_walk_init(w, y->rank, y->dims);
    for (int k = 0; k < 3; k++) ortc_walk_view(w, &c->in[k]);
    ortc_walk_merge(w);
    if (w->rank > 0) {
        w->rank--;
        j.width = w->dims[w->rank];
        for (int k = 0; k < 3; k++) j.step[k] = w->step[k][w->rank];
    }
    j.pieces = (j.width + PIECE - 1) / PIECE;
    const int64_t work = j.width < PIECE ? j.width : PIECE;
    return ortc_parallel(c, count / j.width * j.pieces, 2 * PIECE / (work + 16) + 1, where_chunk, &j);
}

static const ortc_kernel where = {.size = ORTC_SIZED(ortc_kernel),
                                  .name = "where.cpu",
                                  .plan = where_plan,
                                  .run = where_run};

#define TYPES (ORTC_TYPES_NUM | ORTC_TYPE(ORTC_BOOL) | ORTC_TYPE(ORTC_C64))
ORTC_KERNELS(cpu, where, ORTC_KERNEL("Where", 16, ORTC_NEWEST, (ORTC_TYPE(ORTC_BOOL), TYPES), &where));
