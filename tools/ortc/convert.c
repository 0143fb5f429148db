/* tools/ortc/convert.c: `ortc convert IN OUT`: one tensor, or an archive of them, from one kind of file to
 * another: .npy, .npz, .pb (a TensorProto), pictures (all that are read, .png to write). */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "args.h"
#include "element.h"
#include "files.h"
#include "image.h"
#include "inputs.h"

typedef struct convert_options {
    const char *name, *dtype;
    bool compress, cast;
    input_options pictures; /* --scale, --mean, --std */
    int layout;
} convert_options;

enum { AS_HWC, AS_CHW, AS_NCHW, AS_NHWC };
static const char *const layouts[] = {"hwc", "chw", "nchw", "nhwc", NULL};

static const char details[] = "FILE.npz:KEY names an array of an archive. A picture becomes "
                              "u8[height,width,channels], or f32 when --scale,\n"
                              "--mean or --std is given; u8, or f32 from 0 to 1, of 1 or 3 channels, first "
                              "or last, becomes a picture.\n"
                              "\n"
                              "examples:\n"
                              "  ortc convert cat.jpg cat.npy --layout nchw --scale 1/255\n"
                              "  ortc convert data.npz:x x.pb --name x\n"
                              "  ortc convert input_0.pb x.npy --dtype f32\n";

typedef struct tensors {
    size_t count;
    ortc_out *items;
} tensors;

static void add(tensors *t, const char *name, ortc_value *v)
{
    t->items = mem_grow(t->items, t->count + 1, sizeof *t->items);
    t->items[t->count++] = (ortc_out){.name = name, .value = v};
}

/* ---- Reading ------------------------------------------------------------------------------------------- */

static ortc_status read_picture(const char *path, const convert_options *o, tensors *out, ortc_error *error)
{
    image im;
    ortc_value *v = NULL;
    ortc_status s = image_load(path, &im, error);
    if (s != ORTC_OK) return s;
    image_options how = o->pictures.image;
    const bool plain = !how.has_scale && !how.n_mean && !how.n_std;
    const bool first = o->layout == AS_CHW || o->layout == AS_NCHW;
    const int32_t rank = o->layout == AS_NCHW || o->layout == AS_NHWC ? 4 : 3;
    const int64_t h = im.height, w = im.width, c = im.channels;
    const int64_t dims4[4] = {1, first ? c : h, first ? h : w, first ? w : c}, *dims = dims4 + (4 - rank);
    const ortc_dtype dtype = plain ? ORTC_U8 : ORTC_F32;
    const ortc_io io = {.size = sizeof io,
                        .name = "picture",
                        .type = type_tensor(dtype),
                        .dtype = dtype,
                        .rank = rank,
                        .dims = dims};
    how.layout = first ? LAYOUT_NCHW : LAYOUT_NHWC;
    s = image_tensor(&im, 1, &io, dims, &how, &v, error);
    free(im.pixels);
    if (s == ORTC_OK) add(out, "picture", v);
    return s;
}

static ortc_status read_npz(const char *path, const char *key, tensors *out, ortc_error *error)
{
    npz z;
    ortc_status s = npz_open(path, &z, error);
    if (s != ORTC_OK) return s;
    const zip_member *one = key ? npz_find(&z, key) : NULL;
    if (key && !one) s = fail(error, ORTC_NOT_FOUND, "'%s' has no array '%s'", path, key);
    for (size_t i = 0; i < z.zip.count && s == ORTC_OK; i++) {
        const zip_member *m = &z.zip.members[i];
        ortc_value *v;
        if (one && m != one) continue;
        s = npz_read(&z, m, ORTC_ABSENT, &v, error);
        if (s != ORTC_OK) break;
        const size_t length = strlen(m->name) - (has_suffix(m->name, ".npy") ? 4 : 0);
        char *name = mem_keep(length + 1);
        memcpy(name, m->name, length);
        add(out, name, v);
    }
    npz_close(&z);
    return s;
}

static ortc_status read_in(const char *path, const convert_options *o, tensors *out, ortc_error *error)
{
    const char *key = strstr(path, ".npz:");
    if (key || has_suffix(path, ".npz")) {
        char *file = mem_printf("%.*s", key ? (int)(key + 4 - path) : (int)strlen(path), path);
        const ortc_status s = read_npz(file, key ? key + 5 : NULL, out, error);
        free(file);
        return s;
    }
    if (image_is_picture(path)) return read_picture(path, o, out, error);
    ortc_value *v;
    const ortc_status s = value_read(path, type_tensor(ORTC_ABSENT), &v, error);
    if (s == ORTC_OK) add(out, "x", v);
    return s;
}

/* ---- Pictures out -------------------------------------------------------------------------------------- */

static void big_endian(buffer *b, uint32_t v)
{
    const uint8_t bytes[] = {(uint8_t)(v >> 24), (uint8_t)(v >> 16), (uint8_t)(v >> 8), (uint8_t)v};
    buffer_add(b, bytes, sizeof bytes);
}

