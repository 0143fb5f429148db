/* tests/session/process.c: what a process does around the library: a -ffast-math library is loaded first, and
 * results have the same bits on 1, 2 and 4 threads, denormal numbers included; it forks while the pool is
 * busy, and the child runs a session of its own. A plain program; ORTC_THREADS is 4. usage: process
 * digits.onnx FASTMATH.so
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "ortc/ortc.h"
#include "tests/unit/wire_writer.h"

static int n_passed, n_failed;
static ortc_error e = ORTC_ERROR_INIT;

static void check(int good, const char *what)
{
    if (good)
        n_passed++;
    else
        n_failed++, printf("FAILED: %s: %s\n", what, e.text);
}

/* ---- The floating-point environment -------------------------------------------------------------------- */

enum { N = 128, COUNT = N * N };
static float x[COUNT], products[3][COUNT], sums[3][COUNT], expected[COUNT];

static unsigned environment(void)
{
#if defined(__x86_64__)
    return _mm_getcsr();
#else
    return 0;
#endif
}

/* product = x * x elementwise, sum = x . w: both denormal. */
static buffer tiny_numbers(void)
{
    static const int64_t square[2] = {N, N};
    static float w[COUNT];
    buffer g = {0}, b;
    for (int i = 0; i < COUNT; i++) w[i] = 1e-20f * (float)(1 + i % 7);
    b = make_value_info("x", ORTC_F32, 2, square), put_message(&g, 11, &b);
    b = make_value_info("product", ORTC_F32, 2, square), put_message(&g, 12, &b);
    b = make_value_info("sum", ORTC_F32, 2, square), put_message(&g, 12, &b);
    b = make_tensor("w", ORTC_F32, 2, square, w, sizeof w), put_message(&g, 5, &b);
    b = make_node("Mul", "", "x x", "product"), put_message(&g, 1, &b);
    b = make_node("MatMul", "", "x w", "sum"), put_message(&g, 1, &b);
    return make_model(8, 17, &g);
}

static void run_tiny(ortc_model *m, uint32_t threads, int at)
{
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    ortc_session *s = NULL;
    const int64_t square[2] = {N, N};
    o.threads = threads;
    if (ortc_session_create(m, &o, &s, &e)) {
        check(0, "a session");
        return;
    }
    ortc_in in = {"x", ortc_wrap(x, ORTC_F32, 2, square)};
    ortc_out out[2] = {{"product", ortc_wrap(products[at], ORTC_F32, 2, square), 0, 0},
                       {"sum", ortc_wrap(sums[at], ORTC_F32, 2, square), 0, 0}};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = &in, a.n_in = 1, a.out = out, a.n_out = 2;
    unsigned before = environment();
    check(ortc_run(s, &a, &e) == ORTC_OK, "a run");
    check(environment() == before, "the caller's environment is given back");
    ortc_value_release(in.value), ortc_value_release(out[0].value), ortc_value_release(out[1].value);
    ortc_session_release(s);
}

static void fast_math(const char *library)
{
    buffer bytes = tiny_numbers();
    ortc_model *m = NULL;
    for (int i = 0; i < COUNT; i++) {
        x[i] = 1e-20f * (float)(1 + i % 13);
        volatile float product = x[i] * x[i];
        expected[i] = product;
    }
    check(dlopen(library, RTLD_NOW) != NULL, "the -ffast-math library");
#if defined(__x86_64__)
    printf("the library %s denormals flushed\n", environment() & 0x8040 ? "has" : "has not");
    _mm_setcsr(_mm_getcsr() | 0x8040); /* as older compilers' libraries do */
#endif
    check(ortc_model_load_memory(bytes.data, bytes.bytes, NULL, &m, &e) == ORTC_OK,
          "the model of tiny numbers");
    for (int i = 0; m && i < 3; i++) run_tiny(m, 1u << i, i);
    check(!memcmp(products[0], expected, sizeof expected), "products are denormal, as the standard says");
    for (int i = 1; i < 3; i++)
        check(!memcmp(products[0], products[i], sizeof expected) &&
                  !memcmp(sums[0], sums[i], sizeof expected),
              "the same bits on more threads");
    unsigned zero = 0;
    for (int i = 0; i < COUNT; i++) {
        unsigned bits;
        memcpy(&bits, &sums[0][i], 4);
        zero += bits << 1 == 0;
    }
    check(zero == 0, "sums are not flushed to zero");
    ortc_model_release(m);
    buffer_free(&bytes);
}

/* ---- Forking ------------------------------------------------------------------------------------------- */

static ortc_session *busy, *idle;
static atomic_bool enough;

static int run_digits(ortc_session *s, float *result)
{
    static float images[8 * 64];
    ortc_error mine = ORTC_ERROR_INIT;
    ortc_in in = {"image", ortc_wrap(images, ORTC_F32, 4, (int64_t[]){8, 1, 8, 8})};
    ortc_out out = {"probabilities", ortc_wrap(result, ORTC_F32, 2, (int64_t[]){8, 10}), 0, 0};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = &in, a.n_in = 1, a.out = &out, a.n_out = 1;
    ortc_status status = ortc_run(s, &a, &mine);
    ortc_value_release(in.value);
    ortc_value_release(out.value);
    return status != ORTC_OK;
}

static void *keep_busy(void *arg)
{
    float result[80];
    (void)arg;
    while (!atomic_load(&enough))
        if (run_digits(busy, result)) return &busy;
    return NULL;
}

/* A thread that is inside of AddressSanitizer's allocator at a fork leaves its locks taken in the child (gcc
 * 12: one run in 70 hangs there, on a busy machine); the system's own allocator lets go of them. */
#if defined(__SANITIZE_ADDRESS__)
#define FORKS 0
#else
#define FORKS 1
#endif

static void forking(const char *path)
{
    if (!FORKS) {
        printf(
            "skipped: children beside busy threads, which AddressSanitizer's allocator does not let run\n");
        return;
    }
    ortc_model *m, *other;
    float first[80], again[80];
    pthread_t thread;
    void *failed = NULL;
    if (ortc_model_load(path, NULL, &m, &e) || ortc_model_load(path, NULL, &other, &e) ||
        ortc_session_create(m, NULL, &busy, &e) || ortc_session_create(other, NULL, &idle, &e) ||
        run_digits(idle, first) || pthread_create(&thread, NULL, keep_busy, NULL)) {
        check(0, "getting busy");
        return;
    }
    int good = 0;
    fflush(stdout);
    for (int i = 0; i < 10; i++) {
        int status = 1;
        usleep(1000);
        pid_t pid = fork();
        if (pid == 0) {
            alarm(20); /* rather than hang */
            for (int k = 0; k < 3; k++)
                if (run_digits(idle, again) || memcmp(first, again, sizeof first)) _exit(1);
            _exit(0);
        }
        good += pid > 0 && waitpid(pid, &status, 0) == pid && status == 0;
    }
    check(good == 10, "ten children run what no other thread was inside of");
    check(run_digits(idle, again) == 0 && !memcmp(first, again, sizeof first), "the parent goes on");
    atomic_store(&enough, true);
    pthread_join(thread, &failed);
    check(!failed, "the busy thread was not disturbed");
    ortc_session_release(busy), ortc_session_release(idle);
    ortc_model_release(m), ortc_model_release(other);
}

int main(int argc, char **argv)
{
    if (argc != 3) {
        printf("usage: process digits.onnx FASTMATH.so\n0 passed, 1 failed\n");
        return 1;
    }
    fast_math(argv[2]); /* first: before the pool has threads */
    forking(argv[1]);
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed != 0;
}
