/* tests/fuzz/replay.c: hostile files that every build replays: damage at every byte of small models and
 * values, deep nests, functions that double, dims that overflow. All of it on a thread with a stack of 128
 * KiB (not under a sanitizer, which needs more), in a process that may have 256 MiB, and within a second for
 * every file that is hostile by design.
 */
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>

#include "graph/onnx/onnx.h"
#include "targets.h"
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

enum { STACK = 128 << 10, MEMORY = 256 << 20 };

static int n_passed, n_failed;

static void check(bool ok, const char *what)
{
    if (ok)
        n_passed++;
    else
        n_failed++, printf("FAILED: %s\n", what);
}

/* ---- Small models -------------------------------------------------------------------------------------- */

static void put_attribute_int(buffer *node, const char *name, int64_t v)
{
    buffer a = {0};
    put_string(&a, 1, name);
    put_int(&a, 3, v);
    put_int(&a, 20, 2);
    put_message(node, 5, &a);
}

static void put_node(buffer *graph, int field, const char *op, const char *domain, const char *in,
                     const char *out)
{
    buffer n = make_node(op, domain, in, out);
    put_string(&n, 3, op);
    if (strcmp(op, "Gemm") == 0) put_attribute_int(&n, "transB", 1);
    put_message(graph, field, &n);
}

static void put_attribute_ints(buffer *node, const char *name, int64_t v, int n)
{
    buffer a = {0};
    put_string(&a, 1, name);
    for (int i = 0; i < n; i++) put_int(&a, 8, v);
    put_int(&a, 20, 7);
    put_message(node, 5, &a);
}

/* w = w + w, three times, with a scan output: a graph inside. */
static void put_loop(buffer *g)
{
    buffer body = {0}, part, a = {0};
    const int64_t three = 3, dims[2] = {-1, 12};
    part = make_tensor("three", ORTC_I64, 0, NULL, &three, 8), put_message(g, 5, &part);
    part = make_value_info("i", ORTC_I64, 0, NULL), put_message(&body, 11, &part);
    part = make_value_info("go", ORTC_BOOL, 0, NULL), put_message(&body, 11, &part);
    part = make_value_info("u", ORTC_F32, 2, dims), put_message(&body, 11, &part);
    put_node(&body, 1, "Identity", "", "go", "on");
    put_node(&body, 1, "Add", "", "u b", "d");
    put_node(&body, 1, "Identity", "", "d", "e");
    part = make_value_info("on", ORTC_BOOL, 0, NULL), put_message(&body, 12, &part);
    part = make_value_info("d", ORTC_F32, 2, dims), put_message(&body, 12, &part);
    part = make_value_info("e", ORTC_F32, 2, dims), put_message(&body, 12, &part);
    put_string(&body, 2, "body");
    buffer n = make_node("Loop", "", "three - a", "last all");
    put_string(&a, 1, "body"), put_int(&a, 20, 5), put_message(&a, 6, &body);
    put_message(&n, 5, &a);
    put_message(g, 1, &n);
}

/* What decides shapes and reads memory by number: Reshape, Conv, Gather, Slice, TopK. */
static void put_shapes(buffer *g)
{
    static const float kernel[2 * 3 * 3];
    static const struct {
        const char *name;
        int64_t n, v[3];
    } ints[] = {{"to", 3, {-1, 3, 4}}, {"at", 2, {1, -1}}, {"from", 1, {1}},
                {"end", 1, {9}},       {"axis", 1, {1}},   {"k", 1, {2}}};
    buffer part = make_tensor("kernel", ORTC_F32, 3, (int64_t[]){2, 3, 3}, kernel, sizeof kernel);
    put_message(g, 5, &part);
    for (size_t i = 0; i < sizeof ints / sizeof *ints; i++)
        part = make_tensor(ints[i].name, ORTC_I64, 1, &ints[i].n, ints[i].v, (size_t)ints[i].n * 8),
        put_message(g, 5, &part);
    put_node(g, 1, "Reshape", "", "a to", "v");
    part = make_node("Conv", "", "v kernel", "conv");
    put_attribute_ints(&part, "pads", 1, 2);
    put_attribute_ints(&part, "strides", 2, 1);
    put_message(g, 1, &part);
    put_node(g, 1, "Gather", "", "all at", "some");
    put_node(g, 1, "Slice", "", "a from end axis", "slice");
    put_node(g, 1, "TopK", "", "slice k", "best where");
    static const struct {
        const char *name;
        int dtype, rank;
    } outs[] = {{"conv", ORTC_F32, 3},
                {"some", ORTC_F32, 3},
                {"best", ORTC_F32, 2},
                {"where", ORTC_I64, 2},
                {"last", ORTC_F32, 2}};
    for (size_t i = 0; i < sizeof outs / sizeof *outs; i++)
        part = make_value_info(outs[i].name, outs[i].dtype, outs[i].rank, (int64_t[]){-1, -2, -3}),
        put_message(g, 12, &part);
}

