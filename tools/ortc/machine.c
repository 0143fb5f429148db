/* tools/ortc/machine.c: peak arithmetic and bandwidth, on every thread at once; see machine.h. */
#include "machine.h"

#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "peak.h"

enum { MOST_THREADS = 256, TRIES = 5, WORDS = 4 << 20 /* of a thread: 32 MiB */, SUMS = 8 };

typedef struct worker {
    pthread_t thread;
    pthread_mutex_t *gate; /* open when it is known how many there are */
    pthread_barrier_t *together;
    uint64_t *words;
    uint64_t sum;
    uint32_t isas;
    float sink;
    double done; /* operations of the last try */
    double start, end;
} worker;

static void read_all(worker *w)
{
    uint64_t sums[SUMS] = {0}; /* so that no addition waits for the one before */
    for (size_t i = 0; i < WORDS; i += SUMS)
        for (size_t k = 0; k < SUMS; k++) sums[k] += w->words[i + k];
    for (size_t k = 0; k < SUMS; k++) w->sum += sums[k];
}

static void *work(void *arg)
{
    worker *w = arg;
    pthread_mutex_lock(w->gate);
    pthread_mutex_unlock(w->gate);
    memset(w->words, 1, WORDS * sizeof *w->words);
    for (int i = 0; i < 2 * TRIES; i++) {
        pthread_barrier_wait(w->together);
        w->start = seconds_now();
        if (i < TRIES)
            w->done = peak_f32(w->isas, w->isas ? 1e9 : 1e8, &w->sink);
        else
            read_all(w);
        w->end = seconds_now();
        pthread_barrier_wait(w->together);
    }
    return NULL;
}

/* $ORTC_CPU holds for the measure, too: kernels are held against what they may use. */
static uint32_t allowed(void)
{
    const char *level = getenv("ORTC_CPU");
    if (!level || !*level) return peak_isas();
    return strcmp(level, "scalar") == 0 ? 0
           : strcmp(level, "avx2") == 0 ? peak_isas() & PEAK_AVX2
                                        : peak_isas();
}

static uint32_t processors(void)
{
    cpu_set_t set;
    const char *limit = getenv("ORTC_THREADS");
    int64_t n = limit && *limit ? strtoll(limit, NULL, 10) : 0;
    if (n < 1) n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > MOST_THREADS ? MOST_THREADS : (uint32_t)n;
}

/* From the first that starts to the last that ends, by their own clocks: this thread may be late. */
static void measure(worker *w, uint32_t n, pthread_barrier_t *together, machine *out)
{
    for (int i = 0; i < 2 * TRIES; i++) {
        pthread_barrier_wait(together);
        pthread_barrier_wait(together);
        double flops = 0, start = w[0].start, end = w[0].end;
        for (uint32_t k = 0; k < n; k++) {
            flops += w[k].done;
            if (w[k].start < start) start = w[k].start;
            if (w[k].end > end) end = w[k].end;
        }
        const double amount = i < TRIES ? flops : (double)n * WORDS * sizeof(uint64_t);
        double *best = i < TRIES ? &out->flops : &out->bandwidth;
        if (end > start && amount / (end - start) > *best) *best = amount / (end - start);
    }
}

void machine_measure(uint32_t threads, machine *out)
{
    const uint32_t most = processors(), wanted = threads && threads < most ? threads : most;
    worker *w = mem_alloc(wanted * sizeof *w);
    pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
    pthread_barrier_t together;
    uint32_t n = 0;
    *out = (machine){0};
    pthread_mutex_lock(&gate);
    for (; n < wanted; n++) {
        w[n] = (worker){.gate = &gate, .together = &together, .isas = allowed()};
        w[n].words = mem_grow(NULL, WORDS, sizeof(uint64_t));
        if (pthread_create(&w[n].thread, NULL, work, &w[n]) != 0) break;
    }
    pthread_barrier_init(&together, NULL, n + 1);
    pthread_mutex_unlock(&gate);
    out->threads = n;
    if (n) measure(w, n, &together, out);
    for (uint32_t i = 0; i < n; i++) pthread_join(w[i].thread, NULL);
    for (uint32_t i = 0; i < wanted; i++) free(w[i].words);
    pthread_barrier_destroy(&together);
    free(w);
}

double machine_floor(const machine *m, double flops, double bytes)
{
    const double a = m->flops > 0 ? flops / m->flops : 0, b = m->bandwidth > 0 ? bytes / m->bandwidth : 0;
    return a > b ? a : b;
}
