/* kernels/resize/taps.c: from a coordinate of the result to elements of the input and their weights, along
 * one axis.
 *
 * An even number of neighbours around the coordinate; where it falls on an element, that one is the right one
 * of the middle two. Antialiasing stretches the filter when the result is smaller. Taps outside of the input
 * read its first or last element, or nothing where exclude_outside says so. Also what kernels of Resize
 * share: its attributes, and what its inputs say.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "kernels/resize/resize.h"

static double coordinate(const ortc_resize_state *s, const ortc_resize_axis *a, int64_t i)
{
    const double length = (double)a->in, width = a->scale * length, x = (double)i;
    switch (s->coordinate) {
    case ORTC_COORDINATE_ALIGN_CORNERS: return width == 1 || a->out == 1 ? 0 : x * (length - 1) / (width - 1);
    case ORTC_COORDINATE_ASYMMETRIC: return x / a->scale;
    case ORTC_COORDINATE_CROP:
        if (a->out <= 1) return 0.5 * (a->start + a->end) * (length - 1);
        return a->start * (length - 1) + x * (a->end - a->start) * (length - 1) / (double)(a->out - 1);
    case ORTC_COORDINATE_TF_HALF_PIXEL: return (x + 0.5) / a->scale;
    case ORTC_COORDINATE_PYTORCH_HALF_PIXEL: return a->out > 1 ? (x + 0.5) / a->scale - 0.5 : 0;
    case ORTC_COORDINATE_HALF_PIXEL_SYMMETRIC:
        return length / 2 * (1 - (double)a->out / width) + (x + 0.5) / a->scale - 0.5;
    default: return (x + 0.5) / a->scale - 0.5;
    }
}

static double cubic_weight(double x, double a)
{
    x = fabs(x);
    if (x <= 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? ((a * x - 5 * a) * x + 8 * a) * x - 4 * a : 0;
}

/* Reach of the filter to each side, in elements of the input. */
static int64_t reach(const ortc_resize_state *s, double scale)
{
    const double radius = s->mode == ORTC_RESIZE_CUBIC ? 2 : 1, stretched = ceil(radius / scale);
    if (!s->antialias || !(scale < 1)) return (int64_t)radius;
    return stretched < 1e15 ? (int64_t)stretched : (int64_t)1e15; /* more than there is memory for */
}

int64_t ortc_resize_count_taps(const ortc_resize_state *s, double scale)
{
    return s->mode == ORTC_RESIZE_NEAREST ? 1 : 2 * reach(s, scale);
}

static int64_t nearest(const ortc_resize_state *s, double x)
{
    switch (s->nearest) {
    case ORTC_ROUND_PREFER_FLOOR: return (int64_t)ceil(x - 0.5);
    case ORTC_ROUND_PREFER_CEIL: return (int64_t)floor(x + 0.5);
    case ORTC_ROUND_FLOOR: return (int64_t)floor(x);
    default: return (int64_t)ceil(x);
    }
}

static void weigh(const ortc_resize_state *s, const ortc_resize_axis *a, double x, int64_t first,
                  double *weights)
{
    const double stretch = s->antialias && a->scale < 1 ? a->scale : 1;
    double sum = 0;
    for (int64_t k = 0; k < a->n_taps; k++) {
        const double off = ((double)(first + k) - x) * stretch;
        weights[k] = s->mode == ORTC_RESIZE_CUBIC ? cubic_weight(off, s->cubic) : fmax(1 - fabs(off), 0);
        if (s->exclude_outside && (first + k < 0 || first + k >= a->in)) weights[k] = 0;
        sum += weights[k];
    }
    for (int64_t k = 0; k < a->n_taps && (stretch < 1 || s->exclude_outside) && sum != 0; k++)
        weights[k] /= sum;
}

void ortc_resize_taps(const ortc_resize_state *s, ortc_resize_axis *a)
{
    for (int64_t i = 0; i < a->out; i++) {
        double x = coordinate(s, a, i);
        if (s->coordinate == ORTC_COORDINATE_CROP && !(x >= 0 && x <= (double)(a->in - 1))) {
            a->first[i] = INT64_MIN;
            continue;
        }
        x = x > -4e15 ? x < 4e15 ? x : 4e15 : -4e15; /* also not a number */
        if (s->mode == ORTC_RESIZE_NEAREST) {
            a->first[i] = nearest(s, x);
            a->weights[i] = 1;
            continue;
        }
        a->first[i] = (int64_t)ceil(x) - a->n_taps / 2;
        weigh(s, a, x, a->first[i], a->weights + i * a->n_taps);
    }
}

/* ---- Attributes and inputs ----------------------------------------------------------------------------- */

