/* graph/normalise/decided_where.c: Where whose choices are known before it is run.
 *
 *   y = Where(Equal(x, c), a, x)        x an integer vector; c, a constants
 *
 * So exporters ask of each target of an Expand whether it is -1. Extents are not below zero, so that each
 * element is decided: y = x + d, d a constant, which shape functions carry symbols through; y = x where d is
 * 0.
 *
 *   y = Where(IsNaN(x), a, x)           x = DequantizeLinear of 8 bits by finite scales
 *
 * is x: so exporters write what a row with nothing to see becomes, and quantisers put theirs between.
 */
#include <math.h>

#include "graph/ir/quantised.h"
#include "match.h"

/* Element i of a constant of one element or of n. */
static bool element(const ortc_edge *e, int64_t i, int64_t n, int64_t *out)
{
    const ortc_constant *c = e && ortc_edge_is_const(e) ? e->constant : NULL;
    if (!c || c->dtype != ORTC_I64 || c->rank > 1 || (c->count != n && c->count != 1)) return false;
    memcpy(out, (const char *)c->data + (c->count == 1 ? 0 : i) * 8, sizeof *out);
    return true;
}

static bool never_negative(ortc_graph *g, ortc_dim d)
{
    ortc_dim most;
    return d != ORTC_DIM_UNKNOWN && ortc_dims_combine(g->dims, ORTC_DIM_MAX, d, 0, &most) == ORTC_OK &&
           most == d;
}

/* What is added to x; false: not decided. d has room for 64, as many as are ever known. */
static bool match(const ortc_node *n, int64_t *d)
{
    const ortc_edge *x = n->in[2];
    const ortc_node *equal = ortc_match_made(n->in[0], "Equal", 2);
    if (!equal || !x || equal->in[0] != x || !x->values || x->n_values > 64 || x->rank != 1 || !x->type ||
        !ortc_type_equal(x->type, ortc_tensor_type(ORTC_I64)))
        return false;
    for (int64_t i = 0; i < x->n_values; i++) {
        const ortc_dim v = x->values[i];
        int64_t c, a;
        if (!element(equal->in[1], i, x->n_values, &c) || !element(n->in[1], i, x->n_values, &a) ||
            v == ORTC_DIM_UNKNOWN || (!ortc_dim_is_number(v) && (c >= 0 || !never_negative(n->graph, v))))
            return false;
        d[i] = v == c ? a - v : 0;
    }
    return true;
}

static ortc_status replace(ortc_normalise *p, ortc_node *n, const int64_t *d)
{
    ortc_edge *x = n->in[2], *y = x;
    const int64_t count = x->n_values;
    bool moved = false;
    for (int64_t i = 0; i < count; i++) moved |= d[i] != 0;
    if (moved) {
        ortc_edge *in[2] = {x, ortc_match_integers(p, d, count)};
        if (!(y = ortc_match_apply(p, n, "Add", 2, in, x->type->dtype, 1, &count)))
            return ortc_no_memory(p->error, 0);
    }
    if (!ortc_edge_replace(n->out[0], y)) return ortc_no_memory(p->error, 0);
    ortc_node_remove(n);
    p->edits++;
    return ORTC_OK;
}

/* Whether n asks what is no NaN whether it is one, and its result has x's extents. */
static bool is_number(const ortc_node *n)
{
    const ortc_edge *x = n->in[2], *y = n->out[0];
    const ortc_node *asks = ortc_match_made(n->in[0], "IsNaN", 1);
    ortc_quantised q;
    if (!asks || !x || asks->in[0] != x || !ortc_read_dequantised(x, &q) || x->rank < 0 || x->rank != y->rank)
        return false;
    for (int32_t i = 0; i < x->rank; i++)
        if (x->dims[i] == ORTC_DIM_UNKNOWN || x->dims[i] != y->dims[i]) return false;
    for (int64_t i = 0; i < q.scale->count; i++)
        if (!(fabsf(ortc_scale_at(q.scale, i)) < 1e30f)) return false;
    return true;
}

ortc_status ortc_pass_decided_where(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first, *next; n; n = next) {
        int64_t d[64];
        next = n->next;
        if (!ortc_match_is(n, "Where") || n->n_in != 3 || !n->out[0]) continue;
        if (match(n, d)) {
            ORTC_TRY(replace(p, n, d));
        } else if (is_number(n)) {
            if (!ortc_edge_replace(n->out[0], n->in[2])) return ortc_no_memory(p->error, 0);
            ortc_node_remove(n);
            p->edits++;
        }
    }
    return ORTC_OK;
}
