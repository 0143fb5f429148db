/* tools/ortc/test.c: `ortc test`: runs folders of test cases and says which fail, all in this process. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "cases.h"
#include "element.h"
#include "files.h"
#include "interrupt.h"
#include "json.h"
#include "report.h"
#include "session.h"
#include "term.h"

typedef struct test_options {
    session_options session;
    const char *filter, *skip_list, *junit;
    bool list;
    int unsupported; /* 0: counts as failed, 1: as skipped */
    int64_t deadline_ms;
} test_options;

static const char details[] =
    "A case is a folder with model.onnx and test_data_set_*/input_*.pb and output_*.pb. Results must have "
    "the expected\n"
    "types and shapes, and values within rtol 1e-3 (bf16: 2^-6) and atol 1e-7, or what tolerance.json beside "
    "the model says:\n"
    "{\"rtol\": 1e-3, \"atol\": 1e-7, \"compare\": \"values\"}, or \"compare\": \"shape\" where values are "
    "random.\n"
    "A skip list has a line for each case: its name (or a glob), then the reason. Listed cases are run all "
    "the same: one\n"
    "that passes is a failure, so that the list cannot outlive its reasons.\n"
    "The last line is always: N passed, N failed, N skipped. The exit code is 1 if any failed.\n"
    "\n"
    "examples:\n"
    "  ortc test suite -k 'test_conv*' -v\n"
    "  ortc test suite --skip-list known.txt --junit results.xml\n";

static const char *const unsupported_choices[] = {"fail", "skip", NULL};

static ortc_cancel *cancel;

/* ---- One data set -------------------------------------------------------------------------------------- */

typedef struct values {
    size_t count;
    ortc_in *items; /* name and value, like ortc_run's inputs; value NULL: the file is not there */
} values;

static void values_free(values *v)
{
    for (size_t i = 0; i < v->count; i++) ortc_value_release(v->items[i].value);
    free(v->items);
    *v = (values){0};
}

static const ortc_io *io_at(ortc_model *m, bool outputs, size_t i)
{
    return outputs ? ortc_model_output(m, i) : ortc_model_input(m, i);
}

static size_t count_files(const char *folder, const char *kind, size_t most)
{
    size_t n = 0;
    for (size_t i = 0; i < most; i++) {
        char *path = mem_printf("%s/%s_%zu.pb", folder, kind, i);
        n += access(path, F_OK) == 0;
        free(path);
    }
    return n;
}

/* Files belong to inputs by position. Models of IR 3 list initializers among the inputs: when there are as
 * many files as inputs without a default, the others are passed over. */
static ortc_status read_values(ortc_model *m, const char *folder, bool outputs, values *out,
                               ortc_error *error)
{
    const char *kind = outputs ? "output" : "input";
    size_t all = 0, required = 0;
    for (const ortc_io *io; (io = io_at(m, outputs, all)); all++) required += !(io->flags & ORTC_IO_OPTIONAL);
    *out = (values){.items = mem_alloc(all * sizeof *out->items)};
    bool pass_over = count_files(folder, kind, all) == required;
    ortc_status s = ORTC_OK;
    for (size_t i = 0, file = 0; i < all && s == ORTC_OK; i++) {
        const ortc_io *io = io_at(m, outputs, i);
        ortc_in *v = &out->items[out->count++];
        *v = (ortc_in){.name = io->name};
        if (pass_over && io->flags & ORTC_IO_OPTIONAL) continue;
        char *path = mem_printf("%s/%s_%zu.pb", folder, kind, file++);
        if (access(path, F_OK) == 0) s = value_read(path, io->type, &v->value, error);
        free(path);
    }
    return s;
}

typedef struct outcome {
    enum { PASSED, FAILED, UNSUPPORTED } result;
    buffer why; /* when it did not pass */
} outcome;

static void failed(outcome *o, ortc_status s, const ortc_error *e)
{
    o->result = s == ORTC_UNSUPPORTED ? UNSUPPORTED : FAILED;
    buffer_printf(&o->why, "%s: %s", ortc_status_name(s), e->text);
}

static void compare_outputs(const values *expected, const ortc_out *got, size_t n, const tolerance *t,
                            outcome *o)
{
    for (size_t i = 0; i < n && o->result == PASSED; i++) {
        buffer why = {0};
        if (!values_equal(got[i].value, expected->items[i].value, t, &why)) {
            o->result = FAILED;
            buffer_printf(&o->why, "output '%s': %s", got[i].name, (const char *)why.data);
        }
        free(why.data);
    }
}

