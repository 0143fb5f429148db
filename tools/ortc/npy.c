/* tools/ortc/npy.c: reads one array in numpy's format; see npy.h. Format: numpy's NEP 1 and
 * numpy.lib.format. */
#include "npy.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "element.h"

enum { MAX_RANK = 64, MAGIC_BYTES = 6 };
static const char magic[] = "\x93NUMPY";

typedef struct header {
    char descr[16]; /* "<f4" */
    bool fortran, has_descr, has_order, has_shape;
    int32_t rank;
    int64_t dims[MAX_RANK];
} header;

/* ---- The header: a Python dict literal ----------------------------------------------------------------- */

typedef struct cursor {
    const char *at, *end;
} cursor;

static void blanks(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r')) c->at++;
}

static bool take(cursor *c, const char *word)
{
    blanks(c);
    size_t n = strlen(word);
    if ((size_t)(c->end - c->at) < n || memcmp(c->at, word, n) != 0) return false;
    c->at += n;
    return true;
}

/* 'text' or "text" without escapes, cut to `size`. */
static bool take_text(cursor *c, char *out, size_t size)
{
    blanks(c);
    if (c->at == c->end || (*c->at != '\'' && *c->at != '"')) return false;
    char quote = *c->at++;
    size_t n = 0;
    while (c->at < c->end && *c->at != quote) {
        if (n + 1 < size) out[n++] = *c->at;
        c->at++;
    }
    out[n] = 0;
    return c->at++ < c->end;
}

static bool take_shape(cursor *c, header *h)
{
    if (!take(c, "(")) return false;
    while (!take(c, ")")) {
        blanks(c);
        int64_t v = 0;
        bool digits = false;
        for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++, digits = true)
            if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, *c->at - '0', &v))
                return false;
        take(c, "L"); /* Python 2 wrote long integers so */
        if (!digits || h->rank == MAX_RANK) return false;
        h->dims[h->rank++] = v;
        if (!take(c, ",")) {
            if (!take(c, ")")) return false;
            break;
        }
    }
    return true;
}

static bool take_header(cursor *c, header *h)
{
    char key[24];
    if (!take(c, "{")) return false;
    while (!take(c, "}")) {
        if (!take_text(c, key, sizeof key) || !take(c, ":")) return false;
        if (strcmp(key, "descr") == 0 && !h->has_descr) {
            h->has_descr = true;
            if (!take_text(c, h->descr, sizeof h->descr)) {
                strcpy(h->descr, "a record"); /* a list: the caller will say that it is not read */
                return true;
            }
        } else if (strcmp(key, "fortran_order") == 0 && !h->has_order) {
            h->has_order = true;
            h->fortran = take(c, "True");
            if (!h->fortran && !take(c, "False")) return false;
        } else if (strcmp(key, "shape") == 0 && !h->has_shape) {
            h->has_shape = true;
            if (!take_shape(c, h)) return false;
        } else {
            return false;
        }
        if (!take(c, ",")) {
            if (!take(c, "}")) return false;
            break;
        }
    }
    return h->has_descr && h->has_order && h->has_shape;
}

/* ---- Types --------------------------------------------------------------------------------------------- */

typedef struct layout {
    ortc_dtype dtype;
    size_t item;    /* bytes of an element in the file */
    size_t swap;    /* bytes to reverse in each: a number's size, half of it for complex; 0: none */
    char text;      /* 'S' or 'U' for strings */
    bool byte_each; /* a type below a byte, one element a byte in the file */
} layout;

static ortc_dtype narrow_type(ortc_dtype expected)
{
    switch (expected) {
    case ORTC_F8E4M3FN:
    case ORTC_F8E4M3FNUZ:
    case ORTC_F8E5M2:
    case ORTC_F8E5M2FNUZ:
    case ORTC_F8E8M0:
    case ORTC_F4E2M1:
    case ORTC_F6E2M3:
    case ORTC_F6E3M2:
    case ORTC_U4:
    case ORTC_I4:
    case ORTC_U2:
    case ORTC_I2: return expected;
    default: return ORTC_ABSENT;
    }
}

