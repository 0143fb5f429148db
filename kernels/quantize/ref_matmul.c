/* kernels/quantize/ref_matmul.c: MatMulInteger and QLinearMatMul on ref: sums of (a - a's zero)(b - b's
 * zero), exact in double, then scaled, rounded and saturated. MatMulInteger's sums wrap in 32 bits.
 */
#include "kernels/quantize/quantize.h"

typedef struct product_job {
    const ortc_view *a, *b, *a_zero, *b_zero, *a_scale, *b_scale; /* NULL: none */
    ortc_view *y;
    double y_scale, y_zero;
    int64_t m, n, k;
    int64_t b_k, b_n;     /* elements of B from one k to the next, from one column */
    int64_t a_row, b_row; /* elements from one row's number to the next; 0: one for all */
    ortc_walk batch;      /* operands: A, B, A's numbers, B's numbers */
} product_job;

static double number(const ortc_view *v, int64_t at, double otherwise)
{
    return v ? ortc_load_f64(v->data, v->dtype, at) : otherwise;
}

static void product_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const product_job *j = arg;
    for (int64_t i = begin; i < end; i++) {
        const int64_t row = i / j->n % j->m, col = i % j->n;
        ortc_walk w = j->batch;
        ortc_walk_seek(&w, i / j->n / j->m);
        const int64_t a_at = w.at[2] + row * j->a_row, b_at = w.at[3] + col * j->b_row;
        const double za = number(j->a_zero, a_at, 0), zb = number(j->b_zero, b_at, 0);
        double sum = 0;
        for (int64_t k = 0; k < j->k; k++)
            sum += (ortc_load_f64(j->a->data, j->a->dtype, w.at[0] + row * j->k + k) - za) *
                   (ortc_load_f64(j->b->data, j->b->dtype, w.at[1] + k * j->b_k + col * j->b_n) - zb);
        if (!j->a_scale) {
            ortc_store_i64(j->y->data, ORTC_I32, i, (int64_t)sum);
            continue;
        }
        const ortc_dtype t = j->a_scale->dtype; /* the factor is computed in the scales' type */
        const double scales = ortc_rounded_to(t, number(j->a_scale, a_at, 1) * number(j->b_scale, b_at, 1));
        /* so that halves are halves */
        const double v = (double)(float)(sum * ortc_rounded_to(t, scales / j->y_scale));
        const ortc_float_format *f = ortc_float_format_of(j->y->dtype);
        if (f)
            ortc_store_bits(j->y->data, 8, i, ortc_float_encode(f, v + j->y_zero, true));
        else
            ortc_store_saturated(j->y->data, j->y->dtype, i, nearbyint(v) + j->y_zero);
    }
}

/* An operand that has the batch dims of `v`, whose matrices have `size` elements; NULL or a vector: none. */
static void add_batch(ortc_walk *w, const ortc_view *v, int64_t size)
{
    int64_t strides[ORTC_RANK_LIMIT] = {0}, step = size;
    const int32_t own = v && v->rank > 2 ? v->rank - 2 : 0;
    for (int32_t d = own - 1; d >= 0; d--) {
        strides[w->rank - own + d] = v->dims[d] == 1 ? 0 : step;
        step *= v->dims[d];
    }
    ortc_walk_strided(w, strides, 0);
}

/* turned: B is [n][k]. */
static ortc_status product_go(ortc_call *c, product_job *j, int turned)
{
    const ortc_view *a = j->a, *b = j->b, *a_numbers = j->a_zero ? j->a_zero : j->a_scale,
                    *b_numbers = j->b_zero ? j->b_zero : j->b_scale;
    const int64_t count = ortc_view_count(j->y);
    const int32_t batch = j->y->rank - (a->rank > 1) - (b->rank > 1);
    if (count == 0) return ORTC_OK;
    j->k = a->dims[a->rank - 1];
    j->m = a->rank > 1 ? a->dims[a->rank - 2] : 1;
    j->n = b->rank > 1 ? b->dims[b->rank - 1 - turned] : 1;
    j->b_k = turned ? 1 : j->n, j->b_n = turned ? j->k : 1;
    j->a_row = a_numbers && ortc_view_count(a_numbers) > 1;
    j->b_row = b_numbers && ortc_view_count(b_numbers) > 1;
    /* one number, per matrix or in all: dims of the matrix are 1 */
    j->a_row = j->a_row && a_numbers->dims[a_numbers->rank > 1 ? a_numbers->rank - 2 : 0] > 1;
    j->b_row = j->b_row && b_numbers->dims[b_numbers->rank > turned ? b_numbers->rank - 1 - turned : 0] > 1;
    ortc_walk_init(&j->batch, batch, j->y->dims);
    add_batch(&j->batch, a, j->m * j->k);
    add_batch(&j->batch, b, j->k * j->n);
    add_batch(&j->batch, a_numbers, j->m);
    add_batch(&j->batch, b_numbers, j->n);
    return ortc_parallel(c, count, ortc_grain(4.0 * (double)(j->k + 16)), product_chunk, j);
}

static const ortc_view *optional(const ortc_call *c, uint32_t i)
{
    return c->n_in > i && c->in[i].dtype ? &c->in[i] : NULL;
}

static ortc_status integer_go(ortc_call *c, int turned)
{
    product_job j = {
        .a = &c->in[0], .b = &c->in[1], .a_zero = optional(c, 2), .b_zero = optional(c, 3), .y = &c->out[0]};
    return product_go(c, &j, turned);
}
static ortc_status integer_run(const void *state, const void *pstate, ortc_call *c)
{
    return integer_go(c, 0);
}
static ortc_status gemm_run(const void *state, const void *pstate, ortc_call *c) { return integer_go(c, 1); }

static ortc_status qlinear_run(const void *state, const void *pstate, ortc_call *c)
{
    product_job j = {.a = &c->in[0],
                     .a_scale = &c->in[1],
                     .a_zero = &c->in[2],
                     .b = &c->in[3],
                     .b_scale = &c->in[4],
                     .b_zero = &c->in[5],
                     .y = &c->out[0]};
    if (ortc_view_count(&c->in[6]) != 1 || ortc_view_count(&c->in[7]) != 1)
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "y_scale and y_zero_point must have one element");
    if (ortc_view_count(j.a_scale) != ortc_view_count(j.a_zero) ||
        ortc_view_count(j.b_scale) != ortc_view_count(j.b_zero))
        return ortc_call_fail(c, ORTC_SHAPE_MISMATCH, "a scale and its zero point differ in shape");
    j.y_scale = number(&c->in[6], 0, 1);
    j.y_zero = number(&c->in[7], 0, 0);
    return product_go(c, &j, 0);
}

const ortc_kernel ortc_ref_matmul_integer = {.size = ORTC_SIZED(ortc_kernel),
                                             .name = "matmul_integer.ref",
                                             .run = integer_run};
const ortc_kernel ortc_ref_gemm_integer = {.size = ORTC_SIZED(ortc_kernel),
                                           .name = "gemm_integer.ref",
                                           .run = gemm_run};
const ortc_kernel ortc_ref_qlinear_matmul = {.size = ORTC_SIZED(ortc_kernel),
                                             .name = "qlinear_matmul.ref",
                                             .run = qlinear_run};
