/* tools/ortc/man.c: `ortc man [COMMAND]`: manual pages in man(7)'s language, made of the tables that make the
 * help text. */
#include <string.h>

#include "args.h"

/* Text, a line of its own: a dot or an apostrophe at the start would be a request, a dash a hyphen. */
static void text(const char *words)
{
    bool start = true;
    for (; *words; words++) {
        if (start && (*words == '.' || *words == '\'')) put("\\&");
        if (*words == '\\')
            put("\\e");
        else if (*words == '-')
            put("\\-");
        else
            put("%c", *words);
        start = *words == '\n';
    }
}

static void page(const char *name, const char *summary)
{
    put(".TH ");
    for (const char *p = name; *p; p++) put("%c", *p == ' ' ? '-' : *p >= 'a' && *p <= 'z' ? *p - 32 : *p);
    put(" 1 \"\" \"ortc %s\" \"\"\n.SH NAME\n", ortc_version());
    for (const char *p = name; *p; p++) put("%s", *p == ' ' ? "\\-" : (char[]){*p, 0});
    put(" \\- ");
    text(summary);
    put("\n");
}

static void command_page(const arg_command *c)
{
    char *name = mem_keep(strlen(c->name) + 6);
    strcpy(name, "ortc ");
    strcat(name, c->name);
    page(name, c->summary);
    put(".SH SYNOPSIS\n.B ");
    text(name);
    put("\n");
    text(c->usage);
    put("\n.SH DESCRIPTION\n");
    text(c->summary);
    put("\n");
    bool headed = false;
    for (const arg_option *o = c->options; !args_is_end(o); o++) {
        if (!headed) put(".SH OPTIONS\n");
        headed = true;
        if (o->kind == ARG_HEADING) {
            put(".SS %s\n", o->help);
            continue;
        }
        put(".TP\n");
        if (o->letter) put("\\fB\\-%c\\fR, ", o->letter);
        put("\\fB\\-\\-");
        text(o->name);
        put("\\fR");
        if (o->value) {
            put(" \\fI");
            text(o->value);
            put("\\fR");
        }
        put("\n");
        text(o->help);
        put("\n");
    }
    if (c->details[0]) {
        put(".SH NOTES\n.nf\n");
        text(c->details);
        put(".fi\n");
    }
    put(".SH SEE ALSO\n.BR ortc (1)\n");
}

static void overview_page(void)
{
    page("ortc", "runs ONNX models");
    put(".SH SYNOPSIS\n.B ortc\n.I COMMAND\n[options]\n.SH COMMANDS\n");
    for (const cli_command *c = cli_commands; c->name; c++) {
        put(".TP\n.BR ortc\\-%s (1)\n", c->name);
        text(c->summary);
        put("\n");
    }
    put(".SH CONVENTIONS\n.nf\n");
    text(cli_conventions);
    put(".fi\n");
}

int command_man(int argc, char **argv)
{
    const arg_option options[] = {ARGS_COMMON};
    const arg_command me = {"man",
                            "[COMMAND]",
                            "Prints the manual page of ortc or of a command, for man(1).",
                            "examples:\n  ortc man run | man -l -\n",
                            "at most one command",
                            0,
                            1,
                            options};
    arg_list names;
    const int code = args_parse(&me, argc, argv, &names);
    if (code >= 0) return code;
    if (!names.count) {
        overview_page();
        return finish(EXIT_GOOD);
    }
    for (const cli_command *c = cli_commands; c->name; c++)
        if (strcmp(c->name, names.items[0]) == 0) {
            args_tell = command_page;
            c->run(0, NULL);
            return finish(EXIT_GOOD);
        }
    say_error("there is no command '%s'", names.items[0]);
    return EXIT_USAGE;
}
