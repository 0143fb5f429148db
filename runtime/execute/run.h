/* runtime/execute/run.h: what the parts of a run share: key.c finds the program for what is given, run.c
 * gives it values. */
#ifndef ORTC_EXECUTE_RUN_H
#define ORTC_EXECUTE_RUN_H

#include "context.h"

/* key.c: args.in and args.out against the model's names, into the context. */
ortc_status ortc_run_match_inputs(ortc_context *, const ortc_in *, size_t n_in, ortc_error *);
ortc_status ortc_run_match_outputs(ortc_context *, const ortc_out *, size_t n_out, ortc_error *);
/* The frame for the context's inputs and outputs: of an earlier run, or planned and bound now. */
ortc_status ortc_run_find_frame(ortc_context *, ortc_frame **out, ortc_error *);
/* The key being made: bytes; kind, type, memory and extents of a value. false: no memory. */
bool ortc_key_add(ortc_context *, const void *data, size_t bytes);
bool ortc_key_add_value(ortc_context *, const ortc_value *);
/* Plans for the context's key and puts the program into the session's cache. after, slots: of a chain of
 * segments. */
ortc_status ortc_run_make_program(ortc_context *, const ortc_program *after, ortc_value *const *slots,
                                  bool once, ortc_program **out, ortc_error *);

#endif
