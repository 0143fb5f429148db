/* base/executor.h: loops over a caller's threads (ortc_executor), with the promises of ortc_pool_for
 * (threads.h). */
#ifndef ORTC_EXECUTOR_H
#define ORTC_EXECUTOR_H

#include "base.h"

/* *current: the loop that the run has open, NULL at first: a loop inside it runs serially, as its thread's
 * number. */
typedef struct ortc_executor_loop ortc_executor_loop;
ortc_status ortc_executor_for(const ortc_executor *, ortc_executor_loop **current, uint32_t budget, int64_t n,
                              int64_t grain,
                              void (*body)(void *arg, int64_t begin, int64_t end, uint32_t worker), void *arg,
                              ortc_status (*stop)(void *stop_arg), void *stop_arg);

#endif
