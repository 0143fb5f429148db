/* tools/ortc/image.h: pictures as model inputs: what the codec module offers, and how pixels become a tensor.
 *
 * Codecs live in a module of their own, libortc_image.so, which is opened when the first picture comes: so
 * the command line starts without libpng, and works where there is none. This header is the whole interface
 * between the two.
 */
#ifndef IMAGE_H
#define IMAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ortc/ortc.h"

/* 8 bits a sample, 1 (grey) or 3 (RGB) samples a pixel, rows from the top without padding. Transparency is
 * dropped, not blended, and colour is not managed: samples are those of the file, as most training pipelines
 * read them. */
typedef struct image {
    uint32_t width, height, channels;
    uint8_t *pixels; /* free() */
} image;

/* ---- The module's side --------------------------------------------------------------------------------- */

enum { IMAGE_CODEC_VERSION = 1, IMAGE_ERROR_BYTES = 200 };

typedef struct image_codec {
    uint32_t version; /* IMAGE_CODEC_VERSION: anything else is refused */
    const char *name; /* "libpng 1.6.39" */
    /* 0, or -1 with one line in `error` (IMAGE_ERROR_BYTES) and *out zeroed. More than max_pixels:
     * refused. */
    int (*decode)(const void *data, size_t bytes, uint64_t max_pixels, image *out, char *error);
} image_codec;

/* The module's only symbol. */
#define IMAGE_CODEC_SYMBOL "ortc_image_codec"
ORTC_EXPORT const image_codec *ortc_image_codec(void);

/* ---- The command line's side --------------------------------------------------------------------------- */

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
