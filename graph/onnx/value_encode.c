/* graph/onnx/value_encode.c: single values to messages. The messages are built in an arena over the value's
 * own bytes, and packed at the end. Tensors are written as raw_data, strings apart; the elements of a map's
 * tensor become scalars.
 */
#include "proto.h"

/* SequenceProto.elem_type and OptionalProto.elem_type; sparse tensors would be 2. */
enum { ELEMENT_NONE = 0, ELEMENT_TENSOR = 1, ELEMENT_SEQUENCE = 3, ELEMENT_MAP = 4, ELEMENT_OPTIONAL = 5 };

typedef struct encoder {
    ortc_arena arena;
    ortc_error *error;
} encoder;

static ortc_status encode_message(encoder *, const ortc_value *, ProtobufCMessage **out);

static ortc_status encode_strings(encoder *e, const ortc_value *v, ProtobufCBinaryData **out)
{
    ProtobufCBinaryData *list = ortc_arena_array(&e->arena, (size_t)v->count, sizeof *list);

    if (!list) return ortc_no_memory(e->error, (size_t)v->count * sizeof *list);
    for (int64_t i = 0; i < v->count; i++)
        list[i].data = (uint8_t *)(uintptr_t)ortc_value_string(v, i, &list[i].len);
    *out = list;
    return ORTC_OK;
}

static ortc_status encode_tensor(encoder *e, const ortc_value *v, ProtobufCMessage **out)
{
    Onnx__TensorProto *p = ortc_arena_alloc(&e->arena, sizeof *p);

    if (!p) return ortc_no_memory(e->error, sizeof *p);
    if (v->device != 0)
        return ortc_fail(e->error, ORTC_INVALID_ARGUMENT, "a value in a device's memory cannot be encoded");
    onnx__tensor_proto__init(p);
    p->has_data_type = 1;
    p->data_type = v->type->dtype;
    p->n_dims = (size_t)v->rank;
    p->dims = v->dims;
    *out = &p->base;
    if (v->type->dtype == ORTC_STRING) {
        p->n_string_data = (size_t)v->count;
        return encode_strings(e, v, &p->string_data);
    }
    p->has_raw_data = 1;
    p->raw_data.len = v->bytes;
    p->raw_data.data = v->data;
    return ORTC_OK;
}

/* A list of the messages of n values. */
static ortc_status encode_list(encoder *e, ortc_value *const *values, size_t n, ProtobufCMessage ***out)
{
    *out = ortc_arena_array(&e->arena, n, sizeof **out);
    if (!*out) return ortc_no_memory(e->error, n * sizeof **out);
    for (size_t i = 0; i < n; i++) ORTC_TRY(encode_message(e, values[i], &(*out)[i]));
    return ORTC_OK;
}

static ortc_status encode_sequence(encoder *e, const ortc_type *of, ortc_value *const *values, size_t n,
                                   Onnx__SequenceProto **out)
{
    Onnx__SequenceProto *p = ortc_arena_alloc(&e->arena, sizeof *p);
    ProtobufCMessage **list;

    if (!p) return ortc_no_memory(e->error, sizeof *p);
    ORTC_TRY(encode_list(e, values, n, &list));
    onnx__sequence_proto__init(p);
    p->has_elem_type = 1;
    switch (of->kind) {
    case ORTC_KIND_TENSOR:
        p->elem_type = ELEMENT_TENSOR;
        p->n_tensor_values = n;
        p->tensor_values = (Onnx__TensorProto **)(void *)list;
        break;
    case ORTC_KIND_SEQUENCE:
        p->elem_type = ELEMENT_SEQUENCE;
        p->n_sequence_values = n;
        p->sequence_values = (Onnx__SequenceProto **)(void *)list;
        break;
    case ORTC_KIND_MAP:
        p->elem_type = ELEMENT_MAP;
        p->n_map_values = n;
        p->map_values = (Onnx__MapProto **)(void *)list;
        break;
    default:
        p->elem_type = ELEMENT_OPTIONAL;
        p->n_optional_values = n;
        p->optional_values = (Onnx__OptionalProto **)(void *)list;
        break;
    }
    *out = p;
    return ORTC_OK;
}

