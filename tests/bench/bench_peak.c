/* tests/bench/bench_peak.c: what the machine gives: bench_peak THREADS prints GFLOP/s of fused
 * multiply-adds on registers and GB/s of reading 256 MiB a thread, both the best of several tries with all
 * threads at work, from when the first begins until the last ends by their own clocks. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "kernels/common/cpu_features.h"
#include "tools/ortc/peak.h"

enum { TRIES = 7, MOST = 256, WORDS = 32 << 20 };

typedef struct work {
    pthread_t thread;
    pthread_barrier_t *together;
    uint64_t *words;
    double begin[2 * TRIES], end[2 * TRIES]; /* seconds */
    float sink;
    uint64_t sum;
} work;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *do_work(void *arg)
{
    work *w = arg;
    for (int i = 0; i < WORDS; i++) w->words[i] = 1;
    for (int i = 0; i < 2 * TRIES; i++) {
        pthread_barrier_wait(w->together);
        w->begin[i] = seconds();
        if (i % 2 == 0)
            peak_f32(ortc_cpu_features(), 2e9, &w->sink);
        else
            for (int k = 0; k < WORDS; k += 8) { /* a cache line; eight sums, so that nothing waits */
                uint64_t s = 0;
                for (int l = 0; l < 8; l++) s += w->words[k + l];
                w->sum += s;
            }
        w->end[i] = seconds();
    }
    return NULL;
}

int main(int argc, char **argv)
{
    static work w[MOST];
    const int n = argc > 1 ? atoi(argv[1]) : 1;
    double best[2] = {0};
    pthread_barrier_t together;
    if (n < 1 || n > MOST || pthread_barrier_init(&together, NULL, (unsigned)n)) return 2;
    for (int i = 0; i < n; i++) {
        w[i].together = &together;
        if (!(w[i].words = malloc(WORDS * sizeof(uint64_t)))) return 1;
        if (pthread_create(&w[i].thread, NULL, do_work, &w[i])) return 1;
    }
    for (int i = 0; i < n; i++) pthread_join(w[i].thread, NULL);
    for (int i = 0; i < 2 * TRIES; i++) {
        double begin = w[0].begin[i], end = w[0].end[i];
        for (int k = 1; k < n; k++) {
            begin = w[k].begin[i] < begin ? w[k].begin[i] : begin;
            end = w[k].end[i] > end ? w[k].end[i] : end;
        }
        const double rate = n * (i % 2 ? WORDS * 8.0 : 2e9) / (end - begin) * 1e-9;
        if (rate > best[i % 2]) best[i % 2] = rate;
    }
    printf("%.1f %.1f\n", best[0], best[1]);
    return w[0].sink == 1 && w[0].sum == 1; /* never; so that nothing is left out */
}
