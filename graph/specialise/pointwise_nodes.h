/* graph/specialise/pointwise_nodes.h: sets of pointwise nodes that can become one: what groups and epilogues
 * are made of. A set has one result; every other value in it has the result's shape and is read nowhere else.
 */
#ifndef ORTC_POINTWISE_NODES_H
#define ORTC_POINTWISE_NODES_H

#include "graph/ir/graph.h"

enum { ORTC_POINTWISE_MOST = 32 }; /* nodes of a set */

/* Whether the node has a program and may be swallowed: not where a shape is computed, which is wanted while
 * planning. */
bool ortc_pointwise_fits(const ortc_node *);
/* Both known, and provably equal. */
bool ortc_same_shape(const ortc_edge *, const ortc_edge *);
bool ortc_is_one_of(const ortc_node *, ortc_node *const *nodes, uint32_t n);
/* Whether all who read the edge are among the nodes. */
bool ortc_read_inside(const ortc_edge *, ortc_node *const *nodes, uint32_t n);
/* From `sink` backwards until nothing more that `may` come can; nodes[0] is the sink, the rest in no order.
 */
uint32_t ortc_pointwise_grow(ortc_node *sink, bool (*may)(const void *arg, const ortc_node *),
                             const void *arg, ortc_node **nodes);

#endif
