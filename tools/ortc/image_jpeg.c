/* tools/ortc/image_jpeg.c: JPEG pictures through libjpeg (libjpeg-turbo where distributions have it): grey
 * stays grey, all else becomes RGB.
 *
 * The exact integer transform and the plain upsampling are chosen, so that pixels do not depend on the
 * processor. The number of scans is bounded, because a small progressive file can ask for hours. libjpeg
 * reports errors by a call that must not return: all that a jump must release lies in one struct outside the
 * function that setjmp returns to. Warnings (data that end too early) are errors: a model should not see a
 * picture that is half grey.
 */
#include "image_jpeg.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

enum { MAX_SCANS = 500 };

typedef struct decoder {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    uint64_t max_pixels;
    image *out;
    char *error;
    jmp_buf back;
} decoder;

static void stop(decoder *d, const char *text)
{
    snprintf(d->error, IMAGE_ERROR_BYTES, "%s", text);
    longjmp(d->back, 1);
}

static void on_error(j_common_ptr jpeg)
{
    char text[JMSG_LENGTH_MAX];
    jpeg->err->format_message(jpeg, text);
    stop(jpeg->client_data, text);
}

static void on_message(j_common_ptr jpeg, int level)
{
    if (level < 0) on_error(jpeg);
}

static void on_progress(j_common_ptr jpeg)
{
    if (((j_decompress_ptr)jpeg)->input_scan_number > MAX_SCANS) stop(jpeg->client_data, "too many scans");
}

/* Everything that may jump. */
static void decode_rows(decoder *d, const void *data, size_t bytes)
{
    j_decompress_ptr j = &d->jpeg;
    jpeg_create_decompress(j);
    j->client_data = d;
    j->progress = &d->progress;
    jpeg_mem_src(j, data, bytes);
    jpeg_read_header(j, TRUE);
    if ((uint64_t)j->image_width * j->image_height > d->max_pixels) {
        char text[IMAGE_ERROR_BYTES];
        snprintf(text, sizeof text, "%u x %u pixels are more than the %llu that are read", j->image_width,
                 j->image_height, (unsigned long long)d->max_pixels);
        stop(d, text);
    }
    j->out_color_space = j->jpeg_color_space == JCS_GRAYSCALE ? JCS_GRAYSCALE : JCS_RGB;
    j->dct_method = JDCT_ISLOW;
    j->do_fancy_upsampling = TRUE;
    jpeg_start_decompress(j);
    const size_t row = (size_t)j->output_width * (size_t)j->output_components;
    if (j->output_components != 1 && j->output_components != 3) stop(d, "its colours are not grey or RGB");
    d->out->pixels = malloc((size_t)j->output_height * row);
    if (!d->out->pixels) stop(d, "out of memory");
    while (j->output_scanline < j->output_height) {
        JSAMPROW at = d->out->pixels + j->output_scanline * row;
        jpeg_read_scanlines(j, &at, 1);
    }
    d->out->width = j->output_width;
    d->out->height = j->output_height;
    d->out->channels = (uint32_t)j->output_components;
    jpeg_finish_decompress(j);
}

static bool guarded(decoder *d, const void *data, size_t bytes)
{
    if (setjmp(d->back)) return false;
    decode_rows(d, data, bytes);
    return true;
}

int jpeg_decode(const void *data, size_t bytes, uint64_t max_pixels, image *out, char *error)
{
    decoder d = {.max_pixels = max_pixels, .out = out, .error = error};
    d.jpeg.err = jpeg_std_error(&d.errors);
    d.jpeg.client_data = &d;
    d.errors.error_exit = on_error;
    d.errors.emit_message = on_message;
    d.progress.progress_monitor = on_progress;
    const bool good = guarded(&d, data, bytes);
    jpeg_destroy_decompress(&d.jpeg);
    if (good) return 0;
    free(out->pixels);
    memset(out, 0, sizeof *out);
    return -1;
}