/* Element i of a tensor as a message of a scalar. */
static ortc_status encode_scalar(encoder *e, const ortc_value *v, int64_t i, Onnx__TensorProto **out)
{
    Onnx__TensorProto *p = ortc_arena_alloc(&e->arena, sizeof *p);
    size_t width = ortc_dtype_bits(v->type->dtype) / 8;

    if (!p) return ortc_no_memory(e->error, sizeof *p);
    onnx__tensor_proto__init(p);
    p->has_data_type = 1;
    p->data_type = v->type->dtype;
    *out = p;
    if (v->type->dtype == ORTC_STRING) {
        p->string_data = ortc_arena_alloc(&e->arena, sizeof *p->string_data);
        if (!p->string_data) return ortc_no_memory(e->error, sizeof *p->string_data);
        p->n_string_data = 1;
        p->string_data->data = (uint8_t *)(uintptr_t)ortc_value_string(v, i, &p->string_data->len);
        return ORTC_OK;
    }
    if (width == 0)
        return ortc_fail(e->error, ORTC_UNSUPPORTED, "a map with values of type %s",
                         ortc_dtype_name(v->type->dtype));
    p->has_raw_data = 1;
    p->raw_data.len = width;
    p->raw_data.data = (uint8_t *)v->data + (size_t)i * width;
    return ORTC_OK;
}

static ortc_status encode_map_values(encoder *e, const ortc_value *values, Onnx__SequenceProto **out)
{
    Onnx__SequenceProto *p;
    size_t n = (size_t)values->count;

    if (values->type->kind == ORTC_KIND_SEQUENCE)
        return encode_sequence(e, values->type->of, values->elements, n, out);
    p = ortc_arena_alloc(&e->arena, sizeof *p);
    if (!p) return ortc_no_memory(e->error, sizeof *p);
    onnx__sequence_proto__init(p);
    p->has_elem_type = 1;
    p->elem_type = ELEMENT_TENSOR;
    p->tensor_values = ortc_arena_array(&e->arena, n, sizeof *p->tensor_values);
    if (!p->tensor_values) return ortc_no_memory(e->error, n * sizeof *p->tensor_values);
    p->n_tensor_values = n;
    for (size_t i = 0; i < n; i++) ORTC_TRY(encode_scalar(e, values, (int64_t)i, &p->tensor_values[i]));
    *out = p;
    return ORTC_OK;
}

static bool is_signed(ortc_dtype d)
{
    return d == ORTC_I8 || d == ORTC_I16 || d == ORTC_I32 || d == ORTC_I64;
}

static ortc_status encode_map(encoder *e, const ortc_value *v, ProtobufCMessage **out)
{
    const ortc_value *keys = v->elements[0];
    Onnx__MapProto *p = ortc_arena_alloc(&e->arena, sizeof *p);
    uint32_t bits = ortc_dtype_bits(keys->type->dtype);

    if (!p) return ortc_no_memory(e->error, sizeof *p);
    onnx__map_proto__init(p);
    p->has_key_type = 1;
    p->key_type = keys->type->dtype;
    *out = &p->base;
    if (keys->type->dtype == ORTC_STRING) {
        p->n_string_keys = (size_t)keys->count;
        ORTC_TRY(encode_strings(e, keys, &p->string_keys));
    } else {
        p->n_keys = (size_t)keys->count;
        p->keys = ortc_arena_array(&e->arena, p->n_keys, sizeof *p->keys);
        if (!p->keys) return ortc_no_memory(e->error, p->n_keys * sizeof *p->keys);
        for (size_t i = 0; i < p->n_keys; i++) {
            memcpy(&p->keys[i], (const char *)keys->data + i * bits / 8, bits / 8);
            if (is_signed(keys->type->dtype) && bits < 64 && (p->keys[i] >> (bits - 1)) & 1)
                p->keys[i] -= INT64_C(1) << bits;
        }
    }
    return encode_map_values(e, v->elements[1], &p->values);
}

