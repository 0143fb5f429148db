/* runtime/execute/context.h: contexts and frames: a program with addresses.
 *
 * A context has one arena per kind of memory, as large as the largest of its programs needs. A frame is a program's steps
 * with views that point into that arena; inputs and outputs are patched in for every run. When the arena must grow, all
 * frames are dropped and made again when they are next used. One run at a time per context.
 */
#ifndef ORTC_CONTEXT_H
#define ORTC_CONTEXT_H

#include "call.h"
#include "runtime/session/session.h"

typedef struct ortc_patch {
    void **where;   /* a view's data */
    uint32_t index; /* of the input, the output, or the slot's edge */
    uint32_t from;  /* ORTC_FROM_* */
    size_t offset;
} ortc_patch;

typedef struct ortc_frame {
    ortc_program *program;
    ortc_arena memory;      /* views, calls, patches */
    ortc_step_call *calls;  /* per step */
    ORTC_ARRAY(ortc_patch) patches;
    uint64_t last_used;
} ortc_frame;

#define ORTC_MAX_FRAMES 8 /* per context; the least recently used goes */

struct ortc_context {
    ortc_session *session;
    ortc_context *next;     /* among the idle */
    atomic_bool busy;       /* a caller's context: a run is using it */
    void *arena;
    size_t arena_bytes;
    ortc_frame *frames[ORTC_MAX_FRAMES];
    uint64_t clock;
    ortc_run_env env;
    struct ortc_state *state; /* of this run; NULL: none */
    /* scratch of a run, kept to allocate nothing */
    ortc_planner_input *inputs;
    bool *wanted;
    uint32_t *output_of;    /* per entry of ortc_run_args.out: index of the graph's output */
    void **in_data, **out_data;
    ortc_value **slots;     /* by edge id, for chains of segments; made when first needed, empty between runs */
    ortc_value **aligned;   /* per input: a copy at an aligned address, made for one run */
    uint8_t *key;
    size_t key_bytes, key_capacity;
};

ortc_status ortc_context_make(ortc_session *, ortc_context **out, ortc_error *);
void ortc_context_free(ortc_context *);
/* From the session's pool; waits when max_contexts are busy. Give it back with ortc_context_return. */
ortc_status ortc_context_take(ortc_session *, ortc_context **out, ortc_error *);
void ortc_context_return(ortc_context *);
/* The frame of a program in this context, made if need be. */
ortc_status ortc_context_frame(ortc_context *, ortc_program *, ortc_frame **out, ortc_error *);
/* The frame whose program has this key; NULL: none here. */
ortc_frame *ortc_context_find(ortc_context *, const void *key, size_t key_bytes);
uint64_t ortc_context_trim(ortc_context *); /* bytes freed */
uint64_t ortc_context_trim_idle(ortc_session *);

/* The program for these inputs and all outputs, planned if need be (run.c). A reference for the caller. */
ortc_status ortc_context_program(ortc_context *, const ortc_in *, size_t n_in, ortc_program **out, ortc_error *);

/* Walks the steps (run.c). in_data and out_data of the context are set. */
ortc_status ortc_frame_run(ortc_context *, ortc_frame *, ortc_error *);

#endif
