/* graph/normalise/windows.h: the windows of a Conv, as passes that change their taps read them. */
#ifndef ORTC_NORMALISE_WINDOWS_H
#define ORTC_NORMALISE_WINDOWS_H

#include "match.h"

enum { ORTC_MAX_WINDOW_DIMS = 3 };

typedef struct ortc_window_axis {
    int64_t taps, dilation, stride, before, after; /* the last two: padding */
} ortc_window_axis;

/* Element i of an attribute of `count` integers in 0 .. 2^31 - 1; -1: it has others. */
static inline int64_t ortc_window_number(const ortc_node *n, const char *name, size_t count, size_t i,
                                         int64_t otherwise)
{
    size_t have;
    const int64_t *v = ortc_node_ints(n, name, &have);
    if (!v) return otherwise;
    return have == count && v[i] >= 0 && v[i] <= INT32_MAX ? v[i] : -1;
}

/* Of a Conv with weights w of one to three spatial dims; false: padding goes by auto_pad, or something is out
 * of bounds. */
static inline bool ortc_window_axes(const ortc_node *n, const ortc_constant *w, ortc_window_axis *axes)
{
    const size_t spatial = (size_t)w->rank - 2;
    if (strcmp(ortc_node_string(n, "auto_pad", "NOTSET"), "NOTSET")) return false;
    for (size_t i = 0; i < spatial; i++) {
        const ortc_window_axis a = {.taps = w->dims[2 + i],
                                    .dilation = ortc_window_number(n, "dilations", spatial, i, 1),
                                    .stride = ortc_window_number(n, "strides", spatial, i, 1),
                                    .before = ortc_window_number(n, "pads", 2 * spatial, i, 0),
                                    .after = ortc_window_number(n, "pads", 2 * spatial, spatial + i, 0)};
        if (a.taps < 1 || a.taps > INT32_MAX || a.dilation < 1 || a.stride < 1 || a.before < 0 || a.after < 0)
            return false;
        axes[i] = a;
    }
    return true;
}

#endif
