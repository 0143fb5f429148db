/* A convolution with all its numbers known: what the cpu kernels of this family pass around. Filled in cpu.c.
 * X [images, group*channels, in..], W [group*filters, channels, kernel..], Y [images, group*filters, out..].
 */
#ifndef ORTC_KERNELS_CONV_GEOMETRY_H
#define ORTC_KERNELS_CONV_GEOMETRY_H

#include <stdint.h>

#include "kernels/common/window.h"

typedef struct ortc_conv_geometry {
    int32_t spatial;
    int64_t images, group, channels, filters; /* the last two per group */
    int64_t joined; /* so many groups of W are one here, with zeros between them; 0 and 1: each is its own */
    int64_t in_count, out_count, kernel_count; /* products of the spatial extents */
    int64_t in[ORTC_SPATIAL_LIMIT], out[ORTC_SPATIAL_LIMIT], kernel[ORTC_SPATIAL_LIMIT];
    /* pad: before */
    int64_t stride[ORTC_SPATIAL_LIMIT], dilation[ORTC_SPATIAL_LIMIT], pad[ORTC_SPATIAL_LIMIT];
} ortc_conv_geometry;

#endif
