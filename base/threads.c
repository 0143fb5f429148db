/* base/threads.c: the pool of threads.h.
 *
 * Callers publish loops in a small array of slots, dealt in contiguous shares of chunks, one for each thread
 * that may come. Which worker has which share follows from their numbers and the slot's, so nobody counts or
 * races: a worker that finds a slot with a share for it says in that share that it is in, and then looks
 * whether the slot is open; the caller closes the slot when no chunk is left, and then waits for every share
 * until nobody is in. Both orders are sequentially consistent: a worker that saw the slot open is waited for,
 * so it never reads a loop that is being written. What it read before it was in are hints; it reads them
 * again.
 *
 * Parking: workers wait on the futex word `epoch`, which every publication increments. A worker announces
 * itself in `parked` before it sleeps and the publisher reads `parked` after it incremented, both
 * sequentially consistent: either the publisher wakes it, or the kernel sees that the word has changed.
 * Before that it stays awake for a while, so that loops and runs that follow each other wake nobody.
 *
 * Nodes: where a machine has memory in several nodes, workers stay on the processors of one each, and have a
 * gate (epoch, parked) for each node. A loop that the caller's node has workers enough for is told to those
 * alone, one that any other node has enough for to that one, others to all: so the loops of a session that
 * fits into a node stay in it for as long as its caller does. While performance cores are enough, workers
 * stay on those.
 *
 * What one thread writes while others read or write beside it has a line of cache of its own, or a pair of
 * them, which some processors fetch together: on many cores a loop costs as many passes of lines as it makes
 * threads wait for, of 50 to 300 ns each. A worker that finds its work writes to its own share alone, when it
 * comes, takes chunks and leaves, so that workers do all that side by side; where they joined by one word,
 * one after the other, a loop on 8 and 16 threads took 2.5 and 5 us.
 *
 * A thread finishes its own share, the same in every loop of the whole pool, and then helps with others',
 * unless each has a single chunk and nobody was asleep: what is left then is the caller's to find. So loops
 * that follow each other over the same data find it in the caches of the thread that wrote it, and threads
 * seldom write to one counter. On a virtual machine whose two cores share no cache (a line passes in 200 ns)
 * one counter for all cost a 512-cubed product 10 % of its time.
 *
 * There is no lock and no thread-local state: a thread that loops inside a loop is recognised by its id, and
 * only while some loop is open. Who finds the pool being started, or all slots taken, does its loop alone.
 */
#include "threads.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SPIN_NS 100000
enum { OPEN = 1, SLEEPS = 2 }; /* a slot's control: it is open; its caller sleeps */

#define APART _Alignas(128)

enum { N_LOOPS = 16, MAX_THREADS = 1024, STACK_BYTES = 512 << 10 };
enum { POOL_NONE, POOL_STARTING, POOL_READY };

typedef struct share {
    APART atomic_llong next; /* its first chunk not taken; from `end` on: none is left */
    int64_t end;
    atomic_uint in; /* workers that are: its own, and for a moment who took it for theirs */
} share;

typedef struct loop {
    APART atomic_uint control;
    atomic_uint n_shares;
    atomic_uint first;     /* worker, whose share 1 is; the others are of those behind it, in a circle, */
    atomic_uint node;      /* of that node; EVERY_NODE: of all */
    APART atomic_int open; /* shares with chunks left; not above 0 also once the loop is stopped */
    /* from here on written by the owner, while no worker is in the loop */
    APART atomic_uintptr_t owner; /* 0: the slot is free */
    int64_t n, grain, n_chunks;
    bool helped; /* workers go on with others' shares; else `open` is not counted */
    void (*body)(void *arg, int64_t begin, int64_t end, uint32_t worker);
    void *arg;
    ortc_status (*stop)(void *stop_arg);
    void *stop_arg;
    atomic_int status; /* by anybody, when it is stopped */
    share shares[MAX_THREADS];
} loop;

typedef struct worker {
    APART atomic_uintptr_t thread; /* const once it runs */
    uint32_t node, rank;           /* const: whose gate it waits at, and which of those it is */
    APART uint32_t number, last; /* in the loop that it works on, in the one before; its own thread's only */
} worker;

