/* graph/onnx/tensor.c: the elements of a TensorProto, wherever it keeps them: raw bytes, typed fields,
 * strings, an external file; and sparse tensors made dense.
 *
 * Raw and external elements are borrowed from where they lie; all else is unpacked into memory of its own. An
 * error does not name the tensor: callers know more about it.
 */
#include "proto.h"
#include "source.h"

/* ---- Shape and size ------------------------------------------------------------------------------------ */

static ortc_status check_shape(size_t rank, const int64_t *dims, ortc_tensor_data *out, ortc_error *error)
{
    if (rank > ORTC_MAX_RANK)
        return ortc_fail(error, ORTC_LIMIT, "it has %zu dims, at most %d are supported", rank, ORTC_MAX_RANK);
    for (size_t i = 0; i < rank; i++)
        if (dims[i] < 0)
            return ortc_fail(error, ORTC_INVALID_MODEL, "dim %zu is %lld", i, (long long)dims[i]);
    out->rank = (int32_t)rank;
    out->dims = dims;
    if (!ortc_count_elements(out->rank, dims, &out->count))
        return ortc_fail(error, ORTC_LIMIT, "its dims have too many elements");
    return ORTC_OK;
}

static ortc_status too_short(const ortc_tensor_data *t, size_t got, const char *what, ortc_error *error)
{
    char shape[256];
    ortc_text text = ORTC_TEXT(shape);
    ortc_text_tensor(&text, t->dtype, t->rank, t->dims);
    return ortc_fail(error, ORTC_INVALID_MODEL, "%s needs %zu bytes, %s %zu", shape, t->bytes, what, got);
}

/* Bools of untrusted origin: kernels count on 0 and 1. */
static ortc_status tidy_bools(ortc_tensor_data *t, ortc_error *error)
{
    const uint8_t *from = t->data;
    uint8_t *to;
    size_t i = 0;

    /* masks are large: words at a time, and bytes from the first that is not tidy on */
    for (uint64_t word; i + sizeof word <= t->bytes; i += sizeof word) {
        memcpy(&word, from + i, sizeof word);
        if (word & ~UINT64_C(0x0101010101010101)) break;
    }
    while (i < t->bytes && from[i] <= 1) i++;
    if (i == t->bytes) return ORTC_OK;
    to = malloc(t->bytes);
    if (!to) {
        free(t->owned);
        t->owned = NULL;
        return ortc_no_memory(error, t->bytes);
    }
    for (i = 0; i < t->bytes; i++) to[i] = from[i] != 0;
    free(t->owned);
    t->data = t->owned = to;
    t->mapped = false;
    return ORTC_OK;
}

/* Elements of a mapped file up to this size are copied: what reads them later (shape arithmetic does, and
 * every run of a network its biases and norms) should not bring pages of the file back, which a system with
 * large pages has in units of megabytes, weights that are long packed among them. */
enum { SMALL = 32768 };

static ortc_status own(ortc_tensor_data *t, ortc_error *error)
{
    void *copy = malloc(t->bytes ? t->bytes : 1);

    if (!copy) return ortc_no_memory(error, t->bytes);
    if (t->bytes) memcpy(copy, t->data, t->bytes);
    t->data = t->owned = copy;
    t->mapped = false;
    return ORTC_OK;
}

/* ---- Raw and external ---------------------------------------------------------------------------------- */

static uint64_t get_u64(const uint8_t *p)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--) value = value << 8 | p[i];
    return value;
}

static ortc_status read_raw(const Onnx__TensorProto *p, const ortc_tensor_base *base, ortc_tensor_data *out,
                            ortc_error *error)
{
    uint64_t offset, bytes;

    if (p->raw_data.len != 16) return ortc_fail(error, ORTC_INTERNAL, "raw_data without a place in the file");
    offset = get_u64(p->raw_data.data);
    bytes = get_u64(p->raw_data.data + 8);
    if (offset > base->bytes || bytes > base->bytes - offset)
        return ortc_fail(error, ORTC_INTERNAL, "raw_data outside of the file");
    if (bytes < out->bytes) return too_short(out, (size_t)bytes, "raw_data has", error);
    out->data = (const uint8_t *)base->data + offset;
    out->mapped = base->mapped;
    return base->mapped && out->bytes <= SMALL ? own(out, error) : ORTC_OK;
}

/* "1234"; false for anything else. */
static bool read_decimal(const char *s, uint64_t *out)
{
    uint64_t value = 0;
    if (*s == 0) return false;
    for (; *s; s++)
        if (*s < '0' || *s > '9' || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, (uint64_t)(*s - '0'), &value))
            return false;
    *out = value;
    return true;
}

