/* tests/bench/bench_overhead.c: what the runtime costs besides its kernels: planning a chain of nodes,
 * walking its steps, and handing a loop to threads.
 *
 * usage: bench_overhead [NODES]     (default: 1000)
 *
 * The operator does nothing, on one element, and its kernel chooses nothing. Prints NAME=NUMBER tokens:
 * plan_us for a plan of all nodes (a new shape each time; median of 51), plan_node_ns per node; run_us for a
 * run of a known shape into the caller's memory (median of 1,001), step_ns per step, and profiled_step_ns
 * with a profiler that drops what it hears. loop_ns: a loop of two chunks, which wait until both have begun,
 * on two threads that are awake (least of 2,001, and median); 0 where there is one thread.
 */
#include <stdio.h>

#include "base/threads.h"
#include "runtime/registry/registry.h"
#include "tests/unit/wire_writer.h"

static ortc_status infer_like(ortc_infer *c) { return ortc_infer_like(c, 0, 0); }
static ortc_status run_nothing(const void *state, const void *plan, ortc_call *call)
{
    (void)state, (void)plan, (void)call;
    return ORTC_OK;
}
static const ortc_kernel nothing = {.size = sizeof nothing, .name = "nothing", .run = run_nothing};
static const ortc_op ops[] = {
    ORTC_OP("bench", "Nothing", 1, 1, "", "x:T", "y:T", "", "T=f32", infer_like, NULL, 0)};
ORTC_KERNELS(ref, bench, ORTC_KERNEL_IN("bench", "Nothing", 1, 1, (ORTC_TYPE(ORTC_F32)), &nothing));
ORTC_FAMILY(bench, ops, &ortc_kernels_ref_bench);

static ortc_error e = ORTC_ERROR_INIT;

static buffer chain(int n)
{
    buffer g = {0}, b;
    char in[16], out[16];
    b = make_value_info("x", ORTC_F32, 1, (int64_t[]){-1}), put_message(&g, 11, &b);
    b = make_value_info("y", ORTC_F32, 1, (int64_t[]){-1}), put_message(&g, 12, &b);
    for (int i = 0; i < n; i++) {
        snprintf(in, sizeof in, i ? "t%d" : "x", i - 1);
        snprintf(out, sizeof out, i + 1 < n ? "t%d" : "y", i);
        b = make_node("Nothing", "bench", in, out), put_message(&g, 1, &b);
    }
    buffer m = make_model(8, 18, &g);
    put_opset(&m, 8, "bench", 1);
    return m;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static double median(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
    return v[n / 2];
}

static void drop(void *arg, const ortc_profile_event *event) { (void)arg, (void)event; }

/* A chunk goes on when the other has begun, too; if nobody comes, soon. */
static void meet(void *arg, int64_t begin, int64_t end, uint32_t worker)
{
    (void)begin, (void)end, (void)worker;
    atomic_int *there = arg;
    atomic_fetch_add(there, 1);
    for (int i = 0; atomic_load(there) < 2 && i < 1000000; i++)
        ;
}

/* Nanoseconds of a loop: the least, and the median. */
static void measure_loop(double *out_least, double *out_median)
{
    enum { LOOPS = 2001 };
    static double ns[LOOPS];
    *out_least = *out_median = 0;
    if (ortc_pool_threads(2) < 2) return;
    for (int i = 0; i < LOOPS; i++) {
        atomic_int there = 0;
        const int64_t begun = ortc_now_ns();
        ortc_pool_for(2, 2, 1, meet, &there, NULL, NULL);
        ns[i] = (double)(ortc_now_ns() - begun);
    }
    *out_median = median(ns, LOOPS); /* sorts */
    *out_least = ns[0];
}

static int failed(void)
{
    fprintf(stderr, "%s\n", e.text);
    return 1;
}

int main(int argc, char **argv)
{
    enum { PLANS = 51, RUNS = 1001 };
    int nodes = argc > 1 ? atoi(argv[1]) : 1000;
    static double plans[PLANS], runs[2][RUNS];
    static float x[1 + PLANS], y[1];
    ortc_model *m;
    ortc_session *s;
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    if (nodes < 1 || ortc_registry_init(&e) || ortc_host_add_family(ortc_host_get(), &ortc_family_bench))
        return failed();
    buffer bytes = chain(nodes);
    o.providers = "ref";
    if (ortc_model_load_memory(bytes.data, bytes.bytes, NULL, &m, &e) || ortc_session_create(m, &o, &s, &e))
        return failed();
    for (int64_t i = 0; i < PLANS; i++) {
        int64_t n = i + 2, begun = ortc_now_ns();
        ortc_in in = {"x", ortc_wrap(x, ORTC_F32, 1, &n)};
        ortc_plan_info info;
        begun = ortc_now_ns();
        if (ortc_session_plan(s, &in, 1, &info, NULL, NULL, &e) || info.n_steps != (uint32_t)nodes)
            return failed();
        plans[i] = (double)(ortc_now_ns() - begun);
        ortc_value_release(in.value);
    }
    const int64_t one = 1;
    const ortc_profiler profiler = {sizeof profiler, 0, NULL, drop};
    for (int profiled = 0; profiled < 2; profiled++) {
        ortc_in in = {"x", ortc_wrap(x, ORTC_F32, 1, &one)};
        ortc_out out = {"y", ortc_wrap(y, ORTC_F32, 1, &one), 0, 0};
        ortc_run_args a = ORTC_RUN_ARGS_INIT;
        a.in = &in, a.n_in = 1, a.out = &out, a.n_out = 1, a.profiler = profiled ? &profiler : NULL;
        for (int i = 0; i < RUNS + 3; i++) {
            int64_t begun = ortc_now_ns();
            if (ortc_run(s, &a, &e)) return failed();
            if (i >= 3) runs[profiled][i - 3] = (double)(ortc_now_ns() - begun);
        }
        ortc_value_release(in.value);
        ortc_value_release(out.value);
    }
    double plan = median(plans, PLANS), run = median(runs[0], RUNS), with = median(runs[1], RUNS);
    double loop_least, loop_median;
    measure_loop(&loop_least, &loop_median);
    printf("nodes=%d plan_us=%.1f plan_node_ns=%.0f run_us=%.2f step_ns=%.2f profiled_step_ns=%.1f "
           "loop_ns=%.0f..%.0f\n",
           nodes, plan / 1e3, plan / nodes, run / 1e3, run / nodes, with / nodes, loop_least, loop_median);
    ortc_session_release(s);
    ortc_model_release(m);
    buffer_free(&bytes);
    return 0;
}
