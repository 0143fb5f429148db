/* tests/gpu/bench_replay.c: what a run costs when nearly nothing is computed: a chain of N Softmax of one
 * element, its input and output on the device, replayed as one captured graph; median and spread of host time
 * per run, waiting for each, and of time per run when many are queued. usage: bench_replay DEVICE [PLUGIN] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ortc/ortc.h"
#include "tests/unit/wire_writer.h"

enum { RUNS = 2000 };
static ortc_error e = ORTC_ERROR_INIT;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}
static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void measure(const char *device, int nodes)
{
    static double times[RUNS];
    buffer g = {0}, b;
    const int64_t dims[] = {1};
    char in[16] = "X", out[16];
    for (int i = 0; i < nodes; i++, strcpy(in, out)) {
        snprintf(out, sizeof out, i + 1 < nodes ? "t%d" : "Y", i);
        b = make_node("Softmax", "", in, out); /* of one element: no chain that could be one kernel */
        put_message(&g, 1, &b);
    }
    b = make_value_info("X", ORTC_F32, 1, dims);
    put_message(&g, 11, &b);
    b = make_value_info("Y", ORTC_F32, 1, dims);
    put_message(&g, 12, &b);
    buffer bytes = make_model(10, 18, &g);
    ortc_model *m = NULL;
    ortc_session *s = NULL;
    ortc_context *c = NULL;
    ortc_value *x = NULL, *y = NULL;
    uint32_t memory = 0;
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.providers = device;
    if (ortc_model_load_memory(bytes.data, bytes.bytes, NULL, &m, &e) || ortc_session_create(m, &o, &s, &e) ||
        ortc_context_create(s, &c, &e) || ortc_session_memory(s, device, &memory, &e) ||
        ortc_value_create_in(memory, ORTC_F32, 1, dims, &x, &e) ||
        ortc_value_create_in(memory, ORTC_F32, 1, dims, &y, &e)) {
        printf("%s\n", e.text);
        exit(1);
    }
    float zero = 0;
    ortc_value *host = ortc_wrap(&zero, ORTC_F32, 1, dims);
    ortc_value_copy(host, x, &e);
    ortc_value_release(host);
    ortc_in input = {"X", x};
    ortc_out output = {"Y", y, 0, 0};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = &input, a.n_in = 1, a.out = &output, a.n_out = 1, a.context = c;
    for (int i = 0; i < RUNS; i++) {
        double start = now();
        if (ortc_run(s, &a, &e)) {
            printf("%s\n", e.text);
            exit(1);
        }
        times[i] = now() - start;
    }
    ortc_session_stats stats = ORTC_SESSION_STATS_INIT;
    ortc_session_statistics(s, &stats);
    qsort(times + 100, RUNS - 100, sizeof *times, by_value);
    printf("%5d nodes: %.2f us a run (10 %%: %.2f, 90 %%: %.2f), %llu of %d runs replayed\n", nodes,
           times[100 + (RUNS - 100) / 2], times[100 + (RUNS - 100) / 10], times[100 + (RUNS - 100) * 9 / 10],
           (unsigned long long)stats.replays, RUNS);
    ortc_value_release(x);
    ortc_value_release(y);
    ortc_context_release(c);
    ortc_session_release(s);
    ortc_model_release(m);
    buffer_free(&bytes);
}

int main(int argc, char **argv)
{
    if (argc < 2 || (argc > 2 && ortc_plugin_load(argv[2], &e))) return 2;
    printf("captured chains on %s, the host waiting for every run\n", argv[1]);
    measure(argv[1], 2);
    measure(argv[1], 100);
    measure(argv[1], 1000);
    return 0;
}
