/* graph/ir/infer.h: running one node's shape function, at load over symbols and per plan over numbers.
 *
 * What is known of an edge is a fact. At load the facts stand in the edges; a planner keeps its own array of
 * facts, indexed by edge id, so that many plans of one graph can be made at once.
 */
#ifndef ORTC_INFER_H
#define ORTC_INFER_H

#include "graph.h"

#define ORTC_MAX_VALUES 64 /* elements of a small integer tensor whose values are carried along */

typedef struct ortc_fact {
    const ortc_type *type; /* NULL: not known */
    int32_t rank;          /* -1: not known, or not a tensor */
    const ortc_dim *dims;
    const ortc_dim *values; /* NULL: nothing is known */
    int64_t n_values;
} ortc_fact;

struct ortc_infer {
    const ortc_infer_api *api;
    ortc_dims *dims;        /* NULL: only numbers, expressions become ORTC_DIM_UNKNOWN */
    ortc_arena *arena;      /* where dims and values of results live */
    const ortc_fact *facts; /* by edge id; NULL: the edges' own */
    ortc_error *error;
    const ortc_node *node;
    ortc_fact *out; /* n_out of the node */
    /* of the first combination of dims that failed: the node's inference fails with it */
    ortc_status status;
};

void ortc_infer_init(ortc_infer *, ortc_dims *, ortc_arena *, const ortc_fact *facts, ortc_error *);
/* Runs the node's shape function; out: n_out facts, type NULL where nothing was said. Errors name the
 * node. */
ortc_status ortc_infer_run(ortc_infer *, const ortc_node *, ortc_fact *out);
/* At load: runs it, joins the result with what the output edges say already, checks the node against its
 * schema. */
ortc_status ortc_infer_at_load(ortc_infer *, ortc_node *);
/* Whether every value is a number. */
bool ortc_fact_values_known(const ortc_fact *);
/* Whether the extents are numbers and there are as many values as they say: only then is it a tensor's whole
 * contents. */
static inline bool ortc_fact_values_fit(const ortc_fact *f)
{
    int64_t count;
    for (int32_t i = 0; i < f->rank; i++)
        if (!ortc_dim_is_number(f->dims[i])) return false;
    return f->values && f->rank >= 0 && ortc_count_elements(f->rank, f->dims, &count) && count == f->n_values;
}
/* The values of a small integer constant as dims, in the arena; NULL when it is not one. */
const ortc_dim *ortc_constant_values(const ortc_constant *, ortc_arena *, int64_t *out_count);

#endif
