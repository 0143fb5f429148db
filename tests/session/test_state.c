/* tests/session/test_state.c: tied state: the same results as carrying outputs to inputs by hand, unharmed by
 * runs that fail.
 */
#include "tests/session/tied_models.h"

TestSuite(state, .init = setup, .fini = teardown);

/* ---- Carrying ------------------------------------------------------------------------------------------ */

Test(state, a_recurrent_state_equals_carrying_it_by_hand_with_one_plan)
{
    recurrent(&whole, 1);
    cr_assert_not_null(session, "%s", e.text);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK, "%s", e.text);
    float h[2][8] = {{0}}, x[8], expected[8], y[8];
    for (int i = 0; i < 6; i++) {
        fill(x, 8, i);
        cr_assert_eq(run(NULL, (bound[]){F32_2("x", 2, 4, x), F32_2("h", 2, 4, h[i % 2]), {0}},
                         (bound[]){F32_2("y", 2, 4, expected), F32_2("next", 2, 4, h[!(i % 2)]), {0}}, 0),
                     ORTC_OK, "%s", e.text);
        cr_assert_eq(step(st, x, y), ORTC_OK, "%s", e.text);
        cr_expect_arr_eq(y, expected, sizeof y, "step %d", i);
    }
    cr_expect_eq(atomic_load(&session->unit.plans.made), 1, "the one that serves runs without a state too");
    cr_expect_eq(ortc_state_length(st), 0);
    cr_expect_eq(ortc_state_truncate(st, 0, &e), ORTC_OK, "%s", e.text);
    fill(x, 8, 0);
    cr_assert_eq(step(st, x, y), ORTC_OK);
    memset(h, 0, sizeof h);
    run(NULL, (bound[]){F32_2("x", 2, 4, x), F32_2("h", 2, 4, h[0]), {0}},
        (bound[]){F32_2("y", 2, 4, expected), {0}}, 0);
    cr_expect_arr_eq(y, expected, sizeof y, "started over");
    ortc_state_release(st);
}

Test(state, a_cancelled_run_leaves_it_as_it_was)
{
    recurrent(&whole, 1);
    ortc_state *cancelled, *other;
    cr_assert_eq(ortc_state_create(session, &cancelled, &e) | ortc_state_create(session, &other, &e),
                 ORTC_OK);
    float x[8], y[8], expected[8];
    for (int i = 0; i < 4; i++) {
        fill(x, 8, 50 + i);
        trip = 1;
        cr_expect_eq(step(cancelled, x, y), ORTC_CANCELLED);
        fill(x, 8, i);
        cr_assert_eq(step(cancelled, x, y), ORTC_OK, "%s", e.text);
        cr_assert_eq(step(other, x, expected), ORTC_OK, "%s", e.text);
        cr_expect_arr_eq(y, expected, sizeof y, "step %d", i);
    }
    ortc_state_release(cancelled);
    ortc_state_release(other);
}

Test(state, states_do_not_mix_and_take_their_own_extents)
{
    recurrent(&whole, 1);
    ortc_state *st[2];
    cr_assert_eq(ortc_state_create(session, &st[0], &e) | ortc_state_create(session, &st[1], &e), ORTC_OK);
    float h[2][8] = {{0}}, x[8], y[8], expected[8];
    for (int i = 0; i < 6; i++) { /* two rows in one, a row in the other */
        int who = i % 2, rows = who ? 1 : 2;
        float next[8];
        fill(x, 8, i);
        cr_assert_eq(run(NULL, (bound[]){F32_2("x", rows, 4, x), F32_2("h", rows, 4, h[who]), {0}},
                         (bound[]){F32_2("y", rows, 4, expected), F32_2("next", rows, 4, next), {0}}, 0),
                     ORTC_OK, "%s", e.text);
        memcpy(h[who], next, sizeof next);
        cr_assert_eq(run(st[who], (bound[]){F32_2("x", rows, 4, x), {0}},
                         (bound[]){F32_2("y", rows, 4, y), {0}}, 0),
                     ORTC_OK, "%s", e.text);
        cr_expect_arr_eq(y, expected, (size_t)rows * 16, "step %d", i);
    }
    cr_expect_eq(step(st[1], x, y), ORTC_SHAPE_MISMATCH, "a state keeps its batch");
    cr_expect(strstr(e.text, "'s1' is 1 along axis 0, and 2 in an input before"), "%s", e.text);
    ortc_state_release(st[0]);
    ortc_state_release(st[1]);
}

