/* graph/ir/verify.c: the invariants of graph.h, checked one by one; for tests and for debug builds after
 * every pass. */
#include "graph.h"

#define BROKEN(...) ortc_fail(error, ORTC_INTERNAL, __VA_ARGS__)

static bool has_use(const ortc_edge *e, const ortc_node *node, uint32_t port)
{
    for (const ortc_use *u = e->uses; u; u = u->next)
        if (u->node == node && u->port == port) return true;
    return false;
}

static ortc_status verify_node(const ortc_graph *g, const ortc_node *n, uint8_t *defined, ortc_error *error)
{
    if (n->graph != g || n->api != &ortc_graph_node_api)
        return BROKEN("node '%s' does not belong to its graph", n->name);
    for (uint32_t i = 0; i < n->n_in; i++) {
        const ortc_edge *e = n->in[i];
        if (!e) continue;
        if (e->graph != g || e->id >= g->edges.count || g->edges.data[e->id] != e)
            return BROKEN("node '%s' input %u: an edge of another graph", n->name, i);
        if (!defined[e->id])
            return BROKEN("node '%s' input %u: '%s' is read before it is made", n->name, i, e->name);
        if (!has_use(e, n, i))
            return BROKEN("node '%s' input %u: '%s' does not list this use", n->name, i, e->name);
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
        const ortc_edge *e = n->out[i];
        if (!e) continue;
        if (e->producer != n || e->producer_port != i)
            return BROKEN("node '%s' output %u: '%s' has another producer", n->name, i, e->name);
        if (defined[e->id]) return BROKEN("'%s' is made twice", e->name);
        defined[e->id] = 1;
    }
    return ORTC_OK;
}

ortc_status ortc_graph_verify(const ortc_graph *g, ortc_error *error)
{
    uint8_t *defined = calloc(g->edges.count + 1, 1);
    if (!defined) return ortc_no_memory(error, g->edges.count);
    ortc_status s = ORTC_OK;
    for (size_t i = 0; i < g->edges.count; i++) {
        const ortc_edge *e = g->edges.data[i];
        defined[i] = e->input >= 0 || e->constant;
        if (e->producer && (e->input >= 0 || e->constant) && s == ORTC_OK)
            s = BROKEN("'%s' has a producer and is an input or a constant", e->name);
    }
    uint32_t count = 0;
    for (const ortc_node *n = g->first; n && s == ORTC_OK; n = n->next, count++)
        s = n->prev && n->prev->next != n ? BROKEN("node '%s': broken links", n->name)
                                          : verify_node(g, n, defined, error);
    if (s == ORTC_OK && count != g->n_nodes)
        s = BROKEN("the graph says %u nodes and has %u", g->n_nodes, count);
    for (uint32_t i = 0; i < g->n_outputs && s == ORTC_OK; i++)
        if (!defined[g->outputs[i].edge->id] || !has_use(g->outputs[i].edge, NULL, i))
            s = BROKEN("output %u ('%s') is never made or does not list its use", i, g->outputs[i].name);
    for (size_t i = 0; i < g->edges.count && s == ORTC_OK; i++)
        for (const ortc_use *u = g->edges.data[i]->uses; u && s == ORTC_OK; u = u->next)
            if (u->node ? u->node->in[u->port] != g->edges.data[i]
                        : g->outputs[u->port].edge != g->edges.data[i])
                s = BROKEN("'%s' lists a use that is none", g->edges.data[i]->name);
    free(defined);
    return s;
}
