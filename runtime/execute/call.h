/* runtime/execute/call.h: what a kernel is handed when it runs, and what its services stand on. */
#ifndef ORTC_CALL_H
#define ORTC_CALL_H

#include "graph/ir/graph.h"
#include "ortc/op.h"
#include "runtime/base/threads.h"

struct ortc_cancel {
    atomic_bool set;
};

/* One run: who may stop it, how many threads it has, where its error goes. */
typedef struct ortc_run_env {
    uint32_t threads;
    ortc_cancel *cancel;  /* NULL: none */
    int64_t deadline_ns;  /* 0: none */
    uint64_t seed;
    ortc_error *error;
} ortc_run_env;

/* ORTC_OK, or the reason to stop. */
ortc_status ortc_run_env_poll(ortc_run_env *);

/* `call` is first: the api's functions find the rest behind it. */
typedef struct ortc_step_call {
    ortc_call call;
    ortc_run_env *env;
    const ortc_node *node; /* NULL: packing */
    char *scratch;         /* workers' parts of the workspace */
    size_t scratch_stride;
    uint32_t step;         /* index in its program, for seeds */
    void *slot;            /* what call.slot points to */
} ortc_step_call;

void ortc_step_call_init(ortc_step_call *, ortc_run_env *, const ortc_node *);

/* Puts "node 'x' (Conv): " before a failed step's text, or makes one for a kernel that gave none. */
ortc_status ortc_step_failed(const ortc_node *, const ortc_kernel *, ortc_status, ortc_error *);

#endif
