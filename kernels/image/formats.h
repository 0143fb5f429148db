/* kernels/image/formats.h: what the files of the module share: one picture being decoded, and a function
 * for each format.
 *
 * Pictures come from anywhere: sizes are checked before memory is asked for, and a library is handed no
 * more than the file's bytes. A decoder gives false with a reason, or true with every pixel written.
 */
#ifndef ORTC_KERNELS_IMAGE_FORMATS_H
#define ORTC_KERNELS_IMAGE_FORMATS_H

#include <stdbool.h>

#include "kernels/image/codec.h"

typedef struct image_job {
    const uint8_t *data;
    size_t bytes;
    uint64_t max_pixels;
    image *out;
    char *error; /* IMAGE_ERROR_BYTES */
} image_job;

/* The first reason is kept. Always false. */
ORTC_PRINTF(2, 3) bool image_fail(image_job *, const char *fmt, ...);
/* Makes room for the pixels, zeroed; false: too many, none, or no memory. */
bool image_begin(image_job *, uint64_t width, uint64_t height, uint32_t channels);

bool image_bmp(image_job *);
bool image_jpeg(image_job *);
bool image_jpeg2000(image_job *);
bool image_png(image_job *);
bool image_pnm(image_job *);
bool image_tiff(image_job *);
bool image_webp(image_job *);

#endif
