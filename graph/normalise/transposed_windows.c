/* graph/normalise/transposed_windows.c: a ConvTranspose of 8 bits as the convolution that gives all elements
 * of a stride's square at once, which are put where they belong behind it:
 *
 *   ConvTranspose(DequantizeLinear(x), DequantizeLinear(W [C, M, k, k]), b, strides=[s, s])
 *     = Slice(DepthToSpace(Conv(DequantizeLinear(x), DequantizeLinear(W'), b'), s))
 *
 * with W' [s * s * M, C, k / s, k / s], so that it runs on integers where convolutions do. What follows
 * element by element, with constants of one number or one for each channel, goes before the two moves as far
 * as the last that has 8 bits. W constant, k a multiple of s, two spatial dims, no groups, no dilation,
 * extents numbers but for the batch.
 */
#include "graph/ir/quantised.h"
#include "match.h"

enum { SPATIAL = 2, MOST_BEHIND = 16 };

typedef struct form {
    ortc_node *n;
    ortc_quantised w;
    ortc_edge *bias; /* NULL: none */
    int64_t channels, filters, stride, places;
    int64_t taps[SPATIAL], count[SPATIAL], cut[SPATIAL], begin[SPATIAL], end[SPATIAL]; /* pads */
} form;

static bool all_are(const ortc_node *n, const char *name, int64_t v)
{
    size_t count;
    const int64_t *list = ortc_node_ints(n, name, &count);
    for (size_t i = 0; list && i < count; i++)
        if (list[i] != v) return false;
    return true;
}

/* Of W by one scale, or one for each filter. */
static bool read_weights(const ortc_node *n, form *f)
{
    if (!ortc_read_dequantised(n->in[1], &f->w) || !ortc_edge_is_const(f->w.x) ||
        f->w.x->constant->rank != 2 + SPATIAL || (f->w.zero && !ortc_edge_is_const(f->w.zero)))
        return false;
    const ortc_constant *w = f->w.x->constant;
    f->channels = w->dims[0], f->filters = w->dims[1];
    return w->count > 0 && (f->w.scale->count == 1 || f->w.axis == 1 || f->w.axis == 1 - w->rank);
}

static bool read_form(ortc_node *n, form *f)
{
    ortc_quantised x;
    size_t n_strides, n_pads, n_shape;
    if (!ortc_match_is(n, "ConvTranspose")) return false;
    const ortc_edge *y = n->n_out == 1 ? n->out[0] : NULL;
    if (!y || !y->uses || n->n_in < 2 || !n->in[0] || !n->in[1] || !ortc_read_dequantised(n->in[0], &x) ||
        x.scale->count != 1 || !read_weights(n, f))
        return false;
    const int64_t *strides = ortc_node_ints(n, "strides", &n_strides),
                  *pads = ortc_node_ints(n, "pads", &n_pads);
    f->n = n, f->bias = ortc_node_in_edge(n, 2);
    if (ortc_node_int(n, "group", 1) != 1 || !all_are(n, "dilations", 1) ||
        strcmp(ortc_node_string(n, "auto_pad", "NOTSET"), "NOTSET") != 0 ||
        ortc_node_ints(n, "output_shape", &n_shape) || !strides || n_strides != SPATIAL || strides[0] < 2 ||
        strides[0] > 16 || strides[1] != strides[0] || (pads && n_pads != 2 * SPATIAL) ||
        n->in[0]->rank != 2 + SPATIAL || y->rank != 2 + SPATIAL)
        return false;
    if (f->bias && (!ortc_edge_is_const(f->bias) || f->bias->constant->dtype != ORTC_F32 ||
                    f->bias->constant->rank != 1 || f->bias->constant->count != f->filters))
        return false;
    f->stride = strides[0], f->places = f->stride * f->stride;
    for (int i = 0; i < SPATIAL; i++) {
        const int64_t kernel = f->w.x->constant->dims[2 + i], pad = pads ? pads[i] : 0,
                      first = pad / f->stride;
        const ortc_dim in = n->in[0]->dims[2 + i], out = y->dims[2 + i];
        if (!ortc_dim_is_number(in) || !ortc_dim_is_number(out) || in < 1 || out < 1 || in > INT32_MAX ||
            out > INT32_MAX || kernel % f->stride || pad < 0 || pad >= kernel)
            return false;
        f->taps[i] = kernel / f->stride;
        f->cut[i] = pad % f->stride;
        f->count[i] = (out - 1 + pad) / f->stride - first + 1;
        f->begin[i] = f->taps[i] - 1 - first;
        f->end[i] = f->count[i] - in - f->begin[i] + f->taps[i] - 1;
        if (f->begin[i] < 0 || f->end[i] < 0) return false;
    }
    return true;
}

