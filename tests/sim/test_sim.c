/* tests/sim/test_sim.c: what a device with memory of its own asks of the library, shown on provider sim. A
 * plain program: it sees ortc.h only, links libortc.a (or the shared library under sanitizers), and runs
 * under ThreadSanitizer. usage: test_sim PLUGIN
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ortc/ortc.h"
#include "tests/unit/wire_writer.h"

static atomic_int passed, failed;
static ortc_error e = ORTC_ERROR_INIT;

#define CHECK(condition, ...) \
    do { \
        if (condition) \
            passed++; \
        else { \
            failed++; \
            printf("FAILED %s:%d %s: ", __func__, __LINE__, #condition); \
            printf(__VA_ARGS__); \
            printf("\n"); \
        } \
    } while (0)
#define OK(call) CHECK((call) == ORTC_OK, "%s", e.text)

/* ---- A model: Y = (Relu(X W + B) W) + X, X: f32[n, 8]. Five nodes, a fused pattern in front ------------ */

enum { WIDTH = 8, SMALL = 3 };
static float weights[WIDTH * WIDTH], bias[WIDTH], x[SMALL * WIDTH], expected[SMALL * WIDTH];

static void put_node(buffer *g, const char *op, const char *in, const char *out)
{
    buffer b = make_node(op, "", in, out);
    put_message(g, 1, &b);
}

static ortc_model *load(void)
{
    buffer g = {0}, b;
    const int64_t dims[] = {-1, WIDTH}, square[] = {WIDTH, WIDTH}, line[] = {WIDTH};
    put_node(&g, "MatMul", "X W", "a");
    put_node(&g, "Add", "a B", "b");
    put_node(&g, "Relu", "b", "c");
    put_node(&g, "MatMul", "c W", "d");
    put_node(&g, "Add", "d X", "Y");
    b = make_tensor("W", ORTC_F32, 2, square, weights, sizeof weights);
    put_message(&g, 5, &b);
    b = make_tensor("B", ORTC_F32, 1, line, bias, sizeof bias);
    put_message(&g, 5, &b);
    b = make_value_info("X", ORTC_F32, 2, dims);
    put_message(&g, 11, &b);
    b = make_value_info("Y", ORTC_F32, 2, dims);
    put_message(&g, 12, &b);
    static buffer m; /* outlives the model */
    m = make_model(10, 18, &g);
    ortc_model *model = NULL;
    OK(ortc_model_load_memory(m.data, m.bytes, NULL, &model, &e));
    return model;
}

static ortc_session *open_session(ortc_model *m, const char *providers)
{
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    ortc_session *s = NULL;
    o.providers = providers;
    OK(ortc_session_create(m, &o, &s, &e));
    return s;
}

static ortc_run_args args_of(const ortc_in *in, ortc_out *out)
{
    ortc_run_args a = ORTC_RUN_ARGS_INIT;
    a.in = in;
    a.n_in = 1;
    a.out = out;
    a.n_out = 1;
    return a;
}

/* One run, synchronous, results in host memory. */
static ortc_status run(ortc_session *s, const float *from, int64_t n, ortc_value **out, ortc_error *error)
{
    const int64_t dims[] = {n, WIDTH};
    ortc_in in = {"X", ortc_wrap((void *)(uintptr_t)from, ORTC_F32, 2, dims)};
    ortc_out o = {"Y", NULL, 0, 0};
    ortc_run_args a = args_of(&in, &o);
    ortc_status status = ortc_run(s, &a, error);
    ortc_value_release(in.value);
    *out = o.value;
    return status;
}

static int equal(const ortc_value *v)
{
    return v && ortc_value_host(v) && !memcmp(ortc_value_host(v), expected, sizeof expected);
}

/* ---- Placement ----------------------------------------------------------------------------------------- */

typedef struct placed {
    char list[400];
} placed;
static int note(void *arg, const ortc_placement *p)
{
    placed *to = arg;
    size_t n = strlen(to->list);
    snprintf(to->list + n, sizeof to->list - n, "%s=%s ", p->op, p->provider);
    return 0;
}
static int note_step(void *arg, const ortc_step_info *i)
{
    placed *to = arg;
    size_t n = strlen(to->list);
    snprintf(to->list + n, sizeof to->list - n, "%s%s%s ", i->kind, *i->op ? ":" : "", i->op);
    return 0;
}

