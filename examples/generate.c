/* examples/generate.c: generates text, one character a run, with a cache that the library keeps and lets
 * grow.
 *
 *   cc generate.c $(pkg-config --cflags --libs ortc) -o generate
 *   ./generate generate.onnx "zyxwv. zy" 11
 *
 * The caches of keys and values grow along axis 1 by what each run appends; `before`, the character read
 * last, is replaced as a whole. make_models.py writes the model. In a model whose cache has a fixed extent
 * (TensorScatter), tie it along its axis with .advance: nothing is copied then, and one plan serves every
 * step.
 */
#include <ortc/ortc.h>
#include <stdio.h>
#include <stdlib.h>

enum { MOST = 4096 };

/* Reads a character; the one that the model expects to follow. */
static int64_t next(ortc_session *session, ortc_state *state, int64_t token, ortc_error *e)
{
    ortc_in in = {"token", ortc_wrap(&token, ORTC_I64, 2, (int64_t[]){1, 1})};
    ortc_out out = {.name = "next"};
    ortc_run_args args = {sizeof args, .in = &in, .n_in = 1, .out = &out, .n_out = 1, .state = state};
    int64_t follows = 0;
    if (ortc_run(session, &args, e) == ORTC_OK) follows = *(const int64_t *)ortc_value_host(out.value);
    ortc_value_release(in.value), ortc_value_release(out.value);
    return follows;
}

int main(int argc, char **argv)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *model = NULL;
    ortc_session *session = NULL;
    ortc_state *state = NULL;
    const ortc_tie ties[] = {{"past_keys", "keys", 1, 0, MOST},
                             {"past_values", "values", 1, 0, MOST},
                             {"before", "before_next", -1, 0, 0}};
    ortc_session_options options = ORTC_SESSION_OPTIONS_INIT;
    options.ties = ties;
    options.n_ties = sizeof ties / sizeof *ties;
    if (argc != 4 || !argv[2][0]) {
        fprintf(stderr, "usage: generate MODEL TEXT CHARACTERS\n");
        return 2;
    }
    if (ortc_model_load(argv[1], NULL, &model, &e) || ortc_session_create(model, &options, &session, &e) ||
        ortc_state_create(session, &state, &e)) {
        fprintf(stderr, "%s\n", e.text);
    } else {
        int64_t token = 0;
        for (const char *p = argv[2]; *p && !e.code; p++) token = next(session, state, *p & 127, &e);
        printf("%s", argv[2]);
        for (int n = atoi(argv[3]); n > 0 && !e.code; n--) {
            putchar((int)token);
            token = next(session, state, token, &e);
        }
        putchar('\n');
        if (e.code) fprintf(stderr, "%s\n", e.text);
    }
    ortc_state_release(state), ortc_session_release(session), ortc_model_release(model);
    return e.code;
}
