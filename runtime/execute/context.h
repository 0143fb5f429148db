/* runtime/execute/context.h: contexts and frames: a program with addresses.
 *
 * A context has one arena per space (host, memory of a device), as large as the largest of its programs
 * needs. A frame is a program's steps with views that point into those arenas; inputs and outputs are patched
 * in for every run. When the arena must grow, all frames are dropped and made again when they are next used.
 * One run at a time per context.
 */
#ifndef ORTC_CONTEXT_H
#define ORTC_CONTEXT_H

#include "base/sanitize.h"
#include "runtime/call/call.h"
#include "unit.h"

typedef struct ortc_patch {
    void **where;   /* a view's data */
    uint32_t index; /* of the input, the output, or the slot's edge */
    uint32_t from;  /* ORTC_FROM_* */
    size_t offset;
    uint32_t step;
} ortc_patch;

/* What is captured of a range of steps: a few graphs, by the addresses that they hold. */
typedef struct ortc_capture_exec {
    void *exec; /* the provider's; NULL: none */
    uint64_t addresses;
} ortc_capture_exec;
typedef struct ortc_capture {
    uint32_t seen, captures; /* runs of the range so far, graphs made */
    ortc_capture_exec execs[2];
} ortc_capture;

/* How a program's loops go to threads: what a short one gains is measured (pace.c). Zeroed: all do. */
#define ORTC_PACE_TRIES 7
typedef struct ortc_pace {
    uint8_t chosen, trial;         /* an ortc_spread; 0: that one runs, 1, 2: those behind it, for a try */
    uint32_t runs, left, stay;     /* counted now; until the next try; how many there are between tries */
    double tries[ORTC_PACE_TRIES]; /* what runs took, ascending */
    double ns[ORTC_SPREADS];       /* the median of each spread's */
} ortc_pace;
ortc_spread ortc_pace_spread(const ortc_pace *);               /* of the next run */
void ortc_pace_took(ortc_pace *, double ns, uint32_t threads); /* it has been */

typedef struct ortc_frame {
    ortc_program *program;
    ortc_unit *unit;
    ortc_arena memory;      /* views, calls, patches */
    ortc_step_call *calls;  /* per step */
    ortc_capture *captures; /* n_ranges of the program */
    void **events;          /* n_events of the program, the providers'; NULL: not made yet */
    ORTC_ARRAY(ortc_patch) patches;
    uint64_t last_used;
    ortc_pace pace;
} ortc_frame;

#define ORTC_MAX_FRAMES 8 /* per context; the least recently used goes */

struct ortc_context {
    ortc_unit *unit;
    ortc_context *next; /* among the idle */
    /* on the shelf, under its lock: its arena may be taken; has been, and frames lead nowhere */
    bool offered, robbed;
    ortc_context *next_offered;
    atomic_bool busy; /* a caller's context: a run is using it */
    void *arenas[ORTC_MAX_SPACES];
    size_t arena_bytes[ORTC_MAX_SPACES];
    void *queues[ORTC_MAX_DEVICES]; /* one per device with memory of its own; NULL: not made yet */
    /* a word in the device's memory; NULL: no kernel needs it so far */
    uint32_t *faults[ORTC_MAX_DEVICES];
    uint32_t fault_seen[ORTC_MAX_DEVICES]; /* what it held at the end of a run */
    uint32_t watched;                      /* bit d: this run's kernels may set it */
    void *finish[ORTC_MAX_DEVICES];        /* an event per queue, for the end of a run */
    void *native;                          /* the caller's stream that queues[0] wraps; NULL: it is our own */
    /* bit d: work may be under way that reads or writes what this run was given */
    uint32_t busy_queues;
    ortc_frame *frames[ORTC_MAX_FRAMES];
    uint64_t clock;
    ortc_run_env env;
    struct ortc_state *state; /* of this run; NULL: none */
    /* scratch of a run, kept to allocate nothing */
    ortc_planner_input *inputs;
    bool *wanted;
    uint32_t *memory;    /* per output of the graph: where it goes */
    uint32_t *output_of; /* per entry of ortc_run_args.out: index of the graph's output */
    void **in_data, **out_data;
    /* by edge id, for chains of segments; made when first needed, empty between runs */
    ortc_value **slots;
    ortc_value **aligned; /* per input: a copy at an aligned address, made for one run */
    uint8_t *key;
    size_t key_bytes, key_capacity;
};

