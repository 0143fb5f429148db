/* kernels/image/tiff.c: the first picture of a TIFF file by libtiff, whatever its layout, through libtiff's
 * own way to RGB. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tiffio.h>

#include "kernels/image/formats.h"

enum { MOST_MEMORY = 1 << 30 }; /* of one allocation of libtiff's */

typedef struct stream {
    image_job *job;
    uint64_t at;
} stream;

static tmsize_t on_read(thandle_t handle, void *to, tmsize_t bytes)
{
    stream *s = handle;
    const uint64_t left = s->at < s->job->bytes ? s->job->bytes - s->at : 0,
                   n = (uint64_t)bytes < left ? (uint64_t)bytes : left;
    if (n) memcpy(to, s->job->data + s->at, n);
    s->at += n;
    return (tmsize_t)n;
}
static tmsize_t on_write(thandle_t handle, void *from, tmsize_t bytes)
{
    (void)handle, (void)from, (void)bytes;
    return 0;
}
static toff_t on_seek(thandle_t handle, toff_t offset, int whence)
{
    stream *s = handle;
    s->at = offset + (whence == SEEK_CUR ? s->at : whence == SEEK_END ? s->job->bytes : 0);
    return s->at;
}
static int on_close(thandle_t handle)
{
    (void)handle;
    return 0;
}
static toff_t on_size(thandle_t handle) { return ((stream *)handle)->job->bytes; }

static int on_error(TIFF *tiff, void *arg, const char *where, const char *fmt, va_list args)
{
    char text[IMAGE_ERROR_BYTES];
    (void)tiff, (void)where;
    vsnprintf(text, sizeof text, fmt, args);
    image_fail(arg, "%s", text);
    return 1; /* nobody else is told */
}
static int on_warning(TIFF *tiff, void *arg, const char *where, const char *fmt, va_list args)
{
    (void)tiff, (void)arg, (void)where, (void)fmt, (void)args;
    return 1;
}

static bool decode(image_job *j, TIFF *tiff)
{
    uint32_t width = 0, height = 0;
    uint16_t samples = 1, photometric = 0;
    char why[1024];
    TIFFGetField(tiff, TIFFTAG_IMAGEWIDTH, &width);
    TIFFGetField(tiff, TIFFTAG_IMAGELENGTH, &height);
    TIFFGetFieldDefaulted(tiff, TIFFTAG_SAMPLESPERPIXEL, &samples);
    TIFFGetField(tiff, TIFFTAG_PHOTOMETRIC, &photometric);
    if (!TIFFRGBAImageOK(tiff, why)) return image_fail(j, "%.150s", why);
    const bool grey = photometric == PHOTOMETRIC_MINISBLACK || photometric == PHOTOMETRIC_MINISWHITE;
    if (!image_begin(j, width, height, grey ? 1 : 3)) return false;
    const size_t count = (size_t)width * height;
    uint32_t *raster = malloc(count * sizeof *raster);
    if (!raster) return image_fail(j, "out of memory");
    const bool good = TIFFReadRGBAImageOriented(tiff, width, height, raster, ORIENTATION_TOPLEFT, 1) != 0;
    for (size_t i = 0; good && i < count; i++) {
        uint8_t *to = j->out->pixels + i * j->out->channels;
        to[0] = (uint8_t)TIFFGetR(raster[i]);
        if (!grey) to[1] = (uint8_t)TIFFGetG(raster[i]), to[2] = (uint8_t)TIFFGetB(raster[i]);
    }
    free(raster);
    return good || image_fail(j, "it is damaged");
}

bool image_tiff(image_job *j)
{
    stream s = {j, 0};
    TIFFOpenOptions *options = TIFFOpenOptionsAlloc();
    if (!options) return image_fail(j, "out of memory");
    TIFFOpenOptionsSetMaxSingleMemAlloc(options, MOST_MEMORY);
    TIFFOpenOptionsSetErrorHandlerExtR(options, on_error, j);
    TIFFOpenOptionsSetWarningHandlerExtR(options, on_warning, NULL);
    TIFF *tiff = TIFFClientOpenExt("picture", "rm", &s, on_read, on_write, on_seek, on_close, on_size, NULL,
                                   NULL, options);
    TIFFOpenOptionsFree(options);
    const bool good = tiff ? decode(j, tiff) : image_fail(j, "it is no TIFF picture, or is damaged");
    if (tiff) TIFFClose(tiff);
    return good;
}
