/* graph/specialise/specialise.h: proposals inside one provider's region, decided by the kernels.
 *
 * A pass builds the node that it would like (an operator with an epilogue, say) beside the graph and asks;
 * only a yes edits the graph. The new node carries a body: the nodes that it stands for, which is its
 * meaning, its fallback and how it is exported. Runs on a session's own copy of the model's graph, after
 * placement.
 */
#ifndef ORTC_SPECIALISE_H
#define ORTC_SPECIALISE_H

#include "base/stop.h"
#include "graph/ir/body.h"

typedef struct ortc_specialise {
    ortc_graph *graph;
    ortc_error *error;
    const ortc_stop *stop; /* NULL: nobody ends it before its time */
    /* Whether kernels of the device that runs `where` take the proposed node, which need not be in the graph.
     * On a yes they are from then on those of `node`; NULL: it is only a question. */
    bool (*accept)(void *arg, const ortc_node *proposal, const ortc_node *node, const ortc_node *where);
    /* Whether the device that runs the node has any kernel for ortc.Group: else none need be proposed. NULL:
     * it may. */
    bool (*groups)(void *arg, const ortc_node *);
    /* Whether two nodes run on one device. */
    bool (*together)(void *arg, const ortc_node *, const ortc_node *);
    /* Whether the node's device was asked to round what it multiplies (ORTC_KERNEL_ROUNDS). NULL: none was */
    bool (*rounds)(void *arg, const ortc_node *);
    void *arg; /* of all four */
    uint64_t edits;
} ortc_specialise;

typedef struct ortc_specialise_pass {
    const char *name;
    ortc_status (*run)(ortc_specialise *);
} ortc_specialise_pass;

extern const ortc_specialise_pass ortc_specialise_passes[];
extern const size_t ortc_specialise_n_passes;

ortc_status ortc_pass_fuse_epilogue(ortc_specialise *);
ortc_status ortc_pass_half_values(ortc_specialise *);
ortc_status ortc_pass_integer_moves(ortc_specialise *);
ortc_status ortc_pass_integer_products(ortc_specialise *);
ortc_status ortc_pass_sibling_products(ortc_specialise *);
ortc_status ortc_pass_between_bytes(ortc_specialise *);
ortc_status ortc_pass_own_dequantised(ortc_specialise *);
ortc_status ortc_pass_squeeze_excite(ortc_specialise *);
/* Whether n makes of x the mean of each channel (squeeze_excite.c). */
bool ortc_averages(const ortc_node *n, const ortc_edge *x);
ortc_status ortc_pass_group_pointwise(ortc_specialise *);

/* The node of ortc.Group that a body would become, for asking whether somebody takes it. */
ortc_status ortc_specialise_group_of(ortc_specialise *, const ortc_graph *body, ortc_node *out);
/* The nodes become one of ortc.Group, named `called` and a number, if a kernel takes it: *out, else NULL. */
ortc_status ortc_specialise_join(ortc_specialise *, const ortc_node *const *nodes, uint32_t n,
                                 const char *called, ortc_node **out);

ortc_status ortc_specialise_run(ortc_specialise *, uint64_t *edits);

#endif
