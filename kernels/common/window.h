/* kernels/common/window.h: the sliding window of convolutions and pools: kernel, strides, dilations, pads,
 * auto_pad.
 *
 * Read once from the attributes, checked and completed for the shapes at hand: by the shape function on dims
 * that may be symbols, by the kernel on numbers. Extents of attributes are limited to 2^31 - 1, so that sums
 * of a few products of two of them fit 64 bits.
 */
#ifndef ORTC_KERNELS_WINDOW_H
#define ORTC_KERNELS_WINDOW_H

#include "kernels/common/shape.h"

#define ORTC_SPATIAL_LIMIT (ORTC_RANK_LIMIT - 2)

enum { ORTC_PAD_NOTSET = 0, ORTC_PAD_SAME_UPPER, ORTC_PAD_SAME_LOWER, ORTC_PAD_VALID };

typedef struct ortc_window {
    int32_t spatial; /* dims; -1: no attribute says how many */
    int32_t auto_pad;
    bool ceil_mode, has_kernel;
    int64_t kernel[ORTC_SPATIAL_LIMIT], stride[ORTC_SPATIAL_LIMIT], dilation[ORTC_SPATIAL_LIMIT];
    int64_t pad_begin[ORTC_SPATIAL_LIMIT], pad_end[ORTC_SPATIAL_LIMIT]; /* as given; see ortc_window_pad */
} ortc_window;

/* Reads a list of `per_dim` numbers per spatial dim. NULL, or what is wrong. */
static inline const char *ortc_window_list(const ortc_node *n, const char *name, int64_t least,
                                           int64_t otherwise, int32_t *spatial, int64_t *first,
                                           int64_t *second, bool *given)
{
    size_t count;
    const int64_t *v = ortc_node_ints(n, name, &count);
    const size_t per_dim = second ? 2 : 1;
    *given = v != NULL && count > 0;
    for (int32_t i = 0; i < ORTC_SPATIAL_LIMIT; i++) {
        first[i] = otherwise;
        if (second) second[i] = otherwise;
    }
    if (!*given) return NULL;
    if (count % per_dim || count / per_dim > ORTC_SPATIAL_LIMIT ||
        (*spatial >= 0 && count / per_dim != (size_t)*spatial))
        return second ? "is not two elements, begin and end, for each spatial dim"
                      : "is not one element for each spatial dim";
    *spatial = (int32_t)(count / per_dim);
    for (size_t i = 0; i < count; i++) {
        if (v[i] < least || v[i] > INT32_MAX)
            return least ? "has an element below 1 or above 2147483647"
                         : "has an element below 0 or above 2147483647";
        if (i < (size_t)*spatial)
            first[i] = v[i];
        else
            second[i - (size_t)*spatial] = v[i];
    }
    return NULL;
}

/* Reads the attributes of a node whose input has `spatial` spatial dims (-1: not known). NULL, or what is
 * wrong, with the attribute in *attribute. */
static inline const char *ortc_window_read(const ortc_node *n, int32_t spatial, ortc_window *w,
                                           const char **attribute)
{
    static const char *const names[] = {"NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"};
    const char *wrong, *pad = ortc_node_string(n, "auto_pad", "NOTSET");
    bool given;
    w->spatial = spatial;
    w->ceil_mode = ortc_node_int(n, "ceil_mode", 0) != 0;
    if ((wrong = ortc_window_list(n, *attribute = "kernel_shape", 1, 1, &w->spatial, w->kernel, NULL,
                                  &w->has_kernel)) ||
        (wrong = ortc_window_list(n, *attribute = "strides", 1, 1, &w->spatial, w->stride, NULL, &given)) ||
        (wrong = ortc_window_list(n, *attribute = "dilations", 1, 1, &w->spatial, w->dilation, NULL,
                                  &given)) ||
        (wrong = ortc_window_list(n, *attribute = "pads", 0, 0, &w->spatial, w->pad_begin, w->pad_end,
                                  &given)))
        return wrong;
    *attribute = "auto_pad";
    for (w->auto_pad = 0; strcmp(pad, names[w->auto_pad]) != 0;)
        if (++w->auto_pad == 4) return "is none of NOTSET, SAME_UPPER, SAME_LOWER, VALID";
    if (w->auto_pad != ORTC_PAD_NOTSET) /* pads are then not to be given; where they are, they do not count */
        for (int32_t i = 0; i < ORTC_SPATIAL_LIMIT; i++) w->pad_begin[i] = w->pad_end[i] = 0;
    return NULL;
}

