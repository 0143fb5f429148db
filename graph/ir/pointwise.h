/* graph/ir/pointwise.h: pointwise programs (ortc/program.h) of nodes, and of graphs of them. */
#ifndef ORTC_GRAPH_POINTWISE_H
#define ORTC_GRAPH_POINTWISE_H

#include "graph.h"
#include "ortc/program.h"

/* The program of a node whose operator expands, its inputs numbered as its ports; constants of one
 * element are in it. NULL: it has none, its types are not known, or memory is short. Lives as long as the
 * node's graph. Not for several threads at a time: it is for placing and preparing. */
const ortc_pointwise *ortc_pointwise_of(const ortc_node *);

/* The same of a body with one output, all nodes of which have programs: inputs numbered as the body's. */
const ortc_pointwise *ortc_pointwise_of_body(ortc_graph *body);

/* The same of `nodes`, in order, behind `result`, which is input 0 as it is summed up (ortc_node_epilogue);
 * the last makes what is stored. Other edges are inputs by their places in `ports` (NULL: nobody's). Lives as
 * long as the graph. */
const ortc_pointwise *ortc_pointwise_behind(const ortc_edge *result, ortc_node *const *nodes,
                                            uint32_t n_nodes, ortc_edge *const *ports, uint32_t n_ports);

#endif
