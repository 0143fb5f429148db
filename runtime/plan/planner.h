/* runtime/plan/planner.h: the planner's inside, shared by its stages: planner_infer.c (shapes, segments, what is needed),
 * planner_home.c (where an edge's bytes are), planner.c (kernels choose, the whole), planner_place.c (outputs, slots, arena).
 */
#ifndef ORTC_PLANNER_H
#define ORTC_PLANNER_H

#include "runtime/execute/call.h"
#include "runtime/session/session.h"

enum { LIVES_NOWHERE, LIVES_POINTER, LIVES_INPUT, LIVES_OUTPUT, LIVES_BLOCK, LIVES_SLOT };

/* Where an edge's bytes are: in the memory of its root edge (itself, or what it is a view of). */
typedef struct ortc_home {
    uint32_t lives;   /* LIVES_*; of a root */
    uint32_t index;   /* input, output or block */
    uint32_t root;    /* edge id */
    size_t offset;    /* in the root */
    const void *data; /* LIVES_POINTER */
    size_t bytes;     /* of a root */
    uint32_t last;    /* of a root: last step that reads it */
    bool made;        /* by a step */
} ortc_home;

/* A kernel's offer to write an output over an input that is tied state. */
typedef struct ortc_in_place {
    uint32_t step, out, in; /* edges' ids */
} ortc_in_place;

typedef struct ortc_planner {
    ortc_session *session;
    const ortc_graph *graph;
    ortc_run_env *env;
    ortc_error *error;
    ortc_program *program;
    ortc_arena scratch;
    ortc_fact *facts;  /* by edge id */
    bool *needed;      /* by edge id */
    ortc_home *homes;       /* by edge id */
    const bool *wanted;
    const ortc_node *begin, *end; /* the segment; end NULL: to the last node */
    ortc_value *const *made;      /* slots of earlier segments; NULL: this is the first */
    bool *asked;       /* by edge id: read on some path to a wanted output, whatever shapes turn out to be */
    bool *crosses;     /* by edge id: made here, read by a later segment or an output of a chain */
    bool late;         /* a kernel of this segment makes extents that are not known yet */
    const ortc_planner_input *inputs;
    ORTC_ARRAY(ortc_in_place) in_place;
    ORTC_ARRAY(ortc_slot) slots;
    ORTC_ARRAY(ortc_step) steps;
    ORTC_ARRAY(ortc_block) blocks;
    ORTC_ARRAY(uint32_t) block_edges; /* edge id; UINT32_MAX: workspace of the step in `from` */
} ortc_planner;

/* planner_infer.c */
ortc_status ortc_planner_seed(ortc_planner *, const ortc_planner_input *inputs);
void ortc_planner_mark_asked(ortc_planner *);  /* what a wanted output may need, by the graph alone */
ortc_status ortc_planner_infer(ortc_planner *); /* shapes, up to the segment's end, which it sets */
void ortc_planner_mark_needed(ortc_planner *); /* edges whose bytes some step must provide */
bool ortc_planner_runs(const ortc_planner *, const ortc_node *);
bool ortc_fact_is_sized(const ortc_fact *);    /* every extent is a number */

/* planner_home.c */
bool ortc_fact_bytes(const ortc_fact *, size_t *out); /* of a tensor whose size is known */
ortc_status ortc_planner_bytes(ortc_planner *, const ortc_edge *, size_t *out); /* the same, with an error that says why not */
ortc_status ortc_planner_home(ortc_planner *, const ortc_edge *, ortc_home **out); /* of an edge that is read */
ortc_status ortc_planner_pack(ortc_planner *, const ortc_edge *, const void *device, const ortc_packing *, const void *param,
                              size_t param_bytes, ortc_pack_item **out);
void ortc_planner_note_use(ortc_planner *, const ortc_edge *, uint32_t step);

/* planner_place.c */
ortc_status ortc_planner_place_outputs(ortc_planner *);
void ortc_planner_place_ties(ortc_planner *); /* after the outputs */
ortc_status ortc_planner_fill_slots(ortc_planner *);
ortc_status ortc_planner_place_blocks(ortc_planner *);

#endif