static void run_data_set(ortc_model *m, ortc_session *session, const char *folder,
                         const test_options *options, const tolerance *t, outcome *o)
{
    values in = {0}, expected = {0};
    ortc_error e = ORTC_ERROR_INIT;
    ortc_status s = read_values(m, folder, false, &in, &e);
    if (s == ORTC_OK) s = read_values(m, folder, true, &expected, &e);
    if (s == ORTC_OK) {
        ortc_in *given = mem_alloc(in.count * sizeof *given);
        ortc_out *got = mem_alloc(expected.count * sizeof *got);
        ortc_run_args args = ORTC_RUN_ARGS_INIT;
        for (size_t i = 0; i < in.count; i++)
            if (in.items[i].value) given[args.n_in++] = in.items[i];
        /* Outputs without a file are not asked for; expected is packed to match. */
        size_t n = 0;
        for (size_t i = 0; i < expected.count; i++)
            if (expected.items[i].value) {
                got[n].name = expected.items[i].name;
                ortc_in item = expected.items[i];
                expected.items[i].value = NULL;
                expected.items[n++] = item;
            }
        args.in = given;
        args.out = got;
        args.n_out = n;
        args.cancel = cancel;
        if (options->deadline_ms)
            args.deadline_ns = (int64_t)(seconds_now() * 1e9) + options->deadline_ms * 1000000;
        s = n ? ortc_run(session, &args, &e) : fail(&e, ORTC_NOT_FOUND, "%s has no output_*.pb", folder);
        if (s == ORTC_OK) compare_outputs(&expected, got, n, t, o);
        for (size_t i = 0; i < n; i++) ortc_value_release(got[i].value);
        free(given);
        free(got);
    }
    if (s != ORTC_OK) failed(o, s, &e);
    values_free(&in);
    values_free(&expected);
}

/* ---- One case ------------------------------------------------------------------------------------------ */

static outcome run_case(const test_case *c, const test_options *options)
{
    outcome o = {.result = PASSED};
    ortc_model *model = NULL;
    ortc_session *session = NULL;
    ortc_error e = ORTC_ERROR_INIT;
    tolerance t;
    long *sets = NULL;
    int ignored;
    size_t n_sets = data_sets(c->folder, &sets);
    char *path = mem_printf("%s/model.onnx", c->folder);
    const ortc_model_options mo = model_options(&options->session);
    ortc_status s = tolerance_read(c->folder, &t, &e);
    if (s == ORTC_OK && n_sets == 0) s = fail(&e, ORTC_NOT_FOUND, "the case has no test_data_set_* folder");
    if (s == ORTC_OK) s = ortc_model_load(path, &mo, &model, &e);
    if (s == ORTC_OK) s = session_create(model, &options->session, &session, &e, &ignored);
    if (s != ORTC_OK) failed(&o, s, &e);
    for (size_t i = 0; i < n_sets && s == ORTC_OK && o.result == PASSED; i++) {
        char *folder = mem_printf("%s/test_data_set_%ld", c->folder, sets[i]);
        run_data_set(model, session, folder, options, &t, &o);
        free(folder);
        if (o.result != PASSED && n_sets > 1) buffer_printf(&o.why, " (data set %ld)", sets[i]);
    }
    ortc_session_release(session);
    ortc_model_release(model);
    free(path);
    free(sets);
    return o;
}

/* ---- All of them --------------------------------------------------------------------------------------- */

static void judge(const test_case *c, outcome *o, double seconds, const test_options *options, report *r)
{
    verdict v = o->result == PASSED ? VERDICT_PASSED : VERDICT_FAILED;
    const char *why = o->why.data ? (const char *)o->why.data : "";
    if (c->skip && o->result == PASSED) {
        v = VERDICT_FAILED;
        buffer_printf(&o->why, "passes, but the skip list names it: %s", c->skip);
        why = (const char *)o->why.data;
    } else if (c->skip) {
        v = VERDICT_SKIPPED;
        why = c->skip;
    } else if (o->result == UNSUPPORTED && options->unsupported) {
        v = VERDICT_SKIPPED;
    }
    report_case(r, c->name, v, why, seconds);
}

