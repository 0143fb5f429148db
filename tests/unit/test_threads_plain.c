/* tests/unit/test_threads_plain.c: the pool of threads. A plain program: Criterion does not start reliably
 * under ThreadSanitizer. Set ORTC_THREADS to have more workers than processors.
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/threads.h"

static int n_passed, n_failed;

static void check(bool ok, const char *what)
{
    if (ok)
        n_passed++;
    else
        n_failed++, printf("FAILED: %s\n", what);
}

enum { N = 10000 };
static atomic_int hits[N], busy[64];
static atomic_int n_clashes, n_wrong;

static void hit(void *arg, int64_t begin, int64_t end, uint32_t worker)
{
    if (worker >= 64 || atomic_exchange(&busy[worker], 1)) {
        atomic_fetch_add(&n_clashes, 1);
        return;
    }
    if (begin % 37 != 0 || (end != begin + 37 && end != N)) atomic_fetch_add(&n_wrong, 1);
    for (; begin < end; begin++) atomic_fetch_add_explicit(&hits[begin], 1, memory_order_relaxed);
    atomic_store(&busy[worker], 0);
}

static void every_element_once(uint32_t budget)
{
    enum { ROUNDS = 300 };
    bool ok = true;
    for (int i = 0; i < N; i++) atomic_store(&hits[i], 0);
    for (int i = 0; i < ROUNDS; i++) ortc_pool_for(budget, N, 37, hit, NULL, NULL, NULL);
    for (int i = 0; i < N; i++) ok &= atomic_load(&hits[i]) == ROUNDS;
    check(ok, "every element is visited once");
    check(atomic_load(&n_wrong) == 0, "chunks depend on n and grain only");
    check(atomic_load(&n_clashes) == 0, "no two chunks at a time have one worker");
}

static void add(void *arg, int64_t begin, int64_t end, uint32_t worker)
{
    atomic_fetch_add((atomic_int *)arg, (int)(end - begin));
}

static void inner(void *arg, int64_t begin, int64_t end, uint32_t worker)
{
    if (worker != *(uint32_t *)arg) atomic_fetch_add(&n_wrong, 1);
}
static void outer(void *arg, int64_t begin, int64_t end, uint32_t worker)
{
    ortc_pool_for(4, 50, 3, inner, &worker, NULL, NULL);
}

static atomic_int n_asked;
static ortc_status stop_after(void *arg)
{
    return atomic_fetch_add(&n_asked, 1) >= *(int *)arg ? ORTC_CANCELLED : ORTC_OK;
}

static void visit(void *arg, int64_t begin, int64_t end, uint32_t worker)
{
    for (; begin < end; begin++) atomic_fetch_add(&((atomic_int *)arg)[begin], 1);
}

static void *many_loops(void *arg)
{
    bool ok = true;
    for (int i = 0; i < 1000; i++) {
        atomic_int sum = 0;
        ok &= ortc_pool_for(3, 100, 3, add, &sum, NULL, NULL) == ORTC_OK && atomic_load(&sum) == 100;
    }
    return ok ? NULL : &n_wrong;
}

/* Of any size, grain and budget, now and then after a pause in which workers fall asleep. */
static void *loops_of_all_sorts(void *arg)
{
    enum { LOOPS = 60000, MOST = 512 };
    atomic_int visits[MOST];
    uint32_t random = *(uint32_t *)arg;
    bool ok = true;
    for (int i = 0; i < LOOPS && ok; i++) {
        random = random * 1664525 + 1013904223;
        const int n = 1 + (int)((random >> 8) % (random >> 4 & 1 ? 16 : MOST));
        for (int k = 0; k < n; k++) atomic_init(&visits[k], 0);
        ortc_pool_for(1 + (random >> 20) % 16, n, 1 + (random >> 12) % 3, visit, visits, NULL, NULL);
        for (int k = 0; k < n; k++) ok &= atomic_load(&visits[k]) == 1;
        const struct timespec nap = {.tv_nsec = 150000};
        if (random % 997 == 0) nanosleep(&nap, NULL);
    }
    return ok ? NULL : &n_wrong;
}

static double processor_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

int main(void)
{
    atomic_int sum = 0;
    pthread_t threads[20]; /* more than there are slots for loops */
    int limit = 5, status;
    void *result;
    bool ok = true;

    check(ortc_pool_for(4, 0, 1, add, &sum, NULL, NULL) == ORTC_OK && sum == 0, "no elements, no work");
    check(ortc_pool_for(1, 10, 3, add, &sum, NULL, NULL) == ORTC_OK && sum == 10, "a budget of one");
    for (uint32_t budget = 1; budget <= 8; budget *= 2) every_element_once(budget);
    ortc_pool_for(4, 200, 1, outer, NULL, NULL, NULL);
    check(atomic_load(&n_wrong) == 0, "a loop in a loop keeps the worker's number");

    check(ortc_pool_for(4, 1000, 1, add, &sum, stop_after, &limit) == ORTC_CANCELLED,
          "a loop can be stopped");
    check(atomic_load(&sum) <= 10 + 5 + 4, "and stops soon");

    for (size_t i = 0; i < ORTC_LENGTH(threads); i++) pthread_create(&threads[i], NULL, many_loops, NULL);
    for (size_t i = 0; i < ORTC_LENGTH(threads); i++) {
        pthread_join(threads[i], &result);
        ok &= !result;
    }
    check(ok, "loops of many threads at once");
    uint32_t seeds[3] = {1, 2, 3};
    for (size_t i = 0; i < ORTC_LENGTH(seeds); i++)
        pthread_create(&threads[i], NULL, loops_of_all_sorts, &seeds[i]);
    for (size_t i = 0; i < ORTC_LENGTH(seeds); i++) {
        pthread_join(threads[i], &result);
        ok &= !result;
    }
    check(ok, "loops of all sorts");

    struct timespec nap = {.tv_nsec = 20000000};
    nanosleep(&nap, NULL);
    double before = processor_seconds();
    nap.tv_nsec = 300000000;
    nanosleep(&nap, NULL);
    check(processor_seconds() - before < 0.05, "an idle pool takes no processor time");

#if !defined(__SANITIZE_THREAD__) /* which cannot start threads after a fork */
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) _exit(many_loops(NULL) ? 1 : 0);
    check(child > 0 && waitpid(child, &status, 0) == child && status == 0,
          "a forked child has a pool of its own");
    check(many_loops(NULL) == NULL, "and the parent keeps its own");
#else
    (void)status;
#endif
    printf("%d passed, %d failed, 0 skipped\n", n_passed, n_failed);
    return n_failed != 0;
}
