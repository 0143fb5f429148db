/* graph/ir/quantised.h: what passes over quantised networks share: operands that are dequantised, and nodes
 * of one result that has the shape of another value. */
#ifndef ORTC_QUANTISED_H
#define ORTC_QUANTISED_H

#include "graph.h"

static inline bool ortc_is_op(const ortc_node *n, const char *type)
{
    return n && n->op && !*n->domain && !n->epilogue && !n->n_captures && !strcmp(n->type, type);
}

/* Integers of 8 bits with the scale that they have as numbers. */
typedef struct ortc_quantised {
    ortc_edge *x, *zero;        /* zero: NULL for none */
    const ortc_constant *scale; /* f32: one, or one for each index along `axis` */
    int64_t axis;               /* as the node has it, of x; only where there are several */
} ortc_quantised;

/* A tensor of integers of 8 bits; NULL is none. */
bool ortc_is_bytes(const ortc_edge *);
/* Whether e is the result, in f32, of a DequantizeLinear of integers of 8 bits by constant scales. */
bool ortc_read_dequantised(const ortc_edge *e, ortc_quantised *out);

/* Element i of a scale, or the one for all. */
float ortc_scale_at(const ortc_constant *scale, int64_t i);

/* A node of the standard's, or of a domain, before another, with one result of type t and the shape of
 * `like`; NULL: no memory. */
ortc_node *ortc_node_like(ortc_graph *, ortc_node *before, const char *op, ortc_dtype t,
                          const ortc_edge *like, uint32_t n_in, ortc_edge *const *in);
ortc_node *ortc_node_of_domain(ortc_graph *, ortc_node *before, const char *domain, const char *op,
                               ortc_dtype t, const ortc_edge *like, uint32_t n_in, ortc_edge *const *in);

/* Cast to f32 of an i32 and Mul: *cast and *mul, in this order behind x. scale: an edge. */
bool ortc_scale_sums(ortc_graph *, ortc_node *before, ortc_edge *sums, ortc_edge *scale, ortc_node **cast,
                     ortc_node **mul);

/* A constant of f32 along `axis` of a tensor of `rank` dims (count 1: a scalar), its elements from `at`.
 * NULL: no memory. */
ortc_edge *ortc_graph_along(ortc_graph *, int32_t rank, int32_t axis, int64_t count,
                            float (*at)(const void *arg, int64_t i), const void *arg, ortc_error *);

#endif
