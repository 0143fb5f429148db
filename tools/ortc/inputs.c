/* tools/ortc/inputs.c: `--input` to values; see inputs.h for what may be written. */
#include "inputs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "element.h"
#include "files.h"
#include "input_value.h"

const char *const layout_choices[] = {"auto", "nchw", "nhwc", NULL};
const char *const resize_choices[] = {"none", "bilinear", NULL};

int input_options_parse(input_options *o)
{
    o->image.scale = 1;
    if (o->scale && !args_number(o->scale, &o->image.scale)) {
        say_error("--scale expects a number such as 1/255, got '%s'", o->scale);
        return EXIT_USAGE;
    }
    o->image.has_scale = o->scale != NULL;
    if (o->mean && !(o->image.n_mean = args_numbers(o->mean, o->image.mean, COUNT_OF(o->image.mean)))) {
        say_error("--mean expects a number, or one per channel as in 0.485,0.456,0.406, got '%s'", o->mean);
        return EXIT_USAGE;
    }
    if (o->std && !(o->image.n_std = args_numbers(o->std, o->image.std, COUNT_OF(o->image.std)))) {
        say_error("--std expects a number, or one per channel as in 0.229,0.224,0.225, got '%s'", o->std);
        return EXIT_USAGE;
    }
    for (size_t i = 0; i < o->image.n_std; i++)
        if (o->image.std[i] == 0) {
            say_error("--std expects values other than 0, got '%s'", o->std);
            return EXIT_USAGE;
        }
    return -1;
}

/* ---- Which input is meant ------------------------------------------------------------------------------ */

static char *list_inputs(const inputs *in)
{
    buffer b = {0};
    for (size_t i = 0; i < in->count; i++) {
        char *text = io_describe(in->items[i].io);
        buffer_printf(&b, "%s'%s' (%s)", i ? ", " : "", in->items[i].io->name, text);
        free(text);
    }
    return b.data ? (char *)b.data : mem_copy("no inputs");
}

/* The input that "NAME=..." begins with: the longest name that fits, as names may hold '='. */
static input *by_name(inputs *in, const char *text, const char **out_value)
{
    input *found = NULL;
    size_t best = 0;
    for (size_t i = 0; i < in->count; i++) {
        size_t n = strlen(in->items[i].io->name);
        if (strncmp(text, in->items[i].io->name, n) == 0 && text[n] == '=' && (!found || n > best)) {
            found = &in->items[i];
            best = n;
            *out_value = text + n + 1;
        }
    }
    return found;
}

/* May be left out: it has a default, or comes from the run before. */
static bool is_optional(const input *x) { return x->tied || (x->io->flags & ORTC_IO_OPTIONAL); }

/* The only input that must be given, or the only one at all. */
static input *only_input(inputs *in)
{
    input *found = NULL;
    for (size_t i = 0; i < in->count; i++) {
        if (is_optional(&in->items[i]) && in->count > 1) continue;
        if (found) return NULL;
        found = &in->items[i];
    }
    return found;
}

/* ---- All of them --------------------------------------------------------------------------------------- */

/* An .npz without a name: its arrays are inputs. An array that is none is an error: it would be ignored
 * silently. */