ortc_status ortc_resize_prepare(const ortc_node *n, ortc_prep *prep, void **out)
{
    const char *wrong;
    ortc_resize_state *s = malloc(sizeof *s);
    if (!s) return ortc_prep_fail(prep, ORTC_OUT_OF_MEMORY, "no memory for attributes");
    if (!ortc_resize_read(n, s, &wrong)) {
        free(s);
        return ortc_prep_fail(prep, ORTC_INVALID_MODEL, "attribute %s has no such value", wrong);
    }
    *out = s;
    return ORTC_OK;
}

static const ortc_view *given(uint32_t n_in, const ortc_view *in, uint32_t i)
{
    return n_in > i && in[i].dtype && ortc_view_count(&in[i]) > 0 ? &in[i] : NULL;
}

ortc_status ortc_resize_measure(const ortc_resize_state *s, uint32_t n_in, const ortc_view *in,
                                const ortc_view *y, ortc_resize_axis *all, ortc_resize_text why)
{
    const ortc_view *x = &in[0], *by_sizes = given(n_in, in, 3),
                    *by = by_sizes ? by_sizes : given(n_in, in, 2),
                    *roi = s->coordinate == ORTC_COORDINATE_CROP ? given(n_in, in, 1) : NULL;
    const int64_t count = s->n_axes < 0 ? x->rank : s->n_axes;
    int64_t sizes[ORTC_RANK_LIMIT] = {0}, extents[ORTC_RANK_LIMIT] = {0};
    int32_t axes[ORTC_RANK_LIMIT];
    for (int32_t d = 0; d < x->rank; d++)
        all[d] = (ortc_resize_axis){.in = x->dims[d], .out = x->dims[d], .scale = 1, .end = 1, .same = true};
    if (count == 0) return ORTC_OK;
    if (!by || ortc_view_count(by) != count ||
        (s->coordinate == ORTC_COORDINATE_CROP && (!roi || ortc_view_count(roi) != 2 * count))) {
        snprintf(why, sizeof(ortc_resize_text), "%s must have an element for each of %lld axes, roi two",
                 by_sizes ? "sizes" : "scales", (long long)count);
        return ORTC_SHAPE_MISMATCH;
    }
    for (int64_t i = 0; i < count; i++) {
        axes[i] = 0;
        if (!ortc_axis_of(s->n_axes < 0 ? i : s->axes[i], x->rank, &axes[i])) {
            snprintf(why, sizeof(ortc_resize_text), "an axis is outside of the input's rank");
            return ORTC_INVALID_ARGUMENT;
        }
        extents[i] = all[axes[i]].in;
        if (by_sizes) sizes[i] = by->data ? ortc_load_i64(by->data, ORTC_I64, i) : y->dims[axes[i]];
    }
    const bool together = by_sizes && s->aspect != ORTC_ASPECT_STRETCH;
    const double common = together ? ortc_resize_common(s->aspect, count, sizes, extents) : 0;
    for (int64_t i = 0; i < count; i++) {
        ortc_resize_axis *a = &all[axes[i]];
        a->start = roi ? ortc_load_f64(roi->data, roi->dtype, i) : 0;
        a->end = roi ? ortc_load_f64(roi->data, roi->dtype, count + i) : 1;
        if (!by_sizes) {
            a->scale = ortc_load_f64(by->data, ORTC_F32, i);
            a->out = a->scale > 0 ? ortc_resize_extent(a->in, a->scale, a->start, a->end) : -1;
        } else if (together) {
            a->scale = common;
            a->out = (int64_t)floor(common * (double)a->in + 0.5);
        } else {
            a->out = sizes[i];
            a->scale = a->in ? (double)a->out / (double)a->in : 1;
        }
        a->same = a->scale == 1 && a->out == a->in && a->start == 0 && a->end == 1;
        if (a->out < 0 || (a->in == 0 && a->out > 0)) {
            snprintf(why, sizeof(ortc_resize_text), "axis %d of %lld elements cannot be resized by %s %g",
                     axes[i], (long long)a->in, by_sizes ? "size" : "scale",
                     by_sizes ? (double)sizes[i] : a->scale);
            return ORTC_INVALID_ARGUMENT;
        }
    }
    return ORTC_OK;
}

void ortc_resize_store(void *y, ortc_dtype t, int64_t i, double v)
{
    const uint32_t bits = ortc_dtype_bits(t);
    if (ortc_class_of(t) == ORTC_CLASS_FLOAT) {
        ortc_store_f64(y, t, i, v);
        return;
    }
    const bool is_signed = ortc_class_of(t) == ORTC_CLASS_INT;
    const double low = is_signed ? -ldexp(1, (int)bits - 1) : 0, high = ldexp(1, (int)bits - is_signed) - 1;
    v = nearbyint(v);
    ortc_store_f64(y, t, i, v >= low ? v <= high ? v : high : low);
}