static void check_steps(ortc_session *s, ortc_value *v, const char *steps)
{
    placed p = {""};
    ortc_in in = {"X", v};
    OK(ortc_session_plan(s, &in, 1, NULL, note_step, &p, &e));
    CHECK(!strcmp(p.list, steps), "%s", p.list);
}

static void check_placement(ortc_model *m, const char *providers, const char *list)
{
    ortc_session *s = open_session(m, providers);
    ortc_value *out;
    placed p = {""};
    if (!s) return;
    ortc_session_placement(s, note, &p);
    CHECK(!strcmp(p.list, list), "%s: %s", providers, p.list);
    OK(run(s, x, SMALL, &out, &e));
    CHECK(strstr(providers, "cpu") || equal(out), "%s: other bits", providers);
    ortc_value_release(out);
    ortc_session_release(s);
}

static void test_placement(ortc_model *m)
{
    check_placement(m, "sim", "MatMul=sim Add=sim Relu=sim MatMul=sim Add=sim ");
    /* A provider without fused kernels is asked node by node: nothing was fused before placement. */
    check_placement(m, "sim:only=MatMul+Add+Relu,cpu", "MatMul=sim Add=sim Relu=sim MatMul=sim Add=sim ");
    check_placement(m, "sim:only=MatMul,ref", "MatMul=sim Add=ref Relu=ref MatMul=sim Add=ref ");
    /* A lone Relu is not worth the way to the device, while cpu can do it; ref is no such choice where nobody
     * named it. */
    check_placement(m, "sim:only=Relu,cpu", "MatMul=cpu MatMul=cpu ");
    check_placement(m, "sim:only=Relu", "MatMul=ref Add=ref Relu=sim MatMul=ref Add=ref ");
    check_placement(m, "sim:claim=5", "Group=sim ");
    check_placement(m, "sim:claim=3", "Group=sim MatMul=sim Add=sim ");
    check_placement(m, "sim:claim=2:only=Add", "Group=sim Group=sim Add=sim ");

    const int64_t dims[] = {SMALL, WIDTH};
    ortc_value *v = ortc_wrap(x, ORTC_F32, 2, dims);
    ortc_session *s = open_session(m, "sim:claim=5");
    check_steps(s, v, "copy kernel:Group copy ");
    ortc_session_release(s);
    s = open_session(m, "sim:only=MatMul,ref");
    check_steps(s, v,
                "copy kernel:MatMul copy signal wait kernel:Add kernel:Relu copy kernel:MatMul copy signal "
                "wait kernel:Add ");
    ortc_session_release(s);
    ortc_value_release(v);
}

/* ---- Memory of the device ------------------------------------------------------------------------------ */

static void test_memory(ortc_model *m)
{
    ortc_session *s = open_session(m, "sim");
    uint32_t memory = 0, host = 1;
    const int64_t dims[] = {SMALL, WIDTH};
    OK(ortc_session_memory(s, "sim", &memory, &e));
    CHECK(memory != 0, "it has a number");
    OK(ortc_session_memory(s, "ref", &host, &e));
    CHECK(host == 0, "%u", host);
    CHECK(ortc_session_memory(s, "none", &host, &e) == ORTC_NOT_FOUND, "%s", e.text);
    uint32_t same = 0, ordinal = 1;
    const char *provider = NULL;
    OK(ortc_session_memory(s, "sim:0", &same, &e));
    CHECK(same == memory, "by provider and ordinal: %u %u", same, memory);
    CHECK(ortc_session_memory(s, "sim:1", &same, &e) == ORTC_NOT_FOUND, "another ordinal");
    OK(ortc_memory_device(memory, &provider, &ordinal, &e));
    CHECK(provider && !strcmp(provider, "sim") && ordinal == 0, "%s %u", provider, ordinal);
    CHECK(ortc_memory_device(0, &provider, &ordinal, &e) == ORTC_NOT_FOUND && !provider, "%s", e.text);

    /* A result on the device is the next run's input: nothing is copied to it. */
    ortc_value *on_host = ortc_wrap(x, ORTC_F32, 2, dims), *input = NULL, *back = NULL, *given = NULL;
    OK(ortc_value_create_in(memory, ORTC_F32, 2, dims, &input, &e));
    CHECK(ortc_value_memory(input) == memory && !ortc_value_host(input), "the host must not touch it");
    CHECK(ortc_value_address(input) && ortc_value_address(on_host) == (void *)x, "addresses");
    OK(ortc_value_copy(on_host, input, &e));
    check_steps(s, input, "kernel:MatMul kernel:Add kernel:Relu kernel:MatMul kernel:Add copy ");
    ortc_in in = {"X", input};
    ortc_out out = {"Y", NULL, memory, 0};
    ortc_run_args a = args_of(&in, &out);
    OK(ortc_run(s, &a, &e));
    CHECK(out.value && ortc_value_memory(out.value) == memory, "the result is on the device");
    OK(ortc_value_create(ORTC_F32, 2, dims, &back, &e));
    OK(ortc_value_copy(out.value, back, &e));
    CHECK(equal(back), "the result");
    /* A given output on the device. */
    OK(ortc_value_create_in(memory, ORTC_F32, 2, dims, &given, &e));
    ortc_value_release(out.value);
    out.value = given;
    OK(ortc_run(s, &a, &e));
    memset(ortc_value_data(back), 0, ortc_value_bytes(back));
    OK(ortc_value_copy(given, back, &e));
    CHECK(equal(back), "the given result");
    out = (ortc_out){"Y", NULL, memory + 77, 0};
    CHECK(ortc_run(s, &a, &e) == ORTC_INVALID_ARGUMENT, "%s", e.text);
    CHECK(ortc_value_create_in(memory + 77, ORTC_F32, 2, dims, &out.value, &e) == ORTC_NOT_FOUND, "%s",
          e.text);
    ortc_value_release(given);
    ortc_value_release(back);
    ortc_value_release(on_host);
    ortc_session_release(s); /* the input keeps its device open */
    ortc_value_release(input);
}

