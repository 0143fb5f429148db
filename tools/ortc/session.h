/* tools/ortc/session.h: the options that every command with a model takes, and opening a model and session by
 * them. */
#ifndef SESSION_H
#define SESSION_H

#include "args.h"
#include "cli.h"

enum { MAX_INPUT_RANK = 64 };

typedef struct session_options {
    const char *provider, *require, *precision; /* NULL: the library's defaults */
    int64_t threads;                            /* 0: all */
    arg_list plugins, sets, shapes;
    bool no_fusion, no_winograd, pack_at_once;
    int64_t fold, start_ms; /* of loading, and of making the session; 0: the library's, none */
    size_t n_dims;          /* --set, parsed by session_options_check */
    const char **dim_names;
    int64_t *dim_values;
    arg_list tie_texts; /* --tie, parsed likewise */
    size_t n_ties;
    ortc_tie *ties;
    arg_list keep;   /* values inside the model */
    arg_list choose; /* NODE_OR_OP=KERNEL */
} session_options;

/* Rows for a command's table of options. */
#define ARGS_TIES(o) \
    { \
        .kind = ARG_LIST, .name = "tie", .value = "IN=OUT[:AXIS[:CAP]]", .to = &(o).tie_texts, \
        .help = "an output that is an input of the next run (of --repeat): as a whole, or growing along " \
                "AXIS up to CAP; " \
                "may be repeated" \
    }
#define ARGS_START(o) \
    {.kind = ARG_INTEGER, \
     .name = "fold", \
     .value = "N", \
     .to = &(o).fold, \
     .min = 1, \
     .max = INT64_MAX, \
     .help = \
         "operations, of about a nanosecond, that loading may spend on nodes over constants; what takes " \
         "more is left to the runs (500 million, and 500 for each byte of the weights)"}, \
    { \
        .kind = ARG_INTEGER, .name = "start-deadline", .value = "MS", .to = &(o).start_ms, .min = 1, \
        .max = 1000000000, \
        .help = "give up loading a model, or making its session, after so many milliseconds" \
    }
#define ARGS_SESSION(o) \
    {.kind = ARG_HEADING, .help = "Where it runs"}, \
        {.kind = ARG_TEXT, \
         .name = "provider", \
         .value = "A,B", \
         .to = &(o).provider, \
         .help = "execution providers in order of preference (cpu), NAME[:DEVICE][:KEY=VALUE]...; 'ortc " \
                 "providers' lists them; ref comes last"}, \
        {.kind = ARG_TEXT, \
         .name = "require", \
         .value = "A,B", \
         .to = &(o).require, \
         .help = "fail unless every node is on one of these providers"}, \
        {.kind = ARG_TEXT, \
         .name = "precision", \
         .value = "P", \
         .to = &(o).precision, \
         .help = \
             "bf16: products of f32 round their operands to bf16 on the cpu, where it has instructions for " \
             "that, and values between them are kept so (f32)"}, \
        {.kind = ARG_INTEGER, \
         .letter = 't', \
         .name = "threads", \
         .value = "N", \
         .to = &(o).threads, \
         .max = 4096, \
         .help = "threads of a run; 0: as many as this process may use (0)"}, \
        {.kind = ARG_LIST, \
         .name = "plugin", \
         .value = "FILE", \
         .to = &(o).plugins, \
         .help = "load a plugin: operators, kernels, providers; may be repeated"}, \
        {.kind = ARG_LIST, \
         .name = "choose", \
         .value = "NODE=KERNEL[@LAYOUT]", \
         .to = &(o).choose, \
         .help = \
             "the kernel, or its layout, for a node, for all of an operator, or for all (*), where there " \
             "are several ('ortc info --steps' lists their costs); may be repeated"}, \
        {.kind = ARG_FLAG, \
         .name = "no-fusion", \
         .to = &(o).no_fusion, \
         .help = "one kernel per node, nothing fused"}, \
        ARGS_START(o), \
        {.kind = ARG_FLAG, \
         .name = "no-winograd", \
         .to = &(o).no_winograd, \
         .help = "no Winograd convolution: less rounding error, more time"}, \
    { \
        .kind = ARG_FLAG, .name = "pack-at-once", .to = &(o).pack_at_once, \
        .help = "pack weights of 4 MB and more for good in the first run, not in the second: a later first " \
                "result" \
    }
#define ARGS_SET(o) \
    { \
        .kind = ARG_LIST, .name = "set", .value = "DIM=N", .to = &(o).sets, \
        .help = "fix a symbolic dimension for the session, as in --set batch=8; may be repeated" \
    }
#define ARGS_SHAPES(o) \
    ARGS_SET(o), \
    { \
        .kind = ARG_LIST, .name = "shape", .value = "NAME=1x3x8x8", .to = &(o).shapes, \
        .help = "an input's shape where nothing else says it (made-up inputs); may be repeated" \
    }

/* These print their own errors. -1: go on; else the exit code. */

int plugins_load(const arg_list *plugins);
/* Splits --set and --tie, before a model is loaded. */
int session_options_parse(session_options *);
/* What loading is given of them. */
ortc_model_options model_options(const session_options *);
int model_open(const char *path, const session_options *, ortc_model **out);
/* Says what is odd about a model that loads all the same: nodes of a newer opset are read as those of the
 * newest known, which is right unless the standard changed them; nothing comes out. */
void model_note(const ortc_model *);
/* The same of a model that may miss operators, to look at only (ORTC_MODEL_DESCRIBE). */
int model_describe(const char *path, ortc_model **out);
/* Whether the model has this symbolic dimension; `option` is who asks. */
int symbol_check(ortc_model *, const char *option, const char *symbol);
int session_open(ortc_model *, const session_options *, ortc_session **out);

/* The same two, with the error given back instead of printed: for `test`, which goes on to the next case. */
ortc_status session_create(ortc_model *, const session_options *, ortc_session **out, ortc_error *,
                           int *out_exit);

/* "NAME=1x3x8x8" for this input among --shape, parsed. False: none given. A malformed one is an error:
 * *out_exit. */
bool shape_given(const session_options *, const char *input_name, int64_t *dims, int32_t *out_rank,
                 int *out_exit);
bool input_is_tied(const session_options *, const char *input_name);
/* The value of a symbol among --set, -1 if it is not there. */
int64_t symbol_given(const session_options *, const char *symbol);

#endif
