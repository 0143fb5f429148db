/* graph/normalise/gather_first.c: rows of a table are gathered before they are dequantised, as embeddings of
 * quantised networks have it:
 *
 *   Gather(DequantizeLinear(W, s, z), i)  =  DequantizeLinear(Gather(W, i), s, z)
 *
 * for a constant W of 8 bits (the standard's Gather takes none of fewer) with one scale, or scales along
 * another axis than the one that is gathered along; of scales for each block of another axis, s and z are
 * gathered, too. At each run all of W would become numbers otherwise, of which few are read.
 */
#include "graph/ir/quantised.h"
#include "match.h"

/* The DequantizeLinear in front of n, if it is of a constant. */
static ortc_node *dequantised(const ortc_node *n)
{
    ortc_node *d = ortc_match_is(n, "Gather") && n->n_in == 2 && n->in[1]
                       ? ortc_match_made(n->in[0], "DequantizeLinear", 2)
                       : NULL;
    if (!d || !ortc_is_bytes(d->in[0]) || !ortc_edge_is_const(d->in[0]) || !ortc_edge_is_const(d->in[1]))
        return NULL;
    const ortc_edge *zero = ortc_node_in_edge(d, 2);
    return !zero || ortc_edge_is_const(zero) ? d : NULL;
}

/* A Gather of a constant as n's. */
static ortc_edge *gathered(ortc_normalise *p, ortc_node *n, ortc_edge *table, int64_t axis)
{
    ortc_edge *y = ortc_match_apply(p, n, "Gather", 2, (ortc_edge *[]){table, n->in[1]}, 0, 0, NULL);
    return y && ortc_match_set_int(y->producer, "axis", axis) ? y : NULL;
}

static ortc_status rewrite(ortc_normalise *p, ortc_node *n, ortc_node *d)
{
    const int32_t rank = d->in[0]->rank, more = n->in[1]->rank - 1;
    const int64_t block = ortc_node_int(d, "block_size", 0);
    int64_t axis = ortc_node_int(n, "axis", 0), along = ortc_node_int(d, "axis", 1);
    const bool one = d->in[1]->constant->count == 1 && !block;
    if (rank < 1 || n->in[1]->rank < 0) return ORTC_OK;
    axis += axis < 0 ? rank : 0;
    along += along < 0 ? rank : 0;
    if (axis < 0 || axis >= rank || (!one && (along < 0 || along >= rank || along == axis))) return ORTC_OK;
    ortc_edge *in[3] = {gathered(p, n, d->in[0], axis), d->in[1], ortc_node_in_edge(d, 2)};
    for (int i = 1; block && i < 3; i++)
        if (in[i] && !(in[i] = gathered(p, n, in[i], axis))) return ortc_no_memory(p->error, 0);
    ortc_node *own = ortc_node_create(p->graph, d->op, NULL, d->n_in, 1);
    ortc_edge *y = n->out[0];
    if (!in[0] || !own) return ortc_no_memory(p->error, 0);
    for (uint32_t i = 0; i < d->n_in && i < 3; i++)
        if (in[i] && !ortc_node_set_in(own, i, in[i])) return ortc_no_memory(p->error, 0);
    if (!one && !ortc_match_set_int(own, "axis", along + (along > axis ? more : 0)))
        return ortc_no_memory(p->error, 0);
    if (block && !ortc_match_set_int(own, "block_size", block)) return ortc_no_memory(p->error, 0);
    const int64_t type = ortc_node_int(d, "output_dtype", 0);
    if (type && !ortc_match_set_int(own, "output_dtype", type)) return ortc_no_memory(p->error, 0);
    ortc_node_move_before(own, n);
    y->producer = NULL;
    n->out[0] = NULL;
    if (!ortc_node_set_out(own, 0, y)) return ortc_no_memory(p->error, 0);
    ortc_node_remove(n);
    p->edits++;
    return ORTC_OK;
}

ortc_status ortc_pass_gather_first(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first, *next; n; n = next) {
        next = n->next;
        ortc_node *d = dequantised(n);
        if (d) ORTC_TRY(rewrite(p, n, d));
    }
    return ORTC_OK;
}
