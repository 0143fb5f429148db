/* kernels/conv/seen.h: which taps of a window see anything of the image, along one of its three dims. */
#ifndef ORTC_KERNELS_CONV_SEEN_H
#define ORTC_KERNELS_CONV_SEEN_H

#include "kernels/common/counts.h"
#include "kernels/common/window_runs.h"

/* Taps *first .. *end-1 are in the image for some of the outputs whose tap 0 is at from .. last; from for one
 * output. No tap is: *first >= *end. */
static inline void ortc_taps_seen(const ortc_window_extents *e, int dim, int64_t from, int64_t last,
                                  int64_t *first, int64_t *end)
{
    *first = last < 0 ? ceil_div(-last, e->dilation[dim]) : 0;
    *end = e->in[dim] > from ? min64(ceil_div(e->in[dim] - from, e->dilation[dim]), e->kernel[dim]) : 0;
}

/* The share of taps that are in the image, over all outputs. */
static inline double ortc_share_seen(const ortc_window_extents *e, int dim)
{
    int64_t seen = 0;
    for (int64_t k = 0; k < e->kernel[dim]; k++) {
        const int64_t from = k * e->dilation[dim] - e->pad[dim], /* what output 0 reads */
            begin = from < 0 ? ceil_div(-from, e->stride[dim]) : 0,
                      end = e->in[dim] > from ? ceil_div(e->in[dim] - from, e->stride[dim]) : 0;
        seen += max64(min64(end, e->out[dim]) - begin, 0);
    }
    return (double)seen / (double)(e->out[dim] * e->kernel[dim]);
}

#endif
