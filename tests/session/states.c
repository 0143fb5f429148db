/* tests/session/states.c: conversations at once: threads with a state each on one session, a state that all
 * of them reach for, cancels in between, and a session over a caller's threads: every state goes its own way.
 * A plain program: it runs under ThreadSanitizer.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "ortc/ortc.h"
#include "tests/unit/wire_writer.h"

enum { THREADS = 6, STEPS = 120, WIDTH = 64 };
static ortc_session *session, *lent;
static ortc_state *shared;
static atomic_int failures, steps_done, refused, cancelled;

/* next = tanh(h W + x) */
static buffer recurrent(void)
{
    static const int64_t dims[2] = {-1, WIDTH}, square[2] = {WIDTH, WIDTH};
    static float w[WIDTH * WIDTH];
    const char *const ends[] = {"x", "h", "next"};
    const char *const nodes[3][3] = {{"MatMul", "h W", "z"}, {"Add", "z x", "a"}, {"Tanh", "a", "next"}};
    buffer g = {0}, b;
    for (int i = 0; i < WIDTH * WIDTH; i++) w[i] = (float)(i * 7 % 23 - 11) / 64;
    for (int i = 0; i < 3; i++)
        b = make_value_info(ends[i], ORTC_F32, 2, dims), put_message(&g, i < 2 ? 11 : 12, &b);
    b = make_tensor("W", ORTC_F32, 2, square, w, sizeof w), put_message(&g, 5, &b);
    for (int i = 0; i < 3; i++)
        b = make_node(nodes[i][0], "", nodes[i][1], nodes[i][2]), put_message(&g, 1, &b);
    return make_model(8, 18, &g);
}

static ortc_status step(ortc_session *s, ortc_state *state, int64_t rows, int seed, ortc_cancel *cancel,
                        float *result)
{
    float x[4 * WIDTH];
    const int64_t dims[2] = {rows, WIDTH};
    ortc_error e = ORTC_ERROR_INIT;
    for (int i = 0; i < rows * WIDTH; i++) x[i] = (float)((i * 13 + seed * 7) % 17 - 8) / 16;
    ortc_in in = {"x", ortc_wrap(x, ORTC_F32, 2, dims)};
    ortc_out out = {"next", ortc_wrap(result, ORTC_F32, 2, dims), 0, 0};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = &in, a.n_in = 1, a.out = &out, a.n_out = 1, a.state = state, a.cancel = cancel;
    ortc_status status = ortc_run(s, &a, &e);
    ortc_value_release(in.value);
    ortc_value_release(out.value);
    return status;
}

static void *canceller(void *arg)
{
    ortc_cancel_set(arg);
    return NULL;
}

/* The same steps by two states, one of them disturbed; both sessions. */
static void *work(void *arg)
{
    int me = (int)(size_t)arg;
    int64_t rows = 1 + me % 4;
    unsigned seed = 99u + (unsigned)me;
    ortc_session *s = me % 3 ? session : lent;
    ortc_state *mine, *calm;
    ortc_cancel *cancel;
    ortc_error e = ORTC_ERROR_INIT;
    if (ortc_state_create(s, &mine, &e) || ortc_state_create(s, &calm, &e) ||
        ortc_cancel_create(&cancel, &e)) {
        atomic_fetch_add(&failures, 1);
        return NULL;
    }
    for (int i = 0; i < STEPS; i++) {
        float a[4 * WIDTH], b[4 * WIDTH];
        pthread_t other;
        bool with = rand_r(&seed) % 4 == 0 && !pthread_create(&other, NULL, canceller, cancel);
        ortc_status status = step(s, mine, rows, me * 1000 + i, with ? cancel : NULL, a);
        if (with) {
            pthread_join(other, NULL);
            ortc_cancel_reset(cancel);
        }
        if (with && status == ORTC_CANCELLED) { /* as it was: once more */
            atomic_fetch_add(&cancelled, 1);
            status = step(s, mine, rows, me * 1000 + i, NULL, a);
        }
        if (status || step(s, calm, rows, me * 1000 + i, NULL, b) ||
            memcmp(a, b, (size_t)rows * WIDTH * sizeof *a))
            atomic_fetch_add(&failures, 1);
        else
            atomic_fetch_add(&steps_done, 1);
        status = step(session, shared, 2, i, NULL, b);
        if (status == ORTC_INVALID_STATE)
            atomic_fetch_add(&refused, 1);
        else if (status)
            atomic_fetch_add(&failures, 1);
    }
    ortc_state_release(mine);
    ortc_state_release(calm);
    ortc_cancel_release(cancel);
    return NULL;
}

typedef struct lent_task {
    void (*task)(void *, uint32_t);
    void *arg;
} lent_task;
static void *lent_main(void *arg)
{
    const lent_task *t = arg;
    t->task(t->arg, 1);
    return NULL;
}
/* Two threads: the caller's and a new one. */
static void lend(void *arg, uint32_t n, void (*task)(void *, uint32_t), void *task_arg)
{
    pthread_t other;
    lent_task t = {task, task_arg};
    (void)arg;
    bool two = n > 1 && !pthread_create(&other, NULL, lent_main, &t);
    task(task_arg, 0);
    if (two)
        pthread_join(other, NULL);
    else if (n > 1)
        task(task_arg, 1);
}

int main(void)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *m;
    buffer bytes = recurrent();
    const ortc_tie tie = {"h", "next", -1, 0, 0};
    const ortc_executor executor = {sizeof executor, 2, NULL, lend};
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    pthread_t threads[THREADS];
    o.ties = &tie, o.n_ties = 1;
    int failed = ortc_model_load_memory(bytes.data, bytes.bytes, NULL, &m, &e) ||
                 ortc_session_create(m, &o, &session, &e);
    o.executor = &executor;
    failed = failed || ortc_session_create(m, &o, &lent, &e) || ortc_state_create(session, &shared, &e);
    for (size_t i = 0; i < THREADS && !failed; i++)
        failed = pthread_create(&threads[i], NULL, work, (void *)i) != 0;
    for (size_t i = 0; i < THREADS && !failed; i++) pthread_join(threads[i], NULL);
    if (failed)
        printf("%s\n0 passed, 1 failed\n", e.text);
    else {
        failed = atomic_load(&failures) || atomic_load(&steps_done) != THREADS * STEPS;
        ortc_state_release(shared);
        ortc_session_release(session);
        ortc_session_release(lent);
        ortc_model_release(m);
        printf("%d steps equal, %d cancelled, %d refused\n%d passed, %d failed\n", atomic_load(&steps_done),
               atomic_load(&cancelled), atomic_load(&refused), !failed, failed);
    }
    buffer_free(&bytes);
    return failed;
}
