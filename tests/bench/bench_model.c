/* tests/bench/bench_model.c: runs of one model on demand, for scripts that alternate runtimes.
 *
 * usage: bench_model MODEL PROVIDERS THREADS [in=FILE] [out=FILE] [tie=INPUT:OUTPUT:AXIS:CAPACITY...]
 *        [clock=cpu] [precision=P] [DIM=N...]
 *
 * Loads the model, takes its inputs from `in` (their bytes, in the model's order; without it f32 uniform
 * in -1..1 by a seed, integers 1, other bytes 0), runs once, and prints "load_ms first_ms whole_ms": up to
 * the session, the first run, and from the program's begin to the first result. Then it reads lines: for
 * each number N above 0 it runs the model N times and prints the microseconds of each run; for 0 it prints
 * the KiB of its highest memory above that at its begin. It ends with its input. clock=cpu: time of the
 * processor in runs of the second kind. precision: the session's. `out` gets the bytes of the first run's
 * results. A tied output goes on as an input, in the library's state, and is no result; its first value is
 * from `in`.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "ortc/ortc.h"

#define MAX_PORTS 64

static ortc_error e = ORTC_ERROR_INIT;

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

/* Of all threads of the process, so for one thread what a run takes whoever else is at work. */
static double processor_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3;
}

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, e.text);
    return 1;
}

/* KiB of a line of /proc/self/status; 0 where there is none. */
static long memory_of(const char *key)
{
    char line[128];
    long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, key, strlen(key))) kib = atol(line + strlen(key));
    if (f) fclose(f);
    return kib;
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
        default: memset(data, 0, ortc_value_bytes(v)); return;
        }
    }
}

/* What stands behind "key=" among the arguments, from *at on; NULL: nothing more. */
static const char *word(const char *key, int *at, int argc, char **argv)
{
    const size_t n = strlen(key);
    for (; *at < argc; ++*at)
        if (!strncmp(argv[*at], key, n) && argv[*at][n] == '=') return argv[(*at)++] + n + 1;
    return NULL;
}

static const char *first_word(const char *key, int argc, char **argv)
{
    int at = 4;
    return word(key, &at, argc, argv);
}

/* An extent by itself, else as given for its symbol, else 1. */
static int64_t extent(const ortc_io *io, int32_t i, int argc, char **argv)
{
    const char *n = io->symbols[i] ? first_word(io->symbols[i], argc, argv) : NULL;
    return n ? atoll(n) : io->dims[i] < 0 ? 1 : io->dims[i];
}

/* INPUT:OUTPUT:AXIS:CAPACITY, cut where it is. */
static int read_ties(ortc_tie *ties, size_t *out_n, int argc, char **argv)
{
    int at = 4;
    for (const char *text; (text = word("tie", &at, argc, argv)); ++*out_n) {
        char *part[3] = {NULL};
        for (int i = 0; i < 3; i++)
            if ((part[i] = strchr(i ? part[i - 1] : text, ':')))
                *part[i]++ = '\0';
            else
                return 0;
        if (*out_n == MAX_PORTS) return 0;
        ties[*out_n] = (ortc_tie){text, part[0], atoi(part[1]), 0, atoll(part[2])};
    }
    return 1;
}

static const ortc_tie *tie_of(const ortc_tie *ties, size_t n, const char *name)
{
    for (size_t i = 0; i < n; i++)
        if (!strcmp(ties[i].input, name) || !strcmp(ties[i].output, name)) return &ties[i];
    return NULL;
}

static int write_results(const char *file, const ortc_out *out, size_t n)
{
    FILE *f = fopen(file, "wb");
    int good = f != NULL;
    for (size_t i = 0; good && i < n; i++) {
        const size_t bytes = ortc_value_bytes(out[i].value);
        good = fwrite(ortc_value_data(out[i].value), 1, bytes, f) == bytes;
    }
    return f && !fclose(f) && good;
}

