/* Integer convolutions with one input channel per group, or few products for a result (heads of attention
 * that are mixed), one or two spatial dims, computed directly: a task is some rows of the output of one
 * channel, whose sums lie in scratch. What a tap reads in the padding is x's zero point, which adds nothing,
 * so taps pass over the part of a row that lies in the image. Where several channels are mixed pixel by
 * pixel, a task is some pixels of all filters.
 */
#ifndef ORTC_KERNELS_CONV_DEPTHWISE_BYTES_H
#define ORTC_KERNELS_CONV_DEPTHWISE_BYTES_H

#include "geometry.h"
#include "kernels/gemm/integer_tail.h"

enum { ORTC_MIXED = 8 }; /* channels, and filters, of a group that are mixed, at most */

typedef struct ortc_depthwise_bytes_body {
    /* sums[i] += (x[i * stride] - x_zero) * w; n of them (depthwise_bytes_vec.c) */
    void (*tap)(size_t n, const uint8_t *x, int is_signed, size_t stride, int32_t x_zero, int32_t w,
                int32_t *sums);
    /* sums[f][i] = the sum over c of (x[c][i] - x_zero) * w[f][c], rows of x `area` and of sums `ld` apart */
    void (*mix)(size_t n, size_t ins, size_t filters, const uint8_t *x, size_t area, int is_signed,
                int32_t x_zero, int32_t w[][ORTC_MIXED], int32_t *sums, size_t ld);
} ortc_depthwise_bytes_body;
ORTC_EACH_ISA(ORTC_VEC_DECLARE, ortc_depthwise_bytes_body)

typedef struct ortc_depthwise_bytes {
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2], pad[2]; /* rows, columns */
    int64_t planes, filters, channels; /* of all images; output channels of a group, of an image */
    int64_t ins;                       /* input channels of a group */
    int mixes;                         /* several of them, pixel by pixel: one row, a plane of each group */
    int64_t band, bands;               /* output rows of a task; tasks of a plane */
    int64_t grain;
    size_t scratch;
} ortc_depthwise_bytes;

/* 0 if this way is not for the convolution at hand. */
int ortc_depthwise_bytes_init(const ortc_conv_geometry *g, ortc_depthwise_bytes *out);

/* ends: along, or NULL. w_zeros: of each output channel, or NULL: w_zero. */
ortc_status ortc_depthwise_bytes_run(const ortc_depthwise_bytes *, const ortc_int_tail *,
                                     const ortc_int_ends *ends, int32_t x_zero, int32_t w_zero,
                                     const int32_t *w_zeros, ortc_call *call);

#endif
