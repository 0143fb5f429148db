/* tools/ortc/view.h: graphs as drawings: nodes in layers, values as curves between them.
 *
 * The layout is the usual one in layers (Sugiyama, Tagawa and Toda 1981): each node one layer below the last
 * of those that it reads, the order within layers by the mean place of neighbours, places by least squares
 * under the order. All is linear in nodes and edges but for sorting.
 */
#ifndef VIEW_H
#define VIEW_H

#include "cli.h"

enum { VIEW_HEIGHT = 40 }; /* of a node, in pixels */

typedef struct view_node {
    char *name, *op, *provider, *kernel, *fused, *reasons; /* what it is no node of: "" */
    enum { VIEW_NODE, VIEW_INPUT, VIEW_OUTPUT } kind;
    double width; /* given */
    double x, y;  /* of the middle; set by the layout */
    uint32_t layer;
} view_node;

typedef struct view_edge {
    uint32_t from, to;
    char *name;
    /* the points between the two nodes that the curve goes through; set by the layout */
    double *bends; /* x of each layer between; y follows from the layer */
    uint32_t n_bends;
} view_edge;

typedef struct view_graph {
    view_node *nodes; /* those that are read stand before those that read */
    uint32_t n_nodes;
    view_edge *edges;
    uint32_t n_edges;
    double width, height; /* set by the layout */
} view_graph;

void view_layout(view_graph *);
double view_layer_y(uint32_t layer);
void view_free(view_graph *);

#endif
