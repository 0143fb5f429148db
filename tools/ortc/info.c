/* tools/ortc/info.c: `ortc info`: what a model is made of, and what ortc makes of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "element.h"
#include "inputs.h"
#include "json.h"
#include "session.h"
#include "term.h"

typedef struct info_options {
    session_options session;
    bool placement, steps, passes;
} info_options;

static const char details[] =
    "--steps plans for one set of input shapes: free dimensions are 1 unless --set or --shape says otherwise.\n"
    "\n"
    "examples:\n"
    "  ortc info model.onnx\n"
    "  ortc info model.onnx --placement --provider cpu\n"
    "  ortc info model.onnx --steps --set batch=8\n";

static bool some(const char *text) { return text && text[0]; }

/* ---- The file ------------------------------------------------------------------------------------------------------ */

static const ortc_io *io_at(ortc_model *m, bool outputs, size_t i)
{
    return outputs ? ortc_model_output(m, i) : ortc_model_input(m, i);
}

static void io_table(ortc_model *m, bool outputs)
{
    table t;
    table_init(&t, "lll");
    const ortc_io *io;
    size_t n = 0;
    for (; (io = io_at(m, outputs, n)); n++) {
        buffer b = {0};
        type_describe(io->type, &b);
        if (io->type && io->type->kind == ORTC_KIND_TENSOR)
            io_shape_describe(io, &b);
        table_cell(&t, io->name);
        table_cell(&t, (const char *)b.data);
        table_format(&t, "%s%s%s", io->flags & ORTC_IO_OPTIONAL ? "has a default" : "",
                     io->flags & ORTC_IO_OPTIONAL && some(io->doc) ? "; " : "", some(io->doc) ? io->doc : "");
        free(b.data);
    }
    if (n)
        put("%s\n", outputs ? "outputs" : "inputs");
    table_print(&t, 2, false);
}

static char *bytes_text(uint64_t n)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    double v = (double)n;
    size_t u = 0;
    for (; v >= 1024 && u + 1 < COUNT_OF(units); u++)
        v /= 1024;
    return mem_printf(u ? "%.1f %s" : "%.0f %s", v, units[u]);
}

/* "25,557,032" */
static char *grouped(uint64_t n)
{
    char digits[24];
    buffer b = {0};
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    for (int i = 0; i < length; i++)
        buffer_printf(&b, i && (length - i) % 3 == 0 ? ",%c" : "%c", digits[i]);
    return (char *)b.data;
}

static void print_file(ortc_model *m, const char *path)
{
    const ortc_model_info *d = ortc_model_describe(m);
    table t;
    table_init(&t, "ll");
    table_cell(&t, "model");
    table_format(&t, "%s%s%s%s", path, some(d->graph_name) ? " (" : "", some(d->graph_name) ? d->graph_name : "",
                 some(d->graph_name) ? ")" : "");
    if (some(d->producer)) {
        table_cell(&t, "producer");
        table_format(&t, "%s %s", d->producer, d->producer_version ? d->producer_version : "");
    }
    if (some(d->domain) || d->model_version) {
        table_cell(&t, "version");
        table_format(&t, "%lld%s%s", (long long)d->model_version, some(d->domain) ? " of " : "", d->domain ? d->domain : "");
    }
    buffer opsets = {0};
    for (size_t i = 0; i < d->n_opsets; i++)
        buffer_printf(&opsets, "%s%s %lld", i ? ", " : "", some(d->opset_domains[i]) ? d->opset_domains[i] : "ai.onnx",
                      (long long)d->opset_versions[i]);
    table_cell(&t, "format");
    table_format(&t, "IR %d, opset %s", d->ir_version, opsets.data ? (const char *)opsets.data : "none");
    free(opsets.data);
    char *parameters = grouped(d->n_parameters), *weights = bytes_text(d->weight_bytes);
    table_cell(&t, "parameters");
    table_format(&t, "%s in %llu initializers, %s", parameters, (unsigned long long)d->n_initializers, weights);
    free(parameters);
    free(weights);
    for (size_t i = 0; i < d->n_metadata; i++) {
        table_cell(&t, d->metadata_keys[i]);
        table_cell(&t, d->metadata_values[i]);
    }
    if (some(d->doc)) {
        table_cell(&t, "about");
        table_cell(&t, d->doc);
    }
    table_print(&t, 0, false);
    io_table(m, false);
    io_table(m, true);
    put("operators: %llu nodes\n", (unsigned long long)d->n_nodes);
    table_init(&t, "rl");
    for (size_t i = 0; i < d->n_ops; i++) {
        table_format(&t, "%llu", (unsigned long long)d->op_counts[i]);
        table_cell(&t, d->op_names[i]);
    }
    table_print(&t, 2, false);
}