/* About 2 KB: weights raw and typed, a constant, a function, a sparse initializer, a loop, what decides
 * shapes. */
static buffer small_model(void)
{
    buffer g = {0}, part, sparse = {0}, f = {0}, m, a = {0};
    static const float weights[12 * 8];
    part = make_value_info("x", ORTC_F32, 2, (int64_t[]){-1, 8});
    put_message(&g, 11, &part);
    part = make_value_info("y", ORTC_F32, 2, (int64_t[]){-1, 12});
    put_message(&g, 12, &part);
    part = make_value_info("h", ORTC_F32, 2, (int64_t[]){-1, 12});
    put_message(&g, 13, &part);
    part = make_tensor("w", ORTC_F32, 2, (int64_t[]){12, 8}, weights, sizeof weights);
    put_message(&g, 5, &part);
    part = make_tensor("b", ORTC_F32, 1, (int64_t[]){12}, NULL, 0);
    for (int i = 0; i < 12; i++) put_float(&part, 4, (float)i);
    put_message(&g, 5, &part);
    part = make_tensor("s", ORTC_F32, 1, (int64_t[]){1}, "1234", 4);
    put_message(&sparse, 1, &part);
    part = make_tensor("", ORTC_I64, 1, (int64_t[]){1}, "\3\0\0\0\0\0\0\0", 8);
    put_message(&sparse, 2, &part);
    put_int(&sparse, 3, 12);
    put_message(&g, 15, &sparse);
    part = make_node("Constant", "", "", "c");
    put_string(&a, 1, "value_floats");
    put_int(&a, 20, 6);
    for (int i = 0; i < 12; i++) put_float(&a, 7, 1.0f);
    put_message(&part, 5, &a);
    put_message(&g, 1, &part);
    put_node(&g, 1, "Gemm", "", "x w b", "h");
    put_node(&g, 1, "F", "local", "h s", "r");
    put_node(&g, 1, "Add", "", "r c", "a");
    put_node(&g, 1, "Softmax", "", "a", "y");
    put_loop(&g);
    put_shapes(&g);
    m = make_model(8, 13, &g);
    put_opset(&m, 8, "local", 1);
    put_string(&f, 1, "F");
    put_string(&f, 10, "local");
    put_names(&f, 4, "p q");
    put_names(&f, 5, "r");
    put_opset(&f, 9, "", 13);
    put_node(&f, 7, "Add", "", "p q", "t");
    put_node(&f, 7, "Relu", "", "t", "r");
    put_message(&m, 25, &f);
    put_string(&m, 2, "replay");
    return m;
}

static buffer small_value(void)
{
    buffer sequence = {0}, t = make_tensor("t", ORTC_I4, 1, (int64_t[]){5}, "\1\2\3", 3);
    put_string(&sequence, 1, "list");
    put_int(&sequence, 2, 1);
    put_message(&sequence, 3, &t);
    t = make_tensor("t", ORTC_I4, 1, (int64_t[]){2}, "\1", 1);
    put_message(&sequence, 3, &t);
    return sequence;
}

/* ---- Damage -------------------------------------------------------------------------------------------- */

