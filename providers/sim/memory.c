/* providers/sim/memory.c: slabs whose pointers fault on the host (sim.h). */
#include "sim.h"

#include <sys/mman.h>
#include <unistd.h>

typedef struct slab {
    char *forbidden, *real;
    size_t bytes;
    struct slab *next;
} slab;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static slab *slabs, *spare; /* spare: of devices that are gone, to be slabs again: mapping takes longest */
static int spares;
enum { SPARES = 4 };

static size_t whole_pages(size_t bytes)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    return (bytes + page - 1) / page * page;
}

static int map_twice(slab *s)
{
    pthread_mutex_lock(&lock);
    slab **at = &spare;
    while (*at && (*at)->bytes != s->bytes) at = &(*at)->next;
    slab *again = *at;
    if (again) {
        *at = again->next;
        spares--;
    }
    pthread_mutex_unlock(&lock);
    if (again) {
        s->real = again->real, s->forbidden = again->forbidden;
        free(again);
        memset(s->real, 0xd5, s->bytes);
        return 1;
    }
    int file = memfd_create("sim", MFD_CLOEXEC);
    if (file < 0) return 0;
    void *real = MAP_FAILED, *forbidden = MAP_FAILED;
    if (ftruncate(file, (off_t)s->bytes) == 0) {
        real = mmap(NULL, s->bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
        forbidden = mmap(NULL, s->bytes, PROT_NONE, MAP_SHARED, file, 0);
    }
    close(file);
    if (real == MAP_FAILED || forbidden == MAP_FAILED) {
        if (real != MAP_FAILED) munmap(real, s->bytes);
        return 0;
    }
    s->real = (char *)real;
    s->forbidden = (char *)forbidden;
    memset(s->real, 0xd5, s->bytes); /* as good as anything else that was there before */
    return 1;
}

ortc_status sim_slab_alloc(ortc_device *device, uint32_t kind, size_t bytes, void **out)
{
    sim_device *d = (sim_device *)device;
    *out = NULL;
    if (kind == ORTC_MEMORY_PINNED) /* the host's, and not of what the device has */
        return (*out = malloc(bytes)) ? ORTC_OK : ORTC_OUT_OF_MEMORY;
    slab *s = (slab *)calloc(1, sizeof *s);
    if (!s) return ORTC_OUT_OF_MEMORY;
    s->bytes = whole_pages(bytes);
    pthread_mutex_lock(&lock);
    int fits = !d->memory || d->used + bytes <= d->memory;
    if (fits) d->used += bytes;
    pthread_mutex_unlock(&lock);
    if (!fits || !map_twice(s)) {
        pthread_mutex_lock(&lock);
        d->used -= fits ? bytes : 0;
        pthread_mutex_unlock(&lock);
        free(s);
        return ORTC_OUT_OF_MEMORY;
    }
    pthread_mutex_lock(&lock);
    s->next = slabs;
    slabs = s;
    pthread_mutex_unlock(&lock);
    *out = s->forbidden;
    return ORTC_OK;
}

void sim_slab_free(ortc_device *device, uint32_t kind, void *p, size_t bytes)
{
    sim_device *d = (sim_device *)device;
    if (kind == ORTC_MEMORY_PINNED) {
        free(p);
        return;
    }
    pthread_mutex_lock(&lock);
    slab **at = &slabs;
    while (*at && (*at)->forbidden != p) at = &(*at)->next;
    slab *s = *at;
    const int keep = s && spares < SPARES;
    if (s) {
        *at = s->next;
        d->used -= bytes;
    }
    if (keep) {
        s->next = spare;
        spare = s;
        spares++;
    }
    pthread_mutex_unlock(&lock);
    if (!s) abort(); /* freed twice, or never ours: the test must see it */
    if (keep) return;
    munmap(s->real, s->bytes);
    munmap(s->forbidden, s->bytes);
    free(s);
}

void *sim_real(const void *p)
{
    void *real = NULL;
    pthread_mutex_lock(&lock);
    for (const slab *s = slabs; s && !real; s = s->next)
        if ((const char *)p >= s->forbidden && (const char *)p < s->forbidden + s->bytes)
            real = s->real + ((const char *)p - s->forbidden);
    pthread_mutex_unlock(&lock);
    return real;
}
