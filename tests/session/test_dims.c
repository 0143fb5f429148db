/* tests/session/test_dims.c: equal expressions have equal ids, and evaluation agrees with arithmetic. */
#include <criterion/criterion.h>
#include <stdio.h>

#include "graph/ir/dims.h"

static ortc_dims t;
static ortc_arena names;
static ortc_status status; /* of the last combination */
static ortc_dim do_(int32_t what, ortc_dim a, ortc_dim b)
{
    ortc_dim r;
    status = ortc_dims_combine(&t, what, a, b, &r);
    return r;
}
static ortc_dim symbol(const char *name)
{
    ortc_dim d;
    cr_assert_eq(ortc_dims_symbol(&t, &names, name, &d), ORTC_OK);
    return d;
}
static void end(void)
{
    ortc_dims_deinit(&t);
    ortc_arena_deinit(&names);
}
TestSuite(dims, .fini = end);
static ortc_dim add(ortc_dim a, ortc_dim b) { return do_(ORTC_DIM_ADD, a, b); }
static ortc_dim sub(ortc_dim a, ortc_dim b) { return do_(ORTC_DIM_SUB, a, b); }
static ortc_dim mul(ortc_dim a, ortc_dim b) { return do_(ORTC_DIM_MUL, a, b); }
static ortc_dim quo(ortc_dim a, ortc_dim b) { return do_(ORTC_DIM_DIV, a, b); }

Test(dims, equal_expressions_are_equal)
{
    ortc_dim b = symbol("batch"), s = symbol("seq");
    cr_expect_eq(symbol("batch"), b);
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
}

Test(dims, broadcasting_follows_numpy)
{
    ortc_dim s = symbol("seq");
    cr_expect_eq(do_(ORTC_DIM_BROADCAST, s, 1), s);
    cr_expect_eq(do_(ORTC_DIM_BROADCAST, s, 7), 7);
    cr_expect_eq(do_(ORTC_DIM_BROADCAST, 0, 1), 0);
    cr_expect_eq(do_(ORTC_DIM_BROADCAST, s, s), s);
    const ortc_dim clamped = do_(ORTC_DIM_MIN, s, 64);
    cr_expect_eq(do_(ORTC_DIM_BROADCAST, s, clamped), s);
    cr_expect_eq(do_(ORTC_DIM_BROADCAST, clamped, s), s);
    cr_expect_neq(do_(ORTC_DIM_BROADCAST, do_(ORTC_DIM_MIN, s, 0), s), s, "0 and 1 make 0");
    cr_expect_eq(status, ORTC_OK);
    cr_expect_eq(do_(ORTC_DIM_BROADCAST, 3, 2), ORTC_DIM_UNKNOWN);
    cr_expect_eq(status, ORTC_SHAPE_MISMATCH);
}

Test(dims, what_is_cut_to_the_end_of_a_table)
{
    const ortc_dim s = symbol("seq"), past = symbol("past"), clamped = do_(ORTC_DIM_MIN, s, 64);
    cr_expect(ortc_dims_is_clamped(&t, clamped, s));
    cr_expect(ortc_dims_is_cut(&t, clamped, s));
    cr_expect_not(ortc_dims_is_clamped(&t, do_(ORTC_DIM_MIN, s, 1), s), "it may be 1 beside more");
    cr_expect_not(ortc_dims_is_cut(&t, do_(ORTC_DIM_MIN, add(s, 1), 64), s));
    cr_expect_not(ortc_dims_is_cut(&t, past, s));
    const ortc_dim end = do_(ORTC_DIM_MIN, add(past, s), 64), begin = do_(ORTC_DIM_MIN, past, 64),
                   rows = do_(ORTC_DIM_MAX, sub(end, begin), 0);
    cr_expect(ortc_dims_is_cut(&t, rows, s));
    cr_expect_not(ortc_dims_is_clamped(&t, rows, s), "it may be 1 beside more");
    cr_expect_not(ortc_dims_is_cut(&t, rows, past));
    cr_expect_not(ortc_dims_is_cut(&t, do_(ORTC_DIM_MAX, sub(begin, end), 0), s));
    const ortc_dim longer = do_(ORTC_DIM_MIN, add(past, s), 65);
    cr_expect_not(ortc_dims_is_cut(&t, do_(ORTC_DIM_MAX, sub(longer, begin), 0), s), "another table");
}

