/* graph/onnx/wire.c: the walk over a serialised message that comes before protobuf-c sees a byte
 * (ortc_wire_compact).
 *
 * protobuf-c copies every bytes field and recurses as deep as the file says: a gigabyte of weights would be
 * read and copied, and a file of 479 bytes can overflow a small stack. So this walk, which is a loop with a
 * stack of its own, follows the messages by the descriptors that protoc-c generated, checks every tag,
 * length, depth and count, and writes a copy without the weights: raw_data becomes 16 bytes (offset and
 * length in the original). Only headers are touched, so the time goes with the number of nodes, not of bytes.
 *
 * In the copy the lengths of messages are varints padded to five bytes, patched when the message ends;
 * protobuf reads those as it reads others. Fields that nobody knows are kept; fields that we know, never read
 * and that may be large are dropped.
 */
#include "proto.h"

enum {
    MAX_FRAMES = 192,        /* 32 graphs are 96 messages, 8 types 16, and some on the way */
    MAX_VALUE_DEPTH = 8,     /* sequences, maps, optionals */
    MAX_MESSAGES = 24000000, /* protobuf-c takes about 100 bytes for one, the file as little as 2 */
    MAX_PADDED = 5           /* bytes of a padded length */
};

/* The wire format's own numbers. */
enum { VARINT = 0, FIXED64 = 1, LENGTH = 2, GROUP_BEGIN = 3, GROUP_END = 4, FIXED32 = 5 };

typedef struct frame {
    const ProtobufCMessageDescriptor *message;
    const ProtobufCFieldDescriptor *field; /* through which we came; NULL: the root */
    const uint8_t *end;
    size_t length_at; /* where the copy has the message's length */
    uint64_t seen;    /* singular messages: bit by index of the field */
} frame;

typedef struct walk {
    const uint8_t *begin;
    const uint8_t *run; /* bytes from here on are to be copied as they are */
    uint8_t *out;
    size_t out_bytes, out_capacity;
    frame frames[MAX_FRAMES];
    int depth; /* of the current frame */
    int graphs, types, values;
    size_t n_messages, n_nodes;
    ortc_error *error;
} walk;

/* ---- Errors -------------------------------------------------------------------------------------------- */

/* "byte 17, in graph.node.attribute: ..." */
ORTC_PRINTF(4, 5)
static ortc_status refuse(walk *w, const uint8_t *at, ortc_status code, const char *fmt, ...)
{
    char path[160];
    ortc_text text = ORTC_TEXT(path);
    va_list args;

    for (int i = 1; i <= w->depth && i < 12; i++)
        ortc_text_add(&text, "%s%s", i > 1 ? "." : "", w->frames[i].field->name);
    if (w->depth >= 12) ortc_text_add(&text, "...%s", w->frames[w->depth].field->name);
    va_start(args, fmt);
    ortc_vfail(w->error, code, fmt, args);
    va_end(args);
    ortc_error_prefix(w->error, "%s, byte %zu%s%s: ", w->frames[0].message->short_name,
                      (size_t)(at - w->begin), w->depth ? ", in " : "", w->depth ? path : "");
    return code;
}

/* ---- The copy ------------------------------------------------------------------------------------------ */

static ortc_status reserve(walk *w, size_t more)
{
    size_t needed, capacity = w->out_capacity ? w->out_capacity : 4096;
    uint8_t *grown;

    if (!ortc_add_size(w->out_bytes, more, &needed)) return ortc_no_memory(w->error, more);
    if (needed <= w->out_capacity) return ORTC_OK;
    while (capacity < needed)
        if (!ortc_mul_size(capacity, 2, &capacity)) return ortc_no_memory(w->error, needed);
    grown = realloc(w->out, capacity);
    if (!grown) return ortc_no_memory(w->error, capacity);
    w->out = grown;
    w->out_capacity = capacity;
    return ORTC_OK;
}

/* Copies what is pending, up to `to`; goes on at `next`. */
static ortc_status flush(walk *w, const uint8_t *to, const uint8_t *next)
{
    size_t bytes = (size_t)(to - w->run);

    ORTC_TRY(reserve(w, bytes + MAX_PADDED + 17));
    if (bytes) memcpy(w->out + w->out_bytes, w->run, bytes);
    w->out_bytes += bytes;
    w->run = next;
    return ORTC_OK;
}

static void put_u64(walk *w, uint64_t value)
{
    for (int i = 0; i < 8; i++) w->out[w->out_bytes++] = (uint8_t)(value >> (8 * i));
}

/* ---- Reading ------------------------------------------------------------------------------------------- */

/* A varint of at most `most` bytes; NULL when it is longer or cut off. */
static const uint8_t *read_varint(const uint8_t *p, const uint8_t *end, int most, uint64_t *out)
{
    uint64_t value = 0;

    for (int i = 0; i < most && p < end; i++) {
        value |= (uint64_t)(*p & 0x7f) << (7 * i);
        if (!(*p++ & 0x80)) {
            *out = value;
            return p;
        }
    }
    return NULL;
}

