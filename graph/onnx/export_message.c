/* graph/onnx/export_message.c: appending fields to serialised messages (the protobuf wire format). */
#include "export.h"

enum { VARINT = 0, LENGTH = 2, FIXED32 = 5 }; /* wire types */

static void add(ortc_message *m, const void *data, size_t bytes)
{
    size_t total;
    if (m->failed || !ortc_add_size(m->bytes.count, bytes, &total) || !ortc_array_reserve(&m->bytes, total)) {
        m->failed = true;
        return;
    }
    if (bytes) memcpy(m->bytes.data + m->bytes.count, data, bytes);
    m->bytes.count = total;
}

static void varint(ortc_message *m, uint64_t v)
{
    uint8_t bytes[10];
    size_t n = 0;
    for (; v >= 0x80; v >>= 7) bytes[n++] = (uint8_t)(v | 0x80);
    bytes[n++] = (uint8_t)v;
    add(m, bytes, n);
}

void ortc_message_deinit(ortc_message *m)
{
    ortc_array_deinit(&m->bytes);
    m->failed = false;
}

void ortc_message_int(ortc_message *m, uint32_t field, int64_t v)
{
    varint(m, field << 3 | VARINT);
    varint(m, (uint64_t)v);
}

void ortc_message_float(ortc_message *m, uint32_t field, float v)
{
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    varint(m, field << 3 | FIXED32);
    add(m,
        (const uint8_t[]){(uint8_t)bits, (uint8_t)(bits >> 8), (uint8_t)(bits >> 16), (uint8_t)(bits >> 24)},
        4);
}

void ortc_message_head(ortc_message *m, uint32_t field, uint64_t bytes)
{
    varint(m, field << 3 | LENGTH);
    varint(m, bytes);
}

void ortc_message_bytes(ortc_message *m, uint32_t field, const void *data, size_t bytes)
{
    ortc_message_head(m, field, bytes);
    add(m, data, bytes);
}

void ortc_message_text(ortc_message *m, uint32_t field, const char *text)
{
    if (text && *text) ortc_message_bytes(m, field, text, strlen(text));
}

void ortc_message_append(ortc_message *m, ortc_message *inner)
{
    add(m, inner->bytes.data, inner->bytes.count);
    m->failed |= inner->failed;
    ortc_message_deinit(inner);
}

void ortc_message_take(ortc_message *m, uint32_t field, ortc_message *inner)
{
    ortc_message_head(m, field, inner->bytes.count);
    ortc_message_append(m, inner);
}
