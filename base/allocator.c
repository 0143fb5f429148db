/* base/allocator.c: memory and values from a caller's allocator. */
#include "value.h"

void *ortc_alloc_with(const ortc_allocator *a, size_t bytes)
{
    return a ? a->alloc(a->arg, bytes ? bytes : 1, ORTC_ALIGNMENT) : ortc_alloc_aligned(bytes);
}

void ortc_free_with(const ortc_allocator *a, void *data, size_t bytes)
{
    if (!a)
        ortc_free_aligned(data, bytes);
    else if (data)
        a->free(a->arg, data, bytes ? bytes : 1);
}

/* What a value needs to give its memory back; the session may be gone by then. */
typedef struct held {
    ortc_allocator allocator;
    void *data;
    size_t bytes;
} held;

static void free_held(void *arg)
{
    held *h = arg;
    ortc_free_with(&h->allocator, h->data, h->bytes);
    free(h);
}

ortc_status ortc_value_create_with(const ortc_allocator *a, ortc_dtype t, int32_t rank, const int64_t *dims,
                                   ortc_value **out, ortc_error *error)
{
    int64_t count;
    size_t bytes;
    *out = NULL;
    if (!a || !ortc_count_elements(rank, dims, &count) || !ortc_tensor_bytes(t, count, &bytes))
        return ortc_value_create(t, rank, dims, out, error); /* which says what is wrong */
    held *h = malloc(sizeof *h);
    if (!h) return ortc_no_memory(error, sizeof *h);
    *h = (held){*a, ortc_alloc_with(a, bytes), bytes};
    if (!h->data) {
        free(h);
        return ortc_no_memory(error, bytes);
    }
    ortc_status s = ortc_value_wrap(h->data, t, rank, dims, free_held, h, out, error);
    if (s != ORTC_OK) free_held(h);
    return s;
}
