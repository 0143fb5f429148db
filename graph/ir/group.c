/* graph/ir/group.c: several nodes taken as one: a node of the operator `group` whose body they become
 * (graph.h).
 *
 * Constants of one element go into the body, so that whoever compiles it sees their bytes; everything else
 * that comes from outside is an input, in the order in which the nodes ask for it: larger constants lie in
 * the device's memory when the group runs. What is read outside is an output, in order.
 */
#include "graph.h"

const ortc_op ortc_op_group = {.size = sizeof(ortc_op),
                               .domain = "ortc",
                               .name = "Group",
                               .since = 1,
                               .form = 1,
                               .older = "",
                               .inputs = "inputs:V*~",
                               .outputs = "outputs:V*~",
                               .attributes = "",
                               .types = "V=all"};

typedef struct grouping {
    ortc_graph *graph, *body;
    const ortc_node *const *nodes;
    uint32_t n;
    bool *inside;                            /* by node id */
    ortc_edge **in_body;                     /* by edge id of the graph: its counterpart */
    ORTC_ARRAY(ortc_edge *) inputs, outputs; /* of the graph */
} grouping;

static bool is_inside(const grouping *g, const ortc_node *n) { return n && g->inside[n->id]; }

/* No path leaves the group and comes back: the nodes could not run as one. */
static bool is_convex(const grouping *g, bool *tainted)
{
    for (const ortc_node *n = g->graph->first; n; n = n->next) {
        bool after = false;
        for (uint32_t i = 0; i < n->n_in; i++) after |= n->in[i] && tainted[n->in[i]->id];
        if (after && is_inside(g, n)) return false;
        for (uint32_t i = 0; i < n->n_in && !after && !is_inside(g, n); i++)
            after = n->in[i] && is_inside(g, n->in[i]->producer);
        for (uint32_t i = 0; i < n->n_out && after; i++)
            if (n->out[i]) tainted[n->out[i]->id] = true;
    }
    return true;
}

static ortc_edge *copy_edge(ortc_graph *body, const ortc_edge *e)
{
    ortc_edge *c = ortc_edge_create(body, e->name);
    if (!c) return NULL;
    c->origin = e->origin ? e->origin : e->name;
    c->type = e->type;
    c->rank = e->rank;
    c->dims = e->dims;
    if (ortc_edge_is_const(e) && !ortc_edge_set_constant(c, ortc_constant_retain(e->constant))) return NULL;
    return c;
}

static bool copy_node(grouping *g, const ortc_node *n)
{
    ortc_node *c = ortc_node_create(g->body, n->op, n->name, n->n_in, n->n_out);
    if (!c) return false;
    c->version = n->version;
    c->attrs = n->attrs; /* borrowed: the body lives in the same root graph */
    c->n_attrs = n->n_attrs;
    c->epilogue = n->epilogue;
    c->body = n->body;
    for (uint32_t i = 0; i < n->n_in; i++) {
        ortc_edge *e = n->in[i];
        if (!e) continue;
        ortc_edge **there = &g->in_body[e->id];
        if (!*there) {
            if (!(*there = copy_edge(g->body, e))) return false;
            /* A constant of one element is only looked at; what is larger the kernel will want where its
             * device can read it. */
            if (!(ortc_edge_is_const(e) && e->constant->count == 1) &&
                (!ortc_graph_add_input(g->body, e->name, *there) || !ortc_array_push(&g->inputs, e)))
                return false;
        }
        if (!ortc_node_set_in(c, i, *there)) return false;
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
        ortc_edge *e = n->out[i];
        if (e &&
            (!(g->in_body[e->id] = copy_edge(g->body, e)) || !ortc_node_set_out(c, i, g->in_body[e->id])))
            return false;
    }
    return true;
}

static bool fill(grouping *g)
{
    for (const ortc_node *n = g->graph->first; n; n = n->next)
        if (is_inside(g, n) && !copy_node(g, n)) return false;
    for (const ortc_node *n = g->graph->first; n; n = n->next)
        for (uint32_t i = 0; is_inside(g, n) && i < n->n_out; i++) {
            ortc_edge *e = n->out[i];
            bool outside = false;
            for (const ortc_use *u = e ? e->uses : NULL; u; u = u->next) outside |= !is_inside(g, u->node);
            if (outside && (!ortc_graph_add_output(g->body, e->name, g->in_body[e->id]) ||
                            !ortc_array_push(&g->outputs, e)))
                return false;
        }
    return true;
}

