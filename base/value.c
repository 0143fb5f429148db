/* base/value.c: making, counting and reading values (the "Values" section of ortc.h).
 *
 * A value is one allocation (the struct and its dims) plus its data. Containers retain their elements. Types
 * nest at most MAX_DEPTH deep, so that releasing a value never recurses far. Tensors of strings are made in
 * strings.c.
 */
#include "value.h"

#include <stdio.h>

enum { MAX_DEPTH = 16 };

ortc_value *ortc_value_new(int32_t rank, const int64_t *dims)
{
    ortc_value *v = calloc(1, sizeof *v + (size_t)rank * sizeof *dims);
    if (!v) return NULL;
    atomic_init(&v->references, 1);
    v->rank = rank;
    v->dims = (int64_t *)(v + 1);
    if (rank) memcpy(v->dims, dims, (size_t)rank * sizeof *dims);
    return v;
}

ortc_status ortc_value_check_shape(int32_t rank, const int64_t *dims, int64_t *out_count, ortc_error *error)
{
    char buffer[256];
    ortc_text text = ORTC_TEXT(buffer);

    if (rank < 0 || rank > ORTC_MAX_RANK)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "rank %d: expected 0 to %d", rank, ORTC_MAX_RANK);
    if (rank > 0 && !dims)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "dims is NULL: expected %d extents", rank);
    for (int32_t i = 0; i < rank; i++)
        if (dims[i] < 0)
            return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                             "dims[%d] is %lld: expected an extent of at least 0", i, (long long)dims[i]);
    if (!ortc_count_elements(rank, dims, out_count)) {
        ortc_text_dims(&text, rank, dims);
        return ortc_fail(error, ORTC_LIMIT, "a tensor of shape %s has too many elements", buffer);
    }
    return ORTC_OK;
}

/* Count and bytes of a tensor that is not strings. */
static ortc_status check_tensor(ortc_dtype dtype, int32_t rank, const int64_t *dims, int64_t *out_count,
                                size_t *out_bytes, ortc_error *error)
{
    char buffer[256];
    ortc_text text = ORTC_TEXT(buffer);

    if (dtype == ORTC_STRING)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                         "a tensor of strings is made by ortc_value_create_strings");
    if (ortc_dtype_bits(dtype) == 0)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "element type %d: expected 1 (f32) to %d", dtype,
                         ORTC_DTYPE_COUNT - 1);
    ORTC_TRY(ortc_value_check_shape(rank, dims, out_count, error));
    if (!ortc_tensor_bytes(dtype, *out_count, out_bytes) || *out_bytes > PTRDIFF_MAX) {
        ortc_text_tensor(&text, dtype, rank, dims);
        return ortc_fail(error, ORTC_LIMIT, "a tensor %s is larger than the address space", buffer);
    }
    return ORTC_OK;
}

static void free_own(void *arg)
{
    ortc_value *v = arg;
    ortc_free_aligned(v->data, v->bytes);
}

ortc_status ortc_value_create(ortc_dtype dtype, int32_t rank, const int64_t *dims, ortc_value **out,
                              ortc_error *error)
{
    ortc_value *v;
    int64_t count;
    size_t bytes;

    *out = NULL;
    ORTC_TRY(check_tensor(dtype, rank, dims, &count, &bytes, error));
    v = ortc_value_new(rank, dims);
    if (!v) return ortc_no_memory(error, sizeof *v);
    v->data = ortc_alloc_aligned(bytes);
    if (!v->data) {
        free(v);
        return ortc_no_memory(error, bytes);
    }
    v->type = ortc_tensor_type(dtype);
    v->count = count;
    v->bytes = bytes;
    v->release = free_own;
    v->release_arg = v;
    *out = v;
    return ORTC_OK;
}

ortc_status ortc_value_wrap(void *data, ortc_dtype dtype, int32_t rank, const int64_t *dims,
                            void (*release)(void *arg), void *arg, ortc_value **out, ortc_error *error)
{
    ortc_value *v;
    int64_t count;
    size_t bytes;

    *out = NULL;
    ORTC_TRY(check_tensor(dtype, rank, dims, &count, &bytes, error));
    if (!data && bytes > 0)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "data is NULL: expected %zu bytes", bytes);
    v = ortc_value_new(rank, dims);
    if (!v) return ortc_no_memory(error, sizeof *v);
    v->type = ortc_tensor_type(dtype);
    v->count = count;
    v->bytes = bytes;
    v->data = data;
    v->release = release;
    v->release_arg = arg;
    *out = v;
    return ORTC_OK;
}

ortc_value *ortc_wrap(void *data, ortc_dtype dtype, int32_t rank, const int64_t *dims)
{
    ortc_value *v;
    ortc_value_wrap(data, dtype, rank, dims, NULL, NULL, &v, NULL);
    return v;
}

/* ---- Containers ---------------------------------------------------------------------------------------- */

