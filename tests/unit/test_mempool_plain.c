/* tests/unit/test_mempool_plain.c: the pool of a device's memory over a made-up source: a seeded run of
 * random requests with every invariant checked after each, threads at once, a source that runs dry; and the
 * host's heap over it, by several threads whose blocks keep what was written. A plain program, for
 * ThreadSanitizer. usage: test_mempool_plain [OPERATIONS [SEED]]
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/mman.h>

#include "base/mempool.h"

static atomic_int passed, failed;
static void check(bool good, const char *what, const char *text)
{
    if (good)
        passed++;
    else if (failed++ < 20)
        printf("FAILED %s: %s\n", what, text);
}

/* Addresses without memory behind them: the pool must never touch what it gives out. */
typedef struct source {
    pthread_mutex_t lock;
    uintptr_t next;
    uint64_t taken, limit;
} source;
static void *source_take(void *arg, size_t bytes)
{
    source *s = arg;
    void *p = NULL;
    pthread_mutex_lock(&s->lock);
    if (s->taken + bytes <= s->limit) {
        p = (void *)s->next;
        s->next += (bytes + 4095) / 4096 * 4096 + 4096; /* slabs never touch each other */
        s->taken += bytes;
    }
    pthread_mutex_unlock(&s->lock);
    return p;
}
static void source_give(void *arg, void *slab, size_t bytes)
{
    source *s = arg;
    (void)slab;
    pthread_mutex_lock(&s->lock);
    s->taken -= bytes;
    pthread_mutex_unlock(&s->lock);
}
static source made = {PTHREAD_MUTEX_INITIALIZER, 1 << 20, 0, UINT64_MAX};
static const ortc_mempool_source the_source = {&made, source_take, source_give, 1 << 20, 2 << 20};

static uint64_t seed;
static uint64_t dice(uint64_t sides)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (seed >> 33) % sides;
}

/* Sizes as models ask for them: many small, some of megabytes. */
static size_t some_size(void)
{
    uint64_t kind = dice(10);
    return (size_t)(kind < 6 ? 1 + dice(4096) : kind < 9 ? 4096 + dice(1 << 20) : (1 << 20) + dice(24 << 20));
}

typedef struct held {
    char *address;
    size_t bytes;
} held;

static void test_random(long operations)
{
    enum { MOST = 100 };
    held blocks[MOST];
    int n = 0;
    ortc_error e = ORTC_ERROR_INIT;
    ortc_mempool *p = ortc_mempool_create(&the_source);
    ortc_memory_stats stats = ORTC_MEMORY_STATS_INIT;
    double fragmentation = 0;
    bool good = true, apart = true, aligned = true;
    for (long i = 0; i < operations && good; i++) {
        if (dice(1000) == 0) ortc_mempool_trim(p);
        if (n < MOST && (n == 0 || dice(2))) {
            held h = {NULL, some_size()};
            h.address = ortc_mempool_take(p, h.bytes);
            aligned = aligned && h.address && (uintptr_t)h.address % 256 == 0;
            for (int k = 0; k < n; k++)
                apart = apart && (h.address + h.bytes <= blocks[k].address ||
                                  blocks[k].address + blocks[k].bytes <= h.address);
            blocks[n++] = h;
        } else {
            int k = (int)dice((uint64_t)n);
            ortc_mempool_give(p, blocks[k].address);
            blocks[k] = blocks[--n];
        }
        good = ortc_mempool_verify(p, &e) == ORTC_OK;
        ortc_mempool_statistics(p, &stats);
        if (stats.reserved > stats.in_use)
            fragmentation += 1 - (double)stats.largest_free / (double)(stats.reserved - stats.in_use);
    }
    check(good, "invariants", e.text);
    check(apart, "blocks do not overlap", "they do");
    check(aligned, "blocks are aligned", "they are not");
    printf("%ld operations: fragmentation %.3f in the mean, %.1f %% of requests without a new slab, at most "
           "%llu MiB in use, %llu MiB "
           "reserved at the end\n",
           operations, fragmentation / (double)operations,
           100.0 * (double)stats.hits / (double)stats.requests, (unsigned long long)(stats.peak >> 20),
           (unsigned long long)(stats.reserved >> 20));
    while (n) ortc_mempool_give(p, blocks[--n].address);
    ortc_mempool_statistics(p, &stats);
    check(stats.in_use == 0 && stats.blocks == 0, "all given back", "something is in use");
    check(ortc_mempool_trim(p) == stats.reserved && made.taken == 0, "trim gives everything back",
          "it does not");
    ortc_mempool_destroy(p);
}

