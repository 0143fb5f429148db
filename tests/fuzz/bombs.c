/* tests/fuzz/bombs.c: models that are small and would load or run for hours or take terabytes: each ends
 * with a status within a second (loading: two), on a thread with a stack of 128 KiB (not under a sanitizer,
 * which needs more), in a process that may have 256 MiB. The bombs that already go off while a model is
 * loaded are in replay.c.
 */
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>

#include "base/base.h"
#include "tests/unit/wire_writer.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { STACK = 128 << 10, MEMORY = 256 << 20, N = 4096 };

static int n_passed, n_failed;

/* Loads, runs once with a deadline of half a second; ends within a second, with one of two codes. */
static void explode(const char *what, buffer *b, const ortc_in *in, size_t n_in, const char *out_name,
                    ortc_status code, ortc_status or_code)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *model = NULL;
    ortc_session *session = NULL;
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    ortc_out out = {out_name, NULL, 0, 0};
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    int64_t begun = ortc_now_ns();
    o.providers = "ref";
    ortc_status s = ortc_model_load_memory(b->data, b->bytes, NULL, &model, &e);
    if (s == ORTC_OK) s = ortc_session_create(model, &o, &session, &e);
    a.in = in, a.n_in = n_in, a.out = &out, a.n_out = 1;
    a.deadline_ns = ortc_now_ns() + 500000000;
    if (s == ORTC_OK) s = ortc_run(session, &a, &e);
    double seconds = (double)(ortc_now_ns() - begun) / 1e9;
    bool good = (s == code || s == or_code) && (SANITIZED || seconds < 1) && !out.value;
    if (good)
        n_passed++;
    else
        n_failed++, printf("FAILED: %s: %s after %.2f s: %s\n", what, ortc_status_name(s), seconds, e.text);
    ortc_value_release(out.value);
    ortc_session_release(session);
    ortc_model_release(model);
    buffer_free(b);
}

static void put_end(buffer *g, int field, const char *name, int dtype, int rank, const int64_t *dims)
{
    buffer b = make_value_info(name, dtype, rank, dims);
    put_message(g, field, &b);
}
static void put_i64(buffer *g, const char *name, int rank, int64_t v)
{
    buffer b = make_tensor(name, ORTC_I64, rank, (int64_t[]){1}, &v, 8);
    put_message(g, 5, &b);
}
static void put_node(buffer *g, const char *op, const char *in, const char *out)
{
    buffer b = make_node(op, "", in, out);
    put_message(g, 1, &b);
}

/* ConstantOfShape(2^40), and what adds to it; the extent is a constant or an input. */
static buffer fill(bool constant)
{
    buffer g = {0};
    if (constant)
        put_i64(&g, "n", 1, INT64_C(1) << 40);
    else
        put_end(&g, 11, "n", ORTC_I64, 1, (int64_t[]){1});
    put_node(&g, "ConstantOfShape", "n", "z");
    put_node(&g, "Relu", "z", "y");
    put_end(&g, 12, "y", ORTC_F32, 1, (int64_t[]){-1});
    return make_model(8, 17, &g);
}

/* v = v + v, 2^62 times; with a scan output, which grows. */
static buffer loop(bool scan)
{
    buffer g = {0}, body = {0}, a = {0};
    put_i64(&g, "n", 0, INT64_C(1) << 62);
    put_end(&g, 11, "v", ORTC_F32, 1, (int64_t[]){4});
    put_end(&body, 11, "i", ORTC_I64, 0, NULL);
    put_end(&body, 11, "go", ORTC_BOOL, 0, NULL);
    put_end(&body, 11, "w", ORTC_F32, 1, (int64_t[]){4});
    put_node(&body, "Identity", "go", "on");
    put_node(&body, "Add", "w w", "u");
    put_end(&body, 12, "on", ORTC_BOOL, 0, NULL);
    put_end(&body, 12, "u", ORTC_F32, 1, (int64_t[]){4});
    if (scan) {
        put_node(&body, "Identity", "u", "t");
        put_end(&body, 12, "t", ORTC_F32, 1, (int64_t[]){4});
    }
    put_string(&body, 2, "body");
    buffer n = make_node("Loop", "", "n - v", scan ? "last y" : "y");
    put_string(&a, 1, "body");
    put_int(&a, 20, 5);
    put_message(&a, 6, &body);
    put_message(&n, 5, &a);
    put_message(&g, 1, &n);
    put_end(&g, 12, "y", ORTC_F32, scan ? 2 : 1, (int64_t[]){scan ? -1 : 4, 4});
    return make_model(8, 17, &g);
}

