/* tools/ortc/completion.c: `ortc completion SHELL`: a script for bash, zsh or fish, made of the tables that
 * make the help text. Options complete by name, choices by their words, everything else by files. */
#include <stdlib.h>
#include <string.h>

#include "args.h"

/* Help text as one word of the shell: quotes closed, escaped, opened again. */
static void quoted(const char *text)
{
    put("'");
    for (; *text; text++) {
        if (*text == '\'')
            put("'\\''");
        else
            put("%c", *text);
    }
    put("'");
}

/* ---- Bash ---------------------------------------------------------------------------------------------- */

static void bash_command(const arg_command *c)
{
    put("    %s)\n        case $previous in\n", c->name);
    for (const arg_option *o = c->options; !args_is_end(o); o++) {
        if (o->kind != ARG_CHOICE) continue;
        put("        --%s) words='", o->name);
        for (size_t i = 0; o->choices[i]; i++) put("%s%s", i ? " " : "", o->choices[i]);
        put("' ;;\n");
    }
    put("        esac\n        options='");
    for (const arg_option *o = c->options; !args_is_end(o); o++)
        if (o->name) put("--%s ", o->name);
    put("'\n        ;;\n");
}

static void bash(void)
{
    put("# bash completion of ortc, written by 'ortc completion bash'\n_ortc()\n{\n"
        "    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} words= options=\n"
        "    if [ \"$COMP_CWORD\" = 1 ]; then\n        COMPREPLY=($(compgen -W '");
    for (const cli_command *c = cli_commands; c->name; c++) put("%s ", c->name);
    put("help --version' -- \"$current\"))\n        return\n    fi\n    case ${COMP_WORDS[1]} in\n"
        "    help | man) words='");
    for (const cli_command *c = cli_commands; c->name; c++) put("%s ", c->name);
    put("' ;;\n    completion) words='bash zsh fish' ;;\n");
    args_tell = bash_command;
    for (const cli_command *c = cli_commands; c->name; c++)
        if (c->run != command_completion && c->run != command_man) c->run(0, NULL);
    put("    esac\n    if [ -n \"$words\" ]; then\n        COMPREPLY=($(compgen -W \"$words\" -- "
        "\"$current\"))\n"
        "    elif [ \"${current#-}\" != \"$current\" ]; then\n"
        "        COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n    else\n"
        "        COMPREPLY=($(compgen -f -- \"$current\"))\n    fi\n}\ncomplete -o filenames -F _ortc "
        "ortc\n");
}

/* ---- Zsh ----------------------------------------------------------------------------------------------- */

static void zsh_option(const arg_option *o)
{
    buffer help = {0};
    for (const char *p = o->help; *p; p++) { /* brackets and colons mean something to _arguments */
        if (strchr("[]:\\", *p)) buffer_add(&help, "\\", 1);
        buffer_add(&help, p, 1);
    }
    const char *many = o->kind == ARG_LIST ? "*" : "";
    buffer words = {0};
    for (size_t i = 0; o->kind == ARG_CHOICE && o->choices[i]; i++)
        buffer_printf(&words, "%s%s", i ? " " : "", o->choices[i]);
    char *spec = o->kind == ARG_FLAG ? mem_printf("--%s[%s]", o->name, help.data)
                 : words.data ? mem_printf("--%s=[%s]:%s:(%s)", o->name, help.data, o->value, words.data)
                              : mem_printf("%s--%s=[%s]:value:_files", many, o->name, help.data);
    put("            ");
    quoted(spec);
    put(" \\\n");
    free(spec);
    free(words.data);
    free(help.data);
}

static void zsh_command(const arg_command *c)
{
    put("    %s)\n        _arguments \\\n", c->name);
    for (const arg_option *o = c->options; !args_is_end(o); o++)
        if (o->name) zsh_option(o);
    put("            '*:file:_files'\n        ;;\n");
}

static void zsh(void)
{
    put("#compdef ortc\n# zsh completion of ortc, written by 'ortc completion zsh'\n"
        "local -a commands=(\n");
    for (const cli_command *c = cli_commands; c->name; c++) {
        char *line = mem_printf("%s:%s", c->name, c->summary);
        for (char *p = line + strlen(c->name) + 1; *p; p++)
            if (*p == ':') *p = ','; /* a colon would end the word that it describes */
        put("    ");
        quoted(line);
        put("\n");
        free(line);
    }
    put("    'help:all options of a command'\n)\n"
        "if ((CURRENT == 2)); then\n    _describe command commands\n    return\nfi\n"
        "local command=$words[2]\nshift words\n((CURRENT--))\ncase $command in\n"
        "    help | man) _describe command commands ;;\n    completion) _values shell bash zsh fish ;;\n");
    args_tell = zsh_command;
    for (const cli_command *c = cli_commands; c->name; c++)
        if (c->run != command_completion && c->run != command_man) c->run(0, NULL);
    put("esac\n");
}

/* ---- Fish ---------------------------------------------------------------------------------------------- */

static void fish_command(const arg_command *c)
{
    for (const arg_option *o = c->options; !args_is_end(o); o++) {
        if (!o->name) continue;
        put("complete -c ortc -n '__fish_seen_subcommand_from %s' -l %s", c->name, o->name);
        if (o->letter) put(" -s %c", o->letter);
        if (o->kind == ARG_CHOICE) {
            put(" -x -a '");
            for (size_t i = 0; o->choices[i]; i++) put("%s%s", i ? " " : "", o->choices[i]);
            put("'");
        } else if (o->kind != ARG_FLAG) {
            put(" -r");
        }
        put(" -d ");
        quoted(o->help);
        put("\n");
    }
}

static void fish(void)
{
    put("# fish completion of ortc, written by 'ortc completion fish'\n");
    for (const cli_command *c = cli_commands; c->name; c++) {
        put("complete -c ortc -n __fish_use_subcommand -f -a %s -d ", c->name);
        quoted(c->summary);
        put("\n");
    }
    put("complete -c ortc -n __fish_use_subcommand -f -a help -d 'all options of a command'\n"
        "complete -c ortc -n '__fish_seen_subcommand_from completion' -f -a 'bash zsh fish'\n"
        "complete -c ortc -n '__fish_seen_subcommand_from help man' -f -a '");
    for (const cli_command *c = cli_commands; c->name; c++) put("%s ", c->name);
    put("'\n");
    args_tell = fish_command;
    for (const cli_command *c = cli_commands; c->name; c++)
        if (c->run != command_completion && c->run != command_man) c->run(0, NULL);
}

int command_completion(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*print)(void);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};
    const arg_option options[] = {ARGS_COMMON};
    const arg_command command = {"completion",
                                 "bash|zsh|fish",
                                 "Prints a script that completes ortc's arguments.",
                                 "examples:\n"
                                 "  ortc completion bash >~/.local/share/bash-completion/completions/ortc\n"
                                 "  ortc completion fish >~/.config/fish/completions/ortc.fish\n",
                                 "bash, zsh or fish",
                                 1,
                                 1,
                                 options};
    arg_list names;
    const int code = args_parse(&command, argc, argv, &names);
    if (code >= 0) return code;
    for (size_t i = 0; i < COUNT_OF(shells); i++)
        if (strcmp(shells[i].name, names.items[0]) == 0) {
            shells[i].print();
            return finish(EXIT_GOOD);
        }
    say_error("expects bash, zsh or fish, got '%s'", names.items[0]);
    return EXIT_USAGE;
}
