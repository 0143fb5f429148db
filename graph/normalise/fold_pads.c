/* graph/normalise/fold_pads.c: a Pad in front of a window becomes the window's own padding.
 *
 *   Conv(Pad(x)), AveragePool(Pad(x))    zeros, along spatial axes; the average counts them then
 *   MaxPool(Pad(x))                      -infinity, or zeros where x = Relu(..): no window is all padding
 *
 * Exporters from TensorFlow and MXNet write "same" padding with strides so. Negative pads crop, and stay. A
 * Pad that others read, too, stays as well. One of zeros may be rounded to 8 bits behind it, which keep a
 * zero (rounded.h).
 */
#include "rounded.h"

enum { MAX_SPATIAL = 6 };

/* Integers of a constant vector, at most `most`; -1: it is none. */
static int64_t integers(const ortc_edge *e, int64_t most, int64_t *out)
{
    const ortc_constant *c = e && ortc_edge_is_const(e) ? e->constant : NULL;
    if (!c || (c->dtype != ORTC_I64 && c->dtype != ORTC_I32) || c->rank != 1 || c->count > most) return -1;
    for (int64_t i = 0; i < c->count; i++) {
        int32_t small;
        if (c->dtype == ORTC_I64) {
            memcpy(&out[i], (const char *)c->data + i * 8, 8);
        } else {
            memcpy(&small, (const char *)c->data + i * 4, 4);
            out[i] = small;
        }
    }
    return c->count;
}

/* What a Pad adds before and after each spatial axis of x; false: something else. */
static bool read_pad(const ortc_node *pad, int32_t rank, int64_t *before, int64_t *after)
{
    int64_t amounts[2 * (MAX_SPATIAL + 2)], axes[MAX_SPATIAL + 2];
    const ortc_edge *given = ortc_node_in_edge(pad, 3);
    int64_t n = rank;
    if (strcmp(ortc_node_string(pad, "mode", "constant"), "constant") || rank < 3 || rank > MAX_SPATIAL + 2)
        return false;
    for (int64_t i = 0; i < n; i++) axes[i] = i;
    if (given && (n = integers(given, rank, axes)) < 0) return false;
    if (integers(ortc_node_in_edge(pad, 1), 2 * rank, amounts) != 2 * n) return false;
    for (int32_t i = 0; i < rank - 2; i++) before[i] = after[i] = 0;
    for (int64_t i = 0; i < n; i++) {
        const int64_t axis = axes[i] < 0 ? axes[i] + rank : axes[i], b = amounts[i], a = amounts[n + i];
        if (axis < 0 || axis >= rank || b < 0 || a < 0 || b > INT32_MAX || a > INT32_MAX) return false;
        if (axis < 2 && (a || b)) return false;
        if (axis >= 2) before[axis - 2] += b, after[axis - 2] += a;
    }
    return true;
}

/* The number that it adds; false: not known. */
static bool read_value(const ortc_node *pad, double *out)
{
    const ortc_edge *e = ortc_node_in_edge(pad, 2);
    *out = 0;
    return !e || ortc_match_scalar(e, 1, out);
}

/* Every window of a MaxPool has an element of x. */
static bool reaches(const ortc_node *n, int32_t spatial, const int64_t *before, const int64_t *after)
{
    size_t count, dilated;
    const int64_t *kernel = ortc_node_ints(n, "kernel_shape", &count);
    const int64_t *dilation = ortc_node_ints(n, "dilations", &dilated);
    if (!kernel || count != (size_t)spatial || ortc_node_int(n, "ceil_mode", 0)) return false;
    for (int32_t i = 0; i < spatial; i++)
        if (before[i] >= kernel[i] || after[i] >= kernel[i] || (dilation && dilation[i] != 1)) return false;
    return true;
}

/* Whether the sums or maxima over a window are the same with this padding of its own. */
static bool may(const ortc_node *n, const ortc_edge *x, double value, int32_t spatial, const int64_t *before,
                const int64_t *after, bool has_own)
{
    if (ortc_match_is(n, "Conv")) return value == 0;
    if (ortc_match_is(n, "AveragePool"))
        return value == 0 && !ortc_node_int(n, "ceil_mode", 0) &&
               (!has_own || ortc_node_int(n, "count_include_pad", 0));
    return ortc_match_is(n, "MaxPool") && n->n_out == 1 && !has_own &&
           (value == -HUGE_VAL || (value == 0 && ortc_match_made(x, "Relu", 1))) &&
           reaches(n, spatial, before, after);
}

static ortc_status fold(ortc_normalise *p, ortc_node *n)
{
    ortc_rounded rounded;
    ortc_edge *e = ortc_match_unrounded(n->in[0], true, &rounded);
    const ortc_node *pad = ortc_match_made(e, "Pad", 2);
    ortc_edge *x = pad ? pad->in[0] : NULL;
    int64_t before[MAX_SPATIAL], after[MAX_SPATIAL], pads[2 * MAX_SPATIAL];
    double value;
    if (!x || !ortc_match_reader(e, 1) || !read_pad(pad, x->rank, before, after) ||
        !read_value(pad, &value) || (rounded.quantise && value != 0))
        return ORTC_OK;
    const int32_t spatial = x->rank - 2;
    const char *automatic = ortc_node_string(n, "auto_pad", "NOTSET");
    size_t count;
    const int64_t *own = ortc_node_ints(n, "pads", &count);
    if (strcmp(automatic, "NOTSET")) {
        if (strcmp(automatic, "VALID")) return ORTC_OK;
        own = NULL;
    }
    if (own && count != 2 * (size_t)spatial) return ORTC_OK;
    bool has_own = false;
    for (int32_t i = 0; i < 2 * spatial; i++) {
        pads[i] = (own ? own[i] : 0) + (i < spatial ? before[i] : after[i - spatial]);
        has_own |= own && own[i];
        if (pads[i] > INT32_MAX) return ORTC_OK;
    }
    if (!may(n, x, value, spatial, before, after, has_own)) return ORTC_OK;
    const ortc_attr a = {.size = sizeof a,
                         .kind = ORTC_ATTR_INTS,
                         .count = 2 * (size_t)spatial,
                         .u.ints = pads};
    const ortc_attr yes = {.size = sizeof yes, .kind = ORTC_ATTR_INT, .i = 1};
    ortc_node_drop_attr(n, "auto_pad");
    if (!ortc_node_set_attr(n, "pads", &a) ||
        (ortc_match_is(n, "AveragePool") && !ortc_node_set_attr(n, "count_include_pad", &yes)) ||
        !(x = ortc_match_round(p, n, &rounded, x)) || !ortc_node_set_in(n, 0, x))
        return ortc_no_memory(p->error, sizeof pads);
    p->edits++; /* the Pad, without readers, is left to dead-nodes */
    return ORTC_OK;
}

ortc_status ortc_pass_fold_pads(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first; n; n = n->next)
        if (n->n_in && n->in[0] &&
            (ortc_match_is(n, "Conv") || ortc_match_is(n, "AveragePool") || ortc_match_is(n, "MaxPool")))
            ORTC_TRY(fold(p, n));
    return ORTC_OK;
}
