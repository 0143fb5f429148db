/* graph/normalise/crop_windows.c: Conv with a window wider than its input: rows and columns of weights that
 * see nothing but padding, wherever the window stands, are left out, and as much padding.
 *
 * So DeepLab looks at 33 pixels with windows of 3 that are dilated by 36: one pixel of them sees anything.
 * Extents are numbers, weights constant and finite (an infinity times padding is not 0), and no padding may
 * become negative.
 */
#include "match.h"

enum { MAX_SPATIAL = 3 };

/* An axis: extents of the input and of the window, what is before and behind the input; then the taps that
 * are kept. */
typedef struct axis {
    int64_t in, taps, dilation, stride, before, after;
    int64_t begin, end;
} axis;

/* Leaves out taps at both ends; false: no tap sees anything, or padding would be negative. */
static bool crop(axis *a)
{
    const int64_t outs = (a->in + a->before + a->after - (a->taps - 1) * a->dilation - 1) / a->stride + 1;
    a->begin = a->taps, a->end = 0;
    for (int64_t i = 0; i < a->taps; i++) {
        const int64_t first = i * a->dilation - a->before, last = first + (outs - 1) * a->stride;
        if (last < 0 || first >= a->in) continue;
        if (i < a->begin) a->begin = i;
        a->end = i + 1;
    }
    a->before -= a->begin * a->dilation, a->after -= (a->taps - a->end) * a->dilation;
    return a->begin < a->end && a->before >= 0 && a->after >= 0;
}

static bool read_axes(const ortc_node *n, const ortc_edge *x, const ortc_constant *w, axis *axes)
{
    const size_t spatial = (size_t)w->rank - 2;
    if (strcmp(ortc_node_string(n, "auto_pad", "NOTSET"), "NOTSET")) return false;
    for (size_t i = 0; i < spatial; i++) {
        axis *a = &axes[i];
        *a = (axis){.in = x->dims[2 + i],
                    .taps = w->dims[2 + i],
                    .dilation = ortc_match_number(n, "dilations", spatial, i, 1),
                    .stride = ortc_match_number(n, "strides", spatial, i, 1),
                    .before = ortc_match_number(n, "pads", 2 * spatial, i, 0),
                    .after = ortc_match_number(n, "pads", 2 * spatial, spatial + i, 0)};
        if (a->in < 1 || a->in > INT32_MAX || a->taps < 1 || a->taps > INT32_MAX || a->dilation < 1 ||
            a->stride < 1 || a->before < 0 || a->after < 0 ||
            a->in + a->before + a->after <= (a->taps - 1) * a->dilation)
            return false;
    }
    return true;
}

/* The bits of which all are set in what is not finite; 0: a type of another kind. */
static uint32_t exponent_of(ortc_dtype t)
{
    return t == ORTC_F32 ? 0x7f800000 : t == ORTC_F16 ? 0x7c00 : t == ORTC_BF16 ? 0x7f80 : 0;
}

static bool is_finite(const ortc_constant *w)
{
    const uint32_t exponent = exponent_of(w->dtype);
    const char *x = w->data;
    uint32_t narrow = 0;
    uint16_t half = 0;
    bool found = false;
    if (ortc_dtype_bits(w->dtype) == 32)
        for (int64_t i = 0; i < w->count; i++) {
            memcpy(&narrow, x + i * 4, 4);
            found |= (narrow & exponent) == exponent;
        }
    else
        for (int64_t i = 0; i < w->count; i++) {
            memcpy(&half, x + i * 2, 2);
            found |= (half & exponent) == exponent;
        }
    return !found;
}

/* W without what is left out. NULL: no memory. */
static ortc_edge *cropped(ortc_normalise *p, const ortc_constant *w, const axis *axes)
{
    axis of[MAX_SPATIAL] = {{.taps = 1, .end = 1}, {.taps = 1, .end = 1}, {.taps = 1, .end = 1}};
    const int32_t spatial = w->rank - 2;
    const size_t size = ortc_dtype_bits(w->dtype) / 8;
    int64_t dims[2 + MAX_SPATIAL] = {w->dims[0], w->dims[1]}, count = w->dims[0] * w->dims[1];
    for (int32_t i = 0; i < spatial; i++) {
        of[MAX_SPATIAL - spatial + i] = axes[i];
        count *= dims[2 + i] = axes[i].end - axes[i].begin;
    }
    ortc_constant *made;
    char *data = malloc((size_t)count * size + 1), *to = data;
    if (!data) return NULL;
    /* what is whole behind a dim is a part of its elements */
    for (int i = 0; i < MAX_SPATIAL - 1 && of[2].end - of[2].begin == of[2].taps; i++) {
        const int64_t taps = of[2].taps;
        of[2] = (axis){.taps = of[1].taps * taps, .begin = of[1].begin * taps, .end = of[1].end * taps};
        of[1] = of[0];
        of[0] = (axis){.taps = 1, .end = 1};
    }
    const size_t run = (size_t)(of[2].end - of[2].begin) * size;
    for (int64_t f = 0; f < w->dims[0] * w->dims[1]; f++)
        for (int64_t a = of[0].begin; a < of[0].end; a++)
            for (int64_t b = of[1].begin; b < of[1].end; b++, to += run) {
                const int64_t at = ((f * of[0].taps + a) * of[1].taps + b) * of[2].taps + of[2].begin;
                memcpy(to, (const char *)w->data + (size_t)at * size, run);
            }
    if (ortc_constant_create(w->dtype, w->rank, dims, data, (size_t)count * size, free, data, &made, NULL) !=
        ORTC_OK) {
        free(data);
        return NULL;
    }
    return ortc_graph_constant(p->graph, NULL, made);
}

static ortc_status crop_window(ortc_normalise *p, ortc_node *n)
{
    const ortc_edge *x = n->in[0], *we = ortc_node_in_edge(n, 1);
    const ortc_constant *w = we && ortc_edge_is_const(we) ? we->constant : NULL;
    axis axes[MAX_SPATIAL];
    int64_t pads[2 * MAX_SPATIAL], kernel[MAX_SPATIAL];
    if (!x || !w || !exponent_of(w->dtype) || w->rank < 3 || w->rank > 2 + MAX_SPATIAL ||
        x->rank != w->rank || w->count == 0 || !read_axes(n, x, w, axes))
        return ORTC_OK;
    const size_t spatial = (size_t)w->rank - 2;
    bool less = false;
    for (size_t i = 0; i < spatial; i++) {
        if (!crop(&axes[i])) return ORTC_OK;
        less |= axes[i].end - axes[i].begin < axes[i].taps;
        pads[i] = axes[i].before, pads[spatial + i] = axes[i].after;
        kernel[i] = axes[i].end - axes[i].begin;
    }
    if (!less || !is_finite(w)) return ORTC_OK;
    ortc_edge *made = cropped(p, w, axes);
    if (!made || !ortc_node_set_in(n, 1, made) || !ortc_match_set_ints(n, "pads", 2 * spatial, pads) ||
        !ortc_match_set_ints(n, "kernel_shape", spatial, kernel))
        return ortc_no_memory(p->error, w->bytes);
    p->edits++;
    return ORTC_OK;
}

ortc_status ortc_pass_crop_windows(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first; n; n = n->next)
        if (n->n_in > 1 && ortc_match_is(n, "Conv")) ORTC_TRY(crop_window(p, n));
    return ORTC_OK;
}
