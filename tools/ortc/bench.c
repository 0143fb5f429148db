/* tools/ortc/bench.c: `ortc bench`: how long a model takes, again and again, from one caller or several; what
 * is told of it is in bench_report.c. */
#include "bench.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "args.h"
#include "inputs.h"
#include "interrupt.h"
#include "session.h"
#include "term.h"

enum { SHAPE_SETS = 16 }; /* sets of random shapes, one after the other and again from the first */

typedef struct range {
    const char *dim;
    int64_t low, high;
} range;

typedef struct bench_options {
    session_options session;
    input_options input;
    arg_list range_texts;
    range *ranges;
    const char *seconds_text, *save, *against, *fail_text;
    double seconds, fail_above;
    int64_t runs, warmup, callers;
} bench_options;

static const char details[] =
    "Inputs that are not given are random. What is measured is ortc_run alone, each caller in a thread and "
    "a\n"
    "context of its own, on inputs that lie ready. Noise says how far the result moved while it was "
    "measured:\n"
    "a difference from a saved measurement that is not larger says nothing.\n"
    "\n"
    "examples:\n"
    "  ortc bench model.onnx --set batch=8 --seconds 10\n"
    "  ortc bench model.onnx --range length=1..128 --callers 4 --threads 1\n"
    "  ortc bench model.onnx --save before.json; ...; ortc bench model.onnx --against before.json\n";

/* ---- Callers ------------------------------------------------------------------------------------------- */

typedef struct caller {
    pthread_t thread;
    ortc_session *session;
    ortc_context *context;
    ortc_out *out;
    size_t n_out;
    const inputs *sets;
    size_t n_sets, first;
    const bench_options *o;
    ortc_cancel *cancel;
    pthread_barrier_t *ready;
    double *samples;
    size_t n, capacity;
    double ended;
    ortc_status status;
    ortc_error error;
} caller;

/* All outputs of the model, to be placed by runs. */
static ortc_out *outputs_of(ortc_model *model, size_t *out_count)
{
    size_t n = 0;
    while (ortc_model_output(model, n)) n++;
    ortc_out *out = mem_alloc(n * sizeof *out);
    for (size_t i = 0; i < n; i++) out[i].name = ortc_model_output(model, i)->name;
    *out_count = n;
    return out;
}

static ortc_status run_once(caller *c, const inputs *in, double *out_seconds)
{
    ortc_run_args args = ORTC_RUN_ARGS_INIT;
    args.in = in->in;
    args.n_in = in->n_in;
    args.out = c->out;
    args.n_out = c->n_out;
    args.context = c->context;
    args.cancel = c->cancel;
    args.seed = (uint64_t)c->o->input.seed;
    const double start = seconds_now();
    c->status = ortc_run(c->session, &args, &c->error);
    *out_seconds = seconds_now() - start;
    for (size_t i = 0; i < c->n_out; i++) {
        ortc_value_release(c->out[i].value);
        c->out[i].value = NULL;
    }
    return c->status;
}

static void keep_sample(caller *c, double seconds)
{
    if (c->n == c->capacity) {
        c->capacity = c->capacity ? 2 * c->capacity : 1024;
        c->samples = mem_grow(c->samples, c->capacity, sizeof *c->samples);
    }
    c->samples[c->n++] = seconds;
}

static void *call(void *arg)
{
    caller *c = arg;
    size_t at = c->first;
    double seconds;
    c->status = ortc_context_create(c->session, &c->context, &c->error);
    const size_t warmup = (size_t)c->o->warmup > c->n_sets ? (size_t)c->o->warmup : c->n_sets;
    for (size_t i = 0; i < warmup && c->status == ORTC_OK; i++)
        run_once(c, &c->sets[at++ % c->n_sets], &seconds);
    pthread_barrier_wait(c->ready); /* all are warm, */
    pthread_barrier_wait(c->ready); /* and the clock runs */
    const double end = seconds_now() + c->o->seconds;
    while (c->status == ORTC_OK && (c->o->runs ? (int64_t)c->n < c->o->runs : seconds_now() < end || !c->n))
        if (run_once(c, &c->sets[at++ % c->n_sets], &seconds) == ORTC_OK) keep_sample(c, seconds);
    c->ended = seconds_now();
    return NULL;
}

