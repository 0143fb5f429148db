/* kernels/elementwise/ref_binary.c: operators of two inputs on ref, one function per operator and class of
 * types.
 *
 * Integers wrap, divide towards zero, and give 0 where they are divided by 0. Comparisons and logic give 0 or
 * 1.
 */
#include <math.h>
#include <stdlib.h>

#include "kernels/common/shape.h"
#include "kernels/elementwise/elementwise.h"

typedef struct binary {
    const char *op;
    double (*f)(double, double);
    int64_t (*i)(int64_t, int64_t);
    uint64_t (*u)(uint64_t, uint64_t);
} binary;

/* X(name, expression on double and uint64_t, expression on int64_t) */
/* clang-format off */
#define OPERATIONS(X) \
    X(add, a + b, (int64_t)((uint64_t)a + (uint64_t)b)) \
    X(sub, a - b, (int64_t)((uint64_t)a - (uint64_t)b)) \
    X(mul, a *b, (int64_t)((uint64_t)a * (uint64_t)b)) \
    X(equal, a == b, a == b) \
    X(greater, a > b, a > b) \
    X(less, a < b, a < b) \
    X(greater_equal, a >= b, a >= b) \
    X(less_equal, a <= b, a <= b) \
    X(and_, a != 0 && b != 0, a != 0 && b != 0) \
    X(or_, a != 0 || b != 0, a != 0 || b != 0) \
    X(xor_, (a != 0) != (b != 0), (a != 0) != (b != 0))
#define FUNCTIONS(name, plain, on_int) \
    static double name##_f(double a, double b) { return plain; } \
    static int64_t name##_i(int64_t a, int64_t b) { return on_int; } \
    static uint64_t name##_u(uint64_t a, uint64_t b) { return plain; }
/* clang-format on */
OPERATIONS(FUNCTIONS)

static double div_f(double a, double b) { return a / b; }
static int64_t div_i(int64_t a, int64_t b)
{
    return b == 0 ? 0 : b == -1 ? (int64_t)(0 - (uint64_t)a) : a / b; /* the lowest number has no opposite */
}
static uint64_t div_u(uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; }

#define ROW(op, name) \
    { \
        op, name##_f, name##_i, name##_u \
    }
static const binary binaries[] = {
    ROW("Add", add),
    ROW("Sub", sub),
    ROW("Mul", mul),
    ROW("Div", div),
    ROW("Equal", equal),
    ROW("Greater", greater),
    ROW("Less", less),
    ROW("GreaterOrEqual", greater_equal),
    ROW("LessOrEqual", less_equal),
    ROW("And", and_),
    ROW("Or", or_),
    ROW("Xor", xor_),
};

typedef struct binary_job {
    const binary *op;
    const ortc_view *a, *b;
    ortc_view *y;
    ortc_walk walk;
} binary_job;

static ortc_status binary_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const binary **state = malloc(sizeof *state);
    size_t i = 0;
    if (!state) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for the operator's state");
    while (strcmp(binaries[i].op, ortc_node_op(n)) != 0)
        if (++i == sizeof binaries / sizeof *binaries) {
            free(state);
            return ortc_prep_fail(prep, ORTC_INTERNAL, "no operator '%s' here", ortc_node_op(n));
        }
    *state = &binaries[i];
    *out = state;
    return ORTC_OK;
}

static ortc_status binary_plan(const void *state, ortc_plan *p, void **pstate)
{
    ortc_plan_in_place(p, 0, 0);
    ortc_plan_in_place(p, 0, 1);
    return ORTC_OK;
}

#define LOOP(load, store, fn) \
    for (int64_t i = begin; i < end; i++, ortc_walk_next(&w)) \
        store(j->y->data, j->y->dtype, i, fn(load(j->a->data, t, w.at[0]), load(j->b->data, t, w.at[1])));