/* Every byte replaced by lengths that are wrong, and the file cut off after it. */
static void damage(const buffer *b, void (*target)(const uint8_t *, size_t), const char *what)
{
    static const uint8_t wrong[] = {0x00, 0x01, 0x02, 0x0a, 0x7f, 0x80, 0xff};
    uint8_t *copy = malloc(b->bytes);
    size_t step = SANITIZED ? 3 : 1;

    for (size_t i = 0; i < b->bytes; i += step) {
        memcpy(copy, b->data, b->bytes);
        for (size_t k = 0; k < sizeof wrong; k++) {
            copy[i] = wrong[k];
            target(copy, b->bytes);
        }
        copy[i] = b->data[i] + 1;
        target(copy, b->bytes);
        uint8_t *cut = malloc(i ? i : 1); /* its end is the allocation's */
        memcpy(cut, b->data, i);
        target(cut, i);
        free(cut);
    }
    free(copy);
    check(true, what);
}

/* ---- Hostile by design --------------------------------------------------------------------------------- */

/* Loading ends within a second, with this code. */
static void expect(buffer *b, ortc_status code, const char *what)
{
    ortc_error error = ORTC_ERROR_INIT;
    int64_t begun = ortc_now_ns();
    ortc_model *model;
    ortc_status status = ortc_model_load_memory(b->data, b->bytes, NULL, &model, &error);
    double seconds = (double)(ortc_now_ns() - begun) / 1e9;

    ortc_model_release(model);
    check(status == code, what);
    if (status != code) printf("  %s: %s\n", ortc_status_name(status), error.text);
    check(SANITIZED || seconds < 1, what);
    buffer_free(b);
}

static buffer nest(int depth)
{
    buffer graph = {0}, attribute = {0}, node = {0};
    for (int i = 1; i < depth; i++) {
        put_message(&attribute, 6, &graph);
        put_message(&node, 5, &attribute);
        put_message(&graph, 1, &node);
    }
    return make_model(8, 13, &graph);
}

/* n functions that call each other, `calls` times each; the first `in_graphs` calls stand in a subgraph. */
static buffer functions(int n, int calls, int in_graphs)
{
    buffer g = {0}, m, part = make_value_info("x", ORTC_F32, -1, NULL);
    char name[16], below[16], out[16];
    put_message(&g, 11, &part);
    put_node(&g, 1, "f0", "local", "x", "y");
    m = make_model(8, 13, &g);
    put_opset(&m, 8, "local", 1);
    for (int i = 0; i < n; i++) {
        buffer f = {0};
        snprintf(name, sizeof name, "f%d", i);
        snprintf(below, sizeof below, "f%d", i + 1);
        put_string(&f, 1, name);
        put_string(&f, 10, "local");
        put_names(&f, 4, "p");
        put_names(&f, 5, "r0");
        put_opset(&f, 9, "", 13);
        put_opset(&f, 9, "local", 1);
        for (int c = 0; c < calls; c++) {
            snprintf(out, sizeof out, "r%d", c);
            if (i < in_graphs && i + 1 < n) {
                buffer sub = {0}, a = {0}, node = make_node("Nonesuch", "", "", out);
                put_node(&sub, 1, below, "local", "p", "q");
                put_string(&a, 1, "body");
                put_message(&a, 6, &sub);
                put_message(&node, 5, &a);
                put_message(&f, 7, &node);
            } else {
                put_node(&f, 7, i + 1 < n ? below : "Relu", i + 1 < n ? "local" : "", "p", out);
            }
        }
        put_message(&m, 25, &f);
    }
    return m;
}

static buffer weight_model(buffer *tensor, int field)
{
    buffer g = {0};
    put_message(&g, field, tensor);
    return make_model(8, 13, &g);
}

static buffer external_model(const char *location)
{
    buffer t = make_tensor("w", ORTC_F32, 1, (int64_t[]){1}, NULL, 0), e = {0};
    put_string(&e, 1, "location");
    put_string(&e, 2, location);
    put_message(&t, 13, &e);
    put_int(&t, 14, 1);
    return weight_model(&t, 5);
}

