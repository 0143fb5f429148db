/* tools/ortc/compare_models.c: `ortc compare`: one set of inputs through two sessions (two providers, or two
 * files), and how far apart the results are: errors, units in the last place, and with --nodes the first
 * value inside the graph that differs and the worst ones. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "compare.h"
#include "compare_side.h"
#include "element.h"
#include "inputs.h"
#include "json.h"
#include "session.h"
#include "term.h"

static const char details[] =
    "Inputs that are not given are random. A number differs when |a - b| > atol + rtol * |b|, b being the "
    "second\n"
    "side's; ulp counts the numbers of the type that lie between the two. For --nodes every value of the "
    "graph is\n"
    "kept, so nothing is fused across values then: a difference that goes away with it is one of fusion.\n"
    "Code 1: an output differs.\n"
    "\n"
    "examples:\n"
    "  ortc compare model.onnx --provider cpu --against ref --nodes\n"
    "  ortc compare model.onnx small.onnx --input x=x.npy\n"
    "  ortc compare model.onnx --against onnxruntime --shrink part.onnx\n";

/* ---- Two values ---------------------------------------------------------------------------------------- */

/* Bits as an integer that grows with the number: neighbours differ by 1. */
static int64_t ordered(ortc_dtype t, const void *data, int64_t i)
{
    const uint32_t bits = ortc_dtype_bits(t);
    uint64_t u = 0;
    memcpy(&u, (const uint8_t *)data + (uint64_t)i * (bits / 8), bits / 8);
    const uint64_t sign = 1ull << (bits - 1);
    return u & sign ? -(int64_t)(u & (sign - 1)) : (int64_t)u;
}

static uint64_t ulps(ortc_dtype t, const void *a, const void *b, int64_t i)
{
    if (dtype_is_float(t) && ortc_dtype_bits(t) >= 8) {
        const int64_t x = ordered(t, a, i), y = ordered(t, b, i);
        return x > y ? (uint64_t)x - (uint64_t)y : (uint64_t)y - (uint64_t)x;
    }
    return (uint64_t)fmin(fabs(element_get(t, a, i) - element_get(t, b, i)), 0x1p62);
}

static size_t bin_of(uint64_t u)
{
    size_t bin = 0;
    for (uint64_t top = 1; u && bin < BINS - 1; bin++, top *= 2)
        if (u <= top) return bin + 1;
    return bin;
}

static void compare_numbers(difference *d, const ortc_value *a, const ortc_value *b, const compare_options *o)
{
    const ortc_dtype t = ortc_value_dtype(a);
    const void *x = ortc_value_host(a), *y = ortc_value_host(b);
    for (int64_t i = 0; i < d->count; i++) {
        const double p = element_get(t, x, i), q = element_get(t, y, i);
        const double pi = element_imaginary(t, x, i), qi = element_imaginary(t, y, i);
        if ((p == q && pi == qi) || (isnan(p) && isnan(q))) {
            d->bins[0]++;
            continue;
        }
        const double far = hypot(p - q, pi - qi), size = hypot(q, qi);
        const bool kind = isfinite(far); /* else NaN or an infinity on one side */
        const uint64_t u = kind ? (dtype_is_complex(t) ? 1 : ulps(t, x, y, i)) : UINT64_MAX;
        d->bins[kind ? bin_of(u) : BINS - 1]++;
        d->max_ulp = u > d->max_ulp ? u : d->max_ulp;
        d->max_abs = fmax(d->max_abs, kind ? far : INFINITY);
        d->max_rel = fmax(d->max_rel, !kind ? INFINITY : size > 0 ? far / size : INFINITY);
        const double share = kind ? far / (o->atol + o->rtol * size) : INFINITY;
        d->worst = fmax(d->worst, share);
        d->wrong += !(share <= 1);
    }
}

difference compare_values(const char *name, const ortc_value *a, const ortc_value *b,
                          const compare_options *o)
{
    difference d = {.name = name, .node = "", .op = ""};
    const tolerance shape = {.values = false}, all = {o->rtol, o->atol, true};
    buffer why = {0};
    const bool numbers = ortc_value_type(a)->kind == ORTC_KIND_TENSOR && ortc_value_dtype(a) != ORTC_STRING;
    if (!values_equal(a, b, numbers ? &shape : &all, &why)) {
        d.why = mem_copy((const char *)why.data);
        d.wrong = 1;
        d.worst = INFINITY;
    } else if (numbers) {
        d.count = ortc_value_count(a);
        compare_numbers(&d, a, b, o);
    }
    free(why.data);
    return d;
}

/* ---- Two sides ----------------------------------------------------------------------------------------- */

