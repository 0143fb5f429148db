/* tools/ortc/session.c: from a path and the common options to a model and a session; see session.h. */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int plugins_load(const arg_list *plugins)
{
    for (size_t i = 0; i < plugins->count; i++) {
        ortc_error e = ORTC_ERROR_INIT;
        const char *path = plugins->items[i];
        char here[1024];
        if (!strchr(path, '/') && strlen(path) < sizeof here - 2 &&
            access(path, F_OK) == 0) { /* a file here, not the system's */
            snprintf(here, sizeof here, "./%s", path);
            path = here;
        }
        ortc_status s = ortc_plugin_load(path, &e);
        if (s != ORTC_OK) {
            say_error("%s", e.text);
            return s == ORTC_OUT_OF_MEMORY ? EXIT_MEMORY : EXIT_PROVIDER;
        }
    }
    return -1;
}

/* "past=present:2:80": the numbers are cut off from the right, as names may hold ':'. */
static int parse_tie(const char *text, ortc_tie *out)
{
    char *names = mem_keep(strlen(text) + 1), *equals, *colon;
    int64_t numbers[2];
    int n = 0;
    strcpy(names, text);
    while (n < 2 && (colon = strrchr(names, ':')) && args_integer(colon + 1, &numbers[n])) {
        *colon = 0;
        n++;
    }
    equals = strchr(names, '=');
    int64_t axis = n ? numbers[n - 1] : -1, capacity = n == 2 ? numbers[0] : 0;
    if (!equals || equals == names || !equals[1] || axis < -1 || axis > MAX_INPUT_RANK || capacity < 0) {
        say_error("--tie expects INPUT=OUTPUT, INPUT=OUTPUT:AXIS or INPUT=OUTPUT:AXIS:CAPACITY, got '%s'",
                  text);
        return EXIT_USAGE;
    }
    *equals = 0;
    *out = (ortc_tie){names, equals + 1, (int32_t)axis, 0, capacity};
    return -1;
}

bool input_is_tied(const session_options *o, const char *input_name)
{
    for (size_t i = 0; i < o->n_ties; i++)
        if (strcmp(o->ties[i].input, input_name) == 0) return true;
    return false;
}

int session_options_parse(session_options *o)
{
    o->ties = mem_keep(o->tie_texts.count * sizeof *o->ties);
    for (; o->n_ties < o->tie_texts.count; o->n_ties++) {
        int code = parse_tie(o->tie_texts.items[o->n_ties], &o->ties[o->n_ties]);
        if (code >= 0) return code;
    }
    o->dim_names = mem_keep(o->sets.count * sizeof *o->dim_names);
    o->dim_values = mem_keep(o->sets.count * sizeof *o->dim_values);
    for (size_t i = 0; i < o->sets.count; i++) {
        const char *text = o->sets.items[i], *equals = strrchr(text, '=');
        int64_t v;
        if (!equals || equals == text || !args_integer(equals + 1, &v) || v < 0) {
            say_error("--set expects DIM=N with N of at least 0, as in batch=8, got '%s'", text);
            return EXIT_USAGE;
        }
        char *name = mem_keep((size_t)(equals - text) + 1);
        memcpy(name, text, (size_t)(equals - text));
        o->dim_names[o->n_dims] = name;
        o->dim_values[o->n_dims++] = v;
    }
    for (size_t i = 0; i < o->shapes.count; i++)
        if (!strchr(o->shapes.items[i], '=')) {
            say_error("--shape expects NAME=1x3x8x8, got '%s'", o->shapes.items[i]);
            return EXIT_USAGE;
        }
    return -1;
}

void model_note(const ortc_model *model)
{
    const ortc_model_info *info = ortc_model_describe(model);
    for (size_t i = 0; i < info->n_opsets; i++)
        if (!info->opset_domains[i][0] && info->opset_versions[i] > ORTC_OPSET)
            say_note("the model's opset is %lld, the newest that this ortc knows is %d: operators are read "
                     "as there",
                     (long long)info->opset_versions[i], ORTC_OPSET);
    if (!ortc_model_output(model, 0)) say_note("the model has no outputs: its runs give nothing");
}

/* A deadline from now on; 0: none. */
static int64_t deadline_in(int64_t ms) { return ms ? (int64_t)(seconds_now() * 1e9) + ms * 1000000 : 0; }

ortc_model_options model_options(const session_options *o)
{
    ortc_model_options mo = ORTC_MODEL_OPTIONS_INIT;
    mo.fold_operations = (uint64_t)o->fold;
    mo.deadline_ns = deadline_in(o->start_ms);
    return mo;
}

static int open_as(const char *path, const ortc_model_options *mo, ortc_model **out)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_status s = ortc_model_load(path, mo, out, &e);
    if (s == ORTC_OK) {
        if (!(mo->flags & ORTC_MODEL_DESCRIBE)) model_note(*out);
        return -1;
    }
    if (strstr(e.text, path))
        say_error("%s", e.text);
    else
        say_error("%s: %s", path, e.text);
    return exit_code(s, STAGE_LOAD);
}

int model_open(const char *path, const session_options *o, ortc_model **out)
{
    const ortc_model_options mo = model_options(o);
    return open_as(path, &mo, out);
}

int model_describe(const char *path, ortc_model **out)
{
    ortc_model_options mo = ORTC_MODEL_OPTIONS_INIT;
    mo.flags = ORTC_MODEL_DESCRIBE;
    return open_as(path, &mo, out);
}

