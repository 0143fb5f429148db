/* tools/ortc/image_jpeg.h: the image module's second codec; as image_codec.decode. */
#ifndef IMAGE_JPEG_H
#define IMAGE_JPEG_H

#include "image.h"

int jpeg_decode(const void *data, size_t bytes, uint64_t max_pixels, image *out, char *error);

#endif
