/* tools/ortc/run.c: `ortc run`: one model, its inputs, its outputs, and how long it took. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "files.h"
#include "inputs.h"
#include "interrupt.h"
#include "json.h"
#include "outputs.h"
#include "session.h"
#include "term.h"
#include "trace.h"

typedef struct run_options {
    session_options session;
    input_options input;
    const char *out, *labels, *profile;
    trace *trace; /* NULL: no --profile */
    bool compress;
    int64_t topk, repeat, deadline_ms;
} run_options;

typedef struct timing {
    double load, create, first, *runs; /* seconds */
    size_t n_runs;
} timing;

static const char details[] =
    "A VALUE is a file or a word:\n"
    "  x.npy, x.npz, x.pb   an array; of an .npz the one named like the input, or x.npz:KEY\n"
    "  x.png, x.jpg, ...    a picture as 0..255 (also .webp .tif .jp2 .bmp .pnm); repeated for one input: a "
    "batch\n"
    "  rand                 uniform in 0..1; integers 0..9, u8 0..255; rand:uniform(a,b), "
    "rand:normal(mean,deviation)\n"
    "  zeros, ones\n"
    "Numbers of another type than the model's are converted when all of them fit exactly; --cast rounds the "
    "others.\n"
    "A picture's transparency is dropped, 16 bits become 8, and colour becomes grey (or grey colour) as the "
    "model has\n"
    "1 or 3 channels. In JSON, NaN and infinities are the strings \"NaN\", \"Infinity\" and \"-Infinity\".\n"
    "\n"
    "examples:\n"
    "  ortc run model.onnx --input picture.png --scale 1/255 --resize bilinear --topk 5 --labels names.txt\n"
    "  ortc run model.onnx --input ids=ids.npy --input mask=ones --set batch=1 --out result.npz\n"
    "  ortc run model.onnx --input rand --repeat 100\n"
    "  ortc run rnn.onnx --input rand --tie h=h_next --repeat 16\n";

static ortc_cancel *cancel;

/* ---- Runs ---------------------------------------------------------------------------------------------- */

static void release_outputs(ortc_out *out, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        ortc_value_release(out[i].value);
        out[i].value = NULL;
    }
}

static ortc_status run_once(ortc_session *session, ortc_state *state, const run_options *o, const inputs *in,
                            ortc_out *out, size_t n_out, double *out_seconds, ortc_error *error)
{
    ortc_run_args args = ORTC_RUN_ARGS_INIT;
    args.state = state;
    args.profiler = o->trace ? &o->trace->profiler : NULL;
    args.in = in->in;
    args.n_in = in->n_in;
    args.out = out;
    args.n_out = n_out;
    args.cancel = cancel;
    args.seed = (uint64_t)o->input.seed;
    double start = seconds_now();
    if (o->deadline_ms) args.deadline_ns = (int64_t)(start * 1e9) + o->deadline_ms * 1000000;
    ortc_status s = ortc_run(session, &args, error);
    *out_seconds = seconds_now() - start;
    return s;
}

