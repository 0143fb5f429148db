/* tests/gpu/stress.c: what only a real device can show: threads at once on one session and on several, a
 * device whose memory is taken, a caller's stream. A plain program; libcuda is opened by name. The model: Y =
 * softmax(X W) W, X: f32[n, 256]. usage: stress DEVICE [PLUGIN]
 */
#include <dlfcn.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ortc/ortc.h"
#include "tests/unit/wire_writer.h"

enum { WIDTH = 256, THREADS = 8, RUNS = 200 };
static float weights[WIDTH * WIDTH];
static ortc_error e = ORTC_ERROR_INIT;
static atomic_int passed, failed;
static const char *device;

static void check(int good, const char *what, const char *text)
{
    passed += good;
    failed += !good;
    if (!good) printf("FAILED %s: %s\n", what, text);
}

static ortc_model *make(void)
{
    static buffer bytes;
    buffer g = {0}, b;
    const int64_t dims[] = {-1, WIDTH}, square[] = {WIDTH, WIDTH};
    const char *const nodes[][3] = {{"MatMul", "X W", "a"}, {"Softmax", "a", "b"}, {"MatMul", "b W", "Y"}};
    for (int i = 0; i < 3; i++) {
        b = make_node(nodes[i][0], "", nodes[i][1], nodes[i][2]);
        put_message(&g, 1, &b);
    }
    b = make_tensor("W", ORTC_F32, 2, square, weights, sizeof weights);
    put_message(&g, 5, &b);
    b = make_value_info("X", ORTC_F32, 2, dims);
    put_message(&g, 11, &b);
    b = make_value_info("Y", ORTC_F32, 2, dims);
    put_message(&g, 12, &b);
    bytes = make_model(10, 18, &g);
    ortc_model *m = NULL;
    check(ortc_model_load_memory(bytes.data, bytes.bytes, NULL, &m, &e) == ORTC_OK, "loading", e.text);
    return m;
}

static ortc_status run(ortc_session *s, const float *x, int64_t n, float *y, void *queue, ortc_error *error)
{
    const int64_t dims[] = {n, WIDTH};
    ortc_in in = {"X", ortc_wrap((void *)(uintptr_t)x, ORTC_F32, 2, dims)};
    ortc_out out = {"Y", y ? ortc_wrap(y, ORTC_F32, 2, dims) : NULL, 0, 0};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = &in, a.n_in = 1, a.out = &out, a.n_out = 1, a.queue = queue;
    ortc_status status = ortc_run(s, &a, error);
    ortc_value_release(in.value);
    ortc_value_release(out.value);
    return status;
}

/* ---- Threads: different sizes at once, always the same bits -------------------------------------------- */

static ortc_session *sessions[2];
enum { SIZES = 7 }; /* 1 to 64 rows; a size may choose its own tile, so each has bits of its own */
static float x[64 * WIDTH], expected[SIZES][64 * WIDTH];

static void *work(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    ortc_error error = ORTC_ERROR_INIT;
    float *y = malloc(sizeof *expected);
    int bad = 0;
    for (int i = 0; i < RUNS; i++) {
        seed = seed * 1664525u + 1013904223u;
        unsigned size = (seed >> 28) % SIZES;
        int64_t n = 1 << size;
        bad += run(sessions[seed >> 20 & 1], x, n, y, NULL, &error) != ORTC_OK ||
               memcmp(y, expected[size], (size_t)n * WIDTH * sizeof *y);
        if (i % 50 == 49) ortc_session_trim(sessions[0]);
    }
    check(!bad, "threads at once", error.text);
    free(y);
    return NULL;
}

static void test_threads(void)
{
    pthread_t threads[THREADS];
    for (uintptr_t i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, (void *)(i + 1));
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
}

/* ---- A device whose memory is taken -------------------------------------------------------------------- */

