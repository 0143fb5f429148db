/* tools/ortc/profile.c: `ortc profile`: where the time of a model goes: a table by operator, node or kernel,
 * held against what this machine gives, a trace, and a page (profile_page.c). A step that runs steps of its
 * own (If, Loop) is charged with what is left of its time without them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "inputs.h"
#include "interrupt.h"
#include "json.h"
#include "profile_page.h"
#include "session.h"
#include "term.h"
#include "trace.h"

typedef struct profile_options {
    session_options session;
    input_options input;
    int64_t runs, warmup, top;
    int by;
    const char *trace, *page;
} profile_options;

enum { BY_OP, BY_NODE, BY_KERNEL };
static const char *const by_choices[] = {"op", "node", "kernel", NULL};

static const char details[] =
    "Inputs that are not given are random. The flops and bytes are what kernels estimate of themselves, not\n"
    "counted by the machine; a step without them is a kernel that does not tell. roof: the least time that "
    "they\n"
    "can take on this machine, by its share of the time taken; small models that stay in caches exceed it,\n"
    "and so do Winograd's convolutions, whose flops are counted as those of the definition.\n"
    "\n"
    "examples:\n"
    "  ortc profile model.onnx --set batch=8\n"
    "  ortc profile model.onnx --by node --top 20 --trace trace.json\n"
    "  ortc profile model.onnx --page profile.html\n";

/* ---- Sums ---------------------------------------------------------------------------------------------- */

static bool same(const profile_line *l, const trace_event *e, int by)
{
    if (by == BY_OP) return strcmp(l->op, *e->op ? e->op : e->name) == 0;
    if (strcmp(l->kernel, e->kernel) != 0) return false;
    return by == BY_KERNEL ? strcmp(l->op, *e->op ? e->op : e->name) == 0 : strcmp(l->name, e->name) == 0;
}

static void add(profile_lines *all, const trace_event *e, double own, int by)
{
    size_t i = 0;
    while (i < all->count && !same(&all->items[i], e, by)) i++;
    if (i == all->count) {
        all->items = mem_grow(all->items, all->count + 1, sizeof *all->items);
        all->items[all->count++] = (profile_line){.name = e->name,
                                                  .op = *e->op ? e->op : e->name,
                                                  .kernel = e->kernel,
                                                  .provider = e->provider};
    }
    profile_line *l = &all->items[i];
    l->calls++;
    l->own += own;
    l->flops += e->flops;
    l->bytes += e->bytes;
    all->total += own;
}

static int longest(const void *a, const void *b)
{
    double x = ((const profile_line *)a)->own, y = ((const profile_line *)b)->own;
    return (x < y) - (x > y);
}

/* Steps are told of when they end: those inside one stand right before it. */
static profile_lines sum(const trace *t, int by)
{
    profile_lines all = {0};
    size_t *open = mem_alloc(t->count * sizeof *open), n = 0; /* steps that may yet be inside a later one */
    for (size_t i = 0; i < t->count; i++) {
        const trace_event *e = &t->events[i];
        if (e->kind != ORTC_PROFILE_STEP) continue;
        int64_t inside = 0;
        for (; n && t->events[open[n - 1]].start_ns >= e->start_ns; n--)
            inside += t->events[open[n - 1]].duration_ns;
        open[n++] = i;
        add(&all, e, 1e-9 * (double)(e->duration_ns - inside), by);
    }
    free(open);
    if (all.count) qsort(all.items, all.count, sizeof *all.items, longest);
    return all;
}

/* ---- Told ---------------------------------------------------------------------------------------------- */

static void rate_cell(table *t, double amount, double seconds)
{
    if (amount > 0 && seconds > 0)
        table_format(t, "%.3g", 1e-9 * amount / seconds);
    else
        table_cell(t, "");
}

