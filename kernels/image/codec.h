/* kernels/image/codec.h: the interface of the module of picture codecs, libortc_image.so, which the command
 * line opens when the first picture comes and libortc when a model has an ImageDecoder: so neither starts
 * with the codecs' libraries, and both work where there are none.
 */
#ifndef ORTC_KERNELS_IMAGE_CODEC_H
#define ORTC_KERNELS_IMAGE_CODEC_H

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

enum { IMAGE_CODEC_VERSION = 2, IMAGE_ERROR_BYTES = 200 };

typedef struct image_codec {
    uint32_t version;    /* IMAGE_CODEC_VERSION: anything else is refused */
    const char *formats; /* "PNG, JPEG, BMP and PNM" */
    /* 0, or -1 with one line in `error` (IMAGE_ERROR_BYTES) and *out zeroed. More than max_pixels:
     * refused. The file's first bytes say its format. */
    int (*decode)(const void *data, size_t bytes, uint64_t max_pixels, image *out, char *error);
} image_codec;

/* The module's symbol for the command line; it is a plugin, too, with ImageDecoder's kernel. */
#define IMAGE_CODEC_SYMBOL "ortc_image_codec"
ORTC_EXPORT const image_codec *ortc_image_codec(void);

#endif