static double processor_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

/* Bytes of a line of /proc/self/status; 0 where there is none. getrusage would tell of who started us,
 * too. */
static uint64_t memory_of(const char *key)
{
    blob b;
    unsigned long long kib = 0;
    if (file_read("/proc/self/status", 1 << 16, &b, NULL) != ORTC_OK) return 0;
    buffer text = {0};
    buffer_add(&text, b.data, b.size);
    const char *at = strstr((const char *)text.data, key);
    if (at) kib = strtoull(at + strlen(key), NULL, 10);
    free(text.data);
    free(b.data);
    return kib * 1024;
}

/* Draws a line while the callers run; it is the terminal's only writer then. */
static void show_progress(const bench_options *o, double start)
{
    while (!o->runs && isatty(STDERR_FILENO)) {
        const double passed = seconds_now() - start;
        if (passed >= o->seconds || interrupt_came()) break;
        term_progress((size_t)passed, (size_t)o->seconds, "s");
        usleep(200000);
    }
    term_progress_clear();
}

static int measure(ortc_model *model, ortc_session *session, const inputs *sets, size_t n_sets,
                   const bench_options *o, measurement *m)
{
    const size_t n = (size_t)o->callers;
    caller *callers = mem_alloc(n * sizeof *callers);
    pthread_barrier_t ready;
    pthread_barrier_init(&ready, NULL, (unsigned)n + 1);
    ortc_cancel *cancel = interrupt_watch();
    for (size_t i = 0; i < n; i++) {
        callers[i] = (caller){.session = session,
                              .sets = sets,
                              .n_sets = n_sets,
                              .first = i * n_sets / n,
                              .o = o,
                              .cancel = cancel,
                              .ready = &ready,
                              .error = ORTC_ERROR_INIT};
        callers[i].out = outputs_of(model, &callers[i].n_out);
        if (pthread_create(&callers[i].thread, NULL, call, &callers[i]) != 0) {
            say_error("the thread of caller %zu could not be started", i + 1);
            exit(EXIT_MEMORY); /* those that wait for it would wait for ever */
        }
    }
    pthread_barrier_wait(&ready);
    m->peak_bytes = memory_of("VmHWM:"); /* all is warm; what follows are samples of ours */
    const double start = seconds_now(), cpu = processor_seconds();
    pthread_barrier_wait(&ready);
    show_progress(o, start);
    double **samples = mem_alloc(n * sizeof *samples);
    size_t *counts = mem_alloc(n * sizeof *counts);
    int code = -1;
    for (size_t i = 0; i < n; i++) {
        caller *c = &callers[i];
        pthread_join(c->thread, NULL);
        samples[i] = c->samples;
        counts[i] = c->n;
        m->elapsed = c->ended - start > m->elapsed ? c->ended - start : m->elapsed;
        if (c->status == ORTC_OK || (interrupt_came() && c->status == ORTC_CANCELLED) || code >= 0) continue;
        say_error("%s", c->error.text);
        code = exit_code(c->status, STAGE_RUN);
    }
    m->cpu = processor_seconds() - cpu;
    m->callers = n;
    ortc_session_stats stats = ORTC_SESSION_STATS_INIT;
    ortc_session_statistics(session, &stats); /* of contexts that are there, and their arenas */
    m->arena_bytes = stats.arena_bytes;
    m->plan_bytes = stats.plan_bytes;
    m->plans = stats.plans_made;
    measurement_add(m, samples, counts, n);
    for (size_t i = 0; i < n; i++) {
        ortc_context_release(callers[i].context);
        free(samples[i]);
        free(callers[i].out);
    }
    free(samples);
    free(counts);
    free(callers);
    pthread_barrier_destroy(&ready);
    if (code < 0 && m->n == 0) {
        say_error("interrupted before the first run was measured");
        code = EXIT_INTERRUPTED;
    }
    return code;
}

/* ---- Inputs -------------------------------------------------------------------------------------------- */

