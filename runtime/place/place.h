/* runtime/place/place.h: which provider and which kernel runs each node; and the preparation of those
 * kernels. */
#ifndef ORTC_PLACE_H
#define ORTC_PLACE_H

#include "graph/ir/graph.h"
#include "ortc/provider.h"
#include "runtime/session/session.h"

/* Nodes without a kernel that only the last device could run become their bodies where an earlier one takes a
 * part; the new nodes are not placed, and have no `reasons` yet. (expand.c) */
ortc_status ortc_place_expand(ortc_session *, bool *out_any, ortc_error *);
/* Sets device, kernel and reasons of every node: in order of the session's devices the first whose kernel
 * matches and supports. UNSUPPORTED lists the nodes that nothing can run. */
ortc_status ortc_place(ortc_session *, ortc_error *);
/* Puts "cuda: why" behind what earlier providers said of a node. false: no memory. */
bool ortc_add_reason(ortc_session *, ortc_node *, const char *provider, const char *why);
/* claim.c: groups of free nodes that a device's provider takes as one. */
ortc_status ortc_place_claims(ortc_session *, uint32_t device, ortc_error *);
/* island.c: marks edges that only decide shapes; whether all of a node's results are such; what goes back to
 * the host. */
ortc_status ortc_mark_shapes_only(ortc_session *, ortc_error *);
bool ortc_is_host_only(const ortc_session *, const ortc_node *);
ortc_status ortc_place_islands(ortc_session *, ortc_error *);
/* Looks for a kernel of one device for a node that may not be in the graph yet. NULL: none; reasons into
 * `why`. */
const ortc_kernel *ortc_place_find(const ortc_session_device *, const ortc_node *, ortc_text *why);
/* UNSUPPORTED when a node is on none of the comma-separated providers; names the first such nodes and why. */
ortc_status ortc_place_require(const ortc_session *, const char *providers, ortc_error *);
/* Runs prepare of every node's kernel. */
ortc_status ortc_bind(ortc_session *, ortc_error *);
void ortc_unbind(ortc_session *);

#endif
