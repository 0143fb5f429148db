/* Columns of a convolution of bytes, of an image that is laid out before: [channels / G][rows][columns] of 4
 * bytes, the G of a group of the product's form beside each other, with its padding. Then a group of a panel
 * is a run of words as they lie, for any tap. K runs over groups of channels, taps, and the channels of a
 * group, as many as 4 bytes hold; W is packed in this order, with zeros for what fills up the last group.
 */
#ifndef ORTC_KERNELS_CONV_GROUPED_H
#define ORTC_KERNELS_CONV_GROUPED_H

#include "geometry.h"
#include "kernels/gemm/product.h"
#include "ortc/op.h"

typedef struct ortc_grouped {
    int64_t groups, taps, k; /* of channels; places of the window; of the product */
    int64_t channels, in[2], out[2], kernel[2], stride[2], dilation[2], pad[2];
    int64_t rows, columns; /* of the image with its padding, as far as windows reach */
    int64_t images;        /* groups of convolution included */
    int32_t group;         /* channels in 4 bytes: 4 or 2 */
    int32_t type, to;      /* ORTC_U8, I8; of the product's form */
    size_t bytes;          /* of all images, laid out */
} ortc_grouped;

/* 0 if this way is not for the convolution at hand. */
int ortc_grouped_init(const ortc_conv_geometry *g, ortc_dtype type, const ortc_product_form *form,
                      ortc_grouped *out);

/* Lays all images out. zero: what is in the padding. */
ortc_status ortc_grouped_lay(const ortc_grouped *, const uint8_t *x, uint8_t zero, void *to, ortc_call *);

/* Groups of a panel (ORTC_PRODUCT_GROUPED_B): k0 .. k0 + kc - 1 of columns n0 .. of image `index`. */
void ortc_grouped_panel(const ortc_grouped *, const void *laid, int64_t index, int64_t k0, int64_t kc,
                        int64_t n0, int64_t nc, void *dst, size_t dw);

/* W, packed in this order, each group of the convolution for itself. */
ortc_status ortc_grouped_pack(ortc_plan *p, uint32_t port, const ortc_grouped *, const ortc_conv_geometry *g,
                              const ortc_product_line *line, const ortc_packed **out);

/* dst[i] = src[i * stride] of 4 bytes (grouped_vec.c). */
typedef struct ortc_grouped_body {
    void (*words)(size_t n, size_t stride, const int32_t *src, int32_t *dst);
} ortc_grouped_body;

#endif
