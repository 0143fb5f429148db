/* graph/ir/body.h: bodies: the subgraph that a node stands for (ortc_node.body), its ports by position.
 *
 * Raised nodes (an operator in the place of what an exporter had decomposed it into) and fused ones (with an
 * epilogue) have one. It is what the node means, how it is run where no provider has a kernel for the node,
 * and how it is written where the node's operator is newer than the file may be. Nodes in a body may have
 * bodies of their own.
 */
#ifndef ORTC_BODY_H
#define ORTC_BODY_H

#include "graph.h"

/* A node whose operator alone says all that its body says. */
static inline bool ortc_node_is_raised(const ortc_node *n)
{
    return n->body && n->op && n->op != &ortc_op_group && !n->epilogue;
}

/* What makes `y` of the edges `in` (NULL: a port left out), as a body with these inputs and one output.
 * Constants that are no inputs come along. *out NULL: there is none, because something else is read that is
 * not a constant, or because of a node that must run once (random, with a state or with subgraphs). Owned by
 * the graph. */
ortc_status ortc_body_collect(ortc_graph *, ortc_edge *const *in, uint32_t n_in, ortc_edge *y,
                              ortc_graph **out, ortc_error *);

/* Copies the nodes of a child graph to where `before` stands, its inputs and outputs being these edges by
 * position (NULL: left out). UNSUPPORTED: an output is an input or a constant directly. */
ortc_status ortc_graph_inline(const ortc_graph *, ortc_edge *const *in, uint32_t n_in, ortc_edge *const *out,
                              uint32_t n_out, ortc_node *before, ortc_node **out_first, ortc_error *);

/* Puts the nodes of the body in the place of the node, which is removed; *first gets the first of them (NULL:
 * not wanted). Shapes of the new edges are those that the body had; infer again where symbols have become
 * numbers since. */
ortc_status ortc_node_expand(ortc_node *, ortc_node **first, ortc_error *);

#endif