static void chunk(buffer *b, const char *kind, const void *data, size_t bytes)
{
    big_endian(b, (uint32_t)bytes);
    const size_t from = b->size;
    buffer_add(b, kind, 4);
    buffer_add(b, data, bytes);
    big_endian(b, (uint32_t)crc32(0, b->data + from, (uInt)(bytes + 4)));
}

/* Rows of samples, each behind a 0: no filter. */
static ortc_status png_encode(const uint8_t *rows, size_t bytes, uint32_t width, uint32_t height,
                              uint32_t channels, buffer *out, ortc_error *error)
{
    buffer head = {0};
    uLongf packed = compressBound(bytes);
    uint8_t *data = mem_grow(NULL, packed, 1);
    if (compress2(data, &packed, rows, bytes, Z_DEFAULT_COMPRESSION) != Z_OK || packed > INT32_MAX) {
        free(data);
        return fail(error, ORTC_LIMIT, "the picture is too large");
    }
    big_endian(&head, width);
    big_endian(&head, height);
    const uint8_t rest[] = {8, channels == 1 ? 0 : 2, 0, 0, 0};
    buffer_add(&head, rest, sizeof rest);
    buffer_add(out, "\x89PNG\r\n\x1a\n", 8);
    chunk(out, "IHDR", head.data, head.size);
    chunk(out, "IDAT", data, packed);
    chunk(out, "IEND", "", 0);
    free(head.data);
    free(data);
    return ORTC_OK;
}

static ortc_status write_picture(const char *path, const ortc_value *v, ortc_error *error)
{
    const ortc_dtype t = ortc_value_dtype(v);
    int32_t rank = ortc_value_rank(v);
    const int64_t *dims = ortc_value_dims(v);
    for (; rank > 2 && *dims == 1 && rank != 3; rank--) dims++; /* a batch of one */
    const bool first = rank == 3 && (dims[0] == 1 || dims[0] == 3),
               last = rank == 3 && !first && (dims[2] == 1 || dims[2] == 3);
    if ((t != ORTC_U8 && t != ORTC_F32) || (rank != 2 && !first && !last)) {
        buffer b = {0};
        value_describe(v, &b);
        fail(error, ORTC_INVALID_ARGUMENT,
             "a picture is u8 or f32 of [height,width] with 1 or 3 channels first or last, got %s",
             (const char *)b.data);
        free(b.data);
        return ORTC_INVALID_ARGUMENT;
    }
    const int64_t c = first ? dims[0] : last ? dims[2] : 1, h = dims[first], w = dims[first + 1];
    if (h < 1 || w < 1 || h > 1 << 20 || w > 1 << 20)
        return fail(error, ORTC_LIMIT, "a picture of %lld x %lld pixels", (long long)w, (long long)h);
    const size_t row = (size_t)(w * c) + 1;
    uint8_t *rows = mem_alloc((size_t)h * row);
    for (int64_t y = 0; y < h; y++)
        for (int64_t x = 0; x < w; x++)
            for (int64_t k = 0; k < c; k++) {
                const double sample = element_get(t, ortc_value_host(v),
                                                  first ? (k * h + y) * w + x : (y * w + x) * c + k);
                const double scaled = t == ORTC_F32 ? fmin(fmax(sample, 0), 1) * 255 : sample;
                rows[(size_t)y * row + 1 + (size_t)(x * c + k)] = (uint8_t)lrint(scaled);
            }
    buffer b = {0};
    ortc_status s = png_encode(rows, (size_t)h * row, (uint32_t)w, (uint32_t)h, (uint32_t)c, &b, error);
    if (s == ORTC_OK) s = file_write(path, b.data, b.size, error);
    free(b.data);
    free(rows);
    return s;
}

/* ---- The command --------------------------------------------------------------------------------------- */

static ortc_dtype dtype_by_name(const char *name)
{
    for (uint32_t t = 1; t < ORTC_DTYPE_COUNT; t++)
        if (strcmp(ortc_dtype_name((ortc_dtype)t), name) == 0) return (ortc_dtype)t;
    return ORTC_ABSENT;
}

/* -1: good. */
static int change_type(tensors *t, const convert_options *o, ortc_dtype to)
{
    for (size_t i = 0; i < t->count; i++) {
        ortc_value *other;
        int64_t inexact = -1;
        ortc_error e = ORTC_ERROR_INIT;
        if (ortc_value_dtype(t->items[i].value) == to) continue;
        if (ortc_value_dtype(t->items[i].value) == ORTC_STRING || to == ORTC_STRING) {
            say_error("--dtype: strings cannot be converted");
            return EXIT_USAGE;
        }
        const ortc_status s = value_convert(t->items[i].value, to, &other, &inexact, &e);
        if (s != ORTC_OK) {
            say_error("%s", e.text);
            return exit_code(s, STAGE_RUN);
        }
        ortc_value_release(t->items[i].value);
        t->items[i].value = other;
        if (inexact < 0 || o->cast) continue;
        say_error("--dtype: element %lld of '%s' does not fit %s exactly; --cast rounds", (long long)inexact,
                  t->items[i].name, o->dtype);
        return EXIT_USAGE;
    }
    return -1;
}

