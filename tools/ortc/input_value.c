/* tools/ortc/input_value.c: one input's value, out of a file or made up, and whether it fits; see
 * input_value.h. */
#include "input_value.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "element.h"
#include "files.h"

char *io_describe(const ortc_io *io)
{
    buffer b = {0};
    type_describe(io->type, &b);
    if (io->type && io->type->kind == ORTC_KIND_TENSOR) io_shape_describe(io, &b);
    return (char *)b.data;
}

static int value_error(const input *x, ortc_status s, const ortc_error *e)
{
    say_error("input '%s': %s", x->io->name, e->text);
    return s == ORTC_OUT_OF_MEMORY ? EXIT_MEMORY : EXIT_USAGE;
}

/* The extent of a symbol: by --set, else in an input that has its value already; -1: nothing says it. */
static int64_t symbol_extent(const input *x, const session_options *so, const char *symbol)
{
    const int64_t given = symbol_given(so, symbol);
    for (size_t i = 0; given < 0 && symbol && i < x->all->count; i++) {
        const ortc_io *io = x->all->items[i].io;
        const ortc_value *v = x->all->items[i].value;
        if (!v || ortc_value_type(v)->kind != ORTC_KIND_TENSOR || ortc_value_rank(v) != io->rank) continue;
        for (int32_t d = 0; d < io->rank; d++)
            if (io->dims[d] < 0 && io->symbols && io->symbols[d] && strcmp(io->symbols[d], symbol) == 0)
                return ortc_value_dims(v)[d];
    }
    return given;
}

/* The input's shape as far as the model, --shape, --set and other inputs say it; -1 where they do not. */
static int known_shape(const input *x, const session_options *so, int64_t *dims, int32_t *out_rank)
{
    const ortc_io *io = x->io;
    int64_t given[MAX_INPUT_RANK];
    int32_t given_rank = 0;
    int code = -1;
    bool has = shape_given(so, io->name, given, &given_rank, &code);
    if (code >= 0) return code;
    *out_rank = io->rank;
    for (int32_t i = 0; i < io->rank && i < MAX_INPUT_RANK; i++)
        dims[i] = io->dims[i] >= 0 ? io->dims[i] : symbol_extent(x, so, io->symbols ? io->symbols[i] : NULL);
    if (!has) return -1;
    bool fits = io->rank < 0 || io->rank == given_rank;
    for (int32_t i = 0; i < given_rank && fits; i++) {
        fits = io->rank < 0 || dims[i] < 0 || dims[i] == given[i];
        dims[i] = given[i];
    }
    *out_rank = given_rank;
    if (fits) return -1;
    char *wants = io_describe(io);
    say_error("--shape: input '%s' is %s, which the shape given does not fit", io->name, wants);
    free(wants);
    return EXIT_USAGE;
}

int input_fill(input *x, const session_options *so, const input_options *o, const fill *f)
{
    const ortc_io *io = x->io;
    int64_t dims[MAX_INPUT_RANK];
    int32_t rank;
    if (!io->type || io->type->kind != ORTC_KIND_TENSOR) {
        char *text = io_describe(io);
        say_error("input '%s' is a %s, which only a .pb file can give", io->name, text);
        free(text);
        return EXIT_USAGE;
    }
    int code = known_shape(x, so, dims, &rank);
    if (code >= 0) return code;
    if (rank < 0 || rank > MAX_INPUT_RANK) {
        say_error("input '%s': the model does not say its rank; give --shape %s=1x3x8x8", io->name, io->name);
        return EXIT_USAGE;
    }
    buffer free_dims = {0};
    bool named = false;
    for (int32_t i = 0; i < rank; i++)
        if (dims[i] < 0) {
            const char *symbol = io->symbols && io->symbols[i] ? io->symbols[i] : NULL;
            named |= symbol != NULL;
            buffer_printf(&free_dims, "%s%s", free_dims.size ? ", " : "", symbol ? symbol : "?");
            dims[i] = 1;
        }
    if (free_dims.size)
        say_note("input '%s': free dimensions are 1: %s (%s says otherwise)", io->name,
                 (const char *)free_dims.data, named ? "--set DIM=N or --shape" : "--shape");
    free(free_dims.data);
    ortc_error e = ORTC_ERROR_INIT;
    /* Inputs of one kind must not be equal to each other: the position is part of the seed. */
    size_t position = 0;
    for (const char *p = io->name; *p; p++) position = position * 31 + (unsigned char)*p;
    ortc_status s = fill_value(f, io->dtype, rank, dims, (uint64_t)o->seed ^ position << 20, &x->value, &e);
    return s == ORTC_OK ? -1 : value_error(x, s, &e);
}