bool ortc_transposed_windows_takes(ortc_node *n)
{
    form f;
    return read_form(n, &f);
}

/* ---- What follows -------------------------------------------------------------------------------------- */

/* A constant beside values of rank 4 with a number for each channel. */
static bool is_by_channel(const ortc_edge *e, int64_t channels)
{
    const ortc_constant *c = e->constant;
    return c->count == channels && c->rank >= 1 + SPATIAL && c->rank <= 2 + SPATIAL &&
           c->dims[c->rank - 1 - SPATIAL] == channels;
}

/* Whether n combines e, element by element, with constants that can stand beside all places. */
static bool goes_along(const ortc_node *n, const ortc_edge *e, int64_t channels)
{
    const bool rounds = ortc_is_op(n, "QuantizeLinear") || ortc_is_op(n, "DequantizeLinear");
    if (!n || !n->op || !n->op->expand || n->epilogue || n->body || n->n_out != 1 || !n->out[0] ||
        !n->out[0]->type || n->out[0]->type->kind != ORTC_KIND_TENSOR || !ortc_match_same_shape(n->out[0], e))
        return false;
    for (uint32_t i = 0; i < n->n_in; i++)
        if (n->in[i] && n->in[i] != e &&
            (!ortc_edge_is_const(n->in[i]) ||
             (n->in[i]->constant->count != 1 && (rounds || !is_by_channel(n->in[i], channels)))))
            return false;
    return true;
}

/* Nodes behind, as far as the last one of 8 bits, or else all of them; how many. */
static uint32_t follow(const ortc_edge *y, int64_t channels, const ortc_node **behind)
{
    uint32_t n = 0, bytes = 0;
    for (const ortc_edge *e = y; n < MOST_BEHIND; e = behind[n - 1]->out[0]) {
        const ortc_node *next = e->uses ? e->uses->node : NULL;
        bool alone = next != NULL;
        for (const ortc_use *u = e->uses; u; u = u->next) alone &= u->node == next;
        if (!alone || !goes_along(next, e, channels)) break;
        behind[n++] = next;
        if (ortc_is_bytes(next->out[0])) bytes = n;
    }
    return bytes ? bytes : n;
}

/* ---- Building ------------------------------------------------------------------------------------------ */

/* A constant over so many numbers, `times` one behind the other; e itself if it is one number. */
static ortc_edge *repeated(ortc_normalise *p, ortc_edge *e, int64_t times)
{
    const ortc_constant *c = e->constant;
    if (c->count == 1) return e;
    int64_t dims[2 + SPATIAL];
    char *data = ortc_data_alloc(c->bytes * (size_t)times);
    for (int64_t i = 0; data && i < times; i++) memcpy(data + (size_t)i * c->bytes, c->data, c->bytes);
    for (int32_t d = 0; d < c->rank; d++) dims[d] = c->dims[d] == c->count ? c->count * times : c->dims[d];
    return ortc_graph_constant_take(p->graph, c->dtype, c->rank, dims, data, c->bytes * (size_t)times,
                                    p->error);
}

/* W' [place, filter][channel][taps], turned around. */
static ortc_edge *turned(ortc_normalise *p, const form *f)
{
    const ortc_constant *w = f->w.x->constant;
    const int64_t k0 = w->dims[2], k1 = w->dims[3], s = f->stride, area = f->taps[0] * f->taps[1],
                  dims[4] = {f->places * f->filters, f->channels, f->taps[0], f->taps[1]};
    const char *from = w->data;
    char *data = ortc_data_alloc(w->bytes);
    for (int64_t c = 0; data && c < f->channels; c++)
        for (int64_t m = 0; m < f->filters; m++)
            for (int64_t i = 0; i < k0; i++)
                for (int64_t j = 0; j < k1; j++) {
                    const int64_t place = i % s * s + j % s,
                                  tap = (f->taps[0] - 1 - i / s) * f->taps[1] + f->taps[1] - 1 - j / s;
                    data[((place * f->filters + m) * f->channels + c) * area + tap] = *from++;
                }
    return ortc_graph_constant_take(p->graph, w->dtype, 4, dims, data, w->bytes, p->error);
}