static void print(const profile_lines *all, const profile_options *o, const machine *m, double wall,
                  size_t runs)
{
    static const char *const heading[] = {"ms a run", "share", "sum",      "calls",  "GFLOP/s",
                                          "GB/s",     "roof",  "operator", "kernel", "node"};
    table t;
    table_init(&t, "rrrrrrrlll");
    for (size_t i = 0; i < COUNT_OF(heading); i++)
        table_cell(&t, (i == 9 && o->by != BY_NODE) || (i == 8 && o->by == BY_OP) ? "" : heading[i]);
    double running = 0;
    for (size_t i = 0; i < all->count; i++) {
        const profile_line *l = &all->items[i];
        if (o->top && (int64_t)i >= o->top) break;
        running += l->own;
        table_format(&t, "%.4f", 1e3 * l->own / (double)runs);
        table_format(&t, "%.1f %%", 1e2 * l->own / all->total);
        table_format(&t, "%.1f %%", 1e2 * running / all->total);
        table_format(&t, "%.4g", (double)l->calls / (double)runs);
        rate_cell(&t, l->flops, l->own);
        rate_cell(&t, l->bytes, l->own);
        const double roof = profile_roof(l, m);
        if (roof > 0)
            table_format(&t, "%.0f %%", 1e2 * roof);
        else
            table_cell(&t, "");
        table_cell(&t, l->op);
        table_cell(&t, o->by == BY_OP ? "" : l->kernel);
        table_cell(&t, o->by == BY_NODE ? l->name : "");
    }
    table_print(&t, 0, true);
    if (o->top && (int64_t)all->count > o->top) put("and %zu more\n", all->count - (size_t)o->top);
    put("%zu runs of %.3f ms; in steps %.1f %%\n", runs, 1e3 * wall / (double)runs, 1e2 * all->total / wall);
    put("roof: the share of what this machine gives, measured now on %u thread%s: %.4g GFLOP/s of f32, %.3g "
        "GB/s\n",
        m->threads, m->threads == 1 ? "" : "s", 1e-9 * m->flops, 1e-9 * m->bandwidth);
}

static void print_json(const profile_lines *all, const profile_options *o, const machine *m, const char *path,
                       double wall, size_t runs)
{
    json j;
    json_begin(&j, "profile");
    json_pair_text(&j, "model", path);
    json_pair_text(&j, "by", by_choices[o->by]);
    json_pair_unsigned(&j, "runs", runs);
    json_pair_number(&j, "run_ms", 1e3 * wall / (double)runs);
    json_pair_number(&j, "steps_ms", 1e3 * all->total / (double)runs);
    json_key(&j, "machine");
    json_object(&j);
    json_pair_unsigned(&j, "threads", m->threads);
    json_pair_number(&j, "flops", m->flops);
    json_pair_number(&j, "bytes", m->bandwidth);
    json_object_end(&j);
    json_key(&j, "lines");
    json_array(&j);
    for (size_t i = 0; i < all->count && (!o->top || (int64_t)i < o->top); i++) {
        const profile_line *l = &all->items[i];
        json_object(&j);
        json_pair_text(&j, "op", l->op);
        if (o->by != BY_OP) json_pair_text(&j, "kernel", l->kernel);
        if (o->by != BY_OP) json_pair_text(&j, "provider", l->provider);
        if (o->by == BY_NODE) json_pair_text(&j, "node", l->name);
        json_pair_number(&j, "ms", 1e3 * l->own / (double)runs);
        json_pair_number(&j, "share", l->own / all->total);
        json_pair_number(&j, "calls", (double)l->calls / (double)runs);
        json_pair_number(&j, "flops", l->flops / (double)runs);
        json_pair_number(&j, "bytes", l->bytes / (double)runs);
        json_pair_number(&j, "roof", profile_roof(l, m));
        json_object_end(&j);
    }
    json_array_end(&j);
    json_finish(&j);
}

/* ---- The command --------------------------------------------------------------------------------------- */

/* Warm-up and measured runs; the trace sees the latter. -1: good. */
static int run_all(ortc_model *model, ortc_session *session, const inputs *in, const profile_options *o,
                   trace *t, profile_runs *runs)
{
    size_t n_out = 0;
    while (ortc_model_output(model, n_out)) n_out++;
    ortc_out *out = mem_alloc(n_out * sizeof *out);
    for (size_t i = 0; i < n_out; i++) out[i].name = ortc_model_output(model, i)->name;
    ortc_run_args args = ORTC_RUN_ARGS_INIT;
    args.in = in->in;
    args.n_in = in->n_in;
    args.out = out;
    args.n_out = n_out;
    args.seed = (uint64_t)o->input.seed;
    args.cancel = interrupt_watch();
    int code = -1;
    runs->items = mem_alloc((size_t)o->runs * sizeof *runs->items);
    for (int64_t i = 0; i < o->warmup + o->runs && code < 0 && !interrupt_came(); i++) {
        term_progress((size_t)i, (size_t)(o->warmup + o->runs), "runs");
        ortc_error e = ORTC_ERROR_INIT;
        const bool measured = i >= o->warmup;
        const size_t first = t->count;
        args.profiler = measured ? &t->profiler : NULL;
        const double start = seconds_now();
        const ortc_status s = ortc_run(session, &args, &e);
        const double seconds = seconds_now() - start;
        if (measured) {
            runs->wall += seconds;
            runs->items[runs->count++] = (profile_run){seconds, first, t->count};
        }
        for (size_t k = 0; k < n_out; k++) {
            ortc_value_release(out[k].value);
            out[k].value = NULL;
        }
        if (s == ORTC_OK) continue;
        say_error("%s", e.text);
        code = interrupt_came() ? EXIT_INTERRUPTED : exit_code(s, STAGE_RUN);
    }
    term_progress_clear();
    free(out);
    if (code < 0 && runs->count == 0) {
        say_error("interrupted before the first run was measured");
        code = EXIT_INTERRUPTED;
    }
    return code;
}

