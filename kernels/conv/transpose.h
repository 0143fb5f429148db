/* kernels/conv/transpose.h: ConvTranspose: how large its result is and where it begins.
 *
 * Each element of X is spread over a window of Y. Without padding Y has stride (in - 1) + window +
 * output_padding elements; pads cut some off, or output_shape (or auto_pad, with stride in) says how many
 * stay, and the rest is cut at both ends.
 */
#ifndef ORTC_KERNELS_CONV_TRANSPOSE_H
#define ORTC_KERNELS_CONV_TRANSPOSE_H

#include "kernels/common/window.h"

typedef struct ortc_transpose {
    ortc_window window;
    int64_t group;
    bool has_shape;                                              /* output_shape is given */
    int64_t more[ORTC_SPATIAL_LIMIT], shape[ORTC_SPATIAL_LIMIT]; /* output_padding, output_shape */
} ortc_transpose;

/* op_transpose.c. NULL, or what is wrong with *attribute. */
const char *ortc_transpose_read(const ortc_node *, int32_t spatial, ortc_transpose *, const char **attribute);
ortc_status ortc_infer_conv_transpose(ortc_infer *);

/* Elements cut off before dim i, for an output of `out`; window.kernel[i] is set. */
static inline int64_t ortc_transpose_pad(const ortc_transpose *t, int32_t i, int64_t in, int64_t out)
{
    const bool same = t->window.auto_pad == ORTC_PAD_SAME_UPPER || t->window.auto_pad == ORTC_PAD_SAME_LOWER;
    if (!t->has_shape && !same) return t->window.pad_begin[i];
    const int64_t total = t->window.stride[i] * (in - 1) + t->more[i] + ortc_window_span(&t->window, i) - out;
    if (total <= 0) return 0;
    return t->window.auto_pad == ORTC_PAD_SAME_UPPER ? total / 2 : total - total / 2;
}

/* ref_transpose.c: the state is an ortc_transpose */
ortc_status ortc_conv_transpose_prepare(const ortc_node *, ortc_prep *, void **out);
extern const ortc_kernel ortc_ref_conv_transpose;

#endif