/* The convolution, before another node; NULL: no memory. */
static ortc_edge *convolution(ortc_normalise *p, const form *f, ortc_node *before, const ortc_dim *dims)
{
    const ortc_node *of = f->n->in[1]->producer;
    ortc_edge *parts[3] = {turned(p, f), repeated(p, of->in[1], f->places),
                           f->w.zero ? repeated(p, f->w.zero, f->places) : NULL};
    ortc_edge *w = ortc_match_apply(p, before, "DequantizeLinear", f->w.zero ? 3 : 2, parts, 0, 0, NULL);
    const int64_t extents[4] = {f->places * f->filters, f->channels, f->taps[0], f->taps[1]},
                  pads[4] = {f->begin[0], f->begin[1], f->end[0], f->end[1]};
    if (!w || !ortc_edge_set_shape(w, ortc_tensor_type(ORTC_F32), 4, extents) ||
        !ortc_match_set_int(w->producer, "axis", 0))
        return NULL;
    ortc_edge *in[3] = {f->n->in[0], w, f->bias ? repeated(p, f->bias, f->places) : NULL};
    ortc_edge *y = ortc_match_apply(p, before, "Conv", f->bias ? 3 : 2, in, ORTC_F32, 4, dims);
    if (!y || !ortc_match_set_ints(y->producer, "pads", 4, pads)) return NULL;
    y->producer->name = f->n->name;
    return y;
}

/* The same as a node behind, of x, over all places. */
static ortc_edge *same(ortc_normalise *p, const form *f, const ortc_node *of, const ortc_edge *old,
                       ortc_edge *x, ortc_node *before)
{
    ortc_node *n = ortc_node_create(p->graph, of->op, of->name, of->n_in, 1);
    ortc_edge *y = n ? ortc_edge_create(p->graph, NULL) : NULL;
    if (!y || !ortc_edge_set_shape(y, of->out[0]->type, x->rank, x->dims) || !ortc_node_set_out(n, 0, y))
        return NULL;
    for (uint32_t i = 0; i < of->n_in; i++) {
        ortc_edge *in = of->in[i] == old ? x : of->in[i] ? repeated(p, of->in[i], f->places) : NULL;
        if (of->in[i] && (!in || !ortc_node_set_in(n, i, in))) return NULL;
    }
    if (!ortc_node_copy_attrs(n, of)) return NULL;
    ortc_node_move_before(n, before);
    return y;
}

/* Elements to where they belong, and what is cut off. */
static ortc_edge *spread(ortc_normalise *p, const form *f, ortc_edge *x, ortc_node *before)
{
    const ortc_dtype t = x->type->dtype;
    const ortc_edge *y = f->n->out[0];
    const ortc_dim dims[4] = {x->dims[0], f->filters, f->count[0] * f->stride, f->count[1] * f->stride};
    ortc_edge *z = ortc_match_apply(p, before, "DepthToSpace", 1, &x, t, 4, dims);
    if (!z || !ortc_match_set_int(z->producer, "blocksize", f->stride)) return NULL;
    if (ortc_match_same_shape(z, y)) return z;
    const int64_t starts[2] = {f->cut[0], f->cut[1]},
                  ends[2] = {f->cut[0] + y->dims[2], f->cut[1] + y->dims[3]}, axes[2] = {2, 3};
    ortc_edge *in[4] = {z, ortc_match_integers(p, starts, 2), ortc_match_integers(p, ends, 2),
                        ortc_match_integers(p, axes, 2)};
    return ortc_match_apply(p, before, "Slice", 4, in, t, 4, y->dims);
}

static ortc_status replace(ortc_normalise *p, const form *f)
{
    const ortc_node *behind[MOST_BEHIND];
    const ortc_edge *y = f->n->out[0];
    const uint32_t n = follow(y, f->filters, behind);
    ortc_node *last = n ? (ortc_node *)(uintptr_t)behind[n - 1] : f->n;
    const ortc_dim dims[4] = {y->dims[0], f->places * f->filters, f->count[0], f->count[1]};
    ortc_edge *z = convolution(p, f, last, dims);
    for (uint32_t i = 0; z && i < n; i++) z = same(p, f, behind[i], i ? behind[i - 1]->out[0] : y, z, last);
    if (z) z = spread(p, f, z, last);
    if (!z) return ortc_no_memory(p->error, 0);
    ORTC_TRY(ortc_match_take_place(p, last, z->producer));
    for (uint32_t i = n; i-- > 0;) /* what the last one has read */
        ortc_node_remove(i ? (ortc_node *)(uintptr_t)behind[i - 1] : f->n);
    return ORTC_OK;
}

ortc_status ortc_pass_transposed_windows(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first, *before; n; n = before ? before->next : p->graph->first) {
        form f;
        before = n;
        if (!read_form(n, &f)) continue;
        before = n->prev; /* n goes, and what is behind it */
        ORTC_TRY(replace(p, &f));
    }
    return ORTC_OK;
}
