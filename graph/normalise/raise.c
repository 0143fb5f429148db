/* graph/normalise/raise.c: what passes that raise have in common: a node with a body in the place of a form
 * (match.h). */
#include "match.h"

ortc_status ortc_match_raise(ortc_normalise *p, const ortc_op *op, ortc_node *last, ortc_edge *const *in,
                             uint32_t n_in, ortc_node **out)
{
    ortc_edge *y = last->out[0];
    ortc_graph *body;

    *out = NULL;
    ORTC_TRY(ortc_body_collect(p->graph, in, n_in, y, &body, p->error));
    if (!body) return ORTC_OK;
    ortc_node *n = ortc_node_create(p->graph, op, last->name, n_in, 1);
    if (!n) return ortc_no_memory(p->error, 0);
    ortc_node_move_before(n, last);
    ortc_node_remove(last);
    for (uint32_t i = 0; i < n_in; i++)
        if (in[i] && !ortc_node_set_in(n, i, in[i])) return ortc_no_memory(p->error, 0);
    if (!ortc_node_set_out(n, 0, y)) /* the result keeps the name that the file gave it */
        return ortc_no_memory(p->error, 0);
    n->body = body;
    p->edits++;
    *out = n;
    return ORTC_OK;
}
