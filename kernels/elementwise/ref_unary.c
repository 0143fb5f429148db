/* kernels/elementwise/ref_unary.c: functions of one element on ref: in double, some also on integers. */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/shape.h"
#include "kernels/elementwise/elementwise.h"

typedef struct unary {
    const char *op;
    double (*f)(double);
    uint64_t (*i)(int64_t); /* signed integers; NULL: not defined on integers */
    uint64_t (*u)(uint64_t);
} unary;

static double neg_f(double x) { return -x; }
static uint64_t neg_i(int64_t x) { return 0 - (uint64_t)x; }
static uint64_t abs_i(int64_t x) { return x < 0 ? 0 - (uint64_t)x : (uint64_t)x; }
static uint64_t abs_u(uint64_t x) { return x; }
static double sign_f(double x) { return x > 0 ? 1 : x < 0 ? -1 : x; }
static uint64_t sign_i(int64_t x) { return x > 0 ? 1 : x < 0 ? UINT64_MAX : 0; }
static uint64_t sign_u(uint64_t x) { return x != 0; }
static uint64_t not_u(uint64_t x) { return x == 0; }
static double reciprocal(double x) { return 1 / x; }

static const unary unaries[] = {
    {"Neg", neg_f, neg_i},
    {"Abs", fabs, abs_i, abs_u},
    {"Sign", sign_f, sign_i, sign_u},
    {"Not", NULL, NULL, not_u},
    {"Sqrt", sqrt},
    {"Exp", exp},
    {"Log", log},
    {"Reciprocal", reciprocal},
    {"Floor", floor},
    {"Ceil", ceil},
    {"Round", nearbyint},
    {"Sin", sin},
    {"Cos", cos},
    {"Tan", tan},
    {"Asin", asin},
    {"Acos", acos},
    {"Atan", atan},
    {"Sinh", sinh},
    {"Cosh", cosh},
    {"Asinh", asinh},
    {"Acosh", acosh},
    {"Atanh", atanh},
};

typedef struct unary_job {
    const unary *op;
    const void *x;
    void *y;
    ortc_dtype t;
} unary_job;

static ortc_status unary_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const unary **state = malloc(sizeof *state);
    size_t i = 0;
    if (!state) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for the operator's state");
    while (strcmp(unaries[i].op, ortc_node_op(n)) != 0)
        if (++i == sizeof unaries / sizeof *unaries) {
            free(state);
            return ortc_prep_fail(prep, ORTC_INTERNAL, "no operator '%s' here", ortc_node_op(n));
        }
    *state = &unaries[i];
    *out = state;
    return ORTC_OK;
}

static ortc_status unary_plan(const void *state, ortc_plan *p, void **pstate)
{
    ortc_plan_in_place(p, 0, 0);
    return ORTC_OK;
}

static void unary_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const unary_job *j = arg;
    const ortc_dtype t = j->t;
    switch (ortc_class_of(t)) {
    case ORTC_CLASS_FLOAT:
        for (int64_t i = begin; i < end; i++) ortc_store_f64(j->y, t, i, j->op->f(ortc_load_f64(j->x, t, i)));
        break;
    case ORTC_CLASS_INT:
        for (int64_t i = begin; i < end; i++) ortc_store_u64(j->y, t, i, j->op->i(ortc_load_i64(j->x, t, i)));
        break;
    default:
        for (int64_t i = begin; i < end; i++) ortc_store_u64(j->y, t, i, j->op->u(ortc_load_u64(j->x, t, i)));
    }
}

static ortc_status unary_run(const void *state, const void *pstate, ortc_call *c)
{
    const unary *const *op = state;
    unary_job j = {*op, c->in[0].data, c->out[0].data, c->in[0].dtype};
    return ortc_parallel(c, ortc_view_count(&c->out[0]), ortc_grain(20), unary_chunk, &j);
}

const ortc_kernel ortc_ref_unary = {.size = ORTC_SIZED(ortc_kernel),
                                    .name = "unary.ref",
                                    .prepare = unary_prepare,
                                    .plan = unary_plan,
                                    .run = unary_run};