static ortc_status read_external(const Onnx__TensorProto *p, const ortc_tensor_base *base,
                                 ortc_tensor_data *out, ortc_error *error)
{
    const char *location = NULL;
    uint64_t offset = 0, length = out->bytes;
    ortc_source_bytes file;

    for (size_t i = 0; i < p->n_external_data; i++) {
        const char *key = ortc_proto_text(p->external_data[i]->key),
                   *value = ortc_proto_text(p->external_data[i]->value);
        uint64_t *number = !strcmp(key, "offset") ? &offset : !strcmp(key, "length") ? &length : NULL;
        if (!strcmp(key, "location"))
            location = value;
        else if (number && !read_decimal(value, number))
            return ortc_fail(error, ORTC_INVALID_MODEL,
                             "external data: %s is '%s', expected a decimal number", key, value);
    }
    if (!location) return ortc_fail(error, ORTC_INVALID_MODEL, "external data: no location is given");
    if (!base->source)
        return ortc_fail(error, ORTC_UNSUPPORTED, "external data in '%s': only models may have it", location);
    if (length < out->bytes)
        return too_short(out, (size_t)length, "its external data has a length of", error);
    ORTC_TRY(ortc_source_beside(base->source, location, &file, error));
    if (offset > file.bytes || length > file.bytes - offset)
        return ortc_fail(error, ORTC_INVALID_MODEL,
                         "external data: %llu bytes at %llu of '%s', which has %zu bytes",
                         (unsigned long long)length, (unsigned long long)offset, location, file.bytes);
    out->data = file.data ? file.data + offset : NULL;
    out->mapped = file.mapped;
    return ORTC_OK;
}

/* ---- Typed fields -------------------------------------------------------------------------------------- */

static ortc_status wrong_count(const char *field, size_t got, uint64_t expected, ortc_error *error)
{
    return ortc_fail(error, ORTC_INVALID_MODEL, "%s has %zu entries, expected %llu", field, got,
                     (unsigned long long)expected);
}

static ortc_status copy_field(const void *field, size_t n, size_t entry, uint64_t expected, const char *name,
                              ortc_tensor_data *out, ortc_error *error)
{
    if (n != expected) return wrong_count(name, n, expected, error);
    out->data = out->owned = malloc(n ? n * entry : 1);
    if (!out->owned) return ortc_no_memory(error, n * entry);
    if (n) memcpy(out->owned, field, n * entry);
    return ORTC_OK;
}

/* int32_data: every type of at most 32 bits. Sub-byte types: an entry is a packed byte (4, 2 bits) or one
 * element (6). */
static ortc_status read_int32_data(const Onnx__TensorProto *p, ortc_tensor_data *out, ortc_error *error)
{
    uint32_t bits = ortc_dtype_bits(out->dtype);
    uint64_t expected = bits == 4 || bits == 2 ? out->bytes : (uint64_t)out->count;
    uint8_t *to;

    if (p->n_int32_data != expected) return wrong_count("int32_data", p->n_int32_data, expected, error);
    to = calloc(1, out->bytes ? out->bytes : 1);
    if (!to) return ortc_no_memory(error, out->bytes);
    out->data = out->owned = to;
    for (size_t i = 0; i < p->n_int32_data; i++) {
        uint32_t v = (uint32_t)p->int32_data[i];
        if (bits == 6) { /* a little-endian stream of bits */
            size_t at = 6 * i;
            to[at / 8] |= (uint8_t)((v & 63) << at % 8);
            if (at % 8 > 2) to[at / 8 + 1] |= (uint8_t)((v & 63) >> (8 - at % 8));
        } else if (bits == 16) {
            to[2 * i] = (uint8_t)v;
            to[2 * i + 1] = (uint8_t)(v >> 8);
        } else if (bits == 32) {
            memcpy(to + 4 * i, &v, 4);
        } else {
            to[i] = (uint8_t)(out->dtype == ORTC_BOOL ? v != 0 : v);
        }
    }
    return ORTC_OK;
}

static ortc_status read_uint64_data(const Onnx__TensorProto *p, ortc_tensor_data *out, ortc_error *error)
{
    uint32_t *narrow;

    if (out->dtype == ORTC_U64)
        return copy_field(p->uint64_data, p->n_uint64_data, 8, (uint64_t)out->count, "uint64_data", out,
                          error);
    if (p->n_uint64_data != (uint64_t)out->count)
        return wrong_count("uint64_data", p->n_uint64_data, (uint64_t)out->count, error);
    narrow = malloc(out->bytes ? out->bytes : 1);
    if (!narrow) return ortc_no_memory(error, out->bytes);
    out->data = out->owned = narrow;
    for (size_t i = 0; i < p->n_uint64_data; i++) narrow[i] = (uint32_t)p->uint64_data[i];
    return ORTC_OK;
}