static int convert(const char *from, const char *to, const convert_options *o, ortc_dtype dtype)
{
    tensors t = {0};
    ortc_error e = ORTC_ERROR_INIT;
    ortc_status s = read_in(from, o, &t, &e);
    int code = -1;
    if (s != ORTC_OK) {
        say_error("%s", e.text);
        code = s == ORTC_OUT_OF_MEMORY ? EXIT_MEMORY : EXIT_USAGE;
    }
    if (code < 0 && t.count != 1 && !has_suffix(to, ".npz")) {
        buffer names = {0};
        for (size_t i = 0; i < t.count && i < 20; i++)
            buffer_printf(&names, "%s%s", i ? ", " : "", t.items[i].name);
        say_error("'%s' holds one tensor, '%s' has %zu (%s): name one, as in %s:KEY, or write an .npz", to,
                  from, t.count, names.data ? (const char *)names.data : "", from);
        free(names.data);
        code = EXIT_USAGE;
    }
    if (code < 0 && o->name && t.count == 1) t.items[0].name = o->name;
    if (code < 0 && dtype) code = change_type(&t, o, dtype);
    if (code < 0) {
        s = has_suffix(to, ".png") ? write_picture(to, t.items[0].value, &e)
                                   : values_write(to, t.items, t.count, o->compress, &e);
        if (s != ORTC_OK) {
            say_error("%s", e.text);
            code = s == ORTC_INVALID_ARGUMENT || s == ORTC_UNSUPPORTED ? EXIT_USAGE : EXIT_RUN;
        }
    }
    for (size_t i = 0; i < t.count; i++) {
        buffer b = {0};
        value_describe(t.items[i].value, &b);
        if (code < 0) put("%s  %s\n", t.items[i].name, (const char *)b.data);
        free(b.data);
        ortc_value_release(t.items[i].value);
    }
    free(t.items);
    return finish(code < 0 ? EXIT_GOOD : code);
}

int command_convert(int argc, char **argv)
{
    convert_options o = {0};
    const arg_option options[] = {
        {.kind = ARG_HEADING, .help = "What is written"},
        {.kind = ARG_TEXT,
         .name = "name",
         .value = "NAME",
         .to = &o.name,
         .help = "the tensor's name in a .pb or .npz"},
        {.kind = ARG_TEXT,
         .name = "dtype",
         .value = "TYPE",
         .to = &o.dtype,
         .help = "another element type: f32, f16, bf16, i64, u8, ..."},
        {.kind = ARG_FLAG,
         .name = "cast",
         .to = &o.cast,
         .help = "with --dtype: round what does not fit exactly"},
        {.kind = ARG_FLAG, .name = "compress", .to = &o.compress, .help = "deflate what an .npz holds"},
        {.kind = ARG_HEADING, .help = "Pictures"},
        {.kind = ARG_CHOICE,
         .name = "layout",
         .value = "L",
         .to = &o.layout,
         .choices = layouts,
         .help = "hwc, chw, nchw or nhwc (hwc)"},
        ARGS_SAMPLES(o.pictures, ""),
        ARGS_COMMON,
    };
    const arg_command command = {"convert",
                                 "IN OUT [options]",
                                 "Converts tensors between .npy, .npz, .pb and pictures.",
                                 details,
                                 "a file to read and a file to write",
                                 2,
                                 2,
                                 options};
    arg_list files;
    int code = args_parse(&command, argc, argv, &files);
    if (code < 0) code = input_options_parse(&o.pictures);
    if (code >= 0) return code;
    const char *from = files.items[0], *to = files.items[1];
    const ortc_dtype dtype = o.dtype ? dtype_by_name(o.dtype) : ORTC_ABSENT;
    if (o.dtype && !dtype) {
        say_error("--dtype expects an element type such as f32 or i64, got '%s'", o.dtype);
        return EXIT_USAGE;
    }
    if (!strstr(from, ".npz:") && !has_suffix(from, ".npz") && !has_suffix(from, ".npy") &&
        !has_suffix(from, ".pb") && !image_is_picture(from)) {
        say_error("expects a .npy, .npz or .pb file or a picture to read, got '%s'", from);
        return EXIT_USAGE;
    }
    if (!has_suffix(to, ".npz") && !has_suffix(to, ".npy") && !has_suffix(to, ".pb") &&
        !has_suffix(to, ".png")) {
        say_error("expects a .npy, .npz, .pb or .png file to write, got '%s'", to);
        return EXIT_USAGE;
    }
    code = writable_check("OUT", to);
    return code < 0 ? convert(from, to, &o, dtype) : code;
}