/* x is [1]; every node doubles an axis of it: Expand by Concat of shapes would do, Tile is shorter. */
static buffer doubling(int n)
{
    buffer g = {0};
    char in[24], out[16];
    put_end(&g, 11, "x", ORTC_F32, 1, (int64_t[]){-1});
    for (int i = 0; i < n; i++) {
        snprintf(in, sizeof in, i ? "t%d t%d" : "x x", i - 1, i - 1);
        snprintf(out, sizeof out, "t%d", i);
        buffer node = make_node("Concat", "", in, i + 1 < n ? out : "y"), a = {0};
        put_string(&a, 1, "axis"), put_int(&a, 3, 0), put_int(&a, 20, 2);
        put_message(&node, 5, &a);
        put_message(&g, 1, &node);
    }
    put_end(&g, 12, "y", ORTC_F32, 1, (int64_t[]){-2});
    return make_model(8, 17, &g);
}

/* ---- Loading ------------------------------------------------------------------------------------------- */

static void check(bool good, const char *what, const char *why)
{
    if (good)
        n_passed++;
    else
        n_failed++, printf("FAILED: %s: %s\n", what, why);
}

/* Products of constants, one after the other: of a matrix of half a megabyte, a tenth of a second each. */
static buffer products(int n)
{
    enum { EXTENT = 360 };
    buffer g = {0}, t;
    float *w = calloc((size_t)EXTENT * EXTENT, sizeof *w);
    char in[32], out[32];
    t = make_tensor("w", ORTC_F32, 2, (int64_t[]){EXTENT, EXTENT}, w, (size_t)EXTENT * EXTENT * sizeof *w);
    put_message(&g, 5, &t);
    for (int i = 0; i < n; i++) {
        snprintf(in, sizeof in, i ? "t%d w" : "w w", i - 1);
        snprintf(out, sizeof out, i + 1 < n ? "t%d" : "y", i);
        put_node(&g, "MatMul", in, out);
    }
    put_end(&g, 12, "y", ORTC_F32, 2, (int64_t[]){EXTENT, EXTENT});
    free(w);
    return make_model(8, 17, &g);
}

/* A function of `body` nodes that is called `calls` times, each node named at length. */
static buffer calls(int calls, int body)
{
    buffer g = {0}, m, f = {0};
    char in[16], out[16];
    put_end(&g, 11, "x", ORTC_F32, 1, (int64_t[]){4});
    for (int i = 0; i < calls; i++) {
        snprintf(in, sizeof in, i ? "t%d" : "x", i - 1);
        snprintf(out, sizeof out, i + 1 < calls ? "t%d" : "y", i);
        buffer n = make_node("F", "local", in, out);
        put_message(&g, 1, &n);
    }
    put_end(&g, 12, "y", ORTC_F32, 1, (int64_t[]){4});
    m = make_model(8, 17, &g);
    put_opset(&m, 8, "local", 1);
    put_string(&f, 1, "F");
    put_string(&f, 10, "local");
    put_names(&f, 4, "u0");
    for (int i = 0; i < body; i++) {
        snprintf(in, sizeof in, "u%d", i);
        snprintf(out, sizeof out, "u%d", i + 1);
        buffer n = make_node("Sin", "", in, out);
        put_message(&f, 7, &n);
    }
    snprintf(out, sizeof out, "u%d", body);
    put_names(&f, 5, out);
    put_opset(&f, 9, "", 17);
    put_message(&m, 25, &f);
    return m;
}

/* Loads and makes a session; ends within two seconds with this code. */
static ortc_model *open_bomb(const char *what, const buffer *b, const ortc_model_options *o, ortc_status code)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *model = NULL;
    ortc_session *session = NULL;
    int64_t begun = ortc_now_ns();
    ortc_status s = ortc_model_load_memory(b->data, b->bytes, o, &model, &e);
    if (s == ORTC_OK) s = ortc_session_create(model, NULL, &session, &e);
    double seconds = (double)(ortc_now_ns() - begun) / 1e9;
    char why[1200];
    snprintf(why, sizeof why, "%s after %.2f s: %s", ortc_status_name(s), seconds, e.text);
    check(s == code && (SANITIZED || seconds < 2), what, why);
    ortc_session_release(session);
    return model;
}

