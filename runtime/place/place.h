/* runtime/place/place.h: which provider and which kernels run each node; and the preparation of those
 * kernels (placed.h is what comes of it). */
#ifndef ORTC_PLACE_H
#define ORTC_PLACE_H

#include "placed.h"

/* ---- The stages, in this order ------------------------------------------------------------------------- */

/* The table (zeroed, `forced` set) of a graph, in which nothing is placed. Graph and targets are borrowed;
 * the caller deinits, also after a failure. */
ortc_status ortc_placed_init(ortc_placed *, ortc_graph *, const ortc_targets *, ortc_error *);
/* A site for every node: in order of the targets the first whose kernels match and support it. UNSUPPORTED
 * lists the nodes that nothing can run. */
ortc_status ortc_place(ortc_placed *, ortc_error *);
/* Whether the device that runs the node has kernels for ortc.Group at all. */
bool ortc_place_groups(const ortc_placed *, const ortc_node *);
/* Whether kernels of the device that runs `where` take the proposed node; on a yes they are from then on
 * those of `node` (NULL: it was only a question). For specialising passes. */
bool ortc_place_accepts(ortc_placed *, const ortc_node *proposal, const ortc_node *node,
                        const ortc_node *where);
/* UNSUPPORTED when a node is on none of the comma-separated providers; names the first such nodes and why. */
ortc_status ortc_place_require(const ortc_placed *, const char *providers, ortc_error *);
/* Marks whose values decide shapes, and runs prepare of every kernel. */
ortc_status ortc_bind(ortc_placed *, ortc_error *);

/* ---- Between the parts of placement -------------------------------------------------------------------- */

/* Whether a device has a kernel for the node. */
bool ortc_place_can(const ortc_target *, const ortc_node *);
/* Looks for kernels of a device and puts the node there if there are any; reasons into `why` (may be NULL).
 * false: no memory. */
bool ortc_place_on(ortc_placed *, const ortc_node *, uint32_t device, ortc_text *why);
/* The node runs on this device, with these kernels. false: no memory. */
bool ortc_place_at(ortc_placed *, const ortc_node *, uint32_t device, const ortc_kernel *const *, uint32_t n);
/* Puts "cuda: why" behind what earlier providers said of a node. false: no memory. */
bool ortc_add_reason(ortc_placed *, const ortc_node *, const char *provider, const char *why);
/* Nodes without a kernel on the first devices become their bodies where those take a part, or where no device
 * has a kernel; the new nodes are not placed, and nobody was asked about them yet (expand.c). */
ortc_status ortc_place_expand(ortc_placed *, uint32_t devices, bool *out_any, ortc_error *);
/* Groups of free nodes that a device's provider takes as one (claim.c). */
ortc_status ortc_place_claims(ortc_placed *, uint32_t device, ortc_error *);
/* What goes back to the host (island.c). */
ortc_status ortc_place_islands(ortc_placed *, ortc_error *);
/* Marks edges that only decide shapes, and those whose values do; whether all of a node's results only decide
 * shapes (mark.c). */
ortc_status ortc_mark_shapes_only(ortc_placed *, ortc_error *);
ortc_status ortc_mark_deciding(ortc_placed *, ortc_error *);
bool ortc_is_host_only(const ortc_placed *, const ortc_node *);

#endif
