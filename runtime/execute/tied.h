/* runtime/execute/tied.h: tied state: what the tied outputs of one run leave for the tied inputs of the next.
 *
 * A tie has up to two buffers and one value over the buffer that is valid. A run reads that value and writes
 * the other buffer, and when it has succeeded they change places; where the planner lets a kernel write in
 * place, there is one buffer. Nothing of the state changes before a run has succeeded, but what in-place
 * kernels write behind its length.
 */
#ifndef ORTC_EXECUTE_STATE_H
#define ORTC_EXECUTE_STATE_H

#include "context.h"

typedef struct ortc_tied {
    ortc_open_device *device; /* whose memory it is: that of the input's reader; NULL: the host's */
    void *memory[2];          /* NULL: not needed so far */
    size_t bytes;             /* of each: the whole capacity */
    uint32_t now;             /* which of them is valid */
    /* over memory[now]; its extent along a growing axis changes. NULL: no run has made it yet */
    ortc_value *value;
    int64_t length; /* positions along the axis; 0 without one */
} ortc_tied;

struct ortc_state {
    ortc_unit *unit;  /* retained */
    atomic_bool busy; /* a run is using it */
    ortc_tied ties[]; /* as in the session */
};

/* For one run: checks args.state and args.advance and takes the state; gives it back. NULL: nothing to do. */
ortc_status ortc_state_take(ortc_unit *, const ortc_run_args *, ortc_error *);
void ortc_state_return(ortc_state *);

/* Steps of a run with the context's state; they do nothing when it has none. */
/* tied inputs that the caller has not given */
ortc_status ortc_state_bind_inputs(ortc_context *, ortc_error *);
/* tied outputs are always made, where the state is */
void ortc_state_want(ortc_context *);
ortc_status ortc_state_bind_outputs(ortc_context *, const ortc_program *, ortc_error *);
/* the same behind a chain of segments, whose results are in slots */
ortc_status ortc_state_take_slots(ortc_context *, ortc_error *);
/* The run has succeeded. Tied outputs that the caller asked for are copied: to made[i], or where he said.
 * program NULL: a chain. */
ortc_status ortc_state_commit(ortc_context *, const ortc_program *, ortc_run_args *, ortc_value *const *made,
                              ortc_error *);

/* For one tie: zeros, or the input's default; length 0, or the default's. */
ortc_status ortc_state_start(const ortc_unit *, const ortc_unit_tie *, ortc_tied *, ortc_error *);
/* A growing value's extent along its axis. */
void ortc_tied_set_extent(ortc_tied *, int32_t axis, int64_t extent);

#endif