static int run_cases(const cases *c, const test_options *options)
{
    report r;
    cancel = interrupt_watch();
    report_begin(&r, c->count);
    for (size_t i = 0; i < c->count && !interrupt_came(); i++) {
        term_progress(i, c->count, c->items[i].name);
        double start = seconds_now();
        outcome o = run_case(&c->items[i], options);
        if (!interrupt_came()) judge(&c->items[i], &o, seconds_now() - start, options, &r);
        free(o.why.data);
    }
    term_progress_clear();
    ortc_error e = ORTC_ERROR_INIT;
    int code = interrupt_came() ? EXIT_INTERRUPTED : r.failed ? EXIT_DIFFERENT : EXIT_GOOD;
    if (interrupt_came()) say_error("interrupted after %zu of %zu cases", r.count, c->count);
    if (options->junit && report_junit(&r, options->junit, &e) != ORTC_OK) {
        say_error("--junit: %s", e.text);
        code = code == EXIT_GOOD ? EXIT_RUN : code;
    }
    report_end(&r);
    return code;
}

static int select_cases(const arg_list *folders, const test_options *o, cases *c, char **out_skip_text)
{
    ortc_error e = ORTC_ERROR_INIT;
    for (size_t i = 0; i < folders->count; i++)
        if (cases_find(folders->items[i], c, &e) != ORTC_OK) {
            say_error("%s", e.text);
            return EXIT_USAGE;
        }
    cases_sort(c);
    if (c->count == 0) {
        say_error("expected folders that hold test cases (model.onnx beside test_data_set_*), there are none "
                  "below '%s'",
                  folders->items[0]);
        return EXIT_USAGE;
    }
    size_t unmatched;
    if (o->skip_list && cases_skip(c, o->skip_list, out_skip_text, &unmatched, &e) != ORTC_OK) {
        say_error("--skip-list: %s", e.text);
        return EXIT_USAGE;
    }
    if (o->skip_list && unmatched)
        say_note("%zu line%s of the skip list match%s no case", unmatched, unmatched == 1 ? "" : "s",
                 unmatched == 1 ? "es" : "");
    if (o->filter) cases_filter(c, o->filter);
    if (c->count == 0) {
        say_error("-k: no case matches '%s'", o->filter);
        return EXIT_USAGE;
    }
    return -1;
}

int command_test(int argc, char **argv)
{
    test_options o = {0};
    const arg_option options[] = {
        {.kind = ARG_HEADING, .help = "Cases"},
        {.kind = ARG_TEXT,
         .letter = 'k',
         .name = "filter",
         .value = "PATTERN",
         .to = &o.filter,
         .help = "only cases whose name holds PATTERN, or matches it if it is a glob"},
        {.kind = ARG_TEXT,
         .name = "skip-list",
         .value = "FILE",
         .to = &o.skip_list,
         .help = "cases that are known to fail: a name and the reason on each line"},
        {.kind = ARG_CHOICE,
         .name = "unsupported",
         .value = "HOW",
         .to = &o.unsupported,
         .choices = unsupported_choices,
         .help = "models that need what ortc has not: fail or skip (fail)"},
        {.kind = ARG_INTEGER,
         .name = "deadline",
         .value = "MS",
         .to = &o.deadline_ms,
         .min = 1,
         .max = 1000000000,
         .help = "a run that takes longer fails"},
        {.kind = ARG_FLAG,
         .name = "list",
         .to = &o.list,
         .help = "print the names of the cases, run nothing"},
        {.kind = ARG_TEXT,
         .name = "junit",
         .value = "FILE",
         .to = &o.junit,
         .help = "write the results as JUnit XML too"},
        ARGS_SESSION(o.session),
        ARGS_COMMON,
    };
    const arg_command command = {
        "test",
        "DIR... [-k PATTERN] [options]",
        "Runs test cases in the layout of ONNX's backend tests, and names those that fail.",
        details,
        "folders of test cases",
        1,
        SIZE_MAX,
        options};
    arg_list folders;
    cases c = {0};
    char *skip_text = NULL;
    int code = args_parse(&command, argc, argv, &folders);
    if (code < 0) code = plugins_load(&o.session.plugins);
    if (code < 0) code = select_cases(&folders, &o, &c, &skip_text);
    if (code < 0 && o.list) {
        for (size_t i = 0; i < c.count; i++) put("%s\n", c.items[i].name);
        code = EXIT_GOOD;
    } else if (code < 0) {
        code = run_cases(&c, &o);
    }
    cases_free(&c);
    free(skip_text);
    return finish(code);
}
