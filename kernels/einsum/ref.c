/* kernels/einsum/ref.c: Einsum on ref: for each element of the result the sum, over all labels that it has
 * not, of the product of the operands' elements; floats in double, integers modulo 2^64.
 */
#include <stdlib.h>

#include "kernels/common/shape.h"
#include "kernels/einsum/equation.h"

/* Of a plan: labels as loops, those of the result first. */
typedef struct einsum_loops {
    int32_t n_out, n_all;
    uint32_t n_in;
    int64_t dims[ORTC_EINSUM_LABELS];
    int64_t strides[]; /* n_in x n_all, elements; 0 where an operand has not the label, or one of 1 */
} einsum_loops;

typedef struct einsum_job {
    const einsum_loops *loops;
    const ortc_view *in;
    ortc_view *y;
    int64_t sums; /* terms of an element's sum */
} einsum_job;

static ortc_status einsum_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *equation = ortc_node_string(n, "equation", "");
    char *copy = malloc(strlen(equation) + 1);
    if (!copy) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for the equation");
    *out = strcpy(copy, equation);
    return ORTC_OK;
}

static ortc_status einsum_plan(const void *state, ortc_plan *p, void **pstate)
{
    ortc_einsum_result r = {0};
    uint8_t labels[ORTC_EINSUM_LABELS];
    int32_t loop_of[ORTC_EINSUM_LABELS];
    const char *wrong = NULL;
    einsum_loops *l = calloc(1, sizeof *l + (size_t)p->n_in * ORTC_EINSUM_LABELS * sizeof *l->strides);
    if (!l) return ortc_plan_fail(p, ORTC_OUT_OF_MEMORY, "no memory for loops");
    for (uint32_t i = 0; i < p->n_in && !wrong; i++)
        wrong = ortc_einsum_operand(state, i, p->in[i].rank, labels, &r);
    if (!wrong) wrong = ortc_einsum_output(state, &r);
    if (wrong) { /* the shape function has said so before */
        free(l);
        return ortc_plan_fail(p, ORTC_INVALID_MODEL, "the equation %s", wrong);
    }
    for (int32_t k = 0; k < ORTC_EINSUM_LABELS; k++) loop_of[k] = -1;
    for (int32_t d = 0; d < r.rank; d++) loop_of[r.labels[d]] = d;
    l->n_in = p->n_in;
    l->n_out = l->n_all = r.rank;
    for (int32_t k = 0; k < ORTC_EINSUM_LABELS; k++)
        if (r.times[k] && loop_of[k] < 0) loop_of[k] = l->n_all++;
    for (int32_t k = 0; k < l->n_all; k++) l->dims[k] = 1;
    for (uint32_t i = 0; i < p->n_in; i++) {
        int64_t dense[ORTC_RANK_LIMIT];
        ortc_dense_strides(p->in[i].rank, p->in[i].dims, dense);
        ortc_einsum_operand(state, i, p->in[i].rank, labels, &r);
        for (int32_t d = 0; d < p->in[i].rank; d++) { /* a label twice in an operand walks its diagonal */
            const int32_t k = loop_of[labels[d]];
            if (p->in[i].dims[d] == 1) continue;
            l->dims[k] = p->in[i].dims[d];
            l->strides[(size_t)i * (size_t)l->n_all + (size_t)k] += dense[d];
        }
    }
    ortc_plan_workspace(p, 0, ((size_t)p->n_in + (size_t)l->n_all) * sizeof(int64_t));
    *pstate = l;
    return ORTC_OK;
}

/* The next combination of loops from .. n_all; `at`: where each operand is. */
static void step(const einsum_loops *l, int32_t from, int64_t *index, int64_t *at)
{
    for (int32_t k = l->n_all - 1; k >= from; k--) {
        const bool wraps = ++index[k] == l->dims[k];
        for (uint32_t i = 0; i < l->n_in; i++)
            at[i] += (wraps ? 1 - l->dims[k] : 1) * l->strides[(size_t)i * (size_t)l->n_all + (size_t)k];
        if (!wraps) return;
        index[k] = 0;
    }
}

static void einsum_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const einsum_job *j = arg;
    const einsum_loops *l = j->loops;
    const ortc_dtype t = j->y->dtype;
    int64_t *index = scratch, *at = index + l->n_all;
    for (int64_t e = begin; e < end; e++) {
        int64_t rest = e;
        double sum = 0;
        uint64_t whole = 0;
        memset(index, 0, ((size_t)l->n_all + l->n_in) * sizeof *index);
        for (int32_t k = l->n_out - 1; k >= 0; k--) {
            for (uint32_t i = 0; i < l->n_in; i++)
                at[i] += rest % l->dims[k] * l->strides[(size_t)i * (size_t)l->n_all + (size_t)k];
            rest /= l->dims[k];
        }
        for (int64_t s = 0; s < j->sums; s++, step(l, l->n_out, index, at)) {
            double product = 1;
            uint64_t whole_product = 1;
            for (uint32_t i = 0; i < l->n_in; i++)
                if (ortc_class_of(t) == ORTC_CLASS_FLOAT)
                    product *= ortc_load_f64(j->in[i].data, t, at[i]);
                else
                    whole_product *= (uint64_t)ortc_load_i64(j->in[i].data, t, at[i]);
            sum += product;
            whole += whole_product;
        }
        if (ortc_class_of(t) == ORTC_CLASS_FLOAT)
            ortc_store_f64(j->y->data, t, e, sum);
        else
            ortc_store_u64(j->y->data, t, e, whole);
    }
}

static ortc_status einsum_run(const void *state, const void *pstate, ortc_call *c)
{
    einsum_job j = {pstate, c->in, &c->out[0], 1};
    const int64_t count = ortc_view_count(j.y);
    if (count == 0) return ORTC_OK;
    for (int32_t k = j.loops->n_out; k < j.loops->n_all; k++) {
        if (j.loops->dims[k] == 0) {
            j.sums = 0;
            break;
        }
        if (__builtin_mul_overflow(j.sums, j.loops->dims[k], &j.sums))
            return ortc_call_fail(c, ORTC_LIMIT, "the sums have too many terms");
    }
    return ortc_parallel(c, count, ortc_grain(8.0 * (double)c->n_in * ((double)j.sums + 4)), einsum_chunk,
                         &j);
}

static const ortc_kernel einsum_ref = {.size = ORTC_SIZED(ortc_kernel),
                                       .name = "einsum.ref",
                                       .prepare = einsum_prepare,
                                       .plan = einsum_plan,
                                       .run = einsum_run};

ORTC_KERNELS(ref, einsum, ORTC_KERNEL("Einsum", 28, ORTC_NEWEST, (ORTC_TYPES_NUM), &einsum_ref));