static inline ortc_status ortc_infer_window(ortc_infer *c, int32_t spatial, ortc_window *w)
{
    const char *attribute, *wrong = ortc_window_read(ortc_infer_node(c), spatial, w, &attribute);
    return wrong ? ortc_infer_fail(c, ORTC_INVALID_MODEL, "attribute %s %s", attribute, wrong) : ORTC_OK;
}

/* Extent of input that a window covers in dim i. */
static inline int64_t ortc_window_span(const ortc_window *w, int32_t i)
{
    return (w->kernel[i] - 1) * w->dilation[i] + 1;
}

/* Number of windows along dim i of an input of `in` elements; kernel[i] is set. */
static inline ortc_status ortc_infer_window_out(ortc_infer *c, const ortc_window *w, int32_t i, ortc_dim in,
                                                ortc_dim *out)
{
    const int64_t span = ortc_window_span(w, i), stride = w->stride[i],
                  pads = w->pad_begin[i] + w->pad_end[i];
    if (in == ORTC_DIM_UNKNOWN) {
        *out = ORTC_DIM_UNKNOWN;
        return ORTC_OK;
    }
    if (w->auto_pad == ORTC_PAD_SAME_UPPER || w->auto_pad == ORTC_PAD_SAME_LOWER) {
        *out = ortc_dim_ceil_div(c, in, stride);
        return ORTC_OK;
    }
    if (in < 0) { /* a symbol */
        const ortc_dim room = ortc_dim_sub(c, ortc_dim_add(c, in, pads), span);
        *out = ortc_dim_add(c,
                            w->ceil_mode ? ortc_dim_ceil_div(c, room, stride) : ortc_dim_div(c, room, stride),
                            1);
        if (w->ceil_mode &&
            stride > 1) /* windows that would begin behind the input and its first pad do not count */
            *out = ortc_dim_min(c, *out, ortc_dim_ceil_div(c, ortc_dim_add(c, in, w->pad_begin[i]), stride));
        return ORTC_OK;
    }
    if (in > INT64_MAX / 2)
        return ortc_infer_fail(c, ORTC_LIMIT, "spatial dim %d has %lld elements", i, (long long)in);
    const int64_t room = in + pads - span;
    if (room < 0) { /* an empty input has no windows; a shorter one does not fit the model */
        *out = 0;
        if (in > 0 && -room > stride)
            return ortc_infer_fail(
                c, ORTC_SHAPE_MISMATCH,
                "spatial dim %d has %lld elements and %lld of padding, the window spans %lld", i,
                (long long)in, (long long)pads, (long long)span);
        return ORTC_OK;
    }
    *out = room / stride + 1;
    if (w->ceil_mode && room % stride && *out * stride < in + w->pad_begin[i]) ++*out;
    return ORTC_OK;
}

/* Elements of padding before a dim whose pads begin with `begin`, for an input of `in` and an output of `out`
 * elements. */
static inline int64_t ortc_window_pad_of(int32_t auto_pad, int64_t begin, int64_t stride, int64_t span,
                                         int64_t in, int64_t out)
{
    if (auto_pad != ORTC_PAD_SAME_UPPER && auto_pad != ORTC_PAD_SAME_LOWER) return begin;
    int64_t total = (out - 1) * stride + span - in;
    if (total < 0) total = 0;
    return auto_pad == ORTC_PAD_SAME_UPPER ? total / 2 : total - total / 2;
}
static inline int64_t ortc_window_pad(const ortc_window *w, int32_t i, int64_t in, int64_t out)
{
    return ortc_window_pad_of(w->auto_pad, w->pad_begin[i], w->stride[i], ortc_window_span(w, i), in, out);
}

#endif
