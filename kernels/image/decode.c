/* kernels/image/decode.c: pictures by their first bytes to the decoder of their format. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/image/formats.h"

bool image_fail(image_job *j, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    if (!j->error[0]) vsnprintf(j->error, IMAGE_ERROR_BYTES, fmt, args);
    va_end(args);
    return false;
}

bool image_begin(image_job *j, uint64_t width, uint64_t height, uint32_t channels)
{
    if (width == 0 || height == 0) return image_fail(j, "it has no pixels");
    if (width > UINT32_MAX || height > UINT32_MAX || width * height > j->max_pixels)
        return image_fail(j, "%llu x %llu pixels are more than the %llu that are read",
                          (unsigned long long)width, (unsigned long long)height,
                          (unsigned long long)j->max_pixels);
    *j->out = (image){(uint32_t)width, (uint32_t)height, channels,
                      calloc((size_t)(width * height), channels)};
    return j->out->pixels || image_fail(j, "out of memory");
}

static const struct {
    const char *name, *signature;
    size_t length;
    bool (*decode)(image_job *);
} formats[] = {
#ifdef ORTC_IMAGE_PNG
    {"PNG", "\x89PNG\r\n\x1a\n", 8, image_png},
#endif
#ifdef ORTC_IMAGE_JPEG
    {"JPEG", "\xff\xd8\xff", 3, image_jpeg},
#endif
#ifdef ORTC_IMAGE_JPEG2000
    {"JPEG 2000", "\0\0\0\x0cjP  \r\n\x87\n", 12, image_jpeg2000},
    {"", "\xff\x4f\xff\x51", 4, image_jpeg2000},
#endif
#ifdef ORTC_IMAGE_WEBP
    {"WebP", "RIFF", 4, image_webp},
#endif
#ifdef ORTC_IMAGE_TIFF
    {"TIFF", "II*\0", 4, image_tiff},
    {"", "MM\0*", 4, image_tiff},
#endif
    {"BMP", "BM", 2, image_bmp},
    {"PNM", "P", 1, image_pnm},
};

enum { FORMATS = sizeof formats / sizeof *formats };

static int decode(const void *data, size_t bytes, uint64_t max_pixels, image *out, char *error)
{
    image_job j = {data, bytes, max_pixels, out, error};
    size_t i = 0;
    memset(out, 0, sizeof *out);
    error[0] = 0;
    while (i < FORMATS &&
           (bytes < formats[i].length || memcmp(data, formats[i].signature, formats[i].length) != 0))
        i++;
    if (i < FORMATS ? formats[i].decode(&j) : image_fail(&j, "it is not %s", ortc_image_codec()->formats))
        return 0;
    free(out->pixels);
    memset(out, 0, sizeof *out);
    return -1;
}

const image_codec *ortc_image_codec(void)
{
    static const image_codec codec = {IMAGE_CODEC_VERSION,
#ifdef ORTC_IMAGE_PNG
                                      "PNG, "
#endif
#ifdef ORTC_IMAGE_JPEG
                                      "JPEG, "
#endif
#ifdef ORTC_IMAGE_JPEG2000
                                      "JPEG 2000, "
#endif
#ifdef ORTC_IMAGE_WEBP
                                      "WebP, "
#endif
#ifdef ORTC_IMAGE_TIFF
                                      "TIFF, "
#endif
                                      "BMP or PNM",
                                      decode};
    return &codec;
}
