/* examples/detect.c: finds objects in a picture and draws what it has found.
 *
 *   cc detect.c $(pkg-config --cflags --libs ortc) -o detect && ./detect detect.onnx detect.ppm boxes.ppm
 *
 * How many boxes there are is known only while the model runs (NonMaxSuppression): their number is read off
 * the result's shape. make_models.py writes the model and the picture, a binary PPM of 64x64 pixels.
 */
#include <ortc/ortc.h>
#include <stdio.h>

enum { SIZE = 64 };
static unsigned char picture[SIZE][SIZE][3];
static float image[3][SIZE][SIZE];

static int read_picture(const char *path)
{
    int width, height;
    FILE *f = fopen(path, "rb");
    const int good = f && fscanf(f, "P6 %d %d 255", &width, &height) == 2 && width == SIZE &&
                     height == SIZE && fgetc(f) != EOF && fread(picture, sizeof picture, 1, f) == 1;
    if (f) fclose(f);
    for (int y = 0; y < SIZE; y++)
        for (int x = 0; x < SIZE; x++)
            for (int c = 0; c < 3; c++) image[c][y][x] = (float)picture[y][x][c] / 255;
    return good;
}

static void draw(const float *box) /* top, left, bottom, right */
{
    const int top = (int)box[0], left = (int)box[1], bottom = (int)box[2] - 1, right = (int)box[3] - 1;
    for (int y = top; y <= bottom && y < SIZE; y++)
        for (int x = left; x <= right && x < SIZE; x++)
            if (y == top || y == bottom || x == left || x == right)
                picture[y][x][0] = 255, picture[y][x][1] = picture[y][x][2] = 0;
}

int main(int argc, char **argv)
{
    ortc_error e = ORTC_ERROR_INIT;
    ortc_model *model = NULL;
    ortc_session *session = NULL;
    FILE *f = NULL;
    if (argc != 4 || !read_picture(argv[2])) {
        fprintf(stderr, "usage: detect MODEL PICTURE.ppm OUT.ppm\n");
        return 2;
    }
    ortc_in in = {"image", ortc_wrap(image, ORTC_F32, 4, (int64_t[]){1, 3, SIZE, SIZE})};
    ortc_out out[] = {{.name = "found"}, {.name = "confidence"}};
    ortc_run_args args = {sizeof args, .in = &in, .n_in = 1, .out = out, .n_out = 2};
    if (ortc_model_load(argv[1], NULL, &model, &e) || ortc_session_create(model, NULL, &session, &e) ||
        ortc_run(session, &args, &e)) {
        fprintf(stderr, "%s\n", e.text);
    } else {
        const float *box = ortc_value_host(out[0].value), *confidence = ortc_value_host(out[1].value);
        for (int64_t i = 0; i < ortc_value_dims(out[0].value)[0]; i++) {
            printf("%.2f at %.0f,%.0f to %.0f,%.0f\n", confidence[i], box[4 * i], box[4 * i + 1],
                   box[4 * i + 2], box[4 * i + 3]);
            draw(&box[4 * i]);
        }
        f = fopen(argv[3], "wb");
        if (!f || fprintf(f, "P6\n%d %d\n255\n", SIZE, SIZE) < 0 ||
            fwrite(picture, sizeof picture, 1, f) != 1)
            e.code = ORTC_IO, perror(argv[3]);
        if (f) fclose(f);
    }
    for (int i = 0; i < 2; i++) ortc_value_release(out[i].value);
    ortc_value_release(in.value);
    ortc_session_release(session), ortc_model_release(model);
    return e.code;
}