static buffer many_empty(int outer, int field, size_t n)
{
    buffer g = {0}, m = {0};
    for (size_t i = 0; i < n; i++) put_block(&g, field, "", 0);
    if (outer) return make_model(8, 13, &g);
    m = g;
    return m;
}

static void hostile(void)
{
    buffer b, t, s = {0};
    b = nest(3000);
    expect(&b, ORTC_LIMIT, "3,000 nested graphs");
    b = nest(60);
    expect(&b, ORTC_LIMIT, "60 nested graphs");
    b = nest(32);
    expect(&b, ORTC_UNSUPPORTED, "32 nested graphs are walked, their operator is missing");
    b = functions(40, 2, 0);
    expect(&b, ORTC_LIMIT, "40 functions that double");
    b = functions(120, 1, 0);
    expect(&b, ORTC_LIMIT, "120 functions deep");
    b = functions(99, 1, 0);
    expect(&b, ORTC_OK, "99 functions deep");
    b = functions(99, 1, 31);
    expect(&b, ORTC_UNSUPPORTED, "99 functions and 32 graphs deep");
    b = functions(99, 1, 32);
    expect(&b, ORTC_LIMIT, "33 graphs deep through functions");
    t = make_tensor("w", ORTC_F32, 2, (int64_t[]){INT64_C(1) << 20, INT64_C(1) << 20}, "", 0);
    b = weight_model(&t, 5);
    expect(&b, ORTC_INVALID_MODEL, "4 TB of nothing");
    t = make_tensor("w", ORTC_F32, 4, (int64_t[]){INT64_MAX, INT64_MAX, 3, 4}, "1234", 4);
    b = weight_model(&t, 5);
    expect(&b, ORTC_LIMIT, "dims that overflow");
    t = make_tensor("w", ORTC_F32, 1, (int64_t[]){1}, "1234", 4);
    put_message(&s, 1, &t);
    t = make_tensor("", ORTC_I64, 1, (int64_t[]){1}, "\0\0\0\0\0\0\0\0", 8);
    put_message(&s, 2, &t);
    put_int(&s, 3, 1 << 30);
    b = weight_model(&s, 15);
    expect(&b, ORTC_LIMIT, "4 GB from a sparse tensor of 12 bytes");
    b = external_model("/etc/passwd");
    expect(&b, ORTC_INVALID_MODEL, "external data at an absolute path");
    b = external_model("../../etc/passwd");
    expect(&b, ORTC_INVALID_MODEL, "external data above the folder");
    b = external_model("weights.bin");
    expect(&b, ORTC_NOT_FOUND, "external data of a model in memory");
    b = many_empty(1, 1, 100000);
    expect(&b, ORTC_UNSUPPORTED, "100,000 empty nodes");
    b = many_empty(1, 5, 100000);
    expect(&b, ORTC_INVALID_MODEL, "100,000 empty weights");
    b = many_empty(0, 7, 100000);
    expect(&b, ORTC_INVALID_MODEL, "100,000 empty graphs");
}

static void *replay(void *arg)
{
    ortc_error error = ORTC_ERROR_INIT;
    buffer model = small_model(), value = small_value();
    ortc_model *m;

    check(ortc_model_load_memory(model.data, model.bytes, NULL, &m, &error) == ORTC_OK,
          "the undamaged model loads");
    if (error.code) printf("  %s\n", error.text);
    check(m && fuzz_run(m) == ORTC_OK, "the undamaged model runs");
    ortc_model_release(m);
    hostile();
    damage(&model, fuzz_model, "damage at every byte of a model");
    damage(&value, fuzz_value, "damage at every byte of a value");
    buffer_free(&model);
    buffer_free(&value);
    return NULL;
}

int main(void)
{
    struct rlimit memory = {MEMORY, MEMORY};
    pthread_attr_t attributes;
    pthread_t thread;

    if (!SANITIZED) setrlimit(RLIMIT_AS, &memory);
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, SANITIZED ? 8 << 20 : STACK);
    check(pthread_create(&thread, &attributes, replay, NULL) == 0, "the thread starts");
    pthread_join(thread, NULL);
    printf("%d passed, %d failed, 0 skipped\n", n_passed, n_failed);
    return n_failed != 0;
}
