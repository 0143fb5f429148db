/* examples/transcribe.c: a stream through a model, frame by frame, with a state that the library keeps.
 *
 *   cc transcribe.c $(pkg-config --cflags --libs ortc) -o transcribe
 *   ./transcribe transcribe.onnx transcribe.wav
 *
 * What the model leaves in `heard_next` is the input `heard` of the next run with the same state: the tie
 * says so, and nothing passes through this program. Many streams may share the session, each with a state of
 * its own. make_models.py writes the model and the sound: 16 bits, one channel.
 */
#include <ortc/ortc.h>
#include <stdio.h>
#include <string.h>

enum { FRAME = 160, HEAD = 44 };

/* The letter of a frame; ' ' when there is no sound, 0 on errors. */
static char hear(ortc_session *session, ortc_state *state, const int16_t *samples, ortc_error *e)
{
    float frame[FRAME];
    for (int i = 0; i < FRAME; i++) frame[i] = (float)samples[i] / 32768;
    ortc_in in = {"frame", ortc_wrap(frame, ORTC_F32, 2, (int64_t[]){1, FRAME})};
    ortc_out out[] = {{.name = "letter"}, {.name = "loudness"}};
    ortc_run_args args = {sizeof args, .in = &in, .n_in = 1, .out = out, .n_out = 2, .state = state};
    char letter = 0;
    if (ortc_run(session, &args, e) == ORTC_OK)
        letter = *(const float *)ortc_value_host(out[1].value) < 0.05f
                     ? ' '
                     : (char)('a' + *(const int64_t *)ortc_value_host(out[0].value));
    ortc_value_release(in.value), ortc_value_release(out[0].value), ortc_value_release(out[1].value);
    return letter;
}

int main(int argc, char **argv)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *model = NULL;
    ortc_session *session = NULL;
    ortc_state *state = NULL;
    const ortc_tie tie = {"heard", "heard_next", -1, 0, 0};
    ortc_session_options options = ORTC_SESSION_OPTIONS_INIT;
    int16_t samples[FRAME];
    char head[HEAD], last = ' ';
    FILE *f = argc == 3 ? fopen(argv[2], "rb") : NULL;
    if (!f || fread(head, HEAD, 1, f) != 1 || memcmp(head, "RIFF", 4) || memcmp(head + 36, "data", 4)) {
        fprintf(stderr, "usage: transcribe MODEL SOUND.wav (16 bits, one channel)\n");
        return 2;
    }
    options.ties = &tie;
    options.n_ties = 1;
    if (ortc_model_load(argv[1], NULL, &model, &e) || ortc_session_create(model, &options, &session, &e) ||
        ortc_state_create(session, &state, &e)) {
        fprintf(stderr, "%s\n", e.text);
    } else {
        while (!e.code && fread(samples, sizeof samples, 1, f) == 1) {
            const char letter = hear(session, state, samples, &e);
            if (letter && letter != last && letter != ' ') putchar(letter);
            last = letter;
        }
        if (e.code) fprintf(stderr, "%s", e.text);
        putchar('\n');
    }
    fclose(f);
    ortc_state_release(state), ortc_session_release(session), ortc_model_release(model);
    return e.code;
}
