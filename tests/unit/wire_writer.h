/* tests/unit/wire_writer.h: serialised messages by hand, valid and broken ones alike.
 *
 *   buffer node = {0};
 *   put_string(&node, 1, "x"); put_string(&node, 2, "y"); put_string(&node, 4, "Relu");
 *   put_message(&graph, 1, &node);      takes the bytes of `node` and empties it
 */
#ifndef ORTC_TESTS_WIRE_WRITER_H
#define ORTC_TESTS_WIRE_WRITER_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct buffer {
    uint8_t *data;
    size_t bytes, capacity;
} buffer;

static inline void put_bytes(buffer *b, const void *data, size_t bytes)
{
    if (b->bytes + bytes > b->capacity) {
        b->capacity = 2 * (b->bytes + bytes) + 64;
        b->data = realloc(b->data, b->capacity);
        if (!b->data) abort();
    }
    if (bytes) memcpy(b->data + b->bytes, data, bytes);
    b->bytes += bytes;
}

static inline void put_varint(buffer *b, uint64_t v)
{
    for (; v > 0x7f; v >>= 7) put_bytes(b, &(uint8_t){(uint8_t)(v | 0x80)}, 1);
    put_bytes(b, &(uint8_t){(uint8_t)v}, 1);
}

static inline void put_int(buffer *b, int field, int64_t v)
{
    put_varint(b, (uint64_t)field << 3);
    put_varint(b, (uint64_t)v);
}

static inline void put_float(buffer *b, int field, float v)
{
    put_varint(b, (uint64_t)field << 3 | 5);
    put_bytes(b, &v, 4);
}

static inline void put_block(buffer *b, int field, const void *data, size_t bytes)
{
    put_varint(b, (uint64_t)field << 3 | 2);
    put_varint(b, bytes);
    put_bytes(b, data, bytes);
}

static inline void put_string(buffer *b, int field, const char *s) { put_block(b, field, s, strlen(s)); }

static inline void buffer_free(buffer *b)
{
    free(b->data);
    *b = (buffer){0};
}

static inline void put_message(buffer *b, int field, buffer *message)
{
    put_block(b, field, message->data, message->bytes);
    buffer_free(message);
}

/* ---- What models are made of; the numbers are onnx.proto's --------------------------------------------- */

/* inputs and outputs: names between spaces; "-" is left out. */
static inline void put_names(buffer *b, int field, const char *names)
{
    char name[64];
    for (; *names; names += strspn(names, " ")) {
        size_t n = strcspn(names, " ");
        memcpy(name, names, n);
        name[n] = 0;
        put_string(b, field, strcmp(name, "-") ? name : "");
        names += n;
    }
}

static inline buffer make_node(const char *op, const char *domain, const char *inputs, const char *outputs)
{
    buffer b = {0};
    put_names(&b, 1, inputs);
    put_names(&b, 2, outputs);
    put_string(&b, 4, op);
    if (*domain) put_string(&b, 7, domain);
    return b;
}

/* A tensor type; rank -1: without a shape; dims below 0: symbols "s1", "s2" ... */
static inline buffer make_value_info(const char *name, int dtype, int rank, const int64_t *dims)
{
    buffer info = {0}, type = {0}, tensor = {0}, shape = {0}, dim = {0};
    put_int(&tensor, 1, dtype);
    for (int i = 0; i < rank; i++) {
        char symbol[3] = {'s', (char)('0' - (dims[i] < 0 ? dims[i] : 0)), 0};
        if (dims[i] < 0)
            put_string(&dim, 2, symbol);
        else
            put_int(&dim, 1, dims[i]);
        put_message(&shape, 1, &dim);
    }
    if (rank >= 0) put_message(&tensor, 2, &shape);
    put_message(&type, 1, &tensor);
    put_string(&info, 1, name);
    put_message(&info, 2, &type);
    return info;
}

static inline buffer make_tensor(const char *name, int dtype, int rank, const int64_t *dims, const void *raw,
                                 size_t bytes)
{
    buffer b = {0};
    for (int i = 0; i < rank; i++) put_int(&b, 1, dims[i]);
    put_int(&b, 2, dtype);
    if (*name) put_string(&b, 8, name);
    if (raw) put_block(&b, 9, raw, bytes);
    return b;
}

static inline void put_opset(buffer *b, int field, const char *domain, int64_t version)
{
    buffer o = {0};
    put_string(&o, 1, domain);
    put_int(&o, 2, version);
    put_message(b, field, &o);
}

/* Takes the graph. */
static inline buffer make_model(int64_t ir, int64_t opset, buffer *graph)
{
    buffer b = {0};
    put_int(&b, 1, ir);
    put_opset(&b, 8, "", opset);
    put_message(&b, 7, graph);
    return b;
}

#endif
