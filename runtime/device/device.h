/* runtime/device/device.h: open devices, their memory, and values that lie in it.
 *
 * A device is opened once per spelling ("cuda:1:key=value") and shared by all sessions that name it, so that
 * a result of one session is an input of another without a copy; it is closed with its last user. Devices
 * whose tensors do not lie in host memory have a number, which callers see as "memory"; 0 is the host. What
 * touches memory outside of runs (constants, values read back) goes through one transfer queue per device, in
 * turn.
 */
#ifndef ORTC_DEVICE_H
#define ORTC_DEVICE_H

#include <pthread.h>

#include "ortc/provider.h"
#include "base/mempool.h"
#include "base/value.h"

typedef struct ortc_open_device {
    atomic_int references;
    const ortc_provider *provider;
    ortc_device *device; /* the provider's own; NULL: it has no `open` */
    ortc_memory memory;  /* where its kernels' tensors lie; device 0: in host memory */
    char *spelling;
    uint32_t ordinal;   /* among the provider's devices */
    ortc_mempool *pool; /* of its memory; NULL: the host's */
    void *transfer;     /* queue; NULL: not made yet */
    /* two halves of pinned memory, through which large things go up; NULL: not made yet, or there is none */
    char *staging;
    pthread_mutex_t lock; /* of the transfer queue and the staging memory */
    struct ortc_open_device *next;
} ortc_open_device;

/* spelling: provider[:ordinal][:key=value]... Errors: NOT_FOUND (the text lists what there is), what `open`
 * says. */
ortc_status ortc_device_open(const char *spelling, ortc_open_device **out, ortc_error *);
/* Whether it is meant by a name: its spelling, its provider's name, or that and its ordinal ("cuda:1"). */
bool ortc_device_is(const ortc_open_device *, const char *name);
ortc_open_device *ortc_device_retain(ortc_open_device *);
void ortc_device_release(ortc_open_device *);
/* The device whose memory has this number, retained; NULL: none is open. */
ortc_open_device *ortc_device_of_memory(uint32_t number);

/* Memory of the device, ORTC_ALIGNMENT-aligned; kind ORTC_MEMORY_*. NULL: there is none. */
void *ortc_device_alloc(ortc_open_device *, size_t bytes);
void ortc_device_free(ortc_open_device *, void *, size_t bytes);

/* Copies now: when it returns, the bytes are there. NULL: host memory. */
ortc_status ortc_device_transfer(ortc_open_device *to_device, void *to, ortc_open_device *from_device,
                                 const void *from, size_t bytes, ortc_error *);

/* As ortc_value_create, in the memory of a device (NULL: host). The value retains the device. */
ortc_status ortc_value_create_on(ortc_open_device *, ortc_dtype, int32_t rank, const int64_t *dims,
                                 ortc_value **out, ortc_error *);
/* The value itself, retained, or a copy of it in host memory. */
ortc_status ortc_value_on_host(ortc_value *, ortc_value **out, ortc_error *);

#endif
