/* tests/plugin/test_words.c: a plugin's operators make and read maps and strings. A plain program.
 * usage: test_words PLUGIN */
#include <stdio.h>

#include "../unit/wire_writer.h"
#include "ortc/ortc.h"

static int passed, failed;
static void check(int good, const char *what, const char *text)
{
    passed += good != 0;
    failed += !good;
    if (!good) printf("FAILED %s: %s\n", what, text);
}

/* words -> first -> counts -> Most -> word */
static buffer build(const char *first)
{
    buffer graph = {0}, node = make_node(first, "test.words", "words", "counts"),
           info = make_value_info("words", ORTC_STRING, 1, (int64_t[]){-1});
    put_message(&graph, 1, &node);
    node = make_node("Most", "test.words", "counts", "word");
    put_message(&graph, 1, &node);
    put_string(&graph, 2, "words");
    put_message(&graph, 11, &info);
    for (int i = 0; i < 2; i++) {
        buffer out = {0};
        put_string(&out, 1, i ? "counts" : "word");
        put_message(&graph, 12, &out);
    }
    buffer model = make_model(8, 17, &graph);
    put_opset(&model, 8, "test.words", 1);
    return model;
}

int main(int argc, char **argv)
{
    static const char *const words[] = {"to", "be", "or", "not", "to", "be", "to"};
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *model = NULL;
    ortc_session *session = NULL;
    buffer bytes = build("Count");
    check(argc == 2 && ortc_plugin_load(argv[1], &e) == ORTC_OK, "the plugin", e.text);
    check(ortc_model_load_memory(bytes.data, bytes.bytes, NULL, &model, &e) == ORTC_OK, "the model", e.text);
    check(model && ortc_session_create(model, NULL, &session, &e) == ORTC_OK, "a session", e.text);
    for (int64_t n = 7; n >= 0 && session; n -= 7) { /* all the words, then none */
        size_t length = 0;
        ortc_in in = {"words", NULL};
        ortc_out out[2] = {{.name = "word"}, {.name = "counts"}};
        ortc_run_args a = ORTC_RUN_ARGS_INIT;
        a.in = &in, a.n_in = 1, a.out = out, a.n_out = 2;
        ortc_value_create_strings(1, &n, words, NULL, &in.value, NULL);
        ortc_status s = ortc_run(session, &a, &e);
        ortc_value_release(in.value);
        if (n) {
            check(s == ORTC_OK && ortc_value_count(out[1].value) == 4, "a run", e.text);
            const char *text = out[0].value ? ortc_value_string(out[0].value, 0, &length) : "";
            check(length == 2 && !memcmp(text, "to", 2), "the word", "is another");
            const ortc_value *counts = out[1].value ? ortc_value_element(out[1].value, 1) : NULL;
            check(counts && *(const int64_t *)ortc_value_host(counts) == 3, "the counts", "are others");
        } else
            check(s == ORTC_INVALID_ARGUMENT && strstr(e.text, "there are no words") && !out[0].value &&
                      !out[1].value,
                  "no words", e.text);
        ortc_value_release(out[0].value);
        ortc_value_release(out[1].value);
    }
    ortc_session_release(session);
    ortc_model_release(model);
    buffer_free(&bytes);
    bytes = build("Nothing");
    session = NULL;
    check(ortc_model_load_memory(bytes.data, bytes.bytes, NULL, &model, &e) == ORTC_OK &&
              ortc_session_create(model, NULL, &session, &e) == ORTC_OK,
          "a careless operator", e.text);
    if (session) {
        ortc_in in = {"words", NULL};
        ortc_out out = {.name = "word"};
        ortc_run_args a = ORTC_RUN_ARGS_INIT;
        a.in = &in, a.n_in = 1, a.out = &out, a.n_out = 1;
        ortc_value_create_strings(1, (int64_t[]){7}, words, NULL, &in.value, NULL);
        check(ortc_run(session, &a, &e) == ORTC_INTERNAL &&
                  strstr(e.text, "'nothing' gave no value for output 0"),
              "its run", e.text);
        ortc_value_release(in.value);
    }
    ortc_session_release(session);
    ortc_model_release(model);
    buffer_free(&bytes);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
