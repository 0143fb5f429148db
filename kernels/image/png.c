/* kernels/image/png.c: PNG by libpng, every colour type to 8-bit grey or RGB.
 *
 * Chunks are bounded, and text and colour-profile chunks, where libpng's own bugs have mostly been, are
 * skipped. libpng reports errors by longjmp: all that a jump must release lies in one struct outside the
 * function that setjmp returns to.
 */
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <png.h>

#include "kernels/image/formats.h"

typedef struct decoder {
    image_job *job;
    size_t at;
    png_bytep *rows;
    png_structp png;
    png_infop info;
} decoder;

static void on_error(png_structp png, png_const_charp text)
{
    decoder *d = png_get_error_ptr(png);
    image_fail(d->job, "%s", text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text) { (void)png, (void)text; }

static void on_read(png_structp png, png_bytep to, png_size_t bytes)
{
    decoder *d = png_get_io_ptr(png);
    if (bytes > d->job->bytes - d->at) png_error(png, "the file ends too early");
    memcpy(to, d->job->data + d->at, bytes);
    d->at += bytes;
}

/* Everything that may jump. */
static void decode_rows(decoder *d)
{
    png_structp png = d->png;
    png_read_info(png, d->info);
    const uint32_t width = png_get_image_width(png, d->info), height = png_get_image_height(png, d->info);
    const int color = png_get_color_type(png, d->info);
    if (color == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(png);
    else if (color == PNG_COLOR_TYPE_GRAY)
        png_set_expand_gray_1_2_4_to_8(png);
    png_set_scale_16(png);
    png_set_strip_alpha(png);
    png_set_interlace_handling(png);
    if (!image_begin(d->job, width, height, color & PNG_COLOR_MASK_COLOR ? 3 : 1))
        png_error(png, "it cannot be held");
    png_read_update_info(png, d->info);
    const size_t row = (size_t)width * d->job->out->channels;
    if (png_get_bit_depth(png, d->info) != 8 || png_get_rowbytes(png, d->info) != row)
        png_error(png, "its pixels could not be brought to 8-bit grey or RGB");
    d->rows = malloc(height * sizeof *d->rows);
    if (!d->rows) png_error(png, "out of memory");
    for (uint32_t y = 0; y < height; y++) d->rows[y] = d->job->out->pixels + y * row;
    png_read_image(png, d->rows);
    png_read_end(png, NULL);
}

static bool guarded(decoder *d)
{
    if (setjmp(png_jmpbuf(d->png))) return false;
    decode_rows(d);
    return true;
}

bool image_png(image_job *j)
{
    decoder d = {.job = j};
    d.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, on_error, on_warning);
    d.info = d.png ? png_create_info_struct(d.png) : NULL;
    bool good = false;
    if (d.info) {
        png_set_read_fn(d.png, &d, on_read);
        png_set_user_limits(d.png, 1 << 20, 1 << 20);
        png_set_chunk_malloc_max(d.png, 4 << 20);
        png_set_chunk_cache_max(d.png, 64);
        static const png_byte skipped[] = "iCCP\0iTXt\0tEXt\0zTXt\0eXIf\0sPLT\0hIST";
        png_set_keep_unknown_chunks(d.png, PNG_HANDLE_CHUNK_NEVER, skipped, (int)(sizeof skipped / 5));
        good = guarded(&d);
    } else {
        image_fail(j, "libpng could not be started");
    }
    png_destroy_read_struct(&d.png, &d.info, NULL);
    free(d.rows);
    return good;
}
