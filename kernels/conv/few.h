/* Windows with few filters over values in blocks of 16 channels: places along a row of the window are filters
 * of their own.
 *
 *   t[m * width + k][p] = sum over channels, planes and rows of the window of W[m][c][..][k] * x[c][.. p]
 *   y[m][p] = sum over k of t[m * width + k][p + k * dilation]
 *
 * t is a convolution over blocks (blocked.h), whose registers then hold filters where they would mostly hold
 * nothing: 3 filters of 9 x 9 are 27 of 9 x 1, a fifth of the multiplications. It exists for one part of an
 * image at a time, some pixels of some rows, in a task's scratch, where its blocks are turned into rows,
 * which are added up, and finished. No strides along rows, no groups, W constant; y is plain. Of floats, and
 * of bytes where the machine multiplies them by fours, exact. Parts follow from extents alone.
 */
#ifndef ORTC_KERNELS_CONV_FEW_H
#define ORTC_KERNELS_CONV_FEW_H

#include "blocked.h"
#include "ortc/op.h"

enum { ORTC_FEW_FILTERS = 8 }; /* at most */

typedef struct ortc_few_plan {
    ortc_blocked_plan dense; /* of t, for the first part */
    ortc_dtype type;         /* of x */
    int64_t images, filters, width, dilation;
    int64_t out[3], stride[3]; /* of y: planes, rows, columns */
    int64_t rows, columns;     /* of y, in a part; the last ones have less */
    int64_t row_parts, column_parts;
    int64_t image_bytes; /* of x, in blocks */
    int64_t pixels;      /* of t, in whole squares of registers */
    /* W as t's, and, of bytes where taps are left out, sums at each tap; ortc_few_pack */
    const ortc_packed *packed, *tap_sums;
    /* Bytes in scratch, behind that of `dense`: t, t in rows, sums, and what is widened. */
    size_t at_t, at_rows, at_sums, at_space, scratch;
} ortc_few_plan;

/* 0: this way is not for the convolution at hand; then nothing is owned. */
int ortc_few_plan_init(const ortc_conv_geometry *g, ortc_dtype x, ortc_few_plan *out);
void ortc_few_plan_deinit(ortc_few_plan *);
/* Clocks of one core, least being those of t's multiplications alone. */
double ortc_few_clocks(const ortc_few_plan *, double least);
/* t as a convolution of the first part. */
void ortc_few_geometry(const ortc_few_plan *, const ortc_conv_geometry *g, ortc_conv_geometry *t);

/* Packs W, input 1. */
ortc_status ortc_few_pack(ortc_plan *p, ortc_few_plan *, const ortc_conv_geometry *g);

/* How n finished sums end, of one channel and beside each other; `element`: of y. space: for as many. */
typedef void ortc_few_end(const void *arg, int64_t channel, int64_t element, int64_t n, void *sums,
                          float *space);
/* `space` of the call's workspace; zero: what is beside the image, of bytes as blocked.h has it. */
size_t ortc_few_space(const ortc_few_plan *);
ortc_status ortc_few_run(const ortc_few_plan *, int32_t zero, void *space, ortc_call *call, ortc_few_end *end,
                         const void *arg);

/* to[i] = the sum over k < taps of from[k * step + i], in this order (few_vec.c). */
typedef struct ortc_few_body {
    void (*add_f32)(size_t n, size_t taps, const float *from, size_t step, float *to);
    void (*add_i32)(size_t n, size_t taps, const int32_t *from, size_t step, int32_t *to);
} ortc_few_body;

#endif