static void json_io(json *j, ortc_model *m, bool outputs)
{
    json_key(j, outputs ? "outputs" : "inputs");
    json_array(j);
    const ortc_io *io;
    for (size_t i = 0; (io = io_at(m, outputs, i)); i++) {
        buffer b = {0};
        type_describe(io->type, &b);
        json_object(j);
        json_pair_text(j, "name", io->name);
        json_pair_text(j, "type", (const char *)b.data);
        free(b.data);
        json_key(j, "shape"); /* numbers, and the names of symbols; null: the rank is not known */
        if (io->rank < 0) {
            json_null(j);
        } else {
            json_array_inline(j);
            for (int32_t d = 0; d < io->rank; d++) {
                if (io->dims[d] >= 0)
                    json_integer(j, io->dims[d]);
                else
                    json_text(j, io->symbols ? io->symbols[d] : NULL);
            }
            json_array_end(j);
        }
        json_pair_bool(j, "optional", io->flags & ORTC_IO_OPTIONAL);
        if (some(io->doc))
            json_pair_text(j, "doc", io->doc);
        json_object_end(j);
    }
    json_array_end(j);
}

static void json_file(json *j, ortc_model *m, const char *path)
{
    const ortc_model_info *d = ortc_model_describe(m);
    json_pair_text(j, "model", path);
    json_pair_text(j, "graph", d->graph_name);
    json_pair_text(j, "producer", d->producer);
    json_pair_text(j, "producer_version", d->producer_version);
    json_pair_text(j, "domain", d->domain);
    json_pair_integer(j, "model_version", d->model_version);
    json_pair_text(j, "doc", d->doc);
    json_pair_integer(j, "ir_version", d->ir_version);
    json_key(j, "opsets");
    json_object(j);
    for (size_t i = 0; i < d->n_opsets; i++)
        json_pair_integer(j, some(d->opset_domains[i]) ? d->opset_domains[i] : "ai.onnx", d->opset_versions[i]);
    json_object_end(j);
    json_pair_unsigned(j, "nodes", d->n_nodes);
    json_pair_unsigned(j, "initializers", d->n_initializers);
    json_pair_unsigned(j, "parameters", d->n_parameters);
    json_pair_unsigned(j, "weight_bytes", d->weight_bytes);
    json_key(j, "metadata");
    json_object(j);
    for (size_t i = 0; i < d->n_metadata; i++)
        json_pair_text(j, d->metadata_keys[i], d->metadata_values[i]);
    json_object_end(j);
    json_io(j, m, false);
    json_io(j, m, true);
    json_key(j, "operators");
    json_object(j);
    for (size_t i = 0; i < d->n_ops; i++)
        json_pair_unsigned(j, d->op_names[i], d->op_counts[i]);
    json_object_end(j);
}

/* ---- Passes -------------------------------------------------------------------------------------------------------- */

static void passes(ortc_model *m, ortc_session *s, json *j)
{
    const ortc_model_info *d = ortc_model_describe(m);
    table t;
    table_init(&t, "lrl");
    table_cell(&t, "pass");
    table_cell(&t, "edits");
    table_cell(&t, "stage");
    for (int special = 0; special < 2; special++) {
        if (j) {
            json_key(j, special ? "specialising_passes" : "normalising_passes");
            json_array(j);
        }
        for (size_t i = 0;; i++) {
            uint64_t edits = 0;
            const char *name = special ? ortc_session_pass(s, i, &edits) : i < d->n_passes ? d->pass_names[i] : NULL;
            if (!name)
                break;
            edits = special ? edits : d->pass_edits[i];
            if (j) {
                json_object(j);
                json_pair_text(j, "name", name);
                json_pair_unsigned(j, "edits", edits);
                json_object_end(j);
            }
            table_cell(&t, name);
            table_format(&t, "%llu", (unsigned long long)edits);
            table_cell(&t, special ? "specialise" : "normalise");
        }
        if (j)
            json_array_end(j);
    }
    if (j)
        table_free(&t);
    else
        table_print(&t, 0, true);
}

