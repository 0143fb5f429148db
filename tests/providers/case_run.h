/* tests/providers/case_run.h: running one case in one way, through the public interface only. */
#ifndef ORTC_TESTS_CASE_RUN_H
#define ORTC_TESTS_CASE_RUN_H

#include "case_text.h"
#include "ortc/ortc.h"

typedef struct run_way {
    const char *name;
    const char *providers;
    uint32_t threads;
    int model;   /* MODEL_* */
    bool passes; /* with the normalising passes */
    /* bytes that inputs lie off an aligned address, outputs an element; -1: both an element */
    int offset;
    bool placed;        /* outputs are written into the caller's memory, between canaries */
    uint32_t asked;     /* bit i: output i is asked for; 0: all are */
    const char *choose; /* as in ortc_session_options; NULL: nothing */
} run_way;

typedef struct run_result {
    ortc_status status;
    char text[1100];               /* of an error, or of a broken canary (status ORTC_INTERNAL) */
    char provider[32], kernel[64]; /* that the case's node was placed on; "" when it was folded away */
    /* n_out of the node, NULL where it was not asked for; for run_result_deinit */
    ortc_value *out[MAX_PORTS];
    void *memory[MAX_PORTS];
    size_t n_out;
} run_result;

/* `shapes`: the results of an earlier run, for the types and shapes of outputs; NULL where they need not be
 * known. */
void run_case(const node_text *, const run_way *, const run_result *shapes, run_result *);
void run_result_deinit(run_result *);

#endif