/* Where workers of one node wait. */
typedef struct gate {
    APART atomic_uint epoch;
    atomic_uint latest;                           /* the slot that was published last, where to look first */
    uint32_t n_workers;                           /* const once the state is POOL_READY */
    APART atomic_ullong parked[MAX_THREADS / 64]; /* a bit for each that sleeps, by rank */
} gate;

#define EVERY_NODE UINT32_MAX

static struct {
    atomic_int state;
    atomic_uint usual, most, size; /* threads, the caller included; usual 0: not asked yet */
    ortc_processors processors;    /* const once `usual` is known */
    uint32_t n_workers;            /* started; const once the state is POOL_READY */
    worker *workers;
    APART atomic_uint n_loops; /* slots taken; callers' business */
    gate gates[ORTC_MAX_NODES];
    loop loops[N_LOOPS];
} pool;

/* ---- Waiting ------------------------------------------------------------------------------------------- */

static void pause_a_little(void)
{
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Waiters are woken whose bits are among those that are called. */
static void futex_wait(atomic_uint *word, unsigned expected, uint32_t bits)
{
    syscall(SYS_futex, word, FUTEX_WAIT_BITSET_PRIVATE, expected, NULL, NULL, bits);
}

static void futex_wake(atomic_uint *word, uint32_t bits)
{
    syscall(SYS_futex, word, FUTEX_WAKE_BITSET_PRIVATE, INT_MAX, NULL, NULL, bits);
}

/* ---- Working ------------------------------------------------------------------------------------------- */

/* Takes chunks of a share until there are none. false: the loop was stopped. */
static bool work_share(loop *l, share *s, uint32_t number)
{
    for (;;) {
        if (atomic_load_explicit(&l->open, memory_order_relaxed) <= 0 ||
            atomic_load_explicit(&s->next, memory_order_relaxed) >= s->end)
            return true;
        int64_t chunk = atomic_fetch_add_explicit(&s->next, 1, memory_order_relaxed), begin, end;
        int expected = ORTC_OK;

        if (chunk >= s->end) return true;
        if (chunk == s->end - 1 && l->helped) /* the last: whoever looks for work need not look here */
            if (atomic_fetch_sub_explicit(&l->open, 1, memory_order_relaxed) <= 0) return false;
        if (l->stop) {
            ortc_status status = l->stop(l->stop_arg);
            if (status != ORTC_OK) {
                atomic_compare_exchange_strong(&l->status, &expected, status);
                atomic_store_explicit(&l->open, INT_MIN / 2, memory_order_relaxed);
                return false;
            }
        }
        begin = chunk * l->grain;
        end = l->n - begin < l->grain ? l->n : begin + l->grain;
        l->body(l->arg, begin, end, number);
    }
}

/* The share `own`, then what is left of the others. */
static void work(loop *l, uint32_t own, uint32_t n_shares)
{
    for (uint32_t i = 0; i < n_shares; i++)
        if (!work_share(l, &l->shares[(own + i) % n_shares], own)) return;
}

static void deal(loop *l, uint32_t n_shares)
{
    for (uint32_t i = 0; i < n_shares; i++) { /* without a product of n_chunks, which may be large */
        /* the last chunks may be less than others: who has those gets one more */
        int64_t each = l->n_chunks / n_shares, less = n_shares - l->n_chunks % n_shares;
        atomic_store_explicit(&l->shares[i].next, each * i + (i > less ? i - less : 0), memory_order_relaxed);
        l->shares[i].end = each * (i + 1) + (i + 1 > less ? i + 1 - less : 0);
    }
    atomic_store_explicit(&l->open, (int)n_shares, memory_order_relaxed);
}

/* Which share a loop has for a worker; 0: none. A hint, unless the worker is in the loop. */
static uint32_t share_of(const loop *l, const worker *self)
{
    const uint32_t node = atomic_load_explicit(&l->node, memory_order_relaxed),
                   first = atomic_load_explicit(&l->first, memory_order_relaxed),
                   n_shares = atomic_load_explicit(&l->n_shares, memory_order_relaxed);
    if (node != EVERY_NODE && node != self->node) return 0;
    const uint32_t at = node == EVERY_NODE ? (uint32_t)(self - pool.workers) : self->rank,
                   all = node == EVERY_NODE ? pool.n_workers : pool.gates[node].n_workers,
                   own = (at >= first ? at - first : at + all - first) + 1;
    return own < n_shares ? own : 0;
}

static void leave(loop *l, uint32_t own)
{
    atomic_fetch_sub(&l->shares[own].in, 1);
    unsigned sleeps = SLEEPS; /* the word changes, so that who is about to sleep does not */
    if (atomic_load(&l->control) == SLEEPS && atomic_compare_exchange_strong(&l->control, &sleeps, 0))
        futex_wake(&l->control, UINT32_MAX);
}

/* Works on a loop if it is open and has a share for this worker. */
static void join(loop *l, worker *self)
{
    const uint32_t own = share_of(l, self);
    if (!own) return;
    self->last = own;
    atomic_fetch_add(&l->shares[own].in, 1);
    if ((atomic_load(&l->control) & OPEN) && share_of(l, self) == own) {
        __builtin_prefetch(l->arg);
        self->number = own;
        if (l->helped)
            work(l, own, atomic_load_explicit(&l->n_shares, memory_order_relaxed));
        else
            work_share(l, &l->shares[own], own);
        self->number = 0;
    }
    leave(l, own);
}

static void look_for_work(worker *self, unsigned first)
{
    /* what is needed soon comes at the same time */
    loop *likely = &pool.loops[first];
    __builtin_prefetch(&likely->control);
    __builtin_prefetch(&likely->shares[self->last], 1);
    __builtin_prefetch(&likely->open);
    __builtin_prefetch(&likely->owner);
    for (unsigned i = 0; i < N_LOOPS; i++) {
        loop *l = &pool.loops[(first + i) % N_LOOPS];
        /* Only where chunks are left: a worker that came to nothing would just delay the caller. Acquire: who
         * opened it has seen the pool started, all workers counted, and so has this one then. */
        if ((atomic_load_explicit(&l->control, memory_order_acquire) & OPEN) &&
            atomic_load_explicit(&l->open, memory_order_relaxed) > 0)
            join(l, self);
    }
}

/* Until another loop is published: a while awake, then asleep. */
static void wait_for_epoch(gate *g, unsigned seen, uint32_t rank)
{
    const unsigned long long bit = 1ull << rank % 64;
    int64_t begun = 0;

    for (unsigned i = 0; atomic_load_explicit(&g->epoch, memory_order_acquire) == seen; i++) {
        if (i % 64 == 0) {
            int64_t now = ortc_now_ns();
            if (!begun) begun = now;
            if (now - begun > SPIN_NS) break;
        }
        pause_a_little();
    }
    while (atomic_load_explicit(&g->epoch, memory_order_acquire) == seen) {
        atomic_fetch_or(&g->parked[rank / 64], bit);
        futex_wait(&g->epoch, seen, (uint32_t)1 << rank % 32);
        atomic_fetch_and(&g->parked[rank / 64], ~bit);
    }
}

static void *worker_main(void *arg)
{
    worker *self = arg;
    gate *g = &pool.gates[self->node];
    const ortc_processors *p = &pool.processors;

    if (p->n_nodes > 1 || p->usual < p->cores)
        ortc_platform_stay(p, self->node, atomic_load(&pool.size) > p->usual);
    atomic_store(&self->thread, (uintptr_t)pthread_self());
    pthread_setname_np(pthread_self(), "ortc"); /* by another thread it would go through a file */
    ortc_fp_enter();                            /* the creator's environment was inherited */
    for (;;) {
        unsigned epoch = atomic_load(&g->epoch);
        look_for_work(self, atomic_load_explicit(&g->latest, memory_order_relaxed));
        wait_for_epoch(g, epoch, self->rank);
    }
    return NULL;
}

/* ---- Starting ------------------------------------------------------------------------------------------ */

/* How many threads there are to be, of which processors. */
static void ask(void)
{
    ortc_processors n = ortc_platform_processors();
    const char *text = getenv("ORTC_THREADS");
    unsigned none = 0;

    pool.processors = n;
    if (text) {
        char *end;
        const long wanted = strtol(text, &end, 10);
        if (end != text && *end == 0 && wanted > 0)
            n.usual = n.threads = wanted > MAX_THREADS ? MAX_THREADS : (uint32_t)wanted;
        else
            ortc_log(ORTC_LOG_WARNING, "ORTC_THREADS is '%s': expected a number of at least 1; using %u",
                     text, n.usual);
    }
    if (n.usual > MAX_THREADS) n.usual = MAX_THREADS;
    if (n.threads > MAX_THREADS) n.threads = MAX_THREADS;
    atomic_store(&pool.most, n.threads);
    atomic_compare_exchange_strong(&pool.size, &none, n.usual);
    atomic_store(&pool.usual, n.usual);
}

uint32_t ortc_pool_threads(uint32_t wanted)
{
    static pthread_once_t asked = PTHREAD_ONCE_INIT;
    if (wanted == 1) return 1; /* whatever the machine has, of which a dozen files tell */
    if (!atomic_load(&pool.usual)) pthread_once(&asked, ask);
    const uint32_t usual = atomic_load(&pool.usual);
    if (!wanted) return usual;
    const uint32_t most = atomic_load(&pool.most);
    unsigned size = atomic_load(&pool.size);
    if (wanted > most) wanted = most;
    while (wanted > size && atomic_load(&pool.state) == POOL_NONE)
        if (atomic_compare_exchange_weak(&pool.size, &size, wanted)) size = wanted;
    return wanted < size ? wanted : size;
}

/* In a forked child no worker exists. Their stacks are lost with them; the array of them is made anew. */
static void after_fork(void)
{
    for (int i = 0; i < N_LOOPS; i++) {
        atomic_store(&pool.loops[i].control, 0);
        atomic_store(&pool.loops[i].open, 0);
        atomic_store(&pool.loops[i].owner, 0);
        for (uint32_t k = 0; k <= pool.n_workers; k++) atomic_store(&pool.loops[i].shares[k].in, 0);
    }
    atomic_store(&pool.n_loops, 0);
    for (int i = 0; i < ORTC_MAX_NODES; i++) {
        for (int k = 0; k < MAX_THREADS / 64; k++) atomic_store(&pool.gates[i].parked[k], 0);
        pool.gates[i].n_workers = 0;
    }
    pool.n_workers = 0;
    atomic_store(&pool.state, POOL_NONE);
}

/* How many threads a node is good for, in a pool of `size`: performance cores while those are enough, then
 * cores, then processors. */
static uint32_t room_in(uint32_t node, uint32_t size)
{
    const ortc_processors *p = &pool.processors;
    uint32_t n = 0;
    for (uint32_t i = 0; i < p->count; i++)
        n += p->list[i].node == node && (size > p->cores || !p->list[i].sibling) &&
             (size > p->usual || !p->list[i].slow);
    return n;
}

/* Whose worker comes next: the caller's node is filled up first, which the caller takes a place in. */
static uint32_t next_node(uint32_t home, uint32_t size)
{
    if (pool.gates[home].n_workers + 1 < room_in(home, size)) return home;
    for (uint32_t i = 0; i < pool.processors.n_nodes; i++)
        if (i != home && pool.gates[i].n_workers < room_in(i, size)) return i;
    return home;
}

static bool start_worker(worker *w, uint32_t node, const pthread_attr_t *attributes)
{
    pthread_t thread;
    w->node = node;
    w->rank = pool.gates[node].n_workers;
    w->last = w->rank + 1;
    if (pthread_create(&thread, attributes, worker_main, w) != 0) return false;
    pool.gates[node].n_workers++;
    pool.n_workers++;
    return true;
}

/* Workers are detached and never end: an idle one costs nothing, and the process ends without them. */
static void start_workers(uint32_t n)
{
    pthread_attr_t attributes;
    sigset_t all, before;
    const uint32_t home = ortc_platform_node(&pool.processors);

    /* the one before a fork is left to the parent */
    pool.workers = aligned_alloc(_Alignof(worker), n * sizeof *pool.workers);
    if (!pool.workers || pthread_attr_init(&attributes) != 0) return;
    memset(pool.workers, 0, n * sizeof *pool.workers);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, STACK_BYTES);
    /* Signals are the application's threads' business. */
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (pool.n_workers < n &&
           start_worker(&pool.workers[pool.n_workers], next_node(home, n + 1), &attributes))
        ;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    if (pool.n_workers < n)
        ortc_log(ORTC_LOG_WARNING, "%u of %u worker threads could be started", pool.n_workers, n);
}

