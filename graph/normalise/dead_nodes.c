/* graph/normalise/dead_nodes.c: nodes whose outputs nobody reads go, and with them what only they read,
 * constants too. */
#include "normalise.h"

ortc_status ortc_pass_dead_nodes(ortc_normalise *p)
{
    for (ortc_node *n = p->graph->last, *before; n;
         n = before) { /* backwards: one sweep takes whole chains */
        before = n->prev;
        bool used = n->op && (n->op->flags & ORTC_OP_STATE);
        for (uint32_t i = 0; i < n->n_out && !used; i++) used = n->out[i] && n->out[i]->uses;
        if (used) continue;
        ortc_node_remove(n);
        p->edits++;
    }
    for (size_t i = 0; i < p->graph->edges.count; i++) {
        ortc_edge *e = p->graph->edges.data[i];
        if (e->constant && !e->uses && e->input < 0) {
            ortc_constant_release(e->constant);
            e->constant = NULL;
        }
    }
    return ORTC_OK;
}