int main(int argc, char **argv)
{
    const double start = now_us();
    const long own = memory_of("VmRSS:");
    ortc_model *model;
    ortc_session *session;
    ortc_state *state = NULL;
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    ortc_run_args args = ORTC_RUN_ARGS_INIT;
    ortc_tie ties[MAX_PORTS];
    ortc_in in[MAX_PORTS];
    ortc_out out[MAX_PORTS] = {{0}};
    const ortc_io *io;
    FILE *data = NULL;
    if (argc < 4 || !read_ties(ties, &o.n_ties, argc, argv))
        return fprintf(stderr,
                       "usage: %s MODEL PROVIDERS THREADS [in=FILE] [out=FILE] [tie=INPUT:OUTPUT:AXIS...] "
                       "[DIM=N...]\n",
                       argv[0]),
               2;
    o.providers = argv[2];
    o.precision = first_word("precision", argc, argv);
    o.threads = (uint32_t)atoi(argv[3]);
    o.ties = o.n_ties ? ties : NULL;
    if (ortc_model_load(argv[1], NULL, &model, &e)) return failed("load");
    if (ortc_session_create(model, &o, &session, &e)) return failed("session");
    if (o.n_ties && ortc_state_create(session, &state, &e)) return failed("state");
    const double loaded = now_us();
    const char *inputs = first_word("in", argc, argv), *results = first_word("out", argc, argv);
    if (inputs && !(data = fopen(inputs, "rb"))) return perror(inputs), 1;
    size_t n_own = 0; /* inputs that every run is given; tied ones, of the first run, are put behind them */
    for (size_t n = 0; n < MAX_PORTS && (io = ortc_model_input(model, n)); n++, args.n_in++) {
        int64_t dims[8];
        ortc_value *v;
        for (int32_t i = 0; i < io->rank && i < 8; i++) dims[i] = extent(io, i, argc, argv);
        if (ortc_value_create(io->dtype, io->rank, dims, &v, &e)) return failed(io->name);
        if (!data)
            fill(v);
        else if (fread(ortc_value_data(v), 1, ortc_value_bytes(v), data) != ortc_value_bytes(v))
            return fprintf(stderr, "%s: too short for %s\n", inputs, io->name), 1;
        in[n] = (ortc_in){.name = io->name, .value = v};
        if (tie_of(ties, o.n_ties, io->name)) continue;
        const ortc_in tied = in[n_own];
        in[n_own++] = in[n];
        if (n_own <= n) in[n] = tied;
    }
    for (size_t n = 0; n < MAX_PORTS && (io = ortc_model_output(model, n)); n++)
        if (!tie_of(ties, o.n_ties, io->name)) out[args.n_out++].name = io->name;
    if (data) fclose(data);
    args.in = in;
    args.out = out;
    args.state = state;
    const double first = now_us();
    if (ortc_run(session, &args, &e)) return failed("run");
    printf("%.3f %.3f %.3f\n", (loaded - start) * 1e-3, (now_us() - first) * 1e-3, (now_us() - start) * 1e-3);
    fflush(stdout);
    if (results && !write_results(results, out, args.n_out)) return perror(results), 1;
    for (size_t i = n_own; i < args.n_in; i++) ortc_value_release(in[i].value);
    args.n_in = n_own;
    double (*clock_us)(void) = first_word("clock", argc, argv) ? processor_us : now_us;
    for (int runs; scanf("%d", &runs) == 1; fflush(stdout)) {
        if (!runs) printf("%ld", memory_of("VmHWM:") - own);
        for (int i = 0; i < runs; i++) { /* results into the same memory */
            const double t = clock_us();
            if (ortc_run(session, &args, &e)) return failed("run");
            printf("%s%.2f", i ? " " : "", clock_us() - t);
        }
        printf("\n");
    }
    for (size_t i = 0; i < args.n_in; i++) ortc_value_release(in[i].value);
    for (size_t i = 0; i < args.n_out; i++) ortc_value_release(out[i].value);
    ortc_state_release(state);
    ortc_session_release(session);
    ortc_model_release(model);
    return 0;
}