static void test_full(void)
{
    enum { MOST = 4096 };
    static ortc_value *taken[MOST];
    uint32_t memory = 0;
    int n = 0;
    float *large = calloc((size_t)WIDTH * 200000, sizeof *large);
    check(ortc_session_memory(sessions[0], device, &memory, &e) == ORTC_OK, "its memory", e.text);
    for (int64_t mib = 4096; mib >= 16; mib /= 2) /* down to the last pieces */
        while (n < MOST &&
               ortc_value_create_in(memory, ORTC_U8, 1, (int64_t[]){mib << 20}, &taken[n], &e) == ORTC_OK)
            n++;
    check(n > 0, "the memory can be taken", e.text);
    ortc_session_trim(sessions[0]);
    ortc_status s = run(sessions[0], large, 200000, NULL, NULL, &e);
    check(s == ORTC_OUT_OF_MEMORY && strstr(e.text, "f32["),
          "a run that does not fit names the largest tensors", e.text);
    while (n) ortc_value_release(taken[--n]);
    check(ortc_memory_trim(memory) > 0, "trim gives it back", "nothing");
    check(run(sessions[0], large, 200000, NULL, NULL, &e) == ORTC_OK, "the session is usable afterwards",
          e.text);
    ortc_session_trim(sessions[0]);
    free(large);
}

/* ---- A caller's stream --------------------------------------------------------------------------------- */

static void test_stream(void)
{
    int (*init)(unsigned), (*retain)(void **, int), (*set)(void *), (*create)(void **, unsigned),
        (*synchronize)(void *);
    static const char *const names[] = {"cuInit", "cuDevicePrimaryCtxRetain", "cuCtxSetCurrent",
                                        "cuStreamCreate", "cuStreamSynchronize"};
    void *library = dlopen("libcuda.so.1", RTLD_NOW), *symbols[5], *context = NULL, *stream = NULL;
    for (int i = 0; i < 5; i++) symbols[i] = library ? dlsym(library, names[i]) : NULL;
    if (!symbols[4]) {
        printf("no libcuda: a caller's stream is not tried\n");
        return;
    }
    memcpy(&init, &symbols[0], sizeof init), memcpy(&retain, &symbols[1], sizeof retain),
        memcpy(&set, &symbols[2], sizeof set);
    memcpy(&create, &symbols[3], sizeof create), memcpy(&synchronize, &symbols[4], sizeof synchronize);
    if (init(0) || retain(&context, 0) || set(context) || create(&stream, 1)) {
        check(0, "making a stream", "libcuda refuses");
        return;
    }
    float y[WIDTH];
    for (int i = 0; i < 6; i++) { /* eagerly, captured, replayed */
        memset(y, 0xff, sizeof y);
        ortc_status s = run(sessions[1], x, 1, y, stream, &e);
        check(s == ORTC_OK && !memcmp(y, expected[0], sizeof y), "a run on the caller's stream", e.text);
    }
    check(synchronize(stream) == 0, "the stream is whole", "it is not");
}

int main(int argc, char **argv)
{
    if (argc < 2 || (argc > 2 && ortc_plugin_load(argv[2], &e))) return 2;
    device = argv[1];
    for (int i = 0; i < WIDTH * WIDTH; i++) weights[i] = (float)((i * 37) % 101 - 50) / 200;
    for (int i = 0; i < 64 * WIDTH; i++) x[i] = (float)((i % WIDTH * 53) % 97 - 48) / 30; /* all rows alike */
    ortc_model *m = make();
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.providers = o.require = device;
    for (int i = 0; i < 2; i++)
        check(ortc_session_create(m, &o, &sessions[i], &e) == ORTC_OK, "a session", e.text);
    if (!failed) {
        double worst = 0;
        for (int k = 0; k < SIZES; k++) {
            check(run(sessions[0], x, 1 << k, expected[k], NULL, &e) == ORTC_OK, "a first run", e.text);
            for (int i = 0; i < WIDTH << k; i++)
                worst = fmax(worst, fabs((double)expected[k][i] - (double)expected[0][i % WIDTH]));
        }
        printf("rows by themselves and together: off by %g\n", worst);
        check(worst < 1e-5, "rows", "other results");
        test_threads();
        test_full();
        test_stream();
    }
    for (int i = 0; i < 2; i++) ortc_session_release(sessions[i]);
    ortc_model_release(m);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
