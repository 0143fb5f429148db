/* kernels/gemm/siblings.h: where the nodes of a group of products of one A
 * (graph/specialise/sibling_products.c) have their inputs and results, for the kernels that take such groups.
 */
#ifndef ORTC_KERNELS_GEMM_SIBLINGS_H
#define ORTC_KERNELS_GEMM_SIBLINGS_H

#include "ortc/op.h"
#include "ortc/program.h"

enum { ORTC_SIBLING_PORTS = ORTC_PW_INPUTS };

typedef struct ortc_sibling {
    uint32_t n_in, out;               /* out: the group's output */
    int32_t port[ORTC_SIBLING_PORTS]; /* of the node's inputs: the group's; -1: left out */
} ortc_sibling;

/* Of a node of the group's body, a MatMul or Gemm whose B is a matrix. 0: it is none, or reads what another
 * node of the group makes; *why then says so. */
int ortc_sibling_read(const ortc_graph *body, const ortc_node *, ortc_sibling *, const char **why);
/* The node's views, ORTC_SIBLING_PORTS of them, of the group's. */
void ortc_sibling_views(const ortc_sibling *, const ortc_view *in, ortc_view *out);

#endif
