/* kernels/gemm/ref.c: MatMul and Gemm as sums of products, in double or in 64-bit integers.
 *
 * Both are one loop over a batch of products of matrices given by strides; Gemm adds beta C afterwards.
 */
#include <stdlib.h>

#include "kernels/gemm/sums.h"

typedef struct gemm_state {
    float alpha, beta;
    bool transpose_a, transpose_b;
} gemm_state;

#define GEMM_SUM(type, load) \
    type sum = 0; \
    for (int64_t k = 0; k < j->k; k++) \
        sum += load(j->a->data, t, a0 + k * j->a_col) * load(j->b->data, t, b0 + k * j->b_row);

ORTC_INLINE void gemm_loop(ortc_dtype t, const ortc_sums *j, int64_t begin, int64_t end)
{
    const ortc_class class = ortc_class_of(t);
    const bool plain = ortc_sums_plain(j);
    ortc_walk batch = j->batch;
    int64_t matrix = begin / (j->m * j->n);
    ortc_walk_seek(&batch, matrix);
    for (int64_t at = begin; at < end; at++) {
        if (at / (j->m * j->n) != matrix) {
            matrix++;
            ortc_walk_next(&batch);
        }
        const int64_t row = at / j->n % j->m, col = at % j->n;
        const int64_t a0 = batch.at[0] + row * j->a_row, b0 = batch.at[1] + col * j->b_col;
        const int64_t c0 = row * j->c_row + col * j->c_col;
        if (class == ORTC_CLASS_FLOAT) {
            GEMM_SUM(double, ortc_load_f64)
            if (!plain) sum *= j->alpha;
            if (j->c) sum += (plain ? 1 : j->beta) * ortc_load_f64(j->c->data, t, c0);
            ortc_store_f64(j->y->data, t, at, sum);
        } else { /* products and sums modulo 2^64: the sign is in how the result is read */
            GEMM_SUM(uint64_t, (uint64_t)ortc_load_i64)
            if (plain) {
                sum += j->c ? (uint64_t)ortc_load_i64(j->c->data, t, c0) : 0;
                ortc_store_u64(j->y->data, t, at, sum);
            } else { /* factors are floats: the sum is rounded towards zero */
                const double exact = class == ORTC_CLASS_INT ? (double)(int64_t)sum : (double)sum;
                ortc_store_f64(j->y->data, t, at,
                               exact * j->alpha + (j->c ? j->beta * ortc_load_f64(j->c->data, t, c0) : 0));
            }
        }
    }
}

static void gemm_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const ortc_sums *j = arg;
    ORTC_SPECIALISE(j->y->dtype, gemm_loop, j, begin, end);
}

ortc_status ortc_sums_go(ortc_call *c, ortc_sums *j)
{
    const int64_t count = ortc_view_count(j->y);
    return count ? ortc_parallel(c, count, ortc_grain(2.0 * (double)(j->k + 8)), gemm_chunk, j) : ORTC_OK;
}

bool ortc_sums_of_matmul(ortc_call *c, ortc_sums *j)
{
    const ortc_view *a = &c->in[0], *b = &c->in[1];
    *j = (ortc_sums){.a = a, .b = b, .y = &c->out[0], .alpha = 1, .beta = 1};
    const int32_t batch_a = a->rank > 2 ? a->rank - 2 : 0, batch_b = b->rank > 2 ? b->rank - 2 : 0;
    int64_t dims[ORTC_RANK_LIMIT], strides[ORTC_RANK_LIMIT];
    j->k = a->dims[a->rank - 1];
    j->m = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    j->n = b->rank > 1 ? b->dims[b->rank - 1] : 1;
    j->a_row = j->k;
    j->a_col = 1;
    j->b_row = j->n;
    j->b_col = 1;
    if (ortc_view_count(j->y) == 0) return false;
    ortc_walk_init(&j->batch, batch_a > batch_b ? batch_a : batch_b, j->y->dims);
    for (int operand = 0; operand < 2; operand++) { /* strides in whole matrices, then in elements */
        const ortc_view *v = operand ? b : a;
        const int32_t own = operand ? batch_b : batch_a;
        const int64_t elements = operand ? j->k * j->n : j->m * j->k;
        ortc_dense_strides(own, v->dims, strides);
        for (int32_t d = 0; d < j->batch.rank; d++) {
            const int32_t i = d - (j->batch.rank - own);
            dims[d] = i >= 0 && v->dims[i] != 1 ? strides[i] * elements : 0;
        }
        ortc_walk_strided(&j->batch, dims, 0);
    }
    ortc_walk_merge(&j->batch);
    return true;
}

