/* tools/ortc/image_png.c: libortc_image.so: PNG pictures through libpng, every colour type to 8-bit grey or
 * RGB. (JPEG: image_jpeg.c.)
 *
 * Pictures come from anywhere, so sizes are checked before memory is asked for, chunks are bounded, and text
 * and colour-profile chunks, where libpng's own bugs have mostly been, are skipped. libpng reports errors by
 * longjmp: all that a jump must release lies in one struct outside the function that setjmp returns to.
 */
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"
#ifdef ORTC_JPEG
#include "image_jpeg.h"
#endif

typedef struct decoder {
    const uint8_t *data;
    size_t left;
    uint64_t max_pixels;
    image *out;
    char *error;
    png_bytep *rows;
    png_structp png;
    png_infop info;
} decoder;

static void on_error(png_structp png, png_const_charp text)
{
    decoder *d = png_get_error_ptr(png);
    if (!d->error[0]) snprintf(d->error, IMAGE_ERROR_BYTES, "%s", text);
    png_longjmp(png, 1);
}

static void on_warning(png_structp png, png_const_charp text) { (void)png, (void)text; }

static void on_read(png_structp png, png_bytep to, png_size_t bytes)
{
    decoder *d = png_get_io_ptr(png);
    if (bytes > d->left) png_error(png, "the file ends too early");
    memcpy(to, d->data, bytes);
    d->data += bytes;
    d->left -= bytes;
}

/* Everything that may jump. */
static void decode_rows(decoder *d)
{
    png_structp png = d->png;
    png_read_info(png, d->info);
    uint32_t width = png_get_image_width(png, d->info), height = png_get_image_height(png, d->info);
    if ((uint64_t)width * height > d->max_pixels) {
        snprintf(d->error, IMAGE_ERROR_BYTES, "%u x %u pixels are more than the %llu that are read", width,
                 height, (unsigned long long)d->max_pixels);
        png_error(png, "too large");
    }
    int color = png_get_color_type(png, d->info);
    if (color == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(png);
    else if (color == PNG_COLOR_TYPE_GRAY)
        png_set_expand_gray_1_2_4_to_8(png);
    png_set_scale_16(png);
    png_set_strip_alpha(png);
    png_set_interlace_handling(png);
    png_read_update_info(png, d->info);
    uint32_t channels = png_get_channels(png, d->info);
    size_t row = png_get_rowbytes(png, d->info);
    if (png_get_bit_depth(png, d->info) != 8 || (channels != 1 && channels != 3) ||
        row != (size_t)width * channels)
        png_error(png, "its pixels could not be brought to 8-bit grey or RGB");
    d->out->pixels = malloc((size_t)height * row);
    d->rows = malloc(height * sizeof *d->rows);
    if (!d->out->pixels || !d->rows) png_error(png, "out of memory");
    for (uint32_t y = 0; y < height; y++) d->rows[y] = d->out->pixels + y * row;
    png_read_image(png, d->rows);
    png_read_end(png, NULL);
    d->out->width = width;
    d->out->height = height;
    d->out->channels = channels;
}

static bool guarded(decoder *d)
{
    if (setjmp(png_jmpbuf(d->png))) return false;
    decode_rows(d);
    return true;
}

static int decode(const void *data, size_t bytes, uint64_t max_pixels, image *out, char *error)
{
    decoder d = {.data = data, .left = bytes, .max_pixels = max_pixels, .out = out, .error = error};
    memset(out, 0, sizeof *out);
    error[0] = 0;
    if (bytes >= 3 && memcmp(data, "\xff\xd8\xff", 3) == 0) {
#ifdef ORTC_JPEG
        return jpeg_decode(data, bytes, max_pixels, out, error);
#else
        snprintf(error, IMAGE_ERROR_BYTES, "it is a JPEG picture, and ortc was built without libjpeg");
        return -1;
#endif
    }
    if (bytes < 8 || png_sig_cmp((png_const_bytep)data, 0, 8) != 0) {
        snprintf(error, IMAGE_ERROR_BYTES, "it is not a PNG or JPEG picture");
        return -1;
    }
    d.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &d, on_error, on_warning);
    d.info = d.png ? png_create_info_struct(d.png) : NULL;
    bool good = false;
    if (d.info) {
        png_set_read_fn(d.png, &d, on_read);
        png_set_user_limits(d.png, 1 << 20, 1 << 20);
        png_set_chunk_malloc_max(d.png, 4 << 20);
        png_set_chunk_cache_max(d.png, 64);
        static png_byte skipped[] = "iCCP\0iTXt\0tEXt\0zTXt\0eXIf\0sPLT\0hIST";
        png_set_keep_unknown_chunks(d.png, PNG_HANDLE_CHUNK_NEVER, skipped, (int)(sizeof skipped / 5));
        good = guarded(&d);
    } else {
        snprintf(error, IMAGE_ERROR_BYTES, "libpng could not be started");
    }
    png_destroy_read_struct(&d.png, &d.info, NULL);
    free(d.rows);
    if (!good) {
        free(out->pixels);
        memset(out, 0, sizeof *out);
    }
    return good ? 0 : -1;
}

const image_codec *ortc_image_codec(void)
{
    static const image_codec codec = {IMAGE_CODEC_VERSION, "libpng " PNG_LIBPNG_VER_STRING, decode};
    return &codec;
}
