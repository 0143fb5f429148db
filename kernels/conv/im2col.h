/* The columns of a convolution as packed panels of B for product.h, made where they are needed and never all
 * at once.
 *
 * B has a row for each (channel, position in the kernel) and a column for each position of the output; its
 * elements are elements of the image, f32 or bytes, or `pad` in the padding (of f32 0).
 */
#ifndef ORTC_KERNELS_CONV_IM2COL_H
#define ORTC_KERNELS_CONV_IM2COL_H

#include "columns_uk.h"
#include "geometry.h"

#define ORTC_IM2COL_COLUMNS 64 /* most columns of a panel */

typedef struct ortc_im2col_way { /* one of the two */
    const ortc_columns_uk *floats;
    const ortc_columns_bytes *bytes;
    uint8_t pad;
} ortc_im2col_way;

/* Rows k0 .. k0+kc-1 of columns n0 .. n0+nc-1 (nc <= ORTC_IM2COL_COLUMNS) as dst [kc][dw], zero behind nc.
 * `image`: the channels of one group, any alignment. */
void ortc_im2col(const ortc_conv_geometry *g, const ortc_im2col_way *way, const void *image, int64_t k0,
                 int64_t kc, int64_t n0, int64_t nc, void *dst, size_t dw);

#endif