static int each_value(void *arg, const ortc_model_value *v)
{
    value_list *l = arg;
    l->names = mem_grow(l->names, l->count + 1, sizeof *l->names);
    l->nodes = mem_grow(l->nodes, l->count + 1, sizeof *l->nodes);
    l->ops = mem_grow(l->ops, l->count + 1, sizeof *l->ops);
    l->names[l->count] = v->name;
    l->nodes[l->count] = v->node;
    l->ops[l->count++] = v->op;
    return 0;
}

void value_list_of(ortc_model *m, value_list *out)
{
    *out = (value_list){0};
    ortc_model_values(m, each_value, out);
}

void value_list_free(value_list *l)
{
    free(l->names);
    free(l->nodes);
    free(l->ops);
    *l = (value_list){0};
}

static bool has_name(const value_list *l, const char *name)
{
    for (size_t i = 0; i < l->count; i++)
        if (strcmp(l->names[i], name) == 0) return true;
    return false;
}

/* Those of the first that the second has, too. */
static value_list common_values(ortc_model *a, ortc_model *b)
{
    value_list first = {0}, second = {0}, both = {0};
    ortc_model_values(a, each_value, &first);
    ortc_model_values(b, each_value, &second);
    for (size_t i = 0; i < first.count; i++)
        if ((a == b || has_name(&second, first.names[i])) && !has_name(&both, first.names[i]))
            each_value(&both, &(ortc_model_value){.name = first.names[i],
                                                  .node = first.nodes[i],
                                                  .op = first.ops[i]});
    value_list_free(&first);
    value_list_free(&second);
    return both;
}

int side_run(side *s, const ortc_in *in, size_t n_in, const char *const *names, size_t n, bool keep,
             uint64_t seed)
{
    ortc_error e = ORTC_ERROR_INIT;
    session_options o = s->options;
    s->n_out = n;
    s->out = mem_alloc(n * sizeof *s->out);
    for (size_t i = 0; i < n; i++) s->out[i].name = names[i];
    if (s->other) return other_run(s->path, in, n_in, names, n, keep, s->out);
    if (keep) o.keep = (arg_list){n, (const char **)(uintptr_t)names};
    int code = session_open(s->model, &o, &s->session);
    if (code >= 0) return code;
    ortc_run_args args = ORTC_RUN_ARGS_INIT;
    args.in = in;
    args.n_in = n_in;
    args.out = s->out;
    args.n_out = n;
    args.seed = seed;
    const ortc_status status = ortc_run(s->session, &args, &e);
    if (status == ORTC_OK) return -1;
    say_error("on '%s': %s", o.provider ? o.provider : "cpu", e.text);
    return exit_code(status, STAGE_RUN);
}

void side_end(side *s)
{
    for (size_t i = 0; i < s->n_out; i++) ortc_value_release(s->out[i].value);
    free(s->out);
    ortc_session_release(s->session);
    s->session = NULL;
    s->out = NULL;
    s->n_out = 0;
}

/* The named values of both sides, compared; *out has n of them. */
static int compare_named(side *a, side *b, const inputs *in, const char *const *names, size_t n, bool keep,
                         const compare_options *o, difference **out)
{
    *out = mem_alloc(n * sizeof **out);
    term_progress(0, 0, keep ? "values inside, on the first side" : "outputs, on the first side");
    int code = side_run(a, in->in, in->n_in, names, n, keep, (uint64_t)o->input.seed);
    term_progress(0, 0, keep ? "values inside, on the second side" : "outputs, on the second side");
    if (code < 0) code = side_run(b, in->in, in->n_in, names, n, keep, (uint64_t)o->input.seed);
    term_progress_clear();
    for (size_t i = 0; i < n && code < 0; i++)
        (*out)[i] = compare_values(names[i], a->out[i].value, b->out[i].value, o);
    side_end(a);
    side_end(b);
    return code;
}

/* ---- Told ---------------------------------------------------------------------------------------------- */

static void number_text(table *t, const difference *d, double v)
{
    if (d->why || !d->count)
        table_cell(t, "");
    else
        table_format(t, "%.3g", v);
}

static void row(table *t, const difference *d, bool node)
{
    table_cell(t, d->name);
    if (d->why)
        table_cell(t, "differs");
    else
        table_format(t, "%lld of %lld", (long long)d->wrong, (long long)d->count);
    number_text(t, d, d->max_abs);
    number_text(t, d, d->max_rel);
    number_text(t, d, d->max_ulp == UINT64_MAX ? INFINITY : (double)d->max_ulp);
    if (d->why)
        table_cell(t, d->why);
    else
        table_format(t, node ? "%s %s" : "%s%s", d->op, d->node);
}