static void binary_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const binary_job *j = arg;
    const ortc_dtype t = j->a->dtype;
    ortc_walk w = j->walk;
    ortc_walk_seek(&w, begin);
    switch (ortc_class_of(t)) {
    case ORTC_CLASS_FLOAT: LOOP(ortc_load_f64, ortc_store_f64, j->op->f) break;
    case ORTC_CLASS_INT: LOOP(ortc_load_i64, ortc_store_i64, j->op->i) break;
    case ORTC_CLASS_UINT: LOOP(ortc_load_u64, ortc_store_u64, j->op->u) break;
    case ORTC_CLASS_NONE: /* Equal on strings */
        for (int64_t i = begin; i < end; i++, ortc_walk_next(&w)) {
            int64_t na, nb;
            const char *a = ortc_string_at(j->a->data, w.at[0], &na),
                       *b = ortc_string_at(j->b->data, w.at[1], &nb);
            ((uint8_t *)j->y->data)[i] = na == nb && !memcmp(a, b, (size_t)na);
        }
    }
}

static ortc_status walk_and_run(ortc_call *c, binary_job *j, ortc_parallel_fn chunk)
{
    const int64_t count = ortc_view_count(j->y);
    if (count == 0) return ORTC_OK;
    ortc_walk_init(&j->walk, j->y->rank, j->y->dims);
    ortc_walk_view(&j->walk, j->a);
    ortc_walk_view(&j->walk, j->b);
    ortc_walk_merge(&j->walk);
    return ortc_parallel(c, count, ortc_grain(10), chunk, j);
}

static ortc_status binary_run(const void *state, const void *pstate, ortc_call *c)
{
    const binary *const *op = state;
    binary_job j = {*op, &c->in[0], &c->in[1], &c->out[0]};
    return walk_and_run(c, &j, binary_chunk);
}

/* ---- Pow: two types, and the first is the result's ----------------------------------------------------- */

/* Modulo 2^64. A negative exponent gives 1 / x towards zero. */
static uint64_t integer_power(int64_t base, uint64_t exponent, bool negative)
{
    uint64_t result = 1, square = (uint64_t)base;
    if (negative) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? UINT64_MAX : 1) : 0;
    for (; exponent; exponent >>= 1, square *= square) result *= exponent & 1 ? square : 1;
    return result;
}

static void pow_chunk(void *arg, int64_t begin, int64_t end, void *scratch)
{
    const binary_job *j = arg;
    const ortc_dtype t = j->a->dtype, e = j->b->dtype;
    const bool whole = ortc_class_of(t) == ORTC_CLASS_INT && ortc_class_of(e) != ORTC_CLASS_FLOAT;
    ortc_walk w = j->walk;
    ortc_walk_seek(&w, begin);
    for (int64_t i = begin; i < end; i++, ortc_walk_next(&w)) {
        if (whole) {
            const uint64_t bits = (uint64_t)ortc_load_i64(j->b->data, e, w.at[1]);
            const bool negative = ortc_class_of(e) == ORTC_CLASS_INT && (int64_t)bits < 0;
            ortc_store_u64(j->y->data, t, i,
                           integer_power(ortc_load_i64(j->a->data, t, w.at[0]), bits, negative));
        } else {
            ortc_store_f64(j->y->data, t, i,
                           pow(ortc_load_f64(j->a->data, t, w.at[0]), ortc_load_f64(j->b->data, e, w.at[1])));
        }
    }
}

static ortc_status pow_run(const void *state, const void *pstate, ortc_call *c)
{
    binary_job j = {NULL, &c->in[0], &c->in[1], &c->out[0]};
    return walk_and_run(c, &j, pow_chunk);
}

const ortc_kernel ortc_ref_binary = {.size = ORTC_SIZED(ortc_kernel),
                                     .name = "binary.ref",
                                     .prepare = binary_prepare,
                                     .plan = binary_plan,
                                     .run = binary_run};
const ortc_kernel ortc_ref_pow = {.size = ORTC_SIZED(ortc_kernel),
                                  .name = "pow.ref",
                                  .plan = binary_plan,
                                  .run = pow_run};
