/* base/threads.h: one process-wide pool of workers, and loops over it.
 *
 * A loop 0 .. n is cut into chunks of `grain`; chunk boundaries depend on n and grain only, so what a chunk
 * computes never depends on how many threads there are. The calling thread works too. Workers stay awake for
 * a tenth of a millisecond after their last loop, then park; an idle process uses no processor time. A loop
 * with a budget of one thread touches no lock and wakes nobody. Loops inside loops run serially. After fork
 * the child has no workers: the pool is built anew on first use there.
 */
#ifndef ORTC_THREADS_H
#define ORTC_THREADS_H

#include "base.h"

/* Threads for a run that asks for `wanted`, the caller included; 0: one for each core that the process may
 * use, since siblings on one core share what multiplies. More where more are wanted before the first loop, up
 * to one for each processor. The environment's ORTC_THREADS is what the pool has instead. */
uint32_t ortc_pool_threads(uint32_t wanted);

/* Runs body(arg, begin, end, worker) for all chunks, worker in 0 .. budget-1, distinct for concurrent chunks.
 * Between chunks `stop(stop_arg)` is asked (NULL: never); its first non-zero status ends the loop and is
 * returned. */
ortc_status ortc_pool_for(uint32_t budget, int64_t n, int64_t grain,
                          void (*body)(void *arg, int64_t begin, int64_t end, uint32_t worker), void *arg,
                          ortc_status (*stop)(void *stop_arg), void *stop_arg);

#endif