/* A container of `kind` over n elements of type `of`, elements not set yet. */
static ortc_status create_container(uint16_t kind, ortc_dtype key, const ortc_type *of, size_t n,
                                    ortc_value **out, ortc_error *error)
{
    ortc_value *v;
    ortc_type *type;
    int depth = 1;

    for (const ortc_type *t = of; t; t = t->of)
        if (++depth > MAX_DEPTH)
            return ortc_fail(error, ORTC_LIMIT, "types nested more than %d deep", MAX_DEPTH);
    v = ortc_value_new(0, NULL);
    if (!v) return ortc_no_memory(error, sizeof *v);
    type = ortc_arena_alloc(&v->owned, sizeof *type);
    v->elements = calloc(n ? n : 1, sizeof *v->elements);
    if (type) {
        type->kind = kind;
        type->dtype = key;
        type->of = ortc_type_copy(&v->owned, of);
        v->type = type;
    }
    if (!type || !type->of || !v->elements) {
        ortc_value_release(v);
        return ortc_no_memory(error, n * sizeof *v->elements);
    }
    *out = v;
    return ORTC_OK;
}

static ortc_status wrong_element(const ortc_type *expected, const ortc_value *got, const char *what, size_t i,
                                 ortc_error *error)
{
    char a[128], b[128];
    ortc_text ta = ORTC_TEXT(a), tb = ORTC_TEXT(b);
    ortc_text_type(&ta, expected);
    ortc_text_type(&tb, got->type);
    return ortc_fail(error, ORTC_TYPE_MISMATCH, "element %zu of %s: expected %s, got %s", i, what, a, b);
}

ortc_status ortc_value_create_sequence(const ortc_type *element, size_t count, ortc_value *const *elements,
                                       ortc_value **out, ortc_error *error)
{
    ortc_value *v = NULL;

    *out = NULL;
    if (!element || (count > 0 && !elements))
        return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                         "a sequence needs its elements' type and its elements");
    if (count > PTRDIFF_MAX / sizeof(void *))
        return ortc_fail(error, ORTC_LIMIT, "a sequence of %zu elements", count);
    for (size_t i = 0; i < count; i++) {
        if (!elements[i])
            return ortc_fail(error, ORTC_INVALID_ARGUMENT, "element %zu of a sequence is NULL", i);
        if (!ortc_type_equal(element, elements[i]->type))
            return wrong_element(element, elements[i], "a sequence", i, error);
    }
    ORTC_TRY(create_container(ORTC_KIND_SEQUENCE, 0, element, count, &v, error));
    v->count = (int64_t)count;
    for (size_t i = 0; i < count; i++) v->elements[i] = ortc_value_retain(elements[i]);
    *out = v;
    return ORTC_OK;
}

/* The standard's key types: the integers and string. */
static bool is_key(ortc_dtype d)
{
    return (d >= ORTC_U8 && d <= ORTC_STRING) || d == ORTC_U32 || d == ORTC_U64;
}

ortc_status ortc_value_create_map(ortc_value *keys, ortc_value *values, ortc_value **out, ortc_error *error)
{
    const ortc_type *of;
    ortc_value *v = NULL;

    *out = NULL;
    if (!keys || !values) return ortc_fail(error, ORTC_INVALID_ARGUMENT, "a map needs keys and values");
    if (keys->type->kind != ORTC_KIND_TENSOR || keys->rank != 1 || !is_key(keys->type->dtype))
        return ortc_fail(
            error, ORTC_TYPE_MISMATCH,
            "keys of a map: expected a tensor of integers or strings of rank 1, got %s of rank %d",
            ortc_dtype_name(ortc_value_dtype(keys)), keys->rank);
    if (values->type->kind != ORTC_KIND_TENSOR && values->type->kind != ORTC_KIND_SEQUENCE)
        return ortc_fail(error, ORTC_TYPE_MISMATCH, "values of a map: expected a tensor or a sequence");
    if (values->count != keys->count)
        return ortc_fail(error, ORTC_SHAPE_MISMATCH, "a map of %lld keys got %lld values",
                         (long long)keys->count, (long long)values->count);
    of = values->type->kind == ORTC_KIND_TENSOR ? values->type : values->type->of;
    ORTC_TRY(create_container(ORTC_KIND_MAP, keys->type->dtype, of, 2, &v, error));
    v->count = keys->count;
    v->elements[0] = ortc_value_retain(keys);
    v->elements[1] = ortc_value_retain(values);
    *out = v;
    return ORTC_OK;
}

ortc_status ortc_value_create_optional(const ortc_type *element, ortc_value *element_or_null,
                                       ortc_value **out, ortc_error *error)
{
    ortc_value *v = NULL;

    *out = NULL;
    if (!element && element_or_null) element = element_or_null->type;
    if (!element)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "an empty optional needs its element's type");
    if (element_or_null && !ortc_type_equal(element, element_or_null->type))
        return wrong_element(element, element_or_null, "an optional", 0, error);
    ORTC_TRY(create_container(ORTC_KIND_OPTIONAL, 0, element, 1, &v, error));
    if (element_or_null) {
        v->count = 1;
        v->elements[0] = ortc_value_retain(element_or_null);
    }
    *out = v;
    return ORTC_OK;
}

/* ---- References ---------------------------------------------------------------------------------------- */

