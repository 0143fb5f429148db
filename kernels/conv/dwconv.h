/* Convolutions with one input channel per group (depthwise, with or without a multiplier), one or two spatial
 * dims, computed directly: per channel and band of output rows.
 *
 * A band's input rows are copied into scratch with their padding, split into phases by the strides: phase (p,
 * q) holds rows p, p + stride, .. and of these columns q, q + stride, .. Then, for any kernel, stride and
 * dilation, an output is a sum over taps at fixed offsets, and a band is one long correlation (dwconv_uk.h)
 * whose rows are a pitch apart; what it computes between two rows is dropped. Types of 16 bits pass through
 * f32 in scratch: the band's input rows, and its result, rounded once.
 */
#ifndef ORTC_KERNELS_CONV_DWCONV_H
#define ORTC_KERNELS_CONV_DWCONV_H

#include "columns_uk.h"
#include "dwconv_uk.h"
#include "geometry.h"
#include "kernels/gemm/epilogue.h"

#define ORTC_DWCONV_TAPS 256

typedef struct ortc_dwconv_plan {
    const ortc_dwconv_uk *uk;
    const ortc_columns_uk *columns;
    ortc_dtype type;
    int64_t in[2], out[2], kernel[2], stride[2], dilation[2], pad[2]; /* rows, columns */
    int64_t planes;                                                   /* output channels of all images */
    int64_t filters;                                                  /* output channels per input channel */
    int64_t channels;                                                 /* output channels of an image */
    int64_t band, bands;        /* output rows of a task; tasks per plane */
    int64_t rows, pitch, phase; /* of one phase in scratch: rows, elements per row, elements in all */
    int64_t grain;              /* tasks handed out together */
    int64_t wide, result;       /* places in scratch, in floats, where the type is not f32: input, result */
    size_t scratch;             /* bytes for each worker */
    int32_t offset[ORTC_DWCONV_TAPS];
} ortc_dwconv_plan;

/* 0 if this way is not for the convolution at hand. */
int ortc_dwconv_plan_init(const ortc_conv_geometry *g, ortc_dtype type, ortc_dwconv_plan *out);

/* To the call's output, all of the plan's type. bias, residual: NULL if there is none. */
ortc_status ortc_dwconv_run(const ortc_dwconv_plan *p, const ortc_tail_spec *tail, const void *x,
                            const void *w, const void *bias, const void *residual, ortc_call *call);

#endif
