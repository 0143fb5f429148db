/* base/mempool.c: slabs, blocks in order of address, free blocks in order of size (mempool.h). */
#include "mempool.h"

#include <pthread.h>

typedef struct slab slab;

typedef struct block {
    slab *slab;
    char *address;
    size_t bytes;
    bool used;
    struct block *before, *after; /* neighbours in the slab */
    struct block *next;           /* in its bucket, while it is used; among the spare ones */
} block;

struct slab {
    char *address;
    size_t bytes, used; /* bytes of used blocks */
    bool small;
    slab *next;
};

#define BUCKETS 64 /* at first; about as many as there are blocks */

struct ortc_mempool {
    pthread_mutex_t lock;
    ortc_mempool_source source;
    slab *slabs;
    ORTC_ARRAY(block *) free[2]; /* by size, then address: of large slabs, of small ones */
    block **used;                /* [buckets], by address */
    size_t buckets;              /* a power of two */
    block *spare;                /* structs to be used again */
    ortc_memory_stats stats;
};

/* ---- Free blocks in order ------------------------------------------------------------------------------ */

static bool less(const block *a, size_t bytes, const char *address)
{
    return a->bytes < bytes || (a->bytes == bytes && a->address < address);
}

/* The first that is not less. */
static size_t find(const ortc_mempool *p, bool small, size_t bytes, const char *address)
{
    size_t low = 0, high = p->free[small].count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (less(p->free[small].data[middle], bytes, address))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Room for it has been reserved. */
static void add_free(ortc_mempool *p, block *b)
{
    bool small = b->slab->small;
    size_t at = find(p, small, b->bytes, b->address);
    b->used = false;
    memmove(&p->free[small].data[at + 1], &p->free[small].data[at],
            (p->free[small].count++ - at) * sizeof(block *));
    p->free[small].data[at] = b;
}

static void drop_free(ortc_mempool *p, const block *b)
{
    bool small = b->slab->small;
    size_t at = find(p, small, b->bytes, b->address);
    memmove(&p->free[small].data[at], &p->free[small].data[at + 1],
            (--p->free[small].count - at) * sizeof(block *));
}

/* ---- Blocks -------------------------------------------------------------------------------------------- */

static block **bucket(ortc_mempool *p, const void *address)
{
    return &p->used[ortc_hash(&address, sizeof address, 0) & (p->buckets - 1)];
}

static void add_used(ortc_mempool *p, block *b)
{
    block **chain = bucket(p, b->address);
    b->used = true;
    b->next = *chain;
    *chain = b;
}

/* Without memory chains become longer. */
static void more_buckets(ortc_mempool *p)
{
    block **old = p->used, **used = calloc(2 * p->buckets, sizeof *used);
    if (!used) return;
    p->used = used, p->buckets *= 2;
    for (size_t i = 0; i < p->buckets / 2; i++)
        for (block *b = old[i], *next; b; b = next) {
            next = b->next;
            add_used(p, b);
        }
    free(old);
}

static block *new_block(ortc_mempool *p)
{
    block *b = p->spare;
    if (b)
        p->spare = b->next;
    else
        b = malloc(sizeof *b);
    return b;
}

static void old_block(ortc_mempool *p, block *b)
{
    b->next = p->spare;
    p->spare = b;
}

static void join_after(ortc_mempool *p, block *b)
{
    block *gone = b->after;
    b->bytes += gone->bytes;
    b->after = gone->after;
    if (b->after) b->after->before = b;
    old_block(p, gone);
}

/* A free block with a neighbour that is free, too, never stays. */
static void release(ortc_mempool *p, block *b)
{
    b->slab->used -= b->bytes;
    if (b->after && !b->after->used) {
        drop_free(p, b->after);
        join_after(p, b);
    }
    if (b->before && !b->before->used) {
        b = b->before;
        drop_free(p, b);
        join_after(p, b);
    }
    add_free(p, b);
}

static ortc_status grow(ortc_mempool *p, size_t bytes, bool small)
{
    size_t size;
    if (bytes > SIZE_MAX - p->source.slab) return ORTC_OUT_OF_MEMORY;
    size = small ? p->source.slab : (bytes + p->source.slab - 1) / p->source.slab * p->source.slab;
    slab *s = calloc(1, sizeof *s);
    block *b = new_block(p);
    char *address = s && b ? p->source.take(p->source.arg, size) : NULL;
    if (s && b && !address && size > bytes) /* what is left of a device that is nearly full */
        address = p->source.take(p->source.arg, size = bytes);
    if (!address) {
        free(s);
        if (b) old_block(p, b);
        return ORTC_OUT_OF_MEMORY;
    }
    *s = (slab){.address = address, .bytes = size, .small = small, .next = p->slabs};
    p->slabs = s;
    *b = (block){.slab = s, .address = address, .bytes = size};
    add_free(p, b);
    p->stats.reserved += size;
    p->stats.slabs++;
    return ORTC_OK;
}

static uint64_t trim(ortc_mempool *p)
{
    uint64_t freed = 0;
    for (slab **at = &p->slabs, *s; (s = *at);) {
        if (s->used) {
            at = &s->next;
            continue;
        }
        *at = s->next;
        size_t whole = find(p, s->small, s->bytes, s->address); /* the whole slab is one free block */
        block *b = p->free[s->small].data[whole];
        drop_free(p, b);
        old_block(p, b);
        p->source.give(p->source.arg, s->address, s->bytes);
        freed += s->bytes;
        p->stats.slabs--;
        free(s);
    }
    p->stats.reserved -= freed;
    return freed;
}

static void *take(ortc_mempool *p, size_t bytes)
{
    bool small = bytes <= p->source.small;
    size_t at = find(p, small, bytes, NULL);
    block *rest = new_block(p);
    /* Room for the rest, and for this block when it comes back: giving never fails. */
    if (!rest ||
        !ortc_array_reserve(&p->free[small], p->stats.blocks + p->free[0].count + p->free[1].count + 4)) {
        if (rest) old_block(p, rest);
        return NULL;
    }
    if (at == p->free[small].count) {
        if (grow(p, bytes, small) != ORTC_OK && (!trim(p) || grow(p, bytes, small) != ORTC_OK)) {
            old_block(p, rest);
            return NULL;
        }
        at = find(p, small, bytes, NULL);
    } else
        p->stats.hits++;
    block *b = p->free[small].data[at];
    drop_free(p, b);
    if (b->bytes > bytes) {
        *rest = (block){.slab = b->slab,
                        .address = b->address + bytes,
                        .bytes = b->bytes - bytes,
                        .before = b,
                        .after = b->after};
        if (rest->after) rest->after->before = rest;
        b->after = rest;
        b->bytes = bytes;
        add_free(p, rest);
    } else
        old_block(p, rest);
    b->slab->used += b->bytes;
    if (p->stats.blocks == p->buckets) more_buckets(p);
    add_used(p, b);
    p->stats.blocks++;
    p->stats.in_use += b->bytes;
    if (p->stats.in_use > p->stats.peak) p->stats.peak = p->stats.in_use;
    return b->address;
}

/* ---- The pool ------------------------------------------------------------------------------------------ */

ortc_mempool *ortc_mempool_create(const ortc_mempool_source *source)
{
    ortc_mempool *p = calloc(1, sizeof *p);
    if (p) p->used = calloc(p->buckets = BUCKETS, sizeof *p->used);
    if (!p || !p->used) {
        free(p);
        return NULL;
    }
    p->source = *source;
    p->stats.size = sizeof p->stats;
    pthread_mutex_init(&p->lock, NULL);
    return p;
}

void ortc_mempool_destroy(ortc_mempool *p)
{
    if (!p) return;
    for (slab *s = p->slabs, *next; s; s = next) {
        next = s->next;
        p->source.give(p->source.arg, s->address, s->bytes);
        free(s);
    }
    for (int small = 0; small < 2; small++) {
        for (size_t i = 0; i < p->free[small].count; i++) old_block(p, p->free[small].data[i]);
        ortc_array_deinit(&p->free[small]);
    }
    for (size_t i = 0; i < p->buckets; i++)
        for (block *b = p->used[i], *next; b; b = next) {
            next = b->next;
            free(b);
        }
    for (block *b = p->spare, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    free(p->used);
    pthread_mutex_destroy(&p->lock);
    free(p);
}

void *ortc_mempool_take(ortc_mempool *p, size_t bytes)
{
    size_t rounded;
    if (!ortc_align_size(bytes ? bytes : 1, ORTC_ALIGNMENT, &rounded)) return NULL;
    pthread_mutex_lock(&p->lock);
    p->stats.requests++;
    void *address = take(p, rounded);
    pthread_mutex_unlock(&p->lock);
    return address;
}

void ortc_mempool_give(ortc_mempool *p, void *address)
{
    if (!address) return;
    pthread_mutex_lock(&p->lock);
    block **at = bucket(p, address), *b;
    while ((b = *at) && b->address != address) at = &b->next;
    if (b) { /* what was never taken is none of ours */
        *at = b->next;
        p->stats.blocks--;
        p->stats.in_use -= b->bytes;
        release(p, b);
    }
    pthread_mutex_unlock(&p->lock);
}

uint64_t ortc_mempool_trim(ortc_mempool *p)
{
    pthread_mutex_lock(&p->lock);
    uint64_t freed = trim(p);
    pthread_mutex_unlock(&p->lock);
    return freed;
}

void ortc_mempool_statistics(ortc_mempool *p, ortc_memory_stats *out)
{
    uint32_t size = out->size;
    pthread_mutex_lock(&p->lock);
    ortc_memory_stats all = p->stats;
    all.largest_free = 0;
    for (int small = 0; small < 2; small++)
        if (p->free[small].count && p->free[small].data[p->free[small].count - 1]->bytes > all.largest_free)
            all.largest_free = p->free[small].data[p->free[small].count - 1]->bytes;
    pthread_mutex_unlock(&p->lock);
    memcpy(out, &all, size < sizeof all ? size : sizeof all);
    out->size = size;
}

/* ---- Invariants ---------------------------------------------------------------------------------------- */

static const block *block_at(const ortc_mempool *p, const char *address)
{
    for (int small = 0; small < 2; small++)
        for (size_t i = 0; i < p->free[small].count; i++)
            if (p->free[small].data[i]->address == address) return p->free[small].data[i];
    const block *b = *bucket((ortc_mempool *)(uintptr_t)p, address);
    while (b && b->address != address) b = b->next;
    return b;
}

static ortc_status verify(const ortc_mempool *p, ortc_error *error)
{
    uint64_t reserved = 0, in_use = 0, blocks = 0, slabs = 0, free_blocks = 0;
    for (const slab *s = p->slabs; s; s = s->next) {
        const block *b = block_at(p, s->address), *before = NULL;
        size_t at = 0, used = 0;
        slabs++;
        reserved += s->bytes;
        for (; b; before = b, b = b->after) {
            if (b->address != s->address + at || b->slab != s || b->before != before || !b->bytes ||
                b->bytes % ORTC_ALIGNMENT)
                return ortc_fail(error, ORTC_INTERNAL, "a block does not begin where the one before it ends");
            if (!b->used && before && !before->used)
                return ortc_fail(error, ORTC_INTERNAL, "two free blocks side by side");
            at += b->bytes;
            used += b->used ? b->bytes : 0;
            blocks += b->used;
            free_blocks += !b->used;
        }
        if (at != s->bytes || used != s->used)
            return ortc_fail(error, ORTC_INTERNAL, "a slab of %zu bytes has blocks of %zu, %zu of them used",
                             s->bytes, at, used);
        in_use += used;
    }
    for (int small = 0; small < 2; small++)
        for (size_t i = 0; i < p->free[small].count; i++) {
            const block *b = p->free[small].data[i];
            if (b->used || b->slab->small != small ||
                (i && !less(p->free[small].data[i - 1], b->bytes, b->address)))
                return ortc_fail(error, ORTC_INTERNAL, "the free blocks are not in order");
            free_blocks--;
        }
    if (free_blocks || reserved != p->stats.reserved || in_use != p->stats.in_use ||
        blocks != p->stats.blocks || slabs != p->stats.slabs)
        return ortc_fail(error, ORTC_INTERNAL, "the statistics are not those of the blocks");
    return ORTC_OK;
}

ortc_status ortc_mempool_verify(ortc_mempool *p, ortc_error *error)
{
    pthread_mutex_lock(&p->lock);
    ortc_status s = verify(p, error);
    pthread_mutex_unlock(&p->lock);
    return s;
}
