/* tests/session/allocations.c: once the arena has its size, from the second run of a key on, a run whose
 * results go into the caller's memory allocates nothing, on one thread and on several; nor does a run with a
 * tied state. The linker puts counters around the allocator (--wrap), so this is not for sanitizers. usage:
 * allocations digits.onnx
 */
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "ortc/ortc.h"
#include "base/base.h"
#include "tests/unit/wire_writer.h"

static atomic_long count;
#define WRAP(type, name, parameters, arguments) \
    type __real_##name parameters; \
    type __wrap_##name parameters; \
    type __wrap_##name parameters \
    { \
        atomic_fetch_add(&count, 1); \
        return __real_##name arguments; \
    }
WRAP(void *, malloc, (size_t n), (n))
WRAP(void *, calloc, (size_t n, size_t m), (n, m))
WRAP(void *, realloc, (void *p, size_t n), (p, n))
WRAP(void *, aligned_alloc, (size_t a, size_t n), (a, n))
WRAP(int, posix_memalign, (void **p, size_t a, size_t n), (p, a, n))
WRAP(void *, mmap, (void *p, size_t n, int prot, int flags, int fd, off_t at), (p, n, prot, flags, fd, at))

/* next = tanh(h + x), tied. */
static buffer recurrent(void)
{
    static const int64_t dims[2] = {-1, 4};
    buffer g = {0}, b;
    const struct {
        int field;
        const char *name;
    } ends[] = {{11, "x"}, {11, "h"}, {12, "next"}, {12, "y"}};
    for (size_t i = 0; i < 4; i++) {
        b = make_value_info(ends[i].name, ORTC_F32, 2, dims);
        put_message(&g, ends[i].field, &b);
    }
    const char *const nodes[3][3] = {{"Add", "h x", "a"}, {"Tanh", "a", "next"}, {"Mul", "next x", "y"}};
    for (size_t i = 0; i < 3; i++) {
        b = make_node(nodes[i][0], "", nodes[i][1], nodes[i][2]);
        put_message(&g, 1, &b);
    }
    return make_model(8, 18, &g);
}

/* 1: from the third step on nothing is allocated: the first plans and makes one buffer, the second is made
 * before it. */
static int tied_steps(void)
{
    float x[8] = {0.1f, 0.2f}, y[8];
    const int64_t dims[2] = {2, 4};
    const ortc_tie tie = {"h", "next", -1, 0, 0};
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *m = NULL;
    ortc_session *s = NULL;
    ortc_state *state = NULL;
    buffer bytes = recurrent();
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.ties = &tie, o.n_ties = 1;
    int good = !ortc_model_load_memory(bytes.data, bytes.bytes, NULL, &m, &e) &&
               !ortc_session_create(m, &o, &s, &e) && !ortc_state_create(s, &state, &e);
    for (int i = 0; i < 8 && good; i++) {
        ortc_in in = {"x", ortc_wrap(x, ORTC_F32, 2, dims)};
        ortc_out out = {"y", ortc_wrap(y, ORTC_F32, 2, dims), 0, 0};
        ortc_run_args a = ORTC_RUN_ARGS_INIT;
        a.in = &in, a.n_in = 1, a.out = &out, a.n_out = 1, a.state = state;
        long before = atomic_load(&count);
        good = ortc_run(s, &a, &e) == ORTC_OK;
        long made = atomic_load(&count) - before;
        if (!good || (i ? i >= 2 && made : !made)) {
            printf("tied, step %d: %s, %ld allocations\n", i, good ? "ok" : e.text, made);
            good = 0;
        }
        ortc_value_release(in.value);
        ortc_value_release(out.value);
    }
    ortc_state_release(state);
    ortc_session_release(s);
    ortc_model_release(m);
    buffer_free(&bytes);
    return good;
}

int main(int argc, char **argv)
{
    static float image[3 * 64], result[3 * 10];
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *m = NULL;
    int passed = 0, failed = 0;
    ortc_heap_least = SIZE_MAX; /* all blocks are counted */
    if (argc != 2 || ortc_model_load(argv[1], NULL, &m, &e)) {
        printf("%s\n0 passed, 1 failed\n", argc == 2 ? e.text : "usage: allocations digits.onnx");
        return 1;
    }
    for (uint32_t threads = 0; threads < 2; threads++) { /* 0: all of the pool */
        ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
        ortc_session *s = NULL;
        o.threads = threads;
        if (ortc_session_create(m, &o, &s, &e)) {
            printf("%s\n", e.text);
            failed++;
            continue;
        }
        for (int i = 0; i < 8; i++) { /* two batch sizes in turn */
            int64_t n = i % 2 ? 3 : 1, in_dims[4] = {n, 1, 8, 8}, out_dims[2] = {n, 10};
            ortc_in in = {"image", ortc_wrap(image, ORTC_F32, 4, in_dims)};
            ortc_out out = {"probabilities", ortc_wrap(result, ORTC_F32, 2, out_dims), 0, 0};
            ortc_run_args a = ORTC_RUN_ARGS_INIT;
            a.in = &in, a.n_in = 1, a.out = &out, a.n_out = 1;
            long before = atomic_load(&count);
            ortc_status status = ortc_run(s, &a, &e);
            long made = atomic_load(&count) - before;
            /* The first of each size must be seen: the counter works. The second made the arena grow, so the
             * third run makes the first size's frame anew. */
            int good = status == ORTC_OK && (i < 2 ? made > 0 : i == 2 || made == 0);
            if (!good)
                printf("threads %u, run %d: %s, %ld allocations\n", threads, i, status ? e.text : "ok", made);
            passed += good;
            failed += !good;
            ortc_value_release(in.value);
            ortc_value_release(out.value);
        }
        ortc_session_release(s);
    }
    ortc_model_release(m);
    int tied = tied_steps();
    passed += tied;
    failed += !tied;
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
