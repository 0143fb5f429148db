/* runtime/device/device.c: open devices (device.h). One list, one lock; opening and closing are rare. */
#include "device.h"

#include "runtime/registry/registry.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ortc_open_device *devices;
static uint32_t next_number = 1;

#define MAX_OPTIONS 16
#define STAGING_BYTES ((size_t)8 << 20) /* of each half */

/* "cuda:1:key=value" cut at its colons. */
typedef struct spelling {
    char text[512];
    const char *provider;
    uint32_t ordinal, n;
    const char *keys[MAX_OPTIONS], *values[MAX_OPTIONS];
} spelling;

static ortc_status parse(const char *from, spelling *s, ortc_error *error)
{
    if (strlen(from) >= sizeof s->text)
        return ortc_fail(error, ORTC_NOT_FOUND, "there is no provider '%.80s...'", from);
    strcpy(s->text, from);
    s->provider = s->text;
    s->ordinal = s->n = 0;
    for (char *at = strchr(s->text, ':'); at;) {
        *at++ = 0;
        char *end = strchr(at, ':'), *equals = strchr(at, '=');
        if (equals && (!end || equals < end)) {
            if (s->n == MAX_OPTIONS)
                return ortc_fail(error, ORTC_LIMIT, "provider '%s': more than %d options", s->provider,
                                 MAX_OPTIONS);
            *equals = 0;
            s->keys[s->n] = at;
            s->values[s->n++] = equals + 1;
        } else {
            char *rest;
            unsigned long ordinal = strtoul(at, &rest, 10);
            if (rest == at || (*rest && *rest != ':') || ordinal > 1024)
                return ortc_fail(error, ORTC_INVALID_ARGUMENT,
                                 "'%s': expected provider[:ordinal][:key=value]...", from);
            s->ordinal = (uint32_t)ordinal;
        }
        at = end;
    }
    return ORTC_OK;
}

static ortc_status no_provider(const char *name, ortc_error *error)
{
    char listed[256];
    ortc_text list = ORTC_TEXT(listed);
    const ortc_provider *p;
    listed[0] = 0;
    for (size_t i = 0; (p = ortc_provider_at(i)); i++) ortc_text_add(&list, "%s%s", i ? ", " : "", p->name);
    return ortc_fail(error, ORTC_NOT_FOUND, "there is no provider '%s'; there are %s", name, listed);
}

enum { SMALL = 1 << 20, SLAB = 2 << 20 }; /* bytes of a device's pool (mempool.h) */

static void *take_slab(void *arg, size_t bytes)
{
    ortc_open_device *d = arg;
    void *p = NULL;
    return d->provider->slab_alloc(d->device, d->memory.kind, bytes, &p) == ORTC_OK ? p : NULL;
}
static void give_slab(void *arg, void *p, size_t bytes)
{
    ortc_open_device *d = arg;
    d->provider->slab_free(d->device, d->memory.kind, p, bytes);
}

static void close_device(ortc_open_device *d)
{
    if (d->transfer) d->provider->queue_destroy(d->device, d->transfer, 0);
    if (d->staging) d->provider->slab_free(d->device, ORTC_MEMORY_PINNED, d->staging, 2 * STAGING_BYTES);
    ortc_mempool_destroy(d->pool);
    if (d->provider->close && d->device) d->provider->close(d->device);
    pthread_mutex_destroy(&d->lock);
    free(d->spelling);
    free(d);
}

static ortc_status open_new(const char *from, ortc_open_device **out, ortc_error *error)
{
    spelling s;
    char why_text[512];
    ortc_text text = ORTC_TEXT(why_text);
    ortc_why why;
    ortc_device_info infos[16];
    uint32_t n = ORTC_LENGTH(infos);
    ORTC_TRY(parse(from, &s, error));
    ortc_error module = ORTC_ERROR_INIT;
    const ortc_provider *p = ortc_provider_load(s.provider, &module);
    if (!p)
        return module.code ? ortc_fail(error, module.code, "provider '%s': %s", s.provider, module.text)
                           : no_provider(s.provider, error);
    why_text[0] = 0;
    ortc_why_init(&why, &text);
    memset(infos, 0, sizeof infos);
    for (size_t i = 0; i < ORTC_LENGTH(infos); i++) infos[i].size = sizeof infos[i];
    ortc_status status = p->devices(ortc_host_get(), infos, &n, &why);
    if (status == ORTC_OK && s.ordinal >= n)
        status = (ortc_no(&why, "it has %u device%s, there is no number %u", n, n == 1 ? "" : "s", s.ordinal),
                  ORTC_NOT_FOUND);
    if (status == ORTC_OK && s.n && !p->open)
        status = (ortc_no(&why, "it has no options"), ORTC_INVALID_ARGUMENT);
    ortc_why_end(why_text);
    if (status != ORTC_OK)
        return ortc_fail(error, status, "provider '%s' cannot be opened: %s", s.provider, why_text);
    ortc_open_device *d = calloc(1, sizeof *d);
    if (!d || !(d->spelling = strdup(from))) {
        free(d);
        return ortc_no_memory(error, sizeof *d);
    }
    atomic_init(&d->references, 1);
    d->provider = p;
    d->ordinal = s.ordinal;
    pthread_mutex_init(&d->lock, NULL);
    ortc_options options = {sizeof options, s.n, s.keys, s.values};
    if (p->open && (status = p->open(ortc_host_get(), s.ordinal, &options, &d->device, &why)) != ORTC_OK) {
        pthread_mutex_destroy(&d->lock);
        free(d->spelling);
        free(d);
        ortc_why_end(why_text);
        return ortc_fail(error, status, "provider '%s' cannot be opened: %s", s.provider, why_text);
    }
    uint32_t kind = s.ordinal < ORTC_LENGTH(infos) ? infos[s.ordinal].memory_kind : infos[0].memory_kind;
    if (p->slab_alloc && kind != ORTC_MEMORY_HOST) {
        d->memory = (ortc_memory){next_number++, kind};
        d->pool = ortc_mempool_create(&(ortc_mempool_source){d, take_slab, give_slab, SMALL, SLAB});
        if (!d->pool) {
            close_device(d);
            return ortc_no_memory(error, sizeof *d);
        }
    }
    *out = d;
    return ORTC_OK;
}