static int wire_type_of(ProtobufCType type)
{
    switch (type) {
    case PROTOBUF_C_TYPE_FLOAT: return FIXED32;
    case PROTOBUF_C_TYPE_DOUBLE: return FIXED64;
    case PROTOBUF_C_TYPE_STRING:
    case PROTOBUF_C_TYPE_BYTES:
    case PROTOBUF_C_TYPE_MESSAGE: return LENGTH;
    default: return VARINT;
    }
}

/* Known, never read, possibly large: training graphs, sharding, annotations of exporters, documentation of
 * nodes. */
static bool is_dropped(const ProtobufCMessageDescriptor *m, uint32_t number)
{
    if (m == &onnx__model_proto__descriptor) return number == 20 || number == 26;
    if (m == &onnx__graph_proto__descriptor) return number == 14 || number == 16;
    if (m == &onnx__node_proto__descriptor) return number == 6 || number == 9 || number == 10;
    if (m == &onnx__tensor_proto__descriptor) return number == 12 || number == 16;
    if (m == &onnx__attribute_proto__descriptor) return number == 13;
    if (m == &onnx__value_info_proto__descriptor) return number == 4;
    if (m == &onnx__function_proto__descriptor) return number == 8 || number == 12 || number == 14;
    return false;
}

/* Counts a message in (by 1) or out (by -1) of the depths that are limited. */
static void count_depth(walk *w, const ProtobufCMessageDescriptor *m, int by)
{
    if (m == &onnx__graph_proto__descriptor)
        w->graphs += by;
    else if (m == &onnx__type_proto__descriptor)
        w->types += by;
    else if (m == &onnx__sequence_proto__descriptor || m == &onnx__map_proto__descriptor ||
             m == &onnx__optional_proto__descriptor)
        w->values += by;
}

/* Goes into a submessage whose payload is p .. end; its tag is still pending. */
static ortc_status enter(walk *w, const ProtobufCFieldDescriptor *field, const uint8_t *tag_end,
                         const uint8_t *p, const uint8_t *end)
{
    frame *top = &w->frames[w->depth];
    const ProtobufCMessageDescriptor *m = field->descriptor;

    if (field->label != PROTOBUF_C_LABEL_REPEATED) {
        /* Protobuf would merge the two, protobuf-c in quadratic time; no writer makes such files. */
        uint64_t bit = UINT64_C(1) << ((size_t)(field - top->message->fields) & 63);
        if (top->seen & bit)
            return refuse(w, p, ORTC_INVALID_MODEL, "field '%s' stands there twice", field->name);
        top->seen |= bit;
    }
    if (w->depth + 1 == MAX_FRAMES)
        return refuse(w, p, ORTC_LIMIT, "messages nested more than %d deep", MAX_FRAMES);
    if (++w->n_messages > MAX_MESSAGES)
        return refuse(w, p, ORTC_LIMIT, "more than %d messages", MAX_MESSAGES);
    if (m == &onnx__node_proto__descriptor && ++w->n_nodes > ORTC_WIRE_MAX_NODES)
        return refuse(w, p, ORTC_LIMIT, "more than %d nodes", ORTC_WIRE_MAX_NODES);
    count_depth(w, m, 1);
    if (w->graphs > ORTC_WIRE_MAX_DEPTH)
        return refuse(w, p, ORTC_LIMIT, "graphs nested more than %d deep", ORTC_WIRE_MAX_DEPTH);
    if (w->types > ORTC_WIRE_MAX_TYPE_DEPTH)
        return refuse(w, p, ORTC_LIMIT, "types nested more than %d deep", ORTC_WIRE_MAX_TYPE_DEPTH);
    if (w->values > MAX_VALUE_DEPTH)
        return refuse(w, p, ORTC_LIMIT, "values nested more than %d deep", MAX_VALUE_DEPTH);
    ORTC_TRY(flush(w, tag_end, p));
    w->frames[++w->depth] = (frame){m, field, end, w->out_bytes, 0};
    w->out_bytes += MAX_PADDED;
    return ORTC_OK;
}

/* The current message is at its end: its length is known now. */
static ortc_status leave(walk *w)
{
    frame *top = &w->frames[w->depth];
    size_t length;

    ORTC_TRY(flush(w, top->end, top->end));
    length = w->out_bytes - top->length_at - MAX_PADDED;
    if (length > INT32_MAX) return refuse(w, top->end, ORTC_LIMIT, "%zu bytes without weights", length);
    for (int i = 0; i < MAX_PADDED; i++)
        w->out[top->length_at + (size_t)i] = (uint8_t)((length >> (7 * i)) & 0x7f) |
                                             (i < MAX_PADDED - 1 ? 0x80 : 0);
    count_depth(w, top->message, -1);
    w->depth--;
    return ORTC_OK;
}

