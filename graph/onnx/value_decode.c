/* graph/onnx/value_decode.c: messages to single values: TensorProto, SequenceProto, MapProto and
 * OptionalProto, as the standard's test data holds them. Types nest at most 8 deep (the wire walk), so
 * recursion is bounded.
 *
 * A map's values are a SequenceProto with one tensor for each key; where those are single elements they
 * become one tensor of rank 1, as maps of ours hold them.
 */
#include "proto.h"

typedef struct decoder {
    ortc_tensor_base base;
    ortc_error *error;
} decoder;

static ortc_status decode_sequence(const decoder *, const Onnx__SequenceProto *, const ortc_type *,
                                   ortc_value **);
static ortc_status decode_map(const decoder *, const Onnx__MapProto *, const ortc_type *, ortc_value **);
static ortc_status decode_optional(const decoder *, const Onnx__OptionalProto *, const ortc_type *,
                                   ortc_value **);

static ortc_status wrong_type(const decoder *d, const ortc_type *expected, const ortc_type *got)
{
    char a[128], b[128];
    ortc_text ta = ORTC_TEXT(a), tb = ORTC_TEXT(b);
    ortc_text_type(&ta, expected);
    ortc_text_type(&tb, got);
    return ortc_fail(d->error, ORTC_TYPE_MISMATCH, "expected a value of type %s, got %s", a, b);
}

/* Moves what was read into a value. */
static ortc_status tensor_value(const decoder *d, ortc_tensor_data *t, ortc_value **out)
{
    ortc_status status;

    if (t->dtype == ORTC_STRING) {
        status = ortc_value_take_strings(t->owned, t->rank, t->dims, out, d->error);
        if (status == ORTC_OK) t->owned = NULL;
    } else {
        status = ortc_value_create(t->dtype, t->rank, t->dims, out, d->error);
        if (status == ORTC_OK && t->bytes) memcpy((*out)->data, t->data, t->bytes);
    }
    free(t->owned);
    return status;
}

/* type NULL, or of element type 0: any. */
static ortc_status decode_tensor(const decoder *d, const Onnx__TensorProto *p, const ortc_type *type,
                                 ortc_value **out)
{
    ortc_tensor_data t;

    ORTC_TRY(ortc_tensor_read(p, &d->base, &t, d->error));
    if (type && type->dtype && type->dtype != t.dtype) {
        free(t.owned);
        return wrong_type(d, type, ortc_tensor_type(t.dtype));
    }
    return tensor_value(d, &t, out);
}

/* Element i of a sequence; which list it is in depends on the element's kind. */
static ortc_status decode_element(const decoder *d, const Onnx__SequenceProto *p, int32_t kind, size_t i,
                                  const ortc_type *of, ortc_value **out)
{
    switch (kind) {
    case ORTC_KIND_TENSOR: return decode_tensor(d, p->tensor_values[i], of, out);
    case ORTC_KIND_SEQUENCE: return decode_sequence(d, p->sequence_values[i], of, out);
    case ORTC_KIND_MAP: return decode_map(d, p->map_values[i], of, out);
    default: return decode_optional(d, p->optional_values[i], of, out);
    }
}

static ortc_status sequence_kind(const decoder *d, const Onnx__SequenceProto *p, const ortc_type *of,
                                 int32_t *out_kind, size_t *out_count)
{
    size_t total = p->n_tensor_values + p->n_sequence_values + p->n_map_values + p->n_optional_values;

    if (p->n_sparse_tensor_values)
        return ortc_fail(d->error, ORTC_UNSUPPORTED, "a sequence of sparse tensors");
    *out_kind = of                     ? of->kind
                : p->n_sequence_values ? ORTC_KIND_SEQUENCE
                : p->n_map_values      ? ORTC_KIND_MAP
                : p->n_optional_values ? ORTC_KIND_OPTIONAL
                                       : ORTC_KIND_TENSOR;
    *out_count = *out_kind == ORTC_KIND_TENSOR     ? p->n_tensor_values
                 : *out_kind == ORTC_KIND_SEQUENCE ? p->n_sequence_values
                 : *out_kind == ORTC_KIND_MAP      ? p->n_map_values
                                                   : p->n_optional_values;
    if (*out_count != total)
        return ortc_fail(d->error, ORTC_TYPE_MISMATCH,
                         "a sequence with elements of another kind than its type says");
    return ORTC_OK;
}

