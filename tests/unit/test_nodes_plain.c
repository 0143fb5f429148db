/* tests/unit/test_nodes_plain.c: the pool of threads on a made-up machine of two nodes with four cores each:
 * loops that fit into a node stay in it. A plain program, for ThreadSanitizer.
 */
#include <stdio.h>

#include "base/base.h"

static ortc_processors made_up_processors(void);
static uint32_t made_up_node(const ortc_processors *);
static void made_up_stay(const ortc_processors *, uint32_t node, bool also_slow);

/* the pool, on that machine */
#define ortc_pool_for nodes_pool_for
#define ortc_pool_threads nodes_pool_threads
#define ortc_platform_processors made_up_processors
#define ortc_platform_node made_up_node
#define ortc_platform_stay made_up_stay
#include "base/threads.c"

enum { CORES = 8, CALLER = 2 };
static atomic_uint caller_node, n_stay, n_slow;
static _Thread_local uint32_t own_node = CALLER;

static ortc_processors made_up_processors(void)
{
    ortc_processors n = {.threads = CORES, .cores = CORES, .usual = CORES, .n_nodes = 2, .count = CORES};
    n.list = calloc(CORES, sizeof *n.list);
    for (uint32_t i = 0; n.list && i < CORES; i++)
        n.list[i] = (ortc_processor){.number = i, .node = i / 4, .capacity = 1024};
    return n;
}
static uint32_t made_up_node(const ortc_processors *n)
{
    (void)n;
    return atomic_load(&caller_node);
}
static void made_up_stay(const ortc_processors *n, uint32_t node, bool also_slow)
{
    (void)n;
    own_node = node;
    atomic_fetch_add(&n_stay, 1);
    atomic_fetch_add(&n_slow, also_slow);
}

static int n_passed, n_failed;
static void check(bool ok, const char *what)
{
    if (ok)
        n_passed++;
    else
        n_failed++, printf("FAILED: %s\n", what);
}

static atomic_int chunks_of[3], n_there;

/* A chunk waits, for a moment, until as many as there are have begun: so that all who may come do. */
static void meet(void *arg, int64_t begin, int64_t end, uint32_t number)
{
    (void)begin, (void)end, (void)number;
    const int64_t until = ortc_now_ns() + 20000000;
    atomic_fetch_add(&chunks_of[own_node], 1);
    atomic_fetch_add(&n_there, 1);
    while (atomic_load(&n_there) < *(const int *)arg && ortc_now_ns() < until) sched_yield();
}

static void loops(uint32_t node, uint32_t budget)
{
    int n = (int)budget;
    atomic_store(&caller_node, node);
    for (int i = 0; i < 3; i++) atomic_store(&chunks_of[i], 0);
    for (int i = 0; i < 100; i++) {
        atomic_store(&n_there, 0);
        ortc_pool_for(budget, budget, 1, meet, &n, NULL, NULL);
    }
    check(chunks_of[0] + chunks_of[1] + chunks_of[CALLER] == 100 * n, "every chunk is done once");
}

int main(void)
{
    check(ortc_pool_threads(0) == CORES, "a thread for each core of both nodes");
    loops(0, 4);
    check(chunks_of[0] > 0 && chunks_of[1] == 0, "a loop stays in the first node");
    loops(1, 4);
    check(chunks_of[1] > 0 && chunks_of[0] == 0, "a loop stays in the second node");
    loops(0, 5);
    check(chunks_of[1] > 0 && chunks_of[0] == 0, "a loop goes where there are enough workers");
    loops(0, 8);
    check(chunks_of[0] > 0 && chunks_of[1] > 0, "a large loop goes to both");
    check(atomic_load(&n_stay) == CORES - 1 && !atomic_load(&n_slow), "workers stay in their nodes");
    check(pool.gates[0].n_workers == 3 && pool.gates[1].n_workers == 4, "nodes are filled up");
    printf("%d passed, %d failed, 0 skipped\n", n_passed, n_failed);
    return n_failed != 0;
}
