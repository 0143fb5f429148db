/* tests/session/concurrency.c: one model, two sessions, eight threads, three batch sizes, random cancels:
 * every result that comes is the one that a single thread computed; and a run outlives the last reference to
 * its session that others hold. A plain program: it runs under ThreadSanitizer. usage: concurrency
 * digits.onnx
 */
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ortc/ortc.h"

enum { THREADS = 8, RUNS = 60, SIZES = 3, SESSIONS = 2 };
static const int64_t batches[SIZES] = {1, 3, 8};
static ortc_session *sessions[SESSIONS];
static float input[8 * 64], expected[SIZES][8 * 10];
static int failures[THREADS], runs_done[THREADS], cancelled[THREADS];

static ortc_status run(ortc_session *s, int size, ortc_cancel *cancel, const ortc_profiler *profiler,
                       float *result, ortc_error *e)
{
    int64_t dims[4] = {batches[size], 1, 8, 8};
    ortc_in in = {"image", ortc_wrap(input, ORTC_F32, 4, dims)};
    ortc_out out = {"probabilities", NULL, 0, 0};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = &in;
    a.n_in = 1;
    a.out = &out;
    a.n_out = 1;
    a.cancel = cancel;
    a.profiler = profiler;
    ortc_status status = ortc_run(s, &a, e);
    if (status == ORTC_OK) memcpy(result, ortc_value_host(out.value), ortc_value_bytes(out.value));
    ortc_value_release(out.value);
    ortc_value_release(in.value);
    return status;
}

typedef struct canceller {
    ortc_cancel *cancel;
    unsigned seed;
} canceller;

static void *cancel_soon(void *arg)
{
    const canceller *c = arg;
    for (volatile unsigned i = 0; i < c->seed % 20000; i++)
        ;
    ortc_cancel_set(c->cancel);
    return NULL;
}

static void *work(void *arg)
{
    int me = (int)(size_t)arg;
    unsigned seed = 12345u + (unsigned)me;
    ortc_error e = ORTC_ERROR_INIT;
    ortc_cancel *cancel = NULL;
    if (ortc_cancel_create(&cancel, &e)) failures[me]++;
    for (int i = 0; i < RUNS && !failures[me]; i++) {
        float result[8 * 10];
        int size = rand_r(&seed) % SIZES;
        bool with_cancel = rand_r(&seed) % 5 == 0;
        pthread_t other;
        canceller c = {cancel, (unsigned)rand_r(&seed)};
        if (with_cancel && pthread_create(&other, NULL, cancel_soon, &c)) with_cancel = false;
        ortc_status s = run(sessions[rand_r(&seed) % SESSIONS], size, with_cancel ? cancel : NULL, NULL,
                            result, &e);
        if (with_cancel) {
            pthread_join(other, NULL);
            ortc_cancel_reset(cancel);
        }
        if (s == ORTC_CANCELLED && with_cancel)
            cancelled[me]++;
        else if (s != ORTC_OK || memcmp(result, expected[size], (size_t)batches[size] * 10 * sizeof(float))) {
            printf("thread %d, run %d, batch %lld: %s\n", me, i, (long long)batches[size],
                   s ? e.text : "other bits");
            failures[me]++;
        } else
            runs_done[me]++;
    }
    ortc_cancel_release(cancel);
    return NULL;
}

/* ---- A run that is left alone with its session --------------------------------------------------------- */

typedef struct lonely {
    ortc_session *session;
    pthread_barrier_t meet; /* the run has begun; nobody else holds its session any more */
    bool met;
    ortc_status status;
    float result[8 * 10];
    ortc_error error;
} lonely;

static void meet_once(void *arg, const ortc_profile_event *event)
{
    lonely *l = arg;
    (void)event;
    if (l->met) return;
    l->met = true;
    pthread_barrier_wait(&l->meet);
    pthread_barrier_wait(&l->meet);
}

static void *run_alone(void *arg)
{
    lonely *l = arg;
    ortc_profiler p = ORTC_PROFILER_INIT;
    p.arg = l;
    p.record = meet_once;
    l->status = run(l->session, 1, NULL, &p, l->result, &l->error);
    return NULL;
}

static int outlive(ortc_model *m)
{
    lonely l = {.error = ORTC_ERROR_INIT};
    pthread_t other;
    if (ortc_session_create(m, NULL, &l.session, &l.error) || pthread_barrier_init(&l.meet, NULL, 2) ||
        pthread_create(&other, NULL, run_alone, &l))
        return 1;
    pthread_barrier_wait(&l.meet);
    ortc_session_release(l.session);
    pthread_barrier_wait(&l.meet);
    pthread_join(other, NULL);
    pthread_barrier_destroy(&l.meet);
    if (l.status != ORTC_OK || memcmp(l.result, expected[1], (size_t)batches[1] * 10 * sizeof(float))) {
        printf("the last reference was released during a run: %s\n", l.status ? l.error.text : "other bits");
        return 1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *m = NULL;
    int failed = 0, passed = 0, stopped = 0;
    if (argc != 2 || ortc_model_load(argv[1], NULL, &m, &e)) {
        printf("%s\n0 passed, 1 failed\n", argc == 2 ? e.text : "usage: concurrency digits.onnx");
        return 1;
    }
    for (size_t i = 0; i < sizeof input / sizeof *input; i++) input[i] = (float)(i * 37 % 256);
    for (int i = 0; i < SESSIONS; i++) failed += ortc_session_create(m, NULL, &sessions[i], &e) != ORTC_OK;
    for (int i = 0; i < SIZES && !failed; i++) { /* what one thread computes, in a session of its own */
        ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
        ortc_session *alone = NULL;
        o.threads = 1;
        failed += ortc_session_create(m, &o, &alone, &e) != ORTC_OK ||
                  run(alone, i, NULL, NULL, expected[i], &e) != ORTC_OK;
        ortc_session_release(alone);
    }
    pthread_t threads[THREADS];
    for (size_t i = 0; i < THREADS && !failed; i++)
        failed += pthread_create(&threads[i], NULL, work, (void *)i) != 0;
    for (size_t i = 0; i < THREADS && !failed; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        failed += failures[i];
        passed += runs_done[i];
        stopped += cancelled[i];
    }
    for (int i = 0; i < SESSIONS; i++) ortc_session_release(sessions[i]);
    for (int i = 0; i < 20 && !failed; i++) failed += outlive(m);
    ortc_model_release(m);
    printf("%d runs equal, %d cancelled\n%d passed, %d failed\n", passed, stopped, failed ? 0 : 1,
           failed ? 1 : 0);
    return failed != 0;
}
