/* tests/session/test_pace.c: how loops of a short program go to threads follows what its runs take. */
#include <criterion/criterion.h>

#include "runtime/execute/context.h"

/* Runs n times; how often in the way that was asked for. */
static int run(ortc_pace *p, int n, ortc_spread way, double all, double none, double gain, uint32_t threads)
{
    const double ns[ORTC_SPREADS] = {all, none, gain};
    int count = 0;
    for (int i = 0; i < n; i++) {
        const ortc_spread s = ortc_pace_spread(p);
        count += s == way;
        ortc_pace_took(p, ns[s], threads);
    }
    return count;
}

static void expect_most(int count, const char *what)
{
    cr_expect(count > 9700, "%s: %d of 10000", what, count);
}

Test(pace, what_takes_least_stays)
{
    ortc_pace p = {0};
    cr_expect_eq(ortc_pace_spread(&p), ORTC_SPREAD_ALL, "the first run");
    expect_most(run(&p, 10000, ORTC_SPREAD_NONE, 120e3, 100e3, 110e3, 2), "none");
    run(&p, 2200, ORTC_SPREAD_NONE, 60e3, 100e3, 70e3, 2); /* the machine has changed */
    expect_most(run(&p, 10000, ORTC_SPREAD_ALL, 60e3, 100e3, 70e3, 2), "all");
    run(&p, 2200, ORTC_SPREAD_NONE, 120e3, 100e3, 80e3, 2);
    expect_most(run(&p, 10000, ORTC_SPREAD_GAIN, 120e3, 100e3, 80e3, 2), "some");
    run(&p, 2200, ORTC_SPREAD_NONE, 99e3, 100e3, 99e3, 2); /* not worth other processors */
    expect_most(run(&p, 10000, ORTC_SPREAD_NONE, 99e3, 100e3, 99e3, 2), "none again");
}

Test(pace, slow_runs_decide_nothing)
{
    ortc_pace p = {0};
    int count = 0;
    for (int i = 0; i < 10000; i++) {
        const ortc_spread s = ortc_pace_spread(&p);
        count += s == ORTC_SPREAD_ALL;
        ortc_pace_took(&p, (s == ORTC_SPREAD_ALL ? 60e3 : 100e3) * (i % 4 ? 1 : 50), 2);
    }
    expect_most(count, "all");
}

Test(pace, long_runs_are_never_tried_on_one_thread)
{
    ortc_pace p = {0};
    cr_expect_eq(run(&p, 10000, ORTC_SPREAD_ALL, 200e3, 1e3, 1e3, 16), 10000);
}

Test(loops, have_as_many_threads_as_they_have_work_for)
{
    ortc_loop_work w = {0};
    cr_expect_eq(ortc_loop_threads(&w, ORTC_SPREAD_ALL, 8), 8, "nothing is known");
    cr_expect_eq(ortc_loop_threads(&w, ORTC_SPREAD_NONE, 8), 1);
    ortc_loop_took(&w, 4500, 4, 16,
                   4); /* a quarter of the chunks in 4 us, and half of one to begin and end */
    cr_expect_eq(w.ns, 16000);
    cr_expect_eq(ortc_loop_threads(&w, ORTC_SPREAD_ALL, 8), 5);
    cr_expect_eq(ortc_loop_threads(&w, ORTC_SPREAD_ALL, 2), 2);
    ortc_loop_took(&w, 3000, 1, 16, 16);
    cr_expect_eq(ortc_loop_threads(&w, ORTC_SPREAD_ALL, 8), 2, "a second one is cheap");
    ortc_loop_took(&w, 1000, 1, 16, 16);
    cr_expect_eq(ortc_loop_threads(&w, ORTC_SPREAD_ALL, 8), 1, "done before others have come");
    ortc_loop_took(&w, 1e6, 1, 16, 16);
    cr_expect_eq(ortc_loop_threads(&w, ORTC_SPREAD_ALL, 8), 2, "it waited for a processor");
    for (int i = 0; i < 4; i++) ortc_loop_took(&w, 1e6, 1, 16, 16);
    cr_expect_eq(ortc_loop_threads(&w, ORTC_SPREAD_ALL, 8), 8, "there is more to do now");
}

Test(loops, go_to_threads_where_that_was_quicker)
{
    ortc_loop_work w = {0};
    cr_expect_eq(ortc_loop_threads(&w, ORTC_SPREAD_GAIN, 4), 4, "nothing is known");
    ortc_loop_took(&w, 15000, 1, 8, 8);
    cr_expect_eq(ortc_loop_threads(&w, ORTC_SPREAD_GAIN, 4), 4);
    ortc_loop_took(&w, 16000, 4, 8, 2);
    cr_expect_eq(ortc_loop_threads(&w, ORTC_SPREAD_GAIN, 4), 1);
    cr_expect_eq(ortc_loop_threads(&w, ORTC_SPREAD_ALL, 4), 4);
    ortc_loop_took(&w, 8000, 4, 8, 2);
    cr_expect_eq(ortc_loop_threads(&w, ORTC_SPREAD_GAIN, 4), 4);
}
