/* tools/ortc/zip.c: reading and writing zip archives; see zip.h. Format: PKWARE's APPNOTE 6.3. */
#include "zip.h"

#include <stdlib.h>
#include <string.h>
#include <zlib.h>

enum {
    LOCAL = 0x04034b50,
    CENTRAL = 0x02014b50,
    END = 0x06054b50,
    END64 = 0x06064b50,
    LOCATOR64 = 0x07064b50,
    MAX_MEMBERS = 1 << 20,
    MAX_GROWTH = 1040 /* deflate: 258 bytes of output from 2 bits */
};

static uint16_t u16(const uint8_t *p) { return (uint16_t)(p[0] | p[1] << 8); }
static uint32_t u32(const uint8_t *p) { return u16(p) | (uint32_t)u16(p + 2) << 16; }
static uint64_t u64(const uint8_t *p) { return u32(p) | (uint64_t)u32(p + 4) << 32; }

/* ---- Reading ------------------------------------------------------------------------------------------- */

static ortc_status damaged(ortc_error *error, const char *what)
{
    return fail(error, ORTC_INVALID_ARGUMENT, "is a damaged zip archive: %s", what);
}

/* Finds the end record, which a comment of up to 64 KiB may follow. */
static bool find_end(const uint8_t *data, size_t bytes, size_t *out)
{
    for (size_t back = 22; back <= bytes && back <= 22 + 65535; back++)
        if (u32(data + bytes - back) == END && u16(data + bytes - back + 20) == back - 22) {
            *out = bytes - back;
            return true;
        }
    return false;
}

/* Where the directory lies and how many members it has, from the zip64 record where there is one. */
static bool find_directory(const uint8_t *data, size_t end, uint64_t *out_offset, uint64_t *out_size,
                           uint64_t *out_count)
{
    *out_count = u16(data + end + 10);
    *out_size = u32(data + end + 12);
    *out_offset = u32(data + end + 16);
    if (end >= 20 && u32(data + end - 20) == LOCATOR64) {
        uint64_t at = u64(data + end - 20 + 8);
        if (end < 56 + 20 || at > end - 20 - 56 || u32(data + at) != END64) return false;
        *out_count = u64(data + at + 32);
        *out_size = u64(data + at + 40);
        *out_offset = u64(data + at + 48);
    }
    return *out_offset <= end && *out_size <= end - *out_offset;
}

/* Sizes that do not fit 32 bits stand in the extra field 1, in this order, each only if its own field is
 * full. */
static bool extend(zip_member *m, const uint8_t *extra, size_t bytes)
{
    uint64_t *fields[] = {&m->size, &m->packed, &m->offset};
    while (bytes >= 4) {
        size_t n = u16(extra + 2);
        if (n > bytes - 4) return true; /* other programs' fields are none of ours */
        if (u16(extra) == 1) {
            const uint8_t *at = extra + 4;
            for (size_t i = 0; i < COUNT_OF(fields); i++)
                if (*fields[i] == UINT32_MAX) {
                    if (n < 8) return false;
                    *fields[i] = u64(at);
                    at += 8;
                    n -= 8;
                }
            return true;
        }
        extra += 4 + n;
        bytes -= 4 + n;
    }
    return true;
}

/* One entry of the directory; gives its length, 0 when it is damaged. */
static size_t read_entry(const uint8_t *at, size_t left, zip_member *m)
{
    if (left < 46 || u32(at) != CENTRAL) return 0;
    size_t name = u16(at + 28), extra = u16(at + 30), comment = u16(at + 32),
           total = 46 + name + extra + comment;
    if (total > left || memchr(at + 46, 0, name)) return 0;
    *m = (zip_member){.flags = u16(at + 8),
                      .method = u16(at + 10),
                      .crc = u32(at + 16),
                      .packed = u32(at + 20),
                      .size = u32(at + 24),
                      .offset = u32(at + 42)};
    if (!extend(m, at + 46 + name, extra)) return 0;
    m->name = mem_alloc(name + 1);
    memcpy(m->name, at + 46, name);
    return total;
}

