/* base/strings.c: tensors of strings: one immutable block (ortc_strings in op.h), made at once or string by
 * string.
 *
 * While strings are pending the block has room for all offsets and some bytes more than it holds; it grows by
 * doubling.
 */
#include "value.h"

static const char too_large[] = "the strings are larger than the address space";

/* Bytes of a block of `count` strings without their text. */
static bool head_bytes(int64_t count, size_t *out)
{
    return ortc_mul_size((size_t)count + 1, sizeof(int64_t), out) &&
           ortc_add_size(*out, offsetof(ortc_strings, offsets), out);
}

static size_t block_bytes(const ortc_strings *s)
{
    return offsetof(ortc_strings, offsets) + ((size_t)s->count + 1) * sizeof(int64_t) +
           (size_t)s->offsets[s->count];
}

static void free_block(void *arg)
{
    ortc_value *v = arg;
    free(v->data);
}

/* A handle over a block; nobody's yet. */
static ortc_status over(const ortc_strings *strings, int32_t rank, const int64_t *dims, ortc_value **out,
                        ortc_error *error)
{
    ortc_value *v;
    int64_t count;

    *out = NULL;
    ORTC_TRY(ortc_value_check_shape(rank, dims, &count, error));
    if (count != strings->count)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "a tensor of %lld strings got %lld", (long long)count,
                         (long long)strings->count);
    if (!(v = ortc_value_new(rank, dims))) return ortc_no_memory(error, sizeof *v);
    v->type = ortc_tensor_type(ORTC_STRING);
    v->count = count;
    v->data = (void *)(uintptr_t)strings;
    *out = v;
    return ORTC_OK;
}

ortc_status ortc_value_wrap_strings(const ortc_strings *strings, int32_t rank, const int64_t *dims,
                                    ortc_value **out, ortc_error *error)
{
    ORTC_TRY(over(strings, rank, dims, out, error));
    (*out)->bytes = block_bytes(strings);
    return ORTC_OK;
}

ortc_status ortc_value_take_strings(ortc_strings *strings, int32_t rank, const int64_t *dims,
                                    ortc_value **out, ortc_error *error)
{
    ORTC_TRY(ortc_value_wrap_strings(strings, rank, dims, out, error));
    (*out)->release = free_block;
    (*out)->release_arg = *out;
    return ORTC_OK;
}

ortc_status ortc_strings_begin(int32_t rank, const int64_t *dims, ortc_value **out, ortc_error *error)
{
    ortc_strings *block;
    ortc_status status;
    int64_t count;
    size_t bytes;

    *out = NULL;
    ORTC_TRY(ortc_value_check_shape(rank, dims, &count, error));
    if (!head_bytes(count, &bytes) || bytes > PTRDIFF_MAX)
        return ortc_fail(error, ORTC_LIMIT, "%s", too_large);
    if (!(block = malloc(bytes))) return ortc_no_memory(error, bytes);
    block->count = count;
    block->offsets[0] = 0;
    if ((status = over(block, rank, dims, out, error)) != ORTC_OK) {
        free(block);
        return status;
    }
    (*out)->release = free_block;
    (*out)->release_arg = *out;
    (*out)->pending = count;
    (*out)->bytes = (*out)->room = bytes;
    return ORTC_OK;
}

ortc_status ortc_strings_append(ortc_value *v, const char *text, size_t n, ortc_error *error)
{
    ortc_strings *block = v->data;
    size_t bytes, room;
    int64_t at;

    if (!ortc_value_is_tensor(v) || v->type->dtype != ORTC_STRING || v->pending == 0)
        return ortc_fail(error, ORTC_INVALID_STATE, "a string too many is appended to a tensor");
    if (!ortc_add_size(v->bytes, n, &bytes) || bytes > PTRDIFF_MAX / 2)
        return ortc_fail(error, ORTC_LIMIT, "%s", too_large);
    if (bytes > v->room) {
        room = bytes + bytes / 2;
        if (!(block = realloc(block, room))) return ortc_no_memory(error, room);
        v->data = block;
        v->room = room;
    }
    at = block->count - v->pending;
    if (n) memcpy((char *)(block->offsets + block->count + 1) + block->offsets[at], text, n);
    block->offsets[at + 1] = block->offsets[at] + (int64_t)n;
    v->bytes = bytes;
    v->pending--;
    return ORTC_OK;
}

ortc_status ortc_value_create_strings(int32_t rank, const int64_t *dims, const char *const *strings,
                                      const size_t *lengths, ortc_value **out, ortc_error *error)
{
    ortc_status status = ORTC_OK;
    ortc_value *v;
    int64_t count;

    *out = NULL;
    ORTC_TRY(ortc_value_check_shape(rank, dims, &count, error));
    if (count > 0 && !strings)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT, "strings is NULL: expected %lld of them",
                         (long long)count);
    ORTC_TRY(ortc_strings_begin(rank, dims, &v, error));
    for (int64_t i = 0; i < count && status == ORTC_OK; i++)
        if (!strings[i] && !(lengths && lengths[i] == 0))
            status = ortc_fail(error, ORTC_INVALID_ARGUMENT, "string %lld is NULL", (long long)i);
        else
            status = ortc_strings_append(v, strings[i], lengths ? lengths[i] : strlen(strings[i]), error);
    if (status != ORTC_OK) {
        ortc_value_release(v);
        return status;
    }
    *out = v;
    return ORTC_OK;
}
