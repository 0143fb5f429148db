/* runtime/execute/unit.h: units: what is run. A placed and bound graph with its cache of plans, its pool of
 * contexts and its limits.
 *
 * A session is a unit with a model; each subgraph of a control node (the body of a Loop, a branch of an If)
 * is a unit of its own over the child graph, made with the one around it. Who makes a unit says how it ends
 * (`destroy`).
 */
#ifndef ORTC_UNIT_H
#define ORTC_UNIT_H

#include "runtime/call/call.h"
#include "runtime/place/placed.h"
#include "runtime/plan/plan.h"

typedef struct ortc_unit ortc_unit;

/* Idle contexts whose arenas others of the model's may take (shelf.c). Zeroed: empty. */
typedef struct ortc_shelf {
    pthread_mutex_t lock;
    ortc_context *first;
} ortc_shelf;

/* An ortc_tie, checked. */
typedef struct ortc_unit_tie {
    uint32_t input, output; /* of the graph */
    int32_t axis;           /* -1: as a whole */
    bool grows;             /* else input and output have one shape */
    int64_t capacity;       /* along the axis; axis -1: 0 */
} ortc_unit_tie;

/* A subgraph of a control node. */
typedef struct ortc_unit_child {
    const char *attribute;
    ortc_unit *unit; /* retained */
    struct ortc_unit_child *next;
} ortc_unit_child;

struct ortc_unit {
    atomic_int references;
    void (*destroy)(ortc_unit *); /* when the last reference has gone */
    ortc_placed placed;
    ortc_unit_child **children; /* by node id; in the graph's arena */
    ortc_pack_store *packed;    /* the model's */
    ortc_shelf *shelf;          /* the same; NULL: none */
    ortc_plan_cache plans;
    atomic_bool fresh;               /* forms may pass in the next run, which is the first (plan.h) */
    uint32_t threads;                /* budget of a run */
    const ortc_allocator *allocator; /* of arenas and results; NULL: ours */
    ortc_kept *kept;                 /* memory of results; NULL: with a limit, or somebody's allocator */
    const ortc_executor *executor;   /* NULL: the pool */
    atomic_uint_fast64_t captures, replays, bytes_to_devices, bytes_from_devices; /* for statistics */
    pthread_mutex_t lock; /* of the pool of contexts */
    pthread_cond_t returned;
    ortc_context *idle;
    uint32_t n_contexts, max_contexts; /* max 0: no limit */
    uint64_t max_bytes;                /* of all arenas and plans; 0: no limit */
    ortc_budget *budget;               /* ortc_run_env.budget, of every run */
    atomic_uint_fast64_t arena_bytes;
    ortc_unit_tie *ties; /* in the graph's arena */
    uint32_t n_ties;
};

static inline const ortc_target *ortc_unit_target(const ortc_unit *u, uint32_t device)
{
    return &u->placed.targets->list[device];
}

/* Readies everything but what is placed; zeroed before, `destroy`, `packed` and limits set. */
void ortc_unit_init(ortc_unit *, uint64_t max_plan_bytes);
/* Ends contexts, plans, kernels' states and children; not the graph. */
void ortc_unit_deinit(ortc_unit *);
ortc_unit *ortc_unit_retain(ortc_unit *);
void ortc_unit_release(ortc_unit *); /* NULL: nothing */

/* One run; any thread. As ortc_run, whose arguments these are, checked and complete. */
ortc_status ortc_unit_run(ortc_unit *, ortc_run_args *, ortc_error *);

/* Frees what idle contexts and the cache of plans hold; bytes. */
uint64_t ortc_unit_trim(ortc_unit *);

/* The limit: bytes of arenas and states are counted as taken. false: over it, even without idle contexts and
 * plans. */
bool ortc_unit_reserve(ortc_unit *, size_t bytes);
void ortc_unit_unreserve(ortc_unit *, size_t bytes);
/* A plan that has just been put into the cache may stay; LIMIT otherwise. */
ortc_status ortc_unit_admit_plan(ortc_unit *, const ortc_program *, ortc_error *);

#endif
