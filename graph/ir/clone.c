/* graph/ir/clone.c: copies of graphs. Constants are shared; strings, types and attributes' data are
 * borrowed. */
#include "graph.h"

static ortc_status clone_into(const ortc_graph *from, ortc_graph *to, ortc_error *error);

ortc_graph *ortc_graph_clone_child(const ortc_graph *from, ortc_graph *parent, ortc_error *error)
{
    ortc_graph *g = ortc_graph_create(parent);
    return g && clone_into(from, g, error) == ORTC_OK ? g : NULL;
}

static bool clone_attrs(const ortc_node *from, ortc_node *to, ortc_error *error)
{
    to->attrs = ortc_arena_array(&to->graph->arena, from->n_attrs, sizeof *to->attrs);
    if (!to->attrs) return false;
    to->n_attrs = from->n_attrs;
    for (uint32_t i = 0; i < from->n_attrs; i++) {
        ortc_attribute *a = &to->attrs[i];
        *a = from->attrs[i];
        if (a->value.kind != ORTC_ATTR_GRAPH && a->value.kind != ORTC_ATTR_GRAPHS) continue;
        const ortc_graph **list = ortc_arena_array(&to->graph->arena, a->value.count, sizeof *list);
        if (!list) return false;
        for (size_t k = 0; k < a->value.count; k++)
            if (!(list[k] = ortc_graph_clone_child(a->value.u.graphs[k], to->graph, error))) return false;
        a->value.u.graphs = list;
    }
    return true;
}

static bool clone_node(const ortc_node *from, ortc_graph *g, ortc_edge **edges, ortc_error *error)
{
    ortc_node *n = ortc_arena_alloc(&g->arena, sizeof *n);
    if (!n) return false;
    *n = *from;
    n->mark = 0; /* the new graph counts its marks from 0 */
    n->graph = g;
    n->prev = g->last;
    n->next = NULL;
    n->in = ortc_arena_array(&g->arena, from->n_in, sizeof *n->in);
    n->uses = ortc_arena_array(&g->arena, from->n_in, sizeof *n->uses);
    n->out = ortc_arena_array(&g->arena, from->n_out ? from->n_out : 1, sizeof *n->out);
    if (!n->in || !n->uses || !n->out) return false;
    *(g->last ? &g->last->next : &g->first) = n;
    g->last = n;
    for (uint32_t i = 0; i < from->n_in; i++)
        if (from->in[i] && !ortc_node_set_in(n, i, edges[from->in[i]->id])) return false;
    for (uint32_t i = 0; i < from->n_out; i++)
        if (from->out[i] && !ortc_node_set_out(n, i, edges[from->out[i]->id])) return false;
    if (from->body && !(n->body = ortc_graph_clone_child(from->body, g, error))) return false;
    return clone_attrs(from, n, error);
}

static ortc_status clone_into(const ortc_graph *from, ortc_graph *g, ortc_error *error)
{
    g->name = from->name;
    for (size_t i = 0; i < from->edges.count; i++) {
        const ortc_edge *e = from->edges.data[i];
        ortc_edge *copy = ortc_arena_alloc(&g->arena, sizeof *copy);
        if (!copy || !ortc_array_push(&g->edges, copy)) return ortc_no_memory(error, sizeof *copy);
        *copy = *e;
        copy->mark = copy->twin_mark = 0;
        copy->twin = NULL;
        copy->graph = g;
        copy->producer = NULL;
        copy->uses = NULL;
        ortc_constant_retain(copy->constant);
    }
    for (const ortc_node *n = from->first; n; n = n->next)
        if (!clone_node(n, g, g->edges.data, error)) return ortc_no_memory(error, sizeof *n);
    g->n_nodes = from->n_nodes;
    g->next_node = from->next_node;
    for (uint32_t i = 0; i < from->n_inputs; i++) {
        if (!ortc_graph_add_input(g, from->inputs[i].name, g->edges.data[from->inputs[i].edge->id]))
            return ortc_no_memory(error, 0);
        g->inputs[i].doc = from->inputs[i].doc;
    }
    for (uint32_t i = 0; i < from->n_outputs; i++) {
        if (!ortc_graph_add_output(g, from->outputs[i].name, g->edges.data[from->outputs[i].edge->id]))
            return ortc_no_memory(error, 0);
        g->outputs[i].doc = from->outputs[i].doc;
    }
    return ORTC_OK;
}

ortc_status ortc_graph_clone(const ortc_graph *from, ortc_graph **out, ortc_error *error)
{
    *out = NULL;
    ortc_graph *g = ortc_graph_create(NULL);
    if (!g || !ortc_dims_copy(from->dims, g->dims)) {
        ortc_graph_destroy(g);
        return ortc_no_memory(error, sizeof *g);
    }
    ortc_status s = clone_into(from, g, error);
    if (s != ORTC_OK) {
        ortc_graph_destroy(g);
        return s;
    }
    *out = g;
    return ORTC_OK;
}
