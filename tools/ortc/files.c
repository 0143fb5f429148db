/* tools/ortc/files.c: values out of files and into them: .npy, .npz, .pb; conversion of element types. */
#include "files.h"

#include <stdlib.h>
#include <string.h>

#include "element.h"
#include "npy.h"

/* A tensor cannot hold more than this machine, but a typing error should not read a disk into memory. */
static const uint64_t max_file = (uint64_t)64 << 30;

ortc_status value_read(const char *path, const ortc_type *expected, ortc_value **out, ortc_error *error)
{
    blob file;
    *out = NULL;
    ortc_status s = file_read(path, max_file, &file, error);
    if (s != ORTC_OK) return s;
    if (has_suffix(path, ".pb"))
        s = ortc_value_decode(file.data, file.size, expected, out, error);
    else
        s = npy_decode(file.data, file.size, expected->dtype, out, error);
    free(file.data);
    if (s != ORTC_OK) fail_prefix(error, "'%s' %s", path, has_suffix(path, ".pb") ? "cannot be read: " : "");
    return s;
}

ortc_status value_convert(const ortc_value *from, ortc_dtype to, ortc_value **out, int64_t *out_inexact,
                          ortc_error *error)
{
    ortc_dtype t = ortc_value_dtype(from);
    const void *data = ortc_value_host(from);
    *out_inexact = -1;
    ortc_status s = ortc_value_create(to, ortc_value_rank(from), ortc_value_dims(from), out, error);
    if (s != ORTC_OK) return s;
    int64_t count = ortc_value_count(from);
    if (count) memset(ortc_value_data(*out), 0, ortc_value_bytes(*out));
    for (int64_t i = 0; i < count; i++) {
        double v = element_get(t, data, i);
        bool exact = element_set(to, ortc_value_data(*out), i, v) && element_imaginary(t, data, i) == 0;
        if (exact && (t == ORTC_I64 || t == ORTC_U64)) {
            /* Through a double: only what a double holds came through unchanged. */
            uint64_t bits;
            memcpy(&bits, (const uint8_t *)data + 8 * i, 8);
            bool fits = t == ORTC_I64 ? v < 0x1p63 && (int64_t)v == (int64_t)bits
                                      : v < 0x1p64 && (uint64_t)v == bits;
            exact = fits;
        }
        if (!exact && *out_inexact < 0) *out_inexact = i;
    }
    return ORTC_OK;
}

/* ---- Archives ------------------------------------------------------------------------------------------ */

ortc_status npz_open(const char *path, npz *out, ortc_error *error)
{
    memset(out, 0, sizeof *out);
    ortc_status s = file_read(path, max_file, &out->file, error);
    if (s != ORTC_OK) return s;
    s = zip_open(out->file.data, out->file.size, &out->zip, error);
    if (s != ORTC_OK) {
        fail_prefix(error, "'%s' ", path);
        npz_close(out);
        return s;
    }
    /* A small archive may unpack to a gigabyte, as arrays of zeros do; beyond that, to 64 times its size. */
    out->limit = (uint64_t)1 << 30;
    if (out->file.size > out->limit / 64) out->limit = (uint64_t)out->file.size * 64;
    return ORTC_OK;
}

void npz_close(npz *z)
{
    zip_close(&z->zip);
    free(z->file.data);
    *z = (npz){0};
}

static bool named(const zip_member *m, const char *key)
{
    size_t n = strlen(key);
    return strncmp(m->name, key, n) == 0 && (!m->name[n] || strcmp(m->name + n, ".npy") == 0);
}

const zip_member *npz_find(const npz *z, const char *key)
{
    for (size_t i = 0; i < z->zip.count; i++)
        if (named(&z->zip.members[i], key)) return &z->zip.members[i];
    return NULL;
}

ortc_status npz_read(const npz *z, const zip_member *m, ortc_dtype expected, ortc_value **out,
                     ortc_error *error)
{
    blob b;
    *out = NULL;
    ortc_status s = zip_read(&z->zip, m, z->limit, &b, error);
    if (s != ORTC_OK) return s;
    s = npy_decode(b.data, b.size, expected, out, error);
    free(b.data);
    if (s != ORTC_OK) fail_prefix(error, "member '%s' ", m->name);
    return s;
}

/* ---- Writing ------------------------------------------------------------------------------------------- */

/* Sequences, maps and optionals become arrays "name.0", "name.keys", ...: npz knows arrays only. */
static ortc_status add(zip_writer *w, const char *name, const ortc_value *v, ortc_error *error)
{
    uint16_t kind = ortc_value_type(v)->kind;
    if (kind == ORTC_KIND_TENSOR) {
        buffer b = {0};
        ortc_status s = npy_encode(v, &b, error);
        char *member = mem_printf("%s.npy", name);
        if (s == ORTC_OK) s = zip_add(w, member, b.data, b.size, error);
        free(member);
        free(b.data);
        return s;
    }
    size_t n = kind == ORTC_KIND_MAP ? 2 : (size_t)ortc_value_count(v);
    for (size_t i = 0; i < n; i++) {
        char *inner = kind == ORTC_KIND_MAP ? mem_printf("%s.%s", name, i ? "values" : "keys")
                                            : mem_printf("%s.%zu", name, i);
        ortc_status s = add(w, inner, ortc_value_element(v, i), error);
        free(inner);
        if (s != ORTC_OK) return s;
    }
    return ORTC_OK;
}

static ortc_status write_npz(const char *path, const ortc_out *values, size_t count, bool deflated,
                             ortc_error *error)
{
    zip_writer w = {.deflated = deflated};
    ortc_status s = ORTC_OK;
    for (size_t i = 0; i < count && s == ORTC_OK; i++) {
        s = add(&w, values[i].name, values[i].value, error);
        if (s != ORTC_OK) fail_prefix(error, "output '%s': ", values[i].name);
    }
    zip_end(&w);
    if (s == ORTC_OK) s = file_write(path, w.out.data, w.out.size, error);
    free(w.out.data);
    return s;
}

ortc_status values_write(const char *path, const ortc_out *values, size_t count, bool deflated,
                         ortc_error *error)
{
    if (has_suffix(path, ".npz")) return write_npz(path, values, count, deflated, error);
    if (count != 1)
        return fail(error, ORTC_INVALID_ARGUMENT, "'%s' holds one output, there are %zu: write an .npz", path,
                    count);
    ortc_status s;
    if (has_suffix(path, ".pb")) {
        void *data;
        size_t bytes;
        s = ortc_value_encode(values[0].value, values[0].name, &data, &bytes, error);
        if (s == ORTC_OK) {
            s = file_write(path, data, bytes, error);
            free(data);
        }
        return s;
    }
    buffer b = {0};
    s = npy_encode(values[0].value, &b, error);
    if (s == ORTC_OK) s = file_write(path, b.data, b.size, error);
    free(b.data);
    return s;
}