static int profile_model(const char *path, const profile_options *o)
{
    ortc_model *model = NULL;
    ortc_session *session = NULL;
    inputs in = {0};
    trace t;
    profile_runs runs = {0};
    trace_init(&t);
    int code = model_open(path, &o->session, &model);
    if (code < 0) code = inputs_resolve(model, &o->session, &o->input, false, &in);
    if (code < 0) code = session_open(model, &o->session, &session);
    if (code < 0) code = run_all(model, session, &in, o, &t, &runs);
    if (code < 0) {
        machine m;
        machine_measure((uint32_t)o->session.threads, &m);
        profile_lines all = sum(&t, o->by);
        if (cli.json)
            print_json(&all, o, &m, path, runs.wall, runs.count);
        else
            print(&all, o, &m, runs.wall, runs.count);
        free(all.items);
        if (o->page) {
            profile_lines nodes = sum(&t, BY_NODE);
            code = profile_page(o->page, &(profile_view){path, o->session.provider, &t, &runs, &nodes, &m,
                                                         session, &in});
            free(nodes.items);
        }
        if (code < 0 && o->trace) code = trace_write(&t, "--trace", o->trace);
        if (code < 0) code = interrupt_came() ? EXIT_INTERRUPTED : EXIT_GOOD;
    }
    trace_free(&t);
    free(runs.items);
    inputs_release(&in);
    ortc_session_release(session);
    ortc_model_release(model);
    return finish(code);
}

int command_profile(int argc, char **argv)
{
    profile_options o = {.runs = 20, .warmup = 3};
    const arg_option options[] = {
        {.kind = ARG_HEADING, .help = "Measuring"},
        {.kind = ARG_CHOICE,
         .name = "by",
         .value = "WHAT",
         .to = &o.by,
         .choices = by_choices,
         .help = "one line per op, node or kernel (op)"},
        {.kind = ARG_INTEGER,
         .name = "top",
         .value = "N",
         .to = &o.top,
         .max = 1000000,
         .help = "the N longest; 0: all (0)"},
        {.kind = ARG_INTEGER,
         .letter = 'n',
         .name = "runs",
         .value = "N",
         .to = &o.runs,
         .min = 1,
         .max = 1000000,
         .help = "so many runs (20)"},
        {.kind = ARG_INTEGER,
         .name = "warmup",
         .value = "N",
         .to = &o.warmup,
         .max = 1000000,
         .help = "runs before, which are not counted (3)"},
        {.kind = ARG_TEXT,
         .name = "trace",
         .value = "FILE",
         .to = &o.trace,
         .help = "write every step as a trace for Perfetto or chrome://tracing"},
        {.kind = ARG_TEXT,
         .name = "page",
         .value = "FILE.html",
         .to = &o.page,
         .help = "write one page: timeline, memory over time, roofline, table; it needs no network"},
        ARGS_INPUT(o.input),
        ARGS_SHAPES(o.session),
        ARGS_SESSION(o.session),
        ARGS_COMMON,
    };
    const arg_command command = {"profile",
                                 "MODEL [--by op|node|kernel] [options]",
                                 "Tells where the time of an ONNX model goes.",
                                 details,
                                 "one model",
                                 1,
                                 1,
                                 options};
    arg_list files;
    int code = args_parse(&command, argc, argv, &files);
    if (code < 0) code = input_options_parse(&o.input);
    if (code < 0) code = session_options_parse(&o.session);
    if (code < 0) code = writable_check("--trace", o.trace);
    if (code < 0) code = writable_check("--page", o.page);
    if (code < 0) code = plugins_load(&o.session.plugins);
    o.input.rest_is_random = true;
    return code < 0 ? profile_model(files.items[0], &o) : code;
}
