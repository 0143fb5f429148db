/* tools/ortc/main.c: `ortc COMMAND ...`: finds the command, and says which there are. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "cli.h"
#include "term.h"

const cli_command cli_commands[] = {
    {"run", "run a model on files or made-up inputs; print, save and time its outputs", command_run},
    {"bench", "measure a model: percentiles, throughput, start, memory; against a saved measurement",
     command_bench},
    {"profile", "where a model's time goes, by operator, node or kernel", command_profile},
    {"compare", "two providers or two files on the same inputs: where results part, and how far",
     command_compare},
    {"info", "what a model is made of: inputs, outputs, operators, placement, plan", command_info},
    {"optimize", "write a model as the graph passes leave it, as standard ONNX; check it", command_optimize},
    {"test", "run folders of test cases in the layout of ONNX's own suite", command_test},
    {"providers", "where models can run on this machine", command_providers},
    {"ops", "operators: versions, types, who runs them, where their code is; what a model misses",
     command_ops},
    {"view", "draw a model's graph before and after the passes, as SVG or HTML", command_view},
    {"convert", "between .npy, .npz, .pb and pictures", command_convert},
    {"completion", "a script that completes ortc's arguments in bash, zsh or fish", command_completion},
    {"man", "manual pages", command_man},
    {0},
};

const char *const cli_conventions =
    "exit codes: 0 good; 1 a test or comparison failed, or a measurement is worse than allowed; 2 bad use, "
    "or\n"
    "inputs that do not fit; 3 the model cannot be read or is not valid; 4 an operator or type is not "
    "supported;\n"
    "5 a provider is missing, or --require is not met; 6 the run failed, or results could not be written;\n"
    "7 out of memory; 8 deadline passed; 130 interrupted\n"
    "environment: ORTC_LOG=error|warning|info|debug shows the library's messages; NO_COLOR=1;\n"
    "ORTC_CPU=scalar|avx2|avx512|amx-fma|amx|neon does without newer instructions; ORTC_THREADS=N;\n"
    "ORTC_PYTHON=python3 is the one whose onnxruntime 'compare' asks\n";

enum { N_COMMANDS = COUNT_OF(cli_commands) - 1 };

static int version(void)
{
    put("ortc %s\n", ortc_version());
    return finish(EXIT_GOOD);
}

static int overview(void)
{
    put("usage: ortc COMMAND [options]\n\nRuns ONNX models.\n\n");
    table t;
    table_init(&t, "ll");
    for (size_t i = 0; i < N_COMMANDS; i++) {
        table_cell(&t, cli_commands[i].name);
        table_cell(&t, cli_commands[i].summary);
    }
    table_cell(&t, "help COMMAND");
    table_cell(&t, "all options of a command; the same as ortc COMMAND --help");
    table_cell(&t, "--version");
    table_cell(&t, "the version of ortc");
    table_print(&t, 2, false);
    put("\n%s", cli_conventions);
    return finish(EXIT_GOOD);
}

static const cli_command *find(const char *name)
{
    for (size_t i = 0; i < N_COMMANDS; i++)
        if (strcmp(cli_commands[i].name, name) == 0) return &cli_commands[i];
    return NULL;
}

/* "run, bench, ... or help" */
static const char *all_names(void)
{
    buffer list = {0};
    for (size_t i = 0; i < N_COMMANDS; i++) buffer_printf(&list, i ? ", %s" : "%s", cli_commands[i].name);
    buffer_printf(&list, " or help");
    char *kept = mem_keep(list.size + 1);
    memcpy(kept, list.data, list.size);
    free(list.data);
    return kept;
}

static int unknown(const char *name)
{
    const char *names[N_COMMANDS + 1], *meant;
    size_t n = 0;
    for (; n < N_COMMANDS; n++) names[n] = cli_commands[n].name;
    names[n++] = "help";
    meant = nearest(name, names, n);
    if (meant)
        say_error("there is no command '%s'; did you mean 'ortc %s'?", name, meant);
    else
        say_error("there is no command '%s'; expected %s", name, all_names());
    return EXIT_USAGE;
}

static int help(int argc, char **argv)
{
    if (argc < 2 || argv[1][0] == '-') return overview();
    const cli_command *c = find(argv[1]);
    if (!c && strcmp(argv[1], "help") == 0) return overview();
    if (!c) return unknown(argv[1]);
    char ask[] = "--help";
    char *arguments[] = {argv[1], ask, NULL};
    return c->run(2, arguments);
}

/* A wrong value in the environment would be ignored, and nobody would know. */
static bool environment_is_right(void)
{
    static const struct {
        const char *name, *values; /* between blanks */
    } choices[] = {{"ORTC_LOG", " error warning info debug "},
                   {"ORTC_CPU", " scalar avx2 avx512 amx-fma amx neon "}};
    for (size_t i = 0; i < COUNT_OF(choices); i++) {
        const char *text = getenv(choices[i].name);
        if (!text || !*text) continue;
        char *word = mem_printf(" %s ", text);
        const bool known = !strchr(text, ' ') && strstr(choices[i].values, word);
        free(word);
        if (known) continue;
        say_error("%s expects one of:%s; got '%s'", choices[i].name, choices[i].values, text);
        return false;
    }
    const char *threads = getenv("ORTC_THREADS");
    int64_t n;
    if (threads && *threads && (!args_integer(threads, &n) || n < 1)) {
        say_error("ORTC_THREADS expects a number of at least 1, got '%s'", threads);
        return false;
    }
    return true;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        say_error("expects a command: %s ('ortc help' describes them)", all_names());
        return EXIT_USAGE;
    }
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0 || strcmp(word, "version") == 0) return version();
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) return overview();
    if (strcmp(word, "help") == 0) return help(argc - 1, argv + 1);
    if (word[0] == '-') {
        say_error("expects a command before options, got '%s'; 'ortc help' lists the commands", word);
        return EXIT_USAGE;
    }
    const cli_command *c = find(word);
    if (c && !environment_is_right()) return EXIT_USAGE;
    return c ? c->run(argc - 1, argv + 1) : unknown(word);
}
