/* base/kept.c: memory of released values, kept for the next (value.h).
 *
 * A block is lent to one value; when that goes, the block waits for a value that fills at least three
 * quarters of it. Never more is kept than all values together have had at one time since, so memory stays
 * below what it has been; what runs have found no use for goes. Blocks hold a reference, for values may
 * outlive who lent them. Small values are left to malloc, which keeps what is freed; of large ones it gives
 * the pages back, and every run would pay for them anew (16 MiB: 4,096 faults, or 8 of huge pages that are
 * cleared).
 */
#include "value.h"

#include <pthread.h>

#include "sanitize.h"

#define LEAST ((size_t)64 << 10)
enum { RUNS = 16, STEPS = 16, MOST_BLOCKS = 256 }; /* runs unused; sizes between two powers of two */

typedef struct block {
    ortc_kept *of;
    struct block *next; /* while it is kept */
    void *data;
    size_t bytes;
    uint64_t since; /* the run in which it came back */
} block;

struct ortc_kept {
    atomic_int references;
    pthread_mutex_t lock;
    bool closed;
    block *blocks; /* the last that came back first */
    uint32_t count;
    uint64_t lent, kept, most, runs; /* bytes, of lent at most; ortc_kept_run so far */
};

ortc_kept *ortc_kept_create(void)
{
    ortc_kept *k = calloc(1, sizeof *k);
    if (!k) return NULL;
    atomic_init(&k->references, 1);
    pthread_mutex_init(&k->lock, NULL);
    return k;
}

ortc_kept *ortc_kept_retain(ortc_kept *k)
{
    if (k) atomic_fetch_add_explicit(&k->references, 1, memory_order_relaxed);
    return k;
}

static void drop_reference(ortc_kept *k)
{
    if (atomic_fetch_sub_explicit(&k->references, 1, memory_order_acq_rel) != 1) return;
    pthread_mutex_destroy(&k->lock);
    free(k);
}

static void free_block(block *b)
{
    ORTC_ALLOW(b->data, b->bytes);
    ortc_free_aligned(b->data, b->bytes);
    drop_reference(b->of);
    free(b);
}

/* Takes those out that came back before a run; the caller frees them without the lock. */
static block *take_old(ortc_kept *k, uint64_t before, uint64_t *out_bytes)
{
    block *old = NULL;
    for (block **at = &k->blocks, *b; (b = *at);) {
        if (b->since >= before) {
            at = &b->next;
            continue;
        }
        *at = b->next;
        b->next = old;
        old = b;
        k->kept -= b->bytes, k->count--;
        *out_bytes += b->bytes;
    }
    return old;
}

static uint64_t drop_old(ortc_kept *k, uint64_t before, bool close)
{
    uint64_t bytes = 0;
    pthread_mutex_lock(&k->lock);
    k->closed |= close;
    block *old = take_old(k, before, &bytes);
    pthread_mutex_unlock(&k->lock);
    for (block *next; old; old = next) {
        next = old->next;
        free_block(old);
    }
    return bytes;
}

void ortc_kept_release(ortc_kept *k)
{
    if (!k) return;
    drop_old(k, UINT64_MAX, true);
    drop_reference(k);
}

uint64_t ortc_kept_trim(ortc_kept *k) { return k ? drop_old(k, UINT64_MAX, false) : 0; }

void ortc_kept_run(ortc_kept *k)
{
    if (!k) return;
    pthread_mutex_lock(&k->lock);
    const uint64_t run = ++k->runs;
    const bool any = k->blocks != NULL;
    pthread_mutex_unlock(&k->lock);
    if (any && run > RUNS) drop_old(k, run - RUNS, false);
}

/* ---- Lending ------------------------------------------------------------------------------------------- */

/* The smallest that is large enough, and not by much. */
static block *find(ortc_kept *k, size_t bytes)
{
    block **best = NULL;
    for (block **at = &k->blocks; *at; at = &(*at)->next)
        if ((*at)->bytes >= bytes && bytes >= (*at)->bytes / 4 * 3 &&
            (!best || (*at)->bytes < (*best)->bytes))
            best = at;
    if (!best) return NULL;
    block *b = *best;
    *best = b->next;
    k->kept -= b->bytes, k->count--;
    return b;
}

/* Sizes that grow by a little from run to run come to few. */
static size_t rounded(size_t bytes)
{
    const size_t step = ((size_t)1 << (63 - __builtin_clzll(bytes))) / STEPS;
    return bytes > SIZE_MAX - step ? bytes : (bytes + step - 1) / step * step;
}

static block *make_block(ortc_kept *k, size_t bytes)
{
    block *b = malloc(sizeof *b);
    if (b) *b = (block){.of = k, .bytes = bytes, .data = ortc_alloc_aligned(bytes)};
    if (b && !b->data && ortc_kept_trim(k)) b->data = ortc_alloc_aligned(bytes);
    if (b && b->data) {
        ortc_kept_retain(k);
        return b;
    }
    free(b);
    return NULL;
}

static void count_lent(ortc_kept *k, size_t bytes)
{
    k->lent += bytes;
    if (k->lent > k->most) k->most = k->lent;
}

/* A value has gone. */
static void give_back(void *arg)
{
    block *b = arg;
    ortc_kept *k = b->of;
    pthread_mutex_lock(&k->lock);
    k->lent -= b->bytes;
    const bool keep = !k->closed && k->count < MOST_BLOCKS && k->lent + k->kept + b->bytes <= k->most;
    if (keep) {
        ORTC_FORBID(b->data, b->bytes);
        b->since = k->runs;
        b->next = k->blocks;
        k->blocks = b;
        k->kept += b->bytes, k->count++;
    }
    pthread_mutex_unlock(&k->lock);
    if (!keep) free_block(b);
}

ortc_status ortc_value_create_kept(ortc_kept *k, ortc_dtype t, int32_t rank, const int64_t *dims,
                                   ortc_value **out, ortc_error *error)
{
    int64_t count;
    size_t bytes;
    *out = NULL;
    if (!k || !ortc_count_elements(rank, dims, &count) || !ortc_tensor_bytes(t, count, &bytes) ||
        bytes < LEAST || bytes > PTRDIFF_MAX)
        return ortc_value_create(t, rank, dims, out, error);
    pthread_mutex_lock(&k->lock);
    block *b = find(k, bytes);
    if (b) count_lent(k, b->bytes);
    pthread_mutex_unlock(&k->lock);
    if (b)
        ORTC_ALLOW(b->data, bytes);
    else {
        if (!(b = make_block(k, rounded(bytes)))) return ortc_no_memory(error, bytes);
        pthread_mutex_lock(&k->lock);
        count_lent(k, b->bytes);
        pthread_mutex_unlock(&k->lock);
    }
    const ortc_status s = ortc_value_wrap(b->data, t, rank, dims, give_back, b, out, error);
    if (s != ORTC_OK) give_back(b);
    return s;
}
