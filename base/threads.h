/* base/threads.h: one process-wide pool of workers, and loops over it.
 *
 * A loop 0 .. n is cut into chunks of `grain`; chunk boundaries depend on n and grain only, so what a chunk
 * computes never depends on how many threads there are. The calling thread works too; workers take chunks
 * from an atomic counter. Workers spin for tens of microseconds while a run is in flight, then park; an idle
 * process uses no processor time. A loop with a budget of one thread touches no lock and wakes nobody. Loops
 * inside loops run serially. After fork the child has no workers: the pool is built anew on first use there.
 */
#ifndef ORTC_THREADS_H
#define ORTC_THREADS_H

#include "base.h"

/* Threads of the pool, the caller included: ortc_platform_threads(), or the environment's ORTC_THREADS. */
uint32_t ortc_pool_threads(void);

/* The scope of a run: while at least one is open, workers keep spinning between loops. */
void ortc_pool_enter(uint32_t budget);
void ortc_pool_leave(void);

/* Runs body(arg, begin, end, worker) for all chunks, worker in 0 .. budget-1, distinct for concurrent chunks.
 * Between chunks `stop(stop_arg)` is asked (NULL: never); its first non-zero status ends the loop and is
 * returned. */
ortc_status ortc_pool_for(uint32_t budget, int64_t n, int64_t grain,
                          void (*body)(void *arg, int64_t begin, int64_t end, uint32_t worker), void *arg,
                          ortc_status (*stop)(void *stop_arg), void *stop_arg);

#endif
