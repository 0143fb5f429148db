/* tools/ortc/optimize.c: `ortc optimize`: a model after its normalising passes, written as standard ONNX and
 * proven equal.
 *
 * The new model is written under another name beside its place, loaded again, and run beside the original, as
 * the file has it, on made-up inputs; only then it gets its name. Both run on ref with one kernel per node:
 * what is compared is the graph, not what a provider makes of it.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "args.h"
#include "compare.h"
#include "element.h"
#include "info.h"
#include "inputs.h"
#include "json.h"
#include "session.h"
#include "term.h"

typedef struct optimize_options {
    session_options session; /* --fold, --start-deadline; --set, --shape, --plugin: of the check */
    input_options input;
    arg_list passes_off;
    const char *out, *external;
    bool check, no_check, force, raised;
} optimize_options;

static const char details[] = "The result loads in any ONNX runtime: nothing fused, no operators of ortc's "
                              "own; operators of plugins keep their\n"
                              "domain. Its opset is the file's, and at least 17; what newer operators stand "
                              "for is written out, unless --raised is\n"
                              "given. The check runs the original without passes and the written file, on\n"
                              "random inputs, all free dimensions 1 unless --set, --shape or --input says "
                              "otherwise. Where it cannot be done, or\n"
                              "fails, nothing is left behind; --no-check writes all the same.\n"
                              "\n"
                              "examples:\n"
                              "  ortc optimize model.onnx -o small.onnx\n"
                              "  ortc optimize model.onnx -o big.onnx --external big.weights --set batch=2\n";

/* ---- The check ----------------------------------------------------------------------------------------- */

/* What folding and merging may change: the rounding of a few operations in the narrowest type. */
static tolerance tolerance_of(const ortc_value *v)
{
    switch (ortc_value_dtype(v)) {
    case ORTC_BF16: return (tolerance){2e-2, 1e-2, true};
    case ORTC_F16: return (tolerance){4e-3, 1e-3, true};
    default: return (tolerance){1e-4, 1e-5, true};
    }
}

static void release(ortc_out *out, size_t n)
{
    for (size_t i = 0; i < n; i++) ortc_value_release(out[i].value);
    free(out);
}

/* Runs a model on ref. -1: out has its results. */
static int run_plain(ortc_model *m, const optimize_options *o, const inputs *in, const char *which,
                     ortc_out *out, size_t n_out)
{
    session_options so = o->session;
    so.provider = "ref";
    so.no_fusion = true;
    ortc_session *session = NULL;
    ortc_error e = ORTC_ERROR_INIT;
    int code;
    ortc_status s = session_create(m, &so, &session, &e, &code);
    if (s == ORTC_OK) {
        ortc_run_args args = ORTC_RUN_ARGS_INIT;
        args.in = in->in;
        args.n_in = in->n_in;
        args.out = out;
        args.n_out = n_out;
        args.seed = (uint64_t)o->input.seed;
        s = ortc_run(session, &args, &e);
        code = exit_code(s, STAGE_RUN);
    }
    ortc_session_release(session);
    if (s == ORTC_OK) return -1;
    say_error("the check cannot run the %s model: %s; --input, --set and --shape give it other inputs, "
              "--no-check does without",
              which, e.text);
    return code;
}

static int compare_runs(ortc_model *before, ortc_model *after, const optimize_options *o, const inputs *in)
{
    size_t n = 0;
    while (ortc_model_output(before, n)) n++;
    ortc_out *a = mem_alloc(n * sizeof *a), *b = mem_alloc(n * sizeof *b);
    for (size_t i = 0; i < n; i++) a[i].name = b[i].name = ortc_model_output(before, i)->name;
    int code = run_plain(before, o, in, "original", a, n);
    if (code < 0) code = run_plain(after, o, in, "written", b, n);
    for (size_t i = 0; i < n && code < 0; i++) {
        tolerance t = tolerance_of(a[i].value);
        buffer why = {0};
        if (!values_equal(b[i].value, a[i].value, &t, &why)) {
            say_error(
                "the written model is not the same: output '%s': %s; nothing is written. Please report this",
                a[i].name, (const char *)why.data);
            code = EXIT_DIFFERENT;
        }
        free(why.data);
    }
    release(a, n);
    release(b, n);
    return code;
}

