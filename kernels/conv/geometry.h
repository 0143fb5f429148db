/* A convolution with all its numbers known: what the cpu kernels of this family pass around. Filled in cpu.c.
 * X [images, group*channels, in..], W [group*filters, channels, kernel..], Y [images, group*filters, out..].
 */
#ifndef ORTC_KERNELS_CONV_GEOMETRY_H
#define ORTC_KERNELS_CONV_GEOMETRY_H

#include <stdint.h>

#include "kernels/common/window.h"

/* Dims that these kernels have room for; ref takes any number. Plans hold several of these, and a network has
 * many convolutions. */
#define ORTC_CONV_SPATIAL 8

typedef struct ortc_conv_geometry {
    int32_t spatial;
    int64_t images, group, channels, filters; /* the last two per group */
    int64_t joined; /* so many groups of W are one here, with zeros between them; 0 and 1: each is its own */
    int64_t in_count, out_count, kernel_count; /* products of the spatial extents */
    int64_t in[ORTC_CONV_SPATIAL], out[ORTC_CONV_SPATIAL], kernel[ORTC_CONV_SPATIAL];
    int64_t stride[ORTC_CONV_SPATIAL], dilation[ORTC_CONV_SPATIAL], pad[ORTC_CONV_SPATIAL]; /* before */
} ortc_conv_geometry;

/* What the attributes say of them. */
typedef struct ortc_conv_window {
    int32_t auto_pad;
    int64_t stride[ORTC_CONV_SPATIAL], dilation[ORTC_CONV_SPATIAL], pad[ORTC_CONV_SPATIAL]; /* before */
} ortc_conv_window;

#endif
