/* tools/ortc/args.h: a command's options as a table: parsing, messages and help text come from the same rows.
 *
 * `--name value` and `--name=value`, `-x value` and `-xvalue`, flags bundled (`-qv`), `--` ends options. A
 * scalar given twice keeps the last value, a list collects them. Wrong use is one line that says what was
 * expected and what came, and EXIT_USAGE. Strings point into argv.
 */
#ifndef ARGS_H
#define ARGS_H

#include "cli.h"

typedef enum {
    ARG_HEADING, /* a line of the help text: `help` */
    ARG_FLAG,    /* bool */
    ARG_TEXT,    /* const char * */
    ARG_LIST,    /* arg_list: may be given several times */
    ARG_INTEGER, /* int64_t in min..max */
    ARG_CHOICE,  /* int: index into `choices` */
} arg_kind;

typedef struct arg_list {
    size_t count;
    const char **items; /* lives as long as the process */
} arg_list;

typedef struct arg_option {
    arg_kind kind;
    char letter;       /* 0: none */
    const char *name;  /* without the dashes */
    const char *value; /* how the help text calls the value */
    const char *help;
    void *to;
    int64_t min, max;
    const char *const *choices; /* NULL-terminated */
} arg_option;

typedef struct arg_command {
    const char *name, *usage, *summary;
    const char *details;    /* below the options in the help text; "" */
    const char *positional; /* what stands without dashes: "MODEL" */
    size_t min_positional, max_positional;
    const arg_option *options; /* ends with kind 0 and no help */
} arg_command;

/* Options of every command, to be listed among its own. */
#define ARGS_COMMON \
    {.kind = ARG_HEADING, .help = "Output"}, \
        {.kind = ARG_FLAG, .name = "json", .help = "print one JSON object", .to = &cli.json}, \
        {.kind = ARG_FLAG, \
         .letter = 'q', \
         .name = "quiet", \
         .help = "no notes, no progress; of values of 'run' only what --topk asks for", \
         .to = &cli.quiet}, \
        {.kind = ARG_FLAG, .letter = 'v', .name = "verbose", .help = "say more", .to = &cli.verbose}, \
        {.kind = ARG_CHOICE, \
         .name = "color", \
         .value = "WHEN", \
         .help = "auto, always or never (auto)", \
         .to = &args_color, \
         .choices = args_color_choices}, \
        {.kind = ARG_FLAG, .letter = 'h', .name = "help", .help = "this text", .to = &args_help}, \
    { \
        0 \
    }
extern int args_color;
extern bool args_help;
extern const char *const args_color_choices[];

/* Not NULL: args_parse only tells this of the command, and ends with EXIT_GOOD: how shell completion and
 * manual pages are made of the same rows. */
extern void (*args_tell)(const arg_command *);

static inline bool args_is_end(const arg_option *o) { return !o->name && !o->help; }

/* Parses argv[1..]. -1: go on; else the process is to end with this code (help was printed, or an error). */
int args_parse(const arg_command *, int argc, char **argv, arg_list *out_positional);

/* For values with an inner form. Usage errors say "--name expects ..., got ...". */
bool args_integer(const char *text, int64_t *out);
bool args_number(const char *text, double *out); /* "0.5", "1/255" */
/* "a,b,c" into at most `max` numbers; 0 when malformed. */
size_t args_numbers(const char *text, double *out, size_t max);

#endif
