/* graph/normalise/crop_windows.c: Conv with a window wider than its input: rows and columns of weights that
 * see nothing but padding, wherever the window stands, are left out, and as much padding.
 *
 * So DeepLab looks at 33 pixels with windows of 3 that are dilated by 36: one pixel of them sees anything.
 * Extents are numbers, weights constant and finite (an infinity times padding is not 0), and no padding may
 * become negative.
 */
#include "windows.h"

/* Taps begin .. end-1 of an axis are kept. */
typedef struct kept {
    int64_t taps, begin, end;
} kept;

/* Leaves out taps at both ends of an axis over `in` elements, and padding with them; false: no tap sees
 * anything, or padding would be negative. */
static bool crop(ortc_window_axis *a, int64_t in, kept *k)
{
    if (in < 1 || in > INT32_MAX || in + a->before + a->after <= (a->taps - 1) * a->dilation) return false;
    const int64_t outs = (in + a->before + a->after - (a->taps - 1) * a->dilation - 1) / a->stride + 1;
    *k = (kept){a->taps, a->taps, 0};
    for (int64_t i = 0; i < a->taps; i++) {
        const int64_t first = i * a->dilation - a->before, last = first + (outs - 1) * a->stride;
        if (last < 0 || first >= in) continue;
        if (i < k->begin) k->begin = i;
        k->end = i + 1;
    }
    a->before -= k->begin * a->dilation, a->after -= (a->taps - k->end) * a->dilation;
    return k->begin < k->end && a->before >= 0 && a->after >= 0;
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
static ortc_edge *cropped(ortc_normalise *p, const ortc_constant *w, const kept *axes)
{
    kept of[ORTC_MAX_WINDOW_DIMS] = {{1, 0, 1}, {1, 0, 1}, {1, 0, 1}};
    const int32_t spatial = w->rank - 2;
    const size_t size = ortc_dtype_bits(w->dtype) / 8;
    int64_t dims[2 + ORTC_MAX_WINDOW_DIMS] = {w->dims[0], w->dims[1]}, count = w->dims[0] * w->dims[1];
    for (int32_t i = 0; i < spatial; i++) {
        of[ORTC_MAX_WINDOW_DIMS - spatial + i] = axes[i];
        count *= dims[2 + i] = axes[i].end - axes[i].begin;
    }
    char *data = ortc_data_alloc((size_t)count * size), *to = data;
    if (!data) return NULL;
    /* what is whole behind a dim is a part of its elements */
    for (int i = 0; i < ORTC_MAX_WINDOW_DIMS - 1 && of[2].end - of[2].begin == of[2].taps; i++) {
        const int64_t taps = of[2].taps;
        of[2] = (kept){of[1].taps * taps, of[1].begin * taps, of[1].end * taps};
        of[1] = of[0];
        of[0] = (kept){1, 0, 1};
    }
    const size_t run = (size_t)(of[2].end - of[2].begin) * size;
    for (int64_t f = 0; f < w->dims[0] * w->dims[1]; f++)
        for (int64_t a = of[0].begin; a < of[0].end; a++)
            for (int64_t b = of[1].begin; b < of[1].end; b++, to += run) {
                const int64_t at = ((f * of[0].taps + a) * of[1].taps + b) * of[2].taps + of[2].begin;
                memcpy(to, (const char *)w->data + (size_t)at * size, run);
            }
    return ortc_graph_constant_take(p->graph, w->dtype, w->rank, dims, data, (size_t)count * size, p->error);
}

static ortc_status crop_window(ortc_normalise *p, ortc_node *n)
{
    const ortc_edge *x = n->in[0], *we = ortc_node_in_edge(n, 1);
    const ortc_constant *w = we && ortc_edge_is_const(we) ? we->constant : NULL;
    ortc_window_axis axes[ORTC_MAX_WINDOW_DIMS];
    kept taps[ORTC_MAX_WINDOW_DIMS];
    int64_t pads[2 * ORTC_MAX_WINDOW_DIMS], kernel[ORTC_MAX_WINDOW_DIMS];
    if (!x || !w || !exponent_of(w->dtype) || w->rank < 3 || w->rank > 2 + ORTC_MAX_WINDOW_DIMS ||
        x->rank != w->rank || w->count == 0 || !ortc_window_axes(n, w, axes))
        return ORTC_OK;
    const size_t spatial = (size_t)w->rank - 2;
    bool less = false;
    for (size_t i = 0; i < spatial; i++) {
        if (!crop(&axes[i], x->dims[2 + i], &taps[i])) return ORTC_OK;
        kernel[i] = taps[i].end - taps[i].begin;
        less |= kernel[i] < taps[i].taps;
        pads[i] = axes[i].before, pads[spatial + i] = axes[i].after;
    }
    if (!less || !is_finite(w)) return ORTC_OK;
    ortc_edge *made = cropped(p, w, taps);
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