static ortc_status read_strings(const Onnx__TensorProto *p, ortc_tensor_data *out, ortc_error *error)
{
    size_t total = offsetof(ortc_strings, offsets) + (p->n_string_data + 1) * sizeof(int64_t);
    ortc_strings *block;
    char *to;

    if (p->n_string_data != (uint64_t)out->count)
        return wrong_count("string_data", p->n_string_data, (uint64_t)out->count, error);
    for (size_t i = 0; i < p->n_string_data; i++)
        total += p->string_data[i].len; /* all of them are in memory already */
    block = malloc(total);
    if (!block) return ortc_no_memory(error, total);
    block->count = out->count;
    block->offsets[0] = 0;
    to = (char *)(block->offsets + out->count + 1);
    for (size_t i = 0; i < p->n_string_data; i++) {
        if (p->string_data[i].len)
            memcpy(to + block->offsets[i], p->string_data[i].data, p->string_data[i].len);
        block->offsets[i + 1] = block->offsets[i] + (int64_t)p->string_data[i].len;
    }
    out->data = out->owned = block;
    out->bytes = total;
    return ORTC_OK;
}

static size_t n_typed(const Onnx__TensorProto *p)
{
    return p->n_float_data + p->n_int32_data + p->n_string_data + p->n_int64_data + p->n_double_data +
           p->n_uint64_data;
}

static ortc_status read_typed(const Onnx__TensorProto *p, ortc_tensor_data *out, ortc_error *error)
{
    switch (out->dtype) {
    case ORTC_F32:
    case ORTC_C64:
        return copy_field(p->float_data, p->n_float_data, 4, out->bytes / 4, "float_data", out, error);
    case ORTC_F64:
    case ORTC_C128:
        return copy_field(p->double_data, p->n_double_data, 8, out->bytes / 8, "double_data", out, error);
    case ORTC_I64:
        return copy_field(p->int64_data, p->n_int64_data, 8, (uint64_t)out->count, "int64_data", out, error);
    case ORTC_U32:
    case ORTC_U64: return read_uint64_data(p, out, error);
    default: return read_int32_data(p, out, error);
    }
}

ortc_status ortc_tensor_read(const Onnx__TensorProto *p, const ortc_tensor_base *base, ortc_tensor_data *out,
                             ortc_error *error)
{
    bool external = p->data_location == 1;

    *out = (ortc_tensor_data){.dtype = p->data_type};
    if (p->data_type <= 0 || p->data_type >= ORTC_DTYPE_COUNT)
        return ortc_fail(error, ORTC_INVALID_MODEL, "data_type is %d, expected 1 to %d", p->data_type,
                         ORTC_DTYPE_COUNT - 1);
    if (p->segment) return ortc_fail(error, ORTC_UNSUPPORTED, "it is stored in segments");
    if ((external || p->has_raw_data) && n_typed(p) > 0)
        return ortc_fail(error, ORTC_INVALID_MODEL, "its elements are stored twice: %s and a typed field",
                         external ? "external data" : "raw_data");
    if (external && p->has_raw_data)
        return ortc_fail(error, ORTC_INVALID_MODEL,
                         "its elements are stored twice: external data and raw_data");
    ORTC_TRY(check_shape(p->n_dims, p->dims, out, error));
    if (out->dtype == ORTC_STRING) {
        if (external || p->has_raw_data)
            return ortc_fail(error, ORTC_INVALID_MODEL, "strings are stored as %s, expected string_data",
                             external ? "external data" : "raw_data");
        return read_strings(p, out, error);
    }
    if (!ortc_tensor_bytes(out->dtype, out->count, &out->bytes) || out->bytes > PTRDIFF_MAX)
        return ortc_fail(error, ORTC_LIMIT, "its dims have too many elements");
    if (!external && !p->has_raw_data) return read_typed(p, out, error);
    ORTC_TRY(external ? read_external(p, base, out, error) : read_raw(p, base, out, error));
    return out->dtype == ORTC_BOOL ? tidy_bools(out, error) : ORTC_OK;
}

/* ---- Sparse -------------------------------------------------------------------------------------------- */

/* A dense form may be this much larger than what the file stores for it, and SPARSE_FREE more. */
enum { SPARSE_GROWTH = 1024, SPARSE_FREE = 16 << 20 };

