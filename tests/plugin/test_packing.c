/* tests/plugin/test_packing.c: when a plugin's packed forms are made: those that pass in every run, those
 * that are left in all but the first, unless the session packs at once. A plain program.
 * usage: test_packing PLUGIN */
#include <stdio.h>
#include <stdlib.h>

#include "../unit/wire_writer.h"
#include "ortc/ortc.h"

enum { N = 1 << 20, NODES = 3 }; /* 4 MB of weights: as many as first runs pack as they go from on */
static const char *const names[NODES] = {"Kept", "Passing", "Left"};

static int passed, failed;
static void check(int good, const char *what, const char *text)
{
    passed += good != 0;
    failed += !good;
    if (!good) printf("FAILED %s: %s\n", what, text);
}

/* x -> Kept -> a -> Passing -> b -> Left -> y, W each, or what is from node `from` on; f0, f1, f2: whether
 * there was a form. */
static buffer build(const float *w, int from)
{
    const int64_t n = N;
    buffer graph = {0}, tensor = make_tensor("w", ORTC_F32, 1, &n, w, N * sizeof *w),
           info = make_value_info("x", ORTC_F32, 1, &n);
    static const char *const in[] = {"x w", "a w", "b w"}, *const out[] = {"a f0", "b f1", "y f2"};
    for (int i = from; i < NODES; i++) {
        buffer node = make_node(names[i], "test.packing", i == from ? "x w" : in[i], out[i]);
        put_message(&graph, 1, &node);
    }
    put_string(&graph, 2, "packing");
    put_message(&graph, 5, &tensor);
    put_message(&graph, 11, &info);
    for (int i = from; i <= NODES; i++) {
        buffer result = {0};
        put_string(&result, 1, (const char *[]){"f0", "f1", "f2", "y"}[i]);
        put_message(&graph, 12, &result);
    }
    buffer model = make_model(8, 17, &graph);
    put_opset(&model, 8, "test.packing", 1);
    return model;
}

/* Three runs of a session. Left alone lacks its form, in the first alone, unless all is packed at once. */
static void runs(ortc_model *model, const float *w, int from, uint32_t flags)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_session_options o = ORTC_SESSION_OPTIONS_INIT;
    ortc_session *session = NULL;
    ortc_value *x = NULL;
    const int64_t n = N;
    o.flags = flags;
    check(ortc_session_create(model, &o, &session, &e) == ORTC_OK, "a session", e.text);
    check(ortc_value_create(ORTC_F32, 1, &n, &x, &e) == ORTC_OK, "a value", e.text);
    if (!session || !x) return;
    for (int i = 0; i < N; i++) ((float *)ortc_value_data(x))[i] = (float)(i % 7);
    for (int r = 0; r < 3; r++) {
        ortc_in in = {"x", x};
        ortc_out out[NODES + 1] = {{.name = "f0"}, {.name = "f1"}, {.name = "f2"}, {.name = "y"}};
        ortc_run_args a = ORTC_RUN_ARGS_INIT;
        a.in = &in, a.n_in = 1, a.out = out + from, a.n_out = (size_t)(NODES + 1 - from);
        const int ran = ortc_run(session, &a, &e) == ORTC_OK;
        check(ran, "a run", e.text);
        for (int i = from; i < NODES && ran; i++) {
            const int wanted = i < NODES - 1 || r > 0 || flags;
            check(*(const int64_t *)ortc_value_host(out[i].value) == wanted, names[i],
                  wanted ? "has no form" : "has a form in a first run");
        }
        int right = ran;
        const float *y = ran ? (const float *)ortc_value_host(out[NODES].value) : NULL;
        for (int i = 0; i < N && right; i++)
            right = y[i] == (float)(i % 7) + (float)(2 * (NODES - from)) * w[i];
        check(right, "the sum", "is another");
        for (int i = from; i <= NODES; i++) ortc_value_release(out[i].value);
    }
    ortc_value_release(x);
    ortc_session_release(session);
}

int main(int argc, char **argv)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *model = NULL;
    float *w = (float *)malloc(N * sizeof *w);
    if (!w) return 1;
    for (int i = 0; i < N; i++) w[i] = (float)(i % 13);
    check(argc == 2 && ortc_plugin_load(argv[1], &e) == ORTC_OK, "the plugin", e.text);
    for (int k = 0; k < 4; k++) { /* a model keeps what its sessions packed: one each */
        const int from = k / 2 * (NODES - 1), at_once = k % 2; /* all, or what is left alone */
        buffer bytes = build(w, from);
        check(ortc_model_load_memory(bytes.data, bytes.bytes, NULL, &model, &e) == ORTC_OK, "the model",
              e.text);
        if (model) runs(model, w, from, at_once ? ORTC_SESSION_PACK_AT_ONCE : 0);
        ortc_model_release(model);
        model = NULL;
        buffer_free(&bytes);
    }
    free(w);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
