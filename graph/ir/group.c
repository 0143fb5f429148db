/* graph/ir/group.c: several nodes taken as one: a node of the operator `group` whose body they become
 * (graph.h).
 *
 * Constants of one element go into the body, so that whoever compiles it sees their bytes; everything else
 * that comes from outside is an input, in the order in which the nodes ask for it: larger constants lie in
 * the device's memory when the group runs. What is read outside is an output, in order.
 *
 * Groups are proposed by the thousand, most of them in vain: what is done for one follows from the nodes of
 * the list from its first to its last, not from the graph.
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
    ortc_node *first, *last; /* of the group, in the list */
    uint32_t mark;           /* of nodes inside, of edges that a way around the group reaches */
    ORTC_ARRAY(ortc_edge *) inputs, outputs; /* of the graph */
} grouping;

static bool is_inside(const grouping *g, const ortc_node *n) { return n && n->mark == g->mark; }

/* The group's first and last in the list, looked for to both sides of one of it. */
static void find_ends(grouping *g)
{
    ortc_node *before = (ortc_node *)(uintptr_t)g->nodes[0], *after = before;
    g->first = g->last = before;
    for (uint32_t missing = g->n - 1; missing && (before || after);) {
        if (before && (before = before->prev) && is_inside(g, before)) g->first = before, missing--;
        if (after && (after = after->next) && is_inside(g, after)) g->last = after, missing--;
    }
}

/* Whether a node reads what comes of the group by a way outside of it; what it makes then does, too. */
static bool is_reached(grouping *g, const ortc_node *n)
{
    bool after = false;
    for (uint32_t i = 0; i < n->n_in && !after; i++)
        after = n->in[i] &&
                (n->in[i]->mark == g->mark || (!is_inside(g, n) && is_inside(g, n->in[i]->producer)));
    for (uint32_t i = 0; i < n->n_out && after; i++)
        if (n->out[i]) n->out[i]->mark = g->mark;
    return after;
}

/* No path leaves the group and comes back: the nodes could not run as one. */
static bool is_convex(grouping *g)
{
    for (const ortc_node *n = g->first; n != g->last->next; n = n->next)
        if (is_reached(g, n) && is_inside(g, n)) return false;
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

static bool put_twin(const grouping *g, ortc_edge *e)
{
    e->twin = copy_edge(g->body, e);
    e->twin_mark = g->mark;
    return e->twin != NULL;
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
        if (e->twin_mark != g->mark) {
            if (!put_twin(g, e)) return false;
            /* A constant of one element is only looked at; what is larger the kernel will want where its
             * device can read it. */
            if (!(ortc_edge_is_const(e) && e->constant->count == 1) &&
                (!ortc_graph_add_input(g->body, e->name, e->twin) || !ortc_array_push(&g->inputs, e)))
                return false;
        }
        if (!ortc_node_set_in(c, i, e->twin)) return false;
    }
    for (uint32_t i = 0; i < n->n_out; i++) {
        ortc_edge *e = n->out[i];
        if (e && (!put_twin(g, e) || !ortc_node_set_out(c, i, e->twin))) return false;
    }
    return true;
}

static bool fill(grouping *g)
{
    for (const ortc_node *n = g->first; n != g->last->next; n = n->next)
        if (is_inside(g, n) && !copy_node(g, n)) return false;
    for (const ortc_node *n = g->first; n != g->last->next; n = n->next)
        for (uint32_t i = 0; is_inside(g, n) && i < n->n_out; i++) {
            ortc_edge *e = n->out[i];
            bool outside = false;
            for (const ortc_use *u = e ? e->uses : NULL; u; u = u->next) outside |= !is_inside(g, u->node);
            if (outside &&
                (!ortc_graph_add_output(g->body, e->name, e->twin) || !ortc_array_push(&g->outputs, e)))
                return false;
        }
    return true;
}

/* The node goes where the last of the group is; what reads the group's results before that moves behind
 * it. */
static ortc_node *replace(grouping *g, const char *name)
{
    ortc_node *node = ortc_node_create(g->graph, &ortc_op_group, name, (uint32_t)g->inputs.count,
                                       (uint32_t)g->outputs.count);
    bool ok = node != NULL;
    if (!ok) return NULL;
    if (g->last->next != node) ortc_node_move_before(node, g->last->next);
    ortc_node *behind = node->next; /* what is moved keeps its order, right behind the node */
    for (ortc_node *n = g->first, *next; n != node; n = next) {
        next = n->next;
        if (!is_inside(g, n) && is_reached(g, n)) ortc_node_move_before(n, behind);
    }
    for (uint32_t i = 0; ok && i < g->inputs.count; i++) ok = ortc_node_set_in(node, i, g->inputs.data[i]);
    for (uint32_t i = 0; ok && i < g->outputs.count; i++) {
        ortc_edge *e = g->outputs.data[i];
        ok = ortc_node_set_out(e->producer, e->producer_port, NULL) && ortc_node_set_out(node, i, e);
    }
    for (ortc_node *n = node->prev, *before; ok && n; n = before) {
        before = n == g->first ? NULL : n->prev;
        if (is_inside(g, n)) ortc_node_remove(n);
    }
    node->body = g->body;
    return ok ? node : NULL;
}

/* A body that nobody took would stay to the end of the graph. */
static void drop_body(grouping *g)
{
    if (!g->body || g->graph->children.data[g->graph->children.count - 1] != g->body) return;
    g->graph->children.count--;
    ortc_graph_destroy(g->body);
}

ortc_status ortc_graph_group(ortc_graph *graph, const ortc_node *const *nodes, uint32_t n, const char *name,
                             ortc_status (*accept)(void *arg, const ortc_graph *body), void *arg,
                             ortc_node **out, ortc_error *error)
{
    grouping g = {.graph = graph, .nodes = nodes, .mark = ++graph->mark};
    ortc_status s = ORTC_OK;
    *out = NULL;
    for (uint32_t i = 0; i < n; i++) {
        ortc_node *inside = (ortc_node *)(uintptr_t)nodes[i];
        if (inside->graph != graph || inside->n_captures)
            return ortc_fail(error, ORTC_UNSUPPORTED, "node '%s' (%s) cannot be in a group", inside->name,
                             inside->type);
        g.n += inside->mark != g.mark;
        inside->mark = g.mark;
    }
    if (!n) return ortc_fail(error, ORTC_UNSUPPORTED, "a group of no nodes");
    find_ends(&g);
    if (!is_convex(&g))
        return ortc_fail(error, ORTC_UNSUPPORTED,
                         "a path leaves the group of node '%s' and comes back into it", nodes[0]->name);
    g.body = ortc_graph_create(graph);
    if (!g.body || !fill(&g)) s = ortc_no_memory(error, 0);
    if (s == ORTC_OK) s = accept(arg, g.body);
    if (s != ORTC_OK)
        drop_body(&g);
    else if (!(*out = replace(&g, name)))
        s = ortc_no_memory(error, 0);
    ortc_array_deinit(&g.inputs);
    ortc_array_deinit(&g.outputs);
    return s;
}