/* ---- Placement ------------------------------------------------------------------------------------------------------ */

typedef struct listing {
    table t;
    json *j; /* NULL: the table */
} listing;

static int each_placement(void *arg, const ortc_placement *p)
{
    listing *l = arg;
    if (l->j) {
        json_object(l->j);
        json_pair_unsigned(l->j, "index", p->index);
        json_pair_text(l->j, "node", p->node);
        json_pair_text(l->j, "domain", p->domain);
        json_pair_text(l->j, "op", p->op);
        json_pair_integer(l->j, "version", p->version);
        json_pair_text(l->j, "provider", p->provider);
        json_pair_text(l->j, "kernel", p->kernel);
        json_pair_text(l->j, "fused", p->fused);
        json_pair_text(l->j, "reasons", p->reasons);
        json_object_end(l->j);
        return 0;
    }
    table_format(&l->t, "%u", p->index);
    table_cell(&l->t, p->node ? p->node : "");
    table_format(&l->t, "%s%s%s-%d", some(p->domain) ? p->domain : "", some(p->domain) ? "." : "", p->op ? p->op : "?",
                 p->version);
    table_cell(&l->t, p->provider ? p->provider : "");
    table_cell(&l->t, p->kernel ? p->kernel : "");
    table_cell(&l->t, p->fused ? p->fused : "");
    table_cell(&l->t, p->reasons ? p->reasons : "");
    return 0;
}

static void placement(ortc_session *s, json *j)
{
    static const char *const heading[] = {"#", "node", "operator", "provider", "kernel", "fused into it", "declined"};
    listing l = {.j = j};
    if (j) {
        json_key(j, "placement");
        json_array(j);
        ortc_session_placement(s, each_placement, &l);
        json_array_end(j);
        return;
    }
    table_init(&l.t, "rllllll");
    for (size_t i = 0; i < COUNT_OF(heading); i++)
        table_cell(&l.t, heading[i]);
    ortc_session_placement(s, each_placement, &l);
    table_print(&l.t, 0, true);
}

/* ---- Steps ---------------------------------------------------------------------------------------------------------- */

static void number_cell(table *t, double v)
{
    if (v > 0)
        table_format(t, "%.3g", v);
    else
        table_cell(t, "");
}

static int each_step(void *arg, const ortc_step_info *p)
{
    listing *l = arg;
    if (l->j) {
        json_object(l->j);
        json_pair_unsigned(l->j, "index", p->index);
        json_pair_text(l->j, "kind", p->kind);
        json_pair_text(l->j, "node", p->node);
        json_pair_text(l->j, "op", p->op);
        json_pair_text(l->j, "provider", p->provider);
        json_pair_text(l->j, "kernel", p->kernel);
        json_pair_text(l->j, "outputs", p->outputs);
        json_pair_number(l->j, "flops", p->flops);
        json_pair_number(l->j, "bytes", p->bytes);
        json_pair_unsigned(l->j, "workspace_bytes", p->workspace);
        json_object_end(l->j);
        return 0;
    }
    table_format(&l->t, "%u", p->index);
    table_cell(&l->t, p->kind ? p->kind : "");
    table_cell(&l->t, some(p->node) ? p->node : p->op ? p->op : "");
    table_cell(&l->t, p->kernel ? p->kernel : "");
    number_cell(&l->t, p->flops / 1e6);
    number_cell(&l->t, p->bytes / 1024);
    number_cell(&l->t, (double)p->workspace / 1024);
    table_cell(&l->t, p->outputs ? p->outputs : "");
    return 0;
}