/* The library's text about the file that is written, under the name that it will have. */
static void say_about(const char *text, const char *written, const char *name)
{
    const char *at = written ? strstr(text, written) : NULL;
    if (at)
        say_error("%.*s%s%s", (int)(at - text), text, name, at + strlen(written));
    else
        say_error("%s", text);
}

static int load_plain(const char *path, const char *written_for, ortc_model **out)
{
    ortc_model_options mo = ORTC_MODEL_OPTIONS_INIT;
    mo.flags = ORTC_MODEL_NO_PASSES;
    ortc_error e = ORTC_ERROR_INIT;
    ortc_status s = ortc_model_load(path, &mo, out, &e);
    if (s == ORTC_OK) return -1;
    say_about(e.text, written_for ? path : NULL, written_for);
    return exit_code(s, STAGE_LOAD);
}

/* The written file loads, and gives the same. *out_nodes: how many it has. */
static int check_written(const char *path, const char *written, const optimize_options *o,
                         uint64_t *out_nodes)
{
    ortc_model *before = NULL, *after = NULL;
    inputs in = {0};
    input_options io = o->input;
    const char *word[] = {"rand"};
    int code = load_plain(written, o->out, &after);
    if (code < 0) {
        *out_nodes = ortc_model_describe(after)->n_nodes;
        if (!o->no_check) code = load_plain(path, NULL, &before);
    }
    if (code < 0 && !o->no_check) {
        bool needs = false;
        const ortc_io *x;
        for (size_t i = 0; (x = ortc_model_input(before, i)); i++) needs |= !(x->flags & ORTC_IO_OPTIONAL);
        if (!io.inputs.count && needs) io.inputs = (arg_list){1, word};
        code = inputs_resolve(before, &o->session, &io, true, &in);
        if (code < 0) code = compare_runs(before, after, o, &in);
        inputs_release(&in);
    }
    ortc_model_release(before);
    ortc_model_release(after);
    return code;
}

/* ---- What it says -------------------------------------------------------------------------------------- */

static uint64_t file_bytes(const char *path)
{
    struct stat s;
    return path && stat(path, &s) == 0 ? (uint64_t)s.st_size : 0;
}

typedef struct outcome {
    const char *path;
    char *external; /* path; NULL: none */
    uint64_t nodes, bytes, external_bytes;
} outcome;

static void print_json(ortc_model *m, const char *path, const optimize_options *o, const outcome *r)
{
    const ortc_model_info *d = ortc_model_describe(m);
    json j = {0};
    json_begin(&j, "optimize");
    json_pair_text(&j, "model", path);
    json_pair_text(&j, "out", r->path);
    json_pair_unsigned(&j, "nodes_before", d->n_nodes);
    json_pair_unsigned(&j, "nodes_after", r->nodes);
    json_pair_unsigned(&j, "bytes_before", file_bytes(path));
    json_pair_unsigned(&j, "bytes_after", r->bytes);
    json_pair_unsigned(&j, "external_bytes", r->external_bytes);
    json_key(&j, "passes");
    json_object(&j);
    for (size_t i = 0; i < d->n_passes; i++) json_pair_unsigned(&j, d->pass_names[i], d->pass_edits[i]);
    json_object_end(&j);
    json_pair_bool(&j, "checked", !o->no_check);
    json_finish(&j);
}

