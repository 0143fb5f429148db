/* tools/ortc/args.c: the table-driven parser of args.h. */
#include "args.h"

#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "term.h"

int args_color = TERM_AUTO;
bool args_help;
void (*args_tell)(const arg_command *);
const char *const args_color_choices[] = {"auto", "always", "never", NULL};

/* ---- Values -------------------------------------------------------------------------------------------- */

bool args_integer(const char *text, int64_t *out)
{
    char *end;
    errno = 0;
    long long v = strtoll(text, &end, 10);
    if (!text[0] || isspace((unsigned char)text[0]) || *end || errno) return false;
    *out = v;
    return true;
}

static bool number_until(const char *text, char stop, double *out, const char **out_end)
{
    char *end;
    if (!text[0] || isspace((unsigned char)text[0])) return false;
    double v = strtod(text, &end);
    if (end == text) return false;
    if (*end == '/') {
        const char *below = end + 1;
        double d = strtod(below, &end);
        if (end == below || d == 0) return false;
        v /= d;
    }
    if ((*end && *end != stop) || !isfinite(v)) return false;
    *out = v;
    *out_end = end;
    return true;
}

bool args_number(const char *text, double *out)
{
    const char *end;
    return number_until(text, 0, out, &end);
}

size_t args_numbers(const char *text, double *out, size_t max)
{
    for (size_t n = 0; n < max; text++) {
        if (!number_until(text, ',', &out[n++], &text)) return 0;
        if (!*text) return n;
    }
    return 0;
}

static int most_items; /* no list can be longer than the command line */

static bool set(const arg_option *o, const char *name, const char *value)
{
    int64_t number;
    switch (o->kind) {
    case ARG_HEADING: return true;
    case ARG_FLAG: *(bool *)o->to = true; return true;
    case ARG_TEXT: *(const char **)o->to = value; return true;
    case ARG_LIST: {
        arg_list *list = o->to;
        if (!list->items) list->items = mem_keep((size_t)most_items * sizeof *list->items);
        list->items[list->count++] = value;
        return true;
    }
    case ARG_INTEGER:
        if (!args_integer(value, &number) || number < o->min || number > o->max) {
            if (o->max == INT64_MAX)
                say_error("%s expects an integer of at least %lld, got '%s'", name, (long long)o->min, value);
            else
                say_error("%s expects an integer from %lld to %lld, got '%s'", name, (long long)o->min,
                          (long long)o->max, value);
            return false;
        }
        *(int64_t *)o->to = number;
        return true;
    case ARG_CHOICE:
        for (int i = 0; o->choices[i]; i++)
            if (strcmp(o->choices[i], value) == 0) {
                *(int *)o->to = i;
                return true;
            }
        buffer list = {0};
        for (int i = 0; o->choices[i]; i++)
            buffer_printf(&list, "%s%s", i ? (o->choices[i + 1] ? ", " : " or ") : "", o->choices[i]);
        say_error("%s expects %s, got '%s'", name, (const char *)list.data, value);
        free(list.data);
        return false;
    }
    return false;
}

/* ---- Options ------------------------------------------------------------------------------------------- */

static const arg_option *by_name(const arg_command *c, const char *name, size_t length)
{
    for (const arg_option *o = c->options; !args_is_end(o); o++)
        if (o->name && strlen(o->name) == length && strncmp(o->name, name, length) == 0) return o;
    return NULL;
}

static const arg_option *by_letter(const arg_command *c, char letter)
{
    for (const arg_option *o = c->options; !args_is_end(o); o++)
        if (o->letter && o->letter == letter) return o;
    return NULL;
}

static void unknown(const arg_command *c, const char *shown, const char *word)
{
    const char *names[128];
    size_t n = 0;
    for (const arg_option *o = c->options; !args_is_end(o) && n < COUNT_OF(names); o++)
        if (o->name) names[n++] = o->name;
    const char *meant = nearest(word, names, n);
    if (meant)
        say_error("there is no option '%s'; did you mean --%s?", shown, meant);
    else
        say_error("there is no option '%s'; 'ortc %s --help' lists them", shown, c->name);
}

/* The value of an option that wants one: behind '=', or the next argument unless that is an option itself. */
static const char *value_of(const arg_option *o, const char *name, const char *attached, int argc,
                            char **argv, int *i)
{
    if (attached) return attached;
    if (*i + 1 >= argc) {
        say_error("%s expects %s, but nothing follows it", name, o->value);
        return NULL;
    }
    const char *next = argv[*i + 1];
    if (next[0] == '-' && next[1] == '-' && next[2]) {
        say_error("%s expects %s, got the option '%s'", name, o->value, next);
        return NULL;
    }
    ++*i;
    return next;
}