ortc_status ortc_context_make(ortc_unit *, ortc_context **out, ortc_error *);
void ortc_context_free(ortc_context *);
/* From the unit's pool; waits when max_contexts are busy. Give it back with ortc_context_return. */
ortc_status ortc_context_take(ortc_unit *, ortc_context **out, ortc_error *);
void ortc_context_return(ortc_context *);
/* The frame of a program in this context, made if need be. */
ortc_status ortc_context_frame(ortc_context *, ortc_program *, ortc_frame **out, ortc_error *);
void ortc_context_drop(ortc_context *, ortc_frame *); /* of a program for one run, behind it */
/* The frame whose program has this key; NULL: none here. */
ortc_frame *ortc_context_find(ortc_context *, const void *key, size_t key_bytes);
uint64_t ortc_context_trim(ortc_context *); /* bytes freed */
uint64_t ortc_context_trim_idle(ortc_unit *);

/* The program for these inputs and all outputs, planned if need be (key.c). A reference for the caller. */
ortc_status ortc_context_program(ortc_context *, const ortc_in *, size_t n_in, ortc_program **out,
                                 ortc_error *);

/* shelf.c. Offers the arena of a context that goes idle; takes it back, false: it is gone. An arena that
 * somebody offers, of at least *bytes, which becomes what it has; NULL: there is none. */
void ortc_shelf_offer(ortc_context *);
bool ortc_shelf_reclaim(ortc_context *);
void *ortc_shelf_take(ortc_unit *, size_t *bytes);

/* Queues the steps of devices and runs those of the host (walk.c). in_data and out_data of the context are
 * set. */
ortc_status ortc_frame_run(ortc_context *, ortc_frame *, ortc_error *);

/* One step, in its range or by itself (walk.c). A range of steps, captured and replayed where that is
 * possible (capture.c). */
ortc_status ortc_frame_step(ortc_context *, ortc_frame *, uint32_t index, ortc_error *);
ortc_status ortc_frame_range(ortc_context *, ortc_frame *, uint32_t range, ortc_error *);
void ortc_frame_drop_captures(ortc_frame *);

/* padding.c, debug builds: before and after a step, what fills up the last blocks of its results. */
void ortc_step_poison_padding(const ortc_step *, const ortc_call *);
ortc_status ortc_step_check_padding(const ortc_step *, const ortc_call *, ortc_error *);

/* fence.c, under AddressSanitizer: around a program's steps, and around one of them. */
void ortc_fence_raise(const ortc_context *);
void ortc_fence_drop(const ortc_context *);
void ortc_fence_open(const ortc_context *, const ortc_step *, const ortc_call *);
void ortc_fence_close(const ortc_context *, const ortc_step *, const ortc_call *);

/* queue.c: the queues of a context's devices. */
/* NULL for host memory */
ortc_status ortc_context_queue(ortc_context *, uint32_t device, void **out, ortc_error *);
ortc_status ortc_context_fault_word(ortc_context *, uint32_t device, ortc_error *); /* makes it */
/* the caller's stream for the first device; NULL: ours */
ortc_status ortc_context_use_native(ortc_context *, void *native, ortc_error *);
ortc_status ortc_step_copy(ortc_context *, const ortc_step *, void *to, const void *from, ortc_error *);
ortc_status ortc_step_signal(ortc_context *, const ortc_step *, void **event, ortc_error *);
ortc_status ortc_step_wait(ortc_context *, const ortc_step *, void *event, ortc_error *);
/* Signals behind what the busy queues have; waits for that signal. Draining gives the first failure, and
 * drains all the same. */
ortc_status ortc_context_mark_end(ortc_context *, ortc_error *);
ortc_status ortc_context_drain(ortc_context *, ortc_error *);
/* whether draining would not wait; false where a provider cannot tell */
bool ortc_context_is_done(ortc_context *);
void ortc_context_drop_queues(ortc_context *);
/* Forgets what a run was given (run.c). */
void ortc_context_clean(ortc_context *);

/* control.c: runs a subgraph of the step's node: ortc_run_env.body. */
ortc_status ortc_run_body(ortc_step_call *, const char *name, uint32_t n_in, ortc_value *const *in,
                          uint32_t n_out, ortc_value **out);

/* event.c: what an asynchronous run leaves behind. */
typedef struct ortc_event_copy {
    /* the bytes of the first go to the second when the run has ended; owned, borrowed */
    ortc_value *made, *given;
} ortc_event_copy;
ortc_status ortc_event_make(ortc_context *, const ortc_run_args *, ortc_event **out, ortc_error *);
bool ortc_event_hold(ortc_event *, ortc_value *);
bool ortc_event_copy_later(ortc_event *, ortc_value *made, ortc_value *given); /* takes `made` */
void ortc_event_start(ortc_event *, ortc_context *); /* from here on the event owns the context */

#endif
