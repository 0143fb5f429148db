/* A loop over threads for tests and benchmarks of kernels, so that they need nothing of the runtime: a fixed
 * number of threads that spin while the pool is open, chunks in contiguous shares from which idle threads
 * help themselves, scratch per thread. Chunks depend on n and grain only. Not for anything else: it burns
 * every core it is given.
 */
#ifndef ORTC_TESTS_POOL_H
#define ORTC_TESTS_POOL_H

#include <stddef.h>
#include <stdint.h>

#include "kernels/gemm/product.h"

typedef struct pool pool;

/* `threads` >= 1, the caller included; `scratch` bytes for each, 64-byte aligned (on huge pages where
 * large). */
pool *pool_open(int threads, size_t scratch);
void pool_close(pool *);
ortc_product_threads pool_threads(pool *);
/* Runs fn(arg, thread) on every thread at once. */
void pool_each(pool *, void (*fn)(void *arg, int thread), void *arg);

/* Zeroed memory, 2 MB aligned with huge pages asked for where it is large enough, 64-byte aligned
 * otherwise. */
void *pool_memory(size_t bytes);

#endif
