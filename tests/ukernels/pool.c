/* The spinning pool of pool.h: one epoch word that the caller raises; a thread that has seen it works through
 * its own share of the chunks, a contiguous one, then takes what is left of the others', and counts itself
 * out. Shares keep what a thread wrote in its own caches from one loop to the next, and counters apart: cores
 * may be half a microsecond from each other (measured on a virtual machine whose two cores had no cache in
 * common). */
#include "pool.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

struct share {
    _Alignas(128) _Atomic int64_t next; /* chunks */
    int64_t end;
};

struct pool {
    int threads;
    size_t scratch;
    char *memory;
    pthread_t *ids;
    struct member *members;
    _Atomic uint64_t epoch;
    struct share *shares;
    _Atomic int busy;
    _Atomic int stop;
    int64_t n, grain;
    ortc_product_body *body;
    void (*each)(void *, int);
    void *arg;
};
struct member {
    pool *p;
    int index;
};

void *pool_memory(size_t bytes)
{
    const size_t huge = (size_t)2 << 20, align = bytes >= huge / 2 ? huge : 64;
    const size_t size = (bytes + align - 1) / align * align;
    void *m = aligned_alloc(align, size ? size : align);
    if (!m) abort();
    if (align == huge) madvise(m, size, MADV_HUGEPAGE);
    memset(m, 0, size ? size : align);
    return m;
}

/* Spins, but lets others run now and then, and sleeps after a millisecond or more: tests use more threads
 * than there are cores, and compute by themselves in between. */
static void pause_cpu(unsigned *spins)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
    if (++*spins % 256 == 0) sched_yield();
    if (*spins > 32768) nanosleep(&(struct timespec){0, 100000}, NULL);
}

static void work(pool *p, int index)
{
    if (p->each) {
        p->each(p->arg, index);
        return;
    }
    for (int i = 0; i < p->threads; i++) {
        struct share *s = &p->shares[(index + i) % p->threads];
        int64_t chunk;
        if (i > 0 && atomic_load(&s->next) >= s->end) continue;
        while ((chunk = atomic_fetch_add(&s->next, 1)) < s->end) {
            const int64_t begin = chunk * p->grain;
            p->body(p->arg, begin, begin + p->grain < p->n ? begin + p->grain : p->n,
                    p->memory + p->scratch * (size_t)index);
        }
    }
}

static void *thread_main(void *arg)
{
    struct member *m = arg;
    pool *p = m->p;
    uint64_t seen = 0;
    for (;;) {
        unsigned spins = 0;
        while (atomic_load(&p->epoch) == seen) {
            if (atomic_load(&p->stop)) return NULL;
            pause_cpu(&spins);
        }
        seen++;
        work(p, m->index);
        atomic_fetch_sub(&p->busy, 1);
    }
}

static void go(pool *p)
{
    atomic_store(&p->busy, p->threads - 1);
    atomic_fetch_add(&p->epoch, 1);
    unsigned spins = 0;
    work(p, 0);
    while (atomic_load(&p->busy)) pause_cpu(&spins);
}

static int32_t parallel(void *context, int64_t n, int64_t grain, ortc_product_body *body, void *arg)
{
    pool *p = context;
    if (n <= 0) return 0;
    p->n = n, p->grain = grain, p->body = body, p->arg = arg, p->each = NULL;
    const int64_t chunks = (n - 1) / grain + 1;
    for (int i = 0; i < p->threads; i++) {
        atomic_store(&p->shares[i].next, chunks * i / p->threads);
        p->shares[i].end = chunks * (i + 1) / p->threads;
    }
    if (chunks == 1 || p->threads == 1)
        work(p, 0);
    else
        go(p);
    return 0;
}

void pool_each(pool *p, void (*fn)(void *, int), void *arg)
{
    p->each = fn, p->arg = arg;
    go(p);
}

pool *pool_open(int threads, size_t scratch)
{
    pool *p = calloc(1, sizeof *p);
    p->threads = threads;
    p->scratch = (scratch + 63) / 64 * 64;
    p->memory = pool_memory(p->scratch * (size_t)threads);
    p->shares = aligned_alloc(128, (size_t)threads * sizeof *p->shares);
    p->ids = calloc((size_t)threads, sizeof *p->ids);
    p->members = calloc((size_t)threads, sizeof *p->members);
    for (int i = 1; i < threads; i++) {
        p->members[i] = (struct member){p, i};
        if (pthread_create(&p->ids[i], NULL, thread_main, &p->members[i])) abort();
    }
    return p;
}

void pool_close(pool *p)
{
    atomic_store(&p->stop, 1);
    for (int i = 1; i < p->threads; i++) pthread_join(p->ids[i], NULL);
    free(p->memory);
    free(p->shares);
    free(p->ids);
    free(p->members);
    free(p);
}

ortc_product_threads pool_threads(pool *p) { return (ortc_product_threads){parallel, p}; }
