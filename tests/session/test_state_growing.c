/* tests/session/test_state_growing.c: tied state whose extents grow, or that only the run knows. */
#include "tests/session/tied_models.h"

TestSuite(state_growing, .init = setup, .fini = teardown);

/* ---- Growing ------------------------------------------------------------------------------------------- */

static ortc_status grow(ortc_state *st, int batch, int n, float *x, float *y)
{
    return run(st, (bound[]){{"x", ORTC_F32, 4, {batch, 2, n, 3}, x}, {0}},
               (bound[]){{"y", ORTC_F32, 3, {batch, 2, 3}, y}, {0}}, 0);
}

Test(state_growing, a_growing_value_equals_the_untied_one)
{
    const ortc_tie tie = {"past", "present", 2, 0, 7};
    growing(&tie, 1);
    cr_assert_not_null(session, "%s", e.text);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float x[2 * 2 * 3 * 3], past[2][2 * 2 * 8 * 3], y[12], expected[12];
    static const int steps[] = {3, 1, 1, 2};
    int length = 0;
    for (int i = 0; i < 4; i++) {
        fill(x, ORTC_LENGTH(x), i);
        cr_assert_eq(grow(st, 2, steps[i], x, y), ORTC_OK, "%s", e.text);
        cr_assert_eq(run(NULL,
                         (bound[]){{"x", ORTC_F32, 4, {2, 2, steps[i], 3}, x},
                                   {"past", ORTC_F32, 4, {2, 2, length, 3}, past[i % 2]},
                                   {0}},
                         (bound[]){{"present", ORTC_F32, 4, {2, 2, length + steps[i], 3}, past[!(i % 2)]},
                                   {"y", ORTC_F32, 3, {2, 2, 3}, expected},
                                   {0}},
                         0),
                     ORTC_OK, "%s", e.text);
        length += steps[i];
        cr_expect_arr_eq(y, expected, sizeof y, "step %d", i);
        cr_expect_eq(ortc_state_length(st), length);
    }
    cr_expect_eq(grow(st, 2, 1, x, y), ORTC_LIMIT);
    cr_expect(strstr(e.text,
                     "output 'present' would have 8 positions, the state of 'past' has a capacity of 7"),
              "%s", e.text);
    cr_expect_eq(ortc_state_length(st), 7);
    cr_expect_eq(ortc_state_truncate(st, 8, &e), ORTC_INVALID_ARGUMENT);
    cr_expect(strstr(e.text, "has 7 positions"), "%s", e.text);
    /* Back to four positions and on by another two: as if the others had never been. */
    cr_assert_eq(ortc_state_truncate(st, 4, &e), ORTC_OK, "%s", e.text);
    ortc_state *fresh;
    cr_assert_eq(ortc_state_create(session, &fresh, &e), ORTC_OK);
    for (int i = 0; i < 2; i++) {
        fill(x, ORTC_LENGTH(x), i);
        cr_assert_eq(grow(fresh, 2, steps[i], x, expected), ORTC_OK);
    }
    fill(x, ORTC_LENGTH(x), 99);
    cr_assert_eq(grow(st, 2, 2, x, y), ORTC_OK, "%s", e.text);
    cr_assert_eq(grow(fresh, 2, 2, x, expected), ORTC_OK);
    cr_expect_arr_eq(y, expected, sizeof y);
    cr_expect_arr_eq(st->ties[0].value->data, fresh->ties[0].value->data, 2 * 2 * 6 * 3 * sizeof(float));
    ortc_state_release(st);
    ortc_state_release(fresh);
}

Test(state_growing, an_extent_that_nothing_settles_is_named)
{
    const ortc_tie tie = {"past", "present", 2, 0, 4};
    growing(&tie, 1);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float x[2 * 3];
    cr_expect_eq(run(st, (bound[]){{"past", ORTC_F32, 4, {1, 2, 1, 3}, x}, {0}},
                     (bound[]){{"y", 0, 0, {0}, NULL}, {0}}, 0),
                 ORTC_INVALID_ARGUMENT);
    cr_expect(strstr(e.text, "input 'x' is not given"), "%s", e.text);
    ortc_state_release(st);
    teardown();
    session = NULL, model = NULL, tripped = NULL;
    setup();
    /* h [s1, 4] alone: no other input has s1 */
    static const int64_t dims[2] = {-1, 4}, four[1] = {4};
    end(IN, "x", ORTC_F32, 1, four);
    end(IN, "h", ORTC_F32, 2, dims);
    end(OUT, "next", ORTC_F32, 2, dims);
    node("Add", "", "h x", "next");
    load(&whole, 1);
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float four_x[4] = {1, 2, 3, 4};
    cr_expect_eq(run(st, (bound[]){{"x", ORTC_F32, 1, {4}, four_x}, {0}}, (bound[]){{0}}, 0),
                 ORTC_INVALID_ARGUMENT);
    cr_expect(strstr(e.text,
                     "the state of 'h': no other input says what 's1' (axis 0) is: fix it for the session"),
              "%s", e.text);
    ortc_state_release(st);
    ortc_session_release(session);
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.ties = &whole, o.n_ties = 1, o.n_dims = 1, o.dim_names = (const char *[]){"s1"},
    o.dim_values = (int64_t[]){3};
    cr_assert_eq(ortc_session_create(model, &o, &session, &e), ORTC_OK, "%s", e.text);
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    for (int i = 1; i < 3; i++) {
        cr_assert_eq(run(st, (bound[]){{"x", ORTC_F32, 1, {4}, four_x}, {0}},
                         (bound[]){{"next", 0, 0, {0}, NULL}, {0}}, 0),
                     ORTC_OK, "%s", e.text);
        cr_expect_eq(((const float *)ortc_value_host(placed[0]))[11], (float)(4 * i));
        ortc_value_release(placed[0]);
    }
    ortc_state_release(st);
}