static bool pool_ready(void)
{
    static atomic_bool registered;
    int expected = POOL_NONE;

    if (atomic_load_explicit(&pool.state, memory_order_acquire) == POOL_READY) return true;
    if (!atomic_compare_exchange_strong(&pool.state, &expected, POOL_STARTING)) return expected == POOL_READY;
    if (!atomic_exchange(&registered, true)) pthread_atfork(NULL, NULL, after_fork);
    start_workers(atomic_load(&pool.size) - 1);
    atomic_store_explicit(&pool.state, POOL_READY, memory_order_release);
    return true;
}

/* ---- Loops --------------------------------------------------------------------------------------------- */

static ortc_status run_serially(int64_t n, int64_t grain, uint32_t number,
                                void (*body)(void *arg, int64_t begin, int64_t end, uint32_t worker),
                                void *arg, ortc_status (*stop)(void *stop_arg), void *stop_arg)
{
    for (int64_t begin = 0; begin < n; begin += grain) {
        if (stop) ORTC_TRY(stop(stop_arg));
        if (n - begin <= grain) {
            body(arg, begin, n, number);
            break;
        }
        body(arg, begin, begin + grain, number);
    }
    return ORTC_OK;
}

/* Whether this thread is inside a loop already, and as which worker. */
static bool inside(uint32_t *out_number)
{
    uintptr_t self = (uintptr_t)pthread_self();

    /* Acquire: who counted a loop has seen the pool started, and so do we then. */
    if (atomic_load_explicit(&pool.n_loops, memory_order_acquire) == 0) return false;
    for (int i = 0; i < N_LOOPS; i++)
        if (atomic_load_explicit(&pool.loops[i].owner, memory_order_relaxed) == self) return true;
    for (uint32_t i = 0; i < pool.n_workers; i++)
        if (atomic_load_explicit(&pool.workers[i].thread, memory_order_relaxed) == self) {
            *out_number = pool.workers[i].number;
            return true;
        }
    return false;
}

