/* base/executor.c: loops over a caller's threads (executor.h). Tasks take chunks from one counter, so that an
 * executor that runs them one after the other gives the same results, the first task doing all the work.
 */
#include "executor.h"

#include <pthread.h>

enum { MAX_TASKS = 256 };

struct ortc_executor_loop {
    _Alignas(64) atomic_llong next;
    int64_t n, grain;
    void (*body)(void *arg, int64_t begin, int64_t end, uint32_t worker);
    void *arg;
    ortc_status (*stop)(void *stop_arg);
    void *stop_arg;
    atomic_int status;
    atomic_uintptr_t threads[MAX_TASKS]; /* by task; 0: not begun, or ended */
};

static void work(ortc_executor_loop *l, uint32_t number)
{
    int64_t begin;
    while (atomic_load_explicit(&l->status, memory_order_relaxed) == ORTC_OK &&
           (begin = atomic_load_explicit(&l->next, memory_order_relaxed)) < l->n) {
        int64_t end = l->n - begin < l->grain ? l->n : begin + l->grain;
        long long expected = begin;
        if (!atomic_compare_exchange_weak_explicit(&l->next, &expected, end, memory_order_relaxed,
                                                   memory_order_relaxed))
            continue;
        ortc_status s = l->stop ? l->stop(l->stop_arg) : ORTC_OK;
        if (s != ORTC_OK) {
            int ok = ORTC_OK;
            atomic_compare_exchange_strong(&l->status, &ok, s);
            return;
        }
        l->body(l->arg, begin, end, number);
    }
}

static void task(void *arg, uint32_t i)
{
    ortc_executor_loop *l = arg;
    ortc_fp_env fp = ortc_fp_enter(); /* the caller's threads have their own */
    atomic_store_explicit(&l->threads[i], (uintptr_t)pthread_self(), memory_order_relaxed);
    work(l, i);
    atomic_store_explicit(&l->threads[i], 0, memory_order_relaxed);
    ortc_fp_leave(fp);
}

ortc_status ortc_executor_for(const ortc_executor *e, ortc_executor_loop **current, uint32_t budget,
                              int64_t n, int64_t grain,
                              void (*body)(void *arg, int64_t begin, int64_t end, uint32_t worker), void *arg,
                              ortc_status (*stop)(void *stop_arg), void *stop_arg)
{
    ortc_executor_loop l = {
        .n = n, .grain = grain < 1 ? 1 : grain, .body = body, .arg = arg, .stop = stop, .stop_arg = stop_arg};
    if (n <= 0) return ORTC_OK;
    int64_t chunks = n / l.grain + (n % l.grain != 0);
    uint32_t tasks = budget < MAX_TASKS ? budget : MAX_TASKS, number = 0;
    if (tasks > e->threads) tasks = e->threads;
    if (tasks > chunks) tasks = (uint32_t)chunks;
    for (uint32_t i = 0; *current && i < MAX_TASKS; i++)
        if (atomic_load_explicit(&(*current)->threads[i], memory_order_relaxed) == (uintptr_t)pthread_self())
            number = i;
    if (*current || tasks <= 1)
        work(&l, number);
    else {
        *current = &l;
        e->run(e->arg, tasks, task, &l);
        *current = NULL;
    }
    return atomic_load_explicit(&l.status, memory_order_relaxed);
}