static ortc_status matmul_run(const void *state, const void *pstate, ortc_call *c)
{
    ortc_sums j;
    return ortc_sums_of_matmul(c, &j) ? ortc_sums_go(c, &j) : ORTC_OK;
}

ortc_status ortc_sums_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    gemm_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    *s = (gemm_state){ortc_node_float(n, "alpha", 1), ortc_node_float(n, "beta", 1),
                      ortc_node_int(n, "transA", 0) != 0, ortc_node_int(n, "transB", 0) != 0};
    *out = s;
    return ORTC_OK;
}

bool ortc_sums_of_gemm(const void *state, ortc_call *c, ortc_sums *j)
{
    const gemm_state *s = state;
    const ortc_view *a = &c->in[0], *b = &c->in[1], *bias = c->n_in > 2 && c->in[2].dtype ? &c->in[2] : NULL;
    const int64_t a_cols = a->dims[1], b_cols = b->dims[1];
    *j = (ortc_sums){
        .a = a, .b = b, .c = s->beta != 0 ? bias : NULL, .y = &c->out[0], .alpha = s->alpha, .beta = s->beta};
    j->m = a->dims[s->transpose_a];
    j->k = a->dims[!s->transpose_a];
    j->n = b->dims[!s->transpose_b];
    j->a_row = s->transpose_a ? 1 : a_cols;
    j->a_col = s->transpose_a ? a_cols : 1;
    j->b_row = s->transpose_b ? 1 : b_cols;
    j->b_col = s->transpose_b ? b_cols : 1;
    if (bias && bias->rank > 0) {
        const int64_t cols = bias->dims[bias->rank - 1], rows = bias->rank == 2 ? bias->dims[0] : 1;
        j->c_col = cols != 1;
        j->c_row = rows != 1 ? cols : 0;
    }
    const int64_t nothing[2] = {0, 0};
    ortc_walk_init(&j->batch, 0, nothing);
    ortc_walk_strided(&j->batch, nothing, 0);
    ortc_walk_strided(&j->batch, nothing, 0);
    return ortc_view_count(j->y) != 0;
}

static ortc_status gemm_run(const void *state, const void *pstate, ortc_call *c)
{
    ortc_sums j;
    return ortc_sums_of_gemm(state, c, &j) ? ortc_sums_go(c, &j) : ORTC_OK;
}

static const ortc_kernel matmul_ref = {.size = ORTC_SIZED(ortc_kernel),
                                       .name = "matmul.ref",
                                       .run = matmul_run};
static const ortc_kernel gemm_ref = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "gemm.ref",
                                     .prepare = ortc_sums_prepare,
                                     .run = gemm_run};

#define TYPES \
    (ORTC_TYPES_FLOAT | ORTC_TYPE(ORTC_I32) | ORTC_TYPE(ORTC_I64) | ORTC_TYPE(ORTC_U32) | ORTC_TYPE(ORTC_U64))
ORTC_KERNELS(ref, gemm, ORTC_KERNEL("MatMul", 13, ORTC_NEWEST, (TYPES), &matmul_ref),
             ORTC_KERNEL("Gemm", 13, ORTC_NEWEST, (TYPES), &gemm_ref));
