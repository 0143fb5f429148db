/* base/heap.c: blocks of the host's memory (base.h).
 *
 * Blocks of 8 KB and more lie beside each other in slabs of addresses, whose memory comes by huge pages as
 * blocks reach them. To open a model of some megabytes and to run it once touches thousands of small pages,
 * each a fault: 0.3 ms a megabyte where a huge page costs 0.02. The first two megabytes are of small pages
 * all the same, 64 KB of them at a time, so that what is small stays small, unless it is known that more will
 * come: a huge page is found and cleared in the time of 35 to 120 small ones, of 130 to 170 that come so.
 * Huge pages without a block go back to the system, but for a few.
 */
#include <pthread.h>

#include "mempool.h"
#include "sanitize.h"

#define SLAB_BYTES (2 * ORTC_HEAP_MOST) /* of addresses */
#define WORTH ((size_t)1024 << 10)      /* so much is worth a huge page, */
#define FILLED ((size_t)64 << 10)       /* else so much comes at a time */
enum { KEPT = 2 }; /* huge pages without a block that stay, or an eighth of those with one */

#ifdef ORTC_SANITIZED
size_t ortc_heap_least = SIZE_MAX; /* a sanitizer is to see what leaves a block */
#else
size_t ortc_heap_least = (size_t)8 << 10;
#endif

typedef struct slab {
    struct slab *next;
    char *data; /* at a multiple of ORTC_HUGE_PAGE */
    size_t bytes;
    struct {
        uint32_t used;   /* bytes of blocks */
        uint32_t filled; /* of one that is small: as far as it has memory */
        bool there;      /* has memory, */
        bool small;      /* of small pages, */
        bool joined;     /* in a huge page, as far as there was one */
    } pages[];           /* of ORTC_HUGE_PAGE */
} slab;

static struct {
    pthread_mutex_t lock;
    ortc_mempool *pool;
    slab *slabs;
    size_t used, kept; /* huge pages that have memory, with blocks and without */
    bool more;         /* is known to come than WORTH */
} heap = {.lock = PTHREAD_MUTEX_INITIALIZER};

/* ---- Slabs --------------------------------------------------------------------------------------------- */

static void *take_slab(void *arg, size_t bytes)
{
    (void)arg;
    slab *s = calloc(1, sizeof *s + bytes / ORTC_HUGE_PAGE * sizeof *s->pages);
    void *data = NULL;
    if (!s || bytes % ORTC_HUGE_PAGE || posix_memalign(&data, ORTC_HUGE_PAGE, bytes)) {
        free(s);
        return NULL;
    }
    s->next = heap.slabs, s->data = data, s->bytes = bytes;
    heap.slabs = s;
    return data;
}

static void give_slab(void *arg, void *data, size_t bytes)
{
    (void)arg, (void)bytes;
    for (slab **at = &heap.slabs, *s; (s = *at); at = &s->next) {
        if (s->data != data) continue;
        for (size_t i = 0; i < s->bytes / ORTC_HUGE_PAGE; i++) heap.kept -= s->pages[i].there;
        *at = s->next;
        free(s->data);
        free(s);
        break;
    }
}

static slab *slab_of(const char *block)
{
    slab *s = heap.slabs;
    while (s && !(block >= s->data && block < s->data + s->bytes)) s = s->next;
    return s;
}

/* ---- Huge pages ---------------------------------------------------------------------------------------- */

/* Of bytes begin .. end of a slab those in page i. */
static uint32_t in_page(size_t begin, size_t end, size_t i)
{
    const size_t from = i * ORTC_HUGE_PAGE, to = from + ORTC_HUGE_PAGE;
    return (uint32_t)((end < to ? end : to) - (begin > from ? begin : from));
}

/* Page i, which is small, is to have memory up to `end` of the slab. */
static void fill(slab *s, size_t i, size_t end)
{
    const size_t from = s->pages[i].filled, in = (end - i * ORTC_HUGE_PAGE + FILLED - 1) / FILLED * FILLED,
                 to = in < ORTC_HUGE_PAGE ? in : ORTC_HUGE_PAGE;
    if (to <= from) return;
    ortc_platform_fill_pages(s->data + i * ORTC_HUGE_PAGE, ORTC_HUGE_PAGE, from, to);
    s->pages[i].filled = (uint32_t)to;
}