static bool long_option(const arg_command *c, int argc, char **argv, int *i)
{
    const char *word = argv[*i] + 2, *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const arg_option *o = by_name(c, word, length);
    char *name = mem_printf("--%.*s", (int)length, word);
    bool good = false;
    if (!o) {
        unknown(c, name, name + 2);
    } else if (o->kind == ARG_FLAG && equals) {
        say_error("%s takes no value, got '%s'", name, equals + 1);
    } else if (o->kind == ARG_FLAG) {
        good = set(o, name, NULL);
    } else {
        const char *value = value_of(o, name, equals ? equals + 1 : NULL, argc, argv, i);
        good = value && set(o, name, value);
    }
    free(name);
    return good;
}

static bool short_options(const arg_command *c, int argc, char **argv, int *i)
{
    if (argv[*i][2] && by_name(c, argv[*i] + 1, strlen(argv[*i] + 1))) { /* "-topk": a dash was lost */
        unknown(c, argv[*i], argv[*i] + 1);
        return false;
    }
    for (const char *p = argv[*i] + 1; *p; p++) {
        char name[] = {'-', *p, 0};
        const arg_option *o = by_letter(c, *p);
        if (!o) {
            unknown(c, argv[*i][2] ? argv[*i] : name, argv[*i] + 1);
            return false;
        }
        if (o->kind == ARG_FLAG) {
            set(o, name, NULL);
            continue;
        }
        const char *value = value_of(o, name, p[1] ? p + 1 : NULL, argc, argv, i);
        return value && set(o, name, value);
    }
    return true;
}

/* ---- Help ---------------------------------------------------------------------------------------------- */

/* Prints words from column `at` on, wrapped before column 100. The caller stands in column `now`. */
static void wrap(const char *text, size_t now, size_t at)
{
    enum { WIDTH = 100 };
    if (now + 2 > at) {
        put("\n");
        now = 0;
    }
    put("%*s", (int)(at - now), "");
    size_t column = at;
    while (*text) {
        size_t n = strcspn(text, " ");
        if (column > at && column + 1 + n > WIDTH) {
            put("\n%*s", (int)at, "");
            column = at;
        }
        if (column > at) {
            put(" ");
            column++;
        }
        put("%.*s", (int)n, text);
        column += n;
        text += n;
        text += strspn(text, " ");
    }
    put("\n");
}

static void help(const arg_command *c)
{
    put("usage: ortc %s %s\n\n%s\n", c->name, c->usage, c->summary);
    for (const arg_option *o = c->options; !args_is_end(o); o++) {
        if (o->kind == ARG_HEADING) {
            term_color(stdout, TERM_BOLD);
            put("\n%s\n", o->help);
            term_color(stdout, TERM_PLAIN);
            continue;
        }
        char *left = mem_printf("  %c%c%c --%s%s%s", o->letter ? '-' : ' ', o->letter ? o->letter : ' ',
                                o->letter ? ',' : ' ', o->name, o->value ? " " : "",
                                o->value ? o->value : "");
        put("%s", left);
        wrap(o->help, strlen(left), 34);
        free(left);
    }
    if (c->details[0]) put("\n%s", c->details);
}

int args_parse(const arg_command *c, int argc, char **argv, arg_list *out_positional)
{
    *out_positional = (arg_list){0};
    if (args_tell) {
        args_tell(c);
        return EXIT_GOOD;
    }
    most_items = argc;
    arg_option positional = {.kind = ARG_LIST, .to = out_positional};
    cli.command = c->name;
    bool options = true;
    for (int i = 1; i < argc; i++) {
        const char *word = argv[i];
        bool good = true;
        if (options && strcmp(word, "--") == 0)
            options = false;
        else if (options && word[0] == '-' && word[1] == '-')
            good = long_option(c, argc, argv, &i);
        else if (options && word[0] == '-' && word[1])
            good = short_options(c, argc, argv, &i);
        else
            set(&positional, "", word);
        if (!good) return EXIT_USAGE;
    }
    term_color_mode(args_color);
    log_begin();
    if (args_help) {
        help(c);
        return finish(EXIT_GOOD);
    }
    size_t n = out_positional->count;
    if (n < c->min_positional) {
        say_error("expects %s; usage: ortc %s %s", c->positional, c->name, c->usage);
        return EXIT_USAGE;
    }
    if (n > c->max_positional) {
        say_error("expects %s, got '%s' besides%s%s%s", c->max_positional ? c->positional : "no argument",
                  out_positional->items[c->max_positional], c->max_positional ? " '" : " its options",
                  c->max_positional ? out_positional->items[0] : "", c->max_positional ? "'" : "");
        return EXIT_USAGE;
    }
    return -1;
}