/* What is large goes up in pieces, and comes back whole. */
static void test_large(ortc_model *m)
{
    ortc_session *s = open_session(m, "sim:delay=20");
    const int64_t dims[] = {5000011}; /* floats: 19 MiB, no multiple of a piece */
    uint32_t memory = 0;
    ortc_value *host = NULL, *device = NULL, *back = NULL;
    OK(ortc_session_memory(s, "sim", &memory, &e));
    OK(ortc_value_create(ORTC_F32, 1, dims, &host, &e));
    OK(ortc_value_create(ORTC_F32, 1, dims, &back, &e));
    OK(ortc_value_create_in(memory, ORTC_F32, 1, dims, &device, &e));
    for (int64_t i = 0; i < dims[0]; i++) ((float *)ortc_value_data(host))[i] = (float)(i % 100003);
    OK(ortc_value_copy(host, device, &e));
    OK(ortc_value_copy(device, back, &e));
    CHECK(!memcmp(ortc_value_host(host), ortc_value_host(back), ortc_value_bytes(host)), "other bytes");
    ortc_memory_stats stats = ORTC_MEMORY_STATS_INIT;
    OK(ortc_memory_statistics(memory, &stats, &e));
    CHECK(stats.in_use >= ortc_value_bytes(device) && stats.reserved >= stats.in_use, "%llu",
          (unsigned long long)stats.in_use);
    ortc_value_release(device);
    CHECK(ortc_memory_trim(memory) >= ortc_value_bytes(host), "trim gives it back");
    CHECK(ortc_memory_statistics(0, &stats, &e) == ORTC_NOT_FOUND, "the host has no pool");
    ortc_value_release(host);
    ortc_value_release(back);
    ortc_session_release(s);
}

static void test_exhaustion(ortc_model *m)
{
    ortc_session *s = open_session(m, "sim:memory=1048576");
    ortc_value *out = NULL;
    float *large = calloc(100000, WIDTH * sizeof *large);
    ortc_status status = run(s, large, 100000, &out, &e);
    CHECK(status == ORTC_OUT_OF_MEMORY, "%d %s", status, e.text);
    CHECK(strstr(e.text, "sim") && strstr(e.text, "largest"),
          "it names the device and the largest tensors: %s", e.text);
    CHECK(out == NULL, "no result");
    OK(run(s, x, SMALL, &out, &e)); /* the session is usable */
    CHECK(equal(out), "the result");
    ortc_value_release(out);
    free(large);
    ortc_session_release(s);
}

