/* tests/bench/bench_model.c: runs of one model on demand, for scripts that alternate runtimes.
 *
 * usage: bench_model MODEL PROVIDERS THREADS [DIM=N...]
 *
 * Loads the model, makes inputs (f32 and f16 uniform in -1..1 by a seed, integers 1), runs once, and prints
 * "load_ms first_ms". Then reads lines: for each number N runs the model N times and prints the microseconds
 * of each run; ends with its input.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ortc/ortc.h"

#define MAX_PORTS 32

static ortc_error e = ORTC_ERROR_INIT;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, e.text);
    return 1;
}

static void fill(ortc_value *v)
{
    unsigned state = 1;
    char *data = ortc_value_data(v);
    const int64_t count = ortc_value_count(v);
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525u + 1013904223u;
        const float x = (float)(state >> 8) / (1 << 23) - 1;
        switch (ortc_value_dtype(v)) {
        case ORTC_F32: ((float *)(void *)data)[i] = x; break;
        case ORTC_I64: ((int64_t *)(void *)data)[i] = 1; break;
        case ORTC_I32: ((int32_t *)(void *)data)[i] = 1; break;
        default: memset(data + i * (int64_t)(ortc_value_bytes(v) / (size_t)(count ? count : 1)), 0, 1);
        }
    }
}

/* An extent by itself, else as given for its symbol, else 1. */
static int64_t extent(const ortc_io *io, int32_t i, int argc, char **argv)
{
    for (int k = 4; k < argc && io->symbols[i]; k++) {
        const size_t n = strlen(io->symbols[i]);
        if (!strncmp(argv[k], io->symbols[i], n) && argv[k][n] == '=') return atoll(argv[k] + n + 1);
    }
    return io->dims[i] < 0 ? 1 : io->dims[i];
}

int main(int argc, char **argv)
{
    ortc_model *model;
    ortc_session *session;
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    ortc_run_args args = ORTC_RUN_ARGS_INIT;
    ortc_in in[MAX_PORTS];
    ortc_out out[MAX_PORTS] = {{0}};
    const ortc_io *io;
    if (argc < 4) return fprintf(stderr, "usage: %s MODEL PROVIDERS THREADS [DIM=N...]\n", argv[0]), 2;
    o.providers = argv[2];
    o.threads = (uint32_t)atoi(argv[3]);
    const double start = now_us();
    if (ortc_model_load(argv[1], NULL, &model, &e)) return failed("load");
    if (ortc_session_create(model, &o, &session, &e)) return failed("session");
    const double loaded = now_us();
    for (; args.n_in < MAX_PORTS && (io = ortc_model_input(model, args.n_in)); args.n_in++) {
        int64_t dims[8];
        ortc_value *v;
        for (int32_t i = 0; i < io->rank && i < 8; i++) dims[i] = extent(io, i, argc, argv);
        if (ortc_value_create(io->dtype, io->rank, dims, &v, &e)) return failed(io->name);
        fill(v);
        in[args.n_in].name = io->name;
        in[args.n_in].value = v;
    }
    for (; args.n_out < MAX_PORTS && (io = ortc_model_output(model, args.n_out)); args.n_out++)
        out[args.n_out].name = io->name;
    args.in = in;
    args.out = out;
    const double first = now_us();
    if (ortc_run(session, &args, &e)) return failed("run");
    printf("%.3f %.3f\n", (loaded - start) * 1e-3, (now_us() - first) * 1e-3);
    fflush(stdout);
    for (int runs; scanf("%d", &runs) == 1; fflush(stdout)) {
        for (int i = 0; i < runs; i++) { /* results into the same memory */
            const double t = now_us();
            if (ortc_run(session, &args, &e)) return failed("run");
            printf("%s%.2f", i ? " " : "", now_us() - t);
        }
        printf("\n");
    }
    for (size_t i = 0; i < args.n_in; i++) ortc_value_release(in[i].value);
    for (size_t i = 0; i < args.n_out; i++) ortc_value_release(out[i].value);
    ortc_session_release(session);
    ortc_model_release(model);
    return 0;
}