static ortc_status layout_of(const char *descr, ortc_dtype expected, layout *out, ortc_error *error)
{
    static const struct {
        const char *name;
        ortc_dtype dtype;
    } names[] = {{"b1", ORTC_BOOL}, {"i1", ORTC_I8},  {"u1", ORTC_U8},  {"i2", ORTC_I16},  {"u2", ORTC_U16},
                 {"i4", ORTC_I32},  {"u4", ORTC_U32}, {"i8", ORTC_I64}, {"u8", ORTC_U64},  {"f2", ORTC_F16},
                 {"f4", ORTC_F32},  {"f8", ORTC_F64}, {"c8", ORTC_C64}, {"c16", ORTC_C128}};
    *out = (layout){0};
    char order = descr[0];
    if (!order || !strchr("<>|=", order))
        return fail(error, ORTC_UNSUPPORTED, "holds %s, which is not read: save a plain array", descr);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strcmp(descr + 1, names[i].name) == 0) {
            out->dtype = names[i].dtype;
            out->item = ortc_dtype_bits(out->dtype) / 8;
            if (order == '>') out->swap = dtype_is_complex(out->dtype) ? out->item / 2 : out->item;
            return ORTC_OK;
        }
    if (strcmp(descr + 1, "V2") == 0) {
        *out = (layout){.dtype = ORTC_BF16, .item = 2, .swap = order == '>' ? 2 : 0};
        return ORTC_OK;
    }
    if (strcmp(descr + 1, "V1") == 0 && narrow_type(expected)) {
        *out = (layout){.dtype = expected, .item = 1, .byte_each = ortc_dtype_bits(expected) < 8};
        return ORTC_OK;
    }
    if (descr[1] == 'S' || descr[1] == 'U') {
        char *end;
        unsigned long n = strtoul(descr + 2, &end, 10);
        if (descr[2] >= '0' && descr[2] <= '9' && !*end && n <= 1u << 28) {
            *out = (layout){.dtype = ORTC_STRING,
                            .text = descr[1],
                            .item = descr[1] == 'U' ? 4 * n : n,
                            .swap = descr[1] == 'U' && order == '>' ? 4 : 0};
            return ORTC_OK;
        }
    }
    if (descr[1] == 'O')
        return fail(error, ORTC_UNSUPPORTED,
                    "holds Python objects (a pickle), which are not read: save with a dtype, "
                    "as in np.asarray(x, np.float32)");
    return fail(error, ORTC_UNSUPPORTED,
                "holds dtype '%s', which is not read: convert it, as in x.astype(np.float32)", descr);
}

/* ---- Elements ------------------------------------------------------------------------------------------ */

/* One element of the file as it stands in a value: byte order put right. */
static void copy_item(const layout *l, const uint8_t *from, uint8_t *to)
{
    if (!l->swap) {
        memcpy(to, from, l->item);
        return;
    }
    for (size_t part = 0; part < l->item; part += l->swap)
        for (size_t i = 0; i < l->swap; i++) to[part + i] = from[part + l->swap - 1 - i];
}

/* Steps through the elements of a Fortran-ordered file in C order: where the next one lies. */
typedef struct walk {
    int64_t index[MAX_RANK], stride[MAX_RANK], at;
} walk;

static void walk_begin(walk *w, const header *h)
{
    int64_t stride = 1;
    memset(w, 0, sizeof *w);
    for (int32_t i = 0; i < h->rank; i++) {
        w->stride[i] = stride;
        stride *= h->dims[i];
    }
    if (!h->fortran) {
        stride = 1;
        for (int32_t i = h->rank - 1; i >= 0; i--) {
            w->stride[i] = stride;
            stride *= h->dims[i];
        }
    }
}

static void walk_next(walk *w, const header *h)
{
    for (int32_t i = h->rank - 1; i >= 0; i--) {
        w->at += w->stride[i];
        if (++w->index[i] < h->dims[i]) return;
        w->at -= w->stride[i] * h->dims[i];
        w->index[i] = 0;
    }
}

static void put_utf8(buffer *out, uint32_t c)
{
    if (c > 0x10ffff || (c >= 0xd800 && c < 0xe000)) c = 0xfffd;
    uint8_t s[4];
    size_t n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = n; i-- > 1; c >>= 6) s[i] = (uint8_t)(0x80 | (c & 0x3f));
    s[0] = (uint8_t)(n == 1 ? c : (0xf00u >> n & 0xff) | c);
    buffer_add(out, s, n);
}

static ortc_status decode_strings(const header *h, const layout *l, const uint8_t *data, int64_t count,
                                  ortc_value **out, ortc_error *error)
{
    buffer text = {0};
    size_t *ends = mem_grow(NULL, (size_t)count + 1, sizeof *ends);
    walk w;
    walk_begin(&w, h);
    for (int64_t i = 0; i < count; i++, walk_next(&w, h)) {
        const uint8_t *item = data + (size_t)w.at * l->item;
        size_t n = l->item / (l->text == 'U' ? 4 : 1);
        const size_t start = text.size;
        size_t kept = start; /* numpy pads with zeros, and means none of the trailing ones */
        for (size_t k = 0; k < n; k++) {
            uint32_t c = item[k];
            if (l->text == 'U') {
                uint8_t b[4];
                copy_item(&(layout){.item = 4, .swap = l->swap}, item + 4 * k, b);
                c = (uint32_t)b[0] | (uint32_t)b[1] << 8 | (uint32_t)b[2] << 16 | (uint32_t)b[3] << 24;
                put_utf8(&text, c);
            } else {
                buffer_add(&text, item + k, 1);
            }
            if (c) kept = text.size;
        }
        text.size = kept;
        ends[i] = kept;
    }
    const char **strings = mem_grow(NULL, (size_t)count, sizeof *strings);
    size_t *lengths = mem_grow(NULL, (size_t)count, sizeof *lengths), start = 0;
    for (int64_t i = 0; i < count; i++) {
        strings[i] = text.data ? (const char *)text.data + start : "";
        lengths[i] = ends[i] - start;
        start = ends[i];
    }
    ortc_status s = ortc_value_create_strings(h->rank, h->dims, strings, lengths, out, error);
    free(text.data);
    free(ends);
    free(strings);
    free(lengths);
    return s;
}