static void print_text(ortc_model *m, const char *path, const optimize_options *o, const outcome *r)
{
    const ortc_model_info *d = ortc_model_describe(m);
    char *before = info_bytes(file_bytes(path)), *after = info_bytes(r->bytes),
         *external = info_bytes(r->external_bytes);
    table t;
    table_init(&t, "lrl");
    for (size_t i = 0; i < d->n_passes; i++) {
        table_cell(&t, d->pass_names[i]);
        table_format(&t, "%llu", (unsigned long long)d->pass_edits[i]);
        table_cell(&t, d->pass_edits[i] == 1 ? "edit" : "edits");
    }
    put("%s: %llu nodes, %s\n", path, (unsigned long long)d->n_nodes, before);
    table_print(&t, 2, false);
    put("%s: %llu nodes, %s%s%s%s%s\n", r->path, (unsigned long long)r->nodes, after,
        r->external ? ", and " : "", r->external ? external : "", r->external ? " in " : "",
        r->external ? r->external : "");
    put("%s\n", o->no_check ? "not checked" : "checked: same outputs on random inputs, on ref");
    free(before);
    free(after);
    free(external);
}

/* ---- The command --------------------------------------------------------------------------------------- */

static bool same_file(const char *a, const char *b)
{
    struct stat x, y;
    return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

static int check_options(const char *path, const optimize_options *o)
{
    if (!o->out) {
        say_error("expects -o OUT.onnx: the file to write");
        return EXIT_USAGE;
    }
    if (o->check && o->no_check) {
        say_error("--check and --no-check contradict each other");
        return EXIT_USAGE;
    }
    if (o->external && (!*o->external || strchr(o->external, '/'))) {
        say_error("--external expects a file name without a folder (it lies beside OUT.onnx), got '%s'",
                  o->external);
        return EXIT_USAGE;
    }
    struct stat there;
    if (stat(o->out, &there) == 0 && !S_ISREG(there.st_mode)) {
        say_error("-o expects the name of a file, '%s' is none", o->out);
        return EXIT_USAGE;
    }
    int code = writable_check("-o", o->out);
    if (code >= 0) return code;
    if (!o->force && same_file(path, o->out)) {
        say_error("'%s' is the model itself; --force writes over it", o->out);
        return EXIT_USAGE;
    }
    return -1;
}

/* FILE beside OUT. What is there is not replaced, --force or not: it may hold the weights of the model at
 * hand. */
static int place_external(const optimize_options *o, outcome *r)
{
    const char *slash = strrchr(o->out, '/');
    r->external = mem_printf("%.*s%s", slash ? (int)(slash - o->out) + 1 : 0, o->out, o->external);
    if (access(r->external, F_OK) != 0) return -1;
    say_error(
        "--external: '%s' is there already and may belong to a model; remove it, or choose another name",
        r->external);
    return EXIT_USAGE;
}

/* Writes, checks, gives the name. On failure nothing new is left. */
static int write_checked(ortc_model *model, const char *path, const optimize_options *o, outcome *r)
{
    ortc_save_options so = ORTC_SAVE_OPTIONS_INIT;
    ortc_error e = ORTC_ERROR_INIT;
    char *written = mem_printf("%s.%ld.unchecked", o->out, (long)getpid());
    int code = -1;

    so.flags = (o->external ? ORTC_SAVE_EXTERNAL : 0u) | (o->raised ? ORTC_SAVE_RAISED : 0u);
    so.external_file = o->external;
    term_progress(0, 0, "writing");
    ortc_status s = ortc_model_save(model, written, &so, &e);
    term_progress(0, 0, "checking what was written");
    if (s != ORTC_OK) {
        say_about(e.text, written, o->out);
        code = s == ORTC_OUT_OF_MEMORY ? EXIT_MEMORY : EXIT_RUN;
    }
    if (code < 0) code = check_written(path, written, o, &r->nodes);
    r->bytes = file_bytes(written);
    r->external_bytes = file_bytes(r->external);
    if (code < 0 && rename(written, o->out) != 0) {
        say_error("cannot write '%s': %s", o->out, strerror(errno));
        code = EXIT_RUN;
    }
    if (code >= 0) {
        unlink(written);
        if (s == ORTC_OK && r->external) unlink(r->external);
    }
    free(written);
    return code;
}

static int optimize_model(const char *path, const optimize_options *o)
{
    ortc_model *model = NULL;
    outcome r = {.path = o->out};
    ortc_model_options mo = model_options(&o->session);
    ortc_error e = ORTC_ERROR_INIT;
    int code = o->external ? place_external(o, &r) : -1;

    if (code < 0) {
        mo.passes_off = o->passes_off.items;
        mo.n_passes_off = o->passes_off.count;
        ortc_status s = ortc_model_load(path, &mo, &model, &e);
        if (s != ORTC_OK) {
            say_error("%s", e.text);
            code = exit_code(s, STAGE_LOAD);
        } else
            model_note(model);
    }
    if (code < 0) code = write_checked(model, path, o, &r);
    term_progress_clear();
    if (code < 0 && cli.json)
        print_json(model, path, o, &r);
    else if (code < 0)
        print_text(model, path, o, &r);
    free(r.external);
    ortc_model_release(model);
    return finish(code < 0 ? EXIT_GOOD : code);
}

int command_optimize(int argc, char **argv)
{
    optimize_options o = {0};
    const arg_option options[] = {
        {.kind = ARG_HEADING, .help = "What is written"},
        {.kind = ARG_TEXT,
         .letter = 'o',
         .name = "out",
         .value = "OUT.onnx",
         .to = &o.out,
         .help = "the new model; replaced if it is there"},
        {.kind = ARG_TEXT,
         .name = "external",
         .value = "FILE",
         .to = &o.external,
         .help =
             "put initializers of 1 KiB and more into this file beside OUT.onnx; it must not be there yet"},
        {.kind = ARG_LIST,
         .name = "no-pass",
         .value = "NAME",
         .to = &o.passes_off,
         .help = "leave a pass out; 'ortc info --passes' lists them; may be repeated"},
        {.kind = ARG_FLAG,
         .name = "raised",
         .to = &o.raised,
         .help = "write what the passes raised (Gelu, Attention) as such, even if that takes a newer opset "
                 "than MODEL's"},
        {.kind = ARG_FLAG, .name = "force", .to = &o.force, .help = "OUT.onnx may be MODEL itself"},
        ARGS_START(o.session),
        {.kind = ARG_HEADING, .help = "The check"},
        {.kind = ARG_FLAG,
         .name = "check",
         .to = &o.check,
         .help = "load what was written and compare outputs: the default"},
        {.kind = ARG_FLAG, .name = "no-check", .to = &o.no_check, .help = "only load what was written"},
        {.kind = ARG_LIST,
         .letter = 'i',
         .name = "input",
         .value = "[NAME=]VALUE",
         .to = &o.input.inputs,
         .help = "as in 'ortc run' (rand); inputs that are not named are zeros then"},
        {.kind = ARG_INTEGER,
         .name = "seed",
         .value = "N",
         .to = &o.input.seed,
         .max = INT64_MAX,
         .help = "for rand, and for the model's own random operators (0)"},
        ARGS_SHAPES(o.session),
        {.kind = ARG_LIST,
         .name = "plugin",
         .value = "FILE",
         .to = &o.session.plugins,
         .help = "load a plugin: operators, kernels; may be repeated"},
        ARGS_COMMON,
    };
    const arg_command command = {
        "optimize",
        "MODEL -o OUT.onnx [options]",
        "Writes a model as ortc's graph passes leave it, as standard ONNX, and checks it.",
        details,
        "one model",
        1,
        1,
        options};
    arg_list files;
    int code = args_parse(&command, argc, argv, &files);
    if (code < 0) code = input_options_parse(&o.input);
    if (code < 0) code = session_options_parse(&o.session);
    if (code < 0) code = check_options(files.items[0], &o);
    if (code < 0) code = plugins_load(&o.session.plugins);
    return code < 0 ? optimize_model(files.items[0], &o) : code;
}
