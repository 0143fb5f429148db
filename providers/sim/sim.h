/* providers/sim/sim.h: a device for tests that misbehaves as real ones do, made of nothing but the installed
 * headers.
 *
 * Its memory faults when the host touches it, its queues run behind the caller's back and late, its memory
 * ends, its calls fail when told to, it claims groups of nodes. Its arithmetic is that of ref's kernels,
 * which it runs on its own threads. What passes on it has its copies, waits and host inputs right. C11 and
 * C++17.
 *
 * Options ("sim:memory=1048576:delay=50"):
 *   memory=BYTES   slabs in all; 0: no limit          delay=MICROSECONDS  most that a task waits before it
 *                  runs, at random
 *   fail=N         the N-th kernel fails, once        only=Op+Op+...      takes only nodes of these operators
 *   layout=1       likes channels last in what has a filter, and goes along elsewhere; 2: channels in blocks
 * of 4
 *   claim=N        claims groups of N nodes (Add, Sub, Mul, Relu, MatMul of f32) and compiles them
 */
#ifndef ORTC_SIM_H
#define ORTC_SIM_H

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ortc/provider.h"

typedef struct sim_device {
    const ortc_host *host;
    unsigned long long memory, used; /* under the lock of the slabs */
    unsigned delay;
    int fail, claim, layout;
    char only[256];
} sim_device;

/* memory.c: every slab is mapped twice: where its pointers point to nobody may touch it, and where the device
 * works. */
ortc_status sim_slab_alloc(ortc_device *, uint32_t kind, size_t bytes, void **out);
void sim_slab_free(ortc_device *, uint32_t kind, void *, size_t bytes);
void *sim_real(const void *device_pointer); /* NULL: not in a slab */

/* queue.c: a thread per queue. */
typedef struct sim_task {
    void (*run)(struct sim_task *);
    struct sim_task *next;
    ortc_status status; /* of the run */
    char text[200];
} sim_task;
typedef struct sim_queue sim_queue;
void sim_push(sim_queue *, sim_task *); /* freed after its run */
ortc_status sim_drain(sim_queue *);     /* waits for all, gives the first failure since the last time */
ortc_status sim_queue_create(ortc_device *, void *native, void **out);
void sim_queue_destroy(ortc_device *, void *queue, int32_t native);
ortc_status sim_copy(void *queue, ortc_memory dst, void *to, ortc_memory src, const void *from, size_t bytes);
ortc_status sim_signal(void *queue, void **event);
ortc_status sim_wait(void *queue, void *event);
int32_t sim_query(void *event);
ortc_status sim_capture_begin(void *queue);
ortc_status sim_capture_end(void *queue, void **exec);
ortc_status sim_replay(void *queue, void *exec);
void sim_capture_free(ortc_device *, void *exec);
void sim_event_destroy(ortc_device *, void *event);

/* kernels.c: ref's kernels under the name of sim. */
ortc_status sim_add_kernels(const ortc_host *);
const ortc_kernel *sim_inner(const sim_device *, const ortc_node *, ortc_why *);

/* claim.c */
ortc_status sim_claim(ortc_device *, const ortc_graph *, ortc_status (*take)(void *, const ortc_claim *),
                      void *arg);
ortc_status sim_compile(ortc_device *, const ortc_graph *, const ortc_cache *, const ortc_kernel **out,
                        ortc_why *);

#endif
