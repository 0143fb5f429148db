/* examples/hello.c: the smallest program that runs a model: a hand-made 8x8 picture of a stroke goes in, the
 * best class comes out. It compiles against an installed ortc:
 *
 *   cc hello.c $(pkg-config --cflags --libs ortc) -o hello && ./hello digits.onnx
 */
#include <ortc/ortc.h>
#include <stdio.h>

#define STROKE 0, 0, 0, 255, 255, 0, 0, 0
static float picture[] = {STROKE, STROKE, STROKE, STROKE, STROKE, STROKE, STROKE, STROKE};

static int best_class(const ortc_value *probabilities)
{
    const float *p = ortc_value_host(probabilities);
    int best = 0;
    for (int i = 1; i < ortc_value_count(probabilities); i++) best = p[i] > p[best] ? i : best;
    return best;
}

int main(int argc, char **argv)
{
    ortc_error e = ORTC_ERROR_INIT; /* our storage: says what went wrong, needs no release */
    ortc_model *model = NULL;       /* what the file says; many sessions can share it */
    ortc_session *session = NULL;   /* the model made ready for this machine; many threads can share it */
    ortc_in in = {"image", ortc_wrap(picture, ORTC_F32, 4, (int64_t[]){1, 1, 8, 8})}; /* not copied */
    /* ortc makes the tensor */
    ortc_out out = {.name = "probabilities"};
    ortc_run_args args = {sizeof args, .in = &in, .n_in = 1, .out = &out, .n_out = 1};
    if (ortc_model_load(argc > 1 ? argv[1] : "digits.onnx", NULL, &model, &e) ||
        ortc_session_create(model, NULL, &session, &e) || ortc_run(session, &args, &e))
        fprintf(stderr, "%s\n", e.text);
    else
        printf("class %d\n", best_class(out.value));
    ortc_value_release(out.value), ortc_value_release(in.value); /* NULL is fine everywhere */
    ortc_session_release(session), ortc_model_release(model);
    return e.code;
}
