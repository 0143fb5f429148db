/* graph/normalise/rounded.c: values that are rounded to 8 bits and back (rounded.h). */
#include "rounded.h"

static bool is_one(const ortc_edge *e) { return e && ortc_edge_is_const(e) && e->constant->count == 1; }

/* QuantizeLinear or DequantizeLinear by one scale, and its zero point. */
static bool is_by_one(const ortc_node *n)
{
    const ortc_edge *zero = ortc_node_in_edge(n, 2);
    return is_one(ortc_node_in_edge(n, 1)) && (!zero || is_one(zero)) && !ortc_node_int(n, "block_size", 0);
}

ortc_edge *ortc_match_unrounded(ortc_edge *e, bool ends, ortc_rounded *out)
{
    *out = (ortc_rounded){NULL, NULL};
    const ortc_node *d = ortc_match_made(e, "DequantizeLinear", 2);
    if (!d || (ends && ortc_edge_n_uses(e) != 1) || ortc_edge_n_uses(d->in[0]) != 1) return e;
    const ortc_node *q = ortc_match_made(d->in[0], "QuantizeLinear", 2);
    if (!q || !is_by_one(d) || !is_by_one(q) || !ortc_type_equal(q->in[0]->type, e->type)) return e;
    *out = (ortc_rounded){q, d};
    return q->in[0];
}

static ortc_edge *same(ortc_normalise *p, ortc_node *before, const ortc_node *of, ortc_edge *x)
{
    ortc_node *n = ortc_node_create(p->graph, of->op, NULL, of->n_in, 1);
    ortc_edge *y = n ? ortc_edge_create(p->graph, NULL) : NULL;
    if (!y || !ortc_edge_set_shape(y, of->out[0]->type, x->rank, x->dims) || !ortc_node_set_out(n, 0, y) ||
        !ortc_node_set_in(n, 0, x))
        return NULL;
    for (uint32_t i = 1; i < of->n_in; i++)
        if (of->in[i] && !ortc_node_set_in(n, i, of->in[i])) return NULL;
    if (!ortc_node_copy_attrs(n, of)) return NULL;
    ortc_node_drop_attr(n, "axis"); /* of one scale, and of another rank */
    ortc_node_move_before(n, before);
    return y;
}

ortc_edge *ortc_match_round(ortc_normalise *p, ortc_node *before, const ortc_rounded *r, ortc_edge *x)
{
    if (!r->quantise) return x;
    ortc_edge *narrow = same(p, before, r->quantise, x);
    return narrow ? same(p, before, r->dequantise, narrow) : NULL;
}
