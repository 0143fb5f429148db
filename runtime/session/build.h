/* runtime/session/build.h: making units (build.c). */
#ifndef ORTC_BUILD_H
#define ORTC_BUILD_H

#include "runtime/execute/unit.h"

/* Places, specialises and binds the graph, and makes units of the subgraphs in it, on the same targets and
 * under the same limits. The unit is initialised, with everything but what is placed; graph and targets are
 * borrowed. require: ORTC_SESSION options' (NULL: nothing); flags: ORTC_SESSION_*; edits: of the specialising
 * passes, out (NULL: nobody asks); stop: NULL, or who may end it. After a failure the unit is to be
 * released. */
ortc_status ortc_unit_build(ortc_unit *, ortc_graph *, const ortc_targets *, const char *require,
                            uint32_t flags, const ortc_stop *stop, uint64_t *edits, ortc_error *);

#endif