Test(state, it_is_saved_and_loaded_through_the_tied_names)
{
    recurrent(&whole, 1);
    ortc_state *a, *b;
    cr_assert_eq(ortc_state_create(session, &a, &e) | ortc_state_create(session, &b, &e), ORTC_OK);
    float x[8], y[8], expected[8], saved[8], before[8];
    fill(x, 8, 1);
    const bound ins[] = {F32_2("x", 2, 4, x), F32_2("h", 2, 4, saved), {0}};
    cr_assert_eq(step(a, x, y), ORTC_OK);
    /* x is missing */
    cr_assert_eq(run(a, ins + 2, (bound[]){F32_2("y", 2, 4, y), {0}}, 0), ORTC_INVALID_ARGUMENT);
    cr_assert_eq(run(a, (bound[]){ins[0], {0}}, (bound[]){F32_2("next", 2, 4, saved), {0}}, 0), ORTC_OK, "%s",
                 e.text);
    memcpy(before, saved, sizeof saved);
    cr_assert_eq(run(b, ins, (bound[]){F32_2("y", 2, 4, y), {0}}, 0), ORTC_OK, "%s", e.text);
    cr_assert_eq(step(a, x, expected), ORTC_OK);
    cr_expect_arr_eq(y, expected, sizeof y);
    cr_expect_arr_eq(before, saved, sizeof saved, "the caller's value is only read");
    cr_assert_eq(step(a, x, expected), ORTC_OK);
    cr_assert_eq(step(b, x, y), ORTC_OK);
    cr_expect_arr_eq(y, expected, sizeof y, "and goes on from there");
    cr_assert_eq(run(a, (bound[]){ins[0], {0}}, (bound[]){{"next", 0, 0, {0}, NULL}, {0}}, 0), ORTC_OK);
    cr_expect_eq(ortc_value_count(placed[0]), 8);
    cr_expect_neq(ortc_value_host(placed[0]), a->ties[0].value->data, "what is handed out is a copy");
    ortc_value_release(placed[0]);
    ortc_state_release(a);
    ortc_state_release(b);
}

/* ---- Bad use ------------------------------------------------------------------------------------------- */

Test(state, ties_that_do_not_fit_are_refused)
{
    static const struct {
        ortc_tie tie;
        ortc_status status;
        const char *text;
    } cases[] = {
        {{"nothing", "present", 2, 0, 4}, ORTC_INVALID_ARGUMENT, "the model has no input 'nothing'"},
        {{"past", "nothing", 2, 0, 4}, ORTC_INVALID_ARGUMENT, "the model has no output 'nothing'"},
        {{"past", NULL, 2, 0, 4}, ORTC_INVALID_ARGUMENT, "no output '(NULL)'"},
        {{"past", "y", 2, 0, 4}, ORTC_SHAPE_MISMATCH, "tie of 'past' (rank 4) to 'y' (rank 3)"},
        {{"past", "present", 4, 0, 4}, ORTC_INVALID_ARGUMENT, "axis 4: expected -1 (as a whole) to 3"},
        {{"past", "present", 2, 0, 0},
         ORTC_INVALID_ARGUMENT,
         "axis 2 has no fixed extent: expected a capacity"},
        {{"past", "present", -1, 0, 3}, ORTC_INVALID_ARGUMENT, "a capacity needs an axis"},
        {{"past", "present", 3, 0, 4},
         ORTC_INVALID_ARGUMENT,
         "the model fixes axis 3 to 3, the capacity is 4"},
    };
    growing(NULL, 0);
    for (size_t i = 0; i < ORTC_LENGTH(cases); i++) {
        ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
        ortc_session *s;
        o.ties = &cases[i].tie, o.n_ties = 1;
        cr_expect_eq(ortc_session_create(model, &o, &s, &e), cases[i].status, "case %zu: %s", i, e.text);
        cr_expect(strstr(e.text, cases[i].text), "case %zu: %s", i, e.text);
        cr_expect_null(s);
    }
    ortc_state *st;
    cr_expect_eq(ortc_state_create(session, &st, &e), ORTC_INVALID_ARGUMENT);
    cr_expect(strstr(e.text, "no ties"), "%s", e.text);
}

Test(state, a_state_serves_one_run_of_its_own_session)
{
    recurrent(&whole, 1);
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    ortc_session *first = session, *second;
    o.ties = &whole, o.n_ties = 1;
    cr_assert_eq(ortc_session_create(model, &o, &second, &e), ORTC_OK);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float x[8] = {0}, y[8];
    session = second;
    cr_expect_eq(step(st, x, y), ORTC_INVALID_ARGUMENT);
    cr_expect(strstr(e.text, "the state belongs to another session"), "%s", e.text);
    session = first;
    atomic_store(&st->busy, true);
    cr_expect_eq(step(st, x, y), ORTC_INVALID_STATE);
    cr_expect_eq(ortc_state_truncate(st, 0, &e), ORTC_INVALID_STATE);
    atomic_store(&st->busy, false);
    cr_expect_eq(step(st, x, y), ORTC_OK, "%s", e.text);
    ortc_session_release(second);
    ortc_state_release(st);
}

Test(state, memory_of_states_counts_against_the_session_s_limit)
{
    const ortc_tie tie = {"cache", "present", 1, 0, 1 << 20};
    cached(true, false, &tie, 1);
    ortc_session *unlimited = session;
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.ties = &tie, o.n_ties = 1, o.max_bytes = 20 << 20; /* a state of two rows takes 16 MiB */
    cr_assert_eq(ortc_session_create(model, &o, &session, &e), ORTC_OK);
    ortc_state *a, *b;
    cr_assert_eq(ortc_state_create(session, &a, &e) | ortc_state_create(session, &b, &e), ORTC_OK);
    float x[4] = {1, 2, 3, 4}, z[4];
    cr_expect_eq(put_step(a, 1, 0, x, z, 1), ORTC_OK, "%s", e.text);
    cr_expect_eq(put_step(b, 1, 0, x, z, 1), ORTC_LIMIT);
    cr_expect(strstr(e.text, "the state of 'cache' needs 16777216 bytes"), "%s", e.text);
    ortc_state_release(a);
    cr_expect_eq(put_step(b, 1, 0, x, z, 1), ORTC_OK, "%s", e.text);
    ortc_state_release(b);
    ortc_session_release(session);
    session = unlimited;
}