static int set_from_npz(inputs *in, const char *path, const session_options *so, const input_options *o)
{
    npz z;
    ortc_error e = ORTC_ERROR_INIT;
    ortc_status s = npz_open(path, &z, &e);
    if (s != ORTC_OK) {
        say_error("--input: %s", e.text);
        return s == ORTC_OUT_OF_MEMORY ? EXIT_MEMORY : EXIT_USAGE;
    }
    int code = -1;
    size_t used = 0;
    for (size_t i = 0; i < in->count && code < 0; i++)
        if (npz_find(&z, in->items[i].io->name)) {
            code = input_set(&in->items[i], path, so, o);
            used++;
        }
    if (code < 0 && used == 0 && z.zip.count == 1 && only_input(in)) {
        code = input_set(only_input(in), path, so, o);
    } else if (code < 0 && used != z.zip.count) {
        buffer names = {0};
        for (size_t i = 0; i < z.zip.count && i < 20; i++) {
            const char *name = z.zip.members[i].name;
            const size_t length = strlen(name) - (has_suffix(name, ".npy") ? 4 : 0);
            buffer_printf(&names, "%s%.*s", i ? ", " : "", (int)length, name);
        }
        char *list = list_inputs(in);
        say_error("--input: the arrays of '%s' (%s) do not match the inputs: the model has %s; "
                  "--input NAME=%s:ARRAY takes one of them",
                  path, names.size ? (const char *)names.data : "none", list, path);
        free(list);
        free(names.data);
        code = EXIT_USAGE;
    }
    npz_close(&z);
    return code;
}

static int set_unnamed(inputs *in, const char *text, const session_options *so, const input_options *o)
{
    fill f;
    if (fill_parse(text, &f) > 0) { /* for all that are left */
        int code = -1;
        for (size_t i = 0; i < in->count && code < 0; i++)
            if (!in->items[i].value && !in->items[i].n_files &&
                (in->count == 1 || !is_optional(&in->items[i])))
                code = input_set(&in->items[i], text, so, o);
        return code;
    }
    const char *equals = strchr(text, '=');
    if (equals && access(text, F_OK) != 0) {
        char *name = mem_printf("%.*s", (int)(equals - text), text);
        const char **names = mem_alloc(in->count * sizeof *names);
        for (size_t i = 0; i < in->count; i++) names[i] = in->items[i].io->name;
        const char *meant = nearest(name, names, in->count);
        char *list = list_inputs(in);
        say_error("the model has no input '%s'; it has %s%s%s%s", name, list, meant ? "; did you mean '" : "",
                  meant ? meant : "", meant ? "'?" : "");
        free(list);
        free(names);
        free(name);
        return EXIT_USAGE;
    }
    if (has_suffix(text, ".npz")) return set_from_npz(in, text, so, o);
    input *only = only_input(in);
    if (!only) {
        char *list = list_inputs(in);
        say_error("--input %s: say for which input, as in --input NAME=FILE: the model has %s", text, list);
        free(list);
        return EXIT_USAGE;
    }
    return input_set(only, text, so, o);
}

/* Fixed extents, --set, and symbols that stand in several inputs. What the model does not say, only the run
 * knows. */
static int check_shapes(const inputs *in, const session_options *so)
{
    for (size_t i = 0; i < in->count; i++) {
        const ortc_io *io = in->items[i].io;
        const ortc_value *v = in->items[i].value;
        if (!v || io->rank < 0 || ortc_value_type(v)->kind != ORTC_KIND_TENSOR) continue;
        bool fits = ortc_value_rank(v) == io->rank;
        for (int32_t d = 0; d < io->rank && fits; d++)
            fits = io->dims[d] < 0 || ortc_value_dims(v)[d] == io->dims[d];
        if (!fits) {
            buffer got = {0};
            value_describe(v, &got);
            char *wants = io_describe(io);
            say_error("input '%s' is %s, '%s' holds %s", io->name, wants, in->items[i].source,
                      (const char *)got.data);
            free(wants);
            free(got.data);
            return EXIT_USAGE;
        }
        for (int32_t d = 0; d < io->rank; d++) {
            const char *symbol = io->dims[d] < 0 && io->symbols ? io->symbols[d] : NULL;
            int64_t fixed = symbol_given(so, symbol), here = ortc_value_dims(v)[d];
            if (fixed >= 0 && fixed != here) {
                say_error("input '%s' has %s = %lld in '%s', --set says %lld", io->name, symbol,
                          (long long)here, in->items[i].source, (long long)fixed);
                return EXIT_USAGE;
            }
            for (size_t k = 0; symbol && k < i; k++) {
                const ortc_io *other = in->items[k].io;
                const ortc_value *w = in->items[k].value;
                for (int32_t c = 0; w && c < other->rank && ortc_value_type(w)->kind == ORTC_KIND_TENSOR; c++)
                    if (other->dims[c] < 0 && other->symbols && other->symbols[c] &&
                        strcmp(other->symbols[c], symbol) == 0 && ortc_value_dims(w)[c] != here) {
                        say_error("input '%s' has %s = %lld where input '%s' has %s = %lld", io->name, symbol,
                                  (long long)here, other->name, symbol, (long long)ortc_value_dims(w)[c]);
                        return EXIT_USAGE;
                    }
            }
        }
    }
    return -1;
}