/* Three, one, one, two positions, back to four, two more; what every step gave, one after the other. */
static void grow_and_shorten(float (*out)[12], void **memory)
{
    const ortc_tie tie = {"past", "present", 2, 0, 7};
    growing(&tie, 1);
    cr_assert_not_null(session, "%s", e.text);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float x[2 * 2 * 3 * 3];
    static const int steps[] = {3, 1, 1, 2, 2, 1};
    for (int i = 0; i < 6; i++) {
        fill(x, ORTC_LENGTH(x), i);
        if (i == 4) cr_assert_eq(ortc_state_truncate(st, 4, &e), ORTC_OK, "%s", e.text);
        cr_assert_eq(grow(st, 2, steps[i], x, out[i]), ORTC_OK, "%s", e.text);
        if (done) {
            cr_expect(ortc_event_done(*done), "runs with a state are finished on return");
            cr_expect_eq(ortc_event_wait(*done, &e), ORTC_OK, "%s", e.text);
            ortc_event_release(*done);
        }
    }
    cr_expect_eq(ortc_state_length(st), 7);
    *memory = st->ties[0].device;
    ortc_state_release(st);
    teardown();
    session = NULL, model = NULL, tripped = NULL;
    setup();
}

Test(state_growing, it_grows_and_shrinks_in_the_memory_of_a_device)
{
    float host[6][12], device[6][12];
    void *memory;
    ortc_event *event;
    grow_and_shorten(host, &memory);
    cr_expect_null(memory);
    cr_assert_eq(ortc_plugin_load(getenv("ORTC_SIM"), &e), ORTC_OK, "%s", e.text);
    for (int i = 0; i < 2; i++) {
        providers = "sim";
        done = i ? &event : NULL;
        grow_and_shorten(device, &memory);
        cr_expect_not_null(memory);
        cr_expect_arr_eq(host, device, sizeof host);
    }
    done = NULL;
}

/* ---- Odd models ---------------------------------------------------------------------------------------- */

Test(state_growing, it_survives_extents_that_only_the_run_knows)
{
    /* next = h + x; where next is not 0: NonZero, behind which a segment begins that reads next once more. */
    static const int64_t four[1] = {4}, found[2] = {1, -1};
    end(IN, "x", ORTC_F32, 1, four);
    end(IN, "h", ORTC_F32, 1, four);
    end(OUT, "next", ORTC_F32, 1, four);
    end(OUT, "where", ORTC_I64, 2, found);
    end(OUT, "twice", ORTC_F32, 1, four);
    node("Add", "", "h x", "next");
    node("NonZero", "", "next", "where");
    node("Neg", "", "where", "minus");
    end(OUT, "minus", ORTC_I64, 2, found);
    node("Add", "", "next next", "twice");
    load(&whole, 1);
    cr_assert_not_null(session, "%s", e.text);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    float x[3][4] = {{1, 0, 0, 0}, {0, 2, 0, 3}, {-1, 0, 0, 0}}, twice[4];
    static const int64_t counts[3] = {1, 3, 2};
    for (int i = 0; i < 3; i++) {
        bound xs = {"x", ORTC_F32, 1, {4}, x[i]};
        cr_assert_eq(run(st, (bound[]){xs, {0}},
                         (bound[]){{"where", 0, 0, {0}, NULL},
                                   {"next", 0, 0, {0}, NULL},
                                   {"twice", ORTC_F32, 1, {4}, twice},
                                   {0}},
                         0),
                     ORTC_OK, "%s", e.text);
        cr_expect_eq(ortc_value_count(placed[0]), counts[i], "step %d", i);
        const float *next = ortc_value_host(placed[1]);
        cr_expect_eq(next[3], i ? 3 : 0);
        cr_expect_eq(twice[3], 2 * next[3]);
        cr_expect_neq(next, st->ties[0].value->data);
        ortc_value_release(placed[0]), ortc_value_release(placed[1]);
    }
    ortc_state_release(st);
}

