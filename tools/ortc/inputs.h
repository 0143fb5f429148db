/* tools/ortc/inputs.h: from `--input` to values: which input is meant, what the file holds, does it fit.
 *
 *   NAME=FILE      .npy, .npz (the array NAME, or the only one; FILE.npz:KEY names it), .pb (a TensorProto,
 *                  or what the
 *                  input's type says), a picture (repeated for one input: a batch)
 *   NAME=FILL      zeros, ones, rand, rand:uniform(a,b), rand:normal(mean,deviation)
 *   FILE           for the only input that needs a value; an .npz: arrays by the inputs' names
 *   FILL           for every input that has none yet
 *
 * A tensor of another element type than the model's is converted if every element survives exactly, which a
 * note says (numpy makes i64 and f64 of everything); else it is an error that names the fix, or `--cast`
 * rounds.
 */
#ifndef INPUTS_H
#define INPUTS_H

#include "args.h"
#include "cli.h"
#include "image.h"
#include "session.h"

typedef struct input_options {
    arg_list inputs;
    bool cast;
    bool rest_is_random; /* what is not given: random numbers, empty strings */
    int64_t seed;
    const char *scale, *mean, *std; /* as given; parsed into `image` */
    image_options image;
} input_options;

/* What samples of a picture become; `lead` is what their help begins with. */
#define ARGS_SAMPLES(o, lead) \
    {.kind = ARG_TEXT, \
     .name = "scale", \
     .value = "X", \
     .to = &(o).scale, \
     .help = lead "a sample of 0..255 becomes (sample * X - mean) / std; 1/255 is a number (1)"}, \
        {.kind = ARG_TEXT, \
         .name = "mean", \
         .value = "X[,Y,Z]", \
         .to = &(o).mean, \
         .help = lead "one value, or one per channel (0)"}, \
    { \
        .kind = ARG_TEXT, .name = "std", .value = "X[,Y,Z]", .to = &(o).std, \
        .help = lead "one value, or one per channel (1)" \
    }
#define ARGS_INPUT(o) \
    {.kind = ARG_HEADING, .help = "Inputs"}, \
        {.kind = ARG_LIST, \
         .letter = 'i', \
         .name = "input", \
         .value = "[NAME=]VALUE", \
         .to = &(o).inputs, \
         .help = \
             "a .npy, .npz or .pb file, a picture, or rand, zeros, ones; NAME may be left out where only " \
             "one input is " \
             "meant; may be repeated"}, \
        {.kind = ARG_FLAG, \
         .name = "cast", \
         .to = &(o).cast, \
         .help = "round a file's numbers to the model's type, where they do not fit exactly"}, \
        {.kind = ARG_INTEGER, \
         .name = "seed", \
         .value = "N", \
         .to = &(o).seed, \
         .max = INT64_MAX, \
         .help = "for rand, and for the model's own random operators (0)"}, \
        ARGS_SAMPLES(o, "pictures: "), \
        {.kind = ARG_CHOICE, \
         .name = "layout", \
         .value = "L", \
         .to = &(o).image.layout, \
         .choices = layout_choices, \
         .help = "pictures: nchw or nhwc; guessed where 1 or 3 channels say it"}, \
    { \
        .kind = ARG_CHOICE, .name = "resize", .value = "HOW", .to = &(o).image.resize, \
        .choices = resize_choices, .help = "pictures: none or bilinear, to the input's size (none)" \
    }
extern const char *const layout_choices[], *const resize_choices[];

typedef struct input {
    const ortc_io *io;
    bool tied;         /* comes from the run before */
    ortc_value *value; /* NULL: not given, the model has a default */
    char *source;      /* "7.png", "rand"; for reports */
    size_t n_files;    /* pictures of a batch */
    const char **files;
    const struct inputs *all; /* those that it is one of */
} input;

typedef struct inputs {
    size_t count; /* one per input of the model */
    input *items;
    size_t n_in; /* those with a value, for ortc_run */
    ortc_in *in;
} inputs;

/* These print their errors; -1: go on, else the exit code. */
int input_options_parse(input_options *);
/* `optional`: an input without a value is no error but gets zeros (plans need shapes only). */
int inputs_resolve(ortc_model *, const session_options *, const input_options *, bool optional, inputs *out);
void inputs_release(inputs *);

#endif
