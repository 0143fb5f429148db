/* base/mempool.h: one allocator for the memory of any device, and the host's: it takes slabs from a source
 * and cuts them into blocks.
 *
 * Blocks are multiples of ORTC_ALIGNMENT, aligned to it, cut from the smallest free block that is large
 * enough (of those the one at the lowest address) and joined with their free neighbours when they come back.
 * Requests of up to `small` bytes and larger ones live in slabs of their own, so that small ones do not
 * nibble at what large ones need. Memory is given back here only when no queue uses it any more:
 * contexts and events wait for their queues first, so no block carries an event. The bookkeeping is in host
 * memory; the slabs are never touched. Any thread.
 */
#ifndef ORTC_MEMPOOL_H
#define ORTC_MEMPOOL_H

#include "ortc/ortc.h"
#include "base.h"

typedef struct ortc_mempool_source {
    void *arg;
    void *(*take)(void *arg, size_t bytes); /* aligned to ORTC_ALIGNMENT; NULL: there is none */
    void (*give)(void *arg, void *slab, size_t bytes);
    size_t small; /* bytes; up to here a block comes from a small slab; 0: there are none */
    size_t slab;  /* bytes of a small slab; large ones are multiples of it */
} ortc_mempool_source;

typedef struct ortc_mempool ortc_mempool;

ortc_mempool *ortc_mempool_create(const ortc_mempool_source *); /* NULL when memory is short */
/* every slab goes back, whatever is still in use; NULL allowed */
void ortc_mempool_destroy(ortc_mempool *);
/* NULL when the source has none left, after the free slabs have gone back to it. bytes 0 counts as 1. */
void *ortc_mempool_take(ortc_mempool *, size_t bytes);
void ortc_mempool_give(ortc_mempool *, void *); /* what take gave; NULL allowed */
/* Gives slabs without a block in use back to the source; the bytes that went. */
uint64_t ortc_mempool_trim(ortc_mempool *);
void ortc_mempool_statistics(ortc_mempool *, ortc_memory_stats *);
/* Checks every invariant; INTERNAL with the first that is broken. For tests. */
ortc_status ortc_mempool_verify(ortc_mempool *, ortc_error *);

#endif
