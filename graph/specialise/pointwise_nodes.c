/* graph/specialise/pointwise_nodes.c: growing sets of pointwise nodes (pointwise_nodes.h). */
#include "pointwise_nodes.h"

#include "graph/ir/body.h"
#include "graph/ir/pointwise.h"

/* The elements are known at load, or a shape is read from them: cheap, and better seen as nodes. */
static bool is_about_shapes(const ortc_edge *e)
{
    if (e->values) return true;
    for (const ortc_use *u = e->uses; u; u = u->next) {
        const ortc_formal *f = u->node && u->node->op ? ortc_schema_in(ortc_op_schema(u->node->op), u->port)
                                                      : NULL;
        if (f && (f->flags & ORTC_FORMAL_DECIDES)) return true;
    }
    return false;
}

bool ortc_pointwise_fits(const ortc_node *n)
{
    const ortc_edge *y = n->n_out == 1 ? n->out[0] : NULL;
    return y && y->rank >= 0 && !n->n_captures && !n->epilogue && (!n->body || ortc_node_is_raised(n)) &&
           !is_about_shapes(y) && ortc_pointwise_of(n) != NULL;
}

bool ortc_same_shape(const ortc_edge *a, const ortc_edge *b)
{
    if (a->rank < 0 || a->rank != b->rank) return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i]) return false;
    return true;
}

bool ortc_is_one_of(const ortc_node *what, ortc_node *const *nodes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (nodes[i] == what) return true;
    return false;
}

bool ortc_read_inside(const ortc_edge *e, ortc_node *const *nodes, uint32_t n)
{
    for (const ortc_use *u = e->uses; u; u = u->next)
        if (!u->node || !ortc_is_one_of(u->node, nodes, n)) return false;
    return true;
}

uint32_t ortc_pointwise_grow(ortc_node *sink, bool (*may)(const void *arg, const ortc_node *),
                             const void *arg, ortc_node **nodes)
{
    uint32_t n = 0;
    nodes[n++] = sink;
    for (uint32_t before = 0; before != n;) {
        before = n;
        for (uint32_t k = 0; k < n; k++)
            for (uint32_t i = 0; i < nodes[k]->n_in && n < ORTC_POINTWISE_MOST; i++) {
                const ortc_edge *e = nodes[k]->in[i];
                ortc_node *from = e ? e->producer : NULL;
                if (from && !ortc_is_one_of(from, nodes, n) && ortc_same_shape(e, sink->out[0]) &&
                    ortc_read_inside(e, nodes, n) && may(arg, from))
                    nodes[n++] = from;
            }
    }
    return n;
}