/* Position of the k-th value in the dense tensor; -1: outside. */
static int64_t sparse_position(const ortc_tensor_data *dense, const int64_t *indices, size_t index_rank,
                               size_t k)
{
    int64_t at = 0, i;

    if (index_rank == 1) {
        memcpy(&at, indices + k, sizeof at);
        return at >= 0 && at < dense->count ? at : -1;
    }
    for (int32_t d = 0; d < dense->rank; d++) {
        memcpy(&i, indices + k * (size_t)dense->rank + (size_t)d, sizeof i);
        if (i < 0 || i >= dense->dims[d]) return -1;
        at = at * dense->dims[d] + i; /* below count, which fits */
    }
    return at;
}

/* Copies an element of `bits` bits, which may be less than a byte. */
static void copy_element(uint8_t *to, int64_t to_at, const uint8_t *from, int64_t from_at, uint32_t bits)
{
    if (bits >= 8) {
        memcpy(to + to_at * (bits / 8), from + from_at * (bits / 8), bits / 8);
        return;
    }
    for (uint32_t b = 0; b < bits; b++) {
        uint64_t f = (uint64_t)from_at * bits + b, t = (uint64_t)to_at * bits + b;
        if (from[f / 8] >> f % 8 & 1) to[t / 8] |= (uint8_t)(1u << t % 8);
    }
}

static ortc_status scatter(const ortc_tensor_data *values, const ortc_tensor_data *indices,
                           ortc_tensor_data *out, ortc_error *error)
{
    int64_t before = -1;

    for (int64_t k = 0; k < values->count; k++) {
        /* The indices may have any alignment: they are read by memcpy only. */
        int64_t at = sparse_position(out, indices->data, (size_t)indices->rank, (size_t)k);
        if (at < 0)
            return ortc_fail(error, ORTC_INVALID_MODEL,
                             "index %lld of a sparse tensor is outside of its dims", (long long)k);
        if (at <= before)
            return ortc_fail(error, ORTC_INVALID_MODEL,
                             "index %lld of a sparse tensor is not above the one before", (long long)k);
        before = at;
        copy_element(out->owned, at, values->data, k, ortc_dtype_bits(out->dtype));
    }
    return ORTC_OK;
}

static ortc_status make_dense(const ortc_tensor_data *values, const ortc_tensor_data *indices,
                              ortc_tensor_data *out, ortc_error *error)
{
    bool linear = indices->rank == 1 && indices->dims[0] == values->count;
    bool full = indices->rank == 2 && indices->dims[0] == values->count && indices->dims[1] == out->rank;

    if (values->dtype == ORTC_STRING) return ortc_fail(error, ORTC_UNSUPPORTED, "a sparse tensor of strings");
    if (values->rank != 1 || indices->dtype != ORTC_I64 || (!linear && !full))
        return ortc_fail(error, ORTC_INVALID_MODEL,
                         "a sparse tensor needs values of rank 1 and i64 indices, [n] or [n,%d] for n values",
                         out->rank);
    if (!ortc_tensor_bytes(values->dtype, out->count, &out->bytes) ||
        out->bytes / SPARSE_GROWTH > values->bytes + indices->bytes + SPARSE_FREE / SPARSE_GROWTH)
        return ortc_fail(error, ORTC_LIMIT, "a sparse tensor of %zu bytes would have %zu bytes when dense",
                         values->bytes + indices->bytes, out->bytes);
    out->dtype = values->dtype;
    out->data = out->owned = calloc(1, out->bytes ? out->bytes : 1);
    if (!out->owned) return ortc_no_memory(error, out->bytes);
    return scatter(values, indices, out, error);
}

ortc_status ortc_tensor_read_sparse(const Onnx__SparseTensorProto *p, const ortc_tensor_base *base,
                                    ortc_tensor_data *out, ortc_error *error)
{
    ortc_tensor_data values = {0}, indices = {0};
    ortc_status status;

    *out = (ortc_tensor_data){0};
    if (!p->values || !p->indices)
        return ortc_fail(error, ORTC_INVALID_MODEL, "a sparse tensor without %s",
                         p->values ? "indices" : "values");
    ORTC_TRY(check_shape(p->n_dims, p->dims, out, error));
    status = ortc_tensor_read(p->values, base, &values, error);
    if (status == ORTC_OK) status = ortc_tensor_read(p->indices, base, &indices, error);
    if (status == ORTC_OK) status = make_dense(&values, &indices, out, error);
    free(values.owned);
    free(indices.owned);
    if (status != ORTC_OK) {
        free(out->owned);
        out->owned = NULL;
    }
    return status;
}