/* A field of length `length` at p, its tag begins at `tag` and ends at `tag_end`. *out: where to go on. */
static ortc_status read_block(walk *w, const ProtobufCFieldDescriptor *field, const uint8_t *tag_end,
                              const uint8_t *p, uint64_t length, const uint8_t **out)
{
    *out = p + length;
    if (field->type == PROTOBUF_C_TYPE_MESSAGE) {
        *out = p;
        return enter(w, field, tag_end, p, p + length);
    }
    if (field->type == PROTOBUF_C_TYPE_STRING && memchr(p, 0, (size_t)length))
        return refuse(w, p, ORTC_INVALID_MODEL, "'%s' holds a zero byte", field->name);
    if (field->type == PROTOBUF_C_TYPE_BYTES && field->id == 9 &&
        w->frames[w->depth].message == &onnx__tensor_proto__descriptor) {
        ORTC_TRY(flush(w, tag_end, *out));
        w->out[w->out_bytes++] = 16;
        put_u64(w, (uint64_t)(p - w->begin));
        put_u64(w, length);
    }
    return ORTC_OK;
}

/* One field of the current message. *inout goes behind it, or into it. */
static ortc_status read_field(walk *w, const uint8_t **inout)
{
    const frame *top = &w->frames[w->depth];
    const uint8_t *tag = *inout, *tag_end, *p;
    const ProtobufCFieldDescriptor *field;
    uint64_t key, value = 0;
    int wire;

    tag_end = p = read_varint(tag, top->end, 5, &key);
    if (!p || key >> 32 || key >> 3 == 0)
        return refuse(w, tag, ORTC_INVALID_MODEL, "no valid field begins here");
    wire = (int)(key & 7);
    field = protobuf_c_message_descriptor_get_field(top->message, (unsigned)(key >> 3));
    switch (wire) {
    case VARINT: p = read_varint(p, top->end, 10, &value); break;
    case FIXED32: p = top->end - p < 4 ? NULL : p + 4; break;
    case FIXED64: p = top->end - p < 8 ? NULL : p + 8; break;
    case LENGTH: p = read_varint(p, top->end, 10, &value); break;
    default:
        return refuse(w, tag, ORTC_INVALID_MODEL, "field %llu has wire type %d, which no ONNX file uses",
                      (unsigned long long)(key >> 3), wire);
    }
    if (!p)
        return refuse(w, tag, ORTC_INVALID_MODEL, "field %llu is cut off", (unsigned long long)(key >> 3));
    if (wire == LENGTH && value > (uint64_t)(top->end - p))
        return refuse(w, tag, ORTC_INVALID_MODEL, "field %llu should have %llu bytes, %zu are left",
                      (unsigned long long)(key >> 3), (unsigned long long)value, (size_t)(top->end - p));
    if (is_dropped(top->message, (uint32_t)(key >> 3))) {
        *inout = p + (wire == LENGTH ? value : 0);
        return flush(w, tag, *inout);
    }
    if (!field) {
        *inout = p + (wire == LENGTH ? value : 0);
        return ORTC_OK;
    }
    /* Numbers that repeat may be packed or not, whatever the schema prefers. */
    if (wire != wire_type_of(field->type) && !(wire == LENGTH && field->label == PROTOBUF_C_LABEL_REPEATED))
        return refuse(w, tag, ORTC_INVALID_MODEL, "'%s' has wire type %d, expected %d", field->name, wire,
                      wire_type_of(field->type));
    if (wire == LENGTH) return read_block(w, field, tag_end, p, value, inout);
    *inout = p;
    return ORTC_OK;
}

ortc_status ortc_wire_compact(const void *data, size_t bytes, int32_t root, uint8_t **out, size_t *out_bytes,
                              ortc_error *error)
{
    const ProtobufCMessageDescriptor *message = ortc_proto_root(root);
    const uint8_t *p = data;
    ortc_status status = ORTC_OK;
    walk *w;

    *out = NULL;
    *out_bytes = 0;
    if (!message) return ortc_fail(error, ORTC_INVALID_ARGUMENT, "no message of kind %d", root);
    if (bytes == 0) /* a valid message without fields; data may be NULL */
        p = (const uint8_t *)"";
    w = calloc(1, sizeof *w);
    if (!w) return ortc_no_memory(error, sizeof *w);
    w->begin = w->run = p;
    w->error = error;
    w->frames[0] = (frame){message, NULL, p + bytes, 0, 0};
    count_depth(w, message, 1);
    while (status == ORTC_OK) {
        if (p < w->frames[w->depth].end)
            status = read_field(w, &p);
        else if (w->depth > 0)
            status = leave(w);
        else
            break;
    }
    if (status == ORTC_OK) status = flush(w, p, p);
    if (status == ORTC_OK && w->out_bytes > INT32_MAX)
        status = refuse(w, p, ORTC_LIMIT, "%zu bytes without weights", w->out_bytes);
    if (status == ORTC_OK) {
        *out = w->out;
        *out_bytes = w->out_bytes;
    } else {
        free(w->out);
    }
    free(w);
    return status;
}