static void load_bombs(void)
{
    ortc_model_options o = ORTC_MODEL_OPTIONS_INIT;
    ortc_session_options so = ORTC_SESSION_OPTIONS_INIT;
    ortc_session *session = NULL;
    ortc_error e = ORTC_ERROR_INIT;
    ortc_cancel *cancel = NULL;
    buffer b = products(200);
    ortc_model *m = open_bomb("200 products of constants", &b, NULL, ORTC_OK);
    check(m && ortc_model_describe(m)->n_unfolded > 0, "what is left of 200 products", "nothing is said");
    ortc_model_release(m);
    o.fold_operations = UINT64_MAX;
    o.deadline_ns = ortc_now_ns() + 10000000;
    ortc_model_release(open_bomb("a deadline while products are folded", &b, &o, ORTC_DEADLINE));
    o.deadline_ns = 0;
    ortc_cancel_create(&cancel, NULL);
    ortc_cancel_set(cancel);
    o.cancel = cancel;
    ortc_model_release(open_bomb("loading is cancelled", &b, &o, ORTC_CANCELLED));
    buffer_free(&b);
    b = products(2);
    o = (ortc_model_options)ORTC_MODEL_OPTIONS_INIT;
    o.flags = ORTC_MODEL_NO_PASSES;
    m = open_bomb("two products", &b, &o, ORTC_OK);
    so.cancel = cancel;
    check(m && ortc_session_create(m, &so, &session, &e) == ORTC_CANCELLED && !session,
          "making a session is cancelled", e.text);
    so.cancel = NULL;
    so.deadline_ns = 1;
    check(m && ortc_session_create(m, &so, &session, &e) == ORTC_DEADLINE && !session, "a session's deadline",
          e.text);
    ortc_model_release(m);
    o = (ortc_model_options)ORTC_MODEL_OPTIONS_INIT;
    o.fold_operations = 1;
    m = open_bomb("nothing may be folded", &b, &o, ORTC_OK);
    check(m && ortc_model_describe(m)->n_unfolded == 1, "the first product waits for nobody", "");
    ortc_model_release(m);
    ortc_cancel_release(cancel);
    buffer_free(&b);
    b = calls(100, 5000);
    ortc_model_release(open_bomb("half a million nodes from 5,100", &b, NULL, ORTC_LIMIT));
    buffer_free(&b);
    b = calls(50, 1000);
    ortc_model_release(open_bomb("50,000 nodes from 1,050", &b, NULL, ORTC_OK));
    buffer_free(&b);
}

static void *bombs(void *arg)
{
    (void)arg;
    static float v[4] = {1, 1, 1, 1};
    int64_t n = INT64_C(1) << 40, one = 1;
    buffer b = fill(true);
    explode("ConstantOfShape 2^40", &b, NULL, 0, "y", ORTC_OUT_OF_MEMORY, ORTC_LIMIT);
    ortc_in in = {"n", ortc_wrap(&n, ORTC_I64, 1, &one)};
    b = fill(false);
    explode("ConstantOfShape 2^40 by an input", &b, &in, 1, "y", ORTC_OUT_OF_MEMORY, ORTC_LIMIT);
    n = INT64_MAX;
    b = fill(false);
    explode("ConstantOfShape 2^63 - 1", &b, &in, 1, "y", ORTC_OUT_OF_MEMORY, ORTC_LIMIT);
    ortc_value_release(in.value);
    in = (ortc_in){"v", ortc_wrap(v, ORTC_F32, 1, (int64_t[]){4})};
    b = loop(false);
    explode("Loop 2^62", &b, &in, 1, "y", ORTC_DEADLINE, ORTC_DEADLINE);
    b = loop(true);
    explode("Loop 2^62 with a scan output", &b, &in, 1, "y", ORTC_DEADLINE, ORTC_OUT_OF_MEMORY);
    ortc_value_release(in.value);
    in = (ortc_in){"x", ortc_wrap(v, ORTC_F32, 1, &one)};
    b = doubling(60);
    explode("60 Concats that double", &b, &in, 1, "y", ORTC_OUT_OF_MEMORY, ORTC_LIMIT);
    ortc_value_release(in.value);
    const int64_t square[2] = {N, N};
    buffer g = {0};
    put_end(&g, 11, "x", ORTC_F32, 2, square);
    put_node(&g, "MatMul", "x x", "y");
    put_end(&g, 12, "y", ORTC_F32, 2, square);
    b = make_model(8, 17, &g);
    float *x = calloc((size_t)N * N, sizeof *x);
    in = (ortc_in){"x", x ? ortc_wrap(x, ORTC_F32, 2, square) : NULL};
    explode("a 4096-cubed MatMul on ref", &b, &in, 1, "y", ORTC_DEADLINE, ORTC_DEADLINE);
    ortc_value_release(in.value);
    free(x);
    load_bombs();
    return NULL;
}

int main(void)
{
    struct rlimit memory = {MEMORY, MEMORY};
    pthread_attr_t attributes;
    pthread_t thread;
    mallopt(M_ARENA_MAX, 1); /* an arena of its own reserves 64 MiB for a thread */
    if (!SANITIZED) setrlimit(RLIMIT_AS, &memory);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, SANITIZED ? 8 << 20 : STACK);
    if (pthread_create(&thread, &attributes, bombs, NULL) != 0)
        n_failed++;
    else
        pthread_join(thread, NULL);
    printf("%d passed, %d failed\n", n_passed, n_failed);
    return n_failed != 0;
}