/* The first of all, for a first block that is small, too. */
static bool is_small(const slab *s, size_t i, size_t bytes)
{
    return s->pages[i].small ||
           (!s->pages[i].there && heap.used + heap.kept == 1 && !heap.more && bytes < WORTH);
}

static void count_in(slab *s, size_t begin, size_t end)
{
    size_t none = SIZE_MAX; /* the first page without memory */
    for (size_t i = begin / ORTC_HUGE_PAGE; i * ORTC_HUGE_PAGE < end; i++) {
        heap.used += !s->pages[i].used;
        heap.kept -= !s->pages[i].used && s->pages[i].there;
        s->pages[i].used += in_page(begin, end, i);
        if (is_small(s, i, end - begin)) {
            s->pages[i].small = s->pages[i].there = true;
            fill(s, i, end);
        }
        if (none == SIZE_MAX && !s->pages[i].there) none = i;
        if (none != SIZE_MAX && s->pages[i].there) { /* kept, or another's, too */
            ortc_platform_find_pages(s->data + none * ORTC_HUGE_PAGE, (i - none) * ORTC_HUGE_PAGE);
            none = SIZE_MAX;
        }
        s->pages[i].there = true;
    }
    const size_t up = (end + ORTC_HUGE_PAGE - 1) / ORTC_HUGE_PAGE;
    if (none != SIZE_MAX)
        ortc_platform_find_pages(s->data + none * ORTC_HUGE_PAGE, (up - none) * ORTC_HUGE_PAGE);
}

static void drop(slab *s, size_t i)
{
    ortc_platform_drop_pages(s->data + i * ORTC_HUGE_PAGE, ORTC_HUGE_PAGE);
    s->pages[i].there = s->pages[i].small = s->pages[i].joined = false;
    s->pages[i].filled = 0;
    heap.kept--;
}

static void count_out(slab *s, size_t begin, size_t end)
{
    for (size_t i = begin / ORTC_HUGE_PAGE; i * ORTC_HUGE_PAGE < end; i++) {
        if (s->pages[i].used -= in_page(begin, end, i)) continue;
        heap.used--;
        if (++heap.kept > KEPT && heap.kept > heap.used / 8) drop(s, i);
    }
}

/* ---- Blocks -------------------------------------------------------------------------------------------- */

/* NULL: the C library is to have it; it counts already. */
static char *take(size_t bytes)
{
    static const ortc_mempool_source source = {NULL, take_slab, give_slab, 0, SLAB_BYTES};
    char *block = NULL;
    pthread_mutex_lock(&heap.lock);
    if (!heap.pool) heap.pool = ortc_mempool_create(&source);
    if (heap.pool) block = ortc_mempool_take(heap.pool, bytes);
    if (block) {
        slab *s = slab_of(block);
        count_in(s, (size_t)(block - s->data), (size_t)(block - s->data) + bytes);
    }
    pthread_mutex_unlock(&heap.lock);
    return block;
}

/* false: it was the C library's. */
static bool give(char *block, size_t bytes)
{
    pthread_mutex_lock(&heap.lock);
    slab *s = block ? slab_of(block) : NULL;
    if (s) {
        count_out(s, (size_t)(block - s->data), (size_t)(block - s->data) + bytes);
        ortc_mempool_give(heap.pool, block);
        if (s->next || s != heap.slabs) ortc_mempool_trim(heap.pool); /* one slab may stay empty */
    }
    pthread_mutex_unlock(&heap.lock);
    return s;
}