/* Makes the value the model's type, if that is possible without loss, or allowed with. */
int input_convert(input *x, const input_options *o)
{
    const ortc_io *io = x->io;
    const ortc_type *have = ortc_value_type(x->value);
    if (!io->type || io->type->kind == ORTC_KIND_NONE || type_equal(have, io->type)) return -1;
    buffer got = {0};
    type_describe(have, &got);
    char *wants = io_describe(io);
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
                [ORTC_F32] = "float32", [ORTC_F64] = "float64", [ORTC_F16] = "float16",
                [ORTC_I64] = "int64",   [ORTC_I32] = "int32",   [ORTC_I16] = "int16",
                [ORTC_I8] = "int8",     [ORTC_U8] = "uint8",    [ORTC_BOOL] = "bool"};
            say_error("input '%s' is %s, '%s' holds %s, and element %lld (%s) does not fit exactly: save "
                      "it%s%s%s, or pass "
                      "--cast to round",
                      io->name, wants, x->source, (const char *)got.data, (long long)inexact,
                      (const char *)element.data, numpy[io->dtype] ? " with .astype(np." : " in that type",
                      numpy[io->dtype] ? numpy[io->dtype] : "", numpy[io->dtype] ? ")" : "");
            free(element.data);
            code = EXIT_USAGE;
            ortc_value_release(other);
        } else {
            say_note("input '%s': converted from %s to %s%s", io->name, (const char *)got.data,
                     ortc_dtype_name(io->dtype), inexact >= 0 ? ", rounded" : ", exactly");
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
    if (s != ORTC_OK) return value_error(x, s, &e);
    const zip_member *m = npz_find(&z, key ? key : x->io->name);
    if (!m && !key && z.zip.count == 1) m = &z.zip.members[0];
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
int input_pictures(input *x, const session_options *so, const input_options *o)
{
    int64_t dims[MAX_INPUT_RANK];
    int32_t rank;
    int code = known_shape(x, so, dims, &rank);
    if (code >= 0) return code;
    image *images = mem_alloc(x->n_files * sizeof *images);
    ortc_error e = ORTC_ERROR_INIT;
    ortc_status s = ORTC_OK;
    for (size_t i = 0; i < x->n_files && s == ORTC_OK; i++) s = image_load(x->files[i], &images[i], &e);
    if (s == ORTC_OK) s = image_tensor(images, x->n_files, x->io, dims, &o->image, &x->value, &e);
    for (size_t i = 0; i < x->n_files; i++) free(images[i].pixels);
    free(images);
    return s == ORTC_OK ? -1 : value_error(x, s, &e);
}

int input_set(input *x, const char *text, const session_options *so, const input_options *o)
{
    fill f;
    int is_fill = fill_parse(text, &f);
    if (is_fill < 0) {
        say_error("--input expects rand, rand:uniform(a,b) or rand:normal(mean,deviation), got '%s'", text);
        return EXIT_USAGE;
    }
    if (x->value || (x->n_files && !image_is_picture(text))) {
        say_error("input '%s' is given twice: '%s' and '%s' (only pictures form a batch)", x->io->name,
                  x->source, text);
        return EXIT_USAGE;
    }
    if (!x->source) x->source = mem_copy(text);
    if (is_fill) return input_fill(x, so, o, &f);
    if (image_is_picture(text)) {
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
            say_error("input '%s': there is no file '%s', and it is not rand, zeros or ones", x->io->name,
                      text);
        else
            say_error("input '%s': '%s' is not a .npy, .npz or .pb file, nor a picture", x->io->name, text);
        return EXIT_USAGE;
    }
    ortc_error e = ORTC_ERROR_INIT;
    ortc_status s = value_read(text, x->io->type, &x->value, &e);
    return s == ORTC_OK ? -1 : value_error(x, s, &e);
}