/* All runs. The outputs of the last good one stay; an interrupted series still reports what it measured. */
static int run_all(ortc_session *session, ortc_state *state, const run_options *o, const inputs *in,
                   ortc_out *out, size_t n_out, timing *t)
{
    t->runs = mem_alloc((size_t)o->repeat * sizeof *t->runs);
    for (int64_t i = 0; i < o->repeat; i++) {
        ortc_error e = ORTC_ERROR_INIT;
        double seconds;
        if (i) {
            char text[64];
            snprintf(text, sizeof text, "%.3f ms", 1e3 * t->runs[i - 1]);
            term_progress((size_t)i, (size_t)o->repeat, text);
            release_outputs(out, n_out);
        }
        ortc_status s = run_once(session, state, o, in, out, n_out, &seconds, &e);
        if (s != ORTC_OK) {
            term_progress_clear();
            if (interrupt_came() && s == ORTC_CANCELLED)
                say_error("interrupted after %lld of %lld runs", (long long)i, (long long)o->repeat);
            else
                say_error("%s", e.text);
            return interrupt_came() ? EXIT_INTERRUPTED : exit_code(s, STAGE_RUN);
        }
        t->runs[t->n_runs++] = seconds;
        if (i == 0) t->first = seconds;
        if (interrupt_came()) {
            say_error("interrupted after %lld of %lld runs", (long long)i + 1, (long long)o->repeat);
            return EXIT_INTERRUPTED;
        }
    }
    term_progress_clear();
    return -1;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Median of the runs behind the first, which plans and packs; of the only one if there is one. */
static double median(const timing *t, double *out_min)
{
    size_t skip = t->n_runs > 1, n = t->n_runs - skip;
    double *sorted = mem_alloc(n * sizeof *sorted);
    memcpy(sorted, t->runs + skip, n * sizeof *sorted);
    qsort(sorted, n, sizeof *sorted, by_size);
    double m = n % 2 ? sorted[n / 2] : (sorted[n / 2 - 1] + sorted[n / 2]) / 2;
    *out_min = sorted[0];
    free(sorted);
    return m;
}

/* ---- Reports ------------------------------------------------------------------------------------------- */

static void print_timing(const timing *t)
{
    double min, m = median(t, &min);
    put("time  load %.3f ms  create %.3f ms  first run %.3f ms", 1e3 * t->load, 1e3 * t->create,
        1e3 * t->first);
    if (t->n_runs > 1)
        put("  median %.3f ms  min %.3f ms  (%zu runs after the first)", 1e3 * m, 1e3 * min, t->n_runs - 1);
    put("\n");
}

static void print_json(const char *path, const inputs *in, const ortc_out *out, size_t n_out, const timing *t,
                       const output_options *oo)
{
    json j;
    double min, m = median(t, &min);
    json_begin(&j, "run");
    json_pair_text(&j, "model", path);
    json_key(&j, "inputs");
    json_array(&j);
    for (size_t i = 0; i < in->count; i++) {
        if (!in->items[i].value) continue;
        json_object(&j);
        json_pair_text(&j, "name", in->items[i].io->name);
        json_pair_text(&j, "type", ortc_dtype_name(ortc_value_dtype(in->items[i].value)));
        json_key(&j, "shape");
        json_array_inline(&j);
        for (int32_t d = 0; d < ortc_value_rank(in->items[i].value); d++)
            json_integer(&j, ortc_value_dims(in->items[i].value)[d]);
        json_array_end(&j);
        json_pair_text(&j, "source", in->items[i].source);
        json_object_end(&j);
    }
    json_array_end(&j);
    outputs_json(&j, out, n_out, oo);
    json_key(&j, "time_ms");
    json_object(&j);
    json_pair_number(&j, "load", 1e3 * t->load);
    json_pair_number(&j, "create", 1e3 * t->create);
    json_pair_number(&j, "first", 1e3 * t->first);
    json_pair_number(&j, "median", 1e3 * m);
    json_pair_number(&j, "min", 1e3 * min);
    json_pair_integer(&j, "runs", (int64_t)t->n_runs);
    json_object_end(&j);
    json_finish(&j);
}

static void print_inputs(const inputs *in)
{
    for (size_t i = 0; i < in->count; i++) {
        if (!in->items[i].value) continue;
        ortc_out shown = {.name = in->items[i].io->name, .value = in->items[i].value};
        put("input %s: ", in->items[i].source);
        outputs_print(&shown, 1, &(output_options){0});
    }
}

static int run_model(const char *path, const run_options *o, const labels *names)
{
    ortc_model *model = NULL;
    ortc_session *session = NULL;
    inputs in = {0};
    timing t = {0};
    ortc_out *out = NULL;
    size_t n_out = 0;
    double start = seconds_now();
    int code = model_open(path, &o->session, &model);
    t.load = seconds_now() - start;
    if (code < 0) code = inputs_resolve(model, &o->session, &o->input, false, &in);
    start = seconds_now();
    if (code < 0) code = session_open(model, &o->session, &session);
    t.create = seconds_now() - start;
    if (code < 0) {
        size_t n_own = 0;
        while (ortc_model_output(model, n_own)) n_own++;
        out = mem_alloc((n_own + o->session.keep.count) * sizeof *out);
        for (; n_out < n_own; n_out++) out[n_out].name = ortc_model_output(model, n_out)->name;
        for (size_t i = 0; i < o->session.keep.count; i++) {
            bool there = false; /* an output as it is, or named twice */
            for (size_t k = 0; k < n_out && !there; k++)
                there = strcmp(out[k].name, o->session.keep.items[i]) == 0;
            if (!there) out[n_out++].name = o->session.keep.items[i];
        }
        cancel = interrupt_watch();
        ortc_state *state = NULL;
        ortc_error e = ORTC_ERROR_INIT;
        if (o->session.n_ties && ortc_state_create(session, &state, &e) != ORTC_OK) {
            say_error("%s", e.text);
            code = EXIT_MEMORY;
        } else
            code = run_all(session, state, o, &in, out, n_out, &t);
        ortc_state_release(state);
    }
    if (o->trace && t.n_runs) {
        int written = trace_write(o->trace, "--profile", o->profile);
        code = written >= 0 && code < 0 ? written : code;
    }
    bool complete = code < 0;
    if (complete) {
        output_options oo = {.topk = o->topk, .labels = o->labels ? names : NULL, .inputs = &in};
        ortc_error e = ORTC_ERROR_INIT;
        code = EXIT_GOOD;
        if (o->out && values_write(o->out, out, n_out, o->compress, &e) != ORTC_OK) {
            say_error("--out: %s", e.text);
            code = EXIT_RUN;
        }
        if (cli.json)
            print_json(path, &in, out, n_out, &t, &oo);
        else {
            if (cli.verbose) print_inputs(&in);
            outputs_print(out, n_out, &oo);
        }
    }
    if (t.n_runs && !cli.json && (o->repeat > 1 || cli.verbose)) print_timing(&t);
    release_outputs(out, n_out);
    free(out);
    free(t.runs);
    inputs_release(&in);
    ortc_session_release(session);
    ortc_model_release(model);
    return finish(code);
}

int command_run(int argc, char **argv)
{
    run_options o = {.repeat = 1};
    const arg_option options[] = {
        ARGS_INPUT(o.input),
        ARGS_SHAPES(o.session),
        {.kind = ARG_HEADING, .help = "Results"},
        {.kind = ARG_TEXT,
         .letter = 'o',
         .name = "out",
         .value = "FILE",
         .to = &o.out,
         .help = "write the outputs: an .npz, or for a single one an .npy or .pb"},
        {.kind = ARG_FLAG,
         .name = "compress",
         .to = &o.compress,
         .help = "deflate what --out writes into an .npz"},
        {.kind = ARG_INTEGER,
         .letter = 'k',
         .name = "topk",
         .value = "K",
         .to = &o.topk,
         .min = 1,
         .max = 1000000,
         .help = "the K best classes of every row of float outputs"},
        {.kind = ARG_TEXT,
         .name = "labels",
         .value = "FILE",
         .to = &o.labels,
         .help = "names of the classes, one a line (with --topk, 5 if that is not given)"},
        {.kind = ARG_INTEGER,
         .letter = 'n',
         .name = "repeat",
         .value = "N",
         .to = &o.repeat,
         .min = 1,
         .max = 100000000,
         .help = "run N times and print the time of loading, creating, the first run and the median (1)"},
        {.kind = ARG_LIST,
         .name = "keep",
         .value = "NAME",
         .to = &o.session.keep,
         .help = "a value inside the model, to be printed and written like an output; may be repeated"},
        {.kind = ARG_TEXT,
         .name = "profile",
         .value = "FILE",
         .to = &o.profile,
         .help = "write what every step of every run took, as a trace for Perfetto or chrome://tracing"},
        ARGS_TIES(o.session),
        {.kind = ARG_INTEGER,
         .name = "deadline",
         .value = "MS",
         .to = &o.deadline_ms,
         .min = 1,
         .max = 1000000000,
         .help = "give up a run after so many milliseconds"},
        ARGS_SESSION(o.session),
        ARGS_COMMON,
    };
    const arg_command command = {
        "run",
        "MODEL [--input [NAME=]VALUE]... [options]",
        "Runs an ONNX model on inputs from files, or made-up ones, and prints its outputs.",
        details,
        "one model",
        1,
        1,
        options};
    arg_list files;
    labels names = {0};
    int code = args_parse(&command, argc, argv, &files);
    if (code < 0) code = input_options_parse(&o.input);
    if (code < 0) code = session_options_parse(&o.session);
    if (code < 0 && o.out && !has_suffix(o.out, ".npz") && !has_suffix(o.out, ".npy") &&
        !has_suffix(o.out, ".pb")) {
        say_error("--out expects a file that ends in .npz, .npy or .pb, got '%s'", o.out);
        code = EXIT_USAGE;
    }
    if (code < 0 && o.labels) code = labels_read(o.labels, &names);
    if (code < 0) code = writable_check("--out", o.out);
    if (code < 0) code = writable_check("--profile", o.profile);
    if (code < 0) code = plugins_load(&o.session.plugins);
    if (code >= 0) return code;
    if (o.labels && !o.topk) o.topk = 5;
    trace profile;
    if (o.profile) {
        trace_init(&profile);
        o.trace = &profile;
    }
    code = run_model(files.items[0], &o, &names);
    if (o.trace) trace_free(o.trace);
    labels_free(&names);
    return code;
}