static void print_table(difference *const *d, size_t n, bool nodes)
{
    static const char *const heading[] = {"value", "differ", "abs", "rel", "ulp", "node"};
    table t;
    table_init(&t, "lrrrrl");
    for (size_t i = 0; i < COUNT_OF(heading); i++) table_cell(&t, i < 5 || nodes ? heading[i] : "");
    for (size_t i = 0; i < n; i++) row(&t, d[i], nodes);
    table_print(&t, 0, true);
}

static void print_histogram(const difference *d)
{
    if (d->why || !d->count) return;
    put("%s in ulp:", d->name);
    for (size_t i = 0; i < BINS; i++) {
        if (!d->bins[i]) continue;
        const unsigned long long count = (unsigned long long)d->bins[i];
        if (i == 0)
            put("  equal %llu", count);
        else if (i == BINS - 1)
            put("  more %llu", count);
        else
            put("  <=%llu %llu", 1ull << (i - 1), count);
    }
    put("\n");
}

static void json_differences(json *j, const char *key, const difference *d, size_t n)
{
    json_key(j, key);
    json_array(j);
    for (size_t i = 0; i < n; i++) {
        json_object(j);
        json_pair_text(j, "name", d[i].name);
        if (*d[i].op) {
            json_pair_text(j, "op", d[i].op);
            json_pair_text(j, "node", d[i].node);
        }
        json_pair_integer(j, "count", d[i].count);
        json_pair_integer(j, "differ", d[i].wrong);
        json_pair_number(j, "max_abs", d[i].max_abs);
        json_pair_number(j, "max_rel", d[i].max_rel);
        json_pair_number(j, "max_ulp", d[i].max_ulp == UINT64_MAX ? INFINITY : (double)d[i].max_ulp);
        json_pair_number(j, "worst", d[i].worst);
        if (d[i].why) json_pair_text(j, "why", d[i].why);
        json_key(j, "ulp_histogram");
        json_array_inline(j);
        for (size_t k = 0; k < BINS; k++) json_unsigned(j, d[i].bins[k]);
        json_array_end(j);
        json_object_end(j);
    }
    json_array_end(j);
}

static int by_worst(const void *a, const void *b)
{
    const difference *x = *(difference *const *)a, *y = *(difference *const *)b;
    if (x->worst != y->worst) return x->worst < y->worst ? 1 : -1;
    return x < y ? -1 : x > y; /* the earlier first */
}

static void print_nodes(difference *nodes, size_t n, const compare_options *o)
{
    difference **order = mem_alloc(n * sizeof *order);
    size_t wrong = 0, first = n;
    for (size_t i = 0; i < n; i++) {
        order[i] = &nodes[i];
        wrong += nodes[i].wrong > 0;
        if (nodes[i].wrong && first == n) first = i;
    }
    qsort(order, n, sizeof *order, by_worst);
    put("\n%zu of %zu values inside differ", wrong, n);
    if (first < n)
        put("; the first is '%s', of %s '%s'", nodes[first].name, nodes[first].op, nodes[first].node);
    put("\n");
    print_table(order, n < (size_t)o->top ? n : (size_t)o->top, true);
    free(order);
}

/* ---- The command --------------------------------------------------------------------------------------- */

static void print_all(difference *outputs, size_t n, difference *nodes, size_t n_nodes,
                      const compare_options *o, const arg_list *files, const char *second)
{
    if (cli.json) {
        json j;
        json_begin(&j, "compare");
        json_pair_text(&j, "model", files->items[0]);
        json_pair_text(&j, "other", files->items[files->count - 1]);
        json_pair_text(&j, "provider", o->session.provider ? o->session.provider : "cpu");
        json_pair_text(&j, "against", second);
        json_differences(&j, "outputs", outputs, n);
        if (o->nodes) json_differences(&j, "values", nodes, n_nodes);
        json_finish(&j);
        return;
    }
    difference **order = mem_alloc(n * sizeof *order);
    for (size_t i = 0; i < n; i++) order[i] = &outputs[i];
    print_table(order, n, false);
    free(order);
    for (size_t i = 0; i < n; i++) print_histogram(&outputs[i]);
    if (o->nodes) print_nodes(nodes, n_nodes, o);
}

