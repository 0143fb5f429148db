/* The columns of a convolution as packed panels of B for product.h, made where they are needed and never all
 * at once.
 *
 * B has a row for each (channel, position in the kernel) and a column for each position of the output; its
 * elements are elements of the image, or 0 in the padding.
 */
#ifndef ORTC_KERNELS_CONV_IM2COL_H
#define ORTC_KERNELS_CONV_IM2COL_H

#include "columns_uk.h"
#include "geometry.h"

#define ORTC_IM2COL_COLUMNS 64 /* most columns of a panel */

/* Rows k0 .. k0+kc-1 of columns n0 .. n0+nc-1 (nc <= ORTC_IM2COL_COLUMNS) as dst [kc][dw], zero behind nc.
 * `image`: the channels of one group, any alignment. */
void ortc_im2col_f32(const ortc_conv_geometry *g, const ortc_columns_uk *uk, const float *image, int64_t k0,
                     int64_t kc, int64_t n0, int64_t nc, float *dst, size_t dw);

#endif
