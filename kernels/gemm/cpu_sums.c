/* kernels/gemm/cpu_sums.c: MatMul and Gemm of f64, i32 and u32 on the cpu: networks have few of them, so one
 * tile in registers for each (sums_vec.c), whatever the strides. A task is some rows of a matrix under one
 * panel of B, whose columns it lays beside each other in its scratch first. */
#include "kernels/gemm/sums.h"

ORTC_VEC_TABLE(ortc_sums_body)

enum { ROWS = 128 }; /* of a task */

typedef struct sums_job {
    ortc_sums s;
    const ortc_sums_body *body;
    size_t size;                       /* of an element */
    int64_t width, panels, row_blocks; /* width: elements of a panel's row */
} sums_job;

/* n columns of B from element `from` on, `width` of them, the rest zeros. */
static void lay_panel(const sums_job *j, int64_t from, int64_t n, char *to)
{
    const ortc_sums *s = &j->s;
    const char *b = (const char *)s->b->data + (size_t)from * j->size;
    const size_t row = (size_t)j->width * j->size;
    if (n < j->width) memset(to, 0, (size_t)s->k * row);
    for (int64_t k = 0; k < s->k; k++, to += row, b += (size_t)s->b_row * j->size) {
        if (s->b_col == 1)
            memcpy(to, b, (size_t)n * j->size);
        else if (j->size == 8)
            for (int64_t i = 0; i < n; i++) memcpy(to + 8 * i, b + 8 * i * s->b_col, 8);
        else
            for (int64_t i = 0; i < n; i++) memcpy(to + 4 * i, b + 4 * i * s->b_col, 4);
    }
}

/* n sums of a row, as they leave registers, to element `at` of the result; `c0`: of what is added. */
static void put(const sums_job *j, const char *sums, int64_t n, int64_t at, int64_t c0)
{
    const ortc_sums *s = &j->s;
    if (!s->c && s->alpha == 1) {
        memcpy((char *)s->y->data + (size_t)at * j->size, sums, (size_t)n * j->size);
        return;
    }
    for (int64_t i = 0; i < n; i++) {
        const int64_t c = c0 + i * s->c_col;
        if (s->y->dtype == ORTC_F64) {
            const double *x = (const double *)(const void *)sums, *more = s->c ? s->c->data : NULL;
            ((double *)s->y->data)[at + i] = s->alpha * x[i] + (more ? s->beta * more[c] : 0);
        } else {
            const uint32_t *x = (const uint32_t *)(const void *)sums, *more = s->c->data;
            ((uint32_t *)s->y->data)[at + i] = x[i] + more[c];
        }
    }
}

static void sums_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const sums_job *j = arg;
    const ortc_sums *s = &j->s;
    const size_t row_bytes = ORTC_SUMS_VECTORS * j->body->bytes;
    char *const tile = scratch, *const panel = tile + ORTC_SUMS_ROWS * row_bytes;
    int64_t laid = -1;
    for (int64_t task = begin; task < end; task++) {
        const int64_t first = task % j->row_blocks * ROWS, last = s->m - first < ROWS ? s->m : first + ROWS;
        const int64_t which = task / j->row_blocks, matrix = which / j->panels,
                      column = which % j->panels * j->width;
        const int64_t n = s->n - column < j->width ? s->n - column : j->width;
        ortc_walk batch = s->batch;
        ortc_walk_seek(&batch, matrix);
        if (which != laid) lay_panel(j, batch.at[1] + column * s->b_col, n, panel);
        laid = which;
        for (int64_t m = first; m < last; m += ORTC_SUMS_ROWS) {
            const void *rows[ORTC_SUMS_ROWS];
            for (int64_t r = 0; r < ORTC_SUMS_ROWS; r++) /* behind the last there is the last again */
                rows[r] = (const char *)s->a->data +
                          (size_t)(batch.at[0] + (m + r < last ? m + r : last - 1) * s->a_row) * j->size;
            (j->size == 8 ? j->body->f64 : j->body->u32)((size_t)s->k, rows, (size_t)s->a_col, panel, tile);
            for (int64_t r = 0; r < ORTC_SUMS_ROWS && m + r < last; r++)
                put(j, tile + (size_t)r * row_bytes, n, (matrix * s->m + m + r) * s->n + column,
                    (m + r) * s->c_row + column * s->c_col);
        }
    }
}

static ortc_status go(ortc_call *c, sums_job *j)
{
    const ortc_sums *s = &j->s;
    const int64_t matrices = ortc_view_count(s->y) / (s->m * s->n);
    if (s->y->dtype != ORTC_F64 && !ortc_sums_plain(s)) return ortc_sums_go(c, &j->s); /* sums of 64 bits */
    j->body = ortc_sums_body_select();
    j->size = ortc_dtype_bits(s->y->dtype) / 8;
    j->width = ORTC_SUMS_VECTORS * (int64_t)(j->body->bytes / j->size);
    j->panels = (s->n + j->width - 1) / j->width;
    j->row_blocks = (s->m + ROWS - 1) / ROWS;
    const int64_t work = j->width * (s->k + 8) * (s->m < ROWS ? s->m : ROWS);
    return ortc_parallel(c, matrices * j->panels * j->row_blocks, 200000 / (work + 1) + 1, sums_chunk, j);
}

static ortc_status matmul_run(const void *state, const void *pstate, ortc_call *c)
{
    sums_job j;
    (void)state, (void)pstate;
    return ortc_sums_of_matmul(c, &j.s) ? go(c, &j) : ORTC_OK;
}
static ortc_status gemm_run(const void *state, const void *pstate, ortc_call *c)
{
    sums_job j;
    (void)pstate;
    return ortc_sums_of_gemm(state, c, &j.s) ? go(c, &j) : ORTC_OK;
}

static ortc_status sums_plan(const void *state, ortc_plan *p, void **pstate)
{
    const ortc_view *a = &p->in[0], *y = &p->out[0];
    int64_t depth = a->dims[a->rank - 1];
    (void)pstate;
    if (state) depth = y->dims[0] ? ortc_view_count(a) / y->dims[0] : 0; /* Gemm, whose A may be turned */
    ortc_plan_workspace(p, 0,
                        ((size_t)depth + ORTC_SUMS_ROWS) * ORTC_SUMS_VECTORS *
                            ortc_sums_body_select()->bytes);
    ortc_plan_cost(p, 2 * (double)ortc_view_count(&p->out[0]) * (double)depth, 0);
    return ORTC_OK;
}

const ortc_kernel ortc_cpu_matmul_sums = {.size = ORTC_SIZED(ortc_kernel),
                                          .name = "matmul.sums",
                                          .plan = sums_plan,
                                          .run = matmul_run};
const ortc_kernel ortc_cpu_gemm_sums = {.size = ORTC_SIZED(ortc_kernel),
                                        .name = "gemm.sums",
                                        .prepare = ortc_sums_prepare,
                                        .plan = sums_plan,
                                        .run = gemm_run};
