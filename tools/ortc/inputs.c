/* tools/ortc/inputs.c: `--input` to values; see inputs.h for what may be written. */
#include "inputs.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "element.h"
#include "files.h"
#include "fill.h"

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

/* ---- Which input is meant --------------------------------------------------------------------------------------- */

static char *io_text(const ortc_io *io)
{
    buffer b = {0};
    type_describe(io->type, &b);
    if (io->type && io->type->kind == ORTC_KIND_TENSOR)
        io_shape_describe(io, &b);
    return (char *)b.data;
}

static char *list_inputs(const inputs *in)
{
    buffer b = {0};
    for (size_t i = 0; i < in->count; i++) {
        char *text = io_text(in->items[i].io);
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

/* The only input that must be given, or the only one at all. */
static input *only_input(inputs *in)
{
    input *found = NULL;
    for (size_t i = 0; i < in->count; i++) {
        if (in->items[i].io->flags & ORTC_IO_OPTIONAL && in->count > 1)
            continue;
        if (found)
            return NULL;
        found = &in->items[i];
    }
    return found;
}

/* ---- Values ----------------------------------------------------------------------------------------------------- */

static int value_error(const input *x, ortc_status s, const ortc_error *e)
{
    say_error("input '%s': %s", x->io->name, e->text);
    return s == ORTC_OUT_OF_MEMORY ? EXIT_MEMORY : EXIT_USAGE;
}

/* The input's shape as far as the model, --shape and --set say it; -1 where they do not. */
static int known_shape(const input *x, const session_options *so, int64_t *dims, int32_t *out_rank)
{
    const ortc_io *io = x->io;
    int64_t given[MAX_INPUT_RANK];
    int32_t given_rank = 0;
    int code = -1;
    bool has = shape_given(so, io->name, given, &given_rank, &code);
    if (code >= 0)
        return code;
    *out_rank = io->rank;
    for (int32_t i = 0; i < io->rank && i < MAX_INPUT_RANK; i++)
        dims[i] = io->dims[i] >= 0 ? io->dims[i] : symbol_given(so, io->symbols ? io->symbols[i] : NULL);
    if (!has)
        return -1;
    bool fits = io->rank < 0 || io->rank == given_rank;
    for (int32_t i = 0; i < given_rank && fits; i++) {
        fits = io->rank < 0 || dims[i] < 0 || dims[i] == given[i];
        dims[i] = given[i];
    }
    *out_rank = given_rank;
    if (fits)
        return -1;
    char *wants = io_text(io);
    say_error("--shape: input '%s' is %s, which the shape given does not fit", io->name, wants);
    free(wants);
    return EXIT_USAGE;
}

static int make_fill(input *x, const session_options *so, const input_options *o, const fill *f)
{
    const ortc_io *io = x->io;
    int64_t dims[MAX_INPUT_RANK];
    int32_t rank;
    if (!io->type || io->type->kind != ORTC_KIND_TENSOR) {
        char *text = io_text(io);
        say_error("input '%s' is a %s, which only a .pb file can give", io->name, text);
        free(text);
        return EXIT_USAGE;
    }
    int code = known_shape(x, so, dims, &rank);
    if (code >= 0)
        return code;
    if (rank < 0 || rank > MAX_INPUT_RANK) {
        say_error("input '%s': the model does not say its rank; give --shape %s=1x3x8x8", io->name, io->name);
        return EXIT_USAGE;
    }
    buffer free_dims = {0};
    for (int32_t i = 0; i < rank; i++)
        if (dims[i] < 0) {
            const char *symbol = io->symbols && io->symbols[i] ? io->symbols[i] : NULL;
            buffer_printf(&free_dims, "%s%s", free_dims.size ? ", " : "", symbol ? symbol : "?");
            dims[i] = 1;
        }
    if (free_dims.size)
        say_note("input '%s': free dimensions are 1: %s (--set DIM=N or --shape says otherwise)", io->name,
                 (const char *)free_dims.data);
    free(free_dims.data);
    ortc_error e = ORTC_ERROR_INIT;
    /* Inputs of one kind must not be equal to each other: the position is part of the seed. */
    size_t position = 0;
    for (const char *p = io->name; *p; p++)
        position = position * 31 + (unsigned char)*p;
    ortc_status s = fill_value(f, io->dtype, rank, dims, (uint64_t)o->seed ^ position << 20, &x->value, &e);
    return s == ORTC_OK ? -1 : value_error(x, s, &e);
}

/* Makes the value the model's type, if that is possible without loss, or allowed with. */
static int convert(input *x, const input_options *o)
{
    const ortc_io *io = x->io;
    const ortc_type *have = ortc_value_type(x->value);
    if (!io->type || io->type->kind == ORTC_KIND_NONE || type_equal(have, io->type))
        return -1;
    buffer got = {0};
    type_describe(have, &got);
    char *wants = io_text(io);
    int code = -1;
    ortc_error e = ORTC_ERROR_INIT;
    if (have->kind != ORTC_KIND_TENSOR || io->type->kind != ORTC_KIND_TENSOR || have->dtype == ORTC_STRING ||
        io->dtype == ORTC_STRING) {
        say_error("input '%s' is %s, '%s' holds %s", io->name, wants, x->source, (const char *)got.data);
        code = EXIT_USAGE;
    } else {
        ortc_value *other = NULL;
        int64_t inexact;
        ortc_status s = value_convert(x->value, io->dtype, &other, &inexact, &e);
        if (s != ORTC_OK) {
            code = value_error(x, s, &e);
        } else if (inexact >= 0 && !o->cast) {
            buffer element = {0};
            element_text(x->value, inexact, &element);
            static const char *const numpy[ORTC_DTYPE_COUNT] = {
                [ORTC_F32] = "float32", [ORTC_F64] = "float64", [ORTC_F16] = "float16", [ORTC_I64] = "int64",
                [ORTC_I32] = "int32", [ORTC_I16] = "int16", [ORTC_I8] = "int8", [ORTC_U8] = "uint8",
                [ORTC_BOOL] = "bool"};
            say_error("input '%s' is %s, '%s' holds %s, and element %lld (%s) does not fit exactly: save it%s%s%s, or pass "
                      "--cast to round", io->name, wants, x->source, (const char *)got.data, (long long)inexact,
                      (const char *)element.data, numpy[io->dtype] ? " with .astype(np." : " in that type",
                      numpy[io->dtype] ? numpy[io->dtype] : "", numpy[io->dtype] ? ")" : "");
            free(element.data);
            code = EXIT_USAGE;
            ortc_value_release(other);
        } else {
            say_note("input '%s': converted from %s to %s%s", io->name, (const char *)got.data, ortc_dtype_name(io->dtype),
                     inexact >= 0 ? ", rounded" : ", exactly");
            ortc_value_release(x->value);
            x->value = other;
        }
    }
    free(got.data);
    free(wants);
    return code;
}

static int read_npz(input *x, const char *path, const char *key)
{
    npz z;
    ortc_error e = ORTC_ERROR_INIT;
    ortc_status s = npz_open(path, &z, &e);
    if (s != ORTC_OK)
        return value_error(x, s, &e);
    const zip_member *m = npz_find(&z, key ? key : x->io->name);
    if (!m && !key && z.zip.count == 1)
        m = &z.zip.members[0];
    int code = -1;
    if (!m) {
        buffer list = {0};
        for (size_t i = 0; i < z.zip.count && i < 20; i++)
            buffer_printf(&list, "%s%s", i ? ", " : "", z.zip.members[i].name);
        say_error("input '%s': '%s' has no array '%s'; it has %s", x->io->name, path, key ? key : x->io->name,
                  list.size ? (const char *)list.data : "none");
        free(list.data);
        code = EXIT_USAGE;
    } else if ((s = npz_read(&z, m, x->io->dtype, &x->value, &e)) != ORTC_OK) {
        fail_prefix(&e, "'%s' ", path);
        code = value_error(x, s, &e);
    }
    npz_close(&z);
    return code;
}

/* Pictures are collected first: several for one input are a batch. */
static int make_pictures(input *x, const session_options *so, const input_options *o)
{
    int64_t dims[MAX_INPUT_RANK];
    int32_t rank;
    int code = known_shape(x, so, dims, &rank);
    if (code >= 0)
        return code;
    image *images = mem_alloc(x->n_files * sizeof *images);
    ortc_error e = ORTC_ERROR_INIT;
    ortc_status s = ORTC_OK;
    for (size_t i = 0; i < x->n_files && s == ORTC_OK; i++)
        s = image_load(x->files[i], &images[i], &e);
    if (s == ORTC_OK)
        s = image_tensor(images, x->n_files, x->io, dims, &o->image, &x->value, &e);
    for (size_t i = 0; i < x->n_files; i++)
        free(images[i].pixels);
    free(images);
    return s == ORTC_OK ? -1 : value_error(x, s, &e);
}

static int set_from(input *x, const char *text, const session_options *so, const input_options *o)
{
    fill f;
    int is_fill = fill_parse(text, &f);
    if (is_fill < 0) {
        say_error("--input expects rand, rand:uniform(a,b) or rand:normal(mean,deviation), got '%s'", text);
        return EXIT_USAGE;
    }
    if (x->value || (x->n_files && !has_suffix(text, ".png"))) {
        say_error("input '%s' is given twice: '%s' and '%s' (only pictures form a batch)", x->io->name, x->source, text);
        return EXIT_USAGE;
    }
    if (!x->source)
        x->source = mem_copy(text);
    if (is_fill)
        return make_fill(x, so, o, &f);
    if (has_suffix(text, ".png")) {
        x->files = mem_grow(x->files, x->n_files + 1, sizeof *x->files);
        x->files[x->n_files++] = text;
        return -1;
    }
    const char *key = strstr(text, ".npz:");
    if (key || has_suffix(text, ".npz")) {
        char *path = mem_printf("%.*s", key ? (int)(key + 4 - text) : (int)strlen(text), text);
        int code = read_npz(x, path, key ? key + 5 : NULL);
        free(path);
        return code;
    }
    if (!has_suffix(text, ".npy") && !has_suffix(text, ".pb")) {
        if (access(text, F_OK) != 0)
            say_error("input '%s': there is no file '%s', and it is not rand, zeros or ones", x->io->name, text);
        else
            say_error("input '%s': '%s' is not a .npy, .npz, .pb or .png file", x->io->name, text);
        return EXIT_USAGE;
    }
    ortc_error e = ORTC_ERROR_INIT;
    ortc_status s = value_read(text, x->io->type, &x->value, &e);
    return s == ORTC_OK ? -1 : value_error(x, s, &e);
}

/* ---- All of them ------------------------------------------------------------------------------------------------ */

/* An .npz without a name: its arrays are inputs. An array that is none is an error: it would be ignored silently. */
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
            code = set_from(&in->items[i], path, so, o);
            used++;
        }
    if (code < 0 && used == 0 && z.zip.count == 1 && only_input(in)) {
        code = set_from(only_input(in), path, so, o);
    } else if (code < 0 && used != z.zip.count) {
        buffer names = {0};
        for (size_t i = 0; i < z.zip.count && i < 20; i++)
            buffer_printf(&names, "%s%s", i ? ", " : "", z.zip.members[i].name);
        char *list = list_inputs(in);
        say_error("--input: the arrays of '%s' (%s) do not match the inputs: the model has %s", path,
                  names.size ? (const char *)names.data : "none", list);
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
                (in->count == 1 || !(in->items[i].io->flags & ORTC_IO_OPTIONAL)))
                code = set_from(&in->items[i], text, so, o);
        return code;
    }
    const char *equals = strchr(text, '=');
    if (equals && access(text, F_OK) != 0) {
        char *name = mem_printf("%.*s", (int)(equals - text), text);
        const char **names = mem_alloc(in->count * sizeof *names);
        for (size_t i = 0; i < in->count; i++)
            names[i] = in->items[i].io->name;
        const char *meant = nearest(name, names, in->count);
        char *list = list_inputs(in);
        say_error("the model has no input '%s'; it has %s%s%s%s", name, list, meant ? "; did you mean '" : "",
                  meant ? meant : "", meant ? "'?" : "");
        free(list);
        free(names);
        free(name);
        return EXIT_USAGE;
    }
    if (has_suffix(text, ".npz"))
        return set_from_npz(in, text, so, o);
    input *only = only_input(in);
    if (!only) {
        char *list = list_inputs(in);
        say_error("--input %s: say for which input, as in --input NAME=FILE: the model has %s", text, list);
        free(list);
        return EXIT_USAGE;
    }
    return set_from(only, text, so, o);
}