Test(dims, overflow_is_an_error_and_division_by_zero_unknown)
{
    cr_expect_eq(mul(INT64_C(1) << 40, INT64_C(1) << 40), ORTC_DIM_UNKNOWN);
    cr_expect_eq(status, ORTC_SHAPE_MISMATCH);
    cr_expect_eq(sub(ORTC_DIM_NUMBERS, 1), ORTC_DIM_UNKNOWN);
    cr_expect_eq(status, ORTC_SHAPE_MISMATCH);
    cr_expect_eq(quo(1, 0), ORTC_DIM_UNKNOWN);
    cr_expect_eq(status, ORTC_OK);
    cr_expect_eq(quo(-7, 2), -4);
    cr_expect_eq(do_(ORTC_DIM_CEIL_DIV, 7, 2), 4);
    cr_expect_eq(do_(ORTC_DIM_CEIL_DIV, -7, 2), -3);
}

/* Random expressions: simplification never changes a value. */
Test(dims, evaluation_agrees_with_arithmetic)
{
    unsigned seed = 7;
    ortc_dim pool[200];
    int64_t value[200], symbols[3] = {3, 5, 8};
    for (int i = 0; i < 3; i++) {
        char *letters[] = {"a", "b", "c"};
        pool[i] = symbol(letters[i]);
        value[i] = symbols[i];
    }
    for (int i = 3; i < 6; i++) pool[i] = value[i] = i - 2;
    for (int i = 6; i < 200; i++) {
        static const int32_t kinds[] = {ORTC_DIM_ADD,      ORTC_DIM_SUB, ORTC_DIM_MUL, ORTC_DIM_DIV,
                                        ORTC_DIM_CEIL_DIV, ORTC_DIM_MAX, ORTC_DIM_MIN};
        int x = rand_r(&seed) % i, y = rand_r(&seed) % i;
        int32_t what = kinds[rand_r(&seed) % 7];
        ortc_dims none = {0};
        ortc_dim plain;
        ortc_dims_combine(&none, what, value[x], value[y], &plain);
        bool small = plain != ORTC_DIM_UNKNOWN && plain < 100000 && plain > -100000;
        /* Cancelling a quotient assumes symbols that are not zero, and exact ones only; zero divisors stay
         * out. */
        if (!small || ((what == ORTC_DIM_DIV || what == ORTC_DIM_CEIL_DIV) && value[y] <= 0)) {
            pool[i] = pool[i - 1];
            value[i] = value[i - 1];
            continue;
        }
        pool[i] = do_(what, pool[x], pool[y]);
        value[i] = plain;
        ortc_dim *numbers = ortc_dims_evaluate(&t, symbols);
        cr_expect_eq(ortc_dims_number(numbers, pool[i]), plain, "expression %d", i);
        free(numbers);
    }
}

/* The table of a copy has room as that of the original has: a probe that finds nothing must end. */
Test(dims, a_copy_of_any_size_can_be_looked_up_and_grown)
{
    enum { N = 100000 };
    static ortc_dim made[N];
    char name[16];
    const ortc_dim s = symbol("s");
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "x%d", i / 2);
        made[i] = i % 2 ? add(s, made[i - 1]) : symbol(name);
        cr_assert_neq(made[i], ORTC_DIM_UNKNOWN);
        if (i & (i - 1) &&
            i != N - 1) /* copies around each power of two, where tables grow, and of the whole */
            continue;
        ortc_dims copy, was = t;
        cr_assert(ortc_dims_copy(&t, &copy));
        t = copy;
        for (int k = i > 20 ? i - 20 : 0; k <= i; k++) {
            snprintf(name, sizeof name, "x%d", k / 2);
            cr_assert_eq(k % 2 ? add(s, made[k - 1]) : symbol(name), made[k], "expression %d of %d", k, i);
        }
        cr_assert_neq(symbol("new"), ORTC_DIM_UNKNOWN);
        cr_assert_neq(add(symbol("new"), 1), ORTC_DIM_UNKNOWN);
        ortc_dims_deinit(&t);
        t = was;
    }
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "x%d", i / 2);
        cr_assert_eq(i % 2 ? add(s, made[i - 1]) : symbol(name), made[i]);
    }
}

Test(dims, a_full_table_is_a_limit, .timeout = 60)
{
    ortc_dim d;
    ortc_status s = ORTC_OK;
    ortc_error e = ORTC_ERROR_INIT;
    int64_t n = 0;
    while ((s = ortc_dims_fresh(&t, &d)) == ORTC_OK) n++;
    cr_expect_eq(s, ORTC_LIMIT);
    cr_expect_eq(d, ORTC_DIM_UNKNOWN);
    cr_expect_eq(n, 1 << 20);
    cr_expect_eq(ortc_dims_failed(&e, s), ORTC_LIMIT);
    cr_expect(strstr(e.text, "1048576"), "%s", e.text);
    cr_expect_eq(ortc_dims_failed(&e, ORTC_OUT_OF_MEMORY), ORTC_OUT_OF_MEMORY);
}
