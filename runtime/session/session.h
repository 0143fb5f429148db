/* runtime/session/session.h: the inside of models, sessions and contexts.
 *
 *   model    source (mapped files) + normalised graph + constants and their packed forms; immutable but for
 *            the latter
 *   session  a unit (runtime/execute/unit.h) over its own copy of the graph, with what the caller named and
 *            lent: devices, allocator, executor
 *   context  frames: one per plan that it has run: the plan's arena and its steps' views with addresses
 *            filled in
 */
#ifndef ORTC_SESSION_H
#define ORTC_SESSION_H

#include "graph/onnx/onnx.h"
#include "runtime/execute/unit.h"

struct ortc_model {
    atomic_int references;
    ortc_source *source;
    ortc_graph *graph;
    ortc_model_info info;
    ortc_io *inputs, *outputs; /* in the graph's arena */
    ortc_pack_store packed;
    ortc_shelf shelf; /* of its sessions' arenas */
    /* sessions that others may be given, too (session.c), and their lock; zeroed: none */
    pthread_mutex_t lock;
    ortc_session *sessions;
};

struct ortc_session {
    ortc_unit unit;    /* over the whole graph, which it owns; its references are the session's */
    ortc_model *model; /* retained; NULL: a session of the library's own */
    ortc_targets targets;
    ortc_forced *forced;          /* the caller's choices; in the graph's arena */
    uint64_t *pass_edits;         /* of the specialising passes; in the graph's arena */
    ortc_allocator own_allocator; /* the caller's, copied */
    ortc_executor own_executor;
    ortc_session *next;          /* among the model's */
    bool listed;                 /* among them */
    ortc_session_options *asked; /* what it was made with, where it is; in the graph's arena */
};

#endif