static int parse_range(const char *text, range *out)
{
    char *copy = mem_keep(strlen(text) + 1), *equals, *dots;
    strcpy(copy, text);
    equals = strrchr(copy, '=');
    dots = equals ? strstr(equals, "..") : NULL;
    if (dots) *equals = *dots = 0;
    if (!dots || equals == copy || !args_integer(equals + 1, &out->low) ||
        !args_integer(dots + 2, &out->high) || out->low < 0 || out->high < out->low) {
        say_error("--range expects DIM=LOW..HIGH, as in length=1..128, got '%s'", text);
        return EXIT_USAGE;
    }
    out->dim = copy;
    return -1;
}

/* One set of inputs, or with --range several, of extents that are drawn. The session fixes none of them. */
static int make_sets(ortc_model *model, const bench_options *o, inputs *sets, size_t n_sets)
{
    const size_t fixed = o->session.n_dims, all = fixed + o->range_texts.count;
    uint64_t state = (uint64_t)o->input.seed * 2654435761u + 1;
    const bool quiet = cli.quiet;
    int code = -1;
    for (size_t i = 0; i < n_sets && code < 0; i++) {
        session_options with = o->session;
        with.dim_names = mem_keep(all * sizeof *with.dim_names);
        with.dim_values = mem_keep(all * sizeof *with.dim_values);
        for (size_t k = 0; k < all; k++) {
            const range *r = k < fixed ? NULL : &o->ranges[k - fixed];
            state = state * 6364136223846793005u + 1442695040888963407u; /* Knuth's, MMIX */
            with.dim_names[k] = r ? r->dim : o->session.dim_names[k];
            with.dim_values[k] = r ? r->low + (int64_t)((state >> 33) % (uint64_t)(r->high - r->low + 1))
                                   : o->session.dim_values[k];
        }
        with.n_dims = all;
        code = inputs_resolve(model, &with, &o->input, false, &sets[i]);
        cli.quiet = true; /* a note is told once */
    }
    cli.quiet = quiet;
    return code;
}

/* ---- The command --------------------------------------------------------------------------------------- */

static int bench_model(const char *path, const bench_options *o, bench_report *report)
{
    ortc_model *model = NULL;
    ortc_session *session = NULL;
    measurement m = {.base_bytes = memory_of("VmRSS:"), .shapes = o->range_texts.count ? SHAPE_SETS : 1};
    inputs sets[SHAPE_SETS] = {{0}};
    double start = seconds_now();
    int code = model_open(path, &o->session, &model);
    m.load = seconds_now() - start;
    for (size_t i = 0; i < o->range_texts.count && code < 0; i++)
        code = symbol_check(model, "--range", o->ranges[i].dim);
    if (code < 0) code = make_sets(model, o, sets, m.shapes);
    start = seconds_now();
    if (code < 0) code = session_open(model, &o->session, &session);
    m.create = seconds_now() - start;
    if (code < 0) {
        caller first = {.session = session, .o = o, .error = ORTC_ERROR_INIT};
        first.out = outputs_of(model, &first.n_out);
        if (run_once(&first, &sets[0], &m.first) != ORTC_OK) {
            say_error("%s", first.error.text);
            code = exit_code(first.status, STAGE_RUN);
        }
        free(first.out);
    }
    if (code < 0) code = measure(model, session, sets, m.shapes, o, &m);
    if (code < 0) {
        ortc_error e = ORTC_ERROR_INIT;
        code = interrupt_came() ? EXIT_INTERRUPTED : bench_is_worse(&m, report) ? EXIT_DIFFERENT : EXIT_GOOD;
        if (cli.json)
            bench_json(&m, report, NULL, NULL);
        else
            bench_print(&m, report);
        if (o->save && bench_json(&m, report, o->save, &e) != ORTC_OK) {
            say_error("--save: %s", e.text);
            code = EXIT_RUN;
        }
    }
    measurement_free(&m);
    for (size_t i = 0; i < COUNT_OF(sets); i++) inputs_release(&sets[i]);
    ortc_session_release(session);
    ortc_model_release(model);
    return finish(code);
}