static int make_pictures(inputs *in, const session_options *so, const input_options *o)
{
    int code = -1;
    for (size_t i = 0; i < in->count && code < 0; i++)
        if (in->items[i].n_files) code = input_pictures(&in->items[i], so, o);
    return code;
}

static int complete(inputs *in, const session_options *so, const input_options *o, bool optional)
{
    int code = -1;
    for (size_t i = 0; i < in->count && code < 0; i++) {
        input *x = &in->items[i];
        if (!x->value && !is_optional(x)) {
            if (optional || o->rest_is_random) {
                const bool random = o->rest_is_random && x->io->dtype != ORTC_STRING;
                const fill made = {random ? FILL_UNIFORM : FILL_ZEROS, .natural = true};
                x->source = mem_copy(random ? "rand" : "zeros");
                code = input_fill(x, so, o, &made);
            } else {
                char *text = io_describe(x->io);
                say_error("input '%s' (%s) has no value: pass --input %s=FILE or --input %s=rand",
                          x->io->name, text, x->io->name, x->io->name);
                free(text);
                code = EXIT_USAGE;
            }
        }
        if (code < 0 && x->value) code = input_convert(x, o);
    }
    return code >= 0 ? code : check_shapes(in, so);
}

int inputs_resolve(ortc_model *model, const session_options *so, const input_options *o, bool optional,
                   inputs *out)
{
    *out = (inputs){0};
    while (ortc_model_input(model, out->count)) out->count++;
    out->items = mem_alloc(out->count * sizeof *out->items);
    out->in = mem_alloc(out->count * sizeof *out->in);
    for (size_t i = 0; i < out->count; i++) {
        out->items[i].io = ortc_model_input(model, i);
        out->items[i].all = out;
        out->items[i].tied = input_is_tied(so, out->items[i].io->name);
    }
    /* In whatever order they were written: files before what is made up, which takes the symbols' extents
     * that files have settled; named ones first, so that a fill without a name takes what is left. */
    int code = -1;
    for (int round = 0; round < 4 && code < 0; round++) {
        const bool made = round >= 2, unnamed = round % 2;
        if (round == 2) code = make_pictures(out, so, o);
        for (size_t i = 0; i < o->inputs.count && code < 0; i++) {
            const char *value = NULL;
            fill f;
            input *x = by_name(out, o->inputs.items[i], &value);
            if (made != (fill_parse(x ? value : o->inputs.items[i], &f) > 0) || unnamed != !x) continue;
            code = x ? input_set(x, value, so, o) : set_unnamed(out, o->inputs.items[i], so, o);
        }
    }
    if (code < 0) code = complete(out, so, o, optional);
    for (size_t i = 0; i < out->count && code < 0; i++)
        if (out->items[i].value)
            out->in[out->n_in++] = (ortc_in){out->items[i].io->name, out->items[i].value};
    return code;
}

void inputs_release(inputs *in)
{
    for (size_t i = 0; i < in->count; i++) {
        ortc_value_release(in->items[i].value);
        free(in->items[i].source);
        free(in->items[i].files);
    }
    free(in->items);
    free(in->in);
    *in = (inputs){0};
}
