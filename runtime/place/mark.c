/* runtime/place/mark.c: what of a graph decides shapes, and what does nothing else (placed.h). */
#include "place.h"

bool ortc_is_host_only(const ortc_placed *p, const ortc_node *n)
{
    bool any = false;
    for (uint32_t i = 0; i < n->n_out; i++)
        if (n->out[i]) {
            if (n->out[i]->id >= p->n_marked || !p->shapes_only[n->out[i]->id]) return false;
            any = true;
        }
    return any;
}

ortc_status ortc_mark_shapes_only(ortc_placed *p, ortc_error *error)
{
    ortc_graph *g = p->graph;
    bool *only = p->shapes_only = ortc_arena_array(&g->arena, g->edges.count, sizeof *only);
    if (!only) return ortc_no_memory(error, g->edges.count);
    p->n_marked = g->edges.count;
    for (const ortc_node *n = g->last; n; n = n->prev)
        for (uint32_t i = 0; i < n->n_out; i++) {
            const ortc_edge *e = n->out[i];
            bool all = e && e->uses;
            for (const ortc_use *u = e ? e->uses : NULL; u && all; u = u->next) {
                const ortc_formal *f = u->node ? ortc_schema_in(ortc_op_schema(u->node->op), u->port) : NULL;
                all = u->node && ((f && (f->flags & ORTC_FORMAL_DECIDES)) || ortc_is_host_only(p, u->node));
            }
            if (e) only[e->id] = all;
        }
    return ORTC_OK;
}

/* Small values that dims alone make: Shape, and the arithmetic behind it. They are in the key by the dims of
 * its inputs. */
static bool follows_from_dims(const ortc_edge *e)
{
    for (int64_t i = 0; i < e->n_values && e->values; i++)
        if (e->values[i] == ORTC_DIM_UNKNOWN) return false;
    return e->values != NULL;
}

ortc_status ortc_mark_deciding(ortc_placed *p, ortc_error *error)
{
    ortc_graph *g = p->graph;
    bool *marked = p->deciding = ortc_arena_array(&g->arena, g->edges.count, sizeof *marked);
    p->decides = ortc_arena_array(&g->arena, g->n_inputs, sizeof *p->decides);
    if (!marked || !p->decides) return ortc_no_memory(error, g->edges.count);
    for (const ortc_node *n = g->last; n; n = n->prev) {
        const ortc_schema *schema = ortc_op_schema(n->op);
        bool all = false; /* what makes a deciding value is made of deciding values */
        for (uint32_t i = 0; i < n->n_out && !all; i++)
            all = n->out[i] && marked[n->out[i]->id] && !follows_from_dims(n->out[i]);
        for (uint32_t i = 0; i < n->n_in; i++) {
            const ortc_formal *f = ortc_schema_in(schema, i);
            if (n->in[i] && (all || (f && (f->flags & ORTC_FORMAL_DECIDES)))) marked[n->in[i]->id] = true;
        }
    }
    for (uint32_t i = 0; i < g->n_inputs; i++) p->decides[i] = marked[g->inputs[i].edge->id];
    return ORTC_OK;
}