ortc_status ortc_device_open(const char *from, ortc_open_device **out, ortc_error *error)
{
    ortc_status s = ORTC_OK;
    *out = NULL;
    pthread_mutex_lock(&lock);
    for (ortc_open_device *d = devices; d && !*out; d = d->next)
        if (!strcmp(d->spelling, from)) *out = ortc_device_retain(d);
    if (!*out && (s = open_new(from, out, error)) == ORTC_OK) {
        (*out)->next = devices;
        devices = *out;
    }
    pthread_mutex_unlock(&lock);
    return s;
}

bool ortc_device_is(const ortc_open_device *d, const char *name)
{
    spelling s;
    if (!strcmp(d->spelling, name) || !strcmp(d->provider->name, name)) return true;
    return parse(name, &s, NULL) == ORTC_OK && !s.n && !strcmp(d->provider->name, s.provider) &&
           d->ordinal == s.ordinal;
}

ortc_open_device *ortc_device_retain(ortc_open_device *d)
{
    if (d) atomic_fetch_add_explicit(&d->references, 1, memory_order_relaxed);
    return d;
}

void ortc_device_release(ortc_open_device *d)
{
    if (!d) return;
    pthread_mutex_lock(&lock); /* looking for a device and closing it exclude each other */
    if (atomic_fetch_sub_explicit(&d->references, 1, memory_order_acq_rel) != 1) {
        pthread_mutex_unlock(&lock);
        return;
    }
    ortc_open_device **at = &devices;
    while (*at != d) at = &(*at)->next;
    *at = d->next;
    pthread_mutex_unlock(&lock);
    close_device(d);
}

ortc_open_device *ortc_device_of_memory(uint32_t number)
{
    ortc_open_device *found = NULL;
    pthread_mutex_lock(&lock);
    for (ortc_open_device *d = devices; d && number && !found; d = d->next)
        if (d->memory.device == number) found = ortc_device_retain(d);
    pthread_mutex_unlock(&lock);
    return found;
}

/* ---- Memory -------------------------------------------------------------------------------------------- */

void *ortc_device_alloc(ortc_open_device *d, size_t bytes)
{
    return d && d->pool ? ortc_mempool_take(d->pool, bytes) : ortc_alloc_aligned(bytes);
}

void ortc_device_free(ortc_open_device *d, void *p, size_t bytes)
{
    if (d && d->pool)
        ortc_mempool_give(d->pool, p);
    else
        ortc_free_aligned(p, bytes);
}

/* Up in pieces, through pinned memory: while one half is on its way the other is filled, and of a mapped file
 * no more than a piece at a time need be resident. Under the device's lock. */
static ortc_status go_up(ortc_open_device *d, char *to, const char *from, size_t bytes)
{
    const ortc_provider *p = d->provider;
    const ortc_memory pinned = {0, ORTC_MEMORY_PINNED};
    void *events[2] = {NULL, NULL};
    ortc_status s = ORTC_OK;
    for (size_t at = 0, n, half = 0; at < bytes && s == ORTC_OK; at += n, half = !half) {
        char *piece = d->staging + half * STAGING_BYTES;
        n = bytes - at < STAGING_BYTES ? bytes - at : STAGING_BYTES;
        if (events[half]) s = p->wait(NULL, events[half]);
        if (s != ORTC_OK) break;
        memcpy(piece, from + at, n);
        s = p->copy(d->transfer, d->memory, to + at, pinned, piece, n);
        if (s == ORTC_OK) s = p->signal(d->transfer, &events[half]);
    }
    for (int half = 0; half < 2; half++) {
        ortc_status ended = events[half] ? p->wait(NULL, events[half]) : ORTC_OK;
        s = s == ORTC_OK ? ended : s;
        if (events[half] && p->event_destroy) p->event_destroy(d->device, events[half]);
    }
    return s;
}

