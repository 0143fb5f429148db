/* runtime/session/session.h: the inside of models, sessions and contexts.
 *
 *   model    source (mapped files) + normalised graph + constants and their packed forms; immutable but for
 *            the latter
 *   session  its own copy of the graph: placed, specialised, bound; the cache of plans; the pool of contexts
 *   context  frames: one per plan that it has run: the plan's arena and its steps' views with addresses
 *            filled in
 */
#ifndef ORTC_SESSION_H
#define ORTC_SESSION_H

#include <pthread.h>

#include "graph/ir/graph.h"
#include "graph/onnx/onnx.h"
#include "ortc/provider.h"
#include "runtime/device/device.h"
#include "runtime/plan/plan.h"

struct ortc_model {
    atomic_int references;
    ortc_source *source;
    ortc_graph *graph;
    ortc_model_info info;
    ortc_io *inputs, *outputs; /* in the graph's arena */
    ortc_pack_store packed;
};

typedef struct ortc_session_device {
    ortc_open_device *open;
    const ortc_provider *provider;
    ortc_device *device;
    uint8_t space; /* its memory: 0 the host's, else one of its own */
} ortc_session_device;

/* An ortc_tie, checked (state.c). */
typedef struct ortc_session_tie {
    uint32_t input, output; /* of the graph */
    int32_t axis;           /* -1: as a whole */
    bool grows;             /* else input and output have one shape */
    int64_t capacity;       /* along the axis; axis -1: 0 */
} ortc_session_tie;

struct ortc_session {
    atomic_int references;
    ortc_model *model;       /* retained; NULL: a session of the library's own */
    ortc_pack_store *packed; /* the model's */
    ortc_graph *graph;
    bool graph_borrowed;                           /* a subgraph's session: the parent's graph owns it */
    ortc_session_device devices[ORTC_MAX_DEVICES]; /* the caller's order, ref last */
    uint32_t n_devices, n_named;                   /* the caller named the first n_named */
    uint32_t n_spaces;                             /* kinds of memory: the host's and those of devices */
    uint8_t device_of[ORTC_MAX_SPACES];            /* of a space: index of its device */
    uint32_t threads;                              /* budget of a run */
    uint64_t *pass_edits;                          /* of the specialising passes */
    bool *decides;                                 /* per graph input: its values are part of the key */
    bool *deciding;                                /* per edge: its values decide shapes */
    bool *shapes_only; /* per edge, of the first n_marked: nothing but shapes depends on it */
    size_t n_marked;
    ortc_plan_cache plans;
    atomic_uint_fast64_t captures, replays, bytes_to_devices, bytes_from_devices; /* for statistics */
    pthread_mutex_t lock; /* of the pool of contexts */
    ortc_context *idle;
    uint32_t n_contexts;
    uint32_t max_contexts;
    uint64_t max_bytes; /* of all arenas; 0: no limit */
    atomic_uint_fast64_t arena_bytes;
    pthread_cond_t returned;
    ortc_allocator own_allocator; /* the caller's, copied */
    ortc_executor own_executor;
    const ortc_allocator *allocator; /* of arenas and results; NULL: ours */
    const ortc_executor *executor;   /* NULL: the pool */
    ortc_session_tie *ties;          /* in the graph's arena */
    uint32_t n_ties;
};

#endif
