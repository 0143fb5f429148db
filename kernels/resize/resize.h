/* kernels/resize/resize.h: what a Resize is asked for, how large its result is, and which elements each of
 * its elements is made of, axis by axis.
 */
#ifndef ORTC_KERNELS_RESIZE_H
#define ORTC_KERNELS_RESIZE_H

#include "kernels/common/shape.h"

enum { ORTC_RESIZE_NEAREST, ORTC_RESIZE_LINEAR, ORTC_RESIZE_CUBIC };
enum {
    ORTC_COORDINATE_HALF_PIXEL,
    ORTC_COORDINATE_HALF_PIXEL_SYMMETRIC,
    ORTC_COORDINATE_PYTORCH_HALF_PIXEL,
    ORTC_COORDINATE_ALIGN_CORNERS,
    ORTC_COORDINATE_ASYMMETRIC,
    ORTC_COORDINATE_CROP,
    ORTC_COORDINATE_TF_HALF_PIXEL,
};
enum { ORTC_ROUND_PREFER_FLOOR, ORTC_ROUND_PREFER_CEIL, ORTC_ROUND_FLOOR, ORTC_ROUND_CEIL };
enum { ORTC_ASPECT_STRETCH, ORTC_ASPECT_NOT_LARGER, ORTC_ASPECT_NOT_SMALLER };

typedef struct ortc_resize_state {
    int mode, coordinate, nearest, aspect;
    bool antialias, exclude_outside;
    double cubic, extrapolation;
    int32_t n_axes;                /* -1: all */
    int32_t axes[ORTC_RANK_LIMIT]; /* may be negative */
} ortc_resize_state;

typedef struct ortc_resize_axis {
    int64_t in, out;
    double scale;      /* of the coordinates */
    double start, end; /* the part of the input that is looked at, 0 and 1: all */
    bool same;         /* nothing happens along it */
    int64_t n_taps;    /* elements that one of the result is made of */
    /* out of them: the first tap's position, which may be outside of the input; INT64_MIN: extrapolated */
    int64_t *first;
    double *weights; /* out x n_taps */
} ortc_resize_axis;

/* op.c: attributes; false with the name of one that has no such value. */
bool ortc_resize_read(const ortc_node *, ortc_resize_state *, const char **wrong);
/* op.c: floor(in (end - start) scale); -1: not an extent. */
int64_t ortc_resize_extent(int64_t in, double scale, double start, double end);
/* op.c: the one scale that keeps the ratio of the axes; count of them, sizes[i] for an extent of in[i]. */
double ortc_resize_common(int aspect, int64_t count, const int64_t *sizes, const int64_t *in);

/* taps.c: how many taps there are, and then all of them. */
int64_t ortc_resize_count_taps(const ortc_resize_state *, double scale);
void ortc_resize_taps(const ortc_resize_state *, ortc_resize_axis *);

/* taps.c, of kernels: their state is an ortc_resize_state. */
ortc_status ortc_resize_prepare(const ortc_node *, ortc_prep *, void **state);
/* Extents, scales and regions of all axes of X, from the inputs' values; `y`, where it is known, stands for
 * sizes without values. On failure `why` says why. */
typedef char ortc_resize_text[160];
ortc_status ortc_resize_measure(const ortc_resize_state *, uint32_t n_in, const ortc_view *in,
                                const ortc_view *y, ortc_resize_axis *axes, ortc_resize_text why);
/* Element i of y from a sum: integers are rounded to the nearest, halves to even, and saturate. */
void ortc_resize_store(void *y, ortc_dtype, int64_t i, double);
/* Element number `at`, or the first or last of n. */
static inline int64_t ortc_resize_clamped(int64_t at, int64_t n) { return at < 0 ? 0 : at >= n ? n - 1 : at; }

#endif