/* Fixed extents, --set, and symbols that stand in several inputs. What the model does not say, only the run knows. */
static int check_shapes(const inputs *in, const session_options *so)
{
    for (size_t i = 0; i < in->count; i++) {
        const ortc_io *io = in->items[i].io;
        const ortc_value *v = in->items[i].value;
        if (!v || io->rank < 0 || ortc_value_type(v)->kind != ORTC_KIND_TENSOR)
            continue;
        bool fits = ortc_value_rank(v) == io->rank;
        for (int32_t d = 0; d < io->rank && fits; d++)
            fits = io->dims[d] < 0 || ortc_value_dims(v)[d] == io->dims[d];
        if (!fits) {
            buffer got = {0};
            value_describe(v, &got);
            char *wants = io_text(io);
            say_error("input '%s' is %s, '%s' holds %s", io->name, wants, in->items[i].source, (const char *)got.data);
            free(wants);
            free(got.data);
            return EXIT_USAGE;
        }
        for (int32_t d = 0; d < io->rank; d++) {
            const char *symbol = io->dims[d] < 0 && io->symbols ? io->symbols[d] : NULL;
            int64_t fixed = symbol_given(so, symbol), here = ortc_value_dims(v)[d];
            if (fixed >= 0 && fixed != here) {
                say_error("input '%s' has %s = %lld in '%s', --set says %lld", io->name, symbol, (long long)here,
                          in->items[i].source, (long long)fixed);
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

static int complete(inputs *in, const session_options *so, const input_options *o, bool optional)
{
    int code = -1;
    for (size_t i = 0; i < in->count && code < 0; i++) {
        input *x = &in->items[i];
        if (x->n_files)
            code = make_pictures(x, so, o);
        else if (!x->value && !(x->io->flags & ORTC_IO_OPTIONAL)) {
            if (optional) {
                x->source = mem_copy("zeros");
                code = make_fill(x, so, o, &(fill){FILL_ZEROS});
            } else {
                char *text = io_text(x->io);
                say_error("input '%s' (%s) has no value: pass --input %s=FILE or --input %s=rand", x->io->name, text,
                          x->io->name, x->io->name);
                free(text);
                code = EXIT_USAGE;
            }
        }
        if (code < 0 && x->value)
            code = convert(x, o);
    }
    return code >= 0 ? code : check_shapes(in, so);
}

int inputs_resolve(ortc_model *model, const session_options *so, const input_options *o, bool optional, inputs *out)
{
    *out = (inputs){0};
    while (ortc_model_input(model, out->count))
        out->count++;
    out->items = mem_alloc(out->count * sizeof *out->items);
    out->in = mem_alloc(out->count * sizeof *out->in);
    for (size_t i = 0; i < out->count; i++)
        out->items[i].io = ortc_model_input(model, i);
    /* Named ones first, so that a fill without a name takes what is left, in whatever order they were written. */
    int code = -1;
    for (int unnamed = 0; unnamed < 2; unnamed++)
        for (size_t i = 0; i < o->inputs.count && code < 0; i++) {
            const char *value = NULL;
            input *x = by_name(out, o->inputs.items[i], &value);
            if (x && !unnamed)
                code = set_from(x, value, so, o);
            else if (!x && unnamed)
                code = set_unnamed(out, o->inputs.items[i], so, o);
        }
    if (code < 0)
        code = complete(out, so, o, optional);
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