/* --shape of a name that is no input does nothing, either. */
static int check_shape_names(ortc_model *model, const session_options *o)
{
    const char *names[64];
    const ortc_io *io;
    size_t n = 0;
    while (n < COUNT_OF(names) && (io = ortc_model_input(model, n))) names[n++] = io->name;
    for (size_t i = 0; i < o->shapes.count; i++) {
        const char *text = o->shapes.items[i];
        bool found = n == COUNT_OF(names);
        for (size_t k = 0; k < n && !found; k++) {
            const size_t length = strlen(names[k]);
            found = !strncmp(text, names[k], length) && text[length] == '=';
        }
        if (found) continue;
        char *given = mem_printf("%.*s", (int)(strchr(text, '=') - text), text);
        const char *meant = nearest(given, names, n);
        say_error(meant ? "--shape: the model has no input '%s'; did you mean '%s'?"
                        : "--shape: the model has no input '%s'",
                  given, meant);
        free(given);
        return EXIT_USAGE;
    }
    return -1;
}

/* A name that is no symbol of the model would do nothing, which is never what was meant. */
int symbol_check(ortc_model *model, const char *option, const char *symbol)
{
    const char *names[256];
    size_t n = 0;
    for (int outputs = 0; outputs < 2; outputs++) {
        const ortc_io *io;
        for (size_t i = 0; (io = outputs ? ortc_model_output(model, i) : ortc_model_input(model, i)); i++)
            for (int32_t d = 0; d < io->rank; d++) {
                if (io->dims[d] >= 0 || !io->symbols || !io->symbols[d] || n == COUNT_OF(names)) continue;
                if (strcmp(io->symbols[d], symbol) == 0) return -1;
                bool seen = false;
                for (size_t k = 0; k < n && !seen; k++) seen = strcmp(names[k], io->symbols[d]) == 0;
                if (!seen) names[n++] = io->symbols[d];
            }
    }
    if (n == COUNT_OF(names)) return -1; /* too many to know */
    buffer list = {0};
    for (size_t k = 0; k < n; k++) buffer_printf(&list, "%s%s", k ? ", " : "", names[k]);
    say_error("%s: the model has no symbolic dimension '%s'; it has %s", option, symbol,
              n ? (const char *)list.data : "none");
    free(list.data);
    return EXIT_USAGE;
}

ortc_status session_create(ortc_model *model, const session_options *o, ortc_session **out, ortc_error *error,
                           int *out_exit)
{
    ortc_session_options so = ORTC_SESSION_OPTIONS_INIT;
    so.flags = (o->no_fusion ? ORTC_SESSION_NO_FUSION : 0) | (o->no_winograd ? ORTC_SESSION_NO_WINOGRAD : 0) |
               (o->pack_at_once ? ORTC_SESSION_PACK_AT_ONCE : 0);
    so.providers = o->provider;
    so.require = o->require;
    so.precision = o->precision;
    so.threads = (uint32_t)o->threads;
    so.n_dims = o->n_dims;
    so.dim_names = o->dim_names;
    so.dim_values = o->dim_values;
    so.ties = o->ties;
    so.n_ties = o->n_ties;
    so.keep = o->keep.items;
    so.n_keep = o->keep.count;
    so.choose = o->choose.items;
    so.n_choose = o->choose.count;
    so.deadline_ns = deadline_in(o->start_ms);
    ortc_status s = ortc_session_create(model, &so, out, error);
    *out_exit = exit_code(s, STAGE_CREATE);
    if (s == ORTC_UNSUPPORTED && o->require) {
        /* Is it the demand that is not met, or can no provider run the model at all? */
        ortc_session *any = NULL;
        so.require = NULL;
        if (ortc_session_create(model, &so, &any, NULL) == ORTC_OK) *out_exit = EXIT_PROVIDER;
        ortc_session_release(any);
    }
    return s;
}

int session_open(ortc_model *model, const session_options *o, ortc_session **out)
{
    int code = -1;
    for (size_t i = 0; i < o->n_dims && code < 0; i++) code = symbol_check(model, "--set", o->dim_names[i]);
    if (code < 0) code = check_shape_names(model, o);
    if (code >= 0) return code;
    ortc_error e = ORTC_ERROR_INIT;
    if (session_create(model, o, out, &e, &code) == ORTC_OK) return -1;
    say_error("%s", e.text);
    return code;
}

bool shape_given(const session_options *o, const char *input_name, int64_t *dims, int32_t *out_rank,
                 int *out_exit)
{
    size_t length = strlen(input_name);
    for (size_t i = o->shapes.count; i-- > 0;) { /* the last one counts */
        const char *text = o->shapes.items[i], *at = text + length + 1;
        if (strncmp(text, input_name, length) != 0 || text[length] != '=') continue;
        int32_t rank = 0;
        for (bool more = *at != 0; more;) { /* nothing behind '=': a scalar */
            char *end;
            long long v = *at >= '0' && *at <= '9' ? strtoll(at, &end, 10) : -1;
            if (v < 0 || v == INT64_MAX || rank == MAX_INPUT_RANK || (*end != 'x' && *end != ',' && *end)) {
                say_error("--shape expects NAME=1x3x8x8, got '%s'", text);
                *out_exit = EXIT_USAGE;
                return false;
            }
            dims[rank++] = v;
            more = *end != 0;
            at = end + 1;
        }
        *out_rank = rank;
        return true;
    }
    return false;
}

int64_t symbol_given(const session_options *o, const char *symbol)
{
    for (size_t i = o->n_dims; symbol && i-- > 0;)
        if (strcmp(o->dim_names[i], symbol) == 0) return o->dim_values[i];
    return -1;
}