static void test_failure(ortc_model *m)
{
    ortc_session *s = open_session(m, "sim:fail=8"); /* the third kernel of the second run */
    ortc_value *out;
    OK(run(s, x, SMALL, &out, &e));
    ortc_value_release(out);
    ortc_status status = run(s, x, SMALL, &out, &e);
    CHECK(status == ORTC_DEVICE_ERROR && strstr(e.text, "sim"), "%d %s", status, e.text);
    CHECK(!out, "no result");
    OK(run(s, x, SMALL, &out, &e));
    CHECK(equal(out), "the result after a failure");
    ortc_value_release(out);
    ortc_session_release(s);
    s = NULL;
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    o.providers = "sim:colour=blue";
    CHECK(ortc_session_create(m, &o, &s, &e) == ORTC_INVALID_ARGUMENT && strstr(e.text, "colour"), "%s",
          e.text);
    o.providers = "sim:3";
    CHECK(ortc_session_create(m, &o, &s, &e) == ORTC_NOT_FOUND && strstr(e.text, "3"), "%s", e.text);
}

/* ---- Asynchronous runs --------------------------------------------------------------------------------- */

static void *wait_elsewhere(void *event)
{
    ortc_error error = ORTC_ERROR_INIT;
    return ortc_event_wait(event, &error) == ORTC_OK ? event : NULL;
}

static void test_async(ortc_model *m, const char *providers, int is_late)
{
    enum { RUNS = 6 };
    ortc_session *s = open_session(m, providers);
    const int64_t dims[] = {SMALL, WIDTH};
    ortc_event *events[RUNS] = {NULL};
    ortc_value *results[RUNS] = {NULL};
    int unfinished = 0;
    for (int i = 0; i < RUNS; i++) {
        ortc_in in = {"X", NULL};
        ortc_out out = {"Y", NULL, 0, 0};
        OK(ortc_value_create(ORTC_F32, 2, dims, &in.value, &e));
        memcpy(ortc_value_data(in.value), x, sizeof x);
        ortc_run_args a = args_of(&in, &out);
        a.done = &events[i];
        OK(ortc_run(s, &a, &e));
        CHECK(events[i] && out.value, "an event and a result");
        unfinished += !ortc_event_done(events[i]);
        results[i] = out.value;
        ortc_value_release(in.value); /* the event keeps it */
    }
    CHECK(!is_late || unfinished > 0, "it returned before the device was done");
    pthread_t thread;
    void *waited = NULL;
    pthread_create(&thread, NULL, wait_elsewhere, events[0]);
    OK(ortc_event_wait(events[0], &e));
    pthread_join(thread, &waited);
    CHECK(waited == events[0], "two may wait");
    for (int i = 0; i < RUNS; i++) {
        if (i != RUNS - 1) OK(ortc_event_wait(events[i], &e));
        CHECK(i == RUNS - 1 || (ortc_event_done(events[i]) && equal(results[i])), "run %d", i);
        ortc_event_release(events[i]); /* waits for the last one */
        CHECK(equal(results[i]), "run %d", i);
        ortc_value_release(results[i]);
    }
    ortc_session_release(s);
}

/* A failure comes out of the wait. */
static void test_async_failure(ortc_model *m)
{
    ortc_session *s = open_session(m, "sim:fail=2:delay=2");
    const int64_t dims[] = {SMALL, WIDTH};
    ortc_event *event = NULL;
    ortc_in in = {"X", ortc_wrap(x, ORTC_F32, 2, dims)};
    ortc_out out = {"Y", NULL, 0, 0};
    ortc_run_args a = args_of(&in, &out);
    a.done = &event;
    OK(ortc_run(s, &a, &e));
    CHECK(ortc_event_wait(event, &e) == ORTC_DEVICE_ERROR && strstr(e.text, "sim"), "%s", e.text);
    CHECK(ortc_event_wait(event, NULL) == ORTC_DEVICE_ERROR, "again the same");
    ortc_event_release(event);
    ortc_value_release(out.value);
    ortc_value_release(in.value);
    ortc_session_release(s);
}

