/* graph/ir/verify.c: the invariants of graph.h, checked one by one, in time linear in the graph; after
 * loading, in tests, and in debug builds after every pass. */
#include "graph.h"

#define BROKEN(...) ortc_fail(error, ORTC_INTERNAL, __VA_ARGS__)

/* What the walk knows of an edge. */
typedef struct seen {
    bool defined;
    uint32_t reads; /* of it, by nodes and outputs: as many uses are listed */
} seen;

static ortc_status verify_node(const ortc_graph *g, const ortc_node *n, seen *edges, ortc_error *error)
{
    if (n->graph != g || n->api != &ortc_graph_node_api)
        return BROKEN("node '%s' does not belong to its graph", n->name);
    for (uint32_t i = 0; i < n->n_in; i++) {
        const ortc_edge *e = n->in[i];
        if (!e) continue;
        if (e->graph != g || e->id >= g->edges.count || g->edges.data[e->id] != e)
            return BROKEN("node '%s' input %u: an edge of another graph", n->name, i);
        if (!edges[e->id].defined)
            return BROKEN("node '%s' input %u: '%s' is read before it is made", n->name, i, e->name);
        edges[e->id].reads++;
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
        const ortc_edge *e = n->out[i];
        if (!e) continue;
        if (e->producer != n || e->producer_port != i)
            return BROKEN("node '%s' output %u: '%s' has another producer", n->name, i, e->name);
        if (edges[e->id].defined) return BROKEN("'%s' is made twice", e->name);
        edges[e->id].defined = true;
    }
    return ORTC_OK;
}

ortc_status ortc_graph_verify(const ortc_graph *g, ortc_error *error)
{
    seen *edges = calloc(g->edges.count + 1, sizeof *edges);
    if (!edges) return ortc_no_memory(error, g->edges.count * sizeof *edges);
    ortc_status s = ORTC_OK;
    for (size_t i = 0; i < g->edges.count; i++) {
        const ortc_edge *e = g->edges.data[i];
        edges[i].defined = e->input >= 0 || e->constant;
        if (e->producer && (e->input >= 0 || e->constant) && s == ORTC_OK)
            s = BROKEN("'%s' has a producer and is an input or a constant", e->name);
    }
    uint32_t count = 0;
    for (const ortc_node *n = g->first; n && s == ORTC_OK; n = n->next, count++)
        s = n->prev && n->prev->next != n ? BROKEN("node '%s': broken links", n->name)
                                          : verify_node(g, n, edges, error);
    if (s == ORTC_OK && count != g->n_nodes)
        s = BROKEN("the graph says %u nodes and has %u", g->n_nodes, count);
    for (uint32_t i = 0; i < g->n_outputs && s == ORTC_OK; i++) {
        edges[g->outputs[i].edge->id].reads++;
        if (!edges[g->outputs[i].edge->id].defined)
            s = BROKEN("output %u ('%s') is never made", i, g->outputs[i].name);
    }
    for (size_t i = 0; i < g->edges.count && s == ORTC_OK; i++) {
        const ortc_edge *e = g->edges.data[i];
        for (const ortc_use *u = e->uses; u && s == ORTC_OK; u = u->next, edges[i].reads--)
            if (u->node ? u->node->in[u->port] != e : g->outputs[u->port].edge != e)
                s = BROKEN("'%s' lists a use that is none", e->name);
        if (s == ORTC_OK && edges[i].reads)
            s = BROKEN("'%s' does not list as many uses as it has readers", e->name);
    }
    free(edges);
    return s;
}
