/* tests/session/test_state_in_place.c: tied state that a kernel writes in place. */
#include "tests/session/tied_models.h"

TestSuite(state_in_place, .init = setup, .fini = teardown);

/* ---- In place ------------------------------------------------------------------------------------------ */

Test(state_in_place, a_cache_is_written_in_place_and_its_length_is_committed_last)
{
    const ortc_tie tie = {"cache", "present", 1, 0, 0};
    cached(false, false, &tie, 1);
    cr_assert_not_null(session, "%s", e.text);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float x[2 * 4 * 2], z[4], cache[2][24] = {{0}}, expected[4];
    const void *address = NULL;
    for (int i = 0; i < 6; i++) {
        int64_t at = ortc_state_length(st);
        cr_assert_eq(at, i);
        fill(x, ORTC_LENGTH(x), 30);
        trip = i == 3;
        if (trip) {
            cr_expect_eq(put_step(st, 1, at, x, z, 1), ORTC_CANCELLED); /* written, but not counted */
            cr_expect_eq(ortc_state_length(st), i);
        }
        fill(x, ORTC_LENGTH(x), i);
        cr_assert_eq(put_step(st, 1, at, x, z, 1), ORTC_OK, "%s", e.text);
        cr_expect_eq(put_wrote[(n_puts - 1) % 2], put_read[(n_puts - 1) % 2], "step %d: in place", i);
        cr_expect(!address || address == put_wrote[(n_puts - 1) % 2], "at a fixed address");
        address = put_wrote[(n_puts - 1) % 2];
        cr_assert_eq(run(NULL,
                         (bound[]){{"x", ORTC_F32, 3, {2, 1, 2}, x},
                                   {"at", ORTC_I64, 1, {1}, &at},
                                   {"cache", ORTC_F32, 3, {2, 6, 2}, cache[i % 2]},
                                   {0}},
                         (bound[]){F32_2("z", 2, 2, expected),
                                   {"present", ORTC_F32, 3, {2, 6, 2}, cache[!(i % 2)]},
                                   {0}},
                         0),
                     ORTC_OK, "%s", e.text);
        cr_expect_arr_eq(z, expected, sizeof z, "step %d", i);
    }
    cr_expect_eq(atomic_load(&session->unit.plans.made), 2);
    cr_expect_null(st->ties[0].memory[1], "no second buffer");
    cr_expect_eq(put_step(st, 1, 5, x, z, 1), ORTC_LIMIT);
    cr_expect(strstr(e.text, "the state of 'cache' has 6 positions; 1 more are over its capacity of 6"), "%s",
              e.text);
    cr_assert_eq(ortc_state_truncate(st, 2, &e), ORTC_OK, "%s", e.text);
    cr_expect_eq(ortc_state_length(st), 2);
    cr_expect_eq(put_step(st, 4, 2, x, z, 4), ORTC_OK, "%s", e.text);
    cr_expect_eq(ortc_state_length(st), 6);
    ortc_state_release(st);
}

Test(state_in_place, a_cache_that_need_not_grow_is_written_in_place_too)
{
    const ortc_tie tie = {"cache", "present", 1, 0, 6};
    put_op = "PutLonger";
    cached(true, false, &tie, 1);
    cr_assert_not_null(session, "%s", e.text);
    cr_assert(session->unit.ties[0].grows, "nothing at load says that the extents are the same");
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float x[4] = {1, 2, 3, 4}, z[4], cache[24] = {0};
    int64_t at = 0;
    cr_assert_eq(run(st,
                     (bound[]){{"x", ORTC_F32, 3, {2, 1, 2}, x},
                               {"at", ORTC_I64, 1, {1}, &at},
                               {"cache", ORTC_F32, 3, {2, 6, 2}, cache},
                               {0}},
                     (bound[]){F32_2("z", 2, 2, z), {0}}, 0),
                 ORTC_OK, "%s", e.text);
    cr_expect_eq(cache[0], 0, "the caller's is not written over");
    for (int i = 1; i < 6; i++) {
        cr_assert_eq(put_step(st, 1, i, x, z, 0), ORTC_OK, "%s", e.text);
        cr_expect_eq(put_wrote[(n_puts - 1) % 2], put_read[(n_puts - 1) % 2], "step %d: in place", i);
        cr_expect_eq(z[3], (float)(4 * (i + 1)), "step %d: %g", i, (double)z[3]);
    }
    cr_expect_eq(ortc_state_length(st), 6);
    ortc_state_release(st);
}

Test(state_in_place, who_reads_the_old_value_gets_it)
{
    const ortc_tie tie = {"cache", "present", 1, 0, 6};
    cached(true, true, &tie, 1);
    cr_assert_not_null(session, "%s", e.text);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float x[4] = {1, 2, 3, 4}, z[4];
    for (int i = 0; i < 3; i++) {
        cr_assert_eq(put_step(st, 1, i, x, z, 1), ORTC_OK, "%s", e.text);
        cr_expect_neq(put_wrote[(n_puts - 1) % 2], put_read[(n_puts - 1) % 2]);
        /* i + 1 in the new one, i in the old one */
        cr_expect_eq(z[3], (float)(4 * (2 * i + 1)), "step %d: %g", i, (double)z[3]);
    }
    ortc_state_release(st);
}

Test(state_in_place, a_caller_s_cache_is_never_written_over)
{
    const ortc_tie tie = {"cache", "present", 1, 0, 0};
    cached(false, false, &tie, 1);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float x[4] = {1, 2, 3, 4}, z[4], cache[24] = {0};
    int64_t at = 2;
    cr_assert_eq(run(st,
                     (bound[]){{"x", ORTC_F32, 3, {2, 1, 2}, x},
                               {"at", ORTC_I64, 1, {1}, &at},
                               {"cache", ORTC_F32, 3, {2, 6, 2}, cache},
                               {0}},
                     (bound[]){F32_2("z", 2, 2, z), {0}}, 3),
                 ORTC_OK, "%s", e.text);
    for (int i = 0; i < 24; i++) cr_expect_eq(cache[i], 0);
    cr_expect_eq(z[3], 4);
    cr_expect_eq(put_step(st, 1, 3, x, z, 1), ORTC_OK);
    cr_expect_eq(z[3], 8);
    ortc_state_release(st);
}