/* alone: whether no other loop was open. */
static loop *take_slot(bool *alone)
{
    uintptr_t self = (uintptr_t)pthread_self();
    for (int i = 0; i < N_LOOPS; i++) {
        uintptr_t expected = 0;
        if (atomic_load_explicit(&pool.loops[i].owner, memory_order_relaxed) == 0 &&
            atomic_compare_exchange_strong(&pool.loops[i].owner, &expected, self)) {
            *alone = atomic_fetch_add(&pool.n_loops, 1) == 0;
            return &pool.loops[i];
        }
    }
    return NULL;
}

/* The node whose workers are enough: the caller's, or the one that has most; EVERY_NODE: none has. */
static uint32_t choose_node(uint32_t wanted)
{
    if (pool.processors.n_nodes == 1) return 0;
    uint32_t most = ortc_platform_node(&pool.processors);
    if (pool.gates[most].n_workers >= wanted) return most;
    for (uint32_t i = 0; i < pool.processors.n_nodes; i++)
        if (pool.gates[i].n_workers > pool.gates[most].n_workers) most = i;
    return pool.gates[most].n_workers >= wanted ? most : EVERY_NODE;
}

/* Whether a worker of a node sleeps. */
static bool some_sleep(const gate *g)
{
    for (uint32_t i = 0; i < (g->n_workers + 63) / 64; i++)
        if (atomic_load(&g->parked[i])) return true;
    return false;
}

