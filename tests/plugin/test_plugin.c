/* tests/plugin/test_plugin.c: plugins load, and broken ones are refused with a reason. A plain program.
 * usage: test_plugin C-PLUGIN C++-PLUGIN REFUSED...   (in the order of `expected`) */
#include <stdio.h>
#include <string.h>

#include "ortc/ortc.h"

static int passed, failed;
static void check(int good, const char *what, const char *text)
{
    if (good)
        passed++;
    else {
        failed++;
        printf("FAILED %s: %s\n", what, text);
    }
}

/* Appends a message field: tag, length, payload. */
static size_t put(unsigned char *to, unsigned char tag, const unsigned char *from, size_t n)
{
    to[0] = tag;
    to[1] = (unsigned char)n;
    memcpy(to + 2, from, n);
    return n + 2;
}

/* A model of one node: test.domain.Relu6 from X to Y, both f32[4]. */
static size_t build(unsigned char *out)
{
    static const unsigned char dim[] = {0x08, 4}; /* dim_value 4 */
    unsigned char shape[8], tensor[16], type[24], info[40], node[40], graph[160], opset[24];
    size_t n = put(shape, 0x0a, dim, sizeof dim), t = 0, g = 0, o = 0;
    tensor[t++] = 0x08, tensor[t++] = 1; /* f32 */
    t += put(tensor + t, 0x12, shape, n);
    size_t ty = put(type, 0x0a, tensor, t);
    size_t nn = 0;
    nn += put(node + nn, 0x0a, (const unsigned char *)"X", 1);
    nn += put(node + nn, 0x12, (const unsigned char *)"Y", 1);
    nn += put(node + nn, 0x22, (const unsigned char *)"Relu6", 5);
    nn += put(node + nn, 0x3a, (const unsigned char *)"test.domain", 11);
    g += put(graph + g, 0x0a, node, nn);
    for (int i = 0; i < 2; i++) {
        size_t k = put(info, 0x0a, (const unsigned char *)(i ? "Y" : "X"), 1);
        k += put(info + k, 0x12, type, ty);
        g += put(graph + g, i ? 0x62 : 0x5a, info, k);
    }
    out[o++] = 0x08, out[o++] = 8; /* ir_version */
    static const unsigned char standard[] = {0x10, 17};
    o += put(out + o, 0x42, standard, sizeof standard);
    size_t k = put(opset, 0x0a, (const unsigned char *)"test.domain", 11);
    opset[k++] = 0x10, opset[k++] = 1;
    o += put(out + o, 0x42, opset, k);
    o += put(out + o, 0x3a, graph, g);
    return o;
}

int main(int argc, char **argv)
{
    static const char *const expected[] = {"built for ABI 1",    "built for ABI 3", "description is broken",
                                           "failed to register", "does not export", "unknown sanitizer"};
    ortc_error e = ORTC_ERROR_INIT;
    unsigned char bytes[512];
    size_t n = build(bytes);
    ortc_model *m = NULL;
    ortc_session *s = NULL;
    if (argc != 3 + 6) {
        printf("usage: test_plugin C C++ REFUSED x6\n0 passed, 1 failed\n");
        return 1;
    }
    check(ortc_model_load_memory(bytes, n, NULL, &m, &e) == ORTC_UNSUPPORTED && strstr(e.text, "Relu6"),
          "the model before the plugin is there", e.text);
    check(ortc_plugin_load(argv[1], &e) == ORTC_OK, "the plugin in C", e.text);
    check(ortc_model_load_memory(bytes, n, NULL, &m, &e) == ORTC_OK, "the model", e.text);
    if (m && ortc_session_create(m, NULL, &s, &e) == ORTC_OK) {
        float x[4] = {-1, 3, 6.5f, 6};
        int64_t dims[1] = {4};
        ortc_in in = {"X", ortc_wrap(x, ORTC_F32, 1, dims)};
        ortc_out out = {"Y", NULL, 0, 0};
        ortc_run_args a = ORTC_RUN_ARGS_INIT;
        a.in = &in, a.n_in = 1, a.out = &out, a.n_out = 1;
        check(ortc_run(s, &a, &e) == ORTC_OK, "a run", e.text);
        const float *y = out.value ? ortc_value_host(out.value) : x;
        check(y[0] == 0 && y[1] == 3 && y[2] == 6 && y[3] == 6, "the result", "wrong values");
        ortc_value_release(out.value);
        ortc_value_release(in.value);
    } else
        check(0, "a session", e.text);
    ortc_session_release(s);
    ortc_model_release(m);
    /* The same operator again: refused, with its reason in the log, and nothing is lost. */
    check(ortc_plugin_load(argv[2], &e) != ORTC_OK && strstr(e.text, "failed to register"),
          "the plugin in C++", e.text);
    for (int i = 0; i < 6; i++)
        check(ortc_plugin_load(argv[3 + i], &e) != ORTC_OK && strstr(e.text, expected[i]), expected[i],
              e.text);
    check(ortc_plugin_load("no-such-file.so", &e) != ORTC_OK, "a file that is not there", e.text);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