static int steps(ortc_model *m, ortc_session *s, const session_options *so, json *j)
{
    static const char *const heading[] = {"#", "kind", "node", "kernel", "MFLOP", "KiB", "workspace KiB", "outputs"};
    inputs in;
    input_options none = {0};
    listing l = {.j = j};
    ortc_plan_info plan = {.size = sizeof plan};
    ortc_error e = ORTC_ERROR_INIT;
    int code = inputs_resolve(m, so, &none, true, &in);
    if (code >= 0)
        return code;
    if (j) {
        json_key(j, "steps");
        json_array(j);
    } else {
        table_init(&l.t, "rlllrrrl");
        for (size_t i = 0; i < COUNT_OF(heading); i++)
            table_cell(&l.t, heading[i]);
    }
    ortc_status status = ortc_session_plan(s, in.in, in.n_in, &plan, each_step, &l, &e);
    inputs_release(&in);
    if (status != ORTC_OK) {
        say_error("%s", e.text);
        return exit_code(status, STAGE_RUN);
    }
    if (j) {
        json_array_end(j);
        json_key(j, "plan");
        json_object(j);
        json_pair_unsigned(j, "steps", plan.n_steps);
        json_pair_unsigned(j, "views", plan.n_views);
        json_pair_unsigned(j, "folded", plan.n_folded);
        json_pair_unsigned(j, "arena_bytes", plan.arena_bytes);
        json_pair_unsigned(j, "workspace_bytes", plan.workspace_bytes);
        json_pair_unsigned(j, "constant_bytes", plan.constant_bytes);
        json_pair_unsigned(j, "packed_bytes", plan.packed_bytes);
        json_object_end(j);
        return -1;
    }
    table_print(&l.t, 0, true);
    char *arena = bytes_text(plan.arena_bytes), *workspace = bytes_text(plan.workspace_bytes),
         *constants = bytes_text(plan.constant_bytes), *packed = bytes_text(plan.packed_bytes);
    put("%u steps, %u views, %u nodes only for shapes; arena %s, workspace %s, constants %s, packed %s\n", plan.n_steps,
        plan.n_views, plan.n_folded, arena, workspace, constants, packed);
    free(arena);
    free(workspace);
    free(constants);
    free(packed);
    return -1;
}

/* ---- The command ---------------------------------------------------------------------------------------------------- */

static int info_model(const char *path, const info_options *o)
{
    ortc_model *model = NULL;
    ortc_session *session = NULL;
    json j = {0}, *to = cli.json ? &j : NULL;
    int code = model_open(path, &model);
    if (code < 0 && (o->placement || o->steps || o->passes))
        code = session_open(model, &o->session, &session);
    if (code < 0) {
        if (to) {
            json_begin(to, "info");
            json_file(to, model, path);
        } else if (!session) {
            print_file(model, path); /* with a view asked for, only that one */
        }
        if (o->passes)
            passes(model, session, to);
        if (o->placement)
            placement(session, to);
        if (o->steps)
            code = steps(model, session, &o->session, to);
        if (code < 0 && to)
            json_finish(to);
    }
    free(j.out.data);
    ortc_session_release(session);
    ortc_model_release(model);
    return finish(code < 0 ? EXIT_GOOD : code);
}

int command_info(int argc, char **argv)
{
    info_options o = {0};
    const arg_option options[] = {
        {.kind = ARG_HEADING, .help = "Views"},
        {.kind = ARG_FLAG, .name = "placement", .to = &o.placement,
         .help = "every node: its provider and kernel, what is fused into it, why others declined"},
        {.kind = ARG_FLAG, .name = "steps", .to = &o.steps, .help = "the plan for given input shapes: steps, arena, workspace"},
        {.kind = ARG_FLAG, .name = "passes", .to = &o.passes, .help = "graph passes and how much each one edited"},
        ARGS_SHAPES(o.session),
        ARGS_SESSION(o.session),
        ARGS_COMMON,
    };
    const arg_command command = {"info", "MODEL [--placement] [--steps] [--passes] [options]",
                                 "Describes an ONNX model, and what ortc makes of it.", details, "one model", 1, 1, options};
    arg_list files;
    int code = args_parse(&command, argc, argv, &files);
    if (code < 0)
        code = session_options_parse(&o.session);
    if (code < 0)
        code = plugins_load(&o.session.plugins);
    return code < 0 ? info_model(files.items[0], &o) : code;
}
