/* runtime/plan/choose.h: which of its candidates runs each node, and how values lie in memory between them.
 *
 * Pure: it follows from the placed graph and the shapes at hand, never from what was planned, packed or run
 * before. Every candidate that knows layouts is asked what it would like, and whether it would go along with
 * what others like; then the sum of clocks over all nodes, and of reorderings between them, is made small:
 * from several beginnings (everything plain, everything in one layout as far as that goes) single nodes, and
 * all that make and read one value, are changed for the better until none can be. The first of equals wins,
 * so the same question has the same answer. Graph inputs, constants and what a later segment or the caller
 * reads are plain.
 */
#ifndef ORTC_CHOOSE_H
#define ORTC_CHOOSE_H

#include "plan.h"

/* What a node runs with. */
typedef struct ortc_pick {
    const ortc_candidate *candidate; /* NULL: it does not run */
    ortc_step_offer offer;
    uint64_t form;                 /* ortc_offer.form */
    uint32_t reuse;                /* ortc_offer.reuse */
    const ortc_layout *in, *out;   /* of its ports; NULL: all plain */
    const ortc_step_offer *offers; /* n_offers: of all candidates; NULL: there was no choice */
    uint32_t n_offers;
} ortc_pick;

typedef struct ortc_choosing {
    const ortc_placed *placed;
    const ortc_fact *facts;       /* by edge id */
    const ortc_node *begin, *end; /* the nodes in question; end NULL: to the last */
    /* whether a node runs, whether it makes an output, and whether somebody else than these nodes reads an
     * edge; NULL: all of them, and the graph's outputs */
    bool (*runs)(const void *arg, const ortc_node *);
    bool (*makes)(const void *arg, const ortc_node *, uint32_t port);
    bool (*is_read)(const void *arg, const ortc_edge *);
    const void *arg;
    bool any_form;     /* do not ask ortc_site.form */
    ortc_arena *arena; /* of what comes of it */
    ortc_error *error;
    ortc_pick *picks; /* out: by node id */
} ortc_choosing;

/* UNSUPPORTED never: candidates that say no are left aside, the last may not. INVALID_ARGUMENT: what the
 * caller has chosen for a node by name is not offered. */
ortc_status ortc_choose(ortc_choosing *);

/* Bind: for extents that are expected (numbers as they are; symbols as `expected` says) chooses, keeps that
 * as long as the graph, and notes of each node in which form its kernel wants its constants: with other
 * extents only candidates that read the same form, or the last one, run. So a constant has two packed forms
 * at most, whatever shapes come. */
ortc_status ortc_settle(ortc_placed *, ortc_error *);
/* What was chosen then, by node id, where the question (with runs, makes and is_read) is the same; NULL: it
 * is another one. */
const ortc_pick *ortc_settled(const ortc_choosing *);

/* What a mover takes for it in one step; HUGE_VAL: there is none, or it does not do that. */
double ortc_reorder_clocks(const ortc_placed *, const ortc_fact *, uint32_t space, ortc_layout from,
                           ortc_layout to);
/* In which space a node's kernel wants a port: its device's, or the host's for what it reads there. */
uint8_t ortc_port_space(const ortc_placed *, const ortc_fact *facts, const ortc_node *, uint32_t port,
                        bool input);
/* Bytes in memory, with what fills up a last block; false: too large, or not of a fixed size. */
bool ortc_bytes_laid_out(ortc_dtype, ortc_layout, int32_t rank, const int64_t *dims, size_t *out);

#endif
