/* tools/ortc/ops.c: `ortc ops`: which operators there are, in which versions and for which element types each
 * provider runs them, and in which folder their story is. --markdown writes docs/operators.md.
 */
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "json.h"
#include "session.h"
#include "term.h"

#define MAX_PROVIDERS 16

typedef struct listing {
    table t;
    json j;
    const char *name; /* only this operator; NULL: all */
    bool markdown;
    char *providers; /* asked for, each ended by a 0 */
    const char *columns[MAX_PROVIDERS];
    size_t n_columns, shown;
} listing;

/* ---- What a provider takes of an operator -------------------------------------------------------------- */

/* Per constraint, what some kernel of the provider takes of what the standard allows. false: it has none. */
static bool covered(const ortc_operator_info *op, const char *provider, uint64_t *types)
{
    bool any = false;
    memset(types, 0, op->n_types * sizeof *types);
    for (uint32_t k = 0; k < op->n_kernels; k++) {
        if (strcmp(op->kernels[k].provider, provider)) continue;
        any = true;
        for (uint32_t i = 0; i < op->n_types && i < 8; i++)
            types[i] |= op->kernels[k].types[i] ? op->kernels[k].types[i] & op->types[i] : op->types[i];
    }
    return any;
}

static char *add(char *text, const char *more)
{
    char *whole = mem_printf("%s%s", text, more);
    free(text);
    return whole;
}

static char *add_types(char *text, uint64_t mask)
{
    const char *comma = "";
    for (uint32_t t = 1; t < ORTC_DTYPE_COUNT; t++)
        if (mask >> t & 1) {
            char *one = mem_printf("%s%s", comma, ortc_dtype_name((ortc_dtype)t));
            text = add(text, one);
            free(one);
            comma = ",";
        }
    return text;
}

/* "all", "T=f32,f16", or "all but T: string"; whichever is shorter. To be freed. */
static char *coverage_text(const ortc_operator_info *op, const char *provider)
{
    uint64_t *types = mem_alloc((op->n_types + 1) * sizeof *types);
    char *has = mem_copy(""), *lacks = mem_copy("");
    const uint64_t tensors = (UINT64_C(1) << ORTC_DTYPE_COUNT) - 2;
    const bool any = covered(op, provider, types);
    for (uint32_t i = 0; i < op->n_types; i++) {
        const uint64_t all = op->types[i] & tensors, got = types[i] & all;
        if (got == all) continue;
        char *head = mem_printf("%s%s=", *has ? " " : "", op->type_names[i]);
        has = add_types(add(has, head), got);
        lacks = add_types(add(lacks, head), all & ~got);
        free(head);
    }
    char *text = op->composed && !any              ? mem_copy("composed")
                 : op->module                      ? mem_copy("module")
                 : !any                            ? mem_copy("")
                 : !*has                           ? mem_copy("all")
                 : strlen(lacks) + 8 < strlen(has) ? mem_printf("all but %s", lacks)
                                                   : mem_copy(has);
    free(types);
    free(has);
    free(lacks);
    return text;
}

/* "22 13 6 1"; those that are refused in parentheses. To be freed. */
static char *versions_text(const ortc_operator_info *op)
{
    char *text = mem_printf("%d", op->since);
    for (const char *at = op->older; *at;) {
        char *end;
        const long v = strtol(at, &end, 10);
        if (end == at) break;
        char *one = mem_printf(v < op->form && !op->lifts ? " (%ld)" : " %ld", v);
        text = add(text, one);
        free(one);
        at = end;
    }
    return text;
}

/* ---- Printing ------------------------------------------------------------------------------------------ */

static void as_json(listing *l, const ortc_operator_info *op, const char *versions)
{
    json_object(&l->j);
    json_pair_text(&l->j, "domain", op->domain);
    json_pair_text(&l->j, "operator", op->name);
    json_pair_text(&l->j, "versions", versions);
    json_pair_text(&l->j, "family", op->family);
    json_key(&l->j, "kernels");
    json_array(&l->j);
    for (uint32_t k = 0; k < op->n_kernels; k++) {
        json_object(&l->j);
        json_pair_text(&l->j, "provider", op->kernels[k].provider);
        json_pair_text(&l->j, "kernel", op->kernels[k].kernel);
        json_pair_integer(&l->j, "since", op->kernels[k].since_min);
        json_object_end(&l->j);
    }
    json_array_end(&l->j);
    for (size_t i = 0; i < l->n_columns; i++) {
        char *text = coverage_text(op, l->columns[i]);
        json_pair_text(&l->j, l->columns[i], text);
        free(text);
    }
    json_object_end(&l->j);
}