static void test_rules(void)
{
    ortc_mempool *p = ortc_mempool_create(&the_source);
    char *a = ortc_mempool_take(p, 3000), *b = ortc_mempool_take(p, 500), *c = ortc_mempool_take(p, 700),
         *d = ortc_mempool_take(p, 1);
    check(b == a + 3072 && c == b + 512 && d == c + 768, "cut from one slab in order", "other addresses");
    ortc_mempool_give(p, a);
    ortc_mempool_give(p, c);
    check(ortc_mempool_take(p, 600) == (void *)c, "the smallest that is large enough", "another");
    ortc_mempool_give(p, b);
    char *joined = ortc_mempool_take(p, 3500);
    check(joined == a, "free neighbours are one", "they are not");
    char *large = ortc_mempool_take(p, (size_t)5 << 20);
    ortc_memory_stats stats = ORTC_MEMORY_STATS_INIT;
    ortc_mempool_statistics(p, &stats);
    check(stats.slabs == 2 && stats.reserved == (uint64_t)8 << 20, "large ones live apart", "they do not");
    ortc_mempool_give(p, large);
    check(ortc_mempool_trim(p) == (uint64_t)6 << 20, "a slab without blocks goes", "it does not");
    ortc_mempool_give(p, NULL);
    check(ortc_mempool_take(p, SIZE_MAX - 5) == NULL && ortc_mempool_take(p, SIZE_MAX / 2) != NULL,
          "sizes are checked", "they are not");
    ortc_mempool_destroy(p); /* with blocks in use */
    check(made.taken == 0, "destroying gives every slab back", "it does not");

    made.limit = (uint64_t)5 << 20;
    p = ortc_mempool_create(&the_source);
    void *x = ortc_mempool_take(p, 100), *y = ortc_mempool_take(p, 3 << 20);
    check(x && y, "what is left is enough", "it is not");
    check(!ortc_mempool_take(p, 2 << 20), "the source is dry", "it is not");
    ortc_mempool_give(p, y);
    check((y = ortc_mempool_take(p, (5 << 20) - (2 << 20) - 256)) != NULL,
          "free slabs go back before it gives up", "they do not");
    check(ortc_mempool_verify(p, NULL) == ORTC_OK, "invariants", "broken");
    ortc_mempool_destroy(p);
    made.limit = UINT64_MAX;
}

