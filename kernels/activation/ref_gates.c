/* kernels/activation/ref_gates.c: activations that are not a function of one number of a float type: Shrink,
 * also on integers, and SwiGLU, of two tensors.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/shape.h"

extern const ortc_kernel ortc_ref_shrink, ortc_ref_swiglu;

typedef struct gate_job {
    const double *p; /* attributes */
    const ortc_view *a, *b;
    ortc_view *y;
} gate_job;

static ortc_status prepare_two(ortc_prep *prep, double first, double second, void **out)
{
    double *p = malloc(2 * sizeof *p);
    if (!p) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    p[0] = first;
    p[1] = second;
    *out = p;
    return ORTC_OK;
}

static ortc_status gate_plan(const void *state, ortc_plan *p, void **pstate)
{
    for (uint32_t i = 0; i < p->n_in; i++) ortc_plan_in_place(p, 0, i);
    return ORTC_OK;
}

/* ---- Shrink: numbers around zero become zero, others come nearer to it by the bias --------------------- */

static void shrink_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const gate_job *j = arg;
    const ortc_dtype t = j->y->dtype;
    const double bias = j->p[0], bound = j->p[1];
    const bool exact = ortc_class_of(t) != ORTC_CLASS_FLOAT &&
                       bias == (double)(int64_t)ortc_int_of_double(bias);
    for (int64_t i = begin; i < end; i++) {
        const double x = ortc_load_f64(j->a->data, t, i);
        const double by = x < -bound ? bias : -bias;
        if (x >= -bound && x <= bound)
            ortc_store_f64(j->y->data, t, i, 0);
        else if (exact) /* integers beyond what a double holds */
            ortc_store_u64(j->y->data, t, i,
                           (uint64_t)ortc_load_i64(j->a->data, t, i) + (uint64_t)ortc_int_of_double(by));
        else
            ortc_store_f64(j->y->data, t, i, x + by);
    }
}

static ortc_status shrink_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    return prepare_two(prep, (double)ortc_node_float(n, "bias", 0), (double)ortc_node_float(n, "lambd", 0.5F),
                       out);
}

static ortc_status shrink_run(const void *state, const void *pstate, ortc_call *c)
{
    gate_job j = {state, &c->in[0], NULL, &c->out[0]};
    return ortc_parallel(c, ortc_view_count(j.y), ortc_grain(8), shrink_chunk, &j);
}

/* ---- SwiGLU: Swish of the first, times the second ------------------------------------------------------ */

static void swiglu_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const gate_job *j = arg;
    const ortc_dtype t = j->y->dtype;
    for (int64_t i = begin; i < end; i++) {
        const double a = ortc_load_f64(j->a->data, t, i);
        ortc_store_f64(j->y->data, t, i, a / (1 + exp(-j->p[0] * a)) * ortc_load_f64(j->b->data, t, i));
    }
}

static ortc_status swiglu_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    return prepare_two(prep, (double)ortc_node_float(n, "alpha", 1), 0, out);
}

static ortc_status swiglu_run(const void *state, const void *pstate, ortc_call *c)
{
    gate_job j = {state, &c->in[0], &c->in[1], &c->out[0]};
    return ortc_parallel(c, ortc_view_count(j.y), ortc_grain(25), swiglu_chunk, &j);
}

const ortc_kernel ortc_ref_shrink = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "shrink.ref",
                                     .prepare = shrink_prepare,
                                     .plan = gate_plan,
                                     .run = shrink_run};
const ortc_kernel ortc_ref_swiglu = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "swiglu.ref",
                                     .prepare = swiglu_prepare,
                                     .plan = gate_plan,
                                     .run = swiglu_run};
