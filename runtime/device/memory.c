/* runtime/device/memory.c: values in the memory of devices, for callers (the part "Memory of devices" of
 * ortc.h). */
#include "device.h"

uint32_t ortc_value_memory(const ortc_value *v) { return v->device; }

static ortc_status find(uint32_t memory, ortc_open_device **out, ortc_error *error)
{
    *out = NULL;
    if (memory && !(*out = ortc_device_of_memory(memory)))
        return ortc_fail(error, ORTC_NOT_FOUND,
                         "there is no memory %u: ortc_session_memory tells the numbers of open devices",
                         memory);
    return ORTC_OK;
}

ortc_status ortc_memory_device(uint32_t memory, const char **out_provider, uint32_t *out_ordinal,
                               ortc_error *error)
{
    ortc_open_device *d = ortc_device_of_memory(memory);
    *out_provider = d ? d->provider->name : NULL;
    *out_ordinal = d ? d->ordinal : 0;
    ortc_device_release(d);
    return d ? ORTC_OK : ortc_fail(error, ORTC_NOT_FOUND, "memory %u is no open device's", memory);
}

ortc_status ortc_value_create_in(uint32_t memory, ortc_dtype t, int32_t rank, const int64_t *dims,
                                 ortc_value **out, ortc_error *error)
{
    ortc_open_device *d;
    *out = NULL;
    ORTC_TRY(find(memory, &d, error));
    ortc_status s = ortc_value_create_on(d, t, rank, dims, out, error);
    ortc_device_release(d);
    return s;
}

/* What a caller's device pointer needs besides the caller's own release: the device stays open as long as the
 * value. */
typedef struct wrapped {
    ortc_open_device *device;
    void (*release)(void *arg);
    void *arg;
} wrapped;

static void release_wrapped(void *arg)
{
    wrapped *w = arg;
    if (w->release) w->release(w->arg);
    ortc_device_release(w->device);
    free(w);
}

ortc_status ortc_value_wrap_in(uint32_t memory, void *data, ortc_dtype t, int32_t rank, const int64_t *dims,
                               void (*release)(void *arg), void *arg, ortc_value **out, ortc_error *error)
{
    ortc_open_device *d;
    *out = NULL;
    ORTC_TRY(find(memory, &d, error));
    if (!d) return ortc_value_wrap(data, t, rank, dims, release, arg, out, error);
    wrapped *w = malloc(sizeof *w);
    ortc_status s = w ? ORTC_OK : ortc_no_memory(error, sizeof *w);
    if (w) {
        *w = (wrapped){d, release, arg};
        s = ortc_value_wrap(data, t, rank, dims, release_wrapped, w, out, error);
    }
    if (s != ORTC_OK) {
        free(w);
        ortc_device_release(d);
        return s;
    }
    (*out)->device = memory;
    return ORTC_OK;
}

ortc_status ortc_value_copy(const ortc_value *from, ortc_value *to, ortc_error *error)
{
    ortc_open_device *fd, *td;
    if (!from || !to || from->type->kind != ORTC_KIND_TENSOR || to->type->kind != ORTC_KIND_TENSOR ||
        from->type->dtype != to->type->dtype || from->type->dtype == ORTC_STRING || from->count != to->count)
        return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                         "ortc_value_copy: expected two tensors of the same element type and count, "
                         "not of strings");
    ORTC_TRY(find(from->device, &fd, error));
    ortc_status s = find(to->device, &td, error);
    if (s == ORTC_OK) s = ortc_device_transfer(td, to->data, fd, from->data, from->bytes, error);
    ortc_device_release(td);
    ortc_device_release(fd);
    return s;
}

ortc_status ortc_memory_statistics(uint32_t memory, ortc_memory_stats *out, ortc_error *error)
{
    ortc_open_device *d;
    if (!memory) return ortc_fail(error, ORTC_NOT_FOUND, "memory 0 is the host's, which has no pool");
    ORTC_TRY(find(memory, &d, error));
    ortc_mempool_statistics(d->pool, out);
    ortc_device_release(d);
    return ORTC_OK;
}

uint64_t ortc_memory_trim(uint32_t memory)
{
    if (!memory) return ortc_heap_trim();
    ortc_open_device *d = ortc_device_of_memory(memory);
    uint64_t freed = d ? ortc_mempool_trim(d->pool) : 0;
    ortc_device_release(d);
    return freed;
}
