/* runtime/call/call.h: what a kernel is handed when it runs, and what its services stand on. */
#ifndef ORTC_CALL_H
#define ORTC_CALL_H

#include "graph/ir/graph.h"
#include "ortc/op.h"
#include "base/executor.h"
#include "base/stop.h"
#include "base/threads.h"
#include "base/value.h"
#include "runtime/profile/profile.h"

struct ortc_step_call;

/* Which loops of a run go to several threads: those that are long enough; none; of the first those that were
 * quicker so. */
typedef enum ortc_spread { ORTC_SPREAD_ALL, ORTC_SPREAD_NONE, ORTC_SPREAD_GAIN } ortc_spread;
#define ORTC_SPREADS 3

/* Work in operations (ORTC_CHUNK_OPERATIONS): what may yet be done, and what a kernel began to do that would
 * have been more: the loops before it and that one. */
typedef struct ortc_budget {
    uint64_t left, done;
    double wanted;
} ortc_budget;

/* One run: who may stop it, how many threads it has, where its error goes. */
typedef struct ortc_run_env {
    uint32_t threads;
    ortc_cancel *cancel; /* NULL: none */
    int64_t deadline_ns; /* 0: none */
    uint64_t seed;
    ortc_budget *budget; /* of runs on one thread; NULL: no limit */
    ortc_error *error;
    const ortc_allocator *allocator; /* NULL: ours */
    uint64_t max_bytes;              /* of a tensor that a run makes outside of arenas; 0: any */
    ortc_kept *kept;                 /* for values, without an allocator; NULL: none is kept */
    const ortc_executor *executor;   /* NULL: the pool */
    ortc_spread spread;
    bool measured;                 /* loops take their time also where they stay on one thread */
    ortc_executor_loop *loop;      /* the executor's, while one is open */
    const ortc_profiler *profiler; /* NULL: none */
    /* Runs a subgraph of a node (ortc_call_body): n_in values for its formal inputs, its captures behind
     * them; n_out new references, all of them on success, none otherwise. NULL: there are no subgraphs to
     * run. */
    ortc_status (*body)(struct ortc_step_call *, const char *name, uint32_t n_in, ortc_value *const *in,
                        uint32_t n_out, ortc_value **out);
    struct ortc_unit *unit; /* whose run it is, for `body`; NULL with it */
    ortc_value **slots;     /* by edge id: what segments hand on; NULL: the program has none */
    /* values made of views for kernels that ask for them; released with the run */
    ORTC_ARRAY(ortc_value *) borrowed;
    bool short_of_memory; /* a service that gives no status had none: the step has failed, whatever it says */
} ortc_run_env;

/* What a chunk of ortc_parallel, or what lies between two polls, is taken to cost: kernels say how long an
 * element takes, in nanoseconds of a usual machine, and chunks are as long as that makes them (ortc_grain).
 * So a count of chunks measures work, and is the same everywhere. */
#define ORTC_CHUNK_OPERATIONS 200000

/* ORTC_OK, or the reason to stop: LIMIT where nothing is left to do. */
ortc_status ortc_run_env_poll(ortc_run_env *);

/* A tensor in host memory: the allocator's, or what was kept. LIMIT: larger than max_bytes. */
ortc_status ortc_run_env_create(const ortc_run_env *, ortc_dtype, int32_t rank, const int64_t *dims,
                                ortc_value **out, ortc_error *);

/* What a step's loop took when it ran before: so many threads are asked for as have some microseconds each. A
 * loop that is too short for that is done before others have heard of it, and its results would lie in their
 * caches. Who does a chunk changes no bit. */
typedef struct ortc_loop_work {
    double ns;            /* all chunks together; 0: not known yet */
    double alone, shared; /* from begin to end, on one thread and on several; 0: not known yet */
} ortc_loop_work;
uint32_t ortc_loop_threads(const ortc_loop_work *, ortc_spread, uint32_t budget);
/* It took `ns` on up to `threads` threads, of which the caller's did `mine` of its chunks. */
void ortc_loop_took(ortc_loop_work *, double ns, uint32_t threads, double chunks, double mine);
enum { ORTC_LOOPS_KNOWN = 4 }; /* of a step */

/* `call` is first: the api's functions find the rest behind it. */
typedef struct ortc_step_call {
    ortc_call call;
    ortc_run_env *env;
    const ortc_node *node; /* NULL: packing */
    bool of_file;          /* packing: the source is in a mapped file */
    char *scratch;         /* workers' parts of the workspace */
    size_t scratch_stride;
    uint32_t step;    /* index in its program, for seeds */
    ortc_phase phase; /* with a profiler */
    void *slot;       /* what call.slot points to */
    /* its loops so far in this run, whether one is open, and what the first took */
    uint32_t n_loops;
    bool in_loop;
    ortc_loop_work work[ORTC_LOOPS_KNOWN];
} ortc_step_call;

void ortc_step_call_init(ortc_step_call *, ortc_run_env *, const ortc_node *);

/* An input, captures included, as a value that lives as long as the run (env.borrowed). NULL: left out, or no
 * memory (env.short_of_memory). */
ortc_value *ortc_step_call_input(ortc_step_call *, uint32_t port);

/* Puts "node 'x' (Conv): " before a failed step's text, or makes one for a kernel that gave none. */
ortc_status ortc_step_failed(const ortc_node *, const ortc_kernel *, ortc_status, ortc_error *);

#endif
