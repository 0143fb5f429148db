/* examples/hello.c: the smallest program that runs a model: a hand-made 8x8 picture of a stroke goes in, the best class
 * comes out. It compiles against an installed ortc:
 *
 *   cc hello.c $(pkg-config --cflags --libs ortc) -o hello && ./hello digits.onnx
 */
#include <ortc/ortc.h>
#include <stdio.h>

int main(int argc, char **argv)
{
    ortc_error e = ORTC_ERROR_INIT;  /* our storage: says what went wrong, needs no release */
    ortc_model *model = NULL;        /* what the file says; many sessions can share it */
    ortc_session *session = NULL;    /* the model made ready for this machine; many threads can share it */
    float image[8 * 8] = {0};        /* black... */
    for (int y = 0; y < 8; y++)
        image[8 * y + 3] = image[8 * y + 4] = 255; /* ...with a stroke from top to bottom */

    ortc_in in = {"image", ortc_wrap(image, ORTC_F32, 4, (int64_t[]){1, 1, 8, 8})}; /* not copied */
    ortc_out out = {.name = "probabilities"};                                      /* ortc makes the tensor */
    ortc_run_args args = {sizeof args, .in = &in, .n_in = 1, .out = &out, .n_out = 1};
    if (ortc_model_load(argc > 1 ? argv[1] : "digits.onnx", NULL, &model, &e) != ORTC_OK ||
        ortc_session_create(model, NULL, &session, &e) != ORTC_OK || ortc_run(session, &args, &e) != ORTC_OK) {
        fprintf(stderr, "%s\n", e.text);
        return 1;
    }
    const float *p = ortc_value_host(out.value);
    int best = 0;
    for (int i = 1; i < ortc_value_count(out.value); i++)
        best = p[i] > p[best] ? i : best;
    printf("class %d, probability %.2f\n", best, p[best]);

    ortc_value_release(out.value);
    ortc_value_release(in.value);
    ortc_session_release(session);
    ortc_model_release(model);
    return 0;
}
