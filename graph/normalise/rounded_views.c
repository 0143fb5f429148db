/* graph/normalise/rounded_views.c: views of a value that is rounded to 8 bits and back between them
 * (rounded.h) stand beside each other, where other passes see them:
 *
 *   Transpose(rounded(Reshape(x)))  =  Transpose(Reshape(rounded(x)))
 *
 * Either may be a Transpose or a Reshape. What others read, too, stays.
 */
#include "rounded.h"

static bool is_view(const ortc_node *n)
{
    return (ortc_match_is(n, "Transpose") || ortc_match_is(n, "Reshape")) && n->n_out == 1 && n->in[0];
}

static ortc_status move(ortc_normalise *p, ortc_node *n)
{
    ortc_rounded r;
    ortc_edge *e = ortc_match_unrounded(n->in[0], true, &r);
    const ortc_node *view = r.quantise ? e->producer : NULL;
    if (!is_view(view) || ortc_edge_n_uses(e) != 1) return ORTC_OK;
    ortc_edge *in[2] = {ortc_match_round(p, n, &r, view->in[0]), view->n_in > 1 ? view->in[1] : NULL};
    ortc_edge *y = ortc_match_apply(p, n, view->type, view->n_in, in, e->type->dtype, e->rank, e->dims);
    if (!y || !ortc_node_copy_attrs(y->producer, view) || !ortc_node_set_in(n, 0, y))
        return ortc_no_memory(p->error, 0);
    y->producer->name = view->name;
    p->edits++; /* what was there, without readers, is left to dead-nodes */
    return ORTC_OK;
}

ortc_status ortc_pass_rounded_views(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->first; n; n = n->next)
        if (is_view(n)) ORTC_TRY(move(p, n));
    return ORTC_OK;
}