/* Tells a node's workers of a loop, and wakes those that sleep of n from `first` on, in a circle. */
static void tell(gate *g, const loop *l, uint32_t first, uint32_t n)
{
    uint32_t bits = 0;
    atomic_store_explicit(&g->latest, (unsigned)(l - pool.loops), memory_order_relaxed);
    atomic_fetch_add(&g->epoch, 1);
    if (!some_sleep(g)) return;
    for (uint32_t i = 0; i < n; i++) {
        const uint32_t rank = (first + i) % g->n_workers;
        if (atomic_load(&g->parked[rank / 64]) >> rank % 64 & 1) bits |= (uint32_t)1 << rank % 32;
    }
    if (bits) futex_wake(&g->epoch, bits);
}

/* Closes the slot and waits for those who are still in their last chunks. */
static void close_slot(loop *l, uint32_t n_shares)
{
    int64_t begun = 0;

    for (uint32_t i = 1; i < n_shares; i++) __builtin_prefetch(&l->shares[i]);
    atomic_store(&l->control, 0);
    for (uint32_t i = 1, turns = 0; i < n_shares; turns++) {
        if (!atomic_load(&l->shares[i].in)) {
            i++;
            continue;
        }
        pause_a_little();
        if (turns % 64 == 63) {
            int64_t now = ortc_now_ns();
            if (!begun) begun = now;
            if (now - begun > SPIN_NS) {
                atomic_store(&l->control, SLEEPS);
                if (atomic_load(&l->shares[i].in)) futex_wait(&l->control, SLEEPS, UINT32_MAX);
            }
        }
    }
    atomic_fetch_sub(&pool.n_loops, 1);
    atomic_store_explicit(&l->owner, 0, memory_order_release);
}