/* Under the lock; the bytes that went. */
static uint64_t trim(void)
{
    const size_t before = heap.kept;
    if (heap.pool) ortc_mempool_trim(heap.pool);
    for (slab *s = heap.slabs; s; s = s->next)
        for (size_t i = 0; i < s->bytes / ORTC_HUGE_PAGE; i++)
            if (s->pages[i].there && !s->pages[i].used) drop(s, i);
    if (!heap.slabs) {
        ortc_mempool_destroy(heap.pool);
        heap.pool = NULL;
    }
    return (uint64_t)(before - heap.kept) * ORTC_HUGE_PAGE;
}

uint64_t ortc_heap_trim(void)
{
    pthread_mutex_lock(&heap.lock);
    const uint64_t bytes = trim();
    pthread_mutex_unlock(&heap.lock);
    return bytes;
}

/* When the library is unloaded, or the process ends. In one that was forked while a thread was in here nobody
 * will ever give the lock back. */
__attribute__((destructor)) static void leave_nothing(void)
{
    if (pthread_mutex_trylock(&heap.lock)) return;
    trim();
    pthread_mutex_unlock(&heap.lock);
}

bool ortc_heap_join(void)
{
    bool any = false;
    pthread_mutex_lock(&heap.lock);
    for (slab *s = heap.slabs; s && !any; s = s->next)
        for (size_t i = 0; i < s->bytes / ORTC_HUGE_PAGE && !any; i++) {
            if (!s->pages[i].used || s->pages[i].joined) continue;
            if (s->pages[i].small && s->pages[i].filled < ORTC_HUGE_PAGE) continue;
            size_t at = i * ORTC_HUGE_PAGE;
            any = s->pages[i].joined = ortc_platform_join_page(s->data, s->bytes, &at);
        }
    pthread_mutex_unlock(&heap.lock);
    return any;
}

void ortc_heap_expect(size_t bytes)
{
    if (bytes < WORTH) return;
    pthread_mutex_lock(&heap.lock);
    heap.more = true;
    pthread_mutex_unlock(&heap.lock);
}

static bool in_heap(size_t bytes) { return bytes >= ortc_heap_least && bytes < ORTC_HEAP_MOST; }

void *ortc_alloc_aligned(size_t bytes)
{
    size_t rounded;
    void *block;
    if (!ortc_align_size(bytes ? bytes : 1, ORTC_ALIGNMENT, &rounded) || rounded > PTRDIFF_MAX) return NULL;
    if (in_heap(rounded) && (block = take(rounded))) return block;
    /* Blocks of at least two huge pages: the alignment then wastes little and every page but the ends can be
     * huge. */
    const bool huge = rounded >= 2 * ORTC_HUGE_PAGE;
    if (posix_memalign(&block, huge ? ORTC_HUGE_PAGE : ORTC_ALIGNMENT, rounded)) return NULL;
    if (huge) ortc_platform_find_pages(block, rounded);
    return block;
}

void ortc_free_aligned(void *block, size_t bytes)
{
    size_t rounded = 0;
    if (!block) return;
    ortc_align_size(bytes ? bytes : 1, ORTC_ALIGNMENT, &rounded);
    if (!in_heap(rounded) || !give(block, rounded)) free(block);
}

/* ---- Data ---------------------------------------------------------------------------------------------- */

/* In front of data, its bytes; in the heap it is aligned as other blocks are. */
static size_t head_of(size_t bytes) { return bytes < ortc_heap_least ? 16 : ORTC_ALIGNMENT; }

void *ortc_data_alloc(size_t bytes)
{
    const size_t head = head_of(bytes);
    size_t whole;
    if (!ortc_add_size(bytes, head, &whole)) return NULL;
    char *block = bytes < ortc_heap_least ? malloc(whole) : ortc_alloc_aligned(whole);
    if (!block) return NULL;
    memcpy(block + head - sizeof bytes, &bytes, sizeof bytes);
    return block + head;
}

void ortc_data_free(void *data)
{
    if (!data) return;
    size_t bytes;
    memcpy(&bytes, (char *)data - sizeof bytes, sizeof bytes);
    char *block = (char *)data - head_of(bytes);
    if (bytes < ortc_heap_least)
        free(block);
    else
        ortc_free_aligned(block, bytes + ORTC_ALIGNMENT);
}