Test(state_growing, it_starts_from_the_default_and_may_decide_shapes)
{
    /* n starts at 2 and grows by 1; y = n zeros; same: the old n, handed through. */
    static const int64_t one[1] = {1}, any[1] = {-1};
    end(IN, "n", ORTC_I64, 1, one);
    end(OUT, "next", ORTC_I64, 1, one);
    end(OUT, "y", ORTC_F32, 1, any);
    end(OUT, "same", ORTC_I64, 1, one);
    buffer b = make_tensor("n", ORTC_I64, 1, one, (int64_t[]){2}, 8);
    put_message(&g, 5, &b);
    b = make_tensor("one", ORTC_I64, 1, one, (int64_t[]){1}, 8);
    put_message(&g, 5, &b);
    node("Add", "", "n one", "next");
    node("ConstantOfShape", "", "n", "y");
    node("Identity", "", "n", "same");
    const ortc_tie tie = {"n", "next", -1, 0, 0};
    load(&tie, 1);
    cr_assert_not_null(session, "%s", e.text);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    for (int i = 0; i < 7; i++) {
        if (i == 4) cr_assert_eq(ortc_state_truncate(st, 0, &e), ORTC_OK);
        int64_t same, expected = 2 + i % 4;
        cr_assert_eq(run(st, (bound[]){{0}},
                         (bound[]){{"y", 0, 0, {0}, NULL}, {"same", ORTC_I64, 1, {1}, &same}, {0}}, 0),
                     ORTC_OK, "%s", e.text);
        cr_expect_eq(ortc_value_count(placed[0]), expected, "step %d", i);
        cr_expect_eq(same, expected);
        ortc_value_release(placed[0]);
    }
    cr_expect_eq(atomic_load(&session->unit.plans.made), 4, "one for each n");
    ortc_state_release(st);
}

/* The default's bytes never go into a buffer of another shape: not of a given value's, not of the declared
 * one. */
Test(state_growing, a_given_value_must_be_of_the_default_s_shape)
{
    static const int64_t any[2] = {-1, 4};
    enum { N = 64 };
    const float start[N][4] = {[N - 1] = {5, 6, 7, 8}}, one[4] = {9, 9, 9, 9};
    end(IN, "h", ORTC_F32, 2, any);
    end(OUT, "next", ORTC_F32, 2, any);
    buffer b = make_tensor("h", ORTC_F32, 2, (int64_t[]){N, 4}, start, sizeof start);
    put_message(&g, 5, &b);
    node("Tanh", "", "h", "next");
    load(&whole, 1);
    cr_assert_not_null(session, "%s", e.text);
    ortc_state *st;
    float got[N][4];
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK);
    cr_expect_eq(run(st, (bound[]){{"h", ORTC_F32, 2, {1, 4}, (void *)(uintptr_t)one}, {0}}, (bound[]){{0}},
                     0),
                 ORTC_SHAPE_MISMATCH);
    cr_expect(strstr(e.text, "input 'h' is [1,4]") && strstr(e.text, "[64,4]"), "%s", e.text);
    for (int i = 0; i < 2;
         i++) { /* what is left starts from the default, and so does it when it starts over */
        cr_assert_eq(run(st, (bound[]){{0}}, (bound[]){{"next", ORTC_F32, 2, {N, 4}, got}, {0}}, 0), ORTC_OK,
                     "%s", e.text);
        cr_expect_float_eq(got[N - 1][3], tanhf(8), 1e-6F);
        cr_assert_eq(run(st, (bound[]){{"h", ORTC_F32, 2, {N, 4}, got}, {0}}, (bound[]){{0}}, 0), ORTC_OK,
                     "%s", e.text);
        cr_assert_eq(ortc_state_truncate(st, 0, &e), ORTC_OK);
    }
    ortc_state_release(st);
}

Test(state_growing, two_may_change_places)
{
    /* A pair of ties crosswise, and outputs that are inputs: next_a = b, next_b = a. */
    static const int64_t two[1] = {2};
    static const ortc_tie ties[2] = {{"a", "next_a", -1, 0, 0}, {"b", "next_b", -1, 0, 0}};
    end(IN, "a", ORTC_F32, 1, two);
    end(IN, "b", ORTC_F32, 1, two);
    end(OUT, "next_a", ORTC_F32, 1, two);
    end(OUT, "next_b", ORTC_F32, 1, two);
    node("Identity", "", "b", "next_a");
    node("Identity", "", "a", "next_b");
    load(ties, 2);
    ortc_state *st;
    cr_assert_eq(ortc_state_create(session, &st, &e), ORTC_OK, "%s", e.text);
    float a[2] = {1, 2}, b[2] = {3, 4}, got[2];
    cr_assert_eq(run(st, (bound[]){{"a", ORTC_F32, 1, {2}, a}, {"b", ORTC_F32, 1, {2}, b}, {0}},
                     (bound[]){{0}}, 0),
                 ORTC_OK, "%s", e.text);
    for (int i = 0; i < 4; i++) {
        cr_assert_eq(run(st, (bound[]){{0}}, (bound[]){{"next_a", ORTC_F32, 1, {2}, got}, {0}}, 0), ORTC_OK,
                     "%s", e.text);
        cr_expect_eq(got[1], i % 2 ? 4 : 2, "step %d", i);
    }
    ortc_state_release(st);
}