static ortc_status encode_optional(encoder *e, const ortc_value *v, ProtobufCMessage **out)
{
    Onnx__OptionalProto *p = ortc_arena_alloc(&e->arena, sizeof *p);
    ProtobufCMessage *element;

    if (!p) return ortc_no_memory(e->error, sizeof *p);
    onnx__optional_proto__init(p);
    p->has_elem_type = 1;
    p->elem_type = ELEMENT_NONE;
    *out = &p->base;
    if (v->count == 0) return ORTC_OK;
    ORTC_TRY(encode_message(e, v->elements[0], &element));
    switch (v->type->of->kind) {
    case ORTC_KIND_TENSOR:
        p->elem_type = ELEMENT_TENSOR;
        p->tensor_value = (Onnx__TensorProto *)(void *)element;
        break;
    case ORTC_KIND_SEQUENCE:
        p->elem_type = ELEMENT_SEQUENCE;
        p->sequence_value = (Onnx__SequenceProto *)(void *)element;
        break;
    case ORTC_KIND_MAP:
        p->elem_type = ELEMENT_MAP;
        p->map_value = (Onnx__MapProto *)(void *)element;
        break;
    default:
        p->elem_type = ELEMENT_OPTIONAL;
        p->optional_value = (Onnx__OptionalProto *)(void *)element;
        break;
    }
    return ORTC_OK;
}

static ortc_status encode_message(encoder *e, const ortc_value *v, ProtobufCMessage **out)
{
    Onnx__SequenceProto *sequence;

    switch (v->type->kind) {
    case ORTC_KIND_TENSOR: return encode_tensor(e, v, out);
    case ORTC_KIND_MAP: return encode_map(e, v, out);
    case ORTC_KIND_OPTIONAL: return encode_optional(e, v, out);
    default:
        ORTC_TRY(encode_sequence(e, v->type->of, v->elements, (size_t)v->count, &sequence));
        *out = &sequence->base;
        return ORTC_OK;
    }
}

static void set_name(ProtobufCMessage *m, int32_t kind, const char *name)
{
    char *text = (char *)(uintptr_t)name;

    if (kind == ORTC_KIND_TENSOR)
        ((Onnx__TensorProto *)(void *)m)->name = text;
    else if (kind == ORTC_KIND_SEQUENCE)
        ((Onnx__SequenceProto *)(void *)m)->name = text;
    else if (kind == ORTC_KIND_MAP)
        ((Onnx__MapProto *)(void *)m)->name = text;
    else
        ((Onnx__OptionalProto *)(void *)m)->name = text;
}

ortc_status ortc_onnx_encode_value(const ortc_value *v, const char *name, void **out_data, size_t *out_bytes,
                                   ortc_error *error)
{
    encoder e = {.error = error};
    ProtobufCMessage *message;
    ortc_status status;

    *out_data = NULL;
    *out_bytes = 0;
    status = encode_message(&e, v, &message);
    if (status == ORTC_OK) {
        if (name && *name) set_name(message, v->type->kind, name);
        *out_bytes = protobuf_c_message_get_packed_size(message);
        *out_data = malloc(*out_bytes ? *out_bytes : 1);
        if (*out_data)
            protobuf_c_message_pack(message, *out_data);
        else
            status = ortc_no_memory(error, *out_bytes);
    }
    ortc_arena_deinit(&e.arena);
    return status;
}

ortc_status ortc_value_encode(const ortc_value *v, const char *name, void **out_data, size_t *out_bytes,
                              ortc_error *error)
{
    return ortc_onnx_encode_value(v, name, out_data, out_bytes, error);
}
