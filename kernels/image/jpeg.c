/* kernels/image/jpeg.c: JPEG by libjpeg-turbo, its exact transform and smooth upsampling, which the
 * standard asks for.
 *
 * libjpeg reports errors by a function that must not return: all that a jump must release lies in one
 * struct outside of the function that setjmp returns to. A file of endless progressive scans is given up. */
#include <setjmp.h>
#include <stdio.h>

#include <jpeglib.h>

#include "kernels/image/formats.h"

enum { MOST_SCANS = 200 };

typedef struct decoder {
    struct jpeg_decompress_struct d; /* first: callbacks get it */
    struct jpeg_error_mgr errors;
    struct jpeg_progress_mgr progress;
    image_job *job;
    jmp_buf back;
} decoder;

static void on_error(j_common_ptr c)
{
    decoder *self = (decoder *)(void *)c;
    char text[JMSG_LENGTH_MAX];
    self->errors.format_message(c, text);
    image_fail(self->job, "%s", text);
    longjmp(self->back, 1);
}

static void on_message(j_common_ptr c, int level) { (void)c, (void)level; }

static void on_progress(j_common_ptr c)
{
    decoder *self = (decoder *)(void *)c;
    if (self->d.input_scan_number <= MOST_SCANS) return;
    image_fail(self->job, "it has more than %d scans", MOST_SCANS);
    longjmp(self->back, 1);
}

/* Cyan, magenta, yellow and black, which Adobe's files store inverted, to RGB. */
static void to_rgb(const uint8_t *from, uint8_t *to, uint32_t width, bool inverted)
{
    for (uint32_t x = 0; x < width; x++, from += 4, to += 3)
        for (int c = 0; c < 3; c++) {
            const unsigned ink = inverted ? from[c] : 255u - from[c],
                           light = inverted ? from[3] : 255u - from[3];
            to[c] = (uint8_t)((ink * light + 127) / 255);
        }
}

/* Everything that may jump. */
static bool decode(decoder *self)
{
    struct jpeg_decompress_struct *d = &self->d;
    image_job *j = self->job;
    jpeg_create_decompress(d);
    d->progress = &self->progress;
    d->mem->max_memory_to_use = 1l << 30;
    jpeg_mem_src(d, j->data, j->bytes);
    jpeg_read_header(d, TRUE);
    const bool grey = d->jpeg_color_space == JCS_GRAYSCALE, inks = d->num_components == 4;
    d->out_color_space = grey ? JCS_GRAYSCALE : inks ? JCS_CMYK : JCS_RGB;
    if (!image_begin(j, d->image_width, d->image_height, grey ? 1 : 3)) return false;
    jpeg_start_decompress(d);
    const JSAMPARRAY line = d->mem->alloc_sarray((j_common_ptr)d, JPOOL_IMAGE,
                                                 d->output_width * (JDIMENSION)d->output_components, 1);
    while (d->output_scanline < d->output_height) {
        uint8_t *to = j->out->pixels + (size_t)d->output_scanline * j->out->width * j->out->channels;
        if (inks) {
            jpeg_read_scanlines(d, line, 1);
            to_rgb(line[0], to, j->out->width, d->saw_Adobe_marker);
        } else {
            jpeg_read_scanlines(d, &to, 1);
        }
    }
    return true; /* what comes behind the last row is nobody's concern */
}

static bool guarded(decoder *self) { return !setjmp(self->back) && decode(self); }

bool image_jpeg(image_job *j)
{
    decoder self = {.job = j};
    self.d.err = jpeg_std_error(&self.errors);
    self.errors.error_exit = on_error;
    self.errors.emit_message = on_message;
    self.progress.progress_monitor = on_progress;
    const bool good = guarded(&self);
    jpeg_destroy_decompress(&self.d);
    return good;
}
