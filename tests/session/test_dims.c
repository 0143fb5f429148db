/* tests/session/test_dims.c: equal expressions have equal ids, and evaluation agrees with arithmetic. */
#include <criterion/criterion.h>

#include "graph/ir/dims.h"

static ortc_dims t;
static bool misfit;
static ortc_dim do_(int32_t what, ortc_dim a, ortc_dim b) { return ortc_dims_combine(&t, what, a, b, &misfit); }
static ortc_dim add(ortc_dim a, ortc_dim b) { return do_(ORTC_DIM_ADD, a, b); }
static ortc_dim sub(ortc_dim a, ortc_dim b) { return do_(ORTC_DIM_SUB, a, b); }
static ortc_dim mul(ortc_dim a, ortc_dim b) { return do_(ORTC_DIM_MUL, a, b); }
static ortc_dim quo(ortc_dim a, ortc_dim b) { return do_(ORTC_DIM_DIV, a, b); }

Test(dims, equal_expressions_are_equal)
{
    ortc_dim b = ortc_dims_symbol(&t, "batch"), s = ortc_dims_symbol(&t, "seq");
    cr_expect_eq(ortc_dims_symbol(&t, "batch"), b);
    cr_expect_neq(b, s);
    cr_expect_eq(add(b, s), add(s, b));
    cr_expect_eq(sub(add(s, 1), 1), s);
    cr_expect_eq(sub(add(b, s), b), s);
    cr_expect_eq(add(s, s), mul(s, 2));
    cr_expect_eq(mul(mul(b, s), 768), mul(b, mul(768, s)));
    cr_expect_eq(quo(mul(mul(b, s), 768), mul(mul(b, s), 12)), 64);
    cr_expect_eq(quo(mul(mul(b, s), 768), mul(b, 12)), mul(s, 64));
    cr_expect_eq(quo(add(mul(s, 4), 8), 4), add(s, 2));
    cr_expect_eq(sub(s, s), 0);
    cr_expect_eq(mul(s, 0), 0);
    cr_expect_eq(do_(ORTC_DIM_MAX, b, s), do_(ORTC_DIM_MAX, s, b));
    cr_expect_eq(do_(ORTC_DIM_MAX, s, 0), s, "symbols are extents");
    cr_expect_eq(do_(ORTC_DIM_MAX, -3, add(mul(s, 2), b)), add(mul(s, 2), b));
    cr_expect_neq(do_(ORTC_DIM_MAX, sub(s, 1), 0), sub(s, 1));
    cr_expect_neq(do_(ORTC_DIM_MAX, s, 1), s);
    ortc_dims_deinit(&t);
}

Test(dims, broadcasting_follows_numpy)
{
    ortc_dim s = ortc_dims_symbol(&t, "seq");
    cr_expect_eq(do_(ORTC_DIM_BROADCAST, s, 1), s);
    cr_expect_eq(do_(ORTC_DIM_BROADCAST, s, 7), 7);
    cr_expect_eq(do_(ORTC_DIM_BROADCAST, 0, 1), 0);
    cr_expect_eq(do_(ORTC_DIM_BROADCAST, s, s), s);
    const ortc_dim clamped = do_(ORTC_DIM_MIN, s, 64);
    cr_expect_eq(do_(ORTC_DIM_BROADCAST, s, clamped), s);
    cr_expect_eq(do_(ORTC_DIM_BROADCAST, clamped, s), s);
    cr_expect_neq(do_(ORTC_DIM_BROADCAST, do_(ORTC_DIM_MIN, s, 0), s), s, "0 and 1 make 0");
    cr_expect_not(misfit);
    cr_expect_eq(do_(ORTC_DIM_BROADCAST, 3, 2), ORTC_DIM_UNKNOWN);
    cr_expect(misfit);
    ortc_dims_deinit(&t);
}

Test(dims, overflow_and_division_by_zero_are_unknown)
{
    cr_expect_eq(mul(INT64_C(1) << 40, INT64_C(1) << 40), ORTC_DIM_UNKNOWN);
    cr_expect_eq(quo(1, 0), ORTC_DIM_UNKNOWN);
    cr_expect_eq(quo(-7, 2), -4);
    cr_expect_eq(do_(ORTC_DIM_CEIL_DIV, 7, 2), 4);
    cr_expect_eq(do_(ORTC_DIM_CEIL_DIV, -7, 2), -3);
    ortc_dims_deinit(&t);
}

/* Random expressions: simplification never changes a value. */
Test(dims, evaluation_agrees_with_arithmetic)
{
    unsigned seed = 7;
    ortc_dim pool[200];
    int64_t value[200], symbols[3] = {3, 5, 8};
    for (int i = 0; i < 3; i++) {
        char *names[] = {"a", "b", "c"};
        pool[i] = ortc_dims_symbol(&t, names[i]);
        value[i] = symbols[i];
    }
    for (int i = 3; i < 6; i++)
        pool[i] = value[i] = i - 2;
    for (int i = 6; i < 200; i++) {
        static const int32_t kinds[] = {ORTC_DIM_ADD, ORTC_DIM_SUB, ORTC_DIM_MUL, ORTC_DIM_DIV, ORTC_DIM_CEIL_DIV, ORTC_DIM_MAX,
                                        ORTC_DIM_MIN};
        int x = rand_r(&seed) % i, y = rand_r(&seed) % i;
        int32_t what = kinds[rand_r(&seed) % 7];
        bool skip;
        ortc_dims none = {0};
        ortc_dim plain = ortc_dims_combine(&none, what, value[x], value[y], &skip);
        bool small = plain != ORTC_DIM_UNKNOWN && plain < 100000 && plain > -100000;
        /* Cancelling a quotient assumes symbols that are not zero, and exact ones only; zero divisors stay out. */
        if (!small || ((what == ORTC_DIM_DIV || what == ORTC_DIM_CEIL_DIV) && value[y] <= 0)) {
            pool[i] = pool[i - 1];
            value[i] = value[i - 1];
            continue;
        }
        pool[i] = do_(what, pool[x], pool[y]);
        value[i] = plain;
        cr_expect_eq(ortc_dims_evaluate(&t, pool[i], symbols), plain, "expression %d", i);
    }
    ortc_dims_deinit(&t);
}
