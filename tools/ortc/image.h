/* tools/ortc/image.h: pictures as model inputs: reading them through the module of codecs, and how pixels
 * become a tensor.
 */
#ifndef IMAGE_H
#define IMAGE_H

#include <stdbool.h>

#include "kernels/image/codec.h"

/* Reads and decodes a file. Errors: NOT_FOUND, IO, LIMIT, INVALID_ARGUMENT (damaged), UNSUPPORTED (no
 * module). */
ortc_status image_load(const char *path, image *out, ortc_error *);

enum { LAYOUT_GUESS, LAYOUT_NCHW, LAYOUT_NHWC };
enum { RESIZE_NONE, RESIZE_BILINEAR };
typedef struct image_options {
    double scale, mean[4], std[4]; /* a float input is (sample * scale - mean) / std, sample 0..255 */
    size_t n_mean, n_std;          /* 0: none given; 1: for all channels; else one per channel */
    bool has_scale;
    int layout, resize;
} image_options;

/* Pictures of one size as one tensor. io: the model's input (rank 2 to 4); dims: its shape, -1 where it is
 * free. Integer inputs get the samples as they are. *out is NULL on errors, whose text says what to pass. */
ortc_status image_tensor(const image *, size_t count, const ortc_io *io, const int64_t *dims,
                         const image_options *, ortc_value **out, ortc_error *);

#endif