ortc_status ortc_pool_for(uint32_t budget, int64_t n, int64_t grain,
                          void (*body)(void *arg, int64_t begin, int64_t end, uint32_t worker), void *arg,
                          ortc_status (*stop)(void *stop_arg), void *stop_arg)
{
    uint32_t number = 0;
    int64_t n_chunks;
    bool alone;
    loop *l;

    if (n <= 0) return ORTC_OK;
    if (grain < 1) grain = 1;
    n_chunks = n / grain + (n % grain != 0);
    if (budget <= 1) return run_serially(n, grain, 0, body, arg, stop, stop_arg);
    if (inside(&number) || n_chunks == 1 || ortc_pool_threads(budget) == 1 || !pool_ready() ||
        pool.n_workers == 0 || !(l = take_slot(&alone)))
        return run_serially(n, grain, number, body, arg, stop, stop_arg);

    uint32_t n_shares = budget < n_chunks ? budget : (uint32_t)n_chunks;
    const uint32_t node = choose_node(n_shares - 1),
                   workers = node == EVERY_NODE ? pool.n_workers : pool.gates[node].n_workers;
    n_shares = n_shares < workers + 1 ? n_shares : workers + 1;
    /* those of callers beside each other are others */
    const uint32_t first = (uint32_t)(l - pool.loops) * (n_shares - 1) % workers;
    l->n = n;
    l->grain = grain;
    l->n_chunks = n_chunks;
    l->body = body;
    l->arg = arg;
    l->stop = stop;
    l->stop_arg = stop_arg;
    l->helped = n_chunks > n_shares || node == EVERY_NODE || !alone || some_sleep(&pool.gates[node]);
    atomic_store_explicit(&l->status, ORTC_OK, memory_order_relaxed);
    atomic_store_explicit(&l->node, node, memory_order_relaxed);
    atomic_store_explicit(&l->first, first, memory_order_relaxed);
    atomic_store_explicit(&l->n_shares, n_shares, memory_order_relaxed);
    deal(l, n_shares);
    atomic_store_explicit(&l->control, OPEN, memory_order_release);
    if (node == EVERY_NODE)
        for (uint32_t i = 0; i < pool.processors.n_nodes; i++)
            tell(&pool.gates[i], l, 0, pool.gates[i].n_workers);
    else
        tell(&pool.gates[node], l, first, n_shares - 1);
    work(l, 0, n_shares);
    close_slot(l, n_shares);
    return atomic_load_explicit(&l->status, memory_order_relaxed);
}