ortc_value *ortc_value_retain(ortc_value *v)
{
    if (v) atomic_fetch_add_explicit(&v->references, 1, memory_order_relaxed);
    return v;
}

void ortc_value_release(ortc_value *v)
{
    size_t n;

    if (!v || atomic_fetch_sub_explicit(&v->references, 1, memory_order_acq_rel) != 1) return;
    if (v->release) v->release(v->release_arg);
    if (v->elements) {
        n = !v->type ? 0 : v->type->kind == ORTC_KIND_MAP ? 2 : (size_t)v->count;
        for (size_t i = 0; i < n; i++) ortc_value_release(v->elements[i]);
        free(v->elements);
    }
    ortc_arena_deinit(&v->owned);
    free(v);
}

/* ---- Keeping ------------------------------------------------------------------------------------------- */

static bool owns_its_memory(const ortc_value *v)
{
    size_t n = !v->elements ? 0 : v->type->kind == ORTC_KIND_MAP ? 2 : (size_t)v->count;
    for (size_t i = 0; i < n; i++)
        if (!owns_its_memory(v->elements[i])) return false;
    return v->elements || v->release;
}

static ortc_status copy_tensor(const ortc_value *v, ortc_value **out, ortc_error *error)
{
    ortc_status status;
    void *block;

    if (v->type->dtype != ORTC_STRING) {
        ORTC_TRY(ortc_value_create(v->type->dtype, v->rank, v->dims, out, error));
        if (v->bytes) memcpy((*out)->data, v->data, v->bytes);
        return ORTC_OK;
    }
    if (!(block = malloc(v->bytes))) return ortc_no_memory(error, v->bytes);
    memcpy(block, v->data, v->bytes);
    if ((status = ortc_value_take_strings(block, v->rank, v->dims, out, error)) != ORTC_OK) free(block);
    return status;
}

/* The same container over kept elements. */
static ortc_status copy_container(const ortc_value *v, ortc_value **out, ortc_error *error)
{
    size_t n = v->type->kind == ORTC_KIND_MAP ? 2 : (size_t)v->count;
    ortc_value *copy = NULL;

    ORTC_TRY(create_container(v->type->kind, v->type->dtype, v->type->of, n, &copy, error));
    for (size_t i = 0; i < n; i++) {
        ortc_status status = ortc_value_keep(v->elements[i], &copy->elements[i], error);
        if (status != ORTC_OK) { /* count is 0 yet, and of a map both are released */
            for (size_t k = 0; k < i && v->type->kind != ORTC_KIND_MAP; k++)
                ortc_value_release(copy->elements[k]);
            ortc_value_release(copy);
            return status;
        }
    }
    copy->count = v->count;
    *out = copy;
    return ORTC_OK;
}

ortc_status ortc_value_keep(ortc_value *v, ortc_value **out, ortc_error *error)
{
    *out = NULL;
    if (v->pending)
        return ortc_fail(error, ORTC_INVALID_STATE, "a tensor of strings is used before it is whole");
    if (!owns_its_memory(v))
        return ortc_value_is_tensor(v) ? copy_tensor(v, out, error) : copy_container(v, out, error);
    *out = ortc_value_retain(v);
    return ORTC_OK;
}

/* ---- Reading ------------------------------------------------------------------------------------------- */

const ortc_type *ortc_value_type(const ortc_value *v) { return v->type; }

ortc_dtype ortc_value_dtype(const ortc_value *v) { return ortc_value_is_tensor(v) ? v->type->dtype : 0; }

int32_t ortc_value_rank(const ortc_value *v) { return ortc_value_is_tensor(v) ? v->rank : 0; }

const int64_t *ortc_value_dims(const ortc_value *v) { return ortc_value_is_tensor(v) ? v->dims : NULL; }

int64_t ortc_value_count(const ortc_value *v) { return v->count; }

size_t ortc_value_bytes(const ortc_value *v) { return ortc_value_is_tensor(v) ? v->bytes : 0; }

void *ortc_value_address(const ortc_value *v)
{
    return ortc_value_is_tensor(v) && v->type->dtype != ORTC_STRING ? v->data : NULL;
}

void *ortc_value_data(ortc_value *v)
{
    return ortc_value_is_tensor(v) && v->type->dtype != ORTC_STRING && v->device == 0 ? v->data : NULL;
}

const void *ortc_value_host(const ortc_value *v)
{
    return ortc_value_is_tensor(v) && v->type->dtype != ORTC_STRING && v->device == 0 ? v->data : NULL;
}

const char *ortc_value_string(const ortc_value *v, int64_t i, size_t *out_length)
{
    const char *s;
    int64_t length;

    if (out_length) *out_length = 0;
    if (!ortc_value_is_tensor(v) || v->type->dtype != ORTC_STRING || i < 0 || i >= v->count) return NULL;
    s = ortc_string_at(v->data, i, &length);
    if (out_length) *out_length = (size_t)length;
    return s;
}

ortc_value *ortc_value_element(const ortc_value *v, size_t i)
{
    size_t n = !v->elements ? 0 : v->type->kind == ORTC_KIND_MAP ? 2 : (size_t)v->count;
    return i < n ? v->elements[i] : NULL;
}