static int each(void *arg, const ortc_operator_info *op)
{
    listing *l = arg;
    if (l->name && strcmp(l->name, op->name)) return 0;
    l->shown++;
    char *versions = versions_text(op);
    if (cli.json) {
        as_json(l, op, versions);
        free(versions);
        return 0;
    }
    char *name = mem_printf("%s%s%s", op->domain, op->domain[0] ? ":" : "", op->name);
    if (l->markdown) {
        put("| %s | %s | [%s](../kernels/%s) |", name, versions, op->family, op->family);
    } else {
        table_cell(&l->t, name);
        table_cell(&l->t, versions);
        table_format(&l->t, "%s", op->family);
    }
    for (size_t i = 0; i < l->n_columns; i++) {
        char *text = coverage_text(op, l->columns[i]);
        if (l->markdown)
            put(" %s |", text);
        else
            table_cell(&l->t, text);
        free(text);
    }
    if (l->markdown) put("\n");
    free(name);
    free(versions);
    return 0;
}

static int add_provider(void *arg, const ortc_provider_info *p)
{
    listing *l = arg;
    if (p->n_kernels && !p->ordinal && l->n_columns < MAX_PROVIDERS) l->columns[l->n_columns++] = p->provider;
    return 0;
}

static void split_providers(listing *l, const char *list)
{
    l->providers = mem_copy(list);
    for (char *at = strtok(l->providers, ","); at && l->n_columns < MAX_PROVIDERS; at = strtok(NULL, ","))
        l->columns[l->n_columns++] = at;
}

static void heading(listing *l)
{
    /* MAX_PROVIDERS and the three before them */
    static const char align[] = "lllllllllllllllllll";
    if (cli.json) {
        json_begin(&l->j, "ops");
        json_key(&l->j, "operators");
        json_array(&l->j);
    } else if (l->markdown) {
        put("# Operators\n\nWritten by `ortc ops --markdown --provider ref,cpu`; a test compares. Versions "
            "in "
            "parentheses are refused. A provider's\ncolumn says for which element types it has kernels: all "
            "that the standard allows, or which, by type constraint.\nKernels may decline single nodes: "
            "`ortc info MODEL --placement` says why. A composed operator is written with others\nwhen a "
            "model "
            "is loaded, and has their kernels. Those of an operator that says module are ref's, in "
            "libortc_FOLDER.so.\n\n| operator | versions | folder |");
        for (size_t i = 0; i < l->n_columns; i++) put(" %s |", l->columns[i]);
        put("\n|---|---|---|");
        for (size_t i = 0; i < l->n_columns; i++) put("---|");
        put("\n");
    } else {
        table_init(&l->t, align + (sizeof align - 1 - 3 - l->n_columns));
        table_cell(&l->t, "operator");
        table_cell(&l->t, "versions");
        table_cell(&l->t, "family");
        for (size_t i = 0; i < l->n_columns; i++) table_cell(&l->t, l->columns[i]);
    }
}

int command_ops(int argc, char **argv)
{
    arg_list plugins = {0}, names;
    listing l = {0};
    const char *providers = NULL;
    const arg_option options[] = {
        {.kind = ARG_TEXT,
         .name = "provider",
         .value = "LIST",
         .to = &providers,
         .help = "a column for each of these, in this order (every provider that has kernels)"},
        {.kind = ARG_FLAG, .name = "markdown", .to = &l.markdown, .help = "as a table for a page"},
        {.kind = ARG_LIST,
         .name = "plugin",
         .value = "FILE",
         .to = &plugins,
         .help = "load a plugin first; may be repeated"},
        ARGS_COMMON,
    };
    const arg_command command = {"ops",
                                 "[OPERATOR] [options]",
                                 "Lists operators: versions, the folder of their code, and for which element "
                                 "types each provider has kernels.",
                                 "",
                                 "OPERATOR",
                                 0,
                                 1,
                                 options};
    int code = args_parse(&command, argc, argv, &names);
    if (code < 0) code = plugins_load(&plugins);
    if (code >= 0) return code;
    l.name = names.count ? names.items[0] : NULL;
    if (providers)
        split_providers(&l, providers);
    else
        ortc_providers(add_provider, &l);
    heading(&l);
    ortc_operators(each, &l);
    if (cli.json) {
        json_array_end(&l.j);
        json_finish(&l.j);
    } else if (!l.markdown) {
        table_print(&l.t, 0, true);
    }
    free(l.providers);
    if (l.name && !l.shown) {
        say_error("there is no operator '%s'", l.name);
        return EXIT_UNSUPPORTED;
    }
    return finish(EXIT_GOOD);
}