/* The type of a container may leave the element's type open (`of` NULL): that of the first element then, or
 * f32. */
static ortc_status decode_sequence(const decoder *d, const Onnx__SequenceProto *p, const ortc_type *type,
                                   ortc_value **out)
{
    const ortc_type *of = type ? type->of : NULL;
    ortc_value **elements;
    ortc_status status = ORTC_OK;
    int32_t kind = 0;
    size_t n = 0, i;

    if (type && type->kind != ORTC_KIND_SEQUENCE)
        return ortc_fail(d->error, ORTC_TYPE_MISMATCH, "a sequence where the type says something else");
    ORTC_TRY(sequence_kind(d, p, of, &kind, &n));
    elements = calloc(n ? n : 1, sizeof *elements);
    if (!elements) return ortc_no_memory(d->error, n * sizeof *elements);
    for (i = 0; i < n && status == ORTC_OK; i++) {
        status = decode_element(d, p, kind, i, of, &elements[i]);
        if (status != ORTC_OK) ortc_error_prefix(d->error, "element %zu: ", i);
    }
    if (status == ORTC_OK) {
        if (!of || (of->kind == ORTC_KIND_TENSOR && !of->dtype))
            of = n ? elements[0]->type : ortc_tensor_type(ORTC_F32);
        status = ortc_value_create_sequence(of, n, elements, out, d->error);
    }
    for (i = 0; i < n; i++) ortc_value_release(elements[i]);
    free(elements);
    return status;
}

static ortc_status decode_keys(const decoder *d, const Onnx__MapProto *p, ortc_value **out)
{
    Onnx__TensorProto keys = ONNX__TENSOR_PROTO__INIT;
    ortc_tensor_data t = {.dtype = p->key_type};
    int64_t n = p->key_type == ORTC_STRING ? (int64_t)p->n_string_keys : (int64_t)p->n_keys;
    size_t width = ortc_dtype_bits(p->key_type) / 8;

    keys.n_dims = 1;
    keys.dims = &n;
    keys.data_type = p->key_type;
    if (p->key_type == ORTC_STRING) {
        keys.n_string_data = p->n_string_keys;
        keys.string_data = p->string_keys;
        ORTC_TRY(ortc_tensor_read(&keys, &d->base, &t, d->error));
        return tensor_value(d, &t, out);
    }
    if (!((p->key_type >= ORTC_U8 && p->key_type <= ORTC_I64) || p->key_type == ORTC_U32 ||
          p->key_type == ORTC_U64))
        return ortc_fail(d->error, ORTC_INVALID_MODEL, "a map with keys of type %d", p->key_type);
    ORTC_TRY(ortc_value_create(p->key_type, 1, &n, out, d->error));
    for (size_t i = 0; i < p->n_keys; i++) /* little-endian: the low bytes */
        memcpy((char *)(*out)->data + i * width, &p->keys[i], width);
    return ORTC_OK;
}

/* One tensor of rank 1 from tensors of one element each; *out stays NULL when they are something else. */
static ortc_status join_scalars(const decoder *d, const ortc_value *list, ortc_value **out)
{
    const ortc_type *of = list->type->of;
    size_t width = ortc_dtype_bits(of->dtype) / 8;
    const char **strings;
    size_t *lengths;
    ortc_status status;

    if (of->kind != ORTC_KIND_TENSOR || (width == 0 && of->dtype != ORTC_STRING)) return ORTC_OK;
    for (int64_t i = 0; i < list->count; i++)
        if (list->elements[i]->count != 1) return ORTC_OK;
    if (of->dtype != ORTC_STRING) {
        ORTC_TRY(ortc_value_create(of->dtype, 1, &list->count, out, d->error));
        for (int64_t i = 0; i < list->count; i++)
            memcpy((char *)(*out)->data + (size_t)i * width, list->elements[i]->data, width);
        return ORTC_OK;
    }
    strings = malloc(((size_t)list->count + 1) * sizeof *strings);
    lengths = malloc(((size_t)list->count + 1) * sizeof *lengths);
    for (int64_t i = 0; strings && lengths && i < list->count; i++)
        strings[i] = ortc_value_string(list->elements[i], 0, &lengths[i]);
    status = strings && lengths ? ortc_value_create_strings(1, &list->count, strings, lengths, out, d->error)
                                : ortc_no_memory(d->error, 0);
    free(strings);
    free(lengths);
    return status;
}

