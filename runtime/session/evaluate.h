/* runtime/session/evaluate.h: one node over constants, computed on the reference provider, or, where it
 * takes long, on the cpu; for constant folding. */
#ifndef ORTC_EVALUATE_H
#define ORTC_EVALUATE_H

#include "base/stop.h"
#include "session.h"

/* Whose constants they are, who may stop it, and what may be done for it in all. */
typedef struct ortc_evaluation {
    ortc_model *model;
    const ortc_stop *stop;
    uint64_t operations; /* left: nanoseconds of a usual machine, as kernels estimate them (runtime/call) */
} ortc_evaluation;

/* ortc_normalise's `evaluate`; arg is an ortc_evaluation. LIMIT: it takes more than what is left. */
ortc_status ortc_evaluate_node(void *evaluation, const ortc_node *, ortc_constant **out, ortc_error *);

#endif