ortc_status zip_open(const void *data, size_t bytes, zip_archive *out, ortc_error *error)
{
    *out = (zip_archive){.data = data, .bytes = bytes};
    size_t end;
    uint64_t offset, size, count;
    if (!find_end(data, bytes, &end))
        return fail(error, ORTC_INVALID_ARGUMENT,
                    "is not a zip archive (or is cut short): it has no end record");
    if (!find_directory(data, end, &offset, &size, &count) || count > size / 46 || count > MAX_MEMBERS)
        return damaged(error, "the directory lies outside it");
    out->members = mem_alloc((size_t)count * sizeof *out->members);
    const uint8_t *at = out->data + offset;
    size_t left = (size_t)size;
    for (; out->count < count; out->count++) {
        size_t n = read_entry(at, left, &out->members[out->count]);
        if (!n) {
            zip_close(out);
            return damaged(error, "an entry of the directory is not valid");
        }
        at += n;
        left -= n;
    }
    return ORTC_OK;
}

void zip_close(zip_archive *z)
{
    for (size_t i = 0; i < z->count; i++) free(z->members[i].name);
    free(z->members);
    *z = (zip_archive){0};
}

/* Raw deflate; zlib counts in 32 bits, so both sides go in pieces. */
static bool inflate_all(const uint8_t *from, uint64_t packed, uint8_t *to, uint64_t size)
{
    z_stream z = {0};
    if (inflateInit2(&z, -MAX_WBITS) != Z_OK) return false;
    int r = Z_OK;
    while (r == Z_OK) {
        uint8_t none[1];
        uInt in = (uInt)(packed > 1u << 30 ? 1u << 30 : packed),
             room = (uInt)(size > 1u << 30 ? 1u << 30 : size);
        z.next_in = (Bytef *)(uintptr_t)from;
        z.avail_in = in;
        z.next_out = room ? to : none; /* an empty member still has an end to be read */
        z.avail_out = room ? room : 1;
        uInt offered = z.avail_out;
        r = inflate(&z, Z_NO_FLUSH);
        uInt used = in - z.avail_in, made = offered - z.avail_out;
        if (made > size || (!used && !made && r == Z_OK)) {
            r = Z_DATA_ERROR;
            break;
        }
        from += used;
        packed -= used;
        to += made;
        size -= made;
    }
    inflateEnd(&z);
    return r == Z_STREAM_END && packed == 0 && size == 0;
}

ortc_status zip_read(const zip_archive *z, const zip_member *m, uint64_t limit, blob *out, ortc_error *error)
{
    *out = (blob){0};
    if (m->flags & 1) return fail(error, ORTC_UNSUPPORTED, "member '%s' is encrypted", m->name);
    if (m->method != 0 && m->method != 8)
        return fail(error, ORTC_UNSUPPORTED,
                    "member '%s' is packed by method %u; stored and deflated are read", m->name, m->method);
    if (m->offset > z->bytes || z->bytes - m->offset < 30 || u32(z->data + m->offset) != LOCAL)
        return damaged(error, "a member lies outside it");
    uint64_t start = m->offset + 30 + u16(z->data + m->offset + 26) + u16(z->data + m->offset + 28);
    if (start > z->bytes || m->packed > z->bytes - start) return damaged(error, "a member lies outside it");
    if (m->method == 0 ? m->size != m->packed : m->size / MAX_GROWTH > m->packed)
        return damaged(error, "a member's sizes contradict each other");
    if (m->size > limit)
        return fail(error, ORTC_LIMIT, "member '%s' unpacks to %llu bytes, more than the %llu that are read",
                    m->name, (unsigned long long)m->size, (unsigned long long)limit);
    blob b = {mem_grow(NULL, (size_t)m->size, 1), (size_t)m->size};
    bool good = true;
    if (m->method == 0 && m->size)
        memcpy(b.data, z->data + start, b.size);
    else if (m->method == 8)
        good = inflate_all(z->data + start, m->packed, b.data, m->size);
    if (!good || crc32_z(0, b.data, b.size) != m->crc) {
        free(b.data);
        return damaged(error, good ? "a member's checksum is wrong" : "a member cannot be unpacked");
    }
    *out = b;
    return ORTC_OK;
}

/* ---- Writing ------------------------------------------------------------------------------------------- */

static void put16(buffer *b, uint32_t v) { buffer_add(b, (uint8_t[]){(uint8_t)v, (uint8_t)(v >> 8)}, 2); }
static void put32(buffer *b, uint32_t v)
{
    put16(b, v & 0xffff);
    put16(b, v >> 16);
}
static void put64(buffer *b, uint64_t v)
{
    put32(b, (uint32_t)v);
    put32(b, (uint32_t)(v >> 32));
}

