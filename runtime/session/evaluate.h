/* runtime/session/evaluate.h: one node over constants, computed on the reference provider; for constant
 * folding. */
#ifndef ORTC_EVALUATE_H
#define ORTC_EVALUATE_H

#include "session.h"

/* ortc_normalise's `evaluate`; arg is the model. */
ortc_status ortc_evaluate_node(void *model, const ortc_node *, ortc_constant **out, ortc_error *);

#endif