static int compare_models(const arg_list *files, const compare_options *o)
{
    side a = {.path = files->items[0], .options = o->session},
         b = {.path = files->items[files->count - 1], .options = o->session};
    inputs in = {0};
    difference *outputs = NULL, *nodes = NULL;
    const char **names = NULL;
    size_t n = 0, wrong = 0, first = 0;
    value_list inside = {0};
    b.options.provider = o->against ? o->against : files->count == 2 ? o->session.provider : "ref";
    b.options.require = NULL;
    b.other = o->against && strcmp(o->against, "onnxruntime") == 0;
    int code = model_open(files->items[0], &o->session, &a.model);
    if (code < 0 && files->count == 2)
        code = model_open(files->items[1], &o->session, &b.model);
    else if (code < 0)
        b.model = ortc_model_retain(a.model);
    if (code < 0) code = inputs_resolve(a.model, &o->session, &o->input, false, &in);
    if (code < 0) {
        for (; ortc_model_output(a.model, n); n++) {
            names = mem_grow(names, n + 1, sizeof *names);
            names[n] = ortc_model_output(a.model, n)->name;
        }
        code = compare_named(&a, &b, &in, names, n, false, o, &outputs);
    }
    if (code < 0 && o->nodes) {
        inside = common_values(a.model, b.model);
        code = compare_named(&a, &b, &in, inside.names, inside.count, true, o, &nodes);
        for (size_t i = 0; i < inside.count; i++) {
            nodes[i].node = inside.nodes[i];
            nodes[i].op = inside.ops[i];
        }
    }
    if (code < 0) {
        print_all(outputs, n, nodes, inside.count, o, files, b.options.provider ? b.options.provider : "cpu");
        for (size_t i = n; i-- > 0;)
            if (outputs[i].wrong) {
                wrong++;
                first = i;
            }
        code = -1;
        if (wrong && o->shrink) code = shrink_model(files->items[0], o, &a, &b, &in, names[first]);
        if (code < 0) code = wrong ? EXIT_DIFFERENT : EXIT_GOOD;
    }
    for (size_t i = 0; outputs && i < n; i++) free(outputs[i].why);
    for (size_t i = 0; nodes && i < inside.count; i++) free(nodes[i].why);
    free(outputs);
    free(nodes);
    free(names);
    value_list_free(&inside);
    inputs_release(&in);
    ortc_model_release(a.model);
    ortc_model_release(b.model);
    return finish(code);
}

static int parse_tolerance(const char *option, const char *text, double *out)
{
    if (!text || (args_number(text, out) && *out >= 0)) return -1;
    say_error("%s expects a number of at least 0, got '%s'", option, text);
    return EXIT_USAGE;
}

int command_compare(int argc, char **argv)
{
    compare_options o = {.rtol = 1e-3, .atol = 1e-5, .top = 10};
    const arg_option options[] = {
        {.kind = ARG_HEADING, .help = "Comparing"},
        {.kind = ARG_TEXT,
         .name = "against",
         .value = "A,B",
         .to = &o.against,
         .help = "the second side's providers (ref; with two files those of --provider), or onnxruntime, "
                 "which $ORTC_PYTHON (python3) must have"},
        {.kind = ARG_FLAG,
         .name = "nodes",
         .to = &o.nodes,
         .help = "values inside the graph, too: the first that differs, and the worst"},
        {.kind = ARG_INTEGER,
         .name = "top",
         .value = "N",
         .to = &o.top,
         .min = 1,
         .max = 1000000,
         .help = "with --nodes: so many of the worst (10)"},
        {.kind = ARG_TEXT,
         .name = "shrink",
         .value = "OUT.onnx",
         .to = &o.shrink,
         .help =
             "where an output differs: write the smallest part of the model found that still does, and its "
             "inputs as OUT.npz"},
        {.kind = ARG_TEXT,
         .name = "rtol",
         .value = "X",
         .to = &o.rtol_text,
         .help = "relative tolerance (0.001)"},
        {.kind = ARG_TEXT,
         .name = "atol",
         .value = "X",
         .to = &o.atol_text,
         .help = "absolute tolerance (0.00001)"},
        ARGS_INPUT(o.input),
        ARGS_SHAPES(o.session),
        ARGS_SESSION(o.session),
        ARGS_COMMON,
    };
    const arg_command command = {
        "compare",
        "MODEL [OTHER] [--provider A] [--against B] [options]",
        "Runs the same inputs through two providers or two files, and says where results part.",
        details,
        "one model, or two",
        1,
        2,
        options};
    arg_list files;
    int code = args_parse(&command, argc, argv, &files);
    if (code < 0) code = parse_tolerance("--rtol", o.rtol_text, &o.rtol);
    if (code < 0) code = parse_tolerance("--atol", o.atol_text, &o.atol);
    if (code < 0 && o.shrink && (files.count != 1 || !has_suffix(o.shrink, ".onnx"))) {
        say_error("--shrink expects one model and the name of an .onnx file to write, got '%s'", o.shrink);
        code = EXIT_USAGE;
    }
    if (code < 0) code = writable_check("--shrink", o.shrink);
    if (code < 0) code = input_options_parse(&o.input);
    if (code < 0) code = session_options_parse(&o.session);
    if (code < 0) code = plugins_load(&o.session.plugins);
    o.input.rest_is_random = true;
    return code < 0 ? compare_models(&files, &o) : code;
}