/* A caller's queue: the run's work goes there, behind what the caller has put in it. */
static void test_native(ortc_model *m, void *plugin)
{
    void *(*make)(void), (*end)(void *);
    void *symbols[2] = {dlsym(plugin, "sim_make_native"), dlsym(plugin, "sim_end_native")};
    memcpy(&make, &symbols[0], sizeof make);
    memcpy(&end, &symbols[1], sizeof end);
    void *native = make();
    ortc_session *s = open_session(m, "sim"), *host = open_session(m, "cpu");
    const int64_t dims[] = {SMALL, WIDTH};
    ortc_in in = {"X", ortc_wrap(x, ORTC_F32, 2, dims)};
    ortc_out out = {"Y", NULL, 0, 0};
    ortc_run_args a = args_of(&in, &out);
    a.queue = native;
    for (int i = 0; i < 3; i++) {
        a.queue = i == 1 ? NULL : native; /* the context's own in between */
        out.value = NULL;
        OK(ortc_run(s, &a, &e));
        CHECK(equal(out.value), "run %d", i);
        ortc_value_release(out.value);
    }
    out.value = NULL;
    CHECK(ortc_run(host, &a, &e) == ORTC_INVALID_ARGUMENT && strstr(e.text, "cpu"), "%s", e.text);
    ortc_value_release(in.value);
    ortc_session_release(s);
    ortc_session_release(host);
    end(native);
}

/* ---- Captured graphs ----------------------------------------------------------------------------------- */

static ortc_session_stats statistics(ortc_session *s)
{
    ortc_session_stats stats = ORTC_SESSION_STATS_INIT;
    ortc_session_statistics(s, &stats);
    return stats;
}

static void test_capture(ortc_model *m)
{
    ortc_session *s = open_session(m, "sim");
    ortc_value *out;
    float other[SMALL * WIDTH] = {0};
    /* Host tensors: what is captured lies between the copies, and new addresses of the caller's do not
     * matter. */
    for (int i = 0; i < 8; i++) {
        OK(run(s, i == 5 ? other : x, SMALL, &out, &e));
        CHECK(i == 5 ? !equal(out) : equal(out), "run %d", i);
        ortc_value_release(out);
    }
    ortc_session_stats stats = statistics(s);
    CHECK(stats.captures == 1 && stats.replays == 6, "%llu captures, %llu replays",
          (unsigned long long)stats.captures, (unsigned long long)stats.replays);
    CHECK(stats.bytes_to_devices == 8 * sizeof x && stats.bytes_from_devices == 8 * (sizeof x + 4),
          "%llu in, %llu out", (unsigned long long)stats.bytes_to_devices,
          (unsigned long long)stats.bytes_from_devices);

    /* Tensors on the device: two pairs of addresses, two captures, each replayed. */
    uint32_t memory = 0;
    const int64_t dims[] = {SMALL, WIDTH};
    ortc_value *in[2] = {NULL}, *given[2] = {NULL}, *back = NULL, *host = ortc_wrap(x, ORTC_F32, 2, dims);
    OK(ortc_session_memory(s, "sim", &memory, &e));
    OK(ortc_value_create(ORTC_F32, 2, dims, &back, &e));
    for (int k = 0; k < 2; k++) {
        OK(ortc_value_create_in(memory, ORTC_F32, 2, dims, &in[k], &e));
        OK(ortc_value_create_in(memory, ORTC_F32, 2, dims, &given[k], &e));
        OK(ortc_value_copy(host, in[k], &e));
    }
    for (int i = 0; i < 12; i++) {
        ortc_in input = {"X", in[i % 2]};
        ortc_out output = {"Y", given[i % 2], 0, 0};
        ortc_run_args a = args_of(&input, &output);
        OK(ortc_run(s, &a, &e));
        OK(ortc_value_copy(given[i % 2], back, &e));
        CHECK(equal(back), "run %d", i);
        memset(ortc_value_data(back), 0, ortc_value_bytes(back));
        OK(ortc_value_copy(back, given[i % 2], &e));
    }
    stats = statistics(s);
    CHECK(stats.captures == 3 && stats.replays == 6 + 10, "%llu captures, %llu replays",
          (unsigned long long)stats.captures, (unsigned long long)stats.replays);
    /* Addresses that never settle: after a few captures it is left alone. */
    for (int i = 0; i < 40; i++) {
        ortc_value *fresh = NULL;
        OK(ortc_value_create_in(memory, ORTC_F32, 2, dims, &fresh, &e));
        ortc_in input = {"X", in[0]};
        ortc_out output = {"Y", fresh, 0, 0};
        ortc_run_args a = args_of(&input, &output);
        OK(ortc_run(s, &a, &e));
        OK(ortc_value_copy(fresh, back, &e));
        CHECK(equal(back), "run %d", i);
        if (i % 2)
            ortc_value_release(given[0]), given[0] = fresh; /* so that addresses do not come again at once */
        else
            ortc_value_release(given[1]), given[1] = fresh;
    }
    CHECK(statistics(s).captures <= 9, "%llu captures", (unsigned long long)statistics(s).captures);
    for (int k = 0; k < 2; k++) {
        ortc_value_release(in[k]);
        ortc_value_release(given[k]);
    }
    ortc_value_release(back);
    ortc_value_release(host);
    ortc_session_release(s);
}