/* One hop, by the device's queue; the other side is host memory. */
static ortc_status hop(ortc_open_device *d, ortc_memory to_memory, void *to, ortc_memory from_memory,
                       const void *from, size_t bytes, ortc_error *error)
{
    const ortc_provider *p = d->provider;
    void *event = NULL;
    pthread_mutex_lock(&d->lock);
    ortc_status s = d->transfer ? ORTC_OK : p->queue_create(d->device, NULL, &d->transfer);
    bool large = to_memory.device && !from_memory.device && bytes > STAGING_BYTES / 4;
    if (s == ORTC_OK && large && !d->staging &&
        p->slab_alloc(d->device, ORTC_MEMORY_PINNED, 2 * STAGING_BYTES, (void **)&d->staging) != ORTC_OK)
        d->staging = NULL; /* it goes as it is */
    if (s == ORTC_OK && large && d->staging)
        s = go_up(d, to, from, bytes);
    else if (s == ORTC_OK) {
        s = p->copy(d->transfer, to_memory, to, from_memory, from, bytes);
        if (s == ORTC_OK && (s = p->signal(d->transfer, &event)) == ORTC_OK) s = p->wait(NULL, event);
    }
    if (event && p->event_destroy) p->event_destroy(d->device, event);
    pthread_mutex_unlock(&d->lock);
    return s == ORTC_OK ? s
                        : ortc_fail(error, s, "device '%s': copying %zu bytes failed (%s)", d->spelling,
                                    bytes, ortc_status_name(s));
}

ortc_status ortc_device_transfer(ortc_open_device *td, void *to, ortc_open_device *fd, const void *from,
                                 size_t bytes, ortc_error *error)
{
    const ortc_memory host = {0, ORTC_MEMORY_HOST};
    bool to_host = !td || !td->memory.device, from_host = !fd || !fd->memory.device;
    if (!bytes) return ORTC_OK;
    if (to_host && from_host) {
        memcpy(to, from, bytes);
        return ORTC_OK;
    }
    if (td == fd || to_host) return hop(fd, to_host ? host : td->memory, to, fd->memory, from, bytes, error);
    if (from_host) return hop(td, td->memory, to, host, from, bytes, error);
    void *staging = ortc_alloc_aligned(bytes);
    if (!staging) return ortc_no_memory(error, bytes);
    ortc_status s = hop(fd, host, staging, fd->memory, from, bytes, error);
    if (s == ORTC_OK) s = hop(td, td->memory, to, host, staging, bytes, error);
    ortc_free_aligned(staging, bytes);
    return s;
}

/* ---- Values -------------------------------------------------------------------------------------------- */

typedef struct held {
    ortc_open_device *device;
    void *data;
    size_t bytes;
} held;

static void free_held(void *arg)
{
    held *h = arg;
    ortc_device_free(h->device, h->data, h->bytes);
    ortc_device_release(h->device);
    free(h);
}

ortc_status ortc_value_create_on(ortc_open_device *d, ortc_dtype t, int32_t rank, const int64_t *dims,
                                 ortc_value **out, ortc_error *error)
{
    int64_t count;
    size_t bytes;
    if (!d || !d->memory.device) return ortc_value_create(t, rank, dims, out, error);
    *out = NULL;
    if (!ortc_count_elements(rank, dims, &count) || !ortc_tensor_bytes(t, count, &bytes))
        return ortc_fail(error, ORTC_LIMIT, "a tensor is larger than the address space");
    held *h = calloc(1, sizeof *h);
    if (!h) return ortc_no_memory(error, sizeof *h);
    *h = (held){d, ortc_device_alloc(d, bytes), bytes};
    if (!h->data) {
        free(h);
        return ortc_fail(error, ORTC_OUT_OF_MEMORY, "device '%s' has no %zu bytes of memory left",
                         d->spelling, bytes);
    }
    ortc_device_retain(d);
    ortc_status s = ortc_value_wrap(h->data, t, rank, dims, free_held, h, out, error);
    if (s != ORTC_OK) {
        free_held(h);
        return s;
    }
    (*out)->device = d->memory.device;
    return ORTC_OK;
}

ortc_status ortc_value_on_host(ortc_value *v, ortc_value **out, ortc_error *error)
{
    *out = NULL;
    if (!v->device) {
        *out = ortc_value_retain(v);
        return ORTC_OK;
    }
    ortc_open_device *d = ortc_device_of_memory(v->device);
    if (!d)
        return ortc_fail(error, ORTC_INVALID_STATE, "the device of a value's memory (%u) is not open",
                         v->device);
    ortc_status s = ortc_value_create(v->type->dtype, v->rank, v->dims, out, error);
    if (s == ORTC_OK &&
        (s = ortc_device_transfer(NULL, (*out)->data, d, v->data, v->bytes, error)) != ORTC_OK) {
        ortc_value_release(*out);
        *out = NULL;
    }
    ortc_device_release(d);
    return s;
}