static ortc_status decode_map(const decoder *d, const Onnx__MapProto *p, const ortc_type *type,
                              ortc_value **out)
{
    ortc_type list_type = {.kind = ORTC_KIND_SEQUENCE, .of = type ? type->of : NULL};
    ortc_value *keys = NULL, *list = NULL, *joined = NULL;
    ortc_status status;

    if (type && type->kind != ORTC_KIND_MAP)
        return ortc_fail(d->error, ORTC_TYPE_MISMATCH, "a map where the type says something else");
    if (!p->values) return ortc_fail(d->error, ORTC_INVALID_MODEL, "a map without values");
    if (type && type->dtype && type->dtype != p->key_type)
        return ortc_fail(d->error, ORTC_TYPE_MISMATCH, "a map with keys of type %s, expected %s",
                         ortc_dtype_name(p->key_type), ortc_dtype_name(type->dtype));
    status = decode_keys(d, p, &keys);
    if (status == ORTC_OK) status = decode_sequence(d, p->values, &list_type, &list);
    if (status == ORTC_OK) status = join_scalars(d, list, &joined);
    if (status == ORTC_OK) status = ortc_value_create_map(keys, joined ? joined : list, out, d->error);
    ortc_value_release(keys);
    ortc_value_release(list);
    ortc_value_release(joined);
    return status;
}

static ortc_status decode_optional(const decoder *d, const Onnx__OptionalProto *p, const ortc_type *type,
                                   ortc_value **out)
{
    const ortc_type *of = type ? type->of : NULL;
    ortc_value *element = NULL;
    ortc_status status = ORTC_OK;

    if (type && type->kind != ORTC_KIND_OPTIONAL)
        return ortc_fail(d->error, ORTC_TYPE_MISMATCH, "an optional where the type says something else");
    if (p->sparse_tensor_value) return ortc_fail(d->error, ORTC_UNSUPPORTED, "an optional sparse tensor");
    if (p->tensor_value && (!of || of->kind == ORTC_KIND_TENSOR))
        status = decode_tensor(d, p->tensor_value, of, &element);
    else if (p->sequence_value)
        status = decode_sequence(d, p->sequence_value, of, &element);
    else if (p->map_value)
        status = decode_map(d, p->map_value, of, &element);
    else if (p->optional_value)
        status = decode_optional(d, p->optional_value, of, &element);
    else if (p->tensor_value)
        return ortc_fail(d->error, ORTC_TYPE_MISMATCH,
                         "an optional tensor where the type says something else");
    if (status == ORTC_OK) {
        if (!of || (of->kind == ORTC_KIND_TENSOR && !of->dtype))
            of = element ? element->type : ortc_tensor_type(ORTC_F32);
        status = ortc_value_create_optional(of, element, out, d->error);
    }
    ortc_value_release(element);
    return status;
}

ortc_status ortc_onnx_decode_value(const void *data, size_t bytes, const ortc_type *type, ortc_value **out,
                                   ortc_error *error)
{
    decoder d = {.base = {.data = data, .bytes = bytes}, .error = error};
    int32_t kind = type ? type->kind : ORTC_KIND_TENSOR;
    ortc_arena arena = {0};
    ortc_status status;
    void *message;

    *out = NULL;
    if (kind < ORTC_KIND_TENSOR || kind > ORTC_KIND_OPTIONAL)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "a value of kind %d cannot be decoded", kind);
    status = ortc_proto_read(data, bytes, kind, &arena, &message, error);
    if (status == ORTC_OK)
        status = kind == ORTC_KIND_TENSOR     ? decode_tensor(&d, message, type, out)
                 : kind == ORTC_KIND_SEQUENCE ? decode_sequence(&d, message, type, out)
                 : kind == ORTC_KIND_MAP      ? decode_map(&d, message, type, out)
                                              : decode_optional(&d, message, type, out);
    ortc_arena_deinit(&arena);
    return status;
}

ortc_status ortc_value_decode(const void *data, size_t bytes, const ortc_type *type, ortc_value **out,
                              ortc_error *error)
{
    return ortc_onnx_decode_value(data, bytes, type, out, error);
}