static ortc_mempool *shared;
static void *work(void *arg)
{
    uint64_t state = (uintptr_t)arg;
    void *mine[32] = {NULL};
    for (int i = 0; i < 20000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        void **at = &mine[state >> 59];
        ortc_mempool_give(shared, *at);
        *at = ortc_mempool_take(shared, 1 + (size_t)(state >> 40) % 300000);
        if ((state >> 20) % 512 == 0) ortc_mempool_trim(shared);
    }
    for (int i = 0; i < 32; i++) ortc_mempool_give(shared, mine[i]);
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[4];
    ortc_memory_stats stats = ORTC_MEMORY_STATS_INIT;
    shared = ortc_mempool_create(&the_source);
    for (uintptr_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    ortc_mempool_statistics(shared, &stats);
    check(stats.in_use == 0 && ortc_mempool_verify(shared, NULL) == ORTC_OK, "threads at once",
          "something is left or broken");
    ortc_mempool_destroy(shared);
}

/* ---- The host's heap ----------------------------------------------------------------------------------- */

enum { MINE = 24 };
static atomic_bool stop_joining;
static atomic_int spoilt;

/* Ends and middle of a block say whose it is. */
static void mark(const held *h, uint64_t with)
{
    for (size_t i = 0, at[3] = {0, h->bytes / 2, h->bytes - 8}; i < 3; i++)
        memcpy(h->address + at[i], &with, 8);
}
static bool marked(const held *h, uint64_t with)
{
    bool good = true;
    for (size_t i = 0, at[3] = {0, h->bytes / 2, h->bytes - 8}; i < 3; i++)
        good &= !memcmp(h->address + at[i], &with, 8);
    return good;
}

static void *use_heap(void *arg)
{
    uint64_t state = (uintptr_t)arg;
    held mine[MINE] = {{NULL, 0}};
    for (int i = 0; i < 3000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        held *h = &mine[(state >> 33) % MINE];
        const size_t scale = (state >> 50) % 8 ? 300000 : (state >> 53) % 8 ? 6000000 : 40000000;
        if (h->address) {
            spoilt += !marked(h, (uintptr_t)h->address ^ h->bytes) || (uintptr_t)h->address % ORTC_ALIGNMENT;
            ortc_free_aligned(h->address, h->bytes);
        }
        h->bytes = 24 + (size_t)((state >> 20) % scale);
        h->address = ortc_alloc_aligned(h->bytes);
        if (h->address)
            mark(h, (uintptr_t)h->address ^ h->bytes);
        else
            spoilt++;
    }
    for (size_t i = 0; i < MINE; i++) ortc_free_aligned(mine[i].address, mine[i].bytes);
    return NULL;
}

static void *join(void *arg)
{
    (void)arg;
    while (!stop_joining) ortc_heap_join();
    return NULL;
}

/* Bytes of the huge page of a block that have memory. */
static size_t resident(const char *block)
{
    enum { PAGES = ORTC_HUGE_PAGE / 4096 };
    unsigned char in[PAGES];
    void *page = (void *)((uintptr_t)block & ~(uintptr_t)(ORTC_HUGE_PAGE - 1));
    size_t n = 0;
    if (mincore(page, ORTC_HUGE_PAGE, in)) return SIZE_MAX;
    for (int i = 0; i < PAGES; i++) n += in[i] & 1;
    return n * 4096;
}

/* In a process that has asked for little so far. */
static void test_expectations(void)
{
    enum { BYTES = 100000, SMALL = 256 << 10 };
    const uintptr_t page = ~(uintptr_t)(ORTC_HUGE_PAGE - 1);
    char *few = ortc_alloc_aligned(BYTES);
    ortc_heap_expect(1000);
    char *before = ortc_alloc_aligned(BYTES);
    check(few && before, "the heap has memory", "it has none");
    if (ortc_heap_least != SIZE_MAX) {
        memset(few, 1, BYTES), memset(before, 1, BYTES);
        check(((uintptr_t)few & page) == ((uintptr_t)before & page), "blocks lie together", "they do not");
        check(resident(few) <= SMALL && !ortc_heap_join() && resident(few) <= SMALL,
              "few blocks have small pages", "they have more");
    }
    ortc_free_aligned(few, BYTES), ortc_free_aligned(before, BYTES);
    ortc_heap_trim();
    ortc_heap_expect((size_t)1 << 20);
    char *a = ortc_alloc_aligned(BYTES), *b = ortc_alloc_aligned(BYTES);
    check(a && b, "the heap has memory", "it has none");
    if (ortc_heap_least != SIZE_MAX) {
        memset(a, 1, BYTES), memset(b, 1, BYTES);
        check(((uintptr_t)a & page) == ((uintptr_t)b & page) && ortc_heap_join() && !ortc_heap_join(),
              "expected blocks share a huge page", "they do not");
    }
    ortc_free_aligned(a, BYTES), ortc_free_aligned(b, BYTES);
}

static void test_heap(void)
{
    pthread_t threads[4];
    for (uintptr_t i = 0; i < 4; i++) pthread_create(&threads[i], NULL, i ? use_heap : join, (void *)(i + 1));
    for (int i = 3; i >= 0; i--) {
        if (!i) stop_joining = true;
        pthread_join(threads[i], NULL);
    }
    check(!spoilt, "blocks of the heap keep what they hold", "some do not");
    char *a = ortc_alloc_aligned(100000), *b = ortc_alloc_aligned((size_t)3 << 20);
    const uintptr_t at = (uintptr_t)b;
    check(a && b, "the heap has memory", "it has none");
    ortc_free_aligned(b, (size_t)3 << 20);
    b = ortc_alloc_aligned((size_t)3 << 20);
    check((uintptr_t)b == at || ortc_heap_least == SIZE_MAX, "what is free is found again", "it is not");
    ortc_free_aligned(b, (size_t)3 << 20);
    ortc_free_aligned(a, 100000);
    char *small = ortc_data_alloc(0), *large = ortc_data_alloc((size_t)5 << 20);
    check(small && large && (uintptr_t)small % 16 == 0, "data has memory", "it has none");
    check(ortc_heap_least == SIZE_MAX || (uintptr_t)large % ORTC_ALIGNMENT == 0, "data is aligned",
          "it is not");
    memset(large, 1, (size_t)5 << 20);
    ortc_data_free(small), ortc_data_free(large), ortc_data_free(NULL);
    check(ortc_heap_least == SIZE_MAX || ortc_heap_trim() > 0, "pages without a block go", "they do not");
    check(ortc_heap_trim() == 0, "trimming leaves none", "it does");
    check(!ortc_alloc_aligned(SIZE_MAX - 5) && !ortc_alloc_aligned(SIZE_MAX / 2), "sizes are checked",
          "they are not");
}

int main(int argc, char **argv)
{
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    printf("seed %llu\n", (unsigned long long)seed);
    test_expectations();
    test_rules();
    test_random(argc > 1 ? atol(argv[1]) : 1000000);
    test_threads();
    test_heap();
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
