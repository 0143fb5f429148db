/* tools/ortc/info.c: `ortc info`: what a model is made of, and what ortc makes of it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "element.h"
#include "info.h"
#include "term.h"

typedef struct info_options {
    session_options session;
    input_options input;
    bool placement, steps, passes;
} info_options;

static const char details[] = "--steps plans for one set of input shapes: free dimensions are 1 unless "
                              "--set, --shape or --input says otherwise.\n"
                              "\n"
                              "examples:\n"
                              "  ortc info model.onnx\n"
                              "  ortc info model.onnx --placement --provider cpu\n"
                              "  ortc info model.onnx --steps --set batch=8\n";

/* ---- The file ------------------------------------------------------------------------------------------ */

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
        if (io->type && io->type->kind == ORTC_KIND_TENSOR) io_shape_describe(io, &b);
        table_cell(&t, io->name);
        table_cell(&t, (const char *)b.data);
        const char *optional = io->type && io->type->kind == ORTC_KIND_OPTIONAL ? "may be left out"
                                                                                : "has a default";
        table_format(&t, "%s%s%s", io->flags & ORTC_IO_OPTIONAL ? optional : "",
                     io->flags & ORTC_IO_OPTIONAL && some(io->doc) ? "; " : "", some(io->doc) ? io->doc : "");
        free(b.data);
    }
    if (n) put("%s\n", outputs ? "outputs" : "inputs");
    table_print(&t, 2, false);
}

/* "25,557,032" */
static char *grouped(uint64_t n)
{
    char digits[24];
    buffer b = {0};
    int length = snprintf(digits, sizeof digits, "%llu", (unsigned long long)n);
    for (int i = 0; i < length; i++) buffer_printf(&b, i && (length - i) % 3 == 0 ? ",%c" : "%c", digits[i]);
    return (char *)b.data;
}

static void print_file(ortc_model *m, const char *path)
{
    const ortc_model_info *d = ortc_model_describe(m);
    table t;
    table_init(&t, "ll");
    table_cell(&t, "model");
    table_format(&t, "%s%s%s%s", path, some(d->graph_name) ? " (" : "",
                 some(d->graph_name) ? d->graph_name : "", some(d->graph_name) ? ")" : "");
    if (some(d->producer)) {
        table_cell(&t, "producer");
        table_format(&t, "%s %s", d->producer, d->producer_version ? d->producer_version : "");
    }
    if (some(d->domain) || d->model_version) {
        table_cell(&t, "version");
        table_format(&t, "%lld%s%s", (long long)d->model_version, some(d->domain) ? " of " : "",
                     d->domain ? d->domain : "");
    }
    buffer opsets = {0};
    for (size_t i = 0; i < d->n_opsets; i++)
        buffer_printf(&opsets, "%s%s %lld", i ? ", " : "",
                      some(d->opset_domains[i]) ? d->opset_domains[i] : "ai.onnx",
                      (long long)d->opset_versions[i]);
    table_cell(&t, "format");
    table_format(&t, "IR %d, opset %s", d->ir_version, opsets.data ? (const char *)opsets.data : "none");
    free(opsets.data);
    char *parameters = grouped(d->n_parameters), *weights = info_bytes(d->weight_bytes);
    table_cell(&t, "parameters");
    table_format(&t, "%s in %llu initializers, %s", parameters, (unsigned long long)d->n_initializers,
                 weights);
    free(parameters);
    free(weights);
    if (d->n_unfolded) {
        table_cell(&t, "not folded");
        table_format(&t, "%llu nodes over constants, which take longer than loading may",
                     (unsigned long long)d->n_unfolded);
    }
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
    if (d->n_missing) put("missing: ortc cannot run this model for want of\n");
    for (size_t i = 0; i < d->n_missing; i++) put("  %s\n", d->missing[i]);
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
        if (some(io->doc)) json_pair_text(j, "doc", io->doc);
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
        json_pair_integer(j, some(d->opset_domains[i]) ? d->opset_domains[i] : "ai.onnx",
                          d->opset_versions[i]);
    json_object_end(j);
    json_pair_unsigned(j, "nodes", d->n_nodes);
    json_pair_unsigned(j, "initializers", d->n_initializers);
    json_pair_unsigned(j, "parameters", d->n_parameters);
    json_pair_unsigned(j, "weight_bytes", d->weight_bytes);
    json_pair_unsigned(j, "unfolded", d->n_unfolded);
    json_key(j, "metadata");
    json_object(j);
    for (size_t i = 0; i < d->n_metadata; i++) json_pair_text(j, d->metadata_keys[i], d->metadata_values[i]);
    json_object_end(j);
    json_io(j, m, false);
    json_io(j, m, true);
    json_key(j, "missing");
    json_array(j);
    for (size_t i = 0; i < d->n_missing; i++) json_text(j, d->missing[i]);
    json_array_end(j);
    json_key(j, "operators");
    json_object(j);
    for (size_t i = 0; i < d->n_ops; i++) json_pair_unsigned(j, d->op_names[i], d->op_counts[i]);
    json_object_end(j);
}