static int parse_numbers(bench_options *o)
{
    o->ranges = mem_keep(o->range_texts.count * sizeof *o->ranges);
    for (size_t i = 0; i < o->range_texts.count; i++) {
        int code = parse_range(o->range_texts.items[i], &o->ranges[i]);
        if (code >= 0) return code;
    }
    if (o->seconds_text &&
        (!args_number(o->seconds_text, &o->seconds) || o->seconds < 0 || o->seconds > 1e6)) {
        say_error("--seconds expects a number of at least 0, got '%s'", o->seconds_text);
        return EXIT_USAGE;
    }
    if (o->fail_text && (!args_number(o->fail_text, &o->fail_above) || o->fail_above < 0)) {
        say_error("--fail-above expects a number of at least 0, got '%s'", o->fail_text);
        return EXIT_USAGE;
    }
    if (o->fail_text && !o->against) {
        say_error("--fail-above expects --against FILE");
        return EXIT_USAGE;
    }
    return -1;
}

int command_bench(int argc, char **argv)
{
    bench_options o = {.seconds = 3, .warmup = 10, .callers = 1, .fail_above = -1};
    const arg_option options[] = {
        {.kind = ARG_HEADING, .help = "Measuring"},
        {.kind = ARG_TEXT,
         .letter = 's',
         .name = "seconds",
         .value = "S",
         .to = &o.seconds_text,
         .help = "for so long (3)"},
        {.kind = ARG_INTEGER,
         .letter = 'n',
         .name = "runs",
         .value = "N",
         .to = &o.runs,
         .min = 1,
         .max = 1000000000,
         .help = "so many runs of every caller, instead of a time"},
        {.kind = ARG_INTEGER,
         .name = "warmup",
         .value = "N",
         .to = &o.warmup,
         .max = 1000000,
         .help = "runs of every caller before (10)"},
        {.kind = ARG_INTEGER,
         .letter = 'c',
         .name = "callers",
         .value = "N",
         .to = &o.callers,
         .min = 1,
         .max = 256,
         .help = "threads that run the model at once (1); --threads 1 keeps each run on its own"},
        {.kind = ARG_LIST,
         .name = "range",
         .value = "DIM=LOW..HIGH",
         .to = &o.range_texts,
         .help = "random extents of a symbolic dimension, 16 sets of shapes in turn; may be repeated"},
        {.kind = ARG_TEXT,
         .name = "save",
         .value = "FILE",
         .to = &o.save,
         .help = "write the result as JSON, to compare with later"},
        {.kind = ARG_TEXT,
         .name = "against",
         .value = "FILE",
         .to = &o.against,
         .help = "compare with a saved result"},
        {.kind = ARG_TEXT,
         .name = "fail-above",
         .value = "PERCENT",
         .to = &o.fail_text,
         .help = "with --against: code 1 when the median is slower by more, and by more than the noise"},
        ARGS_INPUT(o.input),
        ARGS_SHAPES(o.session),
        ARGS_SESSION(o.session),
        ARGS_COMMON,
    };
    const arg_command command = {"bench",
                                 "MODEL [--seconds S] [--callers N] [options]",
                                 "Measures how long an ONNX model takes.",
                                 details,
                                 "one model",
                                 1,
                                 1,
                                 options};
    arg_list files;
    int code = args_parse(&command, argc, argv, &files);
    if (code < 0) code = parse_numbers(&o);
    if (code < 0) code = input_options_parse(&o.input);
    if (code < 0) code = session_options_parse(&o.session);
    if (code < 0) code = writable_check("--save", o.save);
    if (code < 0) code = plugins_load(&o.session.plugins);
    if (code >= 0) return code;
    o.input.rest_is_random = true;
    bench_report report = {files.items[0],    o.session.provider, o.against,
                           o.session.threads, o.fail_above,       {0}};
    ortc_error e = ORTC_ERROR_INIT;
    if (o.against && saved_read(o.against, &report.old, &e) != ORTC_OK) {
        say_error("--against: %s", e.text);
        return EXIT_USAGE;
    }
    return bench_model(files.items[0], &o, &report);
}