static void decode_numbers(const header *h, const layout *l, const uint8_t *data, int64_t count,
                           ortc_value *value)
{
    uint8_t *to = ortc_value_data(value);
    if (!h->fortran && !l->swap && !l->byte_each) {
        memcpy(to, data, (size_t)count * l->item);
    } else if (l->byte_each) {
        uint32_t bits = ortc_dtype_bits(l->dtype);
        memset(to, 0, ortc_value_bytes(value));
        walk w;
        walk_begin(&w, h);
        for (int64_t i = 0; i < count; i++, walk_next(&w, h)) {
            uint64_t at = (uint64_t)i * bits;
            uint32_t v = (data[w.at] & ((1u << bits) - 1)) << at % 8;
            to[at / 8] |= (uint8_t)v;
            if (v > 0xff) to[at / 8 + 1] |= (uint8_t)(v >> 8);
        }
    } else {
        walk w;
        walk_begin(&w, h);
        for (int64_t i = 0; i < count; i++, walk_next(&w, h))
            copy_item(l, data + (size_t)w.at * l->item, to + (size_t)i * l->item);
    }
    if (l->dtype == ORTC_BOOL)
        for (int64_t i = 0; i < count; i++) to[i] = to[i] != 0; /* the library takes 0 or 1 only */
}

/* ---- Reading ------------------------------------------------------------------------------------------- */

static ortc_status read_header(const uint8_t *data, size_t bytes, header *h, size_t *out_start,
                               ortc_error *error)
{
    if (bytes < 10 || memcmp(data, magic, MAGIC_BYTES) != 0)
        return fail(error, ORTC_INVALID_ARGUMENT, "is not an npy array: it does not begin with \\x93NUMPY");
    int version = data[6];
    if (version < 1 || version > 3)
        return fail(error, ORTC_UNSUPPORTED, "is npy version %d.%d; 1 to 3 are read", version, data[7]);
    size_t length = data[8] | (size_t)data[9] << 8, start = 10;
    if (version > 1) {
        if (bytes < 12) return fail(error, ORTC_INVALID_ARGUMENT, "ends within its npy header");
        length |= (size_t)data[10] << 16 | (size_t)data[11] << 24;
        start = 12;
    }
    if (length > bytes - start) return fail(error, ORTC_INVALID_ARGUMENT, "ends within its npy header");
    cursor c = {(const char *)data + start, (const char *)data + start + length};
    if (!take_header(&c, h))
        return fail(error, ORTC_INVALID_ARGUMENT, "has an npy header that is not understood: %.*s",
                    (int)(length > 200 ? 200 : length), (const char *)data + start);
    *out_start = start + length;
    return ORTC_OK;
}

ortc_status npy_decode(const void *data, size_t bytes, ortc_dtype expected, ortc_value **out,
                       ortc_error *error)
{
    header h = {0};
    layout l;
    size_t start = 0, need;
    int64_t count;
    *out = NULL;
    ortc_status s = read_header(data, bytes, &h, &start, error);
    if (s == ORTC_OK) s = layout_of(h.descr, expected, &l, error);
    if (s != ORTC_OK) return s;
    if (!count_elements(h.rank, h.dims, &count) || __builtin_mul_overflow((size_t)count, l.item, &need))
        return fail(error, ORTC_INVALID_ARGUMENT, "has a shape whose size overflows");
    if (need != bytes - start)
        return fail(error, ORTC_INVALID_ARGUMENT,
                    "should have %zu bytes of elements by its header, but has %zu", need, bytes - start);
    if (l.item == 0 && count > (int64_t)bytes)
        return fail(error, ORTC_LIMIT, "has %lld empty strings", (long long)count);
    const uint8_t *elements = (const uint8_t *)data + start;
    if (l.text) return decode_strings(&h, &l, elements, count, out, error);
    s = ortc_value_create(l.dtype, h.rank, h.dims, out, error);
    if (s == ORTC_OK && count) decode_numbers(&h, &l, elements, count, *out);
    return s;
}