/* ---- Faults: data that a kernel on a device finds wrong ------------------------------------------------ */

static void test_fault(void)
{
    buffer g = {0}, b;
    const int64_t table[] = {4, 2}, line[] = {3};
    put_node(&g, "Gather", "T I", "a");
    put_node(&g, "Relu", "a", "Y");
    b = make_tensor("T", ORTC_F32, 2, table, weights, 8 * sizeof *weights);
    put_message(&g, 5, &b);
    b = make_value_info("I", ORTC_I64, 1, line);
    put_message(&g, 11, &b);
    b = make_value_info("Y", ORTC_F32, -1, NULL);
    put_message(&g, 12, &b);
    buffer model = make_model(10, 18, &g);
    ortc_model *m = NULL;
    OK(ortc_model_load_memory(model.data, model.bytes, NULL, &m, &e));
    ortc_session *s = open_session(m, "sim");
    for (int i = 0; i < 7; i++) { /* eagerly, and from a captured graph */
        int64_t indices[] = {1, i % 3 == 1 ? 4 : 3, -4};
        ortc_in in = {"I", ortc_wrap(indices, ORTC_I64, 1, line)};
        ortc_out out = {"Y", NULL, 0, 0};
        ortc_run_args a = args_of(&in, &out);
        ortc_status status = ortc_run(s, &a, &e);
        if (i % 3 == 1)
            CHECK(status == ORTC_INVALID_ARGUMENT && strstr(e.text, "sim") && strstr(e.text, "index") &&
                      !out.value,
                  "%d %s", status, e.text);
        else
            CHECK(status == ORTC_OK, "run %d: %s", i, e.text);
        ortc_value_release(out.value);
        ortc_value_release(in.value);
    }
    CHECK(statistics(s).replays > 0, "captured");
    ortc_session_release(s);
    ortc_model_release(m);
    buffer_free(&model);
}

/* ---- Many at once -------------------------------------------------------------------------------------- */

static ortc_session *shared;
static void *run_many(void *arg)
{
    ortc_error error = ORTC_ERROR_INIT;
    float input[SMALL * WIDTH];
    int bad = 0;
    (void)arg;
    for (int i = 0; i < 250; i++) {
        ortc_value *out;
        memcpy(input, x, sizeof x);
        bad += run(shared, input, SMALL, &out, &error) != ORTC_OK || !equal(out);
        ortc_value_release(out);
        memset(input, 0xff, sizeof input); /* nobody may be reading it now */
    }
    CHECK(!bad, "%d of 250 runs: %s", bad, error.text);
    return NULL;
}

static void test_many(ortc_model *m)
{
    pthread_t threads[4];
    shared = open_session(m, "sim:delay=30:only=MatMul+Relu");
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, run_many, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    ortc_session_release(shared);
}

int main(int argc, char **argv)
{
    if (argc != 2) return 2;
    OK(ortc_plugin_load(argv[1], &e));
    for (int i = 0; i < WIDTH * WIDTH; i++) weights[i] = (float)((i * 7) % 11 - 5) / 4;
    for (int i = 0; i < WIDTH; i++) bias[i] = (float)(i - 3) / 2;
    for (int i = 0; i < SMALL * WIDTH; i++) x[i] = (float)((i * 5) % 13 - 6) / 2;
    ortc_model *m = load();
    ortc_session *ref = open_session(m, "ref");
    ortc_value *out = NULL;
    OK(run(ref, x, SMALL, &out, &e));
    memcpy(expected, ortc_value_host(out), sizeof expected);
    ortc_value_release(out);
    ortc_session_release(ref);
    test_placement(m);
    test_memory(m);
    test_large(m);
    test_exhaustion(m);
    test_failure(m);
    test_async(m, "sim:delay=3000", 1);
    test_async(m, "sim:only=MatMul:delay=50", 0);
    test_async(m, "cpu", 0);
    test_async_failure(m);
    test_native(m, dlopen(argv[1], RTLD_NOW | RTLD_NOLOAD));
    test_capture(m);
    test_fault();
    test_many(m);
    ortc_model_release(m);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