static bool deflate_all(const uint8_t *from, size_t bytes, buffer *out)
{
    z_stream z = {0};
    if (deflateInit2(&z, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    static uint8_t piece[1 << 16];
    int r = Z_OK;
    while (r == Z_OK) {
        uInt in = (uInt)(bytes > 1u << 30 ? 1u << 30 : bytes);
        z.next_in = (Bytef *)(uintptr_t)from;
        z.avail_in = in;
        z.next_out = piece;
        z.avail_out = sizeof piece;
        r = deflate(&z, in == bytes ? Z_FINISH : Z_NO_FLUSH);
        from += in - z.avail_in;
        bytes -= in - z.avail_in;
        buffer_add(out, piece, sizeof piece - z.avail_out);
    }
    deflateEnd(&z);
    return r == Z_STREAM_END;
}

/* The part that the local header and the directory share. Times are the format's first day: same results,
 * same file. */
static void put_common(buffer *b, bool deflated, uint32_t crc, uint64_t packed, uint64_t size, size_t name,
                       bool big)
{
    put16(b, big ? 45 : 20);
    put16(b, 0x800); /* names are UTF-8 */
    put16(b, deflated ? 8 : 0);
    put32(b, 0x00210000);
    put32(b, crc);
    put32(b, big ? UINT32_MAX : (uint32_t)packed);
    put32(b, big ? UINT32_MAX : (uint32_t)size);
    put16(b, (uint32_t)name);
    put16(b, big ? 28 : 0);
}

ortc_status zip_add(zip_writer *w, const char *name, const void *data, size_t bytes, ortc_error *error)
{
    size_t length = strlen(name);
    if (length > 60000)
        return fail(error, ORTC_LIMIT, "a name of %zu bytes is too long for a zip archive", length);
    buffer packed = {0};
    if (w->deflated && !deflate_all(data, bytes, &packed))
        return fail(error, ORTC_INTERNAL, "zlib could not pack '%s'", name);
    uint64_t offset = w->out.size, packed_bytes = w->deflated ? packed.size : bytes;
    uint32_t crc = (uint32_t)crc32_z(0, data, bytes);
    /* One form for all three 64-bit fields keeps this simple; it only shows in archives beyond 4 GiB. */
    bool big = offset >= UINT32_MAX || packed_bytes >= UINT32_MAX || bytes >= UINT32_MAX;
    put32(&w->out, LOCAL);
    put_common(&w->out, w->deflated, crc, packed_bytes, bytes, length, big);
    buffer_add(&w->out, name, length);
    buffer *d = &w->directory;
    put32(d, CENTRAL);
    put16(d, 45);
    put_common(d, w->deflated, crc, packed_bytes, bytes, length, big);
    put16(d, 0); /* comment */
    put16(d, 0); /* disk */
    put16(d, 0);
    put32(d, 0);
    put32(d, big ? UINT32_MAX : (uint32_t)offset);
    buffer_add(d, name, length);
    for (int i = 0; big && i < 2; i++) {
        buffer *b = i ? d : &w->out;
        put16(b, 1);
        put16(b, 24);
        put64(b, bytes);
        put64(b, packed_bytes);
        put64(b, offset);
    }
    if (w->deflated)
        buffer_add(&w->out, packed.data, packed.size);
    else
        buffer_add(&w->out, data, bytes);
    free(packed.data);
    w->count++;
    return ORTC_OK;
}

void zip_end(zip_writer *w)
{
    uint64_t offset = w->out.size, size = w->directory.size;
    buffer_add(&w->out, w->directory.data, w->directory.size);
    free(w->directory.data);
    w->directory = (buffer){0};
    bool big = offset >= UINT32_MAX || size >= UINT32_MAX || w->count >= UINT16_MAX;
    if (big) {
        uint64_t at = w->out.size;
        put32(&w->out, END64);
        put64(&w->out, 44);
        put16(&w->out, 45);
        put16(&w->out, 45);
        put32(&w->out, 0);
        put32(&w->out, 0);
        put64(&w->out, w->count);
        put64(&w->out, w->count);
        put64(&w->out, size);
        put64(&w->out, offset);
        put32(&w->out, LOCATOR64);
        put32(&w->out, 0);
        put64(&w->out, at);
        put32(&w->out, 1);
    }
    put32(&w->out, END);
    put16(&w->out, 0);
    put16(&w->out, 0);
    put16(&w->out, big ? UINT16_MAX : (uint32_t)w->count);
    put16(&w->out, big ? UINT16_MAX : (uint32_t)w->count);
    put32(&w->out, big ? UINT32_MAX : (uint32_t)size);
    put32(&w->out, big ? UINT32_MAX : (uint32_t)offset);
    put16(&w->out, 0);
}
