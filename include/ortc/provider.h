/* ortc/provider.h: execution providers, for those who bring a device.
 *
 * A provider owns devices: slabs of memory, copies, queues and events, optionally capture and replay,
 * optionally the claim and compilation of whole groups of nodes. libortc does the rest: pools, arenas,
 * placement, planning, waits. A provider is one const struct; kernels for it come in families (op.h) that
 * name it, its own or other people's.
 *
 * A provider whose memory is the host's and whose work is done on the calling threads (like `ref` and `cpu`)
 * fills name and devices and leaves every other function NULL.
 *
 * Threads: devices, open and close are called one at a time; everything else on any thread, one thread at a
 * time per queue. Errors: a status; the text, where there is one, goes to the ortc_why that is passed along.
 */
#ifndef ORTC_PROVIDER_H
#define ORTC_PROVIDER_H

#include "op.h"

#ifdef __cplusplus
extern "C" {
#endif

/* kinds of memory a device has */
enum {
    ORTC_MEMORY_HOST = 0,   /* ordinary host memory */
    ORTC_MEMORY_PINNED = 1, /* host memory that the device copies from and to quickly */
    ORTC_MEMORY_DEVICE = 2  /* the device's own; not readable by the host */
};
typedef struct ortc_memory {
    uint32_t device; /* libortc's number for the open device; 0 is the host */
    uint32_t kind;   /* ORTC_MEMORY_* */
} ortc_memory;

enum {
    /* queues run behind the caller's back; copies and kernels return at once */
    ORTC_PROVIDER_ASYNC = 1,
    ORTC_PROVIDER_CAPTURE = 2 /* the four capture functions are there */
};

typedef struct ortc_device_info {
    uint32_t size;
    uint32_t memory_kind;  /* where its kernels' tensors live: ORTC_MEMORY_* */
    char name[120];        /* "AMD EPYC, avx512, 2 threads" */
    uint64_t memory_bytes; /* 0: not known */
    uint64_t memory_free;  /* 0: not known */
    char notes[256];       /* driver, architecture, what is missing and how to mend it; "" */
} ortc_device_info;

/* Options of `open`: key=value pairs as the user gave them: "name:key=value,key=value". */
typedef struct ortc_options {
    uint32_t size, count;
    const char *const *keys, *const *values;
} ortc_options;

/* Blobs by key, for compilers' results. Inert (get finds nothing, put drops) unless the user named a
 * folder. */
typedef struct ortc_cache {
    uint32_t size;
    /* free() it */
    ortc_status (*get)(const struct ortc_cache *, const char *key, void **out_data, size_t *out_bytes);
    void (*put)(const struct ortc_cache *, const char *key, const void *data, size_t bytes);
} ortc_cache;

/* A group of nodes that a provider takes as one. */
typedef struct ortc_claim {
    uint32_t size, n, flags;
    const ortc_node *const *nodes;
} ortc_claim;

typedef struct ortc_provider {
    uint32_t size;
    int32_t abi;      /* ORTC_ABI */
    const char *name; /* "cpu"; what users write: without ":", ",", "=" and blanks */
    uint32_t flags;   /* ORTC_PROVIDER_* */
    uint32_t reserved;
    /* Fills up to *inout_n infos and sets the number of devices there are. ORTC_NOT_FOUND or
     * ORTC_DEVICE_ERROR with a reason when it cannot work on this machine: the other providers work on. */
    ortc_status (*devices)(const ortc_host *, ortc_device_info *, uint32_t *inout_n, ortc_why *);
    ortc_status (*open)(const ortc_host *, uint32_t ordinal, const ortc_options *, ortc_device **,
                        ortc_why *);
    void (*close)(ortc_device *);
    /* Memory: slabs only, aligned to at least 256 bytes. NULL: host memory. */
    ortc_status (*slab_alloc)(ortc_device *, uint32_t kind, size_t bytes, void **);
    void (*slab_free)(ortc_device *, uint32_t kind, void *, size_t bytes);
    ortc_status (*copy)(void *queue, ortc_memory dst, void *to, ortc_memory src, const void *from,
                        size_t bytes);
    /* Queues and events. `native` wraps the caller's stream, NULL makes one. */
    ortc_status (*queue_create)(ortc_device *, void *native, void **queue);
    void (*queue_destroy)(ortc_device *, void *queue, int32_t native); /* native: the caller's stream stays */
    ortc_status (*signal)(void *queue, void **event); /* a reusable event, made on first use */
    /* NULL queue: the host waits; what failed in the queue before comes out here */
    ortc_status (*wait)(void *queue, void *event);
    /* whether the host would not wait; NULL: cannot tell */
    int32_t (*query)(void *event);
    void (*event_destroy)(ortc_device *, void *event);
    /* Capture and replay: all four or none. Capturing never executes. */
    ortc_status (*capture_begin)(void *queue);
    ortc_status (*capture_end)(void *queue, void **exec);
    ortc_status (*replay)(void *queue, void *exec);
    void (*capture_free)(ortc_device *, void *exec);
    /* Placement and compilation: optional. `compile` turns a claimed group's body into an ordinary kernel. */
    ortc_status (*claim)(ortc_device *, const ortc_graph *,
                         ortc_status (*take)(void *arg, const ortc_claim *), void *arg);
    ortc_status (*compile)(ortc_device *, const ortc_graph *body, const ortc_cache *, const ortc_kernel **out,
                           ortc_why *);
} ortc_provider;

#ifdef __cplusplus
}
#endif
#endif
