/* MatMul's shapes as products (matmul_shape.h). */
#include "kernels/gemm/matmul_shape.h"

/* The batch dims: those of Y, with the steps of A and B along them. Returns their product. */
static int64_t read_batch(ortc_matmul_shape *s, const ortc_view *a, const ortc_view *b, const ortc_view *y)
{
    const int32_t ra = a->rank > 2 ? a->rank - 2 : 0, rb = b->rank > 2 ? b->rank - 2 : 0;
    int64_t batch = 1;
    uint64_t a_at, b_at; /* may wrap, for shapes that no memory holds */
    s->rank = ra > rb ? ra : rb;
    for (int32_t d = 0; d < y->rank; d++)
        if (y->dims[d] == 0) return 0; /* then products of the other dims need not fit */
    a_at = (uint64_t)s->m * (uint64_t)s->k, b_at = (uint64_t)s->k * (uint64_t)s->n;
    for (int32_t d = s->rank - 1; d >= 0; d--) {
        const int64_t da = d - (s->rank - ra) >= 0 ? a->dims[d - (s->rank - ra)] : 1;
        const int64_t db = d - (s->rank - rb) >= 0 ? b->dims[d - (s->rank - rb)] : 1;
        s->dims[d] = da == 1 ? db : da;
        s->a_step[d] = da == 1 ? 0 : (int64_t)a_at;
        s->b_step[d] = db == 1 ? 0 : (int64_t)b_at;
        a_at *= (uint64_t)da, b_at *= (uint64_t)db, batch *= s->dims[d];
    }
    return batch;
}

int ortc_matmul_shape_init(const ortc_view *a, const ortc_view *b, const ortc_view *y, ortc_matmul_shape *s)
{
    if (a->rank > ORTC_BATCH_RANK || b->rank > ORTC_BATCH_RANK || a->rank < 1 || b->rank < 1) return 0;
    s->k = a->dims[a->rank - 1];
    s->rows = s->m = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    s->n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    s->batch = read_batch(s, a, b, y);
    if (s->batch == 0) s->m = s->n = s->k = 0, s->rank = 0;
    int shared = 1; /* B is one matrix, and A is not broadcast: rows of the batch follow each other */
    for (int32_t d = 0; d < s->rank; d++)
        shared &= s->dims[d] == 1 || (s->b_step[d] == 0 && s->a_step[d] != 0);
    if (shared && s->batch) s->m *= s->batch, s->batch = 1, s->rank = 0;
    return 1;
}

void ortc_matmul_at(const ortc_matmul_shape *s, int64_t index, int64_t *a, int64_t *b)
{
    *a = *b = 0;
    for (int32_t d = s->rank - 1; d >= 0; d--) {
        const int64_t i = index % s->dims[d];
        index /= s->dims[d];
        *a += i * s->a_step[d];
        *b += i * s->b_step[d];
    }
}
