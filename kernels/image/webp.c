/* kernels/image/webp.c: WebP by libwebp: still pictures, lossy and lossless. */
#include <webp/decode.h>

#include "kernels/image/formats.h"

bool image_webp(image_job *j)
{
    WebPBitstreamFeatures f;
    if (WebPGetFeatures(j->data, j->bytes, &f) != VP8_STATUS_OK)
        return image_fail(j, "it is no WebP picture, or is damaged");
    if (f.has_animation) return image_fail(j, "it moves, and only still pictures are read");
    if (!image_begin(j, (uint64_t)f.width, (uint64_t)f.height, 3)) return false;
    const size_t row = (size_t)j->out->width * 3;
    return WebPDecodeRGBInto(j->data, j->bytes, j->out->pixels, row * j->out->height, (int)row) ||
           image_fail(j, "it is damaged");
}
