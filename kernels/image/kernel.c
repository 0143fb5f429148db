/* kernels/image/kernel.c: ImageDecoder on ref, and the entry of the module that brings it.
 *
 * What cannot be decoded is a picture of no pixels, as the standard has it. A grey picture has three equal
 * channels where colours are asked for; colours are made grey by the weights of Rec. 601.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "kernels/image/codec.h"
#include "ortc/op.h"

enum { RGB, BGR, GREY };

static const uint64_t max_pixels = 64 << 20;

static ortc_status prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    static const char *const names[] = {"RGB", "BGR", "Grayscale"};
    const char *wanted = ortc_node_string(n, "pixel_format", "RGB");
    int *format = malloc(sizeof *format);
    if (!format) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    for (*format = RGB; *format <= GREY && strcmp(names[*format], wanted) != 0;) ++*format;
    *out = format;
    if (*format <= GREY) return ORTC_OK;
    free(format);
    return ortc_prep_fail(prep, ORTC_INVALID_MODEL,
                          "attribute pixel_format is '%s', expected RGB, BGR or Grayscale", wanted);
}

static void put(const image *from, int format, uint8_t *to)
{
    const size_t count = (size_t)from->width * from->height;
    for (size_t i = 0; i < count; i++) {
        const uint8_t *p = from->pixels + i * from->channels, r = p[0], g = p[from->channels / 2],
                      b = p[from->channels - 1];
        if (format == GREY) {
            *to++ = (uint8_t)((r * 19595u + g * 38470u + b * 7471u + 0x8000u) >> 16);
        } else {
            *to++ = format == RGB ? r : b;
            *to++ = g;
            *to++ = format == RGB ? b : r;
        }
    }
}

static ortc_status run(const void *state, const void *plan, ortc_call *c)
{
    const int format = *(const int *)state;
    char why[IMAGE_ERROR_BYTES];
    image picture;
    (void)plan;
    ortc_image_codec()->decode(c->in[0].data, (size_t)ortc_view_count(&c->in[0]), max_pixels, &picture, why);
    const int64_t dims[3] = {picture.height, picture.width, format == GREY ? 1 : 3};
    const ortc_status s = ortc_call_resize(c, 0, 3, dims);
    if (s == ORTC_OK && picture.pixels) put(&picture, format, c->out[0].data);
    free(picture.pixels);
    return s;
}

static const ortc_kernel decoder = {.size = ORTC_SIZED(ortc_kernel),
                                    .flags = ORTC_KERNEL_LATE_OUT,
                                    .name = "image_decoder.ref",
                                    .prepare = prepare,
                                    .run = run};
ORTC_KERNELS(ref, image,
             ORTC_KERNEL("ImageDecoder", 20, ORTC_NEWEST, (ORTC_TYPE(ORTC_U8), ORTC_TYPE(ORTC_U8)),
                         &decoder));

static const ortc_kernel_table *const tables[] = {&ortc_kernels_ref_image};
static const ortc_family family = {ORTC_SIZED(ortc_family), ORTC_SIZED(ortc_op), "image", NULL, 0, 1, tables};
static ortc_status init(const ortc_host *host) { return ortc_host_add_family(host, &family); }
ORTC_PLUGIN("image", "1", init)