/* ---- The command --------------------------------------------------------------------------------------- */

static int info_model(const char *path, const info_options *o)
{
    ortc_model *model = NULL;
    ortc_session *session = NULL;
    json j = {0}, *to = cli.json ? &j : NULL;
    const bool looks_inside = o->placement || o->steps || o->passes;
    int code = model_describe(path, &model);
    const size_t missing = code < 0 ? ortc_model_describe(model)->n_missing : 0;
    if (code < 0 && (!missing || looks_inside)) { /* the passes' edits, or why there are none */
        ortc_model_release(model);
        model = NULL;
        code = model_open(path, &o->session, &model);
    }
    if (code < 0 && looks_inside) code = session_open(model, &o->session, &session);
    if (code < 0) {
        if (to) {
            json_begin(to, "info");
            json_file(to, model, path);
        } else if (!session) {
            print_file(model, path); /* with a view asked for, only that one */
        }
        if (o->passes) info_passes(model, session, to);
        if (o->placement) info_placement(session, to);
        if (o->steps) code = info_steps(model, session, &o->session, &o->input, to);
        if (code < 0 && to) json_finish(to);
    }
    free(j.out.data);
    ortc_session_release(session);
    ortc_model_release(model);
    return finish(code < 0 ? (missing ? EXIT_UNSUPPORTED : EXIT_GOOD) : code);
}

int command_info(int argc, char **argv)
{
    info_options o = {0};
    const arg_option options[] = {
        {.kind = ARG_HEADING, .help = "Views"},
        {.kind = ARG_FLAG,
         .name = "placement",
         .to = &o.placement,
         .help = "every node: its provider and kernel, what is fused into it, why others declined"},
        {.kind = ARG_FLAG,
         .name = "steps",
         .to = &o.steps,
         .help = "the plan for given input shapes: steps, arena, workspace"},
        {.kind = ARG_FLAG,
         .name = "passes",
         .to = &o.passes,
         .help = "graph passes and how much each one edited"},
        {.kind = ARG_LIST,
         .letter = 'i',
         .name = "input",
         .value = "[NAME=]VALUE",
         .to = &o.input.inputs,
         .help = "for --steps, as in 'ortc run': where values decide shapes; other inputs are zeros"},
        ARGS_SHAPES(o.session),
        ARGS_SESSION(o.session),
        ARGS_COMMON,
    };
    const arg_command command = {"info",
                                 "MODEL [--placement] [--steps] [--passes] [options]",
                                 "Describes an ONNX model, and what ortc makes of it.",
                                 details,
                                 "one model",
                                 1,
                                 1,
                                 options};
    arg_list files;
    int code = args_parse(&command, argc, argv, &files);
    if (code < 0) code = session_options_parse(&o.session);
    if (code < 0) code = plugins_load(&o.session.plugins);
    return code < 0 ? info_model(files.items[0], &o) : code;
}