/* The node goes where the last of the group is; what reads the group's results before that moves behind
 * it. */
static ortc_node *replace(grouping *g, const char *name)
{
    ortc_node *last = NULL, *node = ortc_node_create(g->graph, &ortc_op_group, name,
                                                     (uint32_t)g->inputs.count, (uint32_t)g->outputs.count);
    if (!node) return NULL;
    for (ortc_node *n = g->graph->first; n; n = n->next) last = is_inside(g, n) ? n : last;
    if (last->next != node) ortc_node_move_before(node, last->next);
    bool *late = calloc(g->graph->edges.count + 1, sizeof *late);
    bool ok = late != NULL;
    ortc_node *behind = node->next; /* what is moved keeps its order, right behind the node */
    for (ortc_node *n = g->graph->first, *next; ok && n != node; n = next) {
        next = n->next;
        bool after = is_inside(g, n);
        for (uint32_t i = 0; i < n->n_in && !after; i++) after = n->in[i] && late[n->in[i]->id];
        for (uint32_t i = 0; i < n->n_out && after; i++)
            if (n->out[i]) late[n->out[i]->id] = true;
        if (after && !is_inside(g, n)) ortc_node_move_before(n, behind);
    }
    free(late);
    for (uint32_t i = 0; ok && i < g->inputs.count; i++) ok = ortc_node_set_in(node, i, g->inputs.data[i]);
    for (uint32_t i = 0; ok && i < g->outputs.count; i++) {
        ortc_edge *e = g->outputs.data[i];
        ok = ortc_node_set_out(e->producer, e->producer_port, NULL) && ortc_node_set_out(node, i, e);
    }
    for (ortc_node *n = g->graph->last, *before; ok && n; n = before) {
        before = n->prev;
        if (is_inside(g, n)) ortc_node_remove(n);
    }
    node->body = g->body;
    return ok ? node : NULL;
}

static void end(grouping *g)
{
    free(g->inside);
    free(g->in_body);
    ortc_array_deinit(&g->inputs);
    ortc_array_deinit(&g->outputs);
}

ortc_status ortc_graph_group(ortc_graph *graph, const ortc_node *const *nodes, uint32_t n, const char *name,
                             ortc_status (*accept)(void *arg, const ortc_graph *body), void *arg,
                             ortc_node **out, ortc_error *error)
{
    grouping g = {.graph = graph, .nodes = nodes, .n = n};
    bool *tainted = calloc(graph->edges.count + 1, sizeof *tainted);
    ortc_status s = ORTC_OK;
    *out = NULL;
    g.inside = calloc(graph->next_node + 1u, sizeof *g.inside);
    g.in_body = calloc(graph->edges.count + 1, sizeof *g.in_body);
    g.body = g.inside && g.in_body && tainted ? ortc_graph_create(graph) : NULL;
    if (!g.body) s = ortc_no_memory(error, graph->edges.count * sizeof *g.in_body);
    for (uint32_t i = 0; i < n && s == ORTC_OK; i++) {
        if (nodes[i]->graph != graph || nodes[i]->n_captures)
            s = ortc_fail(error, ORTC_UNSUPPORTED, "node '%s' (%s) cannot be in a group", nodes[i]->name,
                          nodes[i]->type);
        g.inside[nodes[i]->id] = true;
    }
    if (s == ORTC_OK && !is_convex(&g, tainted))
        s = ortc_fail(error, ORTC_UNSUPPORTED, "a path leaves the group of node '%s' and comes back into it",
                      n ? nodes[0]->name : "");
    free(tainted);
    if (s == ORTC_OK && !fill(&g)) s = ortc_no_memory(error, 0);
    if (s == ORTC_OK) s = accept(arg, g.body);
    if (s == ORTC_OK && !(*out = replace(&g, name))) s = ortc_no_memory(error, 0);
    end(&g);
    return s;
}
